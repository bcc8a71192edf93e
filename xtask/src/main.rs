//! The chores of the workspace, as one command: `cargo xtask`.
//!
//! | module | what it does |
//! |---|---|
//! | [`requirements`] | what the tests need beside cargo: finds it, installs it, or says what is missing |
//! | [`peers`] | installs the MCP software of others that the proxy is tested against |
//! | [`database`] | a PostgreSQL server for as long as it is needed |
//! | [`suite`] | runs all tests and sums them up in one line |
//! | [`mutants`] | shows that the tests notice small changes to the code that decides |
//! | [`tally`] | reads the summaries of the two test runners |
//! | [`pages`] | writes the reference pages that come from the code |
//! | [`shell`] | starts other programs |

mod database;
mod mutants;
mod pages;
mod peers;
mod requirements;
mod shell;
mod suite;
mod tally;

use std::process::ExitCode;

use shell::Failure;

const HELP: &str = "\
The chores of the workspace.

Usage: cargo xtask <COMMAND>

Commands:
  test           sets up what the tests need, runs every test, then every probe on the release
                 binary
  ci             formatting, lints, generated pages, then `test`: what has to pass before a merge
  matrix         the long matrices at full length, in release: tampering, crashes, kills between
                 the steps of an action, slicing of policies, raced paths
  defences       takes each defence out in turn and shows which probes miss it; in release
  mutants        changes the code that decides, one small change at a time, and prints how many
                 of the changes the tests notice; fails below 95 % of a module, or where one that
                 lives has no reason in xtask/mutants.toml. Takes half an hour the first time
    --module NAME  only gate, firewall, fingerprint, approval or log; may be given again
    --survivors    only those that no test noticed in the last run, and the new ones
    --json         what is printed at the end, for programs
  docs           writes the reference pages that come from the code
  docs --check   fails where such a page is out of date
  bench          prints the speed ratios of event log, firewall and gate

The last line of `test` and `ci` is `N passed, N failed, N skipped`; the exit code is 0 only if
nothing failed.

Environment:
  LODESTAR_REQUIRE_ALL       set to 1 by `test`: a test that lacks a tool fails instead of skipping
  LODESTAR_BIN               set by `test` and `matrix`: the binary, for tests that drive it
  LODESTAR_PEERS             set by `test`: the folder with MCP clients and servers of others; where
                             it is set already, nothing is installed
  LODESTAR_MATRIX            set to `full` by `matrix`
  LODESTAR_FUZZ_ITERATIONS   mutated inputs per fuzz target; the default keeps `test` short

Example: cargo xtask test
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        [] | ["help" | "--help" | "-h"] | [_, "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["test"] => suite::test(),
        ["ci"] => suite::ci(),
        ["matrix"] => suite::matrix(),
        ["defences"] => suite::defences(),
        ["mutants", args @ ..] => mutants::mutants(args),
        ["bench"] => suite::bench(),
        ["docs"] => pages::write(),
        ["docs", "--check"] => pages::check(),
        other => {
            eprintln!("xtask: unknown command `{}`\n\n{HELP}", other.join(" "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The suite has printed its own last line, and nothing may follow it.
        Err(Failure::Reported) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}
