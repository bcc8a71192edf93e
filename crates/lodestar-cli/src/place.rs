//! Where the log is, and which session is meant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::time::Timestamp;
use lodestar_log::{Ledger, LogRoot, ProjectLog, SessionDir, Trust};

use crate::failure::Failure;
use crate::inert;

/// Names in an error that helps to choose.
const MOST_NAMED: usize = 10;
/// The session that was opened last.
pub(crate) const LATEST: &str = "latest";

/// How names of sessions begin that people open: orders about beliefs and logs, calibrations, what is
/// undone.
const BY_PEOPLE: [&str; 3] = ["op-", "cal-", "undo-"];

/// How a session is named on the command line: parsed before anything on disk is looked at.
#[derive(Debug, Clone)]
pub(crate) enum SessionName {
    Latest,
    /// A whole id, or its beginning: the beginning of a valid id is itself one.
    Id(SessionId),
}

impl SessionName {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        match text {
            LATEST => Ok(Self::Latest),
            text => SessionId::new(text)
                .map(Self::Id)
                .map_err(|e| Failure::name("session", &e)),
        }
    }
}

/// The projects a command is about.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) projects: Vec<ProjectLog>,
}

/// One session on disk or in a ledger.
#[derive(Clone)]
struct Candidate {
    log: ProjectLog,
    session: SessionId,
    /// Opening time and ledger record; `None` for a directory the ledger does not know.
    opened: Option<(Timestamp, u64)>,
}

impl Candidate {
    fn shown(&self) -> String {
        format!("{}/{}", self.log.project(), self.session)
    }
}

impl Place {
    /// Finds the log, and narrows it to one project where one is named.
    pub(crate) fn find(root: Option<&Path>, project: Option<&str>) -> Result<Self, Failure> {
        // Before anything on disk is looked at.
        let wanted = project
            .map(|name| ProjectId::new(name).map_err(|e| Failure::name("project", &e)))
            .transpose()?;
        let folder = match root {
            Some(root) => given_root(root)?,
            None => nearest_root()?,
        };
        let root = LogRoot::in_folder(&folder);
        let all = root.projects().map_err(Failure::io(root.dir()))?;
        let projects: Vec<ProjectLog> = all
            .iter()
            .filter(|project| wanted.as_ref().is_none_or(|wanted| *project == wanted))
            .map(|project| root.project(project))
            .collect();
        match (projects.is_empty(), wanted) {
            (false, _) => Ok(Self { folder, projects }),
            (true, None) => Err(Failure::not_found(format!(
                "no session was ever logged in `{}`",
                inert::path(&folder)
            ))),
            (true, Some(wanted)) => Err(Failure::not_found(format!(
                "there is no project `{wanted}` in `{}`",
                inert::path(&folder)
            ))
            .help(format!("projects here: {}", listed(all.iter())))),
        }
    }

    /// Finds the project that something is to be written to. One that is named need not be there yet.
    pub(crate) fn to_write(root: Option<&Path>, project: Option<&str>) -> Result<Self, Failure> {
        let Some(name) = project else {
            return Self::find(root, None);
        };
        let name = ProjectId::new(name).map_err(|e| Failure::name("project", &e))?;
        let folder = match root {
            Some(root) => given_root(root)?,
            None => nearest_root()?,
        };
        let projects = vec![LogRoot::in_folder(&folder).project(&name)];
        Ok(Self { folder, projects })
    }

    /// The one project, for commands that work on one ledger.
    pub(crate) fn only_project(&self) -> Result<&ProjectLog, Failure> {
        match self.projects.as_slice() {
            [one] => Ok(one),
            several => Err(
                Failure::usage("there are several projects here").help(format!(
                    "say which with --project: {}",
                    listed(several.iter().map(ProjectLog::project))
                )),
            ),
        }
    }

    /// The session with this id, this beginning of an id, or the latest.
    pub(crate) fn session(&self, name: &SessionName) -> Result<SessionDir, Failure> {
        let found = match name {
            SessionName::Latest => self.latest()?,
            SessionName::Id(id) => self.named(id)?,
        };
        Ok(found.log.session(&found.session))
    }

    /// A session that can be read.
    pub(crate) fn readable_session(&self, name: &SessionName) -> Result<SessionDir, Failure> {
        let dir = self.session(name)?;
        if dir.dir().is_dir() {
            return Ok(dir);
        }
        Err(Failure::not_found(format!(
            "session `{}` stands in the ledger, but its directory is gone",
            dir.session()
        ))
        .help("`lodestar log verify` says what else is missing"))
    }

    /// The same, where `latest` is the latest that an agent had. What a person did at a command line is a session
    /// of its own, with nothing in it that anybody would ask about an agent.
    pub(crate) fn readable_session_of_an_agent(
        &self,
        name: &SessionName,
    ) -> Result<SessionDir, Failure> {
        let by_a_person = |candidate: &Candidate| {
            let name = candidate.session.as_str();
            BY_PEOPLE.iter().any(|prefix| name.starts_with(prefix))
        };
        if let SessionName::Latest = name {
            let known = self.candidates()?.into_iter();
            let latest = known
                .filter(|candidate| candidate.opened.is_some() && !by_a_person(candidate))
                .max_by_key(|candidate| candidate.opened);
            if let Some(latest) = latest {
                return self.readable_session(&SessionName::Id(latest.session));
            }
        }
        self.readable_session(name)
    }

    /// Every session that is here, the latest first.
    pub(crate) fn sessions_latest_first(&self) -> Result<Vec<SessionDir>, Failure> {
        let mut all = self.candidates()?;
        all.retain(|candidate| candidate.opened.is_some());
        all.sort_by_key(|candidate| std::cmp::Reverse(candidate.opened));
        let dirs = all.into_iter().map(|one| one.log.session(&one.session));
        Ok(dirs.filter(|dir| dir.dir().is_dir()).collect())
    }

    fn latest(&self) -> Result<Candidate, Failure> {
        let known = self.candidates()?.into_iter();
        known
            .filter(|candidate| candidate.opened.is_some())
            .max_by_key(|candidate| candidate.opened)
            .ok_or_else(|| Failure::not_found("no session was ever opened here"))
    }

    fn named(&self, wanted: &SessionId) -> Result<Candidate, Failure> {
        let all = self.candidates()?;
        let exact: Vec<&Candidate> = all.iter().filter(|c| c.session == *wanted).collect();
        let matching = if exact.is_empty() {
            let begins = |c: &&Candidate| c.session.as_str().starts_with(wanted.as_str());
            all.iter().filter(begins).collect()
        } else {
            exact
        };
        match matching.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(
                Failure::not_found(format!("there is no session `{wanted}` here"))
                    .help("`lodestar log list` shows all sessions"),
            ),
            several => Err(Failure::usage(format!(
                "`{wanted}` could be any of {} sessions",
                several.len()
            ))
            .help(format!(
                "give more of the id, or --project: {}",
                listed(several.iter().map(|c| c.shown()))
            ))),
        }
    }

    fn candidates(&self) -> Result<Vec<Candidate>, Failure> {
        let mut all = Vec::new();
        for log in &self.projects {
            // Only names and order are taken from it; whether it is intact is for `verify` to say.
            let (ledger, _) = Ledger::read(log, &Trust::default(), &BTreeSet::new())
                .map_err(Failure::io(log.ledger_path()))?;
            all.extend(
                ledger
                    .sessions()
                    .into_iter()
                    .map(|(session, facts)| Candidate {
                        log: log.clone(),
                        session: session.clone(),
                        opened: Some((facts.opened_at, facts.opened_seq)),
                    }),
            );
            let on_disk = log.sessions_on_disk().map_err(Failure::io(log.dir()))?;
            let unknown = on_disk.into_iter().filter(|s| ledger.session(s).is_none());
            all.extend(unknown.map(|session| Candidate {
                log: log.clone(),
                session,
                opened: None,
            }));
        }
        Ok(all)
    }
}

/// The folder that holds `.lodestar/`: the one that was named, or the nearest.
pub(crate) fn folder(root: Option<&Path>) -> Result<PathBuf, Failure> {
    match root {
        Some(root) => given_root(root),
        None => nearest_root(),
    }
}

fn given_root(root: &Path) -> Result<PathBuf, Failure> {
    if root.join(".lodestar").is_dir() {
        return Ok(root.to_owned());
    }
    Err(Failure::not_found(format!(
        "there is no `.lodestar/` in `{}`",
        inert::path(root)
    ))
    .help("--root names the folder that holds `.lodestar/`, not that directory itself"))
}

/// The folder that the command runs in.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(Failure::io("."))
}

fn nearest_root() -> Result<PathBuf, Failure> {
    let here = here()?;
    let found = here.ancestors().find(|dir| dir.join(".lodestar").is_dir());
    found.map(Path::to_owned).ok_or_else(|| {
        Failure::not_found(format!(
            "there is no `.lodestar/` in `{}` or any folder above it",
            inert::path(&here)
        ))
        .help("change to the project's folder, or name it with --root")
    })
}

fn listed(names: impl ExactSizeIterator<Item = impl ToString>) -> String {
    let total = names.len();
    let mut shown: Vec<String> = names.take(MOST_NAMED).map(|n| n.to_string()).collect();
    if total > MOST_NAMED {
        shown.push(format!("and {} more", total - MOST_NAMED));
    }
    shown.join(", ")
}
