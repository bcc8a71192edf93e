//! `lodestar run list`

use std::io::Write as _;

use clap::Args;
use lodestar_gateway::run::{RunBook, Stage};

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{DeviceDirArgs, GatewayArgs, all, wait};
use crate::{inert, words};

const AFTER_HELP: &str = "\
Examples:
  lodestar run list
  lodestar run list --here";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ListArgs {
    /// Those that this device registered, as they are known here; the gateway is not asked
    #[arg(long)]
    here: bool,

    #[command(flatten)]
    dir: DeviceDirArgs,

    #[command(flatten)]
    gateway: GatewayArgs,
}

pub(crate) fn run(args: &ListArgs, app: &mut App) -> Result<Exit, Failure> {
    if args.here {
        return here(args, app);
    }
    let client = args.gateway.owner()?;
    let runs = wait(all(|after| client.runs(after), |next| next.parse().ok()))??;
    for run in &runs {
        if app.json {
            app.out.json(run)?;
            continue;
        }
        let level = match &run.evaluation {
            Some(evaluation) => evaluation.level.to_string(),
            None => "not evaluated".to_owned(),
        };
        let at = words::seconds(run.registered_at);
        writeln!(app.out, "{}  {at} UTC  {}  {level}", run.id, run.device)?;
    }
    Ok(Exit::Done)
}

fn here(args: &ListArgs, app: &mut App) -> Result<Exit, Failure> {
    let folder = args.dir.folder()?;
    folder.identity()?;
    for record in RunBook::of(&folder).list()? {
        if app.json {
            app.out.json(&record)?;
            continue;
        }
        let stage = match (record.stage, record.level) {
            (Stage::Attested, Some(level)) => level.to_string(),
            (Stage::Attested, None) => "attested".to_owned(),
            (Stage::Opened, _) => "not attested".to_owned(),
            (Stage::Refused, _) => "refused".to_owned(),
            (Stage::Registered, _) => "no session".to_owned(),
        };
        let session = record
            .session
            .map(|it| format!("  {}/{}", it.project, it.session));
        let problem = record
            .problem
            .map(|it| format!("  ({})", inert::line(&it, 120)));
        writeln!(
            app.out,
            "{}  {} UTC  {stage}{}{}",
            record.ticket.id,
            words::seconds(record.registered_at),
            session.unwrap_or_default(),
            problem.unwrap_or_default()
        )?;
    }
    Ok(Exit::Done)
}
