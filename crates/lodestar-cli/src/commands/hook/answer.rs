//! What a client hears from its hook.
//!
//! Whatever goes wrong on the way (nothing to read, nobody there, too late, a bug) is answered closed, in the
//! client's own way: several clients take a hook that merely fails for one that agrees.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};

use clap::Args;
use lodestar_guard::hook::protocol::{self, MAX_INPUT, Spoken};
use lodestar_guard::hook::settings::DEADLINE;
use lodestar_guard::hook::{Answer, Client, Incoming};

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

/// Why there is no answer.
enum Unavailable {
    NoDaemon,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoDaemon => f.write_str("no daemon is there that could"),
        }
    }
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
    match protocol::read(client, event, &stdin) {
        Err(problem) => protocol::unavailable(client, event, &problem.to_string()),
        // It says nothing to Lodestar.
        Ok(None) => Spoken {
            stdout: String::new(),
            stderr: String::new(),
            exit: 0,
        },
        Ok(Some(incoming)) => match ask(&incoming) {
            Ok(answer) => protocol::answer(client, &incoming, &answer),
            Err(away) => protocol::unanswered(&incoming, &away.to_string()),
        },
    }
}

/// Asks the daemon.
fn ask(_incoming: &Incoming) -> Result<Answer, Unavailable> {
    Err(Unavailable::NoDaemon)
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
