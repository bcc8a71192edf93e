//! An answer as the server brings it: whose request it says it answers, its own id, and bytes.

use lodestar_core::id::RequestId;
use lodestar_core::name::{Excerpt, is_valid_name};
use thiserror::Error;

/// The type of an answer's body. A page that some proxy puts in its place has another.
pub(super) const ANSWER_TYPE: &str = "application/vnd.lodestar.answer.v1";

/// The header with the id under which the answer is consumed.
pub(super) const ANSWER_HEADER: &str = "lodestar-answer";

/// The header with the request that it says it answers.
pub(super) const REQUEST_HEADER: &str = "lodestar-request";

/// What the server calls an answer: a name, so that it can stand in a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnswerId(String);

impl AnswerId {
    /// As it stands in a path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Something that the server brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// What the server calls it.
    pub id: AnswerId,
    /// The request that it says it answers.
    pub request: RequestId,
    /// As it came.
    pub bytes: Vec<u8>,
}

/// Why what the server sent is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotAnAnswer {
    /// Another type.
    #[error(
        "it sent `{found}` where `{ANSWER_TYPE}` was to come; make sure that `url` leads to an approvals server"
    )]
    Type {
        /// What it said, inert.
        found: Excerpt,
    },
    /// No name under which it could be consumed.
    #[error("it sent an answer without a usable `{ANSWER_HEADER}` header")]
    Id,
    /// No request.
    #[error("it sent an answer without a usable `{REQUEST_HEADER}` header")]
    Request,
}

impl Brought {
    /// Reads what the server sent; `header` gives the value of a header by its name.
    pub fn read<'a>(
        header: impl Fn(&str) -> Option<&'a str>,
        bytes: Vec<u8>,
    ) -> Result<Self, NotAnAnswer> {
        let kind = header("content-type").unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case(ANSWER_TYPE) {
            return Err(NotAnAnswer::Type {
                found: Excerpt::of(kind),
            });
        }
        let id = header(ANSWER_HEADER).filter(|id| is_valid_name(id.as_bytes()));
        let id = AnswerId(id.ok_or(NotAnAnswer::Id)?.to_owned());
        let request = header(REQUEST_HEADER).and_then(|request| request.parse().ok());
        Ok(Self {
            id,
            request: request.ok_or(NotAnAnswer::Request)?,
            bytes,
        })
    }
}
