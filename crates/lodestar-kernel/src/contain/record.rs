//! What was in force around a child, and what was refused to it: what the log says.

use std::collections::BTreeSet;
use std::fmt;

use lodestar_core::contract::Sandbox;
use serde::{Deserialize, Serialize};

use super::plan::{Network, Plan};

/// How far a child is contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not at all: it runs with the rights of whoever started Lodestar.
    Absent,
    /// In part: a layer is missing, or something was tried and not refused.
    Partial,
    /// Every layer is in force, and all that was tried inside was refused.
    Proved,
}

impl State {
    /// Its name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Partial => "partial",
            Self::Proved => "proved",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is tried from inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempt {
    /// Opening the folder of the user's keys.
    ReadKeys,
    /// Opening the project's `.lodestar/`.
    OpenLodestar,
    /// Making a file outside of what is granted.
    WriteOutside,
    /// Reading the memory of Lodestar's process.
    ReadParent,
    /// Attaching to Lodestar's process as a debugger does.
    TraceParent,
    /// Sending a signal to Lodestar's process.
    SignalParent,
    /// A TCP connection to a listener on this machine.
    ConnectTcp,
    /// A socket that sends datagrams to this machine's loopback.
    SendUdp,
    /// A raw socket.
    RawSocket,
    /// A socket that reaches programs of the same user.
    UnixSocket,
    /// A queue through which the kernel makes calls that no filter sees.
    IoUring,
    /// A mount.
    Mount,
    /// The kernel's own store of keys.
    Keyring,
}

impl Attempt {
    /// All of them, in the order in which they are made.
    pub const ALL: [Self; 13] = [
        Self::ReadKeys,
        Self::OpenLodestar,
        Self::WriteOutside,
        Self::ReadParent,
        Self::TraceParent,
        Self::SignalParent,
        Self::ConnectTcp,
        Self::SendUdp,
        Self::RawSocket,
        Self::UnixSocket,
        Self::IoUring,
        Self::Mount,
        Self::Keyring,
    ];

    /// What is tried, in words.
    pub fn as_words(self) -> &'static str {
        match self {
            Self::ReadKeys => "open the keys",
            Self::OpenLodestar => "open `.lodestar/`",
            Self::WriteOutside => "write outside",
            Self::ReadParent => "read Lodestar's memory",
            Self::TraceParent => "trace Lodestar",
            Self::SignalParent => "signal Lodestar",
            Self::ConnectTcp => "connect by TCP",
            Self::SendUdp => "send by UDP",
            Self::RawSocket => "open a raw socket",
            Self::UnixSocket => "reach a Unix socket",
            Self::IoUring => "use io_uring",
            Self::Mount => "mount",
            Self::Keyring => "use the kernel's keyring",
        }
    }
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// What was tried.
    pub attempt: Attempt,
    /// Whether it was refused.
    pub refused: bool,
    /// The system's number for why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<u16>,
}

/// Places that a child was granted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// To read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// To read and write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
}

impl Declared {
    /// As a plan has them.
    pub fn of(plan: &Plan) -> Self {
        let shown = |places: &[std::path::PathBuf]| {
            let shown = places.iter().map(|place| place.display().to_string());
            shown.collect::<BTreeSet<_>>().into_iter().collect()
        };
        Self {
            read: shown(&plan.reads),
            write: shown(&plan.writes),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}

/// What was in force around one child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containment {
    /// How far it is contained.
    pub state: State,
    /// The profiles whose union was granted.
    pub profiles: BTreeSet<Sandbox>,
    /// The version of Landlock's rules; zero where there is none.
    pub landlock: u32,
    /// Whether it has namespaces of its own.
    pub namespaces: bool,
    /// Whether system calls are filtered.
    pub filtered: bool,
    /// Ways out that it was granted.
    pub network: Network,
    /// What it was granted beyond them by somebody's word.
    #[serde(default, skip_serializing_if = "Declared::is_empty")]
    pub declared: Declared,
    /// What was tried inside, in the process that became the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// What does not hold, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
    /// What holds and is less than one may think, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Containment {
    /// Of a child that nothing contains.
    pub fn absent(why: impl Into<String>) -> Self {
        Self {
            state: State::Absent,
            profiles: BTreeSet::new(),
            landlock: 0,
            namespaces: false,
            filtered: false,
            network: Network::ANY,
            declared: Declared::default(),
            tried: Vec::new(),
            gaps: vec![why.into()],
            notes: Vec::new(),
        }
    }

    /// What was tried and not refused.
    pub fn open(&self) -> impl Iterator<Item = Attempt> + '_ {
        let open = self.tried.iter().filter(|tried| !tried.refused);
        open.map(|tried| tried.attempt)
    }

    /// In one line.
    pub fn summary(&self) -> String {
        let refused = self.tried.iter().filter(|tried| tried.refused).count();
        match self.state {
            State::Absent => {
                let why = self
                    .gaps
                    .first()
                    .map_or("nothing contains it", String::as_str);
                format!("not contained: {why}")
            }
            State::Proved => format!("contained, proved: {refused} attempts inside were refused"),
            State::Partial => {
                let open: Vec<_> = self.open().map(Attempt::as_words).collect();
                let mut gaps = self.gaps.clone();
                if !open.is_empty() {
                    gaps.push(format!("not refused: {}", open.join(", ")));
                }
                format!("contained in part: {}", gaps.join("; "))
            }
        }
    }
}
