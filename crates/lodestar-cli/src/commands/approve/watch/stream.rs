//! What arrives, as JSON lines.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use serde_json::{Value, json};

use super::super::list;
use super::looking;
use crate::cli::App;
use crate::failure::{Exit, Failure};

pub(super) async fn run(root: &Path, app: &mut App) -> Result<Exit, Failure> {
    let mut looks = looking::start(root.to_owned());
    let mut told: BTreeMap<(RequestId, SessionId), Value> = BTreeMap::new();
    let mut last_notice = None;
    let mut is_first = true;
    let mut last_problem = None;
    while let Some(look) = looks.recv().await {
        let now: BTreeMap<(RequestId, SessionId), Value> = look
            .requests
            .iter()
            .map(|shown| {
                let request = &shown.announcement().request;
                let key = (request.id, request.session.clone());
                (key, list::brief(shown))
            })
            .collect();
        for (key, request) in &now {
            let happened = match told.get(key) {
                None => "opened",
                Some(before) if before != request => "changed",
                Some(_) => continue,
            };
            app.out
                .json(&json!({"happened": happened, "request": request}))?;
        }
        for (id, session) in told.keys().filter(|key| !now.contains_key(*key)) {
            let request = json!({"request": id, "session": session});
            app.out
                .json(&json!({"happened": "closed", "request": request}))?;
        }
        for notice in &look.notices {
            if !is_first && last_notice.is_none_or(|last| notice.at > last) {
                app.out
                    .json(&json!({"happened": "ran", "notice": notice}))?;
            }
        }
        if look.problem != last_problem
            && let Some(problem) = &look.problem
        {
            app.out
                .json(&json!({"happened": "problem", "problem": problem}))?;
        }
        last_problem = look.problem;
        let latest = look.notices.last().map(|notice| notice.at);
        last_notice = latest.max(last_notice);
        is_first = false;
        told = now;
        app.out.flush()?;
        if app.out.is_closed() {
            break;
        }
    }
    Ok(Exit::Done)
}
