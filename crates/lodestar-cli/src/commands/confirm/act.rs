//! The act that is confirmed: exactly what a session would propose.

use std::path::Path;

use lodestar_core::canonical;
use lodestar_core::contract::arguments;
use lodestar_core::fingerprint::{Fingerprint, FingerprintFields, NormalPath};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, SessionId, ToolName};
use lodestar_guard::config::{Config, SessionName as Configured};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::place::{LATEST, Place, SessionName};
use crate::{files, inert};

/// An act that was named on the command line.
pub(super) struct Named {
    pub(super) fields: FingerprintFields,
    pub(super) fingerprint: Fingerprint,
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
        Ok(Self {
            fingerprint: fields.fingerprint().map_err(|e| unfit(e.to_string()))?,
            fields,
            rung: record.contract.required_level,
        })
    }
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
        ))),
        Err(problem) => Err(Failure::usage(format!("`{shown}`: {problem}"))),
    }
}

/// The session that is meant. One that the configuration names need not be there yet.
pub(super) fn session(config: &Config, asked: Option<&str>) -> Result<SessionId, Failure> {
    if let (None, Configured::Given(session)) = (asked, &config.session_id) {
        return Ok(session.clone());
    }
    let name = SessionName::parse(asked.unwrap_or(LATEST))?;
    let place = Place::find(Some(config.root()), Some(config.project_id.as_str()))?;
    Ok(place.session(&name)?.session().clone())
}
