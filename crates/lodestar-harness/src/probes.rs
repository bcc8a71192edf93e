//! The scenarios that come with the program.

mod approvals;
mod devices;
mod firewall;
mod gate;
mod log;
mod proxy;

use crate::probe::Probe;

/// All of them, section by section.
pub fn all() -> Vec<Probe> {
    [
        firewall::probes(),
        gate::probes(),
        approvals::probes(),
        proxy::probes(),
        log::probes(),
        devices::probes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
