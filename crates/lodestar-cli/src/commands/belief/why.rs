//! `lodestar belief why`: the chain behind a belief, from what was observed to what rests on it.
//!
//! Everything comes out of the log, cited by session and number; the store only says which event to
//! begin with. [`trace`] reads the project's sessions once and remembers where things stand,
//! [`chain`] puts together what belongs to one belief, [`print`] says it.

mod chain;
mod print;
mod trace;

use clap::Args;

use self::trace::Trace;
use super::one::{self, Wanted};
use crate::beliefs::{Beliefs, BeliefsArgs};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::progress::Progress;

const AFTER_HELP: &str = "\
Every line names the event that says so, `session#seq`; `lodestar log show SESSION --from SEQ
--payload` shows it whole. The event that adopted the belief is compared with the one that the
store's row names, and the sessions that are cited are verified; exit code 1 if one of them does
not hold.

Examples:
  lodestar belief why blf_019a8f3c-1234-7abc-89ab
  lodestar belief why 019a8f3c --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct WhyArgs {
    /// The belief: its id, or the beginning of it
    belief: String,

    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "belief why")]
    reason: String,
}

pub(crate) fn run(args: &WhyArgs, beliefs: &BeliefsArgs, app: &mut App) -> Result<Exit, Failure> {
    let wanted = Wanted::parse(&args.belief)?;
    let beliefs = Beliefs::find(beliefs, app)?;
    let one = one::look(&beliefs, &wanted, &args.reason, app)?;
    let progress = Progress::start(!app.json);
    let trace = Trace::of(&beliefs, one.belief.record.id, &progress)?;
    let why = chain::assemble(&one, &trace, &beliefs)?;
    drop(progress);
    if app.json {
        app.out.json(&why)?;
    } else {
        print::print(&why, &one, &mut app.out)?;
    }
    Ok(match why.log.holds() {
        true => Exit::Done,
        false => Exit::CheckFailed,
    })
}
