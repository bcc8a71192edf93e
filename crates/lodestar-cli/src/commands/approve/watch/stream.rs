//! What arrives, as JSON lines.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_core::time::Timestamp;
use lodestar_guard::channel::Notice;
use serde_json::{Value, json};

use super::super::{answer, list};
use super::looking::{self, Look};
use crate::cli::App;
use crate::failure::{Exit, Failure};

type Key = (RequestId, SessionId);

/// What was told of a request that lies there.
#[derive(Default, PartialEq)]
struct Told {
    /// As it was shown last.
    shown: Option<Value>,
    /// Why it is not shown at the moment.
    problem: Option<String>,
}

/// What was told, to tell what is new.
struct Stream {
    requests: BTreeMap<Key, Told>,
    notices: BTreeMap<SessionId, Vec<Notice>>,
    problem: Option<String>,
    started: Timestamp,
}

pub(super) async fn run(root: &Path, app: &mut App) -> Result<Exit, Failure> {
    let mut looks = looking::start(root.to_owned());
    let mut stream = Stream {
        requests: BTreeMap::new(),
        notices: BTreeMap::new(),
        problem: None,
        started: answer::now(),
    };
    while let Some(look) = looks.recv().await {
        for happened in stream.requests(&look) {
            app.out.json(&happened)?;
        }
        for notice in stream.notices(look.notices) {
            app.out
                .json(&json!({"happened": "ran", "notice": notice}))?;
        }
        if look.problem != stream.problem
            && let Some(problem) = &look.problem
        {
            app.out
                .json(&json!({"happened": "problem", "problem": problem}))?;
        }
        stream.problem = look.problem;
        app.out.flush()?;
        if app.out.is_closed() {
            break;
        }
    }
    Ok(Exit::Done)
}

impl Stream {
    /// What happened to requests. One that is not shown any more is closed only when it is gone.
    fn requests(&mut self, look: &Look) -> Vec<Value> {
        let mut before = std::mem::take(&mut self.requests);
        let mut happened = Vec::new();
        for shown in &look.requests {
            let request = &shown.announcement().request;
            let key = (request.id, request.session.clone());
            let told = before.remove(&key).unwrap_or_default();
            let now = Told {
                shown: Some(list::brief(shown)),
                problem: None,
            };
            let word = match told.shown.is_some() {
                false => Some("opened"),
                true if told != now => Some("changed"),
                true => None,
            };
            if let Some(word) = word {
                happened.push(json!({"happened": word, "request": now.shown}));
            }
            self.requests.insert(key, now);
        }
        for (id, session, why) in &look.unusable {
            let key = (*id, session.clone());
            let mut told = before.remove(&key).unwrap_or_default();
            if told.problem.as_ref() != Some(why) {
                let request = json!({"request": id, "session": session});
                happened.push(json!({"happened": "unusable", "request": request, "problem": why}));
            }
            told.problem = Some(why.clone());
            self.requests.insert(key, told);
        }
        happened.extend(before.into_keys().map(|(id, session)| {
            let request = json!({"request": id, "session": session});
            json!({"happened": "closed", "request": request})
        }));
        happened
    }

    /// What ran since the last look. What counts is where a line stands, not which time it says.
    fn notices(&mut self, all: Vec<Notice>) -> Vec<Notice> {
        let mut by_session: BTreeMap<SessionId, Vec<Notice>> = BTreeMap::new();
        for notice in all {
            let of = by_session.entry(notice.session.clone()).or_default();
            of.push(notice);
        }
        let mut new = Vec::new();
        for (session, now) in by_session {
            match self.notices.get(&session) {
                Some(before) => new.extend_from_slice(after(before, &now)),
                // It may have been there for long, and its turn to be looked at came only now.
                None => {
                    let ran_since = now.iter().filter(|notice| notice.at >= self.started);
                    new.extend(ran_since.cloned());
                }
            }
            self.notices.insert(session, now);
        }
        new
    }
}

/// What stands behind the lines that were there before, of which the first ones may be gone by now.
fn after<'a>(before: &[Notice], now: &'a [Notice]) -> &'a [Notice] {
    let rests = (0..before.len()).map(|gone| &before[gone..]);
    let mut kept = rests.filter_map(|rest| now.strip_prefix(rest));
    kept.next().unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(session: &str, what: &str, at: Timestamp) -> Notice {
        Notice {
            session: session.parse().unwrap(),
            at,
            what: what.to_owned(),
        }
    }

    fn stream() -> Stream {
        Stream {
            requests: BTreeMap::new(),
            notices: BTreeMap::new(),
            problem: None,
            started: answer::now(),
        }
    }

    fn look(unusable: Vec<(RequestId, SessionId, String)>) -> Look {
        Look {
            requests: Vec::new(),
            unusable,
            notices: Vec::new(),
            problem: None,
        }
    }

    #[test]
    fn a_time_that_is_yet_to_come_silences_nothing_that_runs_later() {
        let whats = |notices: Vec<Notice>| -> Vec<String> {
            notices.into_iter().map(|notice| notice.what).collect()
        };
        let mut stream = stream();
        let now = stream.started;
        let mut lines = vec![
            notice("a", "before", Timestamp::MIN),
            notice("a", "forged", Timestamp::MAX),
        ];
        assert_eq!(whats(stream.notices(lines.clone())), ["forged"]);
        assert!(stream.notices(lines.clone()).is_empty());
        lines.push(notice("a", "second", now));
        lines.push(notice("b", "other", now));
        assert_eq!(whats(stream.notices(lines.clone())), ["second", "other"]);
        // The first lines were cut off, and one session could not be looked at.
        let cut = vec![lines[2].clone(), notice("a", "third", now)];
        assert_eq!(whats(stream.notices(cut.clone())), ["third"]);
        let mut all = cut;
        all.push(lines[3].clone());
        assert!(stream.notices(all).is_empty());
    }

    #[test]
    fn what_cannot_be_shown_is_told_once_and_is_closed_when_it_is_gone() {
        let id = RequestId::from_parts(1, [0; 10]);
        let session: SessionId = "s".parse().unwrap();
        let told = Told {
            shown: Some(json!({})),
            problem: None,
        };
        let mut stream = stream();
        stream.requests.insert((id, session.clone()), told);
        let unusable = vec![(id, session, "not now".to_owned())];
        let words = |happened: Vec<Value>| -> Vec<Value> {
            let words = happened.iter().map(|one| one["happened"].clone());
            words.collect()
        };
        let happened = stream.requests(&look(unusable.clone()));
        assert_eq!(happened[0]["problem"], "not now");
        assert_eq!(words(happened), ["unusable"]);
        assert!(stream.requests(&look(unusable)).is_empty());
        assert_eq!(words(stream.requests(&look(Vec::new()))), ["closed"]);
    }
}
