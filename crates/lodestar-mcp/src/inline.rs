//! Revision 2026-07-28: no handshake, every request says itself who asks and what they can.

/// Its name.
pub(crate) const INLINE: &str = "2026-07-28";

/// Where a request names the revision it is written in.
pub(crate) const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
