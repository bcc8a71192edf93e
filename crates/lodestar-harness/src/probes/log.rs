//! Probes about the record.

use crate::probe::Probe;

pub(super) fn probes() -> Vec<Probe> {
    Vec::new()
}
