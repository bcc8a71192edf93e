//! The latest calibration that a person had computed, as far as its record holds.

use lodestar_core::calibration::CalibrationReport;
use lodestar_core::event::EventType;
use lodestar_core::name::SessionId;
use lodestar_log::verify::verify_session;
use lodestar_log::{ProjectLog, Reader, SessionDir, SessionFacts, Trust};
use serde::{Deserialize, Serialize};

use crate::follow::{Refused, ReplayError, ledger};

/// How the names of sessions begin in which somebody measured: so the ledger, which is signed, says where to
/// look, and an edited session cannot hide among others.
pub const CALIBRATION_SESSIONS: &str = "cal";

/// What such a session says it is for.
pub const CALIBRATION_PURPOSE: &str = "a calibration";

/// `calibration.computed@1`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// What was measured.
    #[serde(flatten)]
    pub report: CalibrationReport,
    /// From how many sessions.
    pub sessions: u64,
    /// Those that did not count, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
}

/// A measurement, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// In which session.
    pub session: SessionId,
    /// At which event.
    pub seq: u64,
    /// What it says.
    pub computed: Computed,
}

/// What a project's logs have of calibration.
#[derive(Debug, Default, PartialEq)]
pub struct Latest {
    /// The latest whose record holds.
    pub measured: Option<Measured>,
    /// Later ones that do not count, and why.
    pub ignored: Vec<Refused>,
}

/// Finds the latest calibration of a project. Sessions after it that do not verify are named: whoever goes by
/// calibrations decides what follows from that.
pub fn latest(log: &ProjectLog, trust: &Trust) -> Result<Latest, ReplayError> {
    let mut latest = Latest::default();
    if !log.ledger_path().exists() {
        return Ok(latest);
    }
    let ledger = ledger(log, trust)?;
    let is_one = |session: &SessionId| {
        let rest = session.as_str().strip_prefix(CALIBRATION_SESSIONS);
        rest.is_some_and(|rest| rest.starts_with('-'))
    };
    for (session, facts) in ledger.sessions().into_iter().rev() {
        if !is_one(session) {
            continue;
        }
        let dir = log.session(session);
        match computed(&dir, facts, trust) {
            Ok(Some((seq, computed))) => {
                latest.measured = Some(Measured {
                    session: session.clone(),
                    seq,
                    computed,
                });
                break;
            }
            Ok(None) => {}
            Err(reason) => latest.ignored.push(Refused {
                session: session.to_string(),
                reason,
            }),
        }
    }
    Ok(latest)
}

/// The last measurement of a session, if the session holds and somebody measured in it.
fn computed(
    dir: &SessionDir,
    facts: &SessionFacts,
    trust: &Trust,
) -> Result<Option<(u64, Computed)>, String> {
    if !dir.dir().is_dir() {
        return Err("its directory is gone".to_owned());
    }
    let report = verify_session(dir, Some(facts), trust, &|_| ());
    let report = report.map_err(|problem| problem.to_string())?;
    if let Some(problem) = report.problems.first() {
        return Err(problem.to_string());
    }
    if report.events == 0 {
        // Its start was interrupted: nobody measured.
        return Ok(None);
    }
    let reader = Reader::open(dir).map_err(|problem| problem.to_string())?;
    let mut found = None;
    for event in reader {
        let event = event.map_err(|problem| problem.to_string())?;
        let kind = EventType::parse(event.kind.as_bytes());
        let is_opening = kind == Some(EventType::SESSION_OPENED);
        if !is_opening && kind != Some(EventType::CALIBRATION_COMPUTED) {
            continue;
        }
        let payload = event.whole(dir).map_err(|problem| problem.to_string())?;
        let payload = payload.ok_or("it was redacted")?;
        if is_opening {
            // A session of an agent, whatever its name, measures nothing.
            if payload.get("purpose").and_then(|it| it.as_str()) != Some(CALIBRATION_PURPOSE) {
                return Ok(None);
            }
            continue;
        }
        let computed: Computed =
            serde_json::from_value(payload).map_err(|problem| problem.to_string())?;
        found = Some((event.seq, computed));
    }
    Ok(found)
}
