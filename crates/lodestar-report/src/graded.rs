//! The grade of a run, as it lies beside the log: read, and held against the log that it is of.

use lodestar_core::execution::ExecutionFact;
use lodestar_core::statement::{Envelope, RunGrade};
use lodestar_kernel::opening::RunTicket;
use lodestar_log::verify::SessionReport;
use lodestar_log::{SessionDir, Trust};

use crate::bounded::{TEXT, bounded};
use crate::model::{Execution, Fact};

/// A grade takes a few thousand bytes.
const MOST: u64 = 64 << 10;

/// What is known of the run that a session was.
pub(crate) enum Graded {
    /// It was none.
    NoRun,
    /// It was one, and nothing of what a gateway said is kept here.
    Ungraded(RunTicket),
    /// Something is kept, and does not count.
    Refused(String),
    /// A gateway said this.
    Said(Box<Execution>),
}

impl Graded {
    pub(crate) fn read(
        dir: &SessionDir,
        trust: &Trust,
        ticket: Option<RunTicket>,
        verified: &SessionReport,
    ) -> Self {
        let Some(ticket) = ticket else {
            return Self::NoRun;
        };
        match dir.read_grade(MOST) {
            Ok(None) => Self::Ungraded(ticket),
            Ok(Some(bytes)) => match counted(&bytes, dir, trust, ticket, verified) {
                Ok(grade) => Self::Said(Box::new(told(grade))),
                Err(why) => Self::Refused(why),
            },
            // It lies beside the log and is no part of it: what cannot be read says nothing.
            Err(problem) => Self::Refused(problem.to_string()),
        }
    }

    pub(crate) fn into_execution(self) -> Option<Execution> {
        match self {
            Self::Said(execution) => Some(*execution),
            _ => None,
        }
    }
}

/// A grade that is of this log as it stands, and that nobody changed.
fn counted(
    bytes: &[u8],
    dir: &SessionDir,
    trust: &Trust,
    ticket: RunTicket,
    verified: &SessionReport,
) -> Result<RunGrade, String> {
    let envelope = Envelope::from_json(bytes).map_err(|problem| problem.to_string())?;
    let read = envelope.verify_undated::<RunGrade>(&trust.log_keys);
    let grade = read
        .map_err(|problem| problem.to_string())?
        .subject()
        .clone();
    if grade.project != *dir.project() || grade.session != *dir.session() || grade.run != ticket.id
    {
        return Err("it is of another session".to_owned());
    }
    if grade.size != verified.events || grade.root != verified.root {
        return Err(format!(
            "it is of the log when it had {} events, and it has {} now",
            grade.size, verified.events
        ));
    }
    Ok(grade)
}

fn told(grade: RunGrade) -> Execution {
    let held = grade.evaluation.held();
    let fact = |fact: &ExecutionFact| Fact {
        fact: *fact,
        held: held.contains(*fact),
    };
    Execution {
        run: grade.run,
        gateway: bounded(&grade.gateway, TEXT),
        account: grade.account,
        device: grade.device,
        attestation: grade.attestation,
        evaluation: grade.evaluation_id,
        evaluated_at: grade.evaluated_at,
        level: grade.evaluation.level(),
        facts: ExecutionFact::ALL.iter().map(fact).collect(),
        stopped_by: grade.evaluation.stopped_by(),
        reason: grade.reason.map(|reason| bounded(&reason, TEXT)),
    }
}
