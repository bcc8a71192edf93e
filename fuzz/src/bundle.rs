//! Laws of proof bundles.

use lodestar_log::Trust;
use lodestar_report::bundle::{Checked, check};

use crate::sample;

/// A bundle holds for nobody who trusts no key or a stranger's; for those who trust the log's key it
/// shows only what is in the sample log. One that does not hold says why.
pub fn bundle(data: &[u8]) {
    for trust in [
        Trust::default(),
        Trust::only(sample::stranger_key().public()),
    ] {
        assert!(!checked(data, &trust).holds());
    }
    let trust = Trust {
        operators: vec![sample::operator_key().public()],
        ..Trust::only(sample::log_key().public())
    };
    let checked = checked(data, &trust);
    if let (Some(size), Some(root)) = (checked.size, checked.root) {
        let mut signed = sample::signed_checkpoints().into_iter();
        assert!(signed.any(|one| one.size == size && one.root == root));
    }
    assert!(checked.events <= sample::leaves().len() as u64);
    if checked.holds() {
        assert!(checked.size.is_some() && checked.session.is_some());
        // Only the sample's own bundles are sealed, and each proves something.
        assert!(checked.sealed && checked.events > 0);
    }
}

/// Whether a bundle at least says what it is of.
pub fn named(data: &[u8]) -> bool {
    checked(data, &Trust::default()).session.is_some()
}

fn checked(data: &[u8], trust: &Trust) -> Checked {
    check(&mut &*data, trust).expect("memory can be read")
}
