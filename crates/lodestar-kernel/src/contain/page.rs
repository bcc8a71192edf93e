//! The reference page of containment, made of what plans are made of, and checked in.

use std::fmt::Write as _;
use std::path::Path;

use lodestar_core::contract::Sandbox;

use super::places::{
    DEVICES, HOME_SECRETS, NAMES, PACKAGE_RUNNERS, SYSTEM, SYSTEM_SECRETS, TOOLCHAINS,
};
use super::{Attempt, OutOfReach, Plan};
use crate::protect::{PROTECTED, READ_BY_PROGRAMS};

const OPENING: &str = "\
<!-- Made of the plans' own constants by `LODESTAR_BLESS=1 cargo test -p lodestar-kernel page`. -->
# Containment: profiles and places

What a contained child is granted, on Linux. [Containment](../concepts/containment.md) says what that proves and what not.

## Profiles

A server has the union of the profiles of its tools. `sandbox`, `read`, `write`, `network` and `unix_sockets` in its table say otherwise.

| profile | project | own temporary folder | executes | network | Unix sockets |
|---|---|---|---|---|---|
";

/// The page.
pub fn reference_page() -> String {
    let mut page = OPENING.to_owned();
    for profile in Sandbox::ALL {
        let _ = writeln!(page, "{}", row(*profile));
    }
    page.push_str("\nNo profile at all is as `read`.\n");
    section(
        &mut page,
        "Read and executed by every child",
        "Where they are there.",
    );
    places(
        &mut page,
        SYSTEM.iter().chain(&NAMES).map(|place| (*place).to_owned()),
    );
    section(
        &mut page,
        "Of the home, read and executed by every child",
        "Toolchains, and nothing with credentials in it.",
    );
    places(
        &mut page,
        TOOLCHAINS.iter().map(|place| format!("~/{place}")),
    );
    page.push_str("\nThe installation that the program itself lies in is read and executed, too, unless that is the home, holds the project or holds what is out of reach.\n");
    section(&mut page, "Devices, read and written by every child", "");
    places(&mut page, DEVICES.iter().map(|place| (*place).to_owned()));
    section(
        &mut page,
        "Programs that fetch a package and run it",
        "Recognised by their name. They are granted every way out, execute what they fetched, and write what they keep packages in, where that is there. Whoever can write it decides what the same program runs from it later.",
    );
    page.push_str("| program | writes |\n|---|---|\n");
    for (runner, caches) in PACKAGE_RUNNERS {
        let caches: Vec<_> = caches.iter().map(|place| format!("`~/{place}`")).collect();
        let _ = writeln!(page, "| `{runner}` | {} |", caches.join(", "));
    }
    section(
        &mut page,
        "Out of reach in every profile",
        "The key directory, `.lodestar/` of the project, whatever file with a secret the configuration names, and, in the project and in the home:",
    );
    let is_read = |run: &&&[&str]| READ_BY_PROGRAMS.contains(&run[0]);
    let own = |run: &&&[&str]| run[0] != ".lodestar";
    let joined = |run: &&[&str]| run.join("/");
    places(
        &mut page,
        PROTECTED
            .iter()
            .filter(own)
            .filter(|run| !is_read(run))
            .map(joined),
    );
    page.push_str("\nOf the system, and of toolchains in the home:\n\n");
    places(
        &mut page,
        SYSTEM_SECRETS
            .iter()
            .map(|place| (*place).to_owned())
            .chain(HOME_SECRETS.iter().map(|place| format!("~/{place}"))),
    );
    page.push_str(
        "\nRead and not written, with the policy, its signature and lists of known values:\n\n",
    );
    places(&mut page, PROTECTED.iter().filter(is_read).map(joined));
    page.push_str(
        "\nand the same of the submodules and worktrees whose repositories lie below `.git`.\n",
    );
    section(
        &mut page,
        "Tried at every start",
        "In the process that becomes the program, with everything in force. The names stand in `confinement.tried` of `server.started@1`.",
    );
    page.push_str("| attempt | tries to |\n|---|---|\n");
    for attempt in Attempt::ALL {
        let name = serde_json::to_value(attempt).unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        let _ = writeln!(page, "| `{name}` | {} |", attempt.as_words());
    }
    page.push_str("\nConnections and datagrams are tried where no network is granted, Unix sockets where they are not; keys and `.lodestar/` where they are there.\n");
    page
}

/// A profile, by what a plan with it comes to.
fn row(profile: Sandbox) -> String {
    // A folder that is there on every machine.
    let project = Path::new("/");
    let mut plan = Plan::new([profile], "true", project, OutOfReach::default());
    plan.home = None;
    let grants = plan.grants();
    let writes = grants.writes.iter().any(|place| place == project);
    let project = if writes { "read and written" } else { "read" };
    let executes = match grants.executes_own {
        true => "the system, and what it finds or makes in the project",
        false => "the system",
    };
    let network = if grants.network.is_none() {
        "none"
    } else {
        "any"
    };
    format!("| `{profile}` | {project} | written | {executes} | {network} | none |")
}

fn section(page: &mut String, heading: &str, words: &str) {
    let _ = write!(page, "\n## {heading}\n\n");
    if !words.is_empty() {
        let _ = write!(page, "{words}\n\n");
    }
}

fn places(page: &mut String, places: impl Iterator<Item = String>) {
    let places: Vec<String> = places.map(|place| format!("`{place}`")).collect();
    let _ = writeln!(page, "{}", places.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_what_plans_are_made_of() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/containment.md");
        let fresh = reference_page();
        if std::env::var_os("LODESTAR_BLESS").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            there, fresh,
            "run `LODESTAR_BLESS=1 cargo test -p lodestar-kernel page`"
        );
    }
}
