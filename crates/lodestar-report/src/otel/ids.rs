//! Trace and span ids: they follow from the log, so that a second export gives the same ones.

use lodestar_core::digest::{Digest, sha256_parts};
use lodestar_log::SessionDir;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// What a span is of; several may begin with the same event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Session,
    Action,
    Hold,
    Execution,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Action => "action",
            Self::Hold => "hold",
            Self::Execution => "execution",
        }
    }
}

/// The ids of one session's trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids {
    trace: TraceId,
}

impl Ids {
    /// Those of the session that this event opened.
    pub(super) fn of(dir: &SessionDir, opening: &Digest) -> Self {
        let digest = sha256_parts(&[
            b"lodestar otel trace\0",
            dir.project().as_str().as_bytes(),
            b"\0",
            dir.session().as_str().as_bytes(),
            b"\0",
            opening.as_bytes(),
        ]);
        Self {
            trace: TraceId::from_bytes(beginning(&digest)),
        }
    }

    /// The span that begins with the event of this leaf.
    pub(super) fn span(&self, role: Role, leaf: &Digest) -> SpanId {
        let digest = sha256_parts(&[
            b"lodestar otel span\0",
            &self.trace.to_bytes(),
            role.as_str().as_bytes(),
            b"\0",
            leaf.as_bytes(),
        ]);
        SpanId::from_bytes(beginning(&digest))
    }

    /// A span of this trace. All are sampled: what is in the log happened.
    pub(super) fn context(&self, span: SpanId) -> SpanContext {
        let state = TraceState::default();
        SpanContext::new(self.trace, span, TraceFlags::SAMPLED, false, state)
    }
}

/// As much of a digest as an id takes. All zeroes would be no id.
fn beginning<const N: usize>(digest: &Digest) -> [u8; N] {
    let mut id = [0; N];
    id.copy_from_slice(&digest.as_bytes()[..N]);
    if id == [0; N] {
        id[N - 1] = 1;
    }
    id
}

#[cfg(test)]
mod tests {
    use lodestar_core::digest::sha256;

    use super::*;

    #[test]
    fn an_id_is_never_all_zeroes() {
        let zero = Digest::from_bytes([0; 32]);
        assert_eq!(beginning::<8>(&zero), [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(beginning::<4>(&sha256(b"abc")), [0xba, 0x78, 0x16, 0xbf]);
    }

    #[test]
    fn spans_that_begin_with_the_same_event_have_ids_of_their_own() {
        let trace = TraceId::from_bytes([7; 16]);
        let (ids, leaf) = (Ids { trace }, sha256(b"leaf"));
        let roles = [Role::Session, Role::Action, Role::Hold, Role::Execution];
        let spans: std::collections::HashSet<_> =
            roles.iter().map(|role| ids.span(*role, &leaf)).collect();
        assert_eq!(spans.len(), roles.len());
        assert_ne!(
            ids.span(Role::Action, &leaf),
            ids.span(Role::Action, &sha256(b""))
        );
    }
}
