//! Extraction: what a tool's result says, as drafts of claims.
//!
//! A pure function of a call and what it returned: no I/O, no clock, no randomness, and the same
//! drafts in the same order every time. Of every call come
//!
//! - one **envelope** claim, `tool_result`: that the call happened and which shape came back, in a
//!   fixed template over reviewed names and digests, about `call:<invocation>`;
//! - one **content** claim per block, `external_document`: which bytes were read, about the thing that
//!   the arguments name;
//! - what the [`Extractor`]s of an [`Extractors`] registry read in the text, all `external_document`.
//!
//! Content is hostile until proven otherwise, and here it is never proven: time is linear in its
//! size, claims are bounded in size and per extractor in number, subjects come from arguments alone,
//! and the types have no way to call content anything direct (see [`ContentDraft`]).

mod block;
mod content;
mod documentation;
mod draft;
mod file_read;
mod git;
pub(crate) mod inert;
mod language;
mod lines;
mod subject;
mod sum;
mod tool_words;
mod uri;

#[cfg(test)]
mod tests;

pub use documentation::Documentation;
pub use draft::{ClaimDraft, ContentDraft, MAX_OBJECT};
pub use file_read::FileRead;
pub use git::GitStatus;
pub use inert::{MAX_ATTRIBUTE, MAX_STATEMENT, MAX_SUBJECT, Statement};
pub use subject::Subject;

use std::fmt;

use lodestar_core::chain::{Observation, Rigour};
use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::id::InvocationId;
use lodestar_core::name::{CalibrationClass, ServerIdentity, ToolName};
use serde_json::{Value, json};
use thiserror::Error;

/// Most drafts that one extractor may give for one result; the rest is counted in a claim of its own.
/// The built-in ones stay far below it.
pub const MAX_DRAFTS: usize = 512;

/// A call of a tool, as Lodestar made it.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// Which call.
    pub invocation: InvocationId,
    /// Of whose tool.
    pub server: &'a ServerIdentity,
    /// Of which tool.
    pub tool: &'a ToolName,
    /// The arguments, in canonical form.
    pub arguments: &'a Value,
    /// The tool's definition, by digest.
    pub definition: Digest,
    /// Whether a person reviewed that definition, and with it the names of tool and server. Names
    /// that nobody reviewed enter an envelope only as digests.
    pub reviewed: bool,
    /// Whether the result says of itself that it is an error (`isError`).
    pub is_error: bool,
}

/// Reads claims out of the content of results.
///
/// What it gives is [`ContentDraft`]s, which are `external_document` whatever they say.
pub trait Extractor: Send + Sync {
    /// Its name: also the calibration class of its claims, as `extract/<name>`.
    fn name(&self) -> &'static str;

    /// Whether the result is one that it reads. Arguments and names may decide, and content may.
    fn applies(&self, call: &ToolCall<'_>, observation: &Observation) -> bool;

    /// What it reads in it: the same for the same result, in time linear in its size.
    fn extract(&self, call: &ToolCall<'_>, observation: &Observation) -> Vec<ContentDraft>;
}

/// The observation is not of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the observation is of call `{observed}`, not of `{called}`")]
pub struct OtherCall {
    /// The call that claims were asked of.
    pub called: InvocationId,
    /// The call that the observation belongs to.
    pub observed: InvocationId,
}

/// The extractors in use. Envelope and content claims come first, whatever is registered.
pub struct Extractors {
    registered: Vec<Box<dyn Extractor>>,
    rigour: Rigour,
}

impl Default for Extractors {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Extractors {
    /// None but envelope and content.
    pub fn none() -> Self {
        Self {
            registered: Vec::new(),
            rigour: Rigour::FULL,
        }
    }

    /// Git status, file read and documentation.
    pub fn built_in() -> Self {
        Self::none()
            .with(GitStatus)
            .with(FileRead)
            .with(Documentation)
    }

    /// Adds one, which comes after those that are there.
    pub fn with(mut self, extractor: impl Extractor + 'static) -> Self {
        self.registered.push(Box::new(extractor));
        self
    }

    /// For a harness that takes defences out: without [`Defence::ContentSplit`], what a result says is
    /// taken for what its tool vouches for. What follows from a result is weighed as laxly as by a
    /// [`Keyring`](crate::row::keys::Keyring) without these.
    #[must_use]
    pub fn without(self, defences: &[Defence]) -> Self {
        Self {
            rigour: Rigour::without(defences),
            ..self
        }
    }

    pub(crate) fn rigour(&self) -> Rigour {
        self.rigour
    }

    /// All claims of a result: envelope, contents in the order of the blocks, then extractor by
    /// extractor.
    pub fn extract(
        &self,
        call: &ToolCall<'_>,
        observation: &Observation,
    ) -> Result<Vec<ClaimDraft>, OtherCall> {
        if observation.invocation_id != call.invocation {
            return Err(OtherCall {
                called: call.invocation,
                observed: observation.invocation_id,
            });
        }
        let mut drafts = vec![draft::envelope(call, observation, &class("envelope"))];
        let content_class = class("content");
        let contents = content::content(call, observation).into_iter();
        drafts.extend(contents.map(|one| ClaimDraft::of_content(one, &content_class, observation)));
        for extractor in &self.registered {
            if extractor.applies(call, observation) {
                let class = class(extractor.name());
                let found =
                    bound_number(extractor.name(), call, extractor.extract(call, observation));
                drafts.extend(
                    found
                        .into_iter()
                        .map(|one| ClaimDraft::of_content(one, &class, observation)),
                );
            }
        }
        if !self.rigour.keeps(Defence::ContentSplit) {
            drafts.iter_mut().for_each(ClaimDraft::vouch_for);
        }
        Ok(drafts)
    }
}

impl fmt::Debug for Extractors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.registered.iter().map(|extractor| extractor.name()))
            .finish()
    }
}

fn class(name: &str) -> CalibrationClass {
    CalibrationClass::new(format!("extract/{}", inert::label(name)))
        .expect("INVARIANT: a prefix and a label, neither empty nor overlong")
}

fn bound_number(
    name: &'static str,
    call: &ToolCall<'_>,
    mut found: Vec<ContentDraft>,
) -> Vec<ContentDraft> {
    let more = found.len().saturating_sub(MAX_DRAFTS);
    if more > 0 {
        found.truncate(MAX_DRAFTS);
        let subject = Subject::thing_read(call);
        let statement = Statement::new()
            .subject(&subject)
            .say(": and ")
            .number(more as u64)
            .say(" more claims of the extractor ")
            .quote(name);
        let relation = format!("extract/{}/more", inert::label(name));
        let object = json!({"count": more});
        found.push(ContentDraft::new(subject, &relation, object, statement));
    }
    found
}
