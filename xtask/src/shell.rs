//! Starting other programs: what is run is shown, and a failure says which program it was.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

/// Why a chore did not get done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What went wrong, for the last line of the output.
    Because(String),
    /// It has been said already.
    Reported,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Because(reason) => f.write_str(reason),
            Self::Reported => f.write_str("failed"),
        }
    }
}

/// A failure with this reason.
pub(crate) fn because(reason: impl Into<String>) -> Failure {
    Failure::Because(reason.into())
}

/// The workspace's folder.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace's folder")
}

/// The target directory: this program stands in a folder of it, whichever it is configured to be.
pub(crate) fn target() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let profile = own.parent().map(|folder| match folder.ends_with("deps") {
        // A test of this program stands one folder deeper.
        true => folder.parent().unwrap_or(folder),
        false => folder,
    });
    Ok(profile
        .and_then(Path::parent)
        .unwrap_or(workspace())
        .to_owned())
}

/// The binary as a profile builds it: `debug` comes with the tests, `release` has to be built.
pub(crate) fn binary(profile: &str) -> io::Result<PathBuf> {
    let name = format!("lodestar{}", std::env::consts::EXE_SUFFIX);
    Ok(target()?.join(profile).join(name))
}

/// A cargo command in the workspace, with no input to wait for.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(args)
        .current_dir(workspace())
        .stdin(Stdio::null());
    command
}

/// Whether a program starts and is content.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a program to its end and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    announce(command);
    let status = command.status().map_err(|e| cannot_start(command, &e))?;
    match status.success() {
        true => Ok(()),
        false => Err(because(format!("`{}` failed ({status})", text(command)))),
    }
}

/// Runs a program to its end, passes its output on as it comes, and gives every line of it to
/// `see`, whichever stream it came from.
pub(crate) fn watch(
    command: &mut Command,
    see: impl Fn(&str) + Sync,
) -> Result<ExitStatus, Failure> {
    announce(command);
    let mut child: Child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| cannot_start(command, &e))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let see = &see;
        scope.spawn(move || stdout.map(|from| pass_on(from, io::stdout(), see)));
        scope.spawn(move || stderr.map(|from| pass_on(from, io::stderr(), see)));
    });
    child.wait().map_err(|e| cannot_start(command, &e))
}

fn pass_on(from: impl Read, mut to: impl io::Write, see: &impl Fn(&str)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while matches!(from.read_until(b'\n', &mut line), Ok(n) if n > 0) {
        // Whoever reads our output may have gone; the summary at the end is still worth computing.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        see(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
        line.clear();
    }
}

fn announce(command: &Command) {
    eprintln!("\n$ {}", text(command));
}

fn cannot_start(command: &Command, error: &io::Error) -> Failure {
    because(format!("cannot run `{}`: {error}", text(command)))
}

/// A command as one would type it.
pub(crate) fn text(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    let mut words = vec![program.to_string_lossy()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy()));
    words.join(" ")
}
