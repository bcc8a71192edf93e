//! Copies of the log that somebody meddled with.

use std::fs;
use std::path::Path;

use lodestar_core::defence::Defence;
use lodestar_log::verify::{ProjectReport, VerifyOptions, verify_project};
use lodestar_log::{LogRoot, ProjectLog, SessionDir, Trust};

use super::scene::{MARKER, Scene};
use crate::failure::Failure;
use crate::inert;

/// The folder with a copy in which one bit differs.
pub(super) const ONE_BIT: &str = "one-bit-flipped";
/// The folder with a copy in which the session is gone.
pub(super) const DELETED: &str = "session-deleted";

/// Verifies logs, if it is let.
pub(super) struct Verifier<'a> {
    pub(super) trust: Trust,
    pub(super) without: &'a [Defence],
}

impl Verifier<'_> {
    pub(super) fn verify(&self, log: &ProjectLog) -> Result<ProjectReport, Failure> {
        let options = VerifyOptions {
            taken_out: self.without.iter().copied().collect(),
            ..VerifyOptions::default()
        };
        verify_project(log, &self.trust, &options, &|_| ()).map_err(Failure::io(log.dir()))
    }

    /// A bit of what the poison says is flipped; the event that says it is named.
    pub(super) fn flipped_bit(&self, scene: &Scene) -> Result<ProjectReport, Failure> {
        let (log, dir) = copy(scene, ONE_BIT)?;
        let path = dir.events_path();
        let mut bytes = fs::read(&path).map_err(Failure::io(&path))?;
        let word = MARKER.as_bytes();
        let at = bytes.windows(word.len()).position(|window| window == word);
        let at = at.ok_or_else(|| Failure::check("the poison is not in the log"))?;
        bytes[at] ^= 1;
        fs::write(&path, &bytes).map_err(Failure::io(&path))?;
        self.verify(&log)
    }

    /// The session is removed.
    pub(super) fn deleted(&self, scene: &Scene) -> Result<ProjectReport, Failure> {
        let (log, dir) = copy(scene, DELETED)?;
        fs::remove_dir_all(dir.dir()).map_err(Failure::io(dir.dir()))?;
        self.verify(&log)
    }
}

/// What is wrong, first.
pub(super) fn problem(report: &ProjectReport) -> Option<String> {
    let problem = report.all_problems().next()?;
    Some(inert::line(&problem.to_string(), 160))
}

/// The project's log again, in a folder of its own.
fn copy(scene: &Scene, name: &str) -> Result<(ProjectLog, SessionDir), Failure> {
    let original = scene.session();
    let root = LogRoot::in_folder(scene.beside(name));
    let log = root.project(original.project());
    copy_dir(original.project_log().dir(), log.dir())?;
    let dir = log.session(original.session());
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
