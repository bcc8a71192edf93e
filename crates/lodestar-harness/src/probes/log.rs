//! Probes about the record.

mod again;
mod cut;
mod redaction;
mod tamper;
mod told;
mod writers;

use std::fs;
use std::path::{Path, PathBuf};

use lodestar_core::digest::{decode_hex, leaf_hash, sha256_parts};
use lodestar_log::SessionDir;
use lodestar_log::verify::ProjectReport;
use serde_json::json;

use crate::probe::{Broken, Outcome, Probe};
use crate::stage::Stage;
use crate::world::{Act, Agent, Answer, Project, ServerScript, ToolScript};

pub(super) fn probes() -> Vec<Probe> {
    [
        tamper::probes(),
        cut::probes(),
        writers::probes(),
        redaction::probes(),
        again::probes(),
        told::probes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A project behind whose proxy an agent reads, writes, and sends if somebody lets it.
fn workshop(stage: &Stage) -> Outcome<Project<'_>> {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    let tool = |name: &str, input: &[&str], act: Act| ToolScript {
        name: name.to_owned(),
        input: input
            .iter()
            .map(|name| ((*name).to_owned(), "string".to_owned()))
            .collect(),
        answers: vec![Answer {
            act,
            text: "{found}".to_owned(),
            ..Answer::default()
        }],
        ..ToolScript::default()
    };
    project.server(&ServerScript {
        name: "files".to_owned(),
        tools: vec![
            tool("read", &["path"], Act::ReadFile),
            tool("write", &["path", "content"], Act::WriteFile),
            tool("send", &["text"], Act::Nothing),
        ],
        ..ServerScript::default()
    })?;
    let path = "arg_roles = { path = \"path\" }";
    project.grade("mcp.files.read", "L0", path);
    project.grade("mcp.files.write", "L3", path);
    project.grade("mcp.files.send", "L4", "");
    project.write("readme.md", "a small file")?;
    project.write("large.txt", &"a line of a large file\n".repeat(1500))?;
    Ok(project)
}

/// What an agent does in it: reads, some of it too large for a line, and writes.
fn work(agent: &mut Agent) -> Outcome {
    for path in ["readme.md", "large.txt"] {
        agent.call("files__read", json!({"path": path}))?;
    }
    let written = agent.call(
        "files__write",
        json!({"path": "notes.md", "content": "what was found"}),
    )?;
    match written.ran() {
        true => Ok(()),
        false => Err(Broken::Failed(format!("writing: {:?}", written.kind()))),
    }
}

/// A session that ended properly.
fn closed(project: &Project<'_>) -> Outcome<SessionDir> {
    let mut agent = project.agent()?;
    work(&mut agent)?;
    agent.leave()?;
    last(project)
}

/// A session whose process was killed: a checkpoint covers its beginning, and nobody closed it.
fn crashed(project: &Project<'_>) -> Outcome<SessionDir> {
    let mut agent = project.agent()?;
    work(&mut agent)?;
    agent.kill()?;
    last(project)
}

/// The last session.
fn last(project: &Project<'_>) -> Outcome<SessionDir> {
    let session = project.sessions()?.pop();
    let session = session.ok_or_else(|| Broken::Failed("there is no session".to_owned()))?;
    Ok(project.log()?.session(&session))
}

/// What verification found, in the words for machines.
fn codes(report: &ProjectReport) -> Vec<&'static str> {
    report.all_problems().map(|one| one.kind.code()).collect()
}

/// Every file below a folder.
fn files_below(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => files.extend(files_below(&path)?),
            false => files.push(path),
        }
    }
    files.sort();
    Ok(files)
}

/// One line of a log, taken apart without any code of the log's.
struct Parts<'a> {
    head: &'a str,
    payload: &'a str,
    salt: &'a str,
}

impl<'a> Parts<'a> {
    fn of(line: &'a str) -> Outcome<Self> {
        let apart = || {
            let rest = line.strip_prefix("{\"head\":")?;
            let (head, rest) = rest.split_once(",\"payload\":")?;
            let (payload, salt) = rest.rsplit_once(",\"salt\":\"")?;
            let salt = salt.strip_suffix("\"}")?;
            Some(Self {
                head,
                payload,
                salt,
            })
        };
        apart().ok_or_else(|| Broken::Failed(format!("this is no line of a log: {line:.80}")))
    }

    fn payload_hash(&self) -> Outcome<String> {
        let salt = decode_hex::<16>(self.salt.as_bytes());
        let salt = salt.ok_or_else(|| Broken::Failed("the salt is no hexadecimal".to_owned()))?;
        Ok(sha256_parts(&[&salt, self.payload.as_bytes()]).to_string())
    }
}

/// The log with one text in the place of another in all payloads, and every hash computed anew: what
/// somebody without a key can do, and does well.
fn rewritten(events: &str, from: &str, to: &str) -> Outcome<String> {
    let mut forged = String::new();
    let mut before: Option<String> = None;
    for line in events.lines() {
        let parts = Parts::of(line)?;
        let payload = parts.payload.replace(from, to);
        let changed = Parts {
            payload: &payload,
            ..parts
        };
        let mut head = with_hash(parts.head, "payload_hash", &changed.payload_hash()?)?;
        if let Some(before) = &before {
            head = with_hash(&head, "prev", before)?;
        }
        before = Some(leaf_hash(head.as_bytes()).to_string());
        let salt = parts.salt;
        forged += &format!("{{\"head\":{head},\"payload\":{payload},\"salt\":\"{salt}\"}}\n");
    }
    Ok(forged)
}

/// A head with another hash in it.
fn with_hash(head: &str, name: &str, value: &str) -> Outcome<String> {
    let apart = head.split_once(&format!("\"{name}\":\""));
    let apart = apart.and_then(|(start, rest)| Some((start, rest.get(value.len()..)?)));
    let (start, rest) = apart.ok_or_else(|| Broken::Failed(format!("the head has no `{name}`")))?;
    Ok(format!("{start}\"{name}\":\"{value}{rest}"))
}
