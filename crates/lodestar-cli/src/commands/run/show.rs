//! `lodestar run show`

use std::io::Write as _;

use clap::Args;
use lodestar_core::id::RunId;
use lodestar_gateway::run::RunBook;
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, GatewayArgs, wait};
use crate::{inert, words};

const AFTER_HELP: &str = "\
On the device that made it, the gateway is asked with the device's own token; elsewhere with the
owner's.

Examples:
  lodestar run show run_0198c1d2-0000-7000-8000-000000000000
  lodestar run show run_0198c1d2-0000-7000-8000-000000000000 --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ShowArgs {
    /// The run
    run: RunId,

    #[command(flatten)]
    dir: DeviceDirArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &ShowArgs, app: &mut App) -> Result<Exit, Failure> {
    let folder = args.dir.folder()?;
    let record = match folder.is_enrolled() {
        true => RunBook::of(&folder).get(args.run)?,
        false => None,
    };
    let client = match (&record, args.gateway.is_owners()) {
        (None, true) => args.gateway.owner()?,
        _ => folder.client()?,
    };
    let run = wait(client.run(args.run))??;
    if app.json {
        let mut shown = serde_json::to_value(&run).unwrap_or_default();
        if let Some(record) = record {
            shown["here"] = json!(record);
        }
        app.out.json(&shown)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(app.out, "{}", paint.strong(run.id))?;
    let hash = |hash: Option<lodestar_core::digest::Digest>| {
        hash.map_or_else(|| "not recorded".to_owned(), |it| it.to_string())
    };
    for (what, value) in [
        ("device", run.device.to_string()),
        ("runner", run.runner.to_string()),
        ("agent", run.agent.to_string()),
        ("terms", run.terms.to_string()),
        ("policy", run.policy.to_string()),
        ("workflow", hash(run.workflow_hash)),
        ("lens", hash(run.lens_hash)),
        (
            "registered",
            format!("{} UTC", words::seconds(run.registered_at)),
        ),
    ] {
        writeln!(app.out, "  {} {value}", paint.dim(format!("{what:<10}")))?;
    }
    if let Some(record) = &record {
        if let Some(place) = &record.session {
            let session = format!("{}/{}", place.project, place.session);
            writeln!(
                app.out,
                "  {} {session}",
                paint.dim(format!("{:<10}", "session"))
            )?;
        }
        if let Some(problem) = &record.problem {
            writeln!(app.out, "  {}", paint.warn(inert::whole(problem)))?;
        }
    }
    match &run.evaluation {
        None => writeln!(app.out, "not evaluated")?,
        Some(evaluation) => {
            let at = words::seconds(evaluation.at);
            let level = paint.strong(evaluation.level);
            writeln!(app.out, "{level}, the gateway says ({at} UTC)")?;
            super::print_facts(evaluation, &mut app.out)?;
        }
    }
    Ok(Exit::Done)
}
