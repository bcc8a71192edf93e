//! `lodestar log prove`: proofs that stand alone.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use lodestar_log::{
    Disclosure, Proof, ProveError, Proven, ProvenEvent, Reader, SessionDir, Trust,
    prove_consistency, prove_inclusion,
};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::place::{LATEST, SessionName};
use crate::trust::{self, LogKeys};
use crate::{files, inert, json as form, words};

const AFTER_HELP: &str = "\
A proof carries the signed checkpoint it leads to, so that whoever has the log's public key can
check it without the log: `lodestar log check-proof`. Without --out the proof itself is printed.

Examples:
  lodestar log prove 12 --out proof.json
  lodestar log prove 12 --session latest --head-only > proof.json
  lodestar log prove --since 1000 --out grown.json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, group = ArgGroup::new("what").required(true).args(["seq", "since"]))]
pub(crate) struct ProveArgs {
    /// Prove that this event is in the session
    seq: Option<u64>,

    /// Prove that the session's first SIZE events are still its beginning
    #[arg(long, value_name = "SIZE")]
    since: Option<u64>,

    /// The session: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "SESSION", default_value = LATEST)]
    session: String,

    /// Leave the payload out: the proof then tells that the event happened, not what it says
    #[arg(long, conflicts_with = "since")]
    head_only: bool,

    /// Write the proof to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    keys: LogKeys,
}

pub(crate) fn run(args: &ProveArgs, project: Option<&str>, app: &mut App) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let dir = app.place(project)?.readable_session(&name)?;
    let trust = args.keys.trust()?;
    let proof = prove(args, &dir, &trust)?;
    // What is handed out has passed the check its receiver will make.
    let proven = proof.check(&trust)?;
    if let (Some(seq), true) = (args.seq, is_redacted(args, &proof)) {
        app.note(format!(
            "event #{seq} is redacted: the proof can only show its head"
        ));
    }
    let Some(path) = &args.out else {
        let text = match app.json {
            true => form::compact(&proof),
            false => form::pretty(&proof),
        };
        writeln!(app.out, "{text}")?;
        return Ok(Exit::Done);
    };
    files::replace_private(path, |file| Ok(writeln!(file, "{}", form::pretty(&proof))?))?;
    if app.json {
        app.out
            .json(&json!({"out": path.to_string_lossy(), "proven": proven}))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(app.out, "{} {}", paint.good("✓"), claim(&proof, &proven))?;
    writeln!(app.out, "  written to {}", inert::path(path))?;
    Ok(Exit::Done)
}

/// A head where the whole line was asked for: there is no more of it.
fn is_redacted(args: &ProveArgs, proof: &Proof) -> bool {
    match proof {
        Proof::Inclusion(inclusion) => {
            !args.head_only && matches!(inclusion.event, ProvenEvent::Head(_))
        }
        Proof::Consistency(_) => false,
    }
}

fn prove(args: &ProveArgs, dir: &SessionDir, trust: &Trust) -> Result<Proof, Failure> {
    let disclosure = match args.head_only {
        true => Disclosure::HeadOnly,
        false => Disclosure::Payload,
    };
    let proof = match (args.seq, args.since) {
        (Some(seq), _) => prove_inclusion(dir, seq, disclosure, trust),
        (None, since) => prove_consistency(dir, since.unwrap_or(0), trust),
    };
    proof.map_err(|error| match error {
        ProveError::Path(error) => Failure::usage(format!("there is no such proof: {error}")),
        ProveError::Io(error) => Failure::io(dir.dir())(error),
        ProveError::NotProven { seq, size } => unproven(dir, seq, size),
        ProveError::Checkpoint(reason) if !trust::is_unknown_key(&reason) => {
            Failure::from(ProveError::Checkpoint(reason))
                .help("`lodestar log verify` lists everything that is wrong")
        }
        error => error.into(),
    })
}

/// An event behind the checkpoint may be proven later; one behind the end may not exist at all.
fn unproven(dir: &SessionDir, seq: u64, size: u64) -> Failure {
    let later = || {
        Failure::from(ProveError::NotProven { seq, size })
            .help("the session's writer signs a checkpoint from time to time, and when it closes")
    };
    let Ok(mut reader) = Reader::open(dir) else {
        return later();
    };
    let mut events = 0;
    while let Ok(Some(event)) = reader.next_event() {
        if event.seq >= seq {
            return later();
        }
        events = event.seq + 1;
    }
    Failure::not_found(format!(
        "there is no event {seq} in session `{}`, which has {}",
        dir.session(),
        words::count(events, "event")
    ))
}

impl From<ProveError> for Failure {
    fn from(error: ProveError) -> Self {
        let exit = match &error {
            ProveError::NotProven { .. } | ProveError::TooFew { .. } => Exit::NotFound,
            ProveError::Io(_) => Exit::Usage,
            _ => Exit::CheckFailed,
        };
        let failure = Self::new(exit, error.to_string());
        match &error {
            ProveError::Checkpoint(reason) if trust::is_unknown_key(reason) => {
                failure.help(trust::GIVE_KEY)
            }
            _ => failure,
        }
    }
}

/// What a proof shows, as a sentence.
pub(crate) fn claim(proof: &Proof, proven: &Proven) -> String {
    let log = inert::whole(&proven.origin);
    let under = format!("root {}", words::short(&proven.root));
    match (&proven.event, &proven.extends) {
        (Some(event), _) => {
            let content = match proof {
                Proof::Inclusion(inclusion) => match inclusion.event {
                    ProvenEvent::Line(_) => "with its payload",
                    ProvenEvent::Head(_) => "without its payload",
                },
                Proof::Consistency(_) => "",
            };
            format!(
                "event #{} ({}), {content}, is one of the {} of {log}, {under}",
                event.seq,
                inert::whole(&event.kind),
                words::count(proven.size, "event"),
            )
        }
        (None, Some(extends)) => format!(
            "the {} of {log}, {under}, begin with the {} of root {}",
            words::count(proven.size, "event"),
            words::count(extends.size, "event"),
            words::short(&extends.root),
        ),
        (None, None) => format!("{log}, {under}"),
    }
}
