//! What the tests need beside cargo and a compiler.
//!
//! A new requirement is one more row of [`TESTS`] or [`CHECKS`]: what it is, what for, how to see
//! that it is there, and how it is installed where that is possible.

use std::process::{Command, Stdio};

use crate::database;
use crate::peers;
use crate::shell::{self, Failure, because, cargo};

/// Something that has to be on the machine.
pub(crate) struct Requirement {
    name: &'static str,
    why: &'static str,
    is_there: fn() -> bool,
    install: fn() -> Result<(), Failure>,
}

/// What the tests need.
pub(crate) const TESTS: &[Requirement] = &[
    Requirement {
        name: "python3",
        why: "runs the verifier of the documentation against real and tampered sessions",
        is_there: || shell::succeeds(Command::new("python3").arg("--version")),
        install: || debian_package("python3"),
    },
    Requirement {
        name: "openssl",
        why: "signs and hashes independently of this code, and is what speed is measured against",
        is_there: || shell::succeeds(Command::new("openssl").arg("version")),
        install: || debian_package("openssl"),
    },
    Requirement {
        name: "cc",
        why: "makes a disk that fails to sync, for tests of what may run then",
        is_there: || shell::succeeds(Command::new("cc").arg("--version")),
        install: || debian_package("gcc"),
    },
    Requirement {
        name: "tmux",
        why: "is the terminal in which tests look at the screen of `approve watch`",
        is_there: || shell::succeeds(Command::new("tmux").arg("-V")),
        install: || debian_package("tmux"),
    },
    Requirement {
        name: "PostgreSQL",
        why: "is one of the belief stores; tests start a server of their own",
        is_there: || database::programs().is_some(),
        install: || debian_package("postgresql"),
    },
    Requirement {
        name: "npm",
        why: "installs MCP servers and clients of others",
        is_there: || shell::succeeds(Command::new("npm").arg("--version")),
        install: || debian_package("npm"),
    },
    Requirement {
        name: "venv",
        why: "keeps the Python packages of MCP servers and clients of others apart",
        is_there: || {
            shell::succeeds(Command::new("python3").args(["-m", "ensurepip", "--version"]))
        },
        install: || debian_package("python3-venv"),
    },
    Requirement {
        name: "MCP peers",
        why: "are the SDKs, servers, conformance suites, explorers and clients that proxy, gateway and hooks are tested against",
        is_there: || peers::folder().is_some(),
        install: peers::install,
    },
];

/// What the checks before the tests need.
pub(crate) const CHECKS: &[Requirement] = &[
    Requirement {
        name: "rustfmt",
        why: "checks the formatting",
        is_there: || shell::succeeds(&mut cargo(&["fmt", "--version"])),
        install: || rust_component("rustfmt"),
    },
    Requirement {
        name: "clippy",
        why: "checks the code",
        is_there: || shell::succeeds(&mut cargo(&["clippy", "--version"])),
        install: || rust_component("clippy"),
    },
];

/// Installs what is missing. What cannot be installed is listed, with what to do about it.
pub(crate) fn provide(wanted: &[Requirement]) -> Result<(), Failure> {
    let mut missing = Vec::new();
    for requirement in wanted.iter().filter(|r| !(r.is_there)()) {
        eprintln!("{} is missing: it {}", requirement.name, requirement.why);
        if let Err(obstacle) = (requirement.install)() {
            missing.push(format!(
                "  {} ({}): {obstacle}",
                requirement.name, requirement.why
            ));
        } else if !(requirement.is_there)() {
            missing.push(format!(
                "  {}: it was installed and still does not run",
                requirement.name
            ));
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(because(format!(
            "this machine lacks what is needed:\n{}",
            missing.join("\n")
        ))),
    }
}

fn rust_component(component: &str) -> Result<(), Failure> {
    shell::run(
        Command::new("rustup")
            .args(["component", "add", component])
            .stdin(Stdio::null()),
    )
}

fn debian_package(package: &str) -> Result<(), Failure> {
    if !shell::succeeds(Command::new("apt-get").arg("--version")) {
        return Err(because(format!(
            "there is no apt-get here; install `{package}` by hand"
        )));
    }
    let by_hand = format!("run `apt-get install {package}` as root");
    if !is_root() {
        return Err(because(by_hand));
    }
    let install = || {
        let options = ["install", "--yes", "--no-install-recommends", package];
        shell::run(&mut apt_get(&options))
    };
    // A machine that never fetched the package lists knows no package.
    install()
        .or_else(|_| shell::run(&mut apt_get(&["update"])).and_then(|()| install()))
        .map_err(|failure| because(format!("{failure}; {by_hand}")))
}

fn apt_get(args: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null());
    command
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(is_there: fn() -> bool, install: fn() -> Result<(), Failure>) -> [Requirement; 1] {
        [Requirement {
            name: "a tool",
            why: "is for testing",
            is_there,
            install,
        }]
    }

    #[test]
    fn what_is_there_is_left_alone() {
        let wanted = one(|| true, || panic!("nothing is to be installed"));
        assert!(provide(&wanted).is_ok());
    }

    #[test]
    fn what_cannot_be_installed_is_named_with_its_purpose_and_the_obstacle() {
        let failure = provide(&one(|| false, || Err(because("ask somebody")))).unwrap_err();
        let text = failure.to_string();
        assert!(
            text.ends_with("a tool (is for testing): ask somebody"),
            "{text}"
        );
    }

    #[test]
    fn an_installation_that_changes_nothing_is_noticed() {
        let failure = provide(&one(|| false, || Ok(()))).unwrap_err();
        assert!(failure.to_string().contains("still does not run"));
    }
}
