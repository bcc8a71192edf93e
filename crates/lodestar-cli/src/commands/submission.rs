//! `lodestar submission`: pieces of work, the runs that they came from, and what they earned.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lodestar_core::digest::Digest;
use lodestar_core::id::{BattleId, RunId, SubmissionId};
use lodestar_gateway::wire;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::gateway::{GatewayArgs, all, wait};
use crate::inert;

const AFTER_HELP: &str = "\
Examples:
  lodestar submission add result.tar --run run_0198c1d2-0000-7000-8000-000000000000
  lodestar submission list
  lodestar submission show sub_0198c1d2-0000-7000-8000-000000000000";

const AFTER_ADD: &str = "\
The gateway gets the SHA-256 of the file, not the file. What it earns follows from how far its best run is
proved, as the gateway found it.

Examples:
  lodestar submission add result.tar --run run_0198c1d2-0000-7000-8000-000000000000
  lodestar submission add result.tar --battle btl_0198c1d2-0000-7000-8000-000000000000";

const AFTER_LINK: &str = "\
Examples:
  lodestar submission link sub_0198c1d2-0000-7000-8000-000000000000 run_0198c1d2-0000-7000-8000-000000000001";

const AFTER_LIST: &str = "\
Examples:
  lodestar submission list
  lodestar submission list --json";

const AFTER_SHOW: &str = "\
Examples:
  lodestar submission show sub_0198c1d2-0000-7000-8000-000000000000";

const AFTER_STANDINGS: &str = "\
Examples:
  lodestar submission standings btl_0198c1d2-0000-7000-8000-000000000000";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SubmissionArgs {
    #[command(subcommand)]
    command: SubmissionCommand,
}

#[derive(Debug, Subcommand)]
enum SubmissionCommand {
    /// Hand in a piece of work
    #[command(after_help = AFTER_ADD)]
    Add {
        /// The file that is handed in
        file: PathBuf,

        /// The run that it came from
        #[arg(long, value_name = "RUN")]
        run: Option<RunId>,

        /// The battle that it is for
        #[arg(long, value_name = "BATTLE")]
        battle: Option<BattleId>,

        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Put one more run behind a submission
    #[command(after_help = AFTER_LINK)]
    Link {
        /// The submission
        submission: SubmissionId,

        /// The run
        run: RunId,

        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// List the account's submissions
    #[command(after_help = AFTER_LIST)]
    List {
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Show one submission
    #[command(after_help = AFTER_SHOW)]
    Show {
        /// The submission
        submission: SubmissionId,

        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Show where everybody stands in a battle
    #[command(after_help = AFTER_STANDINGS)]
    Standings {
        /// The battle
        battle: BattleId,

        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

pub(crate) fn run(args: &SubmissionArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        SubmissionCommand::Add {
            file,
            run,
            battle,
            gateway,
        } => {
            let asked = wire::HandIn {
                content: digest_of(file)?,
                run: *run,
                battle: *battle,
            };
            let submission = wait(gateway.owner()?.hand_in(&asked))??;
            print(&submission, app)
        }
        SubmissionCommand::Link {
            submission,
            run,
            gateway,
        } => print(&wait(gateway.owner()?.link_run(*submission, *run))??, app),
        SubmissionCommand::Show {
            submission,
            gateway,
        } => print(&wait(gateway.owner()?.submission(*submission))??, app),
        SubmissionCommand::List { gateway } => {
            let client = gateway.owner()?;
            let all = all(|after| client.submissions(after), |next| next.parse().ok());
            for submission in wait(all)?? {
                match app.json {
                    true => app.out.json(&submission)?,
                    false => writeln!(app.out, "{}  {}", submission.id, submission.level)?,
                }
            }
            Ok(Exit::Done)
        }
        SubmissionCommand::Standings { battle, gateway } => {
            standings(&wait(gateway.owner()?.standings(*battle))??, app)
        }
    }
}

fn digest_of(file: &std::path::Path) -> Result<Digest, Failure> {
    let mut open = std::fs::File::open(file).map_err(Failure::io(file))?;
    let mut hasher = lodestar_core::digest::Hasher::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = std::io::Read::read(&mut open, &mut buffer).map_err(Failure::io(file))?;
        if read == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buffer[..read]);
    }
}

fn print(submission: &wire::Submission, app: &mut App) -> Result<Exit, Failure> {
    if app.json {
        app.out.json(submission)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(app.out, "{}", paint.strong(submission.id))?;
    writeln!(app.out, "  content  {}", submission.content)?;
    for run in &submission.runs {
        writeln!(app.out, "  run      {run}")?;
    }
    writeln!(app.out, "  level    {}, the gateway says", submission.level)?;
    for effect in &submission.effects {
        writeln!(app.out, "  earned   {}", inert::line(effect, 80))?;
    }
    Ok(Exit::Done)
}

fn standings(standings: &wire::Standings, app: &mut App) -> Result<Exit, Failure> {
    if app.json {
        app.out.json(standings)?;
        return Ok(Exit::Done);
    }
    for (at, place) in standings.places.iter().enumerate() {
        let handed = match &place.submission {
            Some(submission) => submission.to_string(),
            None => "nothing handed in".to_owned(),
        };
        let tie = if place.tie_break { "  wins ties" } else { "" };
        writeln!(app.out, "{:>3}  {}  {handed}{tie}", at + 1, place.agent)?;
    }
    Ok(Exit::Done)
}
