//! Running the tests, and what goes before them.

use std::process::Command;
use std::sync::Mutex;
use std::thread;

use crate::database::Database;
use crate::pages;
use crate::peers;
use crate::requirements;
use crate::shell::{self, Failure, cargo};
use crate::tally::{Runner, Tally};

/// `cargo xtask test`
pub(crate) fn test() -> Result<(), Failure> {
    test_with(Lints::Default)
}

/// What compiles the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lints {
    /// The compiler alone.
    Default,
    /// Clippy, for which every warning is an error. It lints what it compiles, so that one build serves for both:
    /// `cargo clippy` would go through every dependency a second time.
    Denied,
}

impl Lints {
    fn set(self, command: &mut Command) {
        if self == Self::Denied {
            // As `cargo clippy -- --deny warnings` calls it.
            command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env(
                "CLIPPY_ARGS",
                "--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
            );
        }
    }
}

fn test_with(lints: Lints) -> Result<(), Failure> {
    // Without a tool the tests that need it fail, by name; all others still tell something.
    let provided = requirements::provide(requirements::TESTS);
    let mut sum = Tally::default();
    let nextest = nextest_is_there();
    // What does not compile is told by the tests themselves.
    let all: &[&str] = match nextest {
        true => &["nextest", "run", "--workspace", "--no-run"],
        false => &["test", "--workspace", "--no-run"],
    };
    let mut compile = cargo(all);
    lints.set(&mut compile);
    let compiled = shell::run(&mut compile);
    // Tests wait a lot, for servers, clocks and people: the binary that people use is built meanwhile.
    let release = compiled.ok().map(|()| thread::spawn(build_release_aside));
    if nextest {
        let tests = ["nextest", "run", "--workspace", "--no-fail-fast"];
        sum += count(Runner::Nextest, &tests, lints)?;
        let examples = ["test", "--workspace", "--doc", "--no-fail-fast"];
        sum += count(Runner::Cargo, &examples, lints)?;
    } else {
        // Runs the examples in the documentation too.
        let all = ["test", "--workspace", "--no-fail-fast"];
        sum += count(Runner::Cargo, &all, lints)?;
    }
    if let Some(release) = release {
        // Whether it succeeded is told by the build that follows, which has little left to do then.
        let _ = release.join();
    }
    sum += probes().unwrap_or_else(|problem| {
        eprintln!("xtask: {problem}");
        Tally::failed()
    });
    if let Err(missing) = &provided {
        eprintln!("\nxtask: {missing}");
    }
    println!("\n{sum}");
    match (sum.failed, provided) {
        (0, Ok(())) => Ok(()),
        _ => Err(Failure::Reported),
    }
}

/// The executable threat model, on the binary that people use.
fn probes() -> Result<Tally, Failure> {
    build_release()?;
    let mut command = harness(&["harness", "run"])?;
    // Without a database the probes that need one say so, and that is a failure.
    let database = Database::start().inspect_err(|problem| eprintln!("xtask: {problem}"));
    if let Ok(database) = &database {
        command.env(DATABASE, &database.url);
    }
    tally(Runner::Harness, &mut command)
}

/// `cargo xtask defences`
pub(crate) fn defences() -> Result<(), Failure> {
    build_release()?;
    let database = Database::start()?;
    let mut command = cargo(&[
        "run",
        "--release",
        "--package",
        "lodestar-harness",
        "--example",
        "defences",
        "--",
    ]);
    command.arg(shell::binary("release").map_err(|e| shell::because(e.to_string()))?);
    shell::run(command.env(DATABASE, &database.url))
}

/// Names a server for the probes that need one.
const DATABASE: &str = "LODESTAR_TEST_DATABASE_URL";

/// The release binary, with keys of its own.
fn harness(args: &[&str]) -> Result<Command, Failure> {
    let cannot = |e: std::io::Error| shell::because(format!("cannot find the release binary: {e}"));
    let mut command = Command::new(shell::binary("release").map_err(cannot)?);
    let keys = shell::target().map_err(cannot)?.join("harness");
    command
        .args(args)
        .env("LODESTAR_CONFIG_DIR", keys)
        .env("LODESTAR_REQUIRE_ALL", "1");
    Ok(command)
}

/// `cargo xtask ci`
pub(crate) fn ci() -> Result<(), Failure> {
    requirements::provide(requirements::CHECKS)?;
    shell::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    pages::check()?;
    test_with(Lints::Denied)
}

/// `cargo xtask matrix`
pub(crate) fn matrix() -> Result<(), Failure> {
    requirements::provide(requirements::TESTS)?;
    build_release()?;
    let mut command = match nextest_is_there() {
        true => cargo(&[
            "nextest",
            "run",
            "--workspace",
            "--release",
            "--no-fail-fast",
            "--no-capture",
            "matrix",
        ]),
        false => cargo(&[
            "test",
            "--workspace",
            "--release",
            "--no-fail-fast",
            "matrix",
            "--",
            "--nocapture",
            "--test-threads=1",
        ]),
    };
    command.env("LODESTAR_MATRIX", "full");
    shell::run(with_everything(&mut command, "release")?)
}

/// `cargo xtask bench`
pub(crate) fn bench() -> Result<(), Failure> {
    requirements::provide(requirements::TESTS)?;
    // It drives the release binary, which has to lie beside it.
    build_release()?;
    shell::run(&mut cargo(&[
        "run",
        "--release",
        "--package",
        "lodestar-bench",
        "--",
        "all",
    ]))
}

const RELEASE: [&str; 4] = ["build", "--release", "--package", "lodestar-cli"];

fn build_release() -> Result<(), Failure> {
    shell::run(&mut cargo(&RELEASE))
}

/// The same, silent and behind whatever else has to run.
fn build_release_aside() {
    let cargo = cargo(&RELEASE);
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"])
        .arg(cargo.get_program())
        .args(cargo.get_args())
        .current_dir(shell::workspace());
    shell::succeeds(&mut nice);
}

fn nextest_is_there() -> bool {
    shell::succeeds(&mut cargo(&["nextest", "--version"]))
}

/// Tests drive the binary of a profile, and none of them may skip.
fn with_everything<'a>(
    command: &'a mut Command,
    profile: &str,
) -> Result<&'a mut Command, Failure> {
    let binary = shell::binary(profile)
        .map_err(|e| shell::because(format!("cannot find the {profile} binary: {e}")))?;
    if let Some(folder) = peers::folder() {
        command.env(peers::VARIABLE, folder);
    }
    Ok(command
        .env("LODESTAR_REQUIRE_ALL", "1")
        .env("LODESTAR_BIN", binary))
}

/// Runs tests and adds up what their runner says of them. A runner that fails without saying that
/// a test did, as when something does not compile, counts as one failure.
fn count(runner: Runner, args: &[&str], lints: Lints) -> Result<Tally, Failure> {
    let mut command = cargo(args);
    lints.set(&mut command);
    tally(runner, with_everything(&mut command, "debug")?)
}

fn tally(runner: Runner, command: &mut Command) -> Result<Tally, Failure> {
    let sum = Mutex::new(Tally::default());
    let status = shell::watch(command, |line| {
        if let Some(tally) = Tally::of_line(runner, line)
            && let Ok(mut sum) = sum.lock()
        {
            *sum += tally;
        }
    })?;
    let mut sum = sum
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner());
    if !status.success() && sum.failed == 0 {
        eprintln!("xtask: `{}` failed ({status})", shell::text(command));
        sum += Tally::failed();
    }
    Ok(sum)
}
