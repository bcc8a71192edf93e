//! What the configuration, the keys and the pins say: gaps that need no canary to be seen.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use lodestar_guard::config::{Config, Reached};
use lodestar_mcp::probe;

use super::Finding;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::pinned::{self, State};
use crate::trust::known_operators;
use crate::{inert, words};

/// Names that are listed before the rest is counted.
const MOST_NAMED: usize = 8;

pub(super) fn look(config: &Config, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    policy(config, findings);
    approvers(config, findings);
    keys(config, findings)?;
    servers(config, findings);
    pins(config, findings)
}

fn policy(config: &Config, findings: &mut Vec<Finding>) {
    match config.policy_in_force(None) {
        Err(problem) => findings.push(
            Finding::broken("policy", format!("the policy does not load: {problem}"))
                .remedy("`lodestar policy check` shows each problem with the line it is on"),
        ),
        Ok(policy) => {
            let file = config.policy.as_ref();
            if file.is_some_and(|file| file.allow_unsigned) {
                findings.push(
                    Finding::uncovered("unsigned_policy", "the policy counts without a signature: whoever can write the file decides what runs")
                        .remedy("sign it with `lodestar policy sign`, name the key under `keys`, and take `allow_unsigned` out"),
                );
            }
            if file.is_some() && allows_everything(policy.source()) {
                findings.push(
                    Finding::uncovered("default_allow", "the policy permits every call to `run`: only what stands on L4 is asked for")
                        .remedy("name tools or groups in its `permit`"),
                );
            }
        }
    }
    if config
        .auto_approve_ceiling
        .is_some_and(|ceiling| ceiling.get() == 3)
    {
        findings.push(
            Finding::uncovered(
                "default_allow",
                "`auto_approve_ceiling` is 3: every local change runs unasked",
            )
            .remedy("2 asks before anything in the project changes"),
        );
    }
}

/// Whether a policy has a permit without any condition.
fn allows_everything(source: &str) -> bool {
    let plain: String = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<String>()
        .split_whitespace()
        .collect();
    plain.contains("permit(principal,action,resource);")
}

fn approvers(config: &Config, findings: &mut Vec<Finding>) {
    if config.approvals.authorized_keys.approvers().is_empty() {
        findings.push(
            Finding::uncovered("approvers", "nobody may approve: whatever is held stays held")
                .remedy("`lodestar approve keygen --name NAME` makes a key and prints the table for `lodestar.toml`"),
        );
    }
}

fn keys(config: &Config, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let installation = Installation::locate()?;
    let dir = installation.dir();
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    if real.starts_with(config.root()) {
        findings.push(
            Finding::broken(
                "keys",
                format!(
                    "the keys lie in the project (`{}`), where an agent's tools work",
                    inert::path(dir)
                ),
            )
            .remedy("let LODESTAR_CONFIG_DIR name a directory outside of it"),
        );
    }
    let names = installation.key_names()?;
    if !names.iter().any(|name| name == "log") {
        findings.push(Finding::uncovered(
            "keys",
            "this installation has no log key yet; the first session makes it",
        ));
    }
    let open: Vec<String> = names
        .iter()
        .map(|name| installation.key_path(name))
        .filter(|path| is_open(path))
        .map(|path| inert::path(&path))
        .collect();
    if !open.is_empty() {
        findings.push(
            Finding::broken(
                "keys",
                format!(
                    "others on this machine can read private keys: {}",
                    open.join(", ")
                ),
            )
            .remedy("chmod 600 each of them, and make new ones if somebody may have read them"),
        );
    }
    Ok(())
}

fn is_open(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

fn servers(config: &Config, findings: &mut Vec<Finding>) {
    for server in &config.downstream_servers {
        if probe::identity(server).contains("version not pinned") {
            findings.push(
                Finding::uncovered(
                    "unpinned_version",
                    format!(
                        "server `{}` runs whatever version of its package there is today",
                        server.name
                    ),
                )
                .remedy(
                    "say the version in its `args`; what it offers is pinned, what it does is not",
                ),
            );
        }
        if let Reached::Url { url, .. } = &server.reached
            && url.scheme() == "http"
            && !matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"))
        {
            findings.push(Finding::uncovered(
                "in_the_clear",
                format!("server `{}` is called without TLS", server.name),
            ));
        }
    }
}

fn pins(config: &Config, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    if config.downstream_servers.is_empty() {
        return Ok(());
    }
    let pins = match pinned::of(config) {
        Ok(pins) => pins,
        Err(problem) => {
            findings.push(Finding::broken("pins", problem.with_help()));
            return Ok(());
        }
    };
    let operators = known_operators().keys();
    let (mut unreviewed, mut drifted, mut ungraded) = (Vec::new(), Vec::new(), Vec::new());
    for server in &config.downstream_servers {
        let name = server.name.as_str();
        let Some(of_server) = pins.servers.get(name) else {
            continue;
        };
        for (tool, pin) in &of_server.tools {
            let ledger = format!("mcp.{name}.{tool}");
            match pinned::state(
                pin,
                &config.project_id,
                &of_server.identity,
                tool,
                &operators,
            ) {
                State::Reviewed => {}
                State::Unreviewed => unreviewed.push(ledger.clone()),
                State::Drifted => drifted.push(ledger.clone()),
            }
            if !config.tool_defaults.contains_key(&ledger) {
                ungraded.push(ledger);
            }
        }
    }
    if !unreviewed.is_empty() {
        findings.push(
            Finding::uncovered(
                "unreviewed",
                format!("nobody has looked at {}", named(&unreviewed)),
            )
            .remedy("`lodestar tools review` shows them, and accepts them under a signature"),
        );
    }
    if !drifted.is_empty() {
        findings.push(
            Finding::uncovered(
                "drifted",
                format!("not as pinned, and refused: {}", named(&drifted)),
            )
            .remedy("`lodestar tools review` shows what changed"),
        );
    }
    if !ungraded.is_empty() {
        findings.push(
            Finding::uncovered(
                "ungraded",
                format!(
                    "nobody graded {}: each call waits for a person",
                    named(&ungraded)
                ),
            )
            .remedy("`lodestar tools grade TOOL --level RUNG --write`"),
        );
    }
    Ok(())
}

fn named(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(MOST_NAMED)
        .map(|name| format!("`{}`", inert::line(name, 80)))
        .collect();
    match names.len().saturating_sub(MOST_NAMED) {
        0 => shown.join(", "),
        more => format!(
            "{} and {}",
            shown.join(", "),
            words::count(more as u64, "other tool")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::allows_everything;

    #[test]
    fn a_permit_without_a_condition_is_seen() {
        assert!(allows_everything(
            "// x\npermit (principal, action,\n resource);"
        ));
        assert!(!allows_everything(
            "// permit(principal,action,resource);\n"
        ));
        assert!(!allows_everything(
            "permit(principal, action == Action::\"run\", resource);"
        ));
    }
}
