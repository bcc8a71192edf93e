//! `lodestar approve`: what people need to say yes or no to held actions.

mod answer;
mod card;
mod deny;
mod grant;
mod keygen;
mod list;
mod show;
mod watch;

pub(crate) use show::{ShowArgs, run_live as show_live};

use std::io;

use clap::{Args, Subcommand};
use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_guard::channel::drop::{Pile, Shown, Unusable};

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
        .help("make sure that it is a folder of your own; a session that waits makes it again")
}

/// Which request is meant.
#[derive(Debug, Args)]
struct Which {
    /// The request
    request: String,

    /// The session that asks, where two say that a request of this id is theirs
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl Which {
    /// The one request that is named by its id or the beginning of it. What cannot be shown is in nobody's
    /// way.
    fn find<'a>(&self, pile: &'a Pile) -> Result<&'a Shown, Failure> {
        let named = self.request.as_str();
        let begins = |id: &str| {
            let bare = id.split_once('_').map_or(id, |(_, uuid)| uuid);
            !named.is_empty() && (id.starts_with(named) || bare.starts_with(named))
        };
        let is_meant = |id: RequestId, session: &SessionId| {
            let asked = self.session.as_deref();
            begins(&id.to_string()) && asked.is_none_or(|asked| asked == session.as_str())
        };
        let asked = |shown: &&Shown| {
            let request = &shown.announcement().request;
            is_meant(request.id, &request.session)
        };
        let found: Vec<&Shown> = pile.requests().filter(asked).collect();
        let mut unusable = pile.unusable();
        let unusable = unusable.find(|(id, session, _)| is_meant(*id, session));
        match (found.as_slice(), unusable) {
            ([one], _) => Ok(one),
            ([], Some((id, _, why))) => Err(not_shown(id, why)),
            ([], None) => Err(Failure::not_found(format!(
                "no request `{}` waits here",
                inert::line(named, 60)
            ))
            .help("`lodestar approve list` shows what waits")),
            (several, _) => Err(Failure::usage(format!(
                "`{}` could be any of several requests",
                inert::line(named, 60)
            ))
            .help(tell_apart(several))),
        }
    }
}

fn not_shown(id: RequestId, why: &Unusable) -> Failure {
    let help = match why {
        Unusable::Later | Unusable::NotNow(_) => "try again, or look at what else lies there",
        _ => "somebody changed it after the session wrote it; the session's log has the original",
    };
    Failure::check(format!(
        "request `{id}` is neither shown nor answered: {why}"
    ))
    .help(help)
}

/// How to name one of several.
fn tell_apart(several: &[&Shown]) -> String {
    const MOST: usize = 5;
    let request = |shown: &Shown| shown.announcement().request.clone();
    let first = several.first().map(|shown| shown.announcement().request.id);
    let is_same = several.iter().all(|shown| Some(request(shown).id) == first);
    let names = several.iter().take(MOST).map(|shown| match is_same {
        true => request(shown).session.to_string(),
        false => words::short_id(&request(shown).id),
    });
    let names: Vec<String> = names.collect();
    let more = match several.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names.join(", ");
    match is_same {
        true => format!(
            "two sessions say that this id is theirs, and one of them is a forgery; look in the log which session asked, and name it with --session: {names}{more}"
        ),
        false => format!("give more of the id: {names}{more}"),
    }
}
