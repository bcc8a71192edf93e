//! One event as one line of bytes: how it is written and how it is taken apart.
//!
//! ```text
//! {"head":{"actor":A,"parents":[…],"payload_hash":H,"prev":H,"project":P,"seq":N,"session":S,"time":T,"type":K},"payload":{…},"salt":X}
//! {"head":{…},"tombstone":{"redaction":N}}
//! ```
//!
//! The head has no string that could need an escape, so a line has exactly one spelling and the
//! scanner below is a cursor over literals, not a JSON parser. It borrows from the line and
//! hashes byte slices as they stand; nothing is ever serialised again to be checked.

mod cursor;

use lodestar_core::digest::{Digest, encode_hex, leaf_hash, sha256_parts};
use lodestar_core::time::Timestamp;

use self::cursor::Cursor;
use crate::blob::{self, BlobRef};

/// The number of random bytes that are hashed in front of a payload.
pub const SALT_BYTES: usize = 16;
/// The largest payload a line may carry; what is larger goes into blobs. A bound on a line is
/// what lets a reader of hostile files work in constant memory.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;
/// The largest line a reader accepts: a payload, and a head with the most parents.
pub const MAX_LINE_BYTES: usize = MAX_PAYLOAD_BYTES + (64 << 10);
/// The most causes one event may name.
pub const MAX_PARENTS: usize = 1024;

/// What the writer knows when it writes a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadFields<'a> {
    pub(crate) actor: &'a str,
    pub(crate) parents: &'a [u64],
    pub(crate) payload_hash: &'a Digest,
    pub(crate) prev: &'a Digest,
    pub(crate) project: &'a str,
    pub(crate) seq: u64,
    pub(crate) session: &'a str,
    pub(crate) time: Timestamp,
    pub(crate) kind: &'a str,
}

/// SHA-256 over the raw salt followed by the payload's bytes.
pub(crate) fn payload_hash(salt: &[u8; SALT_BYTES], payload: &[u8]) -> Digest {
    sha256_parts(&[salt, payload])
}

/// Appends one whole line, newline included, and returns its leaf hash.
pub(crate) fn write_line(
    out: &mut Vec<u8>,
    head: &HeadFields<'_>,
    payload: &[u8],
    salt: &[u8; SALT_BYTES],
) -> Digest {
    out.extend_from_slice(b"{\"head\":");
    let start = out.len();
    write_head(out, head);
    let leaf = leaf_hash(&out[start..]);
    out.extend_from_slice(b",\"payload\":");
    out.extend_from_slice(payload);
    out.extend_from_slice(b",\"salt\":\"");
    encode_hex(salt, out);
    out.extend_from_slice(b"\"}\n");
    leaf
}

/// Appends the line that stands in for a redacted one: the head as it was, and which event
/// answers for the gap.
pub(crate) fn write_tombstone(out: &mut Vec<u8>, head: &[u8], redaction: u64) {
    out.extend_from_slice(b"{\"head\":");
    out.extend_from_slice(head);
    out.extend_from_slice(b",\"tombstone\":{\"redaction\":");
    write_integer(out, redaction);
    out.extend_from_slice(b"}}\n");
}

fn write_head(out: &mut Vec<u8>, head: &HeadFields<'_>) {
    out.extend_from_slice(b"{\"actor\":\"");
    out.extend_from_slice(head.actor.as_bytes());
    out.extend_from_slice(b"\",\"parents\":[");
    for (i, parent) in head.parents.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_integer(out, *parent);
    }
    out.extend_from_slice(b"],\"payload_hash\":\"");
    encode_hex(head.payload_hash.as_bytes(), out);
    out.extend_from_slice(b"\",\"prev\":\"");
    encode_hex(head.prev.as_bytes(), out);
    out.extend_from_slice(b"\",\"project\":\"");
    out.extend_from_slice(head.project.as_bytes());
    out.extend_from_slice(b"\",\"seq\":");
    write_integer(out, head.seq);
    out.extend_from_slice(b",\"session\":\"");
    out.extend_from_slice(head.session.as_bytes());
    out.extend_from_slice(b"\",\"time\":\"");
    head.time.write_to(out);
    out.extend_from_slice(b"\",\"type\":\"");
    out.extend_from_slice(head.kind.as_bytes());
    out.extend_from_slice(b"\"}");
}

fn write_integer(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A line taken apart; everything borrows from the line.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The head object's bytes, which are what the leaf hash covers.
    pub head: &'a [u8],
    actor: &'a [u8],
    /// The `parents` list as it stands between its brackets.
    parents: &'a [u8],
    /// The commitment to salt and payload.
    pub payload_hash: Digest,
    /// The leaf hash of the event before, or the hash of the opening record.
    pub prev: Digest,
    project: &'a [u8],
    /// The position in the session.
    pub seq: u64,
    session: &'a [u8],
    /// When it was written.
    pub time: Timestamp,
    kind: &'a [u8],
    /// Payload or tombstone.
    pub body: Body<'a>,
}

/// What follows the head.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// The payload and the salt its hash starts with.
    Payload {
        /// Canonical JSON, as it stands in the file.
        bytes: &'a [u8],
        /// The salt, decoded.
        salt: [u8; SALT_BYTES],
    },
    /// The payload was redacted.
    Tombstone {
        /// The `log.redacted@1` event that answers for it.
        redaction: u64,
    },
}

impl<'a> Line<'a> {
    /// Takes apart one line, given without its newline.
    pub fn parse(line: &'a [u8]) -> Result<Self, LineError> {
        if line.len() > MAX_LINE_BYTES {
            return Err(LineError::TooLong { bytes: line.len() });
        }
        let mut c = Cursor { line, at: 0 };
        c.literal(b"{\"head\":", Part::Head)?;
        let head_start = c.at;
        c.literal(b"{\"actor\":\"", Part::Actor)?;
        let actor = c.name(Part::Actor)?;
        c.literal(b"\",\"parents\":[", Part::Parents)?;
        let parents = c.parents()?;
        c.literal(b"],\"payload_hash\":\"", Part::PayloadHash)?;
        let payload_hash = c.digest(Part::PayloadHash)?;
        c.literal(b"\",\"prev\":\"", Part::Prev)?;
        let prev = c.digest(Part::Prev)?;
        c.literal(b"\",\"project\":\"", Part::Project)?;
        let project = c.name(Part::Project)?;
        c.literal(b"\",\"seq\":", Part::Seq)?;
        let seq = c.integer(Part::Seq)?;
        c.literal(b",\"session\":\"", Part::Session)?;
        let session = c.session()?;
        c.literal(b"\",\"time\":\"", Part::Time)?;
        let time = c.time()?;
        c.literal(b"\",\"type\":\"", Part::Type)?;
        let kind = c.kind()?;
        c.literal(b"\"}", Part::Type)?;
        let head = &line[head_start..c.at];
        let body = c.body()?;
        Ok(Self {
            head,
            actor,
            parents,
            payload_hash,
            prev,
            project,
            seq,
            session,
            time,
            kind,
            body,
        })
    }

    /// The values that were lifted out of the payload; none where it was redacted.
    pub fn blobs(&self) -> Result<Vec<BlobRef>, String> {
        match self.payload() {
            Some(payload) if blob::mentions_blobs(payload) => {
                Ok(blob::list(payload)?.unwrap_or_default())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Who caused the event.
    pub fn actor(&self) -> &'a str {
        ascii(self.actor)
    }

    /// The project.
    pub fn project(&self) -> &'a str {
        ascii(self.project)
    }

    /// The session, or [`LEDGER_NAME`](crate::LEDGER_NAME).
    pub fn session(&self) -> &'a str {
        ascii(self.session)
    }

    /// The event type, `name@version`.
    pub fn kind(&self) -> &'a str {
        ascii(self.kind)
    }

    /// Whether the event is one of the log's own and of the session's beginning and end: those
    /// that the log itself gives a meaning to.
    pub(crate) fn is_own(&self) -> bool {
        let own: [&[u8]; 3] = [b"log.", b"ledger.", b"session."];
        own.iter().any(|prefix| self.kind.starts_with(prefix))
    }

    /// Whether the event belongs to this session of this project.
    pub(crate) fn belongs_to(&self, project: &str, session: &str) -> bool {
        self.project == project.as_bytes() && self.session == session.as_bytes()
    }

    /// The leaf hash: SHA-256 over 0x00 and the head's bytes.
    pub fn leaf_hash(&self) -> Digest {
        leaf_hash(self.head)
    }

    /// Whether the payload is the one the head commits to; a tombstone has nothing to compare.
    pub fn payload_matches(&self) -> bool {
        match self.body {
            Body::Payload { bytes, ref salt } => payload_hash(salt, bytes) == self.payload_hash,
            Body::Tombstone { .. } => true,
        }
    }

    /// The payload's bytes, unless it was redacted.
    pub fn payload(&self) -> Option<&'a [u8]> {
        match self.body {
            Body::Payload { bytes, .. } => Some(bytes),
            Body::Tombstone { .. } => None,
        }
    }

    /// The sequence numbers of the events that caused this one.
    pub fn parents(&self) -> impl Iterator<Item = u64> + 'a {
        self.parents
            .split(|b| *b == b',')
            .filter(|digits| !digits.is_empty())
            .map(|digits| digits.iter().fold(0, |n, d| n * 10 + u64::from(d - b'0')))
    }
}

/// The names of a head are checked when the line is taken apart; most readers never look at them.
fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the names of a head are ASCII")
}

/// A part of a line, for saying where a line is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are the field names")]
pub enum Part {
    Head,
    Actor,
    Parents,
    PayloadHash,
    Prev,
    Project,
    Seq,
    Session,
    Time,
    Type,
    Payload,
    Salt,
    Tombstone,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Head => "head",
            Part::Actor => "actor",
            Part::Parents => "parents",
            Part::PayloadHash => "payload_hash",
            Part::Prev => "prev",
            Part::Project => "project",
            Part::Seq => "seq",
            Part::Session => "session",
            Part::Time => "time",
            Part::Type => "type",
            Part::Payload => "payload",
            Part::Salt => "salt",
            Part::Tombstone => "tombstone",
        })
    }
}

/// Why bytes are not a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line does not have the one form a line can have.
    #[error("not a log line: `{part}` is broken at byte {at} of the line")]
    Malformed {
        /// Which part.
        part: Part,
        /// Offset from the line's first byte.
        at: usize,
    },
    /// The line is longer than any the writer makes.
    #[error("a line of {bytes} bytes is longer than the limit of {MAX_LINE_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The file ends before the line does.
    #[error("the file ends inside a line")]
    Unterminated,
}
