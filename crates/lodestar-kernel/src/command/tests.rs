//! Command lines that people graded, and what the reader makes of them.

use std::collections::BTreeMap;

use lodestar_core::ladder::Rung;

use super::read;

const COMMANDS: &str = include_str!("commands.tsv");

/// The lines of the file: group, rung, command line.
pub(super) fn commands() -> impl Iterator<Item = (&'static str, Rung, String)> {
    let mut group = "";
    COMMANDS.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix("## ") {
            group = name;
        }
        let (rung, command) = line.split_once('\t')?;
        Some((group, rung.parse().unwrap(), command.replace('⏎', "\n")))
    })
}

#[test]
fn every_command_is_graded_as_a_careful_person_would() {
    let mut counts: BTreeMap<(&str, Rung), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (group, expected, command) in commands() {
        *counts.entry((group, expected)).or_default() += 1;
        let reading = read(&command);
        if reading.rung != expected {
            wrong.push(format!(
                "{expected} expected, {} read: {command:?}: {}",
                reading.rung, reading.reason
            ));
        }
    }
    for ((group, rung), count) in &counts {
        println!("{group}: {count} at {rung}");
    }
    let total: usize = counts.values().sum();
    let nested: usize = counts
        .iter()
        .filter(|((group, _), _)| group.starts_with("nested"))
        .map(|(_, n)| n)
        .sum();
    println!("{total} commands, {nested} of them nested or disguised");
    assert!(
        total >= 320 && nested >= 80,
        "{total} commands, {nested} nested"
    );
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
