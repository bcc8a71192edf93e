//! Arrays and objects under construction. Values are written straight into the output; an object
//! whose keys did not arrive in order is put in order when it ends, by moving the bytes already
//! written.

use std::cmp::Ordering;

use serde::Serialize;

use super::string::write_escaped;
use super::{CanonicalError, MAX_DEPTH};

pub(super) type Result<T> = std::result::Result<T, CanonicalError>;

pub(super) struct Writer<'o> {
    pub(super) out: &'o mut Vec<u8>,
    depth: usize,
    /// The entries of all objects being written, innermost last: one allocation for all of them.
    entries: Vec<Entry>,
    scratch: Vec<u8>,
}

/// Room for the objects of an ordinary record, so that it does not grow step by step.
const ENTRIES: usize = 32;

/// Where an entry `"key":value` of an object stands in the output.
struct Entry {
    start: usize,
    /// The position of the quote after the key.
    key_end: usize,
    end: usize,
    rank: Rank,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            depth: 0,
            entries: Vec::with_capacity(ENTRIES),
            scratch: Vec::new(),
        }
    }

    pub(super) fn string(&mut self, text: &str) {
        self.out.push(b'"');
        write_escaped(self.out, text);
        self.out.push(b'"');
    }

    pub(super) fn open(&mut self, bracket: u8) -> Result<()> {
        if self.depth == MAX_DEPTH {
            return Err(CanonicalError::TooDeep);
        }
        self.depth += 1;
        self.out.push(bracket);
        Ok(())
    }

    pub(super) fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        self.out.push(bracket);
    }

    /// Enum variants with content are objects with the variant's name as their only key.
    pub(super) fn open_variant(&mut self, variant: &str) -> Result<()> {
        self.open(b'{')?;
        self.string(variant);
        self.out.push(b':');
        Ok(())
    }

    /// Moves the entries from `base` on, which stand from `start` to the end of the output.
    fn sort_entries(&mut self, base: usize, start: usize) -> Result<()> {
        let entries = &mut self.entries[base..];
        entries.sort_unstable_by(|a, b| key_order(self.out, a, b));
        let twice = entries
            .windows(2)
            .find(|pair| key_order(self.out, &pair[0], &pair[1]).is_eq());
        if let Some(pair) = twice {
            return Err(CanonicalError::DuplicateKey(key_text(self.out, &pair[0])));
        }
        self.scratch.clear();
        self.scratch.reserve(self.out.len() - start);
        for entry in entries {
            if !self.scratch.is_empty() {
                self.scratch.push(b',');
            }
            self.scratch
                .extend_from_slice(&self.out[entry.start..entry.end]);
        }
        self.out.truncate(start);
        self.out.extend_from_slice(&self.scratch);
        Ok(())
    }
}

#[inline]
fn key_order(out: &[u8], a: &Entry, b: &Entry) -> Ordering {
    if a.rank.plain && b.rank.plain {
        a.rank
            .prefix
            .cmp(&b.rank.prefix)
            .then_with(|| out[a.start + 1..a.key_end].cmp(&out[b.start + 1..b.key_end]))
    } else {
        let (a, b) = (key_text(out, a), key_text(out, b));
        a.encode_utf16().cmp(b.encode_utf16())
    }
}

fn key_text(out: &[u8], entry: &Entry) -> String {
    serde_json::from_slice(&out[entry.start..=entry.key_end])
        .expect("a key was written as a JSON string")
}

pub(super) struct Array<'w, 'o> {
    writer: &'w mut Writer<'o>,
    first: bool,
    in_variant: bool,
}

impl<'w, 'o> Array<'w, 'o> {
    pub(super) fn open(writer: &'w mut Writer<'o>) -> Result<Self> {
        writer.open(b'[')?;
        Ok(Self {
            writer,
            first: true,
            in_variant: false,
        })
    }

    /// Says that a variant's braces are still open around this.
    pub(super) fn in_variant(self) -> Self {
        Self {
            in_variant: true,
            ..self
        }
    }

    pub(super) fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if !self.first {
            self.writer.out.push(b',');
        }
        self.first = false;
        value.serialize(&mut *self.writer)
    }

    pub(super) fn close(self) {
        self.writer.close(b']');
        if self.in_variant {
            self.writer.close(b'}');
        }
    }
}

pub(super) struct Object<'w, 'o> {
    writer: &'w mut Writer<'o>,
    /// This object's first place in `Writer::entries`.
    base: usize,
    /// The position after the opening bracket.
    start: usize,
    in_order: bool,
    in_variant: bool,
}

impl<'w, 'o> Object<'w, 'o> {
    pub(super) fn open(writer: &'w mut Writer<'o>) -> Result<Self> {
        writer.open(b'{')?;
        if writer.entries.capacity() == 0 {
            // Enough for most payloads, and grown at most once or twice for the others.
            writer.entries.reserve(16);
        }
        Ok(Self {
            base: writer.entries.len(),
            start: writer.out.len(),
            in_order: true,
            in_variant: false,
            writer,
        })
    }

    /// Says that a variant's braces are still open around this.
    pub(super) fn in_variant(self) -> Self {
        Self {
            in_variant: true,
            ..self
        }
    }

    fn begin_entry(&mut self) -> usize {
        if self.writer.entries.len() > self.base {
            self.writer.out.push(b',');
        }
        self.writer.out.len()
    }

    /// Notes the key that was written from `start` on, as a string.
    fn end_key(&mut self, start: usize, rank: Rank) -> Result<()> {
        let key_end = self.writer.out.len() - 1;
        let entry = Entry {
            start,
            key_end,
            end: key_end,
            rank,
        };
        if let Some(previous) = self.writer.entries[self.base..].last() {
            match key_order(self.writer.out, previous, &entry) {
                Ordering::Less => {}
                Ordering::Greater => self.in_order = false,
                Ordering::Equal => {
                    let key = key_text(self.writer.out, &entry);
                    return Err(CanonicalError::DuplicateKey(key));
                }
            }
        }
        self.writer.entries.push(entry);
        self.writer.out.push(b':');
        Ok(())
    }

    /// A map's key can be of any type. It is written like a value; strings stay, numbers get quotes.
    pub(super) fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        let start = self.begin_entry();
        key.serialize(&mut *self.writer)?;
        match self.writer.out.get(start) {
            Some(b'"') => {}
            Some(b'-' | b'0'..=b'9') => {
                self.writer.out.insert(start, b'"');
                self.writer.out.push(b'"');
            }
            _ => return Err(CanonicalError::KeyNotString),
        }
        let rank = Rank::of(&self.writer.out[start + 1..self.writer.out.len() - 1]);
        self.end_key(start, rank)
    }

    pub(super) fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(&mut *self.writer)?;
        if let Some(entry) = self.writer.entries.last_mut() {
            entry.end = self.writer.out.len();
        }
        Ok(())
    }

    pub(super) fn field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<()> {
        let start = self.begin_entry();
        self.writer.string(key);
        self.end_key(start, Rank::of(key.as_bytes()))?;
        self.value(value)
    }

    pub(super) fn close(self) -> Result<()> {
        if !self.in_order {
            self.writer.sort_entries(self.base, self.start)?;
        }
        self.writer.entries.truncate(self.base);
        self.writer.close(b'}');
        if self.in_variant {
            self.writer.close(b'}');
        }
        Ok(())
    }
}

/// What can be said of a key's place before looking at the other key.
struct Rank {
    /// Whether the key sorts by its UTF-8 bytes as it does by its UTF-16 code units, and is written
    /// without escapes. The former holds below U+E000: the surrogates that stand for U+10000 and
    /// above come before U+E000.
    plain: bool,
    /// The first bytes as a number, which settles most comparisons of plain keys. Shorter keys are
    /// filled up with zeros, which no plain key contains: it would be an escape.
    prefix: u64,
}

impl Rank {
    fn of(key: &[u8]) -> Self {
        // Without an early way out the compiler looks at many bytes at once.
        let plain = key.iter().fold(true, |plain, &byte| {
            plain & (0x20..0xee).contains(&byte) & (byte != b'"') & (byte != b'\\')
        });
        let prefix = match key.first_chunk() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            // Not by way of a buffer: reading back what was just written piecemeal is slow.
            None => (0..8).fold(0, |prefix, at| {
                prefix << 8 | key.get(at).copied().map_or(0, u64::from)
            }),
        };
        Self { plain, prefix }
    }
}
