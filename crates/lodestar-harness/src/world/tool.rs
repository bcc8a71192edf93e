//! A tool for sessions of the library that counts how often it really ran.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use serde_json::{Value, json};

use crate::probe::Outcome;

type Says = dyn Fn(&Call<'_>) -> Output + Send + Sync;

/// A tool that says what it was given, or what it is told to say, and counts its calls.
#[derive(Clone)]
pub struct CountingTool {
    definition: Definition,
    ran: Arc<AtomicU64>,
    says: Arc<Says>,
}

impl CountingTool {
    /// It takes `path`, `to`, `text` and `count`, and says what it was given.
    pub fn new(name: &str) -> Outcome<Self> {
        Self::saying(name, |call| {
            Output::text(format!("did {}", Value::Object(call.arguments().clone())))
        })
    }

    /// It says what this function says.
    pub fn saying(
        name: &str,
        says: impl Fn(&Call<'_>) -> Output + Send + Sync + 'static,
    ) -> Outcome<Self> {
        let roles = [
            ("path", ArgumentRole::Path),
            ("to", ArgumentRole::Destination),
            ("text", ArgumentRole::Payload),
        ];
        Ok(Self {
            definition: Definition {
                name: ToolName::new(name)?,
                server: ServerIdentity::new("box")?,
                description: "a tool of a scenario".to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "to": {"type": "string"},
                        "text": {"type": "string"},
                        "count": {"type": "integer"},
                    },
                    "additionalProperties": false,
                }),
                roles: roles.map(|(name, role)| (name.to_owned(), role)).into(),
                declared: None,
                minimum: laxest(),
            },
            ran: Arc::default(),
            says: Arc::new(says),
        })
    }

    /// With another minimum than none at all.
    #[must_use]
    pub fn at_least(mut self, minimum: Contract) -> Self {
        self.definition.minimum = minimum;
        self
    }

    /// How often it ran, by its own count.
    pub fn ran(&self) -> u64 {
        self.ran.load(Ordering::SeqCst)
    }
}

impl Tool for CountingTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            self.ran.fetch_add(1, Ordering::SeqCst);
            Ok((self.says)(&call))
        })
    }
}

impl std::fmt::Debug for CountingTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountingTool")
            .field("name", &self.definition.name)
            .field("ran", &self.ran())
            .finish_non_exhaustive()
    }
}

/// What promises nothing itself: the grade alone counts.
pub(crate) fn laxest() -> Contract {
    Contract {
        required_level: Rung::L0,
        blast_radius: BlastRadius::SelfOnly,
        reversibility: Reversibility::Reversible,
        scope: Scope::global(),
        data_sensitivity: DataSensitivity::Public,
        preconditions: Default::default(),
        sandbox: Sandbox::ControlledNetwork,
        permissions: Permission::ALL.iter().copied().collect(),
    }
}
