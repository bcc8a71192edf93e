//! `lodestar harness run` and `lodestar probe`: the probes, each with its contrast.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use lodestar_guard::Keys;
use lodestar_harness::{
    Options, Pack, Probe, ProbeResult, RunLog, RunReport, Status, output, probes,
};
use serde_json::json;

use super::list::describe;
use super::outside::Outside;
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::output::Out;
use crate::{files, inert};

const AFTER_HELP: &str = "\
A probe passes if its scenario holds, and if the same scenario is breached once the defence that it names is
taken out. A probe that is skipped is not counted as passed. Every run is recorded in a log of its own, which
`lodestar log verify` checks.

Examples:
  lodestar harness run
  lodestar harness run --pack coding-agent-safety
  lodestar harness run --pack ./invoice-fraud
  lodestar harness run --probe l4-action-requires-approval
  lodestar harness run --format junit --out probes.xml
  lodestar harness run --format sarif --out probes.sarif

Environment:
  LODESTAR_TEST_DATABASE_URL  a PostgreSQL server, for the probes that need one
  LODESTAR_REQUIRE_ALL        set to 1: a probe that is skipped fails the run";

const PROBE_HELP: &str = "\
Examples:
  lodestar probe l4-action-requires-approval
  lodestar --json probe planted-documents-cannot-veto";

/// Names a server for the probes that need one.
const DATABASE: &str = "LODESTAR_TEST_DATABASE_URL";
/// Makes skipping a failure.
const REQUIRE_ALL: &str = "LODESTAR_REQUIRE_ALL";

/// Which probes are meant.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Only probes of this pack: a name, or the folder of an outside pack
    #[arg(long, value_name = "NAME|PATH")]
    pack: Vec<String>,

    /// Only these
    #[arg(long, value_name = "NAME")]
    probe: Vec<String>,

    /// Also run outside packs that nobody signed who is pinned here
    #[arg(long)]
    allow_unsigned: bool,
}

/// The probes that were meant, and the outside packs that some of them are from.
pub(super) struct Selected {
    pub(super) probes: Vec<Probe>,
    pub(super) outside: Vec<Outside>,
}

impl Selection {
    pub(super) fn probes(&self) -> Result<Selected, Failure> {
        let is_built_in = |name: &&String| Pack::BUILT_IN.iter().any(|one| one.as_str() == *name);
        let (names, folders): (Vec<&String>, Vec<&String>) =
            self.pack.iter().partition(is_built_in);
        let mut found = probes::all();
        if !self.pack.is_empty() {
            found.retain(|probe| names.iter().any(|name| *name == probe.header.pack.as_str()));
        }
        let mut outside = Vec::new();
        for folder in folders {
            let pack = Outside::open(folder, self.allow_unsigned)?;
            found.extend(pack.probes());
            outside.push(pack);
        }
        if !self.probe.is_empty() {
            let known: BTreeSet<&str> = found.iter().map(|one| one.header.name.as_ref()).collect();
            for name in &self.probe {
                if !known.contains(name.as_str()) {
                    return Err(unknown(name));
                }
            }
            found.retain(|probe| self.probe.iter().any(|name| *name == probe.header.name));
        }
        Ok(Selected {
            probes: found,
            outside,
        })
    }
}

fn unknown(name: &str) -> Failure {
    Failure::not_found(format!("there is no probe `{}`", inert::line(name, 100)))
        .help("`lodestar harness list` names them")
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// The results and their counts
    Json,
    /// JUnit XML
    Junit,
    /// SARIF 2.1.0
    Sarif,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    which: Selection,

    /// How results are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Write them to this file; people still see what happens
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// How many run side by side [default: one for each core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

#[derive(Debug, Args)]
#[command(after_help = PROBE_HELP)]
pub(crate) struct ProbeArgs {
    /// Which
    name: String,
}

pub(crate) fn run(args: &RunArgs, app: &mut App) -> Result<Exit, Failure> {
    let Selected { probes, outside } = args.which.probes()?;
    let format = match (app.json, args.format) {
        (true, Format::Text) => Format::Json,
        (_, format) => format,
    };
    if format == Format::Text && args.out.is_some() {
        return Err(
            Failure::usage("--out needs a --format for machines").help("json, junit or sarif")
        );
    }
    // Where results go to standard output for a machine, nothing else does.
    let tells = format == Format::Text || args.out.is_some();
    let jobs = args.jobs.unwrap_or_else(cores);
    for pack in &outside {
        pack.warn(app);
    }
    let done = perform(&probes, &outside, jobs, tells, app)?;
    let written = match format {
        Format::Text => None,
        Format::Json => {
            let mut report = output::json(&done.report);
            report["outside_packs"] = outside.iter().map(Outside::json).collect();
            Some(format!("{report:#}\n"))
        }
        Format::Junit => Some(output::junit(&done.report)),
        Format::Sarif => Some(format!("{:#}\n", output::sarif(&done.report))),
    };
    match (written, &args.out) {
        (Some(text), Some(file)) => files::replace(file, |to| Ok(to.write_all(text.as_bytes())?))?,
        (Some(text), None) => write!(app.out, "{text}")?,
        (None, _) => {}
    }
    if tells {
        done.print(&mut app.out)?;
    } else if done.report.skipped > 0 {
        // A machine reads the results; whoever started it sees this.
        let _ = writeln!(std::io::stderr(), "{}", banner(done.report.skipped));
    }
    Ok(done.exit())
}

/// One probe, with all that it says of itself.
pub(crate) fn probe(args: &ProbeArgs, app: &mut App) -> Result<Exit, Failure> {
    let mut found = probes::all();
    found.retain(|probe| probe.header.name == args.name);
    if found.is_empty() {
        return Err(unknown(&args.name));
    }
    if !app.json {
        describe(&found[0].header, &mut app.out)?;
        writeln!(app.out)?;
        app.out.flush()?;
    }
    let done = perform(&found, &[], 1, !app.json, app)?;
    match app.json {
        true => app.out.json(&json!(done.report.probes.first()))?,
        false => done.print(&mut app.out)?,
    }
    Ok(done.exit())
}

/// What came of a run, and where it is recorded.
struct Done {
    report: RunReport,
    recorded: PathBuf,
    seconds: f64,
}

fn perform(
    probes: &[Probe],
    outside: &[Outside],
    jobs: usize,
    tells: bool,
    app: &mut App,
) -> Result<Done, Failure> {
    let program = std::env::current_exe().map_err(Failure::io("this program"))?;
    let database = std::env::var(DATABASE).ok().filter(|url| !url.is_empty());
    let options = Options {
        program: &program,
        database: database.as_deref(),
        jobs,
    };
    // Beside the keys, so that no project gets a folder that nobody asked for.
    let installation = Installation::locate()?;
    let folder = installation.dir().join("harness");
    let keys = Keys::at(installation.dir())?;
    let outside: Vec<_> = outside.iter().map(Outside::json).collect();
    let about = json!({
        "probes": probes.len(),
        "database": database.is_some(),
        "outside_packs": outside,
    });
    let recorded = |problem: lodestar_harness::RecordError| Failure::usage(problem.to_string());
    let mut log = RunLog::open(&folder, &keys, &about).map_err(recorded)?;
    let started = Instant::now();
    let mut trouble = None;
    let out = &mut app.out;
    let report = lodestar_harness::run(probes, &options, |result| {
        if let Err(problem) = log.add(result) {
            trouble.get_or_insert(recorded(problem));
        }
        if tells && let Err(problem) = tell(result, out) {
            trouble.get_or_insert(problem);
        }
    });
    let place = log.dir().dir().to_owned();
    log.close(&report).map_err(recorded)?;
    match trouble {
        Some(trouble) => Err(trouble),
        None => Ok(Done {
            report,
            recorded: place,
            seconds: started.elapsed().as_secs_f64(),
        }),
    }
}

/// One line for each, as it ends.
fn tell(result: &ProbeResult, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    let name = inert::line(&result.header.name, 60);
    let ms = paint.dim(format!("{:>6} ms", result.ms));
    let (mark, more) = match result.status {
        Status::Pass => {
            let contrast = format!("pass   contrast breached without {}", result.header.defence);
            (paint.good("✓"), contrast)
        }
        Status::Fail => (paint.bad("✗"), paint.bad("FAIL")),
        Status::Skip => (paint.warn("-"), paint.warn("SKIPPED")),
        Status::Error => (paint.bad("!"), paint.bad("ERROR")),
    };
    writeln!(out, "{mark} {name:<52} {ms}  {more}")?;
    if result.status != Status::Pass
        && let Some(reason) = &result.reason
    {
        writeln!(out, "    {}", inert::line(reason, 1000))?;
    }
    Ok(out.flush()?)
}

/// What nobody may overlook, in whichever form the results are.
fn banner(skipped: usize) -> String {
    format!(
        "{} SKIPPED, WHICH SHOWS NOTHING; {DATABASE} names a PostgreSQL server",
        crate::words::count(skipped as u64, "probe").to_uppercase()
    )
}

impl Done {
    fn print(&self, out: &mut Out) -> Result<(), Failure> {
        let paint = out.paint;
        let RunReport {
            passed,
            failed,
            skipped,
            errors,
            ..
        } = self.report;
        let broken = failed + errors;
        writeln!(
            out,
            "\n{passed} passed, {broken} failed, {skipped} skipped   {}",
            paint.dim(format!("{:.1} s", self.seconds))
        )?;
        if skipped > 0 {
            writeln!(out, "{}", paint.warn(banner(skipped)))?;
        }
        let place = inert::path(&self.recorded);
        writeln!(out, "{}", paint.dim(format!("recorded in {place}")))?;
        Ok(())
    }

    fn exit(&self) -> Exit {
        let requires_all = std::env::var(REQUIRE_ALL).is_ok_and(|value| value == "1");
        match self.report.is_clean() && !(requires_all && self.report.skipped > 0) {
            true => Exit::Done,
            false => Exit::CheckFailed,
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
