//! A PostgreSQL server for as long as something needs one.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::shell::{Failure, because};

/// The tests of the store start theirs with the same words.
const SCRIPT: &str = include_str!("postgres.sh");

/// A server that runs until this is dropped.
pub(crate) struct Database {
    guardian: Child,
    /// How to reach it.
    pub(crate) url: String,
}

impl Database {
    /// Starts one.
    pub(crate) fn start() -> Result<Self, Failure> {
        let programs = programs().ok_or_else(|| because("there is no PostgreSQL here"))?;
        let mut guardian = shell()
            .args(["-c", SCRIPT, "sh"])
            .arg(programs)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|problem| because(format!("no shell for PostgreSQL: {problem}")))?;
        let mut folder = String::new();
        let said = guardian.stdout.take().map(BufReader::new);
        let read = said.and_then(|mut said| said.read_line(&mut folder).ok());
        let folder = folder.trim();
        if read.is_none() || folder.is_empty() {
            return Err(because("PostgreSQL does not start"));
        }
        Ok(Self {
            url: format!("host={folder} user=lodestar dbname=postgres"),
            guardian,
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

/// The folder of the server's programs, which Debian leaves out of the search path.
pub(crate) fn programs() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let debian = versions.flatten().map(|version| version.path().join("bin"));
    let needed = ["initdb", "postgres", "pg_isready"];
    let mut folders = std::env::split_paths(&paths).chain(debian);
    folders.find(|folder| needed.iter().all(|name| folder.join(name).is_file()))
}

/// A shell, as somebody else than root: PostgreSQL does not run as root.
fn shell() -> Command {
    let answer = |args: &[&str]| {
        let output = Command::new("id")
            .args(args)
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    if answer(&["-u"]).as_deref() != Some("0") {
        return Command::new("sh");
    }
    let user = match answer(&["-u", "postgres"]) {
        Some(_) => "postgres",
        None => "nobody",
    };
    let mut command = Command::new("runuser");
    command.args(["-u", user, "--", "sh"]);
    command
}
