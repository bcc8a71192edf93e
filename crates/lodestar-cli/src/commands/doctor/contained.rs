//! Containment, tried: a harmless program is started in the very sandbox of each server and of `shell.run`, and what
//! is tried inside before it begins is told.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lodestar_guard::config::{Config, Demand, Reached, Server};
use lodestar_kernel::contain::{Attempt, Cell, Containment, Host, Network, Plan, State};

use super::Finding;
use crate::failure::Failure;
use crate::inert;
use crate::installation::Installation;

/// What every system has and nobody minds: it ends at once.
const HARMLESS: [&str; 3] = [
    "/bin/true",
    "/usr/bin/true",
    "/run/current-system/sw/bin/true",
];

/// The rules of Landlock that keep everything in that is asked of them: signals are the last of it.
const WHOLE_LANDLOCK: u32 = 6;

const MORE: &str = "docs/concepts/containment.md says what each layer holds";

pub(super) fn look(config: &Config, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let installation = Installation::locate()?;
    let keys = installation.dir();
    let mut children = Vec::new();
    for server in &config.downstream_servers {
        match &server.reached {
            Reached::Url { .. } => findings.push(Finding::uncovered(
                "containment",
                format!(
                    "server `{}` is elsewhere: nothing here contains it",
                    server.name
                ),
            )),
            Reached::Child { command, .. } => match config.plan(server, Some(keys)) {
                Some(plan) if !plan.program.is_file() => findings.push(
                    Finding::broken(
                        "containment",
                        format!(
                            "server `{}` cannot be started: there is no program `{}`",
                            server.name,
                            inert::line(command, 200)
                        ),
                    )
                    .remedy("name it by its path in the server's table, or put it on the PATH"),
                ),
                Some(plan) => children.push(Child::server(server, plan)),
                None => findings.push(
                    Finding::uncovered(
                        "containment",
                        format!(
                            "server `{}` is not contained: its configuration says `containment = \"off\"`",
                            server.name
                        ),
                    )
                    .remedy("take that line out of its table"),
                ),
            },
        }
    }
    if let Some(shell) = &config.tools.shell_run {
        let out_of_reach = config.out_of_reach(Some(keys));
        for (name, program) in &shell.programs {
            children.push(Child {
                what: format!("`shell.run` of `{}`", inert::line(name, 80)),
                plan: shell.plan(&program.path, &out_of_reach),
                demand: Demand::BestEffort,
            });
        }
    }
    if children.is_empty() {
        return Ok(());
    }
    findings.push(machine(Host::here()));
    for child in &children {
        findings.push(child.tried());
        findings.extend(child.reaches(keys));
    }
    Ok(())
}

/// What this machine has to contain anything with.
fn machine(host: Host) -> Finding {
    let mut has = Vec::new();
    let mut lacks = Vec::new();
    match host.landlock() {
        0 => lacks.push("Landlock".to_owned()),
        version => has.push(format!("Landlock {version}")),
    }
    for (there, what) in [
        (host.namespaces(), "user namespaces"),
        (host.filtered(), "seccomp"),
    ] {
        match there {
            true => has.push(what.to_owned()),
            false => lacks.push(what.to_owned()),
        }
    }
    if has.is_empty() {
        return Finding::uncovered(
            "containment_layers",
            "this machine has nothing to contain programs with: what Lodestar starts runs with your rights",
        )
        .remedy("Linux 5.13 and later has Landlock; other systems are not contained");
    }
    let has = has.join(", ");
    if (1..WHOLE_LANDLOCK).contains(&host.landlock()) {
        lacks.push(format!(
            "Landlock {WHOLE_LANDLOCK}, which keeps signals and abstract sockets in"
        ));
    }
    match lacks.is_empty() {
        true => Finding::proven(
            "containment_layers",
            format!("this machine contains programs with {has}"),
        ),
        false => Finding::uncovered(
            "containment_layers",
            format!(
                "this machine contains programs with {has}; it lacks {}",
                lacks.join(", ")
            ),
        )
        .remedy(MORE),
    }
}

/// A child that Lodestar would start.
struct Child {
    what: String,
    plan: Plan,
    demand: Demand,
}

impl Child {
    fn server(server: &Server, plan: Plan) -> Self {
        Self {
            what: format!("server `{}`", server.name),
            plan,
            demand: server.confines.containment,
        }
    }

    fn tried(&self) -> Finding {
        let what = &self.what;
        let found = match try_out(&self.plan) {
            Ok(found) => found,
            Err(problem) => {
                return Finding::broken(
                    "containment",
                    format!("{what} cannot be started in its sandbox: {problem}"),
                )
                .remedy("it would not start behind the proxy either");
            }
        };
        let said = format!("{what} is {}", found.summary());
        let finding = match (found.state, self.demand) {
            (State::Proved, _) => Finding::proven("containment", said),
            (_, Demand::Required) => Finding::broken("containment", said).remedy(
                "its configuration says `containment = \"required\"`, so it does not start",
            ),
            (State::Partial, _) => Finding::uncovered("containment", said).remedy(MORE),
            (State::Absent, _) => Finding::uncovered("containment", said)
                .remedy("what it does besides answering is beyond the proxy"),
        };
        finding.details(in_lines(&found, &self.plan)).of(found)
    }

    /// Whether keys lie where it was granted something: then nothing but a cover keeps them from it.
    fn reaches(&self, keys: &Path) -> Option<Finding> {
        let keys = keys.canonicalize().ok()?;
        let grants = self.plan.grants();
        let granted = [&grants.writes, &grants.reads, &grants.system];
        let mut granted = granted.into_iter().flatten();
        let place = granted.find(|grant| keys.starts_with(grant) || grant.starts_with(&keys))?;
        let finding = Finding::broken(
            "keys_in_reach",
            format!(
                "private keys lie in what {} is granted (`{}`): only what is mounted over them keeps them from it",
                self.what,
                inert::path(place)
            ),
        );
        Some(finding.remedy(
            "grant it less (`read`, `write`), or let LODESTAR_CONFIG_DIR name a directory elsewhere",
        ))
    }
}

/// Starts something harmless in the sandbox of a plan.
fn try_out(plan: &Plan) -> Result<Containment, String> {
    let program = HARMLESS
        .iter()
        .map(PathBuf::from)
        .find(|path| path.exists());
    let program = program.ok_or("there is no `true` on this machine to try it with")?;
    let cell = Cell::of(plan, Host::here()).map_err(|problem| problem.to_string())?;
    let mut command = Command::new(program);
    command
        .env_clear()
        .current_dir(&plan.project)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut confined = cell.confine(&mut command);
    let started = command.spawn();
    drop(command);
    let mut child = started.map_err(|problem| confined.explain(problem).to_string())?;
    let containment = confined.started();
    let ended = child.wait().map_err(|problem| problem.to_string())?;
    match ended.success() {
        true => Ok(containment),
        false => Err(format!(
            "the program that was tried in it ended with {ended}"
        )),
    }
}

/// What it was granted, and what was tried.
fn in_lines(found: &Containment, plan: &Plan) -> Vec<String> {
    if found.state == State::Absent {
        return Vec::new();
    }
    let profiles: Vec<&str> = found.profiles.iter().map(|one| one.as_str()).collect();
    let profiles = match profiles.is_empty() {
        true => "none, which is the tightest".to_owned(),
        false => profiles.join(", "),
    };
    let network = match &found.network {
        Network::Ports(ports) => {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            format!("TCP to port {}", ports.join(", "))
        }
        Network::Word(_) if found.network.is_none() => "none".to_owned(),
        Network::Word(_) => "any".to_owned(),
    };
    let mut lines = vec![format!("profiles: {profiles}; network: {network}")];
    let writes = plan.grants().writes;
    if !writes.is_empty() {
        let writes: Vec<String> = writes.iter().map(|place| inert::path(place)).collect();
        lines.push(format!("writes: {}", writes.join(", ")));
    }
    let refused = found.tried.iter().filter(|one| one.refused);
    let refused: Vec<&str> = refused.map(|one| one.attempt.as_words()).collect();
    lines.push(format!("refused: {}", refused.join(", ")));
    let open: Vec<&str> = found.open().map(Attempt::as_words).collect();
    if !open.is_empty() {
        lines.push(format!("not refused: {}", open.join(", ")));
    }
    lines.extend(found.notes.iter().map(|note| format!("note: {note}")));
    lines
}
