//! Command lines that people graded, and what the reader makes of them.

use std::collections::BTreeMap;

use lodestar_core::ladder::Rung;

use super::{read, read_in};

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

#[test]
fn a_reading_says_which_files_are_read_and_written() {
    let reading =
        read("sort < in.txt > out.txt && cp a.txt b/ && sed -i s/a/b/ c.rs; tee log <<< x; cat $x");
    assert_eq!(reading.writes, ["out.txt", "b/", "c.rs", "log"]);
    assert_eq!(reading.reads, ["in.txt", "a.txt"]);
    let nested = read("bash -c 'echo \"$(head notes.md)\" > \"a file\"'");
    assert_eq!(
        (nested.rung, nested.writes.as_slice()),
        (Rung::L3, &["a file".to_owned()][..])
    );
    assert_eq!(nested.reads, ["notes.md"]);
}

#[test]
fn a_reading_names_the_strictest_part_and_why() {
    let reading = read("ls | head; git push && make");
    assert_eq!(reading.rung, Rung::L4);
    assert_eq!(
        reading.reason,
        "`git push` reaches other repositories, rewrites history, or nobody graded it"
    );
    let words: Vec<_> = reading
        .parts
        .iter()
        .map(|part| part.words.join(" "))
        .collect();
    assert_eq!(words, ["ls", "head", "git push", "make"]);
    let rungs: Vec<_> = reading.parts.iter().map(|part| part.rung).collect();
    assert_eq!(rungs, [Rung::L0, Rung::L0, Rung::L4, Rung::L3]);
    let dynamic = read("e''cho \"$x\" 'a  b'");
    assert_eq!(dynamic.parts[0].words, ["echo", super::DYNAMIC, "a  b"]);
    assert_eq!(read("  # nothing").reason, "nothing is run");
    assert_eq!(
        read("echo 'x").reason,
        "it cannot be read as a command line: a quote is not closed"
    );
}

#[test]
fn what_was_complete_before_an_error_still_counts() {
    assert_eq!(read("rm -rf /; echo 'x").rung, Rung::L5);
    assert_eq!(read("lodestar approve grant x && ls\n(").rung, Rung::L5);
}

#[test]
fn absolute_paths_below_the_root_are_inside_the_project() {
    let root = "/srv/project";
    for (line, expected) in [
        ("echo x > /srv/project/notes.txt", Rung::L3),
        ("cd /srv/project && cargo test", Rung::L3),
        ("cd /srv/project/sub && cargo test", Rung::L3),
        ("/srv/project/run-tests.sh", Rung::L3),
        ("cat /srv/project/.env", Rung::L4),
        ("echo x > /srv/project/../other", Rung::L4),
        ("echo x > /srv/projects", Rung::L4),
        ("echo x > /srv/project/.git/hooks/x", Rung::L5),
        ("rm -rf /srv/project", Rung::L4),
        ("rm -rf /", Rung::L5),
    ] {
        assert_eq!(read_in(line, root).rung, expected, "{line}");
        assert!(read(line).rung >= Rung::L4, "{line}");
    }
    // A root that says nothing takes nothing in.
    for root in ["", "/", "relative"] {
        assert_eq!(
            read_in("echo x > /etc/hosts", root).rung,
            Rung::L4,
            "{root}"
        );
    }
}
