//! The cursor that takes a line apart: literals, names, numbers and hashes in their one order.

use lodestar_core::digest::{Digest, decode_hex};
use lodestar_core::name::is_valid_name;
use lodestar_core::time::Timestamp;

use super::{Body, LineError, MAX_PARENTS, MAX_PAYLOAD_BYTES, Part, SALT_BYTES};

/// The largest integer canonical JSON can carry, and so the largest sequence number.
const MAX_SEQ: u64 = 1 << 53;

/// No string of a head is longer, quote included: names have 128 characters at the most.
const LONGEST_STRING: usize = 129;

/// Where a line is being taken apart.
pub(super) struct Cursor<'a> {
    pub(super) line: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    fn broken<T>(&self, part: Part) -> Result<T, LineError> {
        Err(LineError::Malformed { part, at: self.at })
    }

    #[inline]
    pub(super) fn literal(&mut self, expected: &[u8], part: Part) -> Result<(), LineError> {
        if self.line[self.at..].starts_with(expected) {
            self.at += expected.len();
            Ok(())
        } else {
            self.broken(part)
        }
    }

    /// Everything up to the next quote.
    #[inline]
    fn quoted(&mut self, part: Part) -> Result<&'a [u8], LineError> {
        let rest = &self.line[self.at..];
        match memchr::memchr(b'"', &rest[..rest.len().min(LONGEST_STRING)]) {
            Some(len) => {
                self.at += len;
                Ok(&rest[..len])
            }
            None => self.broken(part),
        }
    }

    #[inline]
    pub(super) fn name(&mut self, part: Part) -> Result<&'a [u8], LineError> {
        let start = self.at;
        let bytes = self.quoted(part)?;
        if is_valid_name(bytes) {
            return Ok(bytes);
        }
        self.at = start;
        self.broken(part)
    }

    /// A session's name, or the one name no session can have: the ledger's.
    #[inline]
    pub(super) fn session(&mut self) -> Result<&'a [u8], LineError> {
        let ledger = crate::ledger::LEDGER_NAME.as_bytes();
        let rest = &self.line[self.at..];
        if rest.starts_with(ledger) {
            self.at += ledger.len();
            return Ok(&rest[..ledger.len()]);
        }
        self.name(Part::Session)
    }

    #[inline]
    pub(super) fn digest(&mut self, part: Part) -> Result<Digest, LineError> {
        match self
            .line
            .get(self.at..self.at + 64)
            .and_then(decode_hex::<32>)
        {
            Some(bytes) => {
                self.at += 64;
                Ok(Digest::from_bytes(bytes))
            }
            None => self.broken(part),
        }
    }

    #[inline]
    pub(super) fn integer(&mut self, part: Part) -> Result<u64, LineError> {
        let rest = &self.line[self.at..];
        let mut value = 0u64;
        let mut len = 0;
        while let Some(digit) = rest.get(len).filter(|b| b.is_ascii_digit()) {
            value = value * 10 + u64::from(digit - b'0');
            len += 1;
            if value > MAX_SEQ {
                return self.broken(part);
            }
        }
        if len == 0 || (len > 1 && rest[0] == b'0') {
            return self.broken(part);
        }
        self.at += len;
        Ok(value)
    }

    /// The list between the brackets: integers in strictly increasing order.
    #[inline]
    pub(super) fn parents(&mut self) -> Result<&'a [u8], LineError> {
        let start = self.at;
        if self.line.get(self.at) == Some(&b']') {
            return Ok(&[]);
        }
        let mut last = None;
        for _ in 0..MAX_PARENTS {
            let parent = self.integer(Part::Parents)?;
            if last.is_some_and(|last| last >= parent) {
                return self.broken(Part::Parents);
            }
            last = Some(parent);
            match self.line.get(self.at) {
                Some(b',') => self.at += 1,
                Some(b']') => return Ok(&self.line[start..self.at]),
                _ => return self.broken(Part::Parents),
            }
        }
        self.broken(Part::Parents)
    }

    #[inline]
    pub(super) fn time(&mut self) -> Result<Timestamp, LineError> {
        let start = self.at;
        let bytes = self.quoted(Part::Time)?;
        if let Ok(time) = Timestamp::parse(bytes) {
            return Ok(time);
        }
        self.at = start;
        self.broken(Part::Time)
    }

    /// `name@version`. The catalogue may be newer than this reader, so only the form is checked.
    #[inline]
    pub(super) fn kind(&mut self) -> Result<&'a [u8], LineError> {
        let start = self.at;
        let bytes = self.quoted(Part::Type)?;
        if is_kind(bytes) {
            return Ok(bytes);
        }
        self.at = start;
        self.broken(Part::Type)
    }

    #[inline]
    pub(super) fn body(&mut self) -> Result<Body<'a>, LineError> {
        if self.line[self.at..].starts_with(b",\"tombstone\":") {
            self.literal(b",\"tombstone\":{\"redaction\":", Part::Tombstone)?;
            let redaction = self.integer(Part::Tombstone)?;
            self.literal(b"}}", Part::Tombstone)?;
            return match self.at == self.line.len() {
                true => Ok(Body::Tombstone { redaction }),
                false => self.broken(Part::Tombstone),
            };
        }
        self.literal(b",\"payload\":", Part::Payload)?;
        // The salt has a fixed length, so it is found from the end: no payload can imitate it.
        const TAIL: usize = b",\"salt\":\"".len() + 2 * SALT_BYTES + b"\"}".len();
        let rest = &self.line[self.at..];
        let Some(payload_len) = rest.len().checked_sub(TAIL) else {
            return self.broken(Part::Salt);
        };
        let payload = &rest[..payload_len];
        if payload_len > MAX_PAYLOAD_BYTES
            || payload.first() != Some(&b'{')
            || payload.last() != Some(&b'}')
            || payload_len < 2
        {
            return self.broken(Part::Payload);
        }
        self.at += payload_len;
        self.literal(b",\"salt\":\"", Part::Salt)?;
        let Some(salt) = decode_hex::<SALT_BYTES>(&self.line[self.at..self.at + 2 * SALT_BYTES])
        else {
            return self.broken(Part::Salt);
        };
        self.at += 2 * SALT_BYTES;
        self.literal(b"\"}", Part::Salt)?;
        Ok(Body::Payload {
            bytes: payload,
            salt,
        })
    }
}

fn is_kind(bytes: &[u8]) -> bool {
    let Some(at) = bytes.iter().position(|b| *b == b'@') else {
        return false;
    };
    let (name, version) = (&bytes[..at], &bytes[at + 1..]);
    !name.is_empty()
        && name[0].is_ascii_lowercase()
        && name
            .iter()
            .all(|b| b.is_ascii_lowercase() || matches!(b, b'.' | b'_'))
        && (1..=4).contains(&version.len())
        && version[0] != b'0'
        && version.iter().all(u8::is_ascii_digit)
}
