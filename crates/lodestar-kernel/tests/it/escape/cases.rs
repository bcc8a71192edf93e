//! Which cells there are, and what each of them grants.

use std::collections::BTreeSet;

use lodestar_core::contract::Sandbox;
use lodestar_kernel::contain::Network;

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) profile: Sandbox,
    /// Whether its ways out are ports: one is granted, and nothing else.
    pub(super) ports: bool,
}

/// What should come of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Granted,
    Forbidden,
}

/// Every profile, and one with ports.
pub(super) fn cases() -> Vec<Case> {
    let profiles = [
        Sandbox::Read,
        Sandbox::WriteIsolated,
        Sandbox::WriteLocal,
        Sandbox::ControlledShell,
        Sandbox::ControlledNetwork,
    ];
    let case = |profile| Case {
        profile,
        ports: false,
    };
    let mut cases: Vec<Case> = profiles.into_iter().map(case).collect();
    cases.push(Case {
        profile: Sandbox::WriteLocal,
        ports: true,
    });
    cases
}

impl Case {
    pub(super) fn network(&self, port: u16) -> Option<Network> {
        self.ports.then(|| Network::Ports(BTreeSet::from([port])))
    }

    pub(super) fn writes(&self) -> bool {
        matches!(self.profile, Sandbox::WriteLocal | Sandbox::ControlledShell)
    }

    pub(super) fn any_network(&self) -> bool {
        self.profile == Sandbox::ControlledNetwork
    }
}

/// The table. What is not in it is forbidden.
pub(super) fn expected(name: &str, case: &Case, namespaces: bool) -> Expected {
    // A network of one's own leads nowhere but to oneself.
    let own_network = namespaces && !case.any_network() && !case.ports;
    let granted = match name {
        "read_project" | "list_project" | "read_system" | "read_proc_self" | "exec_system"
        | "write_null" | "write_tmp" | "stdout_by_name" | "pipe" | "socketpair" | "thread"
        | "kill_own_child" | "memfd" | "own_limits" | "netlink_route" | "python3" | "node"
        | "git_reads" => true,
        "exec_own" => case.profile == Sandbox::ControlledShell,
        "write_old" | "write_sub" | "mkdir_sub" | "rename_sub" | "fchmod_sub" => case.writes(),
        // Without mounts, a folder that holds what is protected is granted entry by entry.
        "write_top" | "git_commits" => case.writes() && namespaces,
        // Without mounts, modes are kept by refusing to change any by path.
        "chmod_sub" => case.writes() && namespaces,
        "chmod_tmp" => namespaces,
        // Without mounts, names can be seen, and nothing behind them opened; the cell says so.
        "list_lodestar" => !namespaces,
        // Numbers, of which none can be opened or followed.
        "parent_fd_numbers" => true,
        // Shared memory of one's own is a mount, too.
        "shared_memory" | "workers" => namespaces,
        "loopback" => own_network || case.any_network(),
        "tcp4" | "tcp6" | "mptcp" | "tcp_fast_open" | "proxy_variable" => case.any_network(),
        "tcp_port" => case.any_network() || case.ports,
        // They leave, and arrive where the network is granted; see `World::harmed`.
        "udp4" | "udp6" => own_network || case.any_network(),
        // They are made, and moved aside at the end; see `World::harmed`.
        "plant_vscode" => case.writes(),
        "plant_codex" | "plant_gemini" | "plant_commondir" | "plant_by_link" => {
            case.writes() && namespaces
        }
        _ => false,
    };
    if granted {
        Expected::Granted
    } else {
        Expected::Forbidden
    }
}
