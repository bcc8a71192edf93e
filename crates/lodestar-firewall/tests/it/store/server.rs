//! A real PostgreSQL for tests: the one that `LODESTAR_TEST_POSTGRES` names, or one started here, for
//! this process alone. The gateway's tests have this file too.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Starts a server that lives as long as the test process.
const GUARD: &str = include_str!("../../../../../xtask/src/postgres.sh");

/// Its address; `None` where there is no PostgreSQL, after saying so.
pub(crate) fn url() -> Option<&'static str> {
    static URL: OnceLock<Option<String>> = OnceLock::new();
    let found = || match std::env::var("LODESTAR_TEST_POSTGRES") {
        Ok(url) => Some(url),
        Err(_) => programs().map(|programs| start(&programs)),
    };
    URL.get_or_init(found).as_deref()
}

/// The folder of `initdb` and `postgres`, which Debian leaves out of the search path.
fn programs() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&paths).collect();
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    let there = |folder: &PathBuf| {
        ["initdb", "postgres", "pg_isready"]
            .iter()
            .all(|program| folder.join(program).is_file())
    };
    let found = folders.into_iter().find(there);
    if found.is_none() {
        skip("there is no PostgreSQL here, so its store is not tested");
    }
    found
}

fn skip(what: &str) {
    assert!(
        std::env::var_os("LODESTAR_REQUIRE_ALL").is_none(),
        "not everything can be tested here: {what}"
    );
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

fn answer(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// A shell, as somebody else than root: PostgreSQL does not run as root.
fn shell() -> Command {
    if answer("id", &["-u"]).as_deref() != Some("0") {
        return Command::new("sh");
    }
    let user = match answer("id", &["-u", "postgres"]) {
        Some(_) => "postgres",
        None => "nobody",
    };
    let mut command = Command::new("runuser");
    command.args(["-u", user, "--", "sh"]);
    command
}

fn start(programs: &Path) -> String {
    // Lives until the process ends: what closes its input then is the system.
    static GUARDIAN: OnceLock<Child> = OnceLock::new();
    let mut guardian = shell()
        .args(["-c", GUARD, "sh"])
        .arg(programs)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell starts");
    let mut folder = String::new();
    BufReader::new(guardian.stdout.take().unwrap())
        .read_line(&mut folder)
        .unwrap();
    GUARDIAN.get_or_init(|| guardian);
    let folder = folder.trim();
    assert!(!folder.is_empty(), "initdb works");
    format!("host={folder} user=lodestar dbname=postgres")
}
