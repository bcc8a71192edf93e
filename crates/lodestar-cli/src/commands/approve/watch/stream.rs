//! What arrives, as JSON lines.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use lodestar_guard::channel::drop::{Pile, Watching};
use serde_json::{Value, json};

use super::super::{list, unusable};
use crate::cli::App;
use crate::failure::{Exit, Failure};

pub(super) async fn run(root: &Path, app: &mut App) -> Result<Exit, Failure> {
    let mut watching = Watching::below(root).map_err(unusable)?;
    let mut pile = Pile::below(root).map_err(unusable)?;
    let mut told: BTreeMap<String, Value> = BTreeMap::new();
    let mut last_notice = pile.notices().last().map(|notice| notice.at);
    loop {
        let now: BTreeMap<String, Value> = pile
            .requests()
            .map(|shown| {
                (
                    shown.announcement().request.id.to_string(),
                    list::brief(shown),
                )
            })
            .collect();
        for (id, request) in &now {
            let happened = match told.get(id) {
                None => "opened",
                Some(before) if before != request => "changed",
                Some(_) => continue,
            };
            app.out
                .json(&json!({"happened": happened, "request": request}))?;
        }
        for id in told.keys().filter(|id| !now.contains_key(*id)) {
            app.out
                .json(&json!({"happened": "closed", "request": {"request": id}}))?;
        }
        for notice in pile.notices() {
            if last_notice.is_none_or(|last| notice.at > last) {
                app.out
                    .json(&json!({"happened": "ran", "notice": notice}))?;
            }
        }
        last_notice = pile
            .notices()
            .last()
            .map(|notice| notice.at)
            .max(last_notice);
        told = now;
        app.out.flush()?;
        if app.out.is_closed() {
            return Ok(Exit::Done);
        }
        watching.changed().await.map_err(unusable)?;
        pile.refresh().map_err(unusable)?;
    }
}
