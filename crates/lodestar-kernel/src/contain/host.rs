//! What this machine can enforce, found out once and by trying.

use std::sync::OnceLock;

/// The machine that programs are started on, looked at when the first of them is.
pub type Hosting = fn() -> Host;

/// What there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    landlock: u32,
    namespaces: bool,
    filtered: bool,
}

impl Host {
    /// This machine.
    pub fn here() -> Self {
        static HERE: OnceLock<Host> = OnceLock::new();
        *HERE.get_or_init(Self::look)
    }

    /// This machine without a layer, for whoever has to know how the others hold.
    #[must_use]
    pub fn without_namespaces(self) -> Self {
        Self {
            namespaces: false,
            ..self
        }
    }

    /// The same, without the layer of rules.
    #[must_use]
    pub fn without_landlock(self) -> Self {
        Self {
            landlock: 0,
            ..self
        }
    }

    /// A machine that enforces nothing, for a harness that takes
    /// [`Defence::Containment`](lodestar_core::defence::Defence) out.
    pub fn enforcing_nothing() -> Self {
        Self {
            landlock: 0,
            namespaces: false,
            filtered: false,
        }
    }

    /// The version of Landlock's rules; zero where there are none.
    pub fn landlock(self) -> u32 {
        self.landlock
    }

    /// Whether a child can have namespaces of its own.
    pub fn namespaces(self) -> bool {
        self.namespaces
    }

    /// Whether system calls can be filtered.
    pub fn filtered(self) -> bool {
        self.filtered
    }

    #[cfg(target_os = "linux")]
    fn look() -> Self {
        Self {
            landlock: landlock_version(),
            namespaces: gives_networks()
                && super::enter::try_namespaces(super::cell::trial()).is_ok(),
            filtered: seccompiler::TargetArch::try_from(std::env::consts::ARCH).is_ok(),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn look() -> Self {
        Self::enforcing_nothing()
    }
}

/// Whether the kernel was built with networks of processes' own, and nobody turned them off.
#[cfg(target_os = "linux")]
fn gives_networks() -> bool {
    let most = std::fs::read_to_string("/proc/sys/user/max_net_namespaces");
    most.is_ok_and(|most| most.trim() != "0")
        && std::fs::exists("/proc/self/ns/net").is_ok_and(|is| is)
}

/// What the kernel says when it is asked for a restriction that restricts nothing.
#[cfg(target_os = "linux")]
fn landlock_version() -> u32 {
    use landlock::{LandlockStatus, RestrictSelf};
    // Without any flag it asks, sets nothing, and touches no thread.
    let asked = RestrictSelf::default().no_new_privs(false).apply();
    match asked.map(|status| status.landlock) {
        Ok(LandlockStatus::Available { effective_abi, .. }) => effective_abi as u32,
        _ => 0,
    }
}
