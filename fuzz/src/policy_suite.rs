//! Laws of policy tests.

use lodestar_policy::{Ending, Suite};

use crate::gate::{CONTRACTS, GATE};

/// Every case of a suite that is read ends, in its order; one that passed had the verdict that it
/// names. What cannot be read is wrong at a place that the text has.
pub fn policy_suite(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let suite = match Suite::parse(text) {
        Ok(suite) => suite,
        Err(wrong) => {
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&wrong.line), "{wrong:?}");
            assert!(wrong.column >= 1, "{wrong:?}");
            assert!(!wrong.problem.chars().any(|c| c.is_control() && c != '\n'));
            return;
        }
    };
    let result = suite.run(&GATE, &CONTRACTS);
    assert_eq!(result.cases.len(), suite.cases.len());
    for (case, ended) in suite.cases.iter().zip(&result.cases) {
        let found = ended.judgement.as_ref().map(|judgement| judgement.verdict);
        let passed = ended.ending == Ending::Passed;
        assert_eq!(matches!(ended.ending, Ending::Broken(_)), found.is_none());
        assert!(!passed || found == Some(case.expect), "{ended:?}");
    }
    let summary = result.summary();
    assert_eq!(summary.passed + summary.failed, suite.cases.len());
}
