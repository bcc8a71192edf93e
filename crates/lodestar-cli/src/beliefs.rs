//! A project's beliefs: the log they follow from, the store they are kept in, and the keys by which
//! both are judged.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::{ActorId, ProjectId, ScopeName};
use lodestar_core::scope::{Scope, ScopeLevel};
use lodestar_firewall::Firewall;
use lodestar_firewall::extract::Extractors;
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{PostgresStore, SqliteStore, Store};
use lodestar_guard::{Operator, OperatorSession, SystemSurroundings};
use lodestar_log::verify::verify_session;
use lodestar_log::{Ledger, ProjectLog, SessionDir, Trust};
use lodestar_replay::{Followed, ReplayError};
use zeroize::Zeroizing;

use crate::cli::App;
use crate::failure::Failure;
use crate::installation::{Installation, is_there};
use crate::place::Place;
use crate::trust::{self, Operators};
use crate::{files, inert};

/// The store's URL, for shells and services.
const STORE: &str = "LODESTAR_STORE";
/// A file with the store's URL, for one with a password in it.
const STORE_FILE: &str = "LODESTAR_STORE_FILE";

#[derive(Debug, Default, Args)]
pub(crate) struct BeliefsArgs {
    /// Look only at this project
    #[arg(
        long,
        global = true,
        value_name = "PROJECT",
        help_heading = "Global options"
    )]
    pub(crate) project: Option<String>,

    /// The belief store: a SQLite file, or a `postgres://` URL without a password
    /// [default: what LODESTAR_STORE or the file LODESTAR_STORE_FILE says, or else `.lodestar/state.db`]
    #[arg(
        long,
        global = true,
        value_name = "STORE",
        help_heading = "Global options"
    )]
    store: Option<String>,
}

/// Where beliefs are kept.
enum StorePlace {
    File(PathBuf),
    /// It may hold a password, so it is shown to nobody.
    Server(Zeroizing<String>),
}

impl StorePlace {
    fn find(given: Option<&str>, folder: &Path) -> Result<Self, Failure> {
        if let Some(given) = given {
            if has_password(given) {
                return Err(Failure::usage(
                    "the store's URL has a password in it, and everyone on this machine can read arguments",
                )
                .help(format!(
                    "let {STORE_FILE} name a file of mode 0600 with the URL in it"
                )));
            }
            return Ok(Self::parse(given));
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(url) = set(STORE) {
            let url = url.into_string();
            let url = Zeroizing::new(
                url.map_err(|_| Failure::usage(format!("{STORE} is not UTF-8 text")))?,
            );
            return Ok(Self::parse(&url));
        }
        if let Some(file) = set(STORE_FILE) {
            return Ok(Self::parse(files::read_private(Path::new(&file))?.trim()));
        }
        Ok(Self::File(folder.join(".lodestar").join("state.db")))
    }

    fn parse(text: &str) -> Self {
        match is_server(text) {
            true => Self::Server(Zeroizing::new(text.to_owned())),
            false => Self::File(text.into()),
        }
    }

    fn open(&self) -> Result<Box<dyn Store>, Failure> {
        match self {
            Self::File(path) => Ok(Box::new(SqliteStore::open(path)?)),
            Self::Server(url) => Ok(Box::new(PostgresStore::connect(url, None)?)),
        }
    }
}

/// Whether it names a server: a URL, or words such as `host=localhost dbname=beliefs`.
fn is_server(text: &str) -> bool {
    const WORDS: [&str; 6] = ["host", "hostaddr", "port", "dbname", "user", "password"];
    let url = text.starts_with("postgres://") || text.starts_with("postgresql://");
    let first = text.trim_start().split_once('=');
    url || first.is_some_and(|(word, _)| WORDS.contains(&word.trim_end()))
}

/// Whether it names a server and holds a password: before the host of a URL, or as a parameter.
fn has_password(text: &str) -> bool {
    if !is_server(text) {
        return false;
    }
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    user.contains(':') || text.to_ascii_lowercase().contains("password")
}

/// One project's beliefs.
pub(crate) struct Beliefs {
    pub(crate) log: ProjectLog,
    pub(crate) trust: Trust,
    pub(crate) operators: Operators,
    key: Arc<SecretKey>,
    installations: Vec<PublicKey>,
    store: StorePlace,
    /// Sessions that were named because they do not count: once is enough.
    named: RefCell<BTreeSet<String>>,
}

impl Beliefs {
    /// Those of the project that was named or found.
    pub(crate) fn find(args: &BeliefsArgs, app: &App) -> Result<Self, Failure> {
        let place = app.place(args.project.as_deref())?;
        let installation = Installation::locate()?;
        let key = installation.log_secret()?;
        Self::at(args, &place, &installation, key)
    }

    /// Those of one project, whichever the arguments name.
    pub(crate) fn of_project(
        args: &BeliefsArgs,
        project: &ProjectId,
        app: &App,
    ) -> Result<Self, Failure> {
        let place = app.place(Some(project.as_str()))?;
        let installation = Installation::locate()?;
        let key = installation.log_secret()?;
        Self::at(args, &place, &installation, key)
    }

    /// Those of a project that may not have been begun. The first one who writes makes the key.
    pub(crate) fn find_or_begin(args: &BeliefsArgs, app: &App) -> Result<Self, Failure> {
        let place = app.place_to_write(args.project.as_deref())?;
        let installation = Installation::locate()?;
        let begun = place.only_project()?.ledger_path().exists();
        let key = match begun {
            true => installation.log_secret()?,
            false => installation.create_log_key()?,
        };
        Self::at(args, &place, &installation, key)
    }

    /// Those of the project that a configuration in this folder names.
    pub(crate) fn of_folder(folder: &Path, project: &ProjectId) -> Result<Self, Failure> {
        let place = Place::to_write(Some(folder), Some(project.as_str()))?;
        let installation = Installation::locate()?;
        let key = installation.create_log_key()?;
        Self::at(&BeliefsArgs::default(), &place, &installation, key)
    }

    fn at(
        args: &BeliefsArgs,
        place: &Place,
        installation: &Installation,
        key: SecretKey,
    ) -> Result<Self, Failure> {
        let log = place.only_project()?.clone();
        let (operators, witnesses) = trust::pinned()?;
        let trust = Trust {
            log_keys: vec![key.public()],
            operators: operators.keys(),
            witnesses,
        };
        Ok(Self {
            log,
            trust,
            operators,
            key: Arc::new(key),
            installations: installation.installations()?,
            store: StorePlace::find(args.store.as_deref(), &place.folder)?,
            named: RefCell::default(),
        })
    }

    /// Whose rows and orders count.
    pub(crate) fn keyring(&self) -> Keyring {
        Keyring::new(Arc::clone(&self.key))
            .trusting(self.installations.iter().copied())
            .with_operators(self.trust.operators.iter().copied())
    }

    /// The store as it is.
    pub(crate) fn store(&self) -> Result<Box<dyn Store>, Failure> {
        self.store.open()
    }

    /// The store, if it was ever begun: who only looks begins none.
    pub(crate) fn existing_store(&self) -> Result<Box<dyn Store>, Failure> {
        if let StorePlace::File(path) = &self.store
            && !is_there(path)?
        {
            return Err(Failure::not_found(format!(
                "there is no belief store at `{}`",
                inert::path(path)
            ))
            .help("`lodestar store rebuild` makes it from the log"));
        }
        self.store()
    }

    /// What the project's beliefs are held of, where nothing else is said.
    pub(crate) fn scope(&self) -> Scope {
        let name = ScopeName::from(self.log.project());
        Scope::global()
            .with(ScopeLevel::Project, name)
            .expect("INVARIANT: the first level of a scope")
    }

    /// The firewall over a store that has followed the log, for what records nothing.
    pub(crate) fn reading(&self, app: &App) -> Result<Firewall, Failure> {
        let mut store = self.store()?;
        let keys = self.keyring();
        let followed = lodestar_replay::catch_up(store.as_mut(), &keys, &self.log, &self.trust)?;
        self.name_refused(&followed, app);
        let surroundings = Box::new(SystemSurroundings::default());
        let (firewall, _) = Firewall::open(store, keys, Extractors::built_in(), surroundings);
        Ok(firewall)
    }

    /// The sessions that the ledger knows, in the order they were opened.
    pub(crate) fn ledger(&self) -> Result<Ledger, Failure> {
        let (ledger, problems) = Ledger::read(&self.log, &self.trust, &BTreeSet::new())
            .map_err(Failure::io(self.log.ledger_path()))?;
        match problems.into_iter().next() {
            Some(problem) => Err(ReplayError::Ledger(problem).into()),
            None => Ok(ledger),
        }
    }

    /// Refuses a session that the ledger does not know or that is not as it was written.
    pub(crate) fn check_session(&self, dir: &SessionDir) -> Result<(), Failure> {
        let ledger = self.ledger()?;
        let Some(facts) = ledger.session(dir.session()) else {
            return Err(Failure::check(format!(
                "session `{}` does not count: the ledger does not know it",
                dir.session()
            ))
            .help("`lodestar log verify` lists everything that is wrong"));
        };
        let report = verify_session(dir, Some(facts), &self.trust, &|_| ())
            .map_err(Failure::io(dir.dir()))?;
        match report.problems.first() {
            None => Ok(()),
            Some(problem) => Err(Failure::check(format!(
                "session `{}` does not count: {problem}",
                dir.session()
            ))
            .help("`lodestar log verify` lists everything that is wrong")),
        }
    }

    /// Runs work in a session of its own in the project's log, which is closed in any case.
    pub(crate) fn in_session<T>(
        &self,
        purpose: &'static str,
        actor: ActorId,
        app: &App,
        work: impl FnOnce(&mut OperatorSession) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.in_session_as("op", purpose, actor, app, work)
    }

    /// The same, in a session whose name begins so.
    pub(crate) fn in_session_as<T>(
        &self,
        prefix: &str,
        purpose: &'static str,
        actor: ActorId,
        app: &App,
        work: impl FnOnce(&mut OperatorSession) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let operator = Operator {
            log: self.log.clone(),
            key: Arc::clone(&self.key),
            trust: self.trust.clone(),
            keyring: self.keyring(),
            store: self.store()?,
            actor,
            purpose,
        };
        let mut session = OperatorSession::open_as(operator, prefix)?;
        self.name_refused(session.followed(), app);
        let done = work(&mut session);
        let reason = if done.is_ok() { "done" } else { "not done" };
        let closed = session.close(reason);
        let done = done?;
        closed?;
        Ok(done)
    }

    /// Sessions that do not count are named, whoever looks.
    fn name_refused(&self, followed: &Followed, app: &App) {
        for refused in &followed.refused {
            if self.named.borrow_mut().insert(refused.session.clone()) {
                app.note(format!(
                    "session `{}` does not count: {}",
                    inert::line(&refused.session, 80),
                    inert::line(&refused.reason, 300)
                ));
            }
        }
    }
}

/// Who runs the command, as the operating system knows them: nothing that they could choose.
pub(crate) fn local_actor() -> ActorId {
    let uid = rustix::process::getuid().as_raw();
    ActorId::new(format!("uid-{uid}")).expect("INVARIANT: letters, digits and a hyphen")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_found_wherever_a_url_can_hold_one() {
        for (url, expected) in [
            ("postgres://alice:secret@db/lodestar", true),
            ("postgresql://alice:@db", true),
            ("postgres://db/lodestar?user=a&password=x", true),
            ("postgres://db/lodestar?PASSWORD=x", true),
            ("host=db user=a password = x", true),
            ("password=x host=db", true),
            ("host=db user=a", false),
            ("postgres://alice@db:5432/lodestar", false),
            ("postgres://db:5432", false),
            ("notes:a@b.db", false),
            (".lodestar/state.db", false),
        ] {
            assert_eq!(has_password(url), expected, "{url}");
        }
    }
}
