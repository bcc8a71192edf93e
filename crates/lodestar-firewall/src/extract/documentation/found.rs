//! Items of one kind: the first ones listed, the rest counted.

use std::collections::BTreeMap;

use lodestar_core::digest::{Digest, sha256_parts};
use serde_json::{Value, json};

use crate::extract::ContentDraft;
use crate::extract::inert::{MAX_ATTRIBUTE, Statement, bounded, label};
use crate::extract::subject::Reading;

/// Items listed of one kind per result: enough for a long page, and no flood of claims for a hostile
/// one. Four kinds and their counts stay below what an extractor may give.
pub(super) const MAX_ITEMS: usize = 64;

/// Different requirements listed of one dependency.
const MAX_REQUIREMENTS: usize = 8;

/// What kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Heading,
    Command,
    Dependency,
    Signature,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Heading => "heading",
            Self::Command => "command",
            Self::Dependency => "dependency",
            Self::Signature => "signature",
        }
    }
}

/// Items of one kind.
///
/// An item's relation ends in a key made of the item itself: two items of a document, or of two
/// versions of it, then stand beside each other instead of contradicting each other.
#[derive(Debug)]
pub(super) struct Found {
    kind: Kind,
    listed: Vec<Item>,
    by_key: BTreeMap<String, usize>,
    more: u64,
}

#[derive(Debug)]
struct Item {
    key: String,
    text: String,
    object: Value,
}

impl Found {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            listed: Vec::new(),
            by_key: BTreeMap::new(),
            more: 0,
        }
    }

    pub(super) fn heading(&mut self, level: usize, text: &str) {
        let key = key(&[&level.to_string(), text]);
        self.add(
            key,
            text,
            || json!({"level": level, "text": attribute(text)}),
        );
    }

    pub(super) fn command(&mut self, text: &str) {
        self.add(key(&[text]), text, || json!({"text": attribute(text)}));
    }

    pub(super) fn signature(&mut self, language: &str, name: &str, text: &str) {
        self.add(
            key(&[language, text]),
            text,
            || json!({"language": language, "name": attribute(name), "text": attribute(text)}),
        );
    }

    /// A dependency is keyed by its name, so that two versions of a document can differ on what it
    /// requires; what one document says several times is gathered.
    pub(super) fn dependency(&mut self, ecosystem: &str, name: &str, requirement: &str) {
        let key = format!("{ecosystem}/{}", label(name));
        let item = self.add(
            key,
            name,
            || json!({"ecosystem": ecosystem, "name": attribute(name), "requirements": []}),
        );
        let requirements = item.and_then(|item| item.object["requirements"].as_array_mut());
        if let (Some(requirements), false) = (requirements, requirement.is_empty()) {
            let requirement = Value::String(attribute(requirement));
            if requirements.len() < MAX_REQUIREMENTS && !requirements.contains(&requirement) {
                requirements.push(requirement);
            }
        }
    }

    fn add(
        &mut self,
        key: String,
        text: &str,
        object: impl FnOnce() -> Value,
    ) -> Option<&mut Item> {
        let place = match self.by_key.get(&key) {
            Some(place) => *place,
            None if self.listed.len() < MAX_ITEMS => {
                let place = self.listed.len();
                self.by_key.insert(key.clone(), place);
                self.listed.push(Item {
                    key,
                    text: text.to_owned(),
                    object: object(),
                });
                place
            }
            None => {
                self.more += 1;
                return None;
            }
        };
        self.listed.get_mut(place)
    }

    pub(super) fn claims(self, reading: &Reading) -> Vec<ContentDraft> {
        let kind = self.kind.as_str();
        let claim = |relation: &str, object, statement| {
            ContentDraft::new(reading.subject.clone(), relation, object, statement).of_unknown_age()
        };
        let says = || {
            Statement::new()
                .subject(&reading.subject)
                .say(" documents the ")
        };
        let mut drafts: Vec<_> = self
            .listed
            .into_iter()
            .map(|item| {
                let statement = says().say(kind).say(" ").quote(&item.text);
                claim(
                    &format!("documents/{kind}/{}", item.key),
                    item.object,
                    statement,
                )
            })
            .collect();
        if self.more > 0 {
            let statement = Statement::new()
                .subject(&reading.subject)
                .say(" documents, as ")
                .say(kind)
                .say(", the items listed and ")
                .number(self.more)
                .say(" more");
            // Another view of the document leaves out another number.
            let relation = format!("documents/{kind}/{}", reading.relation("more", 0));
            drafts.push(claim(&relation, json!({"count": self.more}), statement));
        }
        drafts
    }
}

fn attribute(text: &str) -> String {
    bounded(text, MAX_ATTRIBUTE)
}

/// Of parts that hold no line break.
fn key(parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts
        .iter()
        .flat_map(|part| [part.as_bytes(), b"\n"])
        .collect();
    let digest: Digest = sha256_parts(&parts);
    format!("{digest:.32}")
}
