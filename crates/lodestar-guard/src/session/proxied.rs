//! What a proxy does beside calls: it records what became of its servers, and refuses on its own account.

use lodestar_core::event::{EventType, Writer};
use lodestar_core::name::ToolName;
use lodestar_kernel::record::Rejection;
use serde::Serialize;

use super::call::refused;
use super::reply::Reply;
use super::{Counted, Session};
use crate::error::GuardError;

impl Session {
    /// Records what only a proxy can know: what became of a server or of a tool's definition.
    pub fn note_proxied<P: Serialize>(
        &self,
        kind: EventType,
        payload: &P,
    ) -> Result<u64, GuardError> {
        if kind.spec().writer != Writer::Mcp {
            return Err(GuardError::NotAProxys(kind));
        }
        let receipt = self
            .inner
            .log
            .append(kind, &self.inner.actor, &[], payload)?;
        Ok(receipt.seq())
    }

    /// Refuses a call before it becomes an action; the log says so.
    pub fn refuse(&self, tool: &str, why: Rejection) -> Result<Reply, GuardError> {
        Counted::add(&self.inner.counts.calls);
        Counted::add(&self.inner.counts.refused);
        let tool = ToolName::new(tool).ok();
        let kernel = &self.inner.kernel;
        let receipt = kernel.reject(None, tool.as_ref(), why.clone(), &[])?;
        Ok(refused(None, Some(receipt.seq()), why))
    }
}
