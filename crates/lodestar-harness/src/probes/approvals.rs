//! Probes about people's word.

use crate::probe::Probe;

pub(super) fn probes() -> Vec<Probe> {
    Vec::new()
}
