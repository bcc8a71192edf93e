//! What was, or would be, put back, in words and for machines.

use std::io::Write as _;

use lodestar_guard::{Reply, Wrapped};
use lodestar_kernel::image::State;
use serde_json::{Value, json};

use super::find::Act;
use super::plan::{Plan, Planned, Standing};
use super::refusal;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::{inert, words};

/// Columns that a path may take.
const PATH: usize = 200;

/// Says what came of it.
pub(super) fn done(
    act: &Act,
    plan: &Plan,
    wrapped: &Wrapped<Reply>,
    force: bool,
    app: &mut App,
) -> Result<Exit, Failure> {
    let reply = &wrapped.value;
    if let Some(failure) = refusal(reply) {
        return Err(failure);
    }
    let whole = plan.is_well(force);
    let exit = match whole {
        true => Exit::Done,
        false => Exit::CheckFailed,
    };
    if app.json {
        let mut told = told(act, plan, force);
        told["done"] = json!(true);
        told["whole"] = json!(whole);
        told["undone_by"] = json!({"session": wrapped.session, "action": reply.action});
        app.out.json(&told)?;
        return Ok(exit);
    }
    let paint = app.out.paint;
    heading(act, app)?;
    for one in &plan.paths {
        let line = match one.standing.is_put_back(force) {
            true => paint.good(format!("✓ {}", put_back(one))),
            false => left_alone(one, app),
        };
        writeln!(app.out, "{line}")?;
    }
    let action = reply.action.map(|action| action.to_string());
    let action = action.unwrap_or_default();
    let session = &wrapped.session;
    writeln!(
        app.out,
        "{}",
        paint.strong(format!("undone, as {action} of session {session}"))
    )?;
    writeln!(
        app.out,
        "  {}",
        paint.dim(format!("lodestar undo {action}"))
    )?;
    Ok(exit)
}

/// Says what would be done, or why nothing is.
pub(super) fn not_done(
    act: &Act,
    plan: &Plan,
    dry_run: bool,
    app: &mut App,
) -> Result<Exit, Failure> {
    let well = plan.is_well(false);
    let idle = plan
        .paths
        .iter()
        .all(|one| one.standing == Standing::AsBefore);
    let exit = match well {
        true => Exit::Done,
        false => Exit::CheckFailed,
    };
    if app.json {
        let mut told = told(act, plan, false);
        told["done"] = json!(false);
        told["whole"] = json!(well);
        app.out.json(&told)?;
        return Ok(exit);
    }
    let paint = app.out.paint;
    heading(act, app)?;
    for one in &plan.paths {
        let line = match one.standing.is_put_back(false) {
            true if well => format!("  {}", put_back(one)),
            true => format!("  {}", paint.dim(put_back(one))),
            false => left_alone(one, app),
        };
        writeln!(app.out, "{line}")?;
    }
    let line = match (idle, well, dry_run) {
        (true, _, _) => "nothing to undo: everything stands as it did before".to_owned(),
        (_, true, _) => "nothing was done: leave --dry-run out to put it back".to_owned(),
        (_, false, _) => {
            let stuck = plan.paths.iter().filter(|one| !one.standing.is_well(false));
            let stuck = words::count(stuck.count() as u64, "path");
            let what = match plan.is_to_be_done(true) {
                true => "; --force puts back what can be, whatever stands there now",
                false => "",
            };
            paint.bad(format!("✗ nothing was done, because of {stuck}{what}"))
        }
    };
    writeln!(app.out, "{line}")?;
    Ok(exit)
}

fn heading(act: &Act, app: &mut App) -> Result<(), Failure> {
    let line = format!(
        "{}  {} of session {}",
        act.id,
        inert::line(&act.tool, 80),
        act.dir().session()
    );
    Ok(writeln!(app.out, "{}", app.out.paint.strong(line))?)
}

fn path(one: &Planned) -> String {
    inert::line(&one.path.to_string(), PATH)
}

/// `notes.md: back to 120 bytes, +3 −1 lines`
fn put_back(one: &Planned) -> String {
    let mut text = path(one);
    text.push_str(&match (&one.stood, one.bytes) {
        (Some(State::File { mode, .. }), Some(bytes)) => {
            let other = match &one.now {
                State::File { mode: now, .. } if now != mode => {
                    format!(", mode {now:o} back to {mode:o}")
                }
                _ => String::new(),
            };
            format!(": back to {}{other}", words::count(bytes, "byte"))
        }
        (Some(State::Nothing { .. }), _) => ": removed, it was not there before".to_owned(),
        (Some(State::Link { to }), _) => {
            format!(": back to a link to {}", inert::line(&to.to_string(), PATH))
        }
        _ => String::new(),
    });
    if let Some(lines) = one.lines {
        text.push_str(&format!(", +{} −{} lines", lines.added, lines.removed));
    }
    if matches!(one.standing, Standing::Changed | Standing::NobodySaw) {
        text.push_str("; what stood there until now is kept in the log");
    }
    text
}

fn left_alone(one: &Planned, app: &App) -> String {
    let (paint, path) = (app.out.paint, path(one));
    match &one.standing {
        Standing::AsBefore => paint.dim(format!("· {path}: stands as it did before")),
        Standing::Changed => paint.bad(format!("✗ {path}: was changed since the act")),
        Standing::NobodySaw => paint.bad(format!(
            "✗ {path}: what the act left there is not on record, so it could be somebody's change"
        )),
        Standing::Taken => paint.bad(format!(
            "✗ {path}: a folder, or what cannot be looked at, stands there"
        )),
        Standing::Lost(because) => paint.bad(format!("✗ {path}: was not kept: {because}")),
        Standing::Corrupt => paint.bad(format!("✗ {path}: what was kept is not what it says")),
        Standing::AsLeft => path,
    }
}

fn told(act: &Act, plan: &Plan, force: bool) -> Value {
    let paths = plan.paths.iter().map(|one| {
        json!({
            "path": one.path,
            "standing": one.standing.code(),
            "put_back": one.standing.is_put_back(force),
            "reason": match &one.standing {
                Standing::Lost(because) => Some(because.to_string()),
                _ => None,
            },
            "before": one.stood,
            "before_bytes": one.bytes,
            "now": one.now,
            "lines": one.lines,
        })
    });
    json!({
        "action": act.id,
        "session": act.dir().session(),
        "tool": act.tool,
        "paths": paths.collect::<Vec<_>>(),
    })
}
