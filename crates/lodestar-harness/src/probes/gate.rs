//! Probes about what may run.

mod ladder;

use crate::probe::Probe;

pub(super) fn probes() -> Vec<Probe> {
    ladder::probes()
}
