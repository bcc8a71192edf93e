//! The act that is confirmed: exactly what a session would propose.

use std::collections::BTreeSet;
use std::path::Path;

use lodestar_core::canonical;
use lodestar_core::contract::arguments;
use lodestar_core::fingerprint::{Fingerprint, FingerprintFields, NormalPath};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, SessionId, ToolName};
use lodestar_guard::config::{Config, SessionName as Configured};
use lodestar_log::{Ledger, LedgerState, LogRoot, Reader, SessionDir, Trust};
use lodestar_policy::confirmation::found_by;
use serde_json::{Map, Value};

use crate::failure::{Exit, Failure};
use crate::place::{LATEST, Place, SessionName};
use crate::{files, inert};

const EXAMPLE: &str = "arguments look like this: {\"path\": \"out.md\", \"content\": \"done\"}";

/// An act that was named on the command line.
pub(super) struct Named {
    pub(super) fields: FingerprintFields,
    pub(super) fingerprint: Fingerprint,
    /// What a session finds a confirmation of it by.
    pub(super) found_by: Fingerprint,
    pub(super) rung: Rung,
}

impl Named {
    pub(super) fn read(config: &Config, tool: &str, file: &Path) -> Result<Self, Failure> {
        let shown = Excerpt::of(tool);
        let tool = ToolName::new(tool).map_err(|e| Failure::usage(format!("--tool: {e}")))?;
        let registry = config.registry()?;
        let entry = registry.get(&tool).ok_or_else(|| {
            Failure::not_found(format!("the configuration has no tool `{shown}`"))
                .help("`lodestar tools list` shows those it has")
        })?;
        let record = entry.record();
        let arguments = read(file)?;
        let unfit = |problem: String| {
            let file = inert::path(file);
            Failure::usage(format!("`{file}`: {problem}"))
        };
        let whole = config.root().to_str().and_then(|r| NormalPath::new(r).ok());
        let root = record.root.as_ref().or(whole.as_ref());
        let paths = arguments::paths(&arguments, &record.shape.roles, root)
            .map_err(|e| unfit(e.to_string()))?;
        let fields = FingerprintFields::under(
            &record.contract,
            record.shape.server.clone(),
            tool,
            record.definition,
            arguments,
            paths,
        )
        .map_err(|e| unfit(e.to_string()))?;
        let schema = &record.shape.input_schema;
        if let Some(problem) = not_in_schema(&fields.arguments, schema) {
            return Err(unfit(problem).help(
                "a session refuses such a call before anybody is asked; correct the arguments",
            ));
        }
        let roles = &record.shape.roles;
        Ok(Self {
            fingerprint: fields.fingerprint().map_err(|e| unfit(e.to_string()))?,
            found_by: found_by(&fields, roles).map_err(|e| unfit(e.to_string()))?,
            fields,
            rung: record.contract.required_level,
        })
    }
}

/// What is wrong with arguments at first sight: one that is required and missing, one that is not known, or
/// one of another type.
fn not_in_schema(arguments: &Map<String, Value>, schema: &Value) -> Option<String> {
    let required = schema["required"].as_array().into_iter().flatten();
    let mut required = required.filter_map(Value::as_str);
    if let Some(missing) = required.find(|name| !arguments.contains_key(*name)) {
        return Some(format!("the argument `{missing}` is missing"));
    }
    let properties = schema["properties"].as_object()?;
    let is_closed = schema["additionalProperties"] == Value::Bool(false);
    arguments.iter().find_map(|(name, value)| {
        let shown = Excerpt::of(name);
        match properties.get(name) {
            None if is_closed => Some(format!("the tool has no argument `{shown}`")),
            None => None,
            Some(property) => {
                let wanted = property["type"].as_str()?;
                let fits = match wanted {
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "array" => value.is_array(),
                    "object" => value.is_object(),
                    "null" => value.is_null(),
                    "number" => value.is_number(),
                    "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
                    _ => true,
                };
                (!fits).then(|| format!("the argument `{shown}` is no {wanted}"))
            }
        }
    })
}

/// The arguments as a session parses them: read back from their canonical form.
fn read(file: &Path) -> Result<Map<String, Value>, Failure> {
    let bytes = files::read(file, files::SMALL)?;
    let parsed = canonical::parse(&bytes)
        .and_then(|value| canonical::to_vec(&value))
        .and_then(|bytes| canonical::parse(&bytes));
    let shown = inert::path(file);
    match parsed {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(Failure::usage(format!(
            "`{shown}` has no JSON object in it, and arguments are one"
        ))
        .help(EXAMPLE)),
        Err(problem) => Err(Failure::usage(format!("`{shown}`: {problem}")).help(EXAMPLE)),
    }
}

/// The session that is meant. One that the configuration names need not be there yet.
pub(super) fn session(config: &Config, asked: Option<&str>) -> Result<SessionId, Failure> {
    if let (None, Configured::Given(session)) = (asked, &config.session_id) {
        let log = LogRoot::at(config.path(&config.log_root)).project(&config.project_id);
        still_open(&log.session(session))?;
        return Ok(session.clone());
    }
    let name = SessionName::parse(asked.unwrap_or(LATEST))?;
    let place = Place::find(Some(config.root()), Some(config.project_id.as_str()))?;
    let session = place.session(&name).map_err(|failure| match failure.exit {
        Exit::NotFound => failure.help(
            "a session that is confirmed for exists already, or is named by `session_id` in the configuration",
        ),
        _ => failure,
    })?;
    still_open(&session)?;
    Ok(session.session().clone())
}

/// Refuses a session that is over: nothing is held in it any more.
fn still_open(dir: &SessionDir) -> Result<(), Failure> {
    let log = dir.project_log();
    if !log.ledger_path().exists() {
        return Ok(());
    }
    let (ledger, _) =
        Ledger::read(&log, &Trust::default(), &BTreeSet::new()).map_err(Failure::io(log.dir()))?;
    let facts = ledger.session(dir.session());
    let is_closed = facts.is_some_and(|facts| matches!(facts.state, LedgerState::Closed(_)));
    if is_closed && !left_requests(dir) {
        return Err(Failure::check(format!(
            "session `{}` is over, and nothing is held in it any more; nothing was signed",
            dir.session()
        ))
        .help("name the session that is going to make the call with --session"));
    }
    Ok(())
}

/// Whether a session ended with requests open: then it may be taken up again.
fn left_requests(dir: &SessionDir) -> bool {
    let last = Reader::open(dir)
        .ok()
        .and_then(|events| events.last()?.ok());
    let closing = last.and_then(|event| event.whole(dir).ok()?);
    let open = closing
        .as_ref()
        .and_then(|said| said.get("open_requests")?.as_array());
    open.is_some_and(|open| !open.is_empty())
}
