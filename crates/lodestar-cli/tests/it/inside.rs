//! An agent that runs code: through a tool of a real session it reaches neither keys nor requests. Where nothing contains
//! it, it can read the keys, start `lodestar` and make terminals of its own, and cannot approve.

use std::fs;
use std::process::{Command, Stdio};

use lodestar_core::note::NoteKey;
use serde_json::{Value, json};

use crate::gated::{RUN, events};
use crate::terminal::{at_terminal, python, without_terminal};
use crate::world::World;

const PASSPHRASE: &str = "correct hörse battery";

/// What the tool runs. Every try is told with its exit code.
const ATTACK: &str = r#"
export LODESTAR_CONFIG_DIR='@CONFIG' HOME='@HOME'
request=$(ls .lodestar/approvals/s-1/*.request.json)
id=$(basename "$request" .request.json)
four=$(sed 's/.*"fingerprint":"[0-9a-f]*\([0-9a-f]\{4\}\)".*/\1/' "$request")
cat "$LODESTAR_CONFIG_DIR/keys/alice.key" > stolen.key && echo "read the key 0"
(: < /dev/tty) 2>/dev/null; echo "a terminal of the session $?"
printf '%s\r\n' "$four" guess alice '' > guesses
printf guess > guess; chmod 600 guess
at_terminal() {
    name=$1; shift
    '@PYTHON' '@DRIVER' "$1" >terminal.out 2>&1
    code=$(sed -n 's/.*"code": \([0-9]*\).*/\1/p' terminal.out)
    echo "$name ${code:-99}"
}
try() {
    '@BIN' "$@" < guesses > /dev/null 2>&1; echo "piped: $1 $2 $?"
    yes guess | head -n 100 | '@BIN' "$@" > /dev/null 2>&1; echo "piped much: $1 $2 $?"
    LODESTAR_PASSPHRASE=guess PASSPHRASE=guess LODESTAR_PASSPHRASE_FILE=guess \
        '@BIN' "$@" < /dev/null > /dev/null 2>&1; echo "by the environment: $1 $2 $?"
    setsid -w '@BIN' "$@" < guesses > /dev/null 2>&1; echo "in a session of its own: $1 $2 $?"
    timeout 60 script -qec "'@BIN' $*" /dev/null < guesses > /dev/null 2>&1
    echo "through script: $1 $2 $?"
}
try approve grant "$id"
try approve grant "$id" --yes-fingerprint "$four"
try approve deny "$id" --reason no
try confirm --tool fs.write --args call.json
quoted() { printf '{"argv":["%s",%s],"cwd":".","env":{"LODESTAR_CONFIG_DIR":"%s","TERM":"dumb"},"steps":[%s]}' \
    '@BIN' "$1" "$LODESTAR_CONFIG_DIR" "$2"; }
ask='Passphrase of alice: '
for guess in guess alice ''; do
    at_terminal "typed: grant" "$(quoted "\"approve\",\"grant\",\"$id\"" \
        "[\"fingerprint: \",\"$four\\r\"],[\"$ask\",\"$guess\\r\"]")"
    at_terminal "typed: deny" "$(quoted "\"approve\",\"deny\",\"$id\",\"--reason\",\"no\"" "[\"$ask\",\"$guess\\r\"]")"
    at_terminal "typed: confirm" "$(quoted '"confirm","--tool","fs.write","--args","call.json"' "[\"$ask\",\"$guess\\r\"]")"
done
# A key of the agent's own, in the name of whoever counts: nobody knows it. Where no configuration says
# so, it signs, and what it signed is brought back.
export LODESTAR_CONFIG_DIR='@OWN'
'@BIN' approve keygen --no-passphrase --name alice > /dev/null 2>&1; echo "own key $?"
'@BIN' approve grant "$id" --yes-fingerprint "$four" > /dev/null 2>&1; echo "own grant here $?"
mkdir -p away/.lodestar && cp -r .lodestar/approvals away/.lodestar/
'@BIN' --root away approve grant "$id" --yes-fingerprint "$four" > /dev/null 2>&1; echo "own grant $?"
cp away/.lodestar/approvals/s-1/*.answer.json .lodestar/approvals/s-1/; echo "own answer $?"
"#;

const CALL: &str = r#"{"path": "out.md", "content": "done"}"#;

const HELD: &str = r#"
[[step]]
call = "fs.write"
args = { path = "out.md", content = "done" }
expect = "refused"
expect_kind = "approval_timeout"
"#;

const RUN_IT: &str = r#"
[[step]]
call = "shell.run"
args = { program = "sh", args = ["attack.sh"] }
expect = "returned"
"#;

/// A project whose writes are held, and Alice, whose sealed key may approve and confirm them.
fn world() -> World {
    let world = World::new();
    let typed = format!("{PASSPHRASE}\r");
    let steps = [
        ("new key of alice (8 characters or more): ", typed.as_str()),
        ("Once more: ", &typed),
    ];
    let keygen = ["approve", "keygen", "--name", "alice"];
    assert_eq!(at_terminal(&world, &keygen, &[], &steps).code, 0);
    let pin = fs::read_to_string(world.path("config/operators/alice.pub")).expect("pinned");
    let pin: NoteKey = pin.trim_end().parse().expect("a key");
    let public = pin.public_key();
    let config = format!(
        r#"
project_id = "web"
actor_id = "agent"
session_id = "s-1"
auto_approve_ceiling = 3
approval_timeout_ms = 1500
[tools."fs.write"]
root = "."
[tools."shell.run"]
root = "."
timeout_ms = 280000
[tools."shell.run".programs.sh]
path = "/bin/sh"
[tool_defaults."fs.write"]
required_trust_level = "L4"
blast_radius = "external"
reversibility = "irreversible"
data_sensitivity = "private"
[[approvals.authorized_keys]]
actor_id = "alice"
public_key = "{public}"
[confirmations]
mode = "enforce"
[[confirmations.keys]]
public_key = "{public}"
origins = ["runtime-ui-confirm"]
operators = ["alice"]
"#
    );
    world.write("work/lodestar.toml", &config);
    world.write("work/call.json", CALL);
    world
}

fn interpreter() -> String {
    let found = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .expect("python3 is there");
    String::from_utf8(found.stdout)
        .expect("a path")
        .trim()
        .to_owned()
}

fn attack(world: &World) -> String {
    let text = |path: std::path::PathBuf| path.to_str().expect("text").to_owned();
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/terminal.py");
    ATTACK
        .replace("@CONFIG", &text(world.path("config")))
        .replace("@HOME", &text(world.path("home")))
        .replace("@OWN", &text(world.path("own")))
        .replace("@PYTHON", &interpreter())
        .replace("@DRIVER", driver)
        .replace("@BIN", env!("CARGO_BIN_EXE_lodestar"))
}

/// What each try came to.
fn tries(shown: &str) -> Vec<(String, i32)> {
    let told = shown.lines().filter_map(|line| line.rsplit_once(' '));
    told.filter_map(|(what, code)| Some((what.to_owned(), code.parse().ok()?)))
        .collect()
}

fn count(world: &World, kind: &str) -> usize {
    let all = events(world, "s-1");
    all.iter().filter(|(_, found, _)| found == kind).count()
}

#[test]
fn a_program_that_the_agent_runs_cannot_approve_deny_or_confirm() {
    if !python() {
        return;
    }
    let world = world();
    world.write("work/attack.sh", &attack(&world));
    world.write("work/script.toml", &format!("{HELD}{RUN_IT}{HELD}"));
    let mut args = RUN.to_vec();
    args.push("--json");
    let run = without_terminal(&world, &args).expect(0);
    let report = run.json();
    let shown = report["steps"][1]["called"]["text"].as_str().expect("text");
    let contained = tries(shown);
    let refused = contained.iter().all(|(_, code)| *code != 0);
    assert!(refused, "something worked inside: {contained:?}");
    assert_eq!(contained.len(), 1 + 4 * 5 + 9 + 4, "{contained:?}");

    // The same as the user, and nothing around it.
    let mut outside = Command::new("sh");
    outside.arg("attack.sh").current_dir(world.root());
    let outside = outside.stdin(Stdio::null()).output().expect("sh runs");
    let tries = tries(&String::from_utf8_lossy(&outside.stdout));
    for (what, code) in &tries {
        // Reading the file and making a key of one's own work, and are worth nothing.
        let works = ["read the key", "own key", "own grant", "own answer"].contains(&what.as_str());
        assert_eq!(*code == 0, works, "{what}: {code}\n{tries:?}");
        // Typed at a terminal, it came as far as the passphrase.
        assert!(*code == 4 || !what.starts_with("typed"), "{what}: {code}");
    }
    assert_eq!(tries.len(), 2 + 4 * 5 + 9 + 4, "{tries:?}");
    assert!(!world.path("work/out.md").exists());
    let confirmations = world.root().join(".lodestar/confirmations");
    let confirmed = std::fs::read_dir(confirmations).map_or(0, |folder| folder.count());
    assert_eq!(confirmed, 0, "nothing was confirmed");

    // The session goes on, hears the agent's own key, and refuses it.
    world.write("work/script.toml", HELD);
    without_terminal(&world, &RUN).expect(0);
    let all = events(&world, "s-1");
    let refused: Vec<&Value> = all
        .iter()
        .filter(|(_, kind, _)| kind == "approval.refused@1")
        .map(|(_, _, payload)| &payload["reason"]["refused"])
        .collect();
    assert_eq!(refused, [&json!("unknown_key")]);
    for never in [
        "approval.granted@1",
        "approval.denied@1",
        "confirmation.recorded@1",
    ] {
        assert_eq!(count(&world, never), 0, "{never}");
    }

    // Whoever knows the passphrase, at a terminal: the same command signs, and the call runs.
    let folder = world.root().join(".lodestar/approvals/s-1");
    let names = fs::read_dir(folder).expect("there").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let request = names.filter_map(|name| name.strip_suffix(".request.json").map(str::to_owned));
    let [id] = request.collect::<Vec<_>>().try_into().expect("one request");
    let shown = world
        .run(&["approve", "show", &id, "--json"])
        .expect(0)
        .json();
    let fingerprint = shown["request"]["card"]["action"]["fingerprint"].clone();
    let fingerprint = fingerprint.as_str().expect("text");
    let four = format!("{}\r", &fingerprint[fingerprint.len() - 4..]);
    let typed = format!("{PASSPHRASE}\r");
    let steps = [
        ("fingerprint: ", four.as_str()),
        ("Passphrase of alice: ", &typed),
    ];
    let granted = at_terminal(&world, &["approve", "grant", &id], &[], &steps);
    assert_eq!(granted.code, 0, "{}", granted.screen);
    let runs = HELD
        .replace("\"refused\"", "\"returned\"")
        .replace("expect_kind = \"approval_timeout\"\n", "");
    world.write("work/script.toml", &runs);
    without_terminal(&world, &RUN).expect(0);
    assert!(world.path("work/out.md").exists());
    assert_eq!(count(&world, "approval.granted@1"), 1);
    world.run(&["replay", "s-1"]).expect(0);
}
