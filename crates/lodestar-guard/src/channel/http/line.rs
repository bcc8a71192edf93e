//! The protocol: what is asked of the server for each thing, and what its statuses mean.

use std::time::Duration;

use lodestar_core::name::{Excerpt, ProjectId, SessionId};
use lodestar_kernel::native::http::Method;
use lodestar_kernel::native::http::client::{Asked, Client, Said};

use super::answer::{ANSWER_TYPE, Brought};
use super::outbox::Letter;
use super::outward::Outward;
use crate::channel::{Closing, MAX_DELIVERED};

const VERSION: &str = "v1";
const JSON: &str = "application/json";

/// Of an answer to something that was sent, only the status counts.
const NOTHING: usize = 0;

/// Why something did not get through.
#[derive(Debug)]
pub(super) enum NotDone {
    /// It may get through later.
    Yet(String),
    /// The server will not have it, now or later.
    Ever(String),
}

/// The line to the server of one session.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) client: Client,
    pub(super) project: ProjectId,
    /// How long one exchange may take.
    pub(super) timeout: Duration,
    /// How long the server is asked to wait for an answer.
    pub(super) wait: Duration,
}

impl Line {
    /// Sends one letter.
    pub(super) async fn send(&self, session: &SessionId, letter: &Letter) -> Result<(), NotDone> {
        let json = |text: &Outward| Some((JSON, text.bytes()));
        let one = |what: &str, id: String| vec![what.to_owned(), id];
        let (method, tail, closing, content) = match letter {
            Letter::Announce(id, text) => {
                let tail = one("requests", id.to_string());
                (Method::Put, tail, None, json(text))
            }
            Letter::Withdraw(id, closing) | Letter::ClearAway(_, id, closing) => {
                let tail = one("requests", id.to_string());
                (Method::Delete, tail, word(*closing), None)
            }
            Letter::Notice(text) => (Method::Post, vec!["notices".into()], None, json(text)),
            Letter::Consume(id) => {
                let tail = one("answers", id.as_str().to_owned());
                (Method::Delete, tail, None, None)
            }
        };
        let place = [VERSION, self.project.as_str(), session.as_str()];
        let tail = tail.iter().map(String::as_str);
        let path: Vec<&str> = place.into_iter().chain(tail).collect();
        let query: Vec<(&str, &str)> = closing
            .iter()
            .map(|word| ("closing", word.as_str()))
            .collect();
        let asked = Asked {
            method,
            path: &path,
            query: &query,
            accept: None,
            content,
            most: NOTHING,
            within: self.timeout,
        };
        let said = self.client.ask(asked).await;
        let said = said.map_err(|problem| NotDone::Yet(problem.to_string()))?;
        match (said.status(), method) {
            (200..=299, _) => Ok(()),
            // It is gone, which is what was asked for.
            (404 | 410, Method::Delete) => Ok(()),
            (400 | 404 | 405 | 409..=415 | 422, _) => Err(NotDone::Ever(unexpected(&said))),
            _ => Err(NotDone::Yet(unexpected(&said))),
        }
    }

    /// Waits for an answer at the server: none, if it has waited as long as it was asked to.
    pub(super) async fn fetch(&self, session: &SessionId) -> Result<Option<Brought>, String> {
        let wait = self.wait.as_millis().to_string();
        let asked = Asked {
            method: Method::Get,
            path: &[VERSION, self.project.as_str(), session.as_str(), "answers"],
            query: &[("wait_ms", wait.as_str())],
            accept: Some(ANSWER_TYPE),
            content: None,
            most: MAX_DELIVERED + 1,
            within: self.wait + self.timeout,
        };
        let said = self.client.ask(asked).await;
        let said = said.map_err(|problem| problem.to_string())?;
        match said.status() {
            204 => Ok(None),
            200 => {
                let (head, bytes) = said.into_parts();
                let brought = Brought::read(|name| head.header(name), bytes);
                brought.map(Some).map_err(|problem| problem.to_string())
            }
            _ => Err(unexpected(&said)),
        }
    }
}

/// What a status means that is none of those hoped for. The server's own words are not repeated.
fn unexpected(said: &Said) -> String {
    let status = said.status();
    match status {
        300..=399 => {
            let to = said.header("location").map(Excerpt::of);
            let to = to.map_or_else(String::new, |to| format!(" to `{to}`"));
            format!(
                "the server redirects{to}, and redirects are not followed; write where it really is as `url`"
            )
        }
        401 | 403 => format!(
            "the server refuses the token (status {status}); set the variable that `token_env` names to one that it takes"
        ),
        404 | 405 | 410 => format!(
            "the server has no such place (status {status}); make sure that `url` leads to an approvals server"
        ),
        413 => "the server finds it too large (status 413); raise its limit, or answer through the drop directory".to_owned(),
        _ => format!("the server answered with status {status}; look at its own log"),
    }
}

/// As it stands in the log.
fn word(closing: Closing) -> Option<String> {
    let word = serde_json::to_value(closing).ok()?;
    word.as_str().map(str::to_owned)
}
