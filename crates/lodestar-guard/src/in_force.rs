//! What a configuration puts into force: the tools, graded, and the policy.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::defence::Defence;
use lodestar_core::statement::Envelope;
use lodestar_kernel::registry::Registry;
use lodestar_kernel::tool::Tool;
use lodestar_log::Clock;
use lodestar_policy::{Policy, Unsigned};

use crate::config::{Ceiling, Config};
use crate::session::OpenError;
use crate::tools;

impl Config {
    /// The tools in the box that are asked for, under the grades they are given. Grades of tools that
    /// a program brings itself are not looked at: they are not here to be seen.
    pub fn registry(&self) -> Result<Registry, OpenError> {
        self.registry_with(Vec::new())
    }

    /// The same with tools that others bring: those that a program has, or that servers offered when they
    /// were last seen.
    pub fn registry_with(&self, others: Vec<Arc<dyn Tool>>) -> Result<Registry, OpenError> {
        let mut registry = Registry::default();
        let scope = self.scope()?;
        for tool in tools::native(&self.tools, &scope)? {
            let grade = self.tool_defaults.get(tool.definition().name.as_str());
            registry.add_native(tool, grade)?;
        }
        for tool in others {
            let grade = self.tool_defaults.get(tool.definition().name.as_str());
            registry.add(tool, grade, &scope)?;
        }
        Ok(registry)
    }

    /// The policy: the file that is named, its signature checked, or else the preset of a ceiling.
    pub fn policy_in_force(&self, ceiling: Option<Ceiling>) -> Result<Policy, OpenError> {
        self.policy_without(ceiling, &[])
    }

    /// For a harness that takes [`Defence::PolicySignature`] out: the file counts, whoever wrote it.
    pub(crate) fn policy_without(
        &self,
        ceiling: Option<Ceiling>,
        defences: &[Defence],
    ) -> Result<Policy, OpenError> {
        let Some(file) = &self.policy else {
            let ceiling = ceiling.or(self.auto_approve_ceiling);
            let ceiling = ceiling.unwrap_or(Ceiling::DEFAULT).get();
            return Policy::preset(ceiling).map_err(|problem| OpenError::Policy {
                file: PathBuf::from("auto_approve_ceiling"),
                problem,
            });
        };
        let path = self.path(&file.file);
        let bytes = read(&path)?;
        let (signature, unsigned) = match defences.contains(&Defence::PolicySignature) {
            true => (None, Unsigned::Allowed),
            false => {
                let signature = read_signature(&self.path(&file.signature()))?;
                (signature, file.allow_unsigned.into())
            }
        };
        let now = Clock::system().now();
        Policy::load(&bytes, signature.as_ref(), &file.keys, unsigned, now).map_err(|problem| {
            OpenError::Policy {
                file: path,
                problem,
            }
        })
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, OpenError> {
    std::fs::read(path).map_err(|problem| OpenError::Read {
        file: path.to_owned(),
        problem,
    })
}

fn read_signature(path: &Path) -> Result<Option<Envelope>, OpenError> {
    let failed = |problem| OpenError::Read {
        file: path.to_owned(),
        problem,
    };
    match std::fs::read(path) {
        Ok(bytes) => Envelope::from_json(&bytes)
            .map(Some)
            .map_err(|problem| failed(io::Error::new(io::ErrorKind::InvalidData, problem))),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(problem) => Err(failed(problem)),
    }
}
