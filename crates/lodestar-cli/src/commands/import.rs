//! `lodestar import`: memories of another system, taken in whole and believed not at all.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use lodestar_core::chain::{ContentBlock, Observation, ObservationTrust};
use lodestar_core::id::{InvocationId, ObservationId};
use lodestar_core::name::{ProjectId, SessionId, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_firewall::ImportBatch;
use lodestar_firewall::event::{LogPosition, Surroundings as _};
use lodestar_firewall::import::{
    Export, ExportFormat, ImportedMemory, MAX_EXPORT, Skipped, read_export,
};
use lodestar_guard::{OperatorSession, SystemSurroundings};
use serde::Serialize;
use serde_json::json;

use crate::beliefs::{Beliefs, BeliefsArgs, local_actor};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::progress::Progress;
use crate::{files, inert, words};

const AFTER_HELP: &str = "\
Memories come in as documents that somebody wrote: unverified, restricted, of imported authority,
whatever they say of themselves. No planner gets one until an operator promotes it or direct
evidence says the same. Records that cannot be read are named and passed over.

Examples:
  lodestar import mem0 memories.json
  lodestar import letta agent.af --dry-run
  lodestar import zep graph.json --scope user:alice --sensitivity confidential";

/// Memories that are recorded together: one observation, one adoption.
const BATCH: usize = 100;
/// Bytes of memories that are recorded together, so that one event stays small.
const BATCH_BYTES: usize = 1 << 20;
/// Skipped records that are named to people; machines get all.
const MOST_NAMED: usize = 50;

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    beliefs: BeliefsArgs,

    /// The system that made the export
    #[arg(value_parser = PossibleValuesParser::new(["mem0", "letta", "zep"])
        .map(|word| word.parse::<ExportFormat>().expect("one of the possible values")))]
    format: ExportFormat,

    /// The export: a JSON file
    file: PathBuf,

    /// Where the memories hold [default: the project]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<Scope>,

    /// Who may see them: public, internal, confidential or secret
    #[arg(long, value_name = "LEVEL", default_value = "internal")]
    sensitivity: Sensitivity,

    /// Read the export and say what would come in
    #[arg(long)]
    dry_run: bool,
}

/// One batch, where it stands in the log.
#[derive(Debug, Serialize)]
struct Recorded {
    /// The event with the memories as they came.
    observation: u64,
    /// The event that adopted them.
    adopted: LogPosition,
    memories: u64,
}

pub(crate) fn run(args: &ImportArgs, app: &mut App) -> Result<Exit, Failure> {
    let bytes = files::read(&args.file, MAX_EXPORT as u64)?;
    let export = read_export(args.format, &bytes)
        .map_err(|e| Failure::usage(format!("`{}`: {e}", inert::path(&args.file))))?;
    let empty = export.memories.is_empty();
    let recorded = match empty || args.dry_run {
        true => Vec::new(),
        false => take_in(args, &export.memories, app)?,
    };
    if app.json {
        app.out.json(&json!({
            "format": args.format.as_str(),
            "file": args.file.to_string_lossy(),
            "dry_run": args.dry_run,
            "memories": export.memories.len(),
            "batches": recorded,
            "skipped": export.skipped.iter().map(skipped_json).collect::<Vec<_>>(),
        }))?;
    } else {
        print(args, &export, &recorded, &mut app.out)?;
    }
    Ok(match empty {
        true => Exit::CheckFailed,
        false => Exit::Done,
    })
}

fn take_in(
    args: &ImportArgs,
    memories: &[ImportedMemory],
    app: &App,
) -> Result<Vec<Recorded>, Failure> {
    let beliefs = Beliefs::find_or_begin(&args.beliefs, app)?;
    let scope = args.scope.clone().unwrap_or_else(|| beliefs.scope());
    let project = beliefs.log.project();
    let progress = Progress::start(!app.json);
    beliefs.in_session("an import of memories", local_actor(), app, |session| {
        let mut recorded = Vec::new();
        let mut done = 0;
        for batch in batches(memories) {
            progress.at("importing", done, memories.len() as u64);
            recorded.push(take_in_batch(args, batch, project, &scope, session)?);
            done += batch.len() as u64;
        }
        Ok(recorded)
    })
}

/// Parts of at most so many memories and, but for a single large one, so many bytes.
fn batches(memories: &[ImportedMemory]) -> impl Iterator<Item = &[ImportedMemory]> {
    let mut rest = memories;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take(BATCH).take_while(|memory| {
            bytes += size(memory);
            bytes <= BATCH_BYTES
        });
        let len = fits.count().max(1).min(rest.len());
        let (batch, others) = rest.split_at(len);
        rest = others;
        (!batch.is_empty()).then_some(batch)
    })
}

fn size(memory: &ImportedMemory) -> usize {
    let attributes = serde_json::to_vec(&memory.attributes);
    memory.text.len() + attributes.map_or(0, |bytes| bytes.len())
}

fn take_in_batch(
    args: &ImportArgs,
    memories: &[ImportedMemory],
    project: &ProjectId,
    scope: &Scope,
    session: &mut OperatorSession,
) -> Result<Recorded, Failure> {
    let observation = observation(args, memories, project, session.id());
    let seq = session.observe(&observation)?;
    let (firewall, _, recorder) = session.parts();
    let batch = ImportBatch {
        observation: &observation,
        format: args.format,
        memories,
        scope,
    };
    let outcome = firewall.import(batch, recorder)?;
    Ok(Recorded {
        observation: seq,
        adopted: outcome.at,
        memories: memories.len() as u64,
    })
}

fn observation(
    args: &ImportArgs,
    memories: &[ImportedMemory],
    project: &ProjectId,
    session: &SessionId,
) -> Observation {
    let mut surroundings = SystemSurroundings::default();
    let now = surroundings.now();
    let millis = u64::try_from(now.unix_micros() / 1000).unwrap_or_default();
    let tool = ToolName::new(format!("import/{}", args.format));
    Observation {
        id: ObservationId::from_parts(millis, surroundings.random()),
        tool: tool.expect("INVARIANT: a short constant"),
        invocation_id: InvocationId::from_parts(millis, surroundings.random()),
        captured_at: now,
        session: session.clone(),
        project: project.clone(),
        actor: local_actor(),
        trust: ObservationTrust::Raw,
        sensitivity: args.sensitivity,
        rest: Default::default(),
        content: memories.iter().map(block).collect(),
    }
}

/// The record as it was read, with nothing left out but vectors.
fn block(memory: &ImportedMemory) -> ContentBlock {
    ContentBlock::Structured {
        value: json!({
            "reference": memory.reference,
            "aspect": memory.aspect.as_str(),
            "text": memory.text,
            "created_at": memory.created_at,
            "attributes": memory.attributes,
            "pointer": memory.pointer,
        }),
    }
}

fn skipped_json(skipped: &Skipped) -> serde_json::Value {
    json!({
        "pointer": skipped.pointer,
        "line": skipped.line,
        "reason": skipped.reason.to_string(),
    })
}

fn print(
    args: &ImportArgs,
    export: &Export,
    recorded: &[Recorded],
    out: &mut Out,
) -> Result<(), Failure> {
    let paint = out.paint;
    let memories = counted(export.memories.len() as u64, "memory", "memories");
    match (recorded.first(), recorded.last()) {
        (Some(first), Some(last)) => {
            writeln!(
                out,
                "{} {memories} of {} imported, at {}#{} to #{}",
                paint.good("✓"),
                args.format,
                first.adopted.log.session,
                first.observation,
                last.adopted.seq
            )?;
            let worth = "unverified, restricted, authority imported: in no planner's context; `lodestar belief promote` vouches for one";
            writeln!(out, "  {}", paint.dim(worth))?;
        }
        _ if export.memories.is_empty() => {
            writeln!(out, "{} there is nothing to import", paint.bad("✗"))?;
        }
        _ => writeln!(
            out,
            "{memories} of {} would be imported, as unverified; nothing was written",
            args.format
        )?,
    }
    let skipped = &export.skipped;
    if skipped.is_empty() {
        return Ok(());
    }
    let count = words::count(skipped.len() as u64, "record");
    writeln!(out, "{} {count} skipped", paint.warn("!"))?;
    for skipped in skipped.iter().take(MOST_NAMED) {
        let place = format!(
            "line {} {}",
            skipped.line,
            inert::line(&skipped.pointer, 80)
        );
        let reason = inert::whole(&skipped.reason.to_string());
        writeln!(out, "  {}  {reason}", paint.accent(place))?;
    }
    if let Some(more) = skipped.len().checked_sub(MOST_NAMED).filter(|n| *n > 0) {
        let more = format!("and {more} more; --json names all");
        writeln!(out, "  {}", paint.dim(more))?;
    }
    Ok(())
}

/// For words whose plural has a form of its own.
fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", words::number(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use lodestar_firewall::import::Aspect;
    use serde_json::Map;

    use super::*;

    #[test]
    fn batches_are_bounded_and_lose_nothing() {
        let memory = |bytes: usize| ImportedMemory {
            reference: "1".to_owned(),
            aspect: Aspect::Memory,
            text: "x".repeat(bytes),
            created_at: None,
            attributes: Map::new(),
            pointer: "/0".to_owned(),
        };
        for (sizes, expected) in [
            (vec![1; 250], vec![100, 100, 50]),
            (vec![BATCH_BYTES / 2; 3], vec![1, 1, 1]),
            (vec![2 * BATCH_BYTES, 1], vec![1, 1]),
            (vec![], vec![]),
        ] {
            let memories: Vec<_> = sizes.into_iter().map(memory).collect();
            let lens: Vec<_> = batches(&memories).map(<[_]>::len).collect();
            assert_eq!(lens, expected);
        }
    }
}
