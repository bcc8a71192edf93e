//! `lodestar harness attack`

use std::path::Path;

use lodestar_core::defence::Defence;
use lodestar_harness::attack::{Options, Over, search};

use crate::world::World;

#[test]
fn nothing_succeeds_in_either_world_and_work_goes_on() {
    let world = World::new();
    let run = world.run(&["harness", "attack", "--tries", "40", "--json"]);
    let report = run.expect(0).json();
    assert_eq!(report["tries"], 40);
    assert_eq!(report["over_proxy"], 20);
    assert_eq!(report["successes"].as_array().map(Vec::len), Some(0));
    assert_eq!(report["benign"]["false_holds"], 0, "{report}");
    assert!(report["reached"]["held"].as_u64() > Some(5), "{report}");
}

/// The searcher behind the real proxy is no weaker for it: what is taken out there, it misses.
#[test]
fn over_the_demonstrations_servers_a_missing_defence_is_found() {
    for defence in [Defence::Gate, Defence::HoldsWait, Defence::SelfProtection] {
        let options = Options {
            program: Path::new(env!("CARGO_BIN_EXE_lodestar")),
            seed: 1,
            tries: 200,
            stop_at_first: true,
            over: Over::Demonstration,
            without: &[defence],
        };
        let report = search(&options, |_| ()).expect("the search comes to an end");
        assert_eq!(report.tries, report.over_proxy);
        assert_eq!(report.successes.len(), 1, "{defence:?}: {report:?}");
    }
}
