//! What a report does not say.

use std::path::Path;

use lodestar_core::fingerprint::NormalPath;
use lodestar_kernel::contain::State;
use lodestar_log::SessionDir;
use lodestar_log::verify::SessionReport;

use crate::fold::Fold;
use crate::graded::Graded;
use crate::model::{Limit, ServerNote};
use crate::words;

/// What nothing here defends against, in the terms of the threat model.
pub const NOT_DEFENDED: [&str; 7] = [
    "Injection inside the model's own prompt.",
    "A tool that lies in well-formed ways.",
    "A compromised operator, approver key or owner.",
    "Code that a permitted tool runs, beyond what the containment by the operating system enforces.",
    "Content of the log at rest where encryption is off.",
    "Built-in tools of a client that does not route them through Lodestar.",
    "What a sentinel was not written to see.",
];

/// What is said of servers, and of programs of `shell.run`, that were contained no further than this.
const UNCONTAINED: [(State, (&str, &str)); 2] = [
    (
        State::Absent,
        (
            "Servers ran not contained: what their code does beside answering calls is not in the log.",
            "Programs ran not contained: what they did beyond what they said is not in the log.",
        ),
    ),
    (
        State::Partial,
        (
            "Servers were contained in part: what the record of their start names as a gap, or as not refused, was open to their code.",
            "Programs were contained in part: a layer was missing on that machine, or something that was tried inside was not refused.",
        ),
    ),
];

/// Starts of servers that were contained just so far.
fn servers(fold: &Fold<'_>, state: State) -> Vec<u64> {
    let is_so = |one: &&ServerNote| {
        let contained = one.containment.as_ref();
        contained.is_some_and(|one| one.state == state)
    };
    let servers = fold.servers.iter().filter(is_so);
    servers.map(|one| one.seq).collect()
}

/// Ends of calls whose program was contained just so far.
fn programs(fold: &Fold<'_>, state: State) -> Vec<u64> {
    let ended = fold.actions.iter().filter_map(|one| one.ended.as_ref());
    let so = ended.filter(|one| one.contained == Some(state));
    so.map(|one| one.seq).collect()
}

/// What this report in particular does not say, and what no report does.
pub(crate) fn limits(
    fold: &Fold<'_>,
    verified: &SessionReport,
    dir: &SessionDir,
    others: &[String],
    graded: &Graded,
) -> Vec<Limit> {
    let mut limits = Vec::new();
    let mut add = |limit: String, events: Vec<u64>| limits.push(Limit { limit, events });
    if verified.proven < verified.events {
        add(
            format!(
                "Everything from #{} on is unproven: no signed checkpoint covers it yet.",
                verified.proven
            ),
            vec![verified.proven],
        );
    }
    if !fold.is_closed(verified) {
        add(
            "The session is not closed: an older copy of its files, or one that ends at its last checkpoint, cannot be told from this, whoever kept a ledger head.".to_owned(),
            vec![verified.events.saturating_sub(1)],
        );
    }
    if let Some(root) = fold.opening().and_then(|opening| opening.root.as_ref())
        && is_elsewhere(dir, root)
    {
        add(
            "The session was opened in another folder than the one that this log lies in: the project was moved or copied, or this is the log of another project of the same name.".to_owned(),
            vec![0],
        );
    }
    if !fold.redacted.is_empty() {
        add(
            "Events whose payload was redacted say nothing here, and what followed from them is not derived again.".to_owned(),
            fold.redacted.iter().map(|one| one.seq).collect(),
        );
    }
    if !fold.odd.is_empty() {
        add(
            "Events that this version of Lodestar cannot read are left out.".to_owned(),
            fold.odd.iter().map(|one| one.seq).collect(),
        );
    }
    let withheld: Vec<u64> = fold
        .actions
        .iter()
        .filter(|one| one.sensitivity > fold.ceiling)
        .map(|one| one.seq)
        .collect();
    if !withheld.is_empty() {
        add(
            format!(
                "What {} carried is not shown: it is above the ceiling of this report. A tool that nobody graded counts as secret; `--ceiling secret` shows it.",
                words::count(withheld.len() as u64, "call")
            ),
            withheld,
        );
    }
    for other in others {
        add(other.clone(), Vec::new());
    }
    if let Some(policy) = &fold.policy {
        if policy.signature == "unsigned" {
            add(
                "Nobody signed the policy; the operator allowed that.".to_owned(),
                vec![policy.seq],
            );
        }
        if !policy.ungraded.is_empty() {
            add(
                format!(
                    "{} that nobody graded; each is held as L4.",
                    words::count(policy.ungraded.len() as u64, "tool")
                ),
                vec![policy.seq],
            );
        }
    }
    for (state, limit) in UNCONTAINED {
        let servers = servers(fold, state);
        if !servers.is_empty() {
            add(limit.0.to_owned(), servers);
        }
        let programs = programs(fold, state);
        if !programs.is_empty() {
            add(limit.1.to_owned(), programs);
        }
    }
    add(where_it_ran(graded).to_owned(), Vec::new());
    add(
        "Without a ledger head that was kept elsewhere, a project whose sessions and ledger were rolled back together cannot be told from an older one.".to_owned(),
        Vec::new(),
    );
    for one in NOT_DEFENDED {
        add(format!("Not defended: {one}"), Vec::new());
    }
    limits
}

/// What this report does not know of the machine that the session ran on.
fn where_it_ran(graded: &Graded) -> &'static str {
    match graded {
        Graded::NoRun => {
            "Nobody attested on which machine this ran: no device and no gateway had a part in it."
        }
        Graded::Ungraded(_) | Graded::Refused(_) => {
            "On which machine this ran is not known here: it was to be a run of a gateway, and nothing that one said of it counts."
        }
        Graded::Said(_) => {
            "On which machine this ran is a gateway's word, as it was kept here. A device that controls its own guard can invent what tools answered; ask the gateway for what it says now."
        }
    }
}

/// Whether the log lies below another folder than `root`, which its session was opened in. A log that is kept
/// elsewhere than by default says nothing of it.
fn is_elsewhere(dir: &SessionDir, root: &NormalPath) -> bool {
    let log = dir.project_log();
    let Some(log) = log.dir().parent().and_then(|log| log.canonicalize().ok()) else {
        return false;
    };
    let Some(folder) = log
        .ancestors()
        .nth(2)
        .filter(|_| log.ends_with(".lodestar/log"))
    else {
        return false;
    };
    let root = Path::new(root.as_str());
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    root.is_absolute() && root != folder
}
