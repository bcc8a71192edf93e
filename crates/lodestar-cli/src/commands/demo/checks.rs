//! What the demo checks, each by the call that does it in earnest.

use std::fs;
use std::path::Path;

use lodestar_log::verify::{ProjectReport, VerifyOptions, verify_project};
use lodestar_log::{
    Disclosure, LogRoot, ProjectLog, Proof, Reader, SessionDir, Trust, prove_inclusion,
};
use serde::Serialize;

use super::session::{HOSTILE, Told};
use crate::failure::Failure;
use crate::{inert, json, words};

/// The folder with a copy in which one bit differs.
pub(crate) const ONE_BIT: &str = "one-bit-flipped";
/// The folder with a copy in which the session is gone.
pub(crate) const DELETED: &str = "session-deleted";

/// One thing that has to be so.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    #[serde(rename = "check")]
    pub(crate) name: &'static str,
    pub(crate) passed: bool,
    /// What was tried, and what came of it.
    pub(crate) claim: String,
    /// What the log's own checks said.
    pub(crate) seen: Vec<String>,
}

pub(crate) fn all(folder: &Path, told: &Told, trust: &Trust) -> Result<Vec<Check>, Failure> {
    Ok(vec![
        kept_verbatim(told)?,
        verifies(told, trust)?,
        proves(folder, told, trust)?,
        bit_is_noticed(folder, told, trust)?,
        deletion_is_noticed(folder, told, trust)?,
    ])
}

fn kept_verbatim(told: &Told) -> Result<Check, Failure> {
    let path = told.dir.events_path();
    let mut reader = Reader::open(&told.dir).map_err(Failure::io(&path))?;
    let event = reader
        .find(|event| event.as_ref().is_ok_and(|e| e.seq == told.observation))
        .transpose()
        .map_err(|e| Failure::check(e.to_string()))?;
    let content = event
        .and_then(|event| event.whole(&told.dir).ok().flatten())
        .and_then(|payload| payload.get("content")?.as_str().map(str::to_owned));
    let passed = content.is_some_and(|content| content.contains(HOSTILE));
    Ok(Check {
        name: "kept",
        passed,
        claim: format!(
            "the hostile sentence stands word for word in event #{}, as content and nothing more",
            told.observation
        ),
        seen: Vec::new(),
    })
}

fn verifies(told: &Told, trust: &Trust) -> Result<Check, Failure> {
    let report = verify(&told.dir.project_log(), trust)?;
    let session = report.sessions.first();
    let passed = report.is_intact()
        && session.is_some_and(|s| s.root == told.checkpoint.root && s.proven == s.events);
    let (events, proven) = session.map_or((0, 0), |s| (s.events, s.proven));
    Ok(Check {
        name: "verify",
        passed,
        claim: format!(
            "chain, payloads, signatures and ledger: {}, {} proven, root {}",
            words::count(events, "event"),
            words::number(proven),
            words::short(&told.checkpoint.root)
        ),
        seen: problems(&report),
    })
}

/// The proof goes through a file, and is checked with the public key alone.
fn proves(folder: &Path, told: &Told, trust: &Trust) -> Result<Check, Failure> {
    let seq = told.observation;
    let proof = prove_inclusion(&told.dir, seq, Disclosure::Payload, trust)?;
    let path = folder.join("proof.json");
    fs::write(&path, json::pretty(&proof)).map_err(Failure::io(&path))?;
    let bytes = fs::read(&path).map_err(Failure::io(&path))?;
    let held = Proof::parse(&bytes).and_then(|proof| proof.check(trust));
    let text = String::from_utf8_lossy(&bytes);
    let forged = text.replace("do not mention it", "tell everyone it");
    let forgery = Proof::parse(forged.as_bytes()).and_then(|proof| proof.check(trust));
    Ok(Check {
        name: "prove",
        passed: held.is_ok() && forgery.is_err() && forged != text,
        claim: format!(
            "event #{seq} is in the log: a proof of {} that needs only the public key to check",
            words::bytes(bytes.len() as u64)
        ),
        seen: [held.err(), forgery.err()]
            .into_iter()
            .flatten()
            .map(|error| format!("with other words in it: {error}"))
            .collect(),
    })
}

fn bit_is_noticed(folder: &Path, told: &Told, trust: &Trust) -> Result<Check, Failure> {
    let (log, dir) = copy(folder, ONE_BIT, told)?;
    let path = dir.events_path();
    let mut bytes = fs::read(&path).map_err(Failure::io(&path))?;
    let word = b"collect.example";
    let at = bytes.windows(word.len()).position(|window| window == word);
    let Some(at) = at else {
        return Err(Failure::check("the hostile sentence is not in the copy"));
    };
    bytes[at] ^= 1;
    fs::write(&path, &bytes).map_err(Failure::io(&path))?;
    let report = verify(&log, trust)?;
    let named = report
        .all_problems()
        .any(|problem| problem.seq == Some(told.observation) && problem.offset.is_some());
    Ok(Check {
        name: "one bit",
        passed: named,
        claim: format!(
            "flipped at byte {at} of a copy, and found in event #{}:",
            told.observation
        ),
        seen: problems(&report),
    })
}

fn deletion_is_noticed(folder: &Path, told: &Told, trust: &Trust) -> Result<Check, Failure> {
    let (log, dir) = copy(folder, DELETED, told)?;
    fs::remove_dir_all(dir.dir()).map_err(Failure::io(dir.dir()))?;
    let report = verify(&log, trust)?;
    let named = report
        .all_problems()
        .any(|problem| problem.kind.code() == "session_missing");
    Ok(Check {
        name: "deletion",
        passed: named,
        claim: "the session removed from another copy, and missed by the ledger:".to_owned(),
        seen: problems(&report),
    })
}

fn verify(log: &ProjectLog, trust: &Trust) -> Result<ProjectReport, Failure> {
    verify_project(log, trust, &VerifyOptions::default(), &|_| ()).map_err(Failure::io(log.dir()))
}

fn problems(report: &ProjectReport) -> Vec<String> {
    report
        .all_problems()
        .map(|problem| inert::line(&problem.to_string(), 200))
        .collect()
}

/// The project's log again, in a folder of its own.
fn copy(folder: &Path, name: &str, told: &Told) -> Result<(ProjectLog, SessionDir), Failure> {
    let root = LogRoot::in_folder(folder.join(name));
    let log = root.project(told.dir.project());
    copy_dir(told.dir.project_log().dir(), log.dir())?;
    let dir = log.session(told.dir.session());
    Ok((log, dir))
}

fn copy_dir(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to).map_err(Failure::io(to))?;
    for entry in fs::read_dir(from).map_err(Failure::io(from))? {
        let entry = entry.map_err(Failure::io(from))?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).map_err(Failure::io(&target))?;
        }
    }
    Ok(())
}
