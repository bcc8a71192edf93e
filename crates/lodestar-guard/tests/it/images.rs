//! What an act writes over is kept before its tool is called, and is what stood there last.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lodestar_core::contract::{BlastRadius, Contract, Reversibility, Sandbox};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_guard::Holds;
use lodestar_kernel::image::{Imaged, State, Stood};
use lodestar_kernel::step::{Step, Steps};
use lodestar_kernel::tool::{Call, Calling, Definition, Effect, Output, Tool, ToolError};
use serde_json::{Map, Value, json};

use crate::governed::{Project, count};

const CONFIG: &str = r#"
project_id = "notes"
actor_id = "agent"
session_id = "s1"
auto_approve_ceiling = 3

[tools."fs.write"]
root = "."

[tool_defaults."box.edit"]
required_trust_level = "L3"
blast_radius = "project"
reversibility = "reversible"
data_sensitivity = "private"
"#;

/// Writes `edited` to a file, once it has looked into the log.
#[derive(Debug)]
struct Edit {
    root: PathBuf,
    definition: Definition,
    end: Result<(), Effect>,
}

impl Edit {
    fn of(project: &Project, end: Result<(), Effect>) -> Self {
        Self {
            root: project.root.clone(),
            end,
            definition: Definition {
                name: ToolName::new("box.edit").unwrap(),
                server: ServerIdentity::new("box").unwrap(),
                description: String::new(),
                input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
                roles: [].into(),
                minimum: Contract {
                    required_level: Rung::L0,
                    blast_radius: BlastRadius::SelfOnly,
                    reversibility: Reversibility::Reversible,
                    scope: Scope::global(),
                    data_sensitivity: DataSensitivity::Public,
                    preconditions: Default::default(),
                    sandbox: Sandbox::ControlledNetwork,
                    permissions: [].into(),
                },
                declared: None,
            },
        }
    }
}

impl Tool for Edit {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn writes(&self, arguments: &Map<String, Value>) -> Vec<PathBuf> {
        vec![arguments["path"].as_str().unwrap().into()]
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            let log = self.root.join(".lodestar/log/notes/s1");
            let events = std::fs::read_to_string(log.join("events.ndjson")).unwrap();
            let image = events
                .lines()
                .position(|line| line.contains("action.imaged@1"));
            let checkpoint = std::fs::read_to_string(log.join("checkpoint")).unwrap();
            let size: usize = checkpoint.lines().nth(1).unwrap().parse().unwrap();
            assert!(
                image.unwrap() < size,
                "the image is under a checkpoint on disk"
            );
            std::fs::write(self.root.join(call.text("path")?), "edited").unwrap();
            match self.end {
                Ok(()) => Ok(Output::text("done")),
                Err(effect) => Err(ToolError::failed(effect, "it broke")),
            }
        })
    }
}

fn images(project: &Project) -> Vec<Imaged> {
    let events = project.events(&"s1".parse().unwrap()).into_iter();
    let imaged = events.filter(|(kind, _)| kind == "action.imaged@1");
    imaged
        .map(|(_, payload)| serde_json::from_value(payload).unwrap())
        .collect()
}

fn left(project: &Project) -> Vec<State> {
    let mut events = project.events(&"s1".parse().unwrap()).into_iter();
    let ends = ["action.completed@1", "action.failed@1"];
    let end = events.find(|(kind, _)| ends.contains(&kind.as_str()));
    let left = end.unwrap().1.get("left").cloned();
    left.map_or_else(Vec::new, |left| serde_json::from_value(left).unwrap())
}

fn content(imaged: &Imaged) -> Vec<u8> {
    match &imaged.images[0].stood {
        Stood::File {
            content, sha256, ..
        } => content.bytes(sha256).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_image_is_safe_on_disk_when_the_tool_is_called() {
    for (end, seen) in [
        (Ok(()), 1),
        (Err(Effect::None), 1),
        // What was started may still go on.
        (Err(Effect::Unknown), 0),
    ] {
        let project = Project::new();
        std::fs::write(project.root.join("a.txt"), "before").unwrap();
        let tool = Edit::of(&project, end);
        let setup = project.setup(CONFIG, &[]).holds(Holds::Leave).tool(tool);
        let session = setup.open().await.unwrap();
        session
            .call("box.edit", json!({"path": "a.txt"}))
            .await
            .unwrap();
        session.close("done").await.unwrap();
        let images = images(&project);
        assert_eq!(images.len(), 1);
        assert_eq!(content(&images[0]), b"before");
        assert_eq!(left(&project).len(), seen);
        project.assert_sound(session.id());
    }
}

#[tokio::test]
async fn what_changes_while_the_record_is_made_safe_is_kept_anew() {
    let project = Project::new();
    let file = project.root.join("a.txt");
    std::fs::write(&file, "before").unwrap();
    let once = Arc::new(AtomicBool::new(false));
    let (path, done) = (file.clone(), Arc::clone(&once));
    let steps = Steps::tell(move |step| {
        if step == Step::Cleared && !done.swap(true, Ordering::SeqCst) {
            std::fs::write(&path, "meanwhile").unwrap();
        }
    });
    let setup = project.setup(CONFIG, &[]).holds(Holds::Leave).steps(steps);
    let setup = setup.tool(Edit::of(&project, Ok(())));
    let session = setup.open().await.unwrap();
    let arguments = json!({"path": "a.txt", "content": "after"});
    assert!(session.call("fs.write", arguments).await.unwrap().ran());
    session.close("done").await.unwrap();
    let images = images(&project);
    assert_eq!(images.len(), 2);
    assert_eq!(content(&images[1]), b"meanwhile", "the last one counts");
    project.assert_sound(session.id());
}

#[tokio::test]
async fn what_comes_to_be_beyond_keeping_in_between_is_not_run() {
    let project = Project::new();
    let file = project.root.join("a.txt");
    std::fs::write(&file, "before").unwrap();
    let path = file.clone();
    let steps = Steps::tell(move |step| {
        if step == Step::Cleared {
            let file = std::fs::File::create(&path).unwrap();
            file.set_len((16 << 20) + 1).unwrap();
        }
    });
    let setup = project.setup(CONFIG, &[]).holds(Holds::Leave).steps(steps);
    let setup = setup.tool(Edit::of(&project, Ok(())));
    let session = setup.open().await.unwrap();
    let arguments = json!({"path": "a.txt", "content": "after"});
    let reply = session.call("fs.write", arguments).await.unwrap();
    assert_eq!(reply.refusal().unwrap().kind(), "irreversible");
    session.close("done").await.unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), (16 << 20) + 1);
    let events = project.events(session.id());
    assert_eq!(
        count(&events, "action.unknown"),
        1,
        "cleared, and never called"
    );
    project.assert_sound(session.id());
}

#[tokio::test]
async fn what_only_reads_or_says_nothing_of_files_keeps_nothing() {
    let project = Project::new();
    let config = format!("{CONFIG}\n[tools.\"fs.read\"]\nroot = \".\"\n");
    std::fs::write(project.root.join("a.txt"), "text").unwrap();
    let setup = project.setup(&config, &[]).holds(Holds::Leave);
    let session = setup.tool(Edit::of(&project, Ok(()))).open().await.unwrap();
    session
        .call("fs.read", json!({"path": "a.txt"}))
        .await
        .unwrap();
    // A path that the tool itself refuses is none that it writes.
    session
        .call("fs.write", json!({"path": "../a.txt", "content": ""}))
        .await
        .unwrap();
    session.close("done").await.unwrap();
    assert!(images(&project).is_empty());
}
