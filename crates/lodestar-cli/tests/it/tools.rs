//! `lodestar tools list` and `grade`.

use std::collections::BTreeMap;
use std::fs;

use lodestar_core::contract::Contract;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_guard::{Config, Holds, Keys, Setup};
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use serde_json::json;

use crate::gated::{CONFIG, configure, project};
use crate::world::{World, assert_inert, log_key};

#[test]
fn the_box_is_listed_and_what_cannot_be_made_is_named() {
    let run = World::bare().run(&["tools", "list"]).expect(0);
    insta::assert_snapshot!(run.out);
    assert!(
        run.err.contains("`nostr.publish` is not among them"),
        "{}",
        run.err
    );
}

#[test]
fn a_grade_of_the_operators_is_told_from_the_boxs() {
    let world = project();
    let text = format!(
        "{CONFIG}\n[tool_defaults.\"fs.write\"]\nrequired_trust_level = \"L4\"\ngroups = [\"risky\"]\n\n[tool_defaults.\"crm.lookup\"]\nrequired_trust_level = \"L1\"\n"
    );
    world.write("work/lodestar.toml", &text);
    let run = world.run(&["tools", "list"]).expect(0);
    insta::assert_snapshot!(run.out);
    assert!(
        run.err
            .contains("`crm.lookup` is graded, and no tool here has that name"),
        "{}",
        run.err
    );
    let report = world.run(&["tools", "list", "--json"]).expect(0).json();
    assert_eq!(report["tools"][1]["graded_by"], "operator");
    assert_eq!(report["from"]["not_here"], json!(["crm.lookup"]));
}

#[test]
fn a_clients_own_tools_are_listed_under_the_operators_grades() {
    let world = project();
    let grade = "[tool_defaults.\"codex.read.outside\"]\nrequired_trust_level = \"L4\"\n";
    world.write("work/lodestar.toml", &format!("{CONFIG}\n{grade}"));
    for client in ["claude-code", "codex", "cursor", "gemini"] {
        let list = ["tools", "list", "--client", client, "--json"];
        let report = world.run(&list).expect(0).json();
        let tools = report["tools"].as_array().expect("tools");
        let level = |name: &str| {
            let name = format!("{client}.{name}");
            let mut tools = tools.iter();
            let tool = tools.find(|tool| tool["name"] == name.as_str());
            tool.expect("it is listed")["level"].clone()
        };
        assert_eq!(level("read"), "L0");
        assert_eq!(level("read.secret"), "L4");
        assert_eq!(level("shell.prohibited"), "L5");
        let outside = if client == "codex" { "L4" } else { "L3" };
        assert_eq!(level("read.outside"), outside);
        let ungraded = [format!("{client}.mcp"), format!("{client}.other")];
        assert_eq!(report["ungraded"], json!(ungraded));
    }
    let list = ["tools", "list", "--client", "emacs"];
    world.run(&list).expect(2);
}

/// A program's own tool, which nobody graded.
struct Lookup(Definition);

impl Lookup {
    fn new() -> Self {
        Self(Definition {
            name: ToolName::new("crm.lookup").expect("a name"),
            server: ServerIdentity::new("crm").expect("a name"),
            description: "Looks a customer up.".to_owned(),
            input_schema: json!({"type": "object", "properties": {}}),
            roles: BTreeMap::new(),
            declared: None,
            minimum: Contract::ungraded(Scope::global()),
        })
    }
}

impl Tool for Lookup {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn call<'a>(&'a self, _: Call<'a>) -> Calling<'a> {
        Box::pin(async { Ok(Output::text("nobody")) })
    }
}

#[tokio::test]
async fn what_nobody_graded_is_said_loudly() {
    let world = project();
    configure(&world, "s-1", "auto_approve_ceiling = 2");
    let config = Config::read(world.path("work/lodestar.toml")).expect("a configuration");
    let setup = Setup::new(config, Keys::new(log_key())).tool(Lookup::new());
    let session = setup.holds(Holds::Leave).open().await.expect("opened");
    session.close("done").await.expect("closed");
    let run = world
        .run(&["tools", "list", "--session", "latest"])
        .expect(0);
    insta::assert_snapshot!(run.out);
    let report = world
        .run(&["tools", "list", "--session", "s-1", "--json"])
        .expect(0)
        .json();
    assert_eq!(report["ungraded"], json!(["crm.lookup"]));
    world.closed("web", "s-2");
    world.run(&["tools", "list", "--session", "s-2"]).expect(3);
    world.run(&["tools", "list", "--session", "s-3"]).expect(3);
}

#[test]
fn a_grade_is_printed_and_nothing_is_written() {
    let world = project();
    let args = [
        "tools",
        "grade",
        "fs.write",
        "--level",
        "L4",
        "--blast-radius",
        "external",
        "--group",
        "risky",
    ];
    let run = world.run(&args).expect(0);
    insta::assert_snapshot!(run.out);
    assert_eq!(
        fs::read_to_string(world.path("work/lodestar.toml")).expect("there"),
        CONFIG
    );
}

#[test]
fn a_grade_is_written_and_the_rest_stays() {
    let world = project();
    let before = format!("# ours\n{CONFIG}\n[limits] # bounds\ncall_deadline_ms   =  1000\n");
    let file = world.write("work/lodestar.toml", &before);
    world.chmod(&file, 0o640);
    let args = ["tools", "grade", "fs.write", "--level", "L4", "--write"];
    let run = world.run(&args).expect(0);
    assert!(run.out.contains("✓ written to "), "{}", run.out);
    let after = fs::read_to_string(&file).expect("there");
    assert_eq!(
        after,
        format!("{before}\n[tool_defaults.\"fs.write\"]\nrequired_trust_level = \"L4\"\n")
    );
    world.run(&args).expect(0);
    assert_eq!(fs::read_to_string(&file).expect("there"), after);
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(
        fs::metadata(&file).expect("there").permissions().mode() & 0o777,
        0o640
    );
    let report = world.run(&["tools", "list", "--json"]).expect(0).json();
    assert_eq!(report["tools"][1]["level"], "L4");
    assert_eq!(report["tools"][1]["graded_by"], "operator");
}

#[test]
fn nothing_goes_below_a_tools_floor() {
    let world = project();
    let run = world
        .run(&[
            "tools",
            "grade",
            "fs.write",
            "--level",
            "L0",
            "--sensitivity",
            "public",
            "--write",
        ])
        .expect(1);
    insta::assert_snapshot!(run.err);
    assert_eq!(
        fs::read_to_string(world.path("work/lodestar.toml")).expect("there"),
        CONFIG
    );
}

#[test]
fn a_tool_has_to_be_known_or_said_to_come_from_elsewhere() {
    let world = project();
    let run = world
        .run(&["tools", "grade", "fs.wrote", "--level", "L4"])
        .expect(3);
    assert!(
        run.err.contains("there are: fs.read, fs.write"),
        "{}",
        run.err
    );
    let args = [
        "tools",
        "grade",
        "crm.lookup",
        "--level",
        "L1",
        "--unlisted",
        "--write",
    ];
    world.run(&args).expect(0);
    let run = world.run(&["tools", "grade", "\u{202e}x", "--level", "L1"]);
    assert_ne!(run.code, 0);
    assert_inert(&run.err);
    let bare = World::bare();
    bare.run(&["tools", "grade", "fs.write", "--level", "L4"])
        .expect(0);
    bare.run(&["tools", "grade", "fs.write", "--level", "L4", "--write"])
        .expect(3);
    world.write("work/c.json", "{\"project_id\":\"web\",\"actor_id\":\"a\"}");
    let run = world
        .run(&[
            "tools",
            "grade",
            "x.y",
            "--level",
            "L4",
            "--unlisted",
            "--write",
            "--config",
            "c.json",
        ])
        .expect(2);
    assert!(run.err.contains("only TOML can be edited"), "{}", run.err);
}

#[test]
fn a_grade_says_how_a_tool_is_contained() {
    let world = crate::world::World::new();
    world.write(
        "work/lodestar.toml",
        "project_id = \"p\"\nactor_id = \"a\"\n[tools.\"fs.write\"]\nroot = \".\"\n",
    );
    let grade = |profile: &str| {
        world.run(&[
            "tools",
            "grade",
            "fs.write",
            "--level",
            "L3",
            "--sandbox",
            profile,
            "--write",
        ])
    };
    grade("write-local").expect(0);
    let text = std::fs::read_to_string(world.path("work/lodestar.toml")).expect("there");
    assert!(text.contains("sandbox = \"write-local\""), "{text}");
    let refused = grade("controlled-network").expect(1);
    assert!(refused.err.contains("sandbox"), "{}", refused.err);
    grade("none").expect(2);
}
