//! What a client hears from its hook.
//!
//! Whatever goes wrong on the way (nothing to read, nobody there, too late, a bug) is answered closed, in the
//! client's own way: several clients take a hook that merely fails for one that agrees.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};

use clap::Args;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::daemon::ask;
use lodestar_guard::hook::protocol::{self, MAX_INPUT, Spoken};
use lodestar_guard::hook::settings::DEADLINE;

use crate::commands::run::agent::way;
use crate::failure::Exit;

const AFTER_HELP: &str = "\
The client runs this by itself once `lodestar hook install` has put it into its settings. It reads one JSON
object and answers as the client wants to hear it: nothing at all where the client may go on by its own
rules, or a refusal with exit code 2. Without an answer, it refuses.

Examples:
  lodestar hook claude-code --event PreToolUse < input.json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AnswerArgs {
    /// The event that the hook is installed for
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
}

/// Answers, if that is all that the command line asks for: a client runs this before and after each of its tools, so that
/// it is reached without reading the command line as a whole.
pub(crate) fn at_once() -> Option<Exit> {
    let words: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.into_string().ok())
        .collect::<Option<_>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (client, event) = match words[..] {
        ["hook", "answer"] => return Some(super::plain::run()),
        ["hook", client] => (client, None),
        ["hook", client, "--event", event] => (client, Some(event.to_owned())),
        _ => return None,
    };
    let client = Client::ALL.into_iter().find(|one| one.name() == client)?;
    Some(run(client, &AnswerArgs { event }))
}

pub(crate) fn run(client: Client, args: &AnswerArgs) -> Exit {
    let event = args.event.clone();
    let (tell, told) = mpsc::channel();
    // Beside this thread, so that one that hangs or breaks off is noticed.
    std::thread::spawn(move || tell.send(judge(client, event.as_deref())));
    let spoken = told.recv_timeout(DEADLINE).unwrap_or_else(|problem| {
        let why = match problem {
            RecvTimeoutError::Timeout => "there was no answer in time",
            RecvTimeoutError::Disconnected => "the hook broke off",
        };
        protocol::unavailable(client, args.event.as_deref(), why)
    });
    speak(&spoken)
}

fn judge(client: Client, event: Option<&str>) -> Spoken {
    let mut stdin = Vec::new();
    let most = u64::try_from(MAX_INPUT).unwrap_or(u64::MAX);
    let read = std::io::stdin()
        .lock()
        .take(most.saturating_add(1))
        .read_to_end(&mut stdin);
    if let Err(problem) = read {
        let why = format!("what the client says cannot be read: {problem}");
        return protocol::unavailable(client, event, &why);
    }
    // What is said in there is the agent's word: nobody outside takes a folder or a conversation from it.
    if std::env::var_os(way::ADDRESS).is_some() {
        let why = "hooks are not answered inside `lodestar run`, which contains the client's tools instead: \
                   take them out with `lodestar hook uninstall`, or start the client outside";
        return protocol::unavailable(client, event, why);
    }
    match protocol::read(client, event, &stdin) {
        Err(problem) => protocol::unavailable(client, event, &problem.to_string()),
        // It says nothing to Lodestar.
        Ok(None) => Spoken::nothing(),
        Ok(Some(incoming)) => match ask(&incoming) {
            Ok(answer) => protocol::answer(client, &incoming, &answer),
            Err(away) => protocol::unanswered(&incoming, &away.to_string()),
        },
    }
}

/// Says it. Where nobody listens, the exit code still speaks.
fn speak(spoken: &Spoken) -> Exit {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(spoken.stderr.as_bytes());
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(spoken.stdout.as_bytes());
    let _ = out.flush();
    match spoken.exit {
        0 => Exit::Done,
        1 => Exit::CheckFailed,
        // The code that blocks.
        _ => Exit::Usage,
    }
}
