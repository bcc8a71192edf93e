//! A JSON text with the place of everything in it, so that a part can be changed and the rest stays.
//!
//! The strict reader has read the text before: what is walked here is JSON, without a doubt, and not too deep.

use std::ops::Range;

use serde_json::Value;

use super::{Fault, checked};

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Range<usize>,
    inside: Inside,
}

#[derive(Debug)]
enum Inside {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar,
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    /// From its key on.
    pub(super) start: usize,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn members(&self) -> Option<&[Member]> {
        match &self.inside {
            Inside::Object(members) => Some(members),
            Inside::Array(_) | Inside::Scalar => None,
        }
    }

    pub(super) fn items(&self) -> Option<&[Node]> {
        match &self.inside {
            Inside::Array(items) => Some(items),
            Inside::Object(_) | Inside::Scalar => None,
        }
    }

    pub(super) fn member(&self, key: &str) -> Option<&Node> {
        let member = self.members()?.iter().find(|member| member.key == key)?;
        Some(&member.value)
    }

    /// Where each thing in it begins and ends.
    pub(super) fn parts(&self) -> Vec<Range<usize>> {
        match &self.inside {
            Inside::Object(members) => members
                .iter()
                .map(|member| member.start..member.value.place.end)
                .collect(),
            Inside::Array(items) => items.iter().map(|item| item.place.clone()).collect(),
            Inside::Scalar => Vec::new(),
        }
    }
}

pub(super) struct Tree<'t> {
    text: &'t str,
    root: Node,
}

impl<'t> Tree<'t> {
    pub(super) fn of(text: &'t str) -> Result<Self, Fault> {
        checked(text)?;
        let mut walk = Walk {
            bytes: text.as_bytes(),
            at: 0,
        };
        let root = walk.node();
        Ok(Self { text, root })
    }

    pub(super) fn root(&self) -> &Node {
        &self.root
    }

    pub(super) fn value(&self, node: &Node) -> Value {
        serde_json::from_str(&self.text[node.place.clone()])
            .expect("INVARIANT: a part of a text that was read as JSON")
    }

    pub(super) fn fault(&self, node: &Node, what: &str, wanted: &'static str) -> Fault {
        Fault::Shape {
            offset: node.place.start,
            what: what.to_owned(),
            wanted,
        }
    }
}

/// Walks over JSON that is known to be JSON.
struct Walk<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Walk<'_> {
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or_default()
    }

    fn space(&mut self) {
        while self.peek().is_ascii_whitespace() {
            self.at += 1;
        }
    }

    fn node(&mut self) -> Node {
        self.space();
        let start = self.at;
        let inside = match self.peek() {
            b'{' => Inside::Object(self.members()),
            b'[' => Inside::Array(self.items()),
            b'"' => {
                self.string();
                Inside::Scalar
            }
            _ => {
                while !matches!(self.peek(), 0 | b',' | b'}' | b']')
                    && !self.peek().is_ascii_whitespace()
                {
                    self.at += 1;
                }
                Inside::Scalar
            }
        };
        Node {
            place: start..self.at,
            inside,
        }
    }

    /// Over what stands between brackets: one after the other, as long as there is one.
    fn each(&mut self, end: u8, mut take: impl FnMut(&mut Self)) {
        self.at += 1;
        self.space();
        while self.peek() != end && self.at < self.bytes.len() {
            take(self);
            self.space();
            if self.peek() == b',' {
                self.at += 1;
                self.space();
            }
        }
        self.at += 1;
    }

    fn members(&mut self) -> Vec<Member> {
        let mut members = Vec::new();
        self.each(b'}', |walk| {
            let start = walk.at;
            let key = walk.string();
            walk.space();
            // The colon.
            walk.at += 1;
            let value = walk.node();
            members.push(Member { key, start, value });
        });
        members
    }

    fn items(&mut self) -> Vec<Node> {
        let mut items = Vec::new();
        self.each(b']', |walk| items.push(walk.node()));
        items
    }

    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() && self.peek() != b'"' {
            self.at += if self.peek() == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let text = self.bytes.get(start..self.at).unwrap_or_default();
        serde_json::from_slice(text).unwrap_or_default()
    }
}
