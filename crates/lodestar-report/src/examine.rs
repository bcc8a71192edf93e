//! From a log to a report, or to what is wrong with it.
//!
//! The log is verified, then derived again, and only then read for the report. Of a log that fails
//! either, nothing is told but what is wrong and where: a forged story is not rendered.

pub(crate) mod elsewhere;

use std::collections::BTreeMap;
use std::io;

use lodestar_core::defence::Defence;
use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::verify::{ProjectReport, Remark, SessionReport, VerifyOptions, verify_project};
use lodestar_log::{Problem, ProjectLog, SessionDir, Trust};
use lodestar_replay::{Defences, DeriveError, ReplayError, SessionReplay, derive_seen};
use serde::Serialize;
use thiserror::Error;

use crate::fold::Fold;
use crate::graded::Graded;
use crate::limits::limits;
use crate::model::{
    Beliefs, FORMAT, Integrity, KeyUsed, Recovered, Redaction, Report, Session, Tally,
};
use crate::{answers, inert};

/// Why there is no report, and nothing is known of the log either.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file cannot be read.
    #[error("the log cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The log is another than the one that was verified a moment ago.
    #[error("the log changed while it was read; try again")]
    Changed,
}

/// What a log comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Projection {
    /// It holds, and this is what it says.
    Report(Box<Report>),
    /// It does not, or it is none to report on.
    Refused(Refused),
}

/// No report, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// [`FORMAT`].
    pub format: &'static str,
    /// Always there, and what tells a refusal from a report.
    pub refused: Refusal,
}

/// Why a session is not reported on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The project.
    pub project: ProjectId,
    /// The session.
    pub session: SessionId,
    /// Why, in a word.
    pub because: Because,
    /// Everything that is wrong.
    pub problems: Vec<Wrong>,
}

/// Why a session is not reported on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// Log or ledger are not as they were written.
    NotIntact,
    /// What the log says does not follow from it.
    DoesNotFollow,
    /// It was opened with defences taken out.
    DefencesOff,
    /// What its verdicts rest on is not there any more.
    Underivable,
}

impl Because {
    /// As people read it.
    pub fn shown(self) -> &'static str {
        match self {
            Self::NotIntact => {
                "The log is not as it was written. Nothing of what it says is shown here."
            }
            Self::DoesNotFollow => {
                "What the log says does not follow from it. Nothing of what it says is shown here."
            }
            Self::DefencesOff => {
                "The session was opened with defences taken out: a harness's world, which says nothing about this one."
            }
            Self::Underivable => {
                "What the session's verdicts rest on is not in its log any more, so nothing can be derived again."
            }
        }
    }
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The file, where one is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Where in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What is wrong, in words, inert.
    pub problem: String,
}

impl Wrong {
    fn said(problem: impl ToString) -> Self {
        Self {
            file: None,
            seq: None,
            offset: None,
            problem: inert::line(&problem.to_string(), MOST_SAID),
        }
    }
}

impl From<&Problem> for Wrong {
    fn from(problem: &Problem) -> Self {
        Self {
            file: Some(inert::line(&problem.file, MOST_SAID)),
            seq: problem.seq,
            offset: problem.offset,
            problem: inert::line(&problem.kind.to_string(), MOST_SAID),
        }
    }
}

/// Columns of a problem: what a forged log says must not be told by way of an error.
const MOST_SAID: usize = 300;

/// What to report on, and by whose keys.
#[derive(Debug)]
pub struct Examination<'a> {
    /// The session.
    pub dir: &'a SessionDir,
    /// The keys that count.
    pub trust: &'a Trust,
    /// Content that is more sensitive than this is left out.
    pub ceiling: Sensitivity,
}

impl Examination<'_> {
    /// Verifies the log, derives it again, and tells what it says.
    pub fn run(
        &self,
        progress: &dyn Fn(lodestar_log::verify::Progress<'_>),
    ) -> Result<Projection, ReportError> {
        self.run_without(&[], progress)
    }

    /// For a harness that takes [`Defence::ReportFromLog`] out: what the files say is told, whether or not
    /// the log holds and follows.
    pub fn run_without(
        &self,
        defences: &[Defence],
        progress: &dyn Fn(lodestar_log::verify::Progress<'_>),
    ) -> Result<Projection, ReportError> {
        let is_believed = defences.contains(&Defence::ReportFromLog);
        let log = self.dir.project_log();
        let believed = is_believed.then_some(Defence::LogVerification);
        // All sessions of the project: beliefs outlive sessions, so any of them can have a say in this one.
        let options = VerifyOptions {
            taken_out: believed.into_iter().collect(),
            ..VerifyOptions::default()
        };
        let project = verify_project(&log, self.trust, &options, progress)?;
        let wrong: Vec<Wrong> = project.all_problems().map(Wrong::from).collect();
        if !wrong.is_empty() {
            return Ok(self.refused(Because::NotIntact, wrong));
        }
        let Some(verified) = self.own(&project) else {
            let gone = Wrong::said("the ledger knows no such session, or its directory is gone");
            return Ok(self.refused(Because::NotIntact, vec![gone]));
        };
        // One that cannot tell cannot be derived either, which says more.
        if let Defences::Lacks(off) = Defences::of(self.dir)?
            && !is_believed
        {
            let off = Wrong {
                seq: Some(0),
                ..Wrong::said(format!("`defences_off` is {}", off.join(", ")))
            };
            return Ok(self.refused(Because::DefencesOff, vec![off]));
        }
        // What the fold gathers counts if everything follows, and not before.
        let mut fold = Fold::new(self.dir, verified.events, self.ceiling);
        let (session, operators) = (self.dir.session(), &self.trust.operators);
        let replay = derive_seen(
            &log,
            session,
            operators,
            None,
            verified.events,
            &mut |event, recorded, results| fold.see(event, recorded, results),
        );
        let replay = match replay {
            Ok(replay) => replay,
            Err(DeriveError::Replay(ReplayError::Io(problem))) => return Err(problem.into()),
            Err(problem) => {
                let wrong = vec![Wrong::said(problem)];
                return Ok(self.refused(Because::Underivable, wrong));
            }
        };
        if !replay.agrees() && !is_believed {
            let differs = replay.differences.iter().map(|one| Wrong {
                seq: Some(one.seq),
                ..Wrong::said(one)
            });
            return Ok(self.refused(Because::DoesNotFollow, differs.collect()));
        }
        let report = self.told(&log, &project, &replay, fold)?;
        Ok(Projection::Report(Box::new(report)))
    }

    /// What came of checking the session itself.
    fn own<'p>(&self, project: &'p ProjectReport) -> Option<&'p SessionReport> {
        let mut all = project.sessions.iter();
        all.find(|one| one.session == *self.dir.session())
    }

    fn refused(&self, because: Because, problems: Vec<Wrong>) -> Projection {
        Projection::Refused(Refused {
            format: FORMAT,
            refused: Refusal {
                project: self.dir.project().clone(),
                session: self.dir.session().clone(),
                because,
                problems,
            },
        })
    }

    fn told(
        &self,
        log: &ProjectLog,
        project: &ProjectReport,
        replay: &SessionReplay,
        mut fold: Fold<'_>,
    ) -> Result<Report, ReportError> {
        let verified = self.own(project).ok_or(ReportError::Changed)?;
        if !fold.has_seen(verified) {
            return Err(ReportError::Changed);
        }
        let left_out = elsewhere::moved(self, log, project, &mut fold)?;
        fold.settle();
        let hostile = fold.retained()?;
        let ticket = fold.opening().and_then(|opening| opening.run);
        let graded = Graded::read(self.dir, self.trust, ticket, verified);
        let mut answers = answers::answers(&fold, verified, &graded);
        elsewhere::cite(&mut answers.untrusted_became_trusted, &fold.beliefs);
        let limits = limits(&fold, verified, self.dir, &left_out, &graded);
        let integrity = self.integrity(project, verified, replay, &fold);
        let opened_at = fold.opened_at.ok_or(ReportError::Changed)?;
        let sensitivity = fold.default_sensitivity();
        Ok(Report {
            format: FORMAT,
            ceiling: self.ceiling,
            session: Session {
                project: self.dir.project().clone(),
                id: self.dir.session().clone(),
                state: verified.state,
                purpose: fold.purpose,
                actor: fold.actor,
                opened_at,
                last_at: fold.last_at.unwrap_or(opened_at),
                sensitivity,
                policy: fold.policy,
                calibration: fold.calibration,
                tasks: fold.tasks,
                halted: fold.halted,
                closed: fold.closed,
            },
            answers,
            counts: fold.counts,
            actions: fold.actions,
            requests: fold.requests,
            refused_calls: fold.refused_calls,
            forged: fold.forged,
            beliefs: Beliefs {
                tally: Tally::of(&fold.beliefs),
                list: fold.beliefs,
            },
            decisions: fold.decisions,
            hostile,
            alerts: fold.alerts,
            drift: fold.drift,
            servers: fold.servers,
            calibrations: fold.calibrations,
            execution: graded.into_execution(),
            integrity,
            limits,
        })
    }

    fn integrity(
        &self,
        project: &ProjectReport,
        verified: &SessionReport,
        replay: &SessionReplay,
        fold: &Fold<'_>,
    ) -> Integrity {
        let mut taken: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for gone in &fold.redacted {
            taken.entry(gone.by).or_default().push(gone.seq);
        }
        let mut redactions = Vec::new();
        let mut recovered = Vec::new();
        let mut remarks = Vec::new();
        for remark in verified.remarks.iter().chain(&project.remarks) {
            match remark {
                Remark::Redacted {
                    redaction,
                    events,
                    operator,
                    reason,
                } => redactions.push(Redaction {
                    seq: *redaction,
                    payloads: *events,
                    events: taken.remove(redaction).unwrap_or_default(),
                    operator: operator.clone(),
                    reason: crate::bounded::bounded(reason, crate::bounded::TEXT),
                }),
                Remark::Recovered { seq, bytes, .. } => recovered.push(Recovered {
                    seq: *seq,
                    bytes: *bytes,
                }),
                other => remarks.push(other.to_string()),
            }
        }
        let key = |signs: &'static str| {
            move |key: &lodestar_core::key::PublicKey| KeyUsed {
                signs,
                key: key.key_id().as_str().to_owned(),
            }
        };
        let log_keys = self.trust.log_keys.iter().map(key("checkpoints"));
        // An operator's key verified something where something was redacted.
        let operators = self.trust.operators.iter().map(key("redactions"));
        let operators = operators.filter(|_| !redactions.is_empty());
        let keys = log_keys.chain(operators).collect();
        let checkpoint = std::fs::read_to_string(self.dir.checkpoint_path());
        Integrity {
            events: verified.events,
            root: verified.root,
            proven: verified.proven,
            checkpoint: checkpoint.ok().filter(|note| note.len() < 64 << 10),
            keys,
            ledger_records: project.ledger_records,
            ledger_root: project.ledger_root,
            verdicts_again: replay.verdicts,
            answers_again: replay.answers,
            clearances_again: replay.clearances,
            beliefs_again: replay.beliefs,
            redactions,
            recovered,
            remarks,
        }
    }
}
