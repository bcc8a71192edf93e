//! Running the tests, and what goes before them.

use std::process::Command;
use std::sync::Mutex;

use crate::pages;
use crate::peers;
use crate::requirements;
use crate::shell::{self, Failure, cargo};
use crate::tally::{Runner, Tally};

/// `cargo xtask test`
pub(crate) fn test() -> Result<(), Failure> {
    test_with(start_release())
}

/// Runs every test, once the release binary that they drive is there.
fn test_with(release: Building) -> Result<(), Failure> {
    // Without a tool the tests that need it fail, by name; all others still tell something.
    let provided = requirements::provide(requirements::TESTS);
    // What does not compile is told when the tests are run.
    let _ = shell::run(&mut match nextest_is_there() {
        true => cargo(&["nextest", "run", "--workspace", "--no-run"]),
        false => cargo(&["test", "--workspace", "--no-run"]),
    });
    release
        .join()
        .map_err(|_| shell::because("the build of the release binary panicked".to_owned()))??;
    let mut sum = Tally::default();
    if nextest_is_there() {
        sum += count(
            Runner::Nextest,
            &["nextest", "run", "--workspace", "--no-fail-fast"],
        )?;
        sum += count(
            Runner::Cargo,
            &["test", "--workspace", "--doc", "--no-fail-fast"],
        )?;
    } else {
        // Runs the examples in the documentation too.
        sum += count(Runner::Cargo, &["test", "--workspace", "--no-fail-fast"])?;
    }
    if let Err(missing) = &provided {
        eprintln!("\nxtask: {missing}");
    }
    println!("\n{sum}");
    match (sum.failed, provided) {
        (0, Ok(())) => Ok(()),
        _ => Err(Failure::Reported),
    }
}

/// `cargo xtask ci`
pub(crate) fn ci() -> Result<(), Failure> {
    requirements::provide(requirements::CHECKS)?;
    shell::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    let release = start_release();
    shell::run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))?;
    pages::check()?;
    test_with(release)
}

/// The release binary, being built.
type Building = std::thread::JoinHandle<Result<(), Failure>>;

/// It has a folder of its own below `target`, so both cores have something to do while one crate waits for
/// another.
fn start_release() -> Building {
    std::thread::spawn(build_release)
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
    shell::run(with_everything(&mut command)?)
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

fn build_release() -> Result<(), Failure> {
    shell::run(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "lodestar-cli",
    ]))
}

fn nextest_is_there() -> bool {
    shell::succeeds(&mut cargo(&["nextest", "--version"]))
}

/// Tests drive the release binary, and none of them may skip.
fn with_everything(command: &mut Command) -> Result<&mut Command, Failure> {
    let binary = shell::release_binary()
        .map_err(|e| shell::because(format!("cannot find the release binary: {e}")))?;
    if let Some(folder) = peers::folder() {
        command.env(peers::VARIABLE, folder);
    }
    Ok(command
        .env("LODESTAR_REQUIRE_ALL", "1")
        .env("LODESTAR_BIN", binary))
}

/// Runs tests and adds up what their runner says of them. A runner that fails without saying that
/// a test did, as when something does not compile, counts as one failure.
fn count(runner: Runner, args: &[&str]) -> Result<Tally, Failure> {
    let sum = Mutex::new(Tally::default());
    let mut command = cargo(args);
    let status = shell::watch(with_everything(&mut command)?, |line| {
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
        eprintln!("xtask: `cargo {}` failed ({status})", args.join(" "));
        sum.failed = 1;
    }
    Ok(sum)
}
