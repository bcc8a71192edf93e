//! The command line as a whole: what every command shares, and how one is run.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::commands::{self, Command};
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::paint::Paint;
use crate::place::Place;
use crate::{gateway, inert};

const AFTER_HELP: &str = "\
Examples:
  lodestar demo                     see a poisoned file meet an agent, in a scratch folder
  lodestar init                     put a client's servers behind the proxy
  lodestar hook install claude-code  judge a client's own tools before they run
  lodestar run -- AGENT             start an agent that has no other way out than the governed one
  lodestar doctor                   what is enforced here, and what is not
  lodestar log list                 the sessions of this project
  lodestar log show latest          what happened, event by event
  lodestar log verify               is everything as it was written?
  lodestar belief list              what is believed here
  lodestar belief why BELIEF        the chain behind one belief
  lodestar policy show              what runs, what is asked for, what is refused
  lodestar tools list               the tools, and how far each may reach
  lodestar approve list             what waits for a person
  lodestar approve watch            see requests arrive, and answer them
  lodestar confirm --help           say yes to one call before it is asked for
  lodestar undo latest --dry-run    what putting back the last written file would do
  lodestar replay latest            does everything follow from the log?
  lodestar gateway serve            serve devices and runs
  lodestar device list              the machines that runs are made on

Exit codes:
  0  done
  1  a check failed: tampered, a proof that does not hold, a move that nobody may make
  2  wrong arguments or configuration, or a file that cannot be read or written
  3  not found
  4  not authorised: a key is missing, unprotected or not entitled

With --json, results are JSON on stdout (streams: one document per line), and a
failure is one JSON object on stderr: {\"error\":{\"code\",\"exit\",\"message\",\"help\"}}.";

const ENVIRONMENT: &str = "\
Environment:
  LODESTAR_CONFIG_DIR       this installation's keys and pins [default: lodestar/ in
                            XDG_CONFIG_HOME, or else in ~/.config]
  LODESTAR_PASSPHRASE_FILE  a file of mode 0600 with the passphrase of an operator's key, for
                            use without a terminal; approvals and confirmations never take it
  LODESTAR_GATEWAY          the gateway that an owner's commands speak to
  LODESTAR_GATEWAY_TOKEN    the token that they show it
  LODESTAR_GATEWAY_TOKEN_FILE  a file of mode 0600 with it
  LODESTAR_STORE            the belief store: a `postgres://` URL or a SQLite file
  LODESTAR_STORE_FILE       a file of mode 0600 with that URL, for one that holds a password
  NO_COLOR                  when set, no colour";

/// The trust layer for AI agents: a record of what an agent read, believed and did, that can be proved.
#[derive(Debug, Parser)]
#[command(
    name = "lodestar",
    version,
    after_help = AFTER_HELP,
    after_long_help = format!("{AFTER_HELP}\n\n{ENVIRONMENT}"),
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// The folder that holds `.lodestar/` [default: the nearest one, from here upwards]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Global options"
    )]
    root: Option<PathBuf>,

    /// Write JSON for machines instead of text for people
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

/// What a running command works with.
pub(crate) struct App {
    pub(crate) out: Out,
    pub(crate) json: bool,
    root: Option<PathBuf>,
}

impl App {
    /// The folder that was named.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The projects below the folder that was named or found.
    pub(crate) fn place(&self, project: Option<&str>) -> Result<Place, Failure> {
        Place::find(self.root.as_deref(), project)
    }

    /// The project that something is to be written to.
    pub(crate) fn place_to_write(&self, project: Option<&str>) -> Result<Place, Failure> {
        Place::to_write(self.root.as_deref(), project)
    }

    /// Says something beside the result, to people only.
    pub(crate) fn note(&self, text: impl std::fmt::Display) {
        self.notes().say(text);
    }

    /// The same for another thread.
    pub(crate) fn notes(&self) -> Notes {
        Notes { json: self.json }
    }
}

/// What is said beside the output, to people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notes {
    json: bool,
}

impl Notes {
    pub(crate) fn say(self, text: impl std::fmt::Display) {
        if !self.json {
            let text = inert::lines(&text.to_string());
            let _ = writeln!(std::io::stderr(), "{} {text}", Paint::stderr().dim("note:"));
        }
    }
}

/// The command that is parsed, and that completions and man pages are made from.
pub(crate) fn command() -> clap::Command {
    flowing(Cli::command())
}

/// With the closing words of every command as paragraphs that are broken where the terminal ends, and not where
/// the source does.
fn flowing(command: clap::Command) -> clap::Command {
    let short = command.get_after_help().map(|text| flow(&text.to_string()));
    let long = command
        .get_after_long_help()
        .map(|text| flow(&text.to_string()));
    let command = match short {
        Some(text) => command.after_help(text),
        None => command,
    };
    let command = match long {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    command.mut_subcommands(flowing)
}

/// Joins lines of running text. What is indented, and what announces it, keeps its lines.
fn flow(text: &str) -> String {
    let mut flowed = String::with_capacity(text.len());
    for line in text.lines() {
        let runs_on = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let before = flowed.lines().next_back().unwrap_or_default();
        let joins = runs_on(line) && runs_on(before) && !before.ends_with(':');
        match (flowed.is_empty(), joins && !flowed.ends_with('\n')) {
            (true, _) => {}
            (false, true) => flowed.push(' '),
            (false, false) => flowed.push('\n'),
        }
        flowed.push_str(line);
    }
    flowed
}

pub(crate) fn main() -> Exit {
    if let Some(failure) = gateway::token_in_arguments() {
        let json = std::env::args_os().any(|arg| arg == "--json");
        failure.report(json, Paint::stderr());
        return failure.exit;
    }
    let matches = command().try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let json = cli.json;
    let mut app = App {
        out: Out::new(),
        json,
        root: cli.root,
    };
    let done = commands::run(cli.command, &mut app);
    // What was found out before a failure is still worth reading.
    let flushed = app.out.flush().map_err(Failure::from);
    match done.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit,
        Err(failure) => {
            failure.report(json, Paint::stderr());
            failure.exit
        }
    }
}

/// Help and version go to stdout; everything else is a failure, and may quote what was typed.
fn explain(error: &clap::Error) -> Exit {
    let json = std::env::args_os().any(|arg| arg == "--json");
    if !error.use_stderr() {
        let mut out = Out::new();
        let text = match out.paint.is_on() {
            true => error.render().ansi().to_string(),
            false => error.render().to_string(),
        };
        let written = write!(out, "{text}").and_then(|()| out.flush());
        return written.map_or(Exit::Usage, |()| Exit::Done);
    }
    let text = inert::lines(error.render().to_string().trim_end());
    if json {
        let message = text.strip_prefix("error: ").unwrap_or(&text);
        Failure::usage(message).report(true, Paint::stderr());
    } else {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use super::flow;

    #[test]
    fn paragraphs_flow_and_what_is_indented_keeps_its_lines() {
        let text = "One sentence,\nbroken.\n\nExamples:\n  a\n  b\n\nTwo\nmore.";
        let flowed = "One sentence, broken.\n\nExamples:\n  a\n  b\n\nTwo more.";
        assert_eq!(flow(text), flowed);
    }
}
