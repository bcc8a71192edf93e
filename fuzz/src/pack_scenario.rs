//! Laws of outside packs' texts.

use lodestar_harness::pack::{About, Problem, Scenario};

/// The file that an input is taken for.
const FILE: &str = "scenarios/fuzz.toml";

/// Whether a text is a scenario, or what a pack says of itself.
pub fn is_of_a_pack(text: &str) -> bool {
    Scenario::parse(FILE, text).is_ok() || About::parse(text).is_ok()
}

/// What is refused is refused for a reason, at a place that the text has; what is taken has the name of its
/// file and a run that ends.
pub fn pack_scenario(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    match Scenario::parse(FILE, text) {
        Ok(scenario) => {
            assert_eq!(scenario.name, "fuzz");
            assert!((1..=60).contains(&scenario.deadline.as_secs()));
        }
        Err(problems) => placed(&problems, text),
    }
    if let Err(problems) = About::parse(text) {
        placed(&problems, text);
    }
}

fn placed(problems: &[Problem], text: &str) {
    assert!(!problems.is_empty());
    let lines = text.split('\n').count();
    for problem in problems {
        assert!(problem.line.is_some_and(|line| (1..=lines).contains(&line)));
        assert!(problem.column.is_some_and(|column| column >= 1));
    }
}
