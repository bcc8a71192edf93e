//! The examples run as they stand, and the guide shows their code.

use std::fs;
use std::path::Path;
use std::process::Command;

const AGENT_LOOP: &str = include_str!("../../agent_loop.rs");
const OWN_TOOL: &str = include_str!("../../own_tool.rs");

fn said(program: &str) -> String {
    let output = Command::new(program).output().expect("the example starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    said
}

#[test]
fn the_agent_loop_reads_writes_and_is_kept_from_its_own_configuration() {
    let said = said(env!("CARGO_BIN_EXE_agent-loop"));
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        said.contains("fs.read > The release is on Friday."),
        "{said}"
    );
    assert!(
        said.contains("fs.write > Not run (policy_denied): the argument `path` leads to"),
        "{said}"
    );
    let last = lines.last().unwrap_or(&"");
    assert!(last.ends_with(": 2 ran, 1 refused"), "{said}");
}

#[test]
fn the_agent_loop_fits_on_a_page() {
    assert!(AGENT_LOOP.lines().count() < 60);
}

#[test]
fn a_held_act_of_ones_own_tool_runs_on_a_signed_word() {
    let said = said(env!("CARGO_BIN_EXE_own-tool"));
    assert!(said.contains("ran: booked Aldebaran"), "{said}");
    assert!(said.contains("failed: "), "{said}");
    assert!(said.contains("2 ran, 1 held"), "{said}");
}

/// Lines without their indentation, so that a piece of a function can stand at the margin.
fn bare(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[test]
fn every_piece_of_rust_in_the_guide_stands_in_an_example() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/embed.md");
    let guide = fs::read_to_string(guide).expect("the guide is there");
    let sources = [bare(AGENT_LOOP), bare(OWN_TOOL)];
    let mut pieces = 0;
    for piece in guide.split("```rust\n").skip(1) {
        let piece = piece.split("```").next().unwrap_or_default().trim_end();
        let piece = bare(piece);
        let is_shown = |source: &Vec<&str>| source.windows(piece.len()).any(|at| at == piece);
        assert!(sources.iter().any(is_shown), "{}", piece.join("\n"));
        pieces += 1;
    }
    assert!(pieces >= 5, "only {pieces} pieces were found");
}
