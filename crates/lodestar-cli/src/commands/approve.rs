//! `lodestar approve`: what people need to say yes or no to held actions.

mod answer;
mod card;
mod deny;
mod grant;
mod keygen;
mod list;
mod show;
mod text;
mod watch;

use std::io;

use clap::{Args, Subcommand};
use lodestar_guard::channel::drop::{Pile, Shown};

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::{inert, place, words};

const AFTER_HELP: &str = "\
A request is named by its id or a unique beginning of it, with or without `req_`.

Examples:
  lodestar approve keygen --name alice
  lodestar approve list
  lodestar approve show 0198c1
  lodestar approve grant 0198c1
  lodestar approve deny 0198c1 --reason \"not on a Friday\"
  lodestar approve watch";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ApproveArgs {
    #[command(subcommand)]
    command: ApproveCommand,
}

#[derive(Debug, Subcommand)]
enum ApproveCommand {
    /// Make an operator's key and pin its public part here
    Keygen(keygen::KeygenArgs),
    /// List what waits for a person
    List(list::ListArgs),
    /// Show the card of one request
    Show(show::ShowArgs),
    /// Agree to one request, with a signature
    Grant(grant::GrantArgs),
    /// Refuse one request, with a signature and a reason
    Deny(deny::DenyArgs),
    /// Watch requests arrive, look at their cards and answer them
    Watch(watch::WatchArgs),
}

pub(crate) fn run(args: &ApproveArgs, app: &mut App) -> Result<Exit, Failure> {
    match &args.command {
        ApproveCommand::Keygen(args) => keygen::run(args, app),
        ApproveCommand::List(args) => list::run(args, app),
        ApproveCommand::Show(args) => show::run(args, app),
        ApproveCommand::Grant(args) => grant::run(args, app),
        ApproveCommand::Deny(args) => deny::run(args, app),
        ApproveCommand::Watch(args) => watch::run(args, app),
    }
}

fn pile(app: &App) -> Result<Pile, Failure> {
    Pile::below(place::folder(app.root())?).map_err(unusable)
}

/// The drop directory cannot be used.
fn unusable(error: io::Error) -> Failure {
    Failure::usage(format!("the drop directory cannot be used: {error}"))
}

/// The request that is named by its id or the beginning of it.
fn find<'a>(pile: &'a Pile, named: &str) -> Result<&'a Shown, Failure> {
    let begins = |id: &str| {
        let bare = id.split_once('_').map_or(id, |(_, uuid)| uuid);
        !named.is_empty() && (id.starts_with(named) || bare.starts_with(named))
    };
    let asked = |shown: &&Shown| begins(&shown.announcement().request.id.to_string());
    let found: Vec<&Shown> = pile.requests().filter(asked).collect();
    let unusable = pile.unusable().find(|(id, ..)| begins(&id.to_string()));
    match (found.as_slice(), unusable) {
        ([one], None) => Ok(one),
        ([], Some((id, _, why))) => Err(Failure::check(format!(
            "request `{id}` is neither shown nor answered: {why}"
        ))
        .help(
            "somebody changed it after the session wrote it; the session's log has the original",
        )),
        ([], None) => Err(Failure::not_found(format!(
            "no request `{}` waits here",
            inert::line(named, 60)
        ))
        .help("`lodestar approve list` shows what waits")),
        (several, _) => {
            let ids: Vec<String> = several
                .iter()
                .take(5)
                .map(|shown| words::short_id(&shown.announcement().request.id))
                .collect();
            Err(Failure::usage(format!(
                "`{}` could be any of several requests",
                inert::line(named, 60)
            ))
            .help(format!("give more of the id: {}", ids.join(", "))))
        }
    }
}
