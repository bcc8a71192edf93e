//! The commands of the guides, run as they stand.

use crate::wrapped::{project, run};

/// The lines of a page's blocks of one kind.
fn lines<'a>(page: &'a str, kind: &str) -> Vec<&'a str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in page.lines() {
        match line.trim_start_matches('`') {
            word if line.starts_with("```") => inside = word == kind,
            _ if inside => lines.push(line),
            _ => {}
        }
    }
    lines
}

#[test]
fn every_command_about_wrapping_a_client_runs() {
    let page = include_str!("../../../../docs/guides/wrap-a-client.md");
    let world = project();
    let commands = lines(page, "sh");
    assert!(commands.len() >= 7, "{commands:?}");
    for line in commands {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.remove(0), "lodestar", "{line}");
        // Nobody is here to think of a passphrase.
        if words.contains(&"keygen") {
            words.push("--no-passphrase");
        }
        let done = run(&world, &words);
        assert_eq!(done.code, 0, "{line}: {}\n{}", done.out, done.err);
    }
}

#[test]
fn the_deny_rules_of_the_guide_are_those_that_the_doctor_looks_for() {
    let page = include_str!("../../../../docs/guides/wrap-a-client.md");
    let rules = page
        .lines()
        .find(|line| line.contains("\"deny\": [\"Bash\""))
        .expect("there");
    let world = crate::wrapped::wrapped();
    world.write(
        "work/.claude/settings.json",
        &format!("{{\"permissions\": {{{rules}}}}}"),
    );
    let told = run(&world, &["doctor"]).expect(0);
    assert!(
        told.out
            .contains("Claude Code is told to deny its own tools"),
        "{}",
        told.out
    );
}
