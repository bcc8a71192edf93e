//! The walk through an export: from the root through what it holds to the records, in the order of the
//! file, with a pointer and a line for everything that is skipped.
//!
//! A format is a [`Shape`]: which keys lead where, as functions from a key to what it [`Holds`]. They
//! never lead back to themselves, so the walk is as deep as the shape and not as deep as the file.

use std::collections::HashMap;

use lodestar_core::name::Excerpt;
use serde_json::Value;
use serde_json::value::RawValue;

use super::draft::{Draft, Fields};
use super::{Aspect, Export, ExportError, ImportedMemory, MAX_RECORDS, SkipReason, Skipped, json};

/// Reads a record.
pub(super) type Read = fn(Item) -> Result<Draft, SkipReason>;
/// What an object holds under a key.
pub(super) type Keys = fn(&str) -> Holds;

/// A record before anybody looked for a memory in it.
pub(super) enum Item {
    /// Nothing but a text.
    Text(String),
    /// An object.
    Fields(Fields),
}

/// What stands under a key.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    /// Nothing that is a memory.
    Nothing,
    /// A record.
    Record(Read),
    /// A list of records.
    Records(Read),
    /// An object that holds more.
    Object(Keys),
    /// A list of such objects.
    Objects(Keys),
}

/// Where a format keeps its records.
pub(super) struct Shape {
    /// What the root holds if it is an object.
    pub(super) root: Keys,
    /// Whether the keys of an element are those of an object that holds records; asked where the root
    /// is a list, whose elements may as well be records.
    pub(super) is_holder: fn(&[String]) -> bool,
    /// What such an object holds.
    pub(super) holder: Keys,
    /// Reads an element of such a list that is a record.
    pub(super) element: Read,
    /// Whether the root may be a record itself, and the file one record per line.
    pub(super) lines: bool,
}

/// Reads a text by a shape; `None` if no place where records can stand is in it.
pub(super) fn read(shape: &Shape, text: &str) -> Result<Option<Export>, ExportError> {
    let mut walk = Walk {
        text,
        counted: 0,
        line: 1,
        pointer: String::new(),
        export: Export::default(),
        seen: HashMap::new(),
        found: false,
    };
    match serde_json::from_str::<&RawValue>(text) {
        Ok(root) => walk.root(shape, root)?,
        Err(_) if shape.lines && is_lines(text) => walk.lines(shape, text)?,
        Err(error) => {
            return Err(ExportError::NotJson {
                line: error.line(),
                column: error.column(),
            });
        }
    }
    Ok(walk.found.then_some(walk.export))
}

/// Whether a text that is not JSON is lines of it: the first line is an object and not the last.
fn is_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().map(serde_json::from_str::<&RawValue>);
    matches!(first, Some(Ok(object)) if kind(object) == b'{') && lines.next().is_some()
}

/// The first byte of a raw value, which tells what it is.
fn kind(raw: &RawValue) -> u8 {
    raw.get().as_bytes().first().copied().unwrap_or_default()
}

/// Whether the root has something where a record has its text; only then is it one.
fn is_record(shape: &Shape, root: &RawValue) -> bool {
    let read = json::record(root).map(|value| (shape.element)(item(value)?));
    read.is_ok_and(|read| !matches!(read, Err(SkipReason::NoText { .. })))
}

struct Walk<'t> {
    text: &'t str,
    /// Up to where `line` is counted. INVARIANT: the walk only goes forward.
    counted: usize,
    line: u64,
    pointer: String,
    export: Export,
    /// Where each record stands that a later one must not repeat.
    seen: HashMap<(Aspect, String), String>,
    /// Whether anything stood where records can stand.
    found: bool,
}

type Walked = Result<(), ExportError>;

impl<'t> Walk<'t> {
    fn root(&mut self, shape: &Shape, root: &'t RawValue) -> Walked {
        match kind(root) {
            b'{' => {
                self.object(shape.root, root)?;
                let nothing_there = !self.found && self.export.skipped.is_empty();
                if nothing_there && shape.lines && is_record(shape, root) {
                    self.found = true;
                    self.record(shape.element, root)?;
                }
                Ok(())
            }
            b'[' => {
                self.found = true;
                self.elements(root, |walk, element| {
                    if kind(element) == b'{' && (shape.is_holder)(&keys(element)) {
                        walk.object(shape.holder, element)
                    } else {
                        walk.record(shape.element, element)
                    }
                })
            }
            _ => Ok(()),
        }
    }

    fn lines(&mut self, shape: &Shape, text: &'t str) -> Walked {
        self.found = true;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        for (index, line) in lines.enumerate() {
            self.within(&index.to_string(), |walk| {
                match serde_json::from_str::<&RawValue>(line) {
                    Ok(record) => walk.record(shape.element, record),
                    Err(error) => {
                        let column = error.column();
                        walk.skip(line, SkipReason::NotJson { column })
                    }
                }
            })?;
        }
        Ok(())
    }

    fn within(&mut self, step: &str, go: impl FnOnce(&mut Self) -> Walked) -> Walked {
        let before = self.pointer.len();
        // No step needs an escape: all are numbers, or keys that a shape names.
        self.pointer.extend(["/", step]);
        let gone = go(self);
        self.pointer.truncate(before);
        gone
    }

    fn elements(
        &mut self,
        list: &'t RawValue,
        mut each: impl FnMut(&mut Self, &'t RawValue) -> Walked,
    ) -> Walked {
        let mut index = 0_usize;
        json::each_element(list, |element| {
            let step = index.to_string();
            index += 1;
            self.within(&step, |walk| each(walk, element))
        })
    }

    fn object(&mut self, keys: Keys, object: &'t RawValue) -> Walked {
        if kind(object) != b'{' {
            return self.skip(object.get(), SkipReason::NotARecord);
        }
        let mut known: Vec<String> = Vec::new();
        json::each_entry(object, |key, value| {
            let holds = keys(key);
            if matches!(holds, Holds::Nothing) || value.get() == "null" {
                return Ok(());
            }
            self.within(key, |walk| {
                // The first counts, and the second is not lost without a word.
                if known.iter().any(|known| known == key) {
                    let key = Excerpt::of(key);
                    return walk.skip(value.get(), SkipReason::DuplicateKey { key });
                }
                known.push(key.to_owned());
                walk.held(holds, value)
            })
        })
    }

    fn held(&mut self, holds: Holds, value: &'t RawValue) -> Walked {
        match (holds, kind(value)) {
            (Holds::Nothing, _) => Ok(()),
            (Holds::Record(read), _) => {
                self.found = true;
                self.record(read, value)
            }
            (Holds::Object(keys), _) => {
                self.found |= kind(value) == b'{';
                self.object(keys, value)
            }
            (Holds::Records(read), b'[') => {
                self.found = true;
                self.elements(value, |walk, element| walk.record(read, element))
            }
            (Holds::Objects(keys), b'[') => {
                self.found = true;
                self.elements(value, |walk, element| walk.object(keys, element))
            }
            (Holds::Records(_) | Holds::Objects(_), _) => {
                self.skip(value.get(), SkipReason::NotAList)
            }
        }
    }

    fn record(&mut self, read: Read, raw: &'t RawValue) -> Walked {
        let draft = json::record(raw)
            .and_then(item)
            .and_then(read)
            .and_then(Draft::bounded);
        match draft {
            Ok(draft) => self.keep(draft, raw),
            Err(reason) => self.skip(raw.get(), reason),
        }
    }

    fn keep(&mut self, draft: Draft, raw: &'t RawValue) -> Walked {
        let pointer = self.pointer.clone();
        let reference = draft.reference(&pointer);
        let key = (draft.aspect, reference.clone());
        if let Some(first) = self.seen.get(&key) {
            let first = first.clone();
            return self.skip(raw.get(), SkipReason::DuplicateId { first });
        }
        self.count()?;
        self.seen.insert(key, pointer.clone());
        self.export.memories.push(ImportedMemory {
            reference,
            aspect: draft.aspect,
            text: draft.text,
            created_at: draft.created_at,
            attributes: draft.attributes,
            pointer,
        });
        Ok(())
    }

    fn skip(&mut self, piece: &'t str, reason: SkipReason) -> Walked {
        self.count()?;
        let line = self.line_of(piece);
        self.export.skipped.push(Skipped {
            pointer: self.pointer.clone(),
            line,
            reason,
        });
        Ok(())
    }

    fn count(&self) -> Walked {
        if self.export.memories.len() + self.export.skipped.len() == MAX_RECORDS {
            return Err(ExportError::TooManyRecords);
        }
        Ok(())
    }

    /// The line that a piece of the text starts in. Counting goes on from the last one, so that many
    /// skipped records cost one pass in all.
    fn line_of(&mut self, piece: &'t str) -> u64 {
        let offset = piece.as_ptr() as usize - self.text.as_ptr() as usize;
        let between = &self.text.as_bytes()[self.counted..offset];
        self.line += between.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counted = offset;
        self.line
    }
}

/// The keys of an object. Only so many: no agent and no session has more, and a made-up object can have
/// millions.
fn keys(object: &RawValue) -> Vec<String> {
    const MOST: usize = 1024;
    let mut keys = Vec::new();
    let _ = json::each_entry(object, |key, _| {
        keys.push(key.to_owned());
        (keys.len() < MOST).then_some(()).ok_or(())
    });
    keys
}

fn item(value: Value) -> Result<Item, SkipReason> {
    match value {
        Value::String(text) => Ok(Item::Text(text)),
        Value::Object(fields) => Ok(Item::Fields(Fields(fields))),
        _ => Err(SkipReason::NotARecord),
    }
}
