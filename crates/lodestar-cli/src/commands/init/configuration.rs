//! The text of a first configuration: every server, every tool that it lists, and why each stands where it does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use lodestar_core::ladder::Rung;
use lodestar_core::name::ProjectId;
use lodestar_guard::config::{Reached, Server};
use lodestar_mcp::probe::{NotOffered, Offered};
use toml_edit::{Array, InlineTable, Value};

use super::client::Client;
use super::draft::Draft;
use super::grading::{Proposal, propose};
use super::granting::{Granted, grant};
use crate::inert;

/// Where the schema lies that editors check the configuration against.
pub(crate) const SCHEMA: &str = ".lodestar/lodestar.schema.json";
/// Columns of a comment.
const COLUMNS: usize = 400;

/// One server, and what became of it.
pub(crate) struct Tried {
    pub(crate) draft: Draft,
    pub(crate) found: Result<(Server, Offered), NotOffered>,
}

/// A tool of a server, graded.
pub(crate) struct Graded {
    pub(crate) name: String,
    pub(crate) ledger: String,
    pub(crate) proposal: Proposal,
}

impl Tried {
    /// Its tools, graded; none where it did not start.
    pub(crate) fn tools(&self) -> Vec<Graded> {
        let Ok((server, offered)) = &self.found else {
            return Vec::new();
        };
        let grade = |tool: &lodestar_mcp::probe::OfferedTool| {
            let name = server.name.as_str();
            let mut proposal = propose(name, &server.reached, &tool.name, &tool.definition);
            if !self.draft.offers(&tool.name) {
                proposal.rung = Some(Rung::L5);
                proposal.why = "the client had it switched off".to_owned();
                proposal.roles.clear();
            }
            Graded {
                name: tool.name.clone(),
                ledger: format!("mcp.{name}.{}", tool.name),
                proposal,
            }
        };
        let mut tools: Vec<Graded> = offered.tools.iter().map(grade).collect();
        tools.sort_by(|a, b| a.ledger.cmp(&b.ledger));
        tools.dedup_by(|a, b| a.ledger == b.ledger);
        tools
    }

    /// Why it is not in force.
    pub(crate) fn problem(&self) -> Option<String> {
        let problem = self.found.as_ref().err()?;
        let last = problem.last_words.lines().last().unwrap_or_default().trim();
        Some(match last.is_empty() {
            true => problem.why.clone(),
            false => format!(
                "{}; its last words: {}",
                problem.why,
                inert::line(last, 200)
            ),
        })
    }
}

/// The text of the configuration.
pub(crate) fn text(
    project: &ProjectId,
    client: Client,
    from: &Path,
    root: &Path,
    tried: &[Tried],
) -> String {
    let mut text = format!(
        "\
#:schema ./{SCHEMA}
# Written by `lodestar init` from {}. Whatever is in force is here to be read and changed.

project_id = {}
actor_id = {}

# Calls up to this rung run unasked: 0 to 3. L4 waits for a person, whatever stands here.
auto_approve_ceiling = 2

# Who may approve what waits: `lodestar approve keygen --name NAME` makes a key and prints its table.
# [[approvals.authorized_keys]]
# actor_id = \"NAME\"
# public_key = \"…\"
",
        comment(&from.file_name().unwrap_or_default().to_string_lossy()),
        quoted(project.as_str()),
        quoted(client.actor()),
    );
    let is_child = |one: &Tried| matches!(one.draft.reached, Ok(Reached::Child { .. }));
    if tried.iter().any(is_child) {
        text.push_str(
            "
# Servers that are processes are contained (Linux): they read the project and what their arguments name, and write
# what the `sandbox` of their tools says; a tool that is ungraded adds nothing. More is granted by `read`, `write`,
# `network` and `sandbox` in a server's table. `lodestar doctor` shows what each has.
",
        );
    }
    for one in tried {
        server(one, root, &mut text);
    }
    let tools: Vec<Graded> = tried.iter().flat_map(Tried::tools).collect();
    if !tools.is_empty() {
        text.push_str(
            "
# How far each tool may reach. A tool without a table is ungraded: it stands on L4, and every call of it
# waits for a person. What stands here was read off names and arguments alone, and says too little rather
# than too much; what a server says of its own tool has lowered nothing. Look at each:
# `lodestar tools review`, then `lodestar tools grade`.
",
        );
    }
    for tool in &tools {
        grade(tool, &mut text);
    }
    text
}

fn server(tried: &Tried, root: &Path, text: &mut String) {
    let draft = &tried.draft;
    text.push('\n');
    for note in &draft.notes {
        let _ = writeln!(text, "# {}: {}", comment(&draft.called), comment(note));
    }
    let reached = match (&tried.found, &draft.reached) {
        (Ok(_), Ok(reached)) => Ok(reached),
        (Err(_), reached) => Err(reached.as_ref().ok()),
        (Ok(_), Err(_)) => Err(None),
    };
    match reached {
        Ok(reached) => {
            text.push_str(&table(draft, reached));
            confines(&grant(tried, root), root, text);
        }
        Err(reached) => {
            let why = tried.problem().unwrap_or_default();
            let _ = writeln!(
                text,
                "# `{}` is not in force: {}",
                comment(&draft.called),
                comment(&why)
            );
            for line in reached
                .map(|one| table(draft, one))
                .unwrap_or_default()
                .lines()
            {
                let _ = writeln!(text, "# {line}");
            }
        }
    }
}

/// What it is granted beyond its profiles, with the reasons.
fn confines(granted: &Granted, root: &Path, text: &mut String) {
    for why in &granted.because {
        let _ = writeln!(text, "# {}", comment(why));
    }
    if granted.write.is_empty() {
        return;
    }
    let places: Array = granted
        .write
        .iter()
        .map(|place| match place.strip_prefix(root) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.to_string_lossy().into_owned(),
            Err(_) => place.to_string_lossy().into_owned(),
        })
        .collect();
    let _ = writeln!(text, "write = {}", places.to_string().trim());
}

fn table(draft: &Draft, reached: &Reached) -> String {
    let mut text = "[[downstream_servers]]\n".to_owned();
    let mut set = |key: &str, value: Value| {
        let _ = writeln!(text, "{key} = {}", value.to_string().trim());
    };
    set("name", draft.name.as_str().into());
    let table = |members: &BTreeMap<String, String>| {
        let members: InlineTable = members.iter().map(|(k, v)| (k, v.as_str())).collect();
        Value::from(members)
    };
    match reached {
        Reached::Child {
            command,
            args,
            env,
            inherit_env,
            cwd,
        } => {
            set("command", command.as_str().into());
            if !args.is_empty() {
                set(
                    "args",
                    args.iter().map(String::as_str).collect::<Array>().into(),
                );
            }
            if !env.is_empty() {
                set("env", table(env));
            }
            if !inherit_env.is_empty() {
                let names: Array = inherit_env.iter().map(String::as_str).collect();
                set("inherit_env", names.into());
            }
            if let Some(cwd) = cwd {
                set("cwd", cwd.to_string_lossy().as_ref().into());
            }
        }
        Reached::Url { url, headers_env } => {
            set("url", url.as_str().into());
            if !headers_env.is_empty() {
                set("headers_env", table(headers_env));
            }
        }
    }
    text
}

fn grade(tool: &Graded, text: &mut String) {
    let Proposal {
        rung,
        reversibility,
        why,
        roles,
    } = &tool.proposal;
    let name = quoted(&tool.ledger);
    let Some(rung) = rung else {
        let _ = write!(
            text,
            "\n# ungraded: {}\n# [tool_defaults.{name}]\n# required_trust_level = \"L4\"\n",
            comment(why)
        );
        return;
    };
    let _ = write!(
        text,
        "\n# {}\n[tool_defaults.{name}]\nrequired_trust_level = \"{rung}\"\n",
        comment(why)
    );
    if *rung == Rung::L5 {
        return;
    }
    let (reach, sandbox, permissions) = match rung {
        Rung::L3 => ("project", "write-local", "\"read_files\", \"write_files\""),
        _ => ("self", "read", "\"read_files\""),
    };
    let _ = write!(
        text,
        "blast_radius = \"{reach}\"\nreversibility = \"{reversibility}\"\ndata_sensitivity = \"private\"\nsandbox = \"{sandbox}\"\npermissions = [{permissions}]\n"
    );
    if !roles.is_empty() {
        let roles: InlineTable = roles
            .iter()
            .map(|(name, role)| (name, role.to_string()))
            .collect();
        let _ = writeln!(text, "arg_roles = {}", roles.to_string().trim());
    }
}

/// A text of somebody else's in a comment: one line, and inert.
fn comment(text: &str) -> String {
    inert::line(&text.replace(['\n', '\r'], " "), COLUMNS)
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
