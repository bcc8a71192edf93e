//! The one way through: propose, clear, execute, finish. Each step takes the one before it.
//!
//! Nothing is executed without a clearance, and nobody but the kernel makes one:
//!
//! ```compile_fail,E0451
//! use lodestar_kernel::Clearance;
//!
//! fn forge(honest: Clearance) -> Clearance {
//!     Clearance { id: todo!(), ..honest }
//! }
//! ```
//! A clearance takes a permit, which names a recorded verdict; one that was only computed is none:
//!
//! ```compile_fail,E0308
//! use lodestar_kernel::{Kernel, Proposed};
//! use lodestar_policy::Gate;
//!
//! async fn unlogged(kernel: &Kernel, gate: &Gate, proposed: Proposed) {
//!     let verdict = gate.judge(&proposed.facts(), &[]);
//!     let _ = kernel.clear(proposed, verdict, None, &Default::default()).await;
//! }
//! ```
//! It is used up by what it lets through:
//!
//! ```compile_fail,E0382
//! use lodestar_kernel::{Clearance, Kernel, Limits};
//!
//! async fn twice(kernel: &Kernel, clearance: Clearance, limits: &Limits) {
//!     kernel.execute(clearance, limits).await;
//!     kernel.execute(clearance, limits).await;
//! }
//! ```
//! ```compile_fail,E0599
//! use lodestar_kernel::Clearance;
//!
//! fn copy(clearance: &Clearance) -> Clearance {
//!     clearance.clone()
//! }
//! ```

mod clear;
mod execute;
mod hold;
mod keep;
mod propose;
mod trail;
mod unended;

pub use clear::{ClearError, Clearance};
pub use execute::{Limits, Ran};
pub use hold::{HeldWorld, NotOfProposal};
pub use propose::{Draft, ProposeError, Proposed};

use std::collections::BTreeSet;

use lodestar_core::defence::Defence;
use lodestar_core::event::EventType;
use lodestar_core::fingerprint::NormalPath;
use lodestar_core::id::ActionId;
use lodestar_core::name::{ActorId, ToolName};
use lodestar_core::time::Timestamp;
use lodestar_log::{AppendError, Clock, LogWriter, Receipt};
use lodestar_policy::{Agent, Trail};

use crate::halt::Halt;
use crate::measure::World;
use crate::protect::Protected;
use crate::random::Random;
use crate::record::{Rejected, Rejection};
use crate::registry::Registry;
use crate::step::Steps;
use trail::SharedTrail;

/// What a kernel is made of.
#[derive(Debug)]
pub struct Parts {
    /// The tools.
    pub registry: Registry,
    /// What it looks at.
    pub world: World,
    /// What no tool may reach.
    pub protected: Protected,
    /// Where everything is recorded.
    pub log: LogWriter,
    /// In whose name.
    pub agent: Agent,
    /// The time.
    pub clock: Clock,
    /// Who is told of each step.
    pub steps: Steps,
    /// The steps of the session so far, where somebody looks at them.
    pub trail: Option<Trail>,
}

/// Proposes, clears and executes the actions of one session.
#[derive(Debug)]
pub struct Kernel {
    registry: Registry,
    world: World,
    protected: Protected,
    log: LogWriter,
    agent: Agent,
    clock: Clock,
    steps: Steps,
    halt: Halt,
    random: Random,
    trail: SharedTrail,
    /// The project's root, as paths are written.
    root: Option<NormalPath>,
    /// Of a harness.
    taken_out: BTreeSet<Defence>,
}

impl Kernel {
    /// The kernel of one session.
    pub fn new(parts: Parts) -> Self {
        let root = parts.world.root().to_str();
        Self {
            root: root.and_then(|root| NormalPath::new(root).ok()),
            halt: Halt::of(parts.log.dir()),
            registry: parts.registry,
            world: parts.world,
            protected: parts.protected,
            log: parts.log,
            agent: parts.agent,
            clock: parts.clock,
            steps: parts.steps,
            random: Random::default(),
            taken_out: BTreeSet::new(),
            trail: SharedTrail::new(parts.trail),
        }
    }

    /// For a harness that takes defences out. Without
    /// - [`Defence::Revalidation`], what was measured once is not measured again;
    /// - [`Defence::DefaultPreconditions`], of a held action only what its contract asks for is measured;
    /// - [`Defence::SecondLook`], a path that led elsewhere when it was proposed may run wherever it leads now;
    /// - [`Defence::DurableClearance`], tools are called before their clearance is on disk;
    /// - [`Defence::Halt`], nobody looks whether the session is to stop.
    #[must_use]
    pub fn without(mut self, defences: &[Defence]) -> Self {
        self.taken_out.extend(defences);
        if self.lacks(Defence::Halt) {
            self.halt = self.halt.taken_out();
        }
        self
    }

    fn lacks(&self, defence: Defence) -> bool {
        self.taken_out.contains(&defence)
    }

    /// The tools.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The switch that stops it.
    pub fn halt(&self) -> &Halt {
        &self.halt
    }

    /// Tells everything that runs to stop.
    pub fn stop_running(&self) {
        self.halt.stop.stop();
    }

    /// Resolves when everything that runs is told to stop, by a halt or at the end of the session.
    pub async fn stopped(&self) {
        self.halt.halted().await;
    }

    /// Who is told of each step.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// A new id of any kind, and the moment it was made at.
    pub fn stamp<T>(&self, make: fn(u64, [u8; 10]) -> T) -> (T, Timestamp) {
        let now = self.clock.now();
        let millis = u64::try_from(now.unix_micros() / 1000).unwrap_or(0);
        (make(millis, self.random.ten()), now)
    }

    /// Records that something does not run, and why.
    pub fn reject(
        &self,
        action: Option<ActionId>,
        tool: Option<&ToolName>,
        why: Rejection,
        parents: &[u64],
    ) -> Result<Receipt, AppendError> {
        let rejected = Rejected {
            action,
            tool: tool.cloned(),
            granted: None,
            why,
        };
        self.record_rejection(&rejected, parents)
    }

    fn record_rejection(
        &self,
        rejected: &Rejected,
        parents: &[u64],
    ) -> Result<Receipt, AppendError> {
        let kind = EventType::ACTION_REJECTED;
        self.log.append(kind, self.actor(), parents, rejected)
    }

    fn actor(&self) -> &ActorId {
        &self.agent.actor
    }
}
