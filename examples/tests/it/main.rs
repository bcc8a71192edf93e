//! The examples run as they stand, and the guide shows their code.

use std::fs;
use std::path::Path;
use std::process::Command;

use lodestar_core::key::SecretKey;
use lodestar_core::name::ProjectId;
use lodestar_guard::{Config, Holds, Keys, Setup};
use lodestar_log::LogRoot;
use lodestar_policy::{Gate, Suite, check};
use lodestar_replay::derive;
use serde_json::json;

const AGENT_LOOP: &str = include_str!("../../agent_loop.rs");
const OWN_TOOL: &str = include_str!("../../own_tool.rs");

fn said(program: &str, scratch: &Path) -> String {
    let mut command = Command::new(program);
    let output = command.env("TMPDIR", scratch).output();
    let output = output.expect("the example starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    said
}

#[test]
fn the_agent_loop_reads_writes_and_is_kept_from_its_own_configuration() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let said = said(env!("CARGO_BIN_EXE_agent-loop"), scratch.path());
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        said.contains("fs.read > The release is on Friday."),
        "{said}"
    );
    assert!(
        said.contains("fs.write > Not run (policy_denied): the argument `path` leads to"),
        "{said}"
    );
    let last = lines.last().unwrap_or(&"");
    assert!(last.ends_with(": 2 ran, 1 refused"), "{said}");
    let folder = fs::read_dir(scratch.path()).expect("readable").next();
    let folder = folder
        .expect("the example's folder stays")
        .expect("readable");
    follows_again(&folder.path(), "example");
}

#[test]
fn the_agent_loop_fits_on_a_page() {
    assert!(AGENT_LOOP.lines().count() < 60);
}

#[test]
fn a_held_act_of_ones_own_tool_runs_on_a_signed_word() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let said = said(env!("CARGO_BIN_EXE_own-tool"), scratch.path());
    assert!(said.contains("ran: booked Aldebaran"), "{said}");
    assert!(said.contains("failed: "), "{said}");
    assert!(said.contains("2 ran, 1 held"), "{said}");
    assert!(said.contains("derived again, 0 differences"), "{said}");
}

/// Everything in the only session below a folder is derived again from its log alone.
fn follows_again(folder: &Path, project: &str) {
    let project = ProjectId::new(project).expect("a name");
    let log = LogRoot::in_folder(folder).project(&project);
    let sessions = log.sessions_on_disk().expect("readable");
    assert_eq!(sessions.len(), 1);
    let replay = derive(&log, &sessions[0], &[], None).expect("derived");
    assert!(replay.agrees(), "{:?}", replay.differences);
}

/// The pieces of a guide in one language.
fn pieces(guide: &str, language: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides");
    let guide = fs::read_to_string(folder.join(guide)).expect("the guide is there");
    let fence = format!("```{language}\n");
    let starts = guide.split(&fence).skip(1);
    let pieces = starts.map(|piece| piece.split("```").next().unwrap_or_default());
    pieces.map(|piece| piece.trim_end().to_owned()).collect()
}

/// Lines without their indentation, so that a piece of a function can stand at the margin.
fn bare(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).collect()
}

#[test]
fn every_piece_of_rust_in_the_guide_stands_in_an_example() {
    let sources = [bare(AGENT_LOOP), bare(OWN_TOOL)];
    let pieces = pieces("embed.md", "rust");
    for piece in &pieces {
        let piece = bare(piece);
        let is_shown = |source: &Vec<&str>| source.windows(piece.len()).any(|at| at == piece);
        assert!(sources.iter().any(is_shown), "{}", piece.join("\n"));
    }
    assert!(pieces.len() >= 5, "only {} pieces were found", pieces.len());
}

#[test]
fn the_policy_of_the_guide_is_the_one_that_its_commands_use() {
    let policy = include_str!("../../policy/policy.cedar");
    assert_eq!(pieces("policy.md", "cedar"), [policy.trim_end()]);
}

#[test]
fn the_tables_of_the_guide_on_tools_can_be_read() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let tables = pieces("tools.md", "toml");
    assert!(tables.len() >= 8, "only {} tables were found", tables.len());
    for table in tables {
        let text = format!("project_id = \"web\"\nactor_id = \"agent\"\n\n{table}\n");
        let read = Config::parse(&text, folder.path());
        assert!(read.is_ok(), "{table}\n{}", read.unwrap_err());
    }
}

/// The project of the guide on policies, in a folder of its own.
fn project() -> (tempfile::TempDir, Setup) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy");
    for file in fs::read_dir(files).expect("the files of the guide are there") {
        let file = file.expect("the folder can be read").path();
        let name = file.file_name().expect("a file has a name");
        fs::copy(&file, folder.path().join(name)).expect("it can be copied");
    }
    let config = Config::read(folder.path().join("lodestar.toml")).expect("it is a configuration");
    let keys = Keys::new(SecretKey::from_seed([7; 32]));
    (folder, Setup::new(config, keys).holds(Holds::Leave))
}

fn contracts(setup: &Setup) -> (Gate, Vec<lodestar_kernel::registry::ToolRecord>) {
    let (registry, gate) = setup.gate().expect("the policy fits the tools");
    (gate, registry.records())
}

#[test]
fn the_policy_of_the_guide_is_sound_and_passes_its_tests() {
    let (_folder, setup) = project();
    let (gate, records) = contracts(&setup);
    let shapes: Vec<_> = records.iter().map(|one| one.shape.clone()).collect();
    assert_eq!(check(gate.policy().source(), &shapes), []);
    let contracts = records
        .into_iter()
        .map(|one| (one.shape.name, one.contract))
        .collect();
    let suite = Suite::parse(include_str!("../../policy/policy-tests.toml")).expect("a suite");
    let result = suite.run(&gate, &contracts);
    let endings: Vec<String> = result.cases.iter().map(ToString::to_string).collect();
    assert!(result.passed(), "{}", endings.join("\n"));
}

#[tokio::test]
async fn the_rehearsal_of_the_guide_goes_as_it_says() {
    let (folder, setup) = project();
    let session = setup.open().await.expect("the session opens");
    let expected = [
        (
            "fs.write",
            json!({"path": "docs/plan.md", "content": "Friday", "create_dirs": true}),
            "ran",
        ),
        (
            "fs.write",
            json!({"path": "README.md", "content": "Friday"}),
            "approval_required",
        ),
        (
            "message.send",
            json!({"to": ["anna@corp.example"], "body": "done"}),
            "approval_required",
        ),
        (
            "message.send",
            json!({"to": ["all@corp.example"], "body": "done"}),
            "policy_denied",
        ),
    ];
    for (tool, arguments, ending) in expected {
        let reply = session
            .call(tool, arguments)
            .await
            .expect("the session goes on");
        let found = reply.refusal().map_or("ran", |why| why.kind());
        assert_eq!(found, ending, "{}", reply.for_agent());
    }
    session.close("done").await.expect("it can be closed");
    follows_again(folder.path(), "web");
}
