//! People with keys of their own, whose word counts or does not.

use std::sync::Arc;

use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{ApprovalDecision, Envelope, Nonce};
use lodestar_guard::{Holds, Resolver, Resolving};
use lodestar_log::Clock;
use lodestar_policy::{ApprovalRequest, Signed};

use crate::probe::{Broken, Outcome};

/// Somebody who can sign.
#[derive(Debug, Clone)]
pub struct Person {
    /// Who they are.
    pub name: ActorId,
    /// What they sign with.
    pub key: Arc<SecretKey>,
}

impl Person {
    /// Somebody with a fresh key.
    pub fn new(name: &str) -> Outcome<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|problem| Broken::Failed(problem.to_string()))?;
        Ok(Self {
            name: ActorId::new(name)?,
            key: Arc::new(SecretKey::from_seed(seed)),
        })
    }

    /// Their answer to a request, as it is signed now.
    pub fn answer(
        &self,
        request: &ApprovalRequest,
        decision: ApprovalDecision,
    ) -> Outcome<(Envelope, Nonce)> {
        let nonce = nonce()?;
        let signed = Signed {
            key: &self.key,
            at: Clock::system().now(),
            nonce,
        };
        let envelope = request.answer(&self.name, decision, "seen", signed)?;
        Ok((envelope, nonce))
    }
}

/// A number that was never used.
pub(crate) fn nonce() -> Outcome<Nonce> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|problem| Broken::Failed(problem.to_string()))?;
    Ok(Nonce::from_bytes(bytes))
}

/// Whoever is asked by a session of the library, as a function of the request.
pub struct Asking<F>(F);

impl<F: Fn(&ApprovalRequest) -> Vec<Envelope> + Send + Sync> Resolver for Asking<F> {
    fn resolve<'a>(&'a self, request: &'a ApprovalRequest) -> Resolving<'a> {
        Box::pin(async move { (self.0)(request) })
    }
}

impl<F> std::fmt::Debug for Asking<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asking")
    }
}

/// Holds that this function answers.
pub fn answering(
    answer: impl Fn(&ApprovalRequest) -> Vec<Envelope> + Send + Sync + 'static,
) -> Holds {
    Holds::Ask(Arc::new(Asking(answer)))
}
