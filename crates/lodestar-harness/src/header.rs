//! What a probe says of itself.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use lodestar_core::defence::Defence;
use serde::Serialize;

use crate::class::AttackClass;

/// Where a probe comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Pack(Cow<'static, str>);

impl Pack {
    /// Rule by rule: firewall, gate, approvals, proxy, log, devices.
    pub const CORE: Self = Self(Cow::Borrowed("lodestar-core"));
    /// Whole attacks on a coding agent.
    pub const CODING: Self = Self(Cow::Borrowed("coding-agent-safety"));
    /// Those that come with the program.
    pub const BUILT_IN: [Self; 2] = [Self::CORE, Self::CODING];

    /// A pack of somebody else's, by the name in its manifest.
    pub fn outside(name: String) -> Self {
        Self(Cow::Owned(name))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Which part of the house a probe is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// What is read, and what is believed.
    Firewall,
    /// What may run.
    Gate,
    /// People's word.
    Approvals,
    /// Between an agent and its servers.
    Proxy,
    /// The record.
    Log,
    /// Devices and the runs that they vouch for.
    Devices,
    /// Somebody else's scenarios.
    Outside,
}

impl Section {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Firewall => "firewall",
            Self::Gate => "gate",
            Self::Approvals => "approvals",
            Self::Proxy => "proxy",
            Self::Log => "log",
            Self::Devices => "devices",
            Self::Outside => "outside",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What has to be on the machine for a probe to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// Nothing beside the program.
    Nothing,
    /// A PostgreSQL server, named by `LODESTAR_TEST_DATABASE_URL`.
    Postgres,
    /// The program `git`.
    Git,
}

/// What a probe says of itself: enough to judge what its passing is worth.
#[derive(Debug, Clone, Serialize)]
pub struct Header {
    /// Its name, in small letters and hyphens.
    pub name: Cow<'static, str>,
    /// Where it comes from.
    pub pack: Pack,
    /// What it is about.
    pub section: Section,
    /// What happens in it.
    pub scenario: Cow<'static, str>,
    /// What must be so afterwards.
    pub asserts: Cow<'static, str>,
    /// What its passing does not show.
    pub does_not_claim: Cow<'static, str>,
    /// The kind of attack.
    pub class: AttackClass,
    /// The defence that the contrast run lacks.
    pub defence: Defence,
    /// What has to be there.
    pub needs: Needs,
    /// How long one run of it may take.
    #[serde(skip)]
    pub deadline: Duration,
}
