//! `lodestar otel export`: a session as a trace.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::native::http::client::InTheClear;
use lodestar_kernel::native::net::NetworkConfig;
use lodestar_log::{SessionDir, Trust};
use lodestar_replay::derive;
use lodestar_report::otel::batch::Batch;
use lodestar_report::otel::endpoint::{self, EndpointError};
use lodestar_report::otel::send::{DEFAULT_TIMEOUT, SendError, Sender};
use lodestar_report::otel::{
    Admitted, Exported, NotAdmitted, SpanData, Unprojectable, admit, json, project,
};

use serde_json::json;

use crate::cli::App;
use crate::commands::replay::verify;
use crate::failure::{Exit, Failure};
use crate::place::{LATEST, SessionName};
use crate::trust::{self, LogKeys};
use crate::{files, inert, words};

const AFTER_HELP: &str = "\
The session is verified and derived again first; one that is not intact, does not follow from its
log or was opened with defences taken out is refused. Of a session that is still being written,
what a signed checkpoint covers is exported. Ids follow from the log: a second export sends the
same spans.

Arguments and results at or below --ceiling are written out, up to 8 KiB each; in the place of
what is above it stands a salted SHA-256 and the length. With --ceiling secret everything is
written out.

Spans go to --endpoint, or to OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, as
OTLP over HTTP with protobuf bodies; --endpoint is a receiver's URL, below which `v1/traces` lies.
Headers come from OTEL_EXPORTER_OTLP_HEADERS and --header. Without an endpoint, or with --out, OTLP
JSON is written, one batch a line.

Exit codes: 1 not exported, or not all of it arrived; 2 wrong arguments, endpoint or headers;
3 there is no such session, or the endpoint takes no spans; 4 the receiver refuses the credentials.

Examples:
  lodestar otel export latest --out trace.jsonl
  lodestar otel export latest --endpoint http://localhost:4318
  lodestar otel export s-0197 --endpoint https://otlp.example --header api-key=env:OTLP_KEY
  lodestar otel export latest --ceiling public | jq -r '.resourceSpans[].scopeSpans[].spans[].name'";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ExportArgs {
    /// The session: its id, the beginning of it, or `latest`
    #[arg(default_value = LATEST)]
    session: String,

    /// Send the spans to this OTLP receiver
    #[arg(long, value_name = "URL", conflicts_with = "out")]
    endpoint: Option<String>,

    /// Write OTLP JSON to this file, which is replaced only once the export is whole
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The most sensitive content that may leave: public, internal, confidential or secret
    #[arg(long, value_name = "LEVEL", default_value = "internal")]
    ceiling: Sensitivity,

    /// Send this header, with a value from the environment or a private file; may be given several
    /// times
    #[arg(long = "header", value_name = "NAME=env:VARIABLE|NAME=file:PATH")]
    headers: Vec<String>,

    /// Trust the root certificates of this PEM file, beside the public ones
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// How long one batch may take, tries again included, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT.as_secs(),
          value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout: u64,

    /// Send in the clear to other machines, too
    #[arg(long)]
    insecure: bool,

    #[command(flatten)]
    keys: LogKeys,

    /// Look only at this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

pub(crate) fn run(args: &ExportArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    // What is wrong with the way out is said before anything long is done.
    let mut sender = match args.out {
        Some(_) => None,
        None => sender(args)?,
    };
    let dir = app
        .place(args.project.as_deref())?
        .readable_session(&name)?;
    let admitted = admitted(args, &dir, app)?;
    let state = admitted.state();
    let (to, exported) = match (&mut sender, &args.out) {
        (Some((url, sender)), _) => {
            let exported = export(args, admitted, |batch| Ok(sender.send(batch)?))?;
            for remark in sender.remarks() {
                app.note(format!("the receiver says: {remark}"));
            }
            (url.clone(), exported)
        }
        (None, Some(path)) => {
            let exported = files::replace_private(path, |file| {
                export(args, admitted, |batch| Ok(json::write(batch, file)?))
            })?;
            (inert::path(path), exported)
        }
        (None, None) => {
            let out = &mut app.out;
            let exported = export(args, admitted, |batch| Ok(json::write(batch, out)?))?;
            say_unproven(&exported, state, app);
            return Ok(Exit::Done);
        }
    };
    say_unproven(&exported, state, app);
    if app.json {
        app.out.json(&json!({
            "project": dir.project(),
            "session": dir.session(),
            "state": state,
            "to": to,
            "ceiling": args.ceiling,
            "spans": exported.spans,
            "events": exported.events,
            "unproven": exported.unproven,
        }))?;
    } else {
        let spans = words::count(exported.spans, "span");
        let events = words::count(exported.events, "event");
        let verb = if sender.is_some() { "sent" } else { "written" };
        writeln!(app.out, "{spans} of {events} {verb} to {to}")?;
    }
    Ok(Exit::Done)
}

/// The receiver that was named, if any.
fn sender(args: &ExportArgs) -> Result<Option<(String, Sender)>, Failure> {
    let in_the_clear = match args.insecure {
        true => InTheClear::Anywhere,
        false => InTheClear::OnLoopback,
    };
    let variable = |name: &str| std::env::var(name).ok();
    let url = endpoint::choose(args.endpoint.as_deref(), variable, in_the_clear)?;
    let Some(url) = url else {
        return Ok(None);
    };
    let headers = endpoint::headers(&args.headers, variable)?;
    let network = NetworkConfig {
        ca_file: args.ca_file.clone(),
        ..NetworkConfig::default()
    };
    let shown = inert::whole(&url.to_string());
    let timeout = Duration::from_secs(args.timeout);
    let sender = Sender::new(url, &headers, &network, timeout)?;
    Ok(Some((shown, sender)))
}

/// The session, if it verifies and follows from its log.
fn admitted(args: &ExportArgs, dir: &SessionDir, app: &App) -> Result<Admitted, Failure> {
    let (operators, witnesses) = trust::pinned()?;
    let trust = Trust {
        log_keys: args.keys.resolve()?,
        operators: operators.keys(),
        witnesses,
    };
    let report = verify(dir, &trust, app)?;
    let replay = derive(&dir.project_log(), dir.session(), &trust.operators, None);
    let replay = match (replay, report.all_problems().next()) {
        (Ok(replay), _) => replay,
        // Of a log that is not intact, what is wrong with it is the better answer.
        (Err(_), Some(problem)) => {
            let problem = problem.to_string();
            return Err(NotAdmitted::NotIntact { problem }.into());
        }
        (Err(error), None) => return Err(error.into()),
    };
    Ok(admit(dir, &report, &replay)?)
}

/// Hands the spans out, batch by batch.
fn export(
    args: &ExportArgs,
    admitted: Admitted,
    mut hand_out: impl FnMut(Vec<SpanData>) -> Result<(), Failure>,
) -> Result<Exported, Failure> {
    let mut batch = Batch::default();
    let exported = project(admitted, args.ceiling, |span| match batch.push(span) {
        Some(complete) => hand_out(complete),
        None => Ok(()),
    })?;
    hand_out(batch.rest())?;
    Ok(exported)
}

fn say_unproven(exported: &Exported, state: lodestar_log::verify::SessionState, app: &App) {
    if exported.unproven > 0 {
        let events = words::count(exported.unproven, "event");
        app.note(format!(
            "the session is {state}: its last {events} are under no checkpoint yet and were left out"
        ));
    }
}

impl From<NotAdmitted> for Failure {
    fn from(error: NotAdmitted) -> Self {
        let help = match error {
            NotAdmitted::NotIntact { .. } => "`lodestar log verify` names every place",
            NotAdmitted::Differs { .. } => "`lodestar replay` names every difference",
            NotAdmitted::DefencesOff { .. } => "export a session of the product itself",
            NotAdmitted::NothingProven => "export it again in a moment",
            NotAdmitted::NotChecked(_) => "`lodestar log list` shows all sessions",
        };
        Self::check(error.to_string()).help(help)
    }
}

impl From<Unprojectable> for Failure {
    fn from(error: Unprojectable) -> Self {
        Self::check(error.to_string())
            .help("`lodestar log verify` says whether the log is still as it was written")
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Self {
        use lodestar_kernel::native::http::client::ServiceUrlError;
        let failure = Self::usage(error.to_string());
        match error {
            EndpointError::Url(ServiceUrlError::InTheClear { .. }) => {
                failure.help("--insecure sends in the clear all the same")
            }
            _ => failure,
        }
    }
}

/// What was sent before stays sent; it has the same ids when it comes again.
const AGAIN: &str = "run it again: what arrived already has the same ids";

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        let message = error.to_string();
        match error {
            SendError::Client(_) | SendError::Setup(_) => Self::usage(message),
            SendError::NotAuthorised { .. } => Self::not_authorised(message)
                .help("give them with --header, or in OTEL_EXPORTER_OTLP_HEADERS"),
            SendError::NotThere { .. } | SendError::Redirected { .. } => Self::not_found(message)
                .help("--endpoint is the receiver's URL, below which `v1/traces` lies"),
            SendError::NoReceiver { .. } => {
                Self::check(message).help("make sure that --endpoint leads to an OTLP receiver")
            }
            SendError::Unreached { .. }
            | SendError::Busy { .. }
            | SendError::Refused { .. }
            | SendError::Rejected { .. } => Self::check(message).help(AGAIN),
        }
    }
}
