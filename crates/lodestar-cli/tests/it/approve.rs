//! Requests listed, shown and answered from a terminal, with real keys and a real passphrase.

use std::fs;
use std::process::{Command, Stdio};

use lodestar_core::note::parse_secret;
use lodestar_core::statement::ApprovalDecision;
use serde_json::{Value, json};

use crate::asked::{announce, answers, drop_directory, hostile, last_four, request, settled};
use crate::terminal::{at_terminal, python, without_terminal};
use crate::world::{HOSTILE, Run, World, assert_inert};

const PASSPHRASE: &str = "correct hörse battery";
const FOUR: &str = "Last four characters of the fingerprint: ";
const ASK: &str = "Passphrase of alice: ";

/// A project where one request waits, and an approver with a sealed key.
fn sealed() -> (World, String, String) {
    let (world, id, four) = waiting();
    let typed = format!("{PASSPHRASE}\r");
    let steps = [
        (
            "Passphrase for the new key of alice (8 characters or more): ",
            typed.as_str(),
        ),
        ("Once more: ", typed.as_str()),
    ];
    let made = at_terminal(
        &world,
        &["approve", "keygen", "--name", "alice"],
        &[],
        &steps,
    );
    assert_eq!(made.code, 0, "{}", made.screen);
    (world, id, four)
}

fn waiting() -> (World, String, String) {
    let world = World::new();
    let asked = request(1);
    announce(&drop_directory(&world), &asked);
    let four = last_four(&asked);
    (world, asked.request.id.to_string(), four)
}

fn payload(answer: &[u8]) -> Value {
    let envelope: Value = serde_json::from_slice(answer).expect("an envelope");
    let text = envelope["payload"].as_str().expect("a payload");
    let mut child = Command::new("base64")
        .arg("-d")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), text.as_bytes())
        .expect("written");
    let output = child.wait_with_output().expect("ended");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn what_waits_is_listed_and_shown_with_its_card() {
    let (world, id, _) = waiting();
    announce(&drop_directory(&world), &request(2));
    let run = world.run(&["approve", "list"]).expect(0);
    assert!(
        run.out.contains("mail.send") && run.out.contains("2 of 2 missing"),
        "{}",
        run.out
    );
    let run = world.run(&["approve", "show", &id]).expect(0);
    let shown: String = run
        .out
        .lines()
        .filter(|line| !line.contains("time left"))
        .map(|line| format!("{line}\n"))
        .collect();
    insta::assert_snapshot!(world.stable(&shown));
    let list = world.run(&["approve", "list", "--json"]).expect(0).json();
    assert_eq!(list["requests"].as_array().map(Vec::len), Some(2));
    let card = world
        .run(&["approve", "show", &id, "--json"])
        .expect(0)
        .json();
    assert_eq!(
        card["request"]["card"]["action"]["arguments"]["to"],
        "anna@corp.example"
    );
    let full = world.run(&["approve", "show", &id, "--full"]).expect(0);
    assert!(full.out.contains("\"count\": 3"), "{}", full.out);
}

#[test]
fn a_request_is_named_by_a_unique_beginning() {
    let (world, id, _) = waiting();
    announce(&drop_directory(&world), &request(2));
    world.run(&["approve", "show", &id[..16]]).expect(0);
    world
        .run(&["approve", "show", &id["req_".len()..16]])
        .expect(0);
    let run = world.run(&["approve", "show", "req_"]).expect(2);
    assert!(run.err.contains("give more of the id"), "{}", run.err);
    for nothing in ["", "ffff", "../x", "req_\u{202e}"] {
        let run = world.run(&["approve", "show", nothing]).expect(3);
        assert_inert(&run.err);
    }
}

#[test]
fn nothing_waits_in_an_empty_project() {
    let world = World::new();
    world.run(&["approve", "list"]).expect(3);
    drop_directory(&world);
    let run = world.run(&["approve", "list"]).expect(0);
    assert_eq!(run.out, "nothing waits for a person here\n");
}

#[test]
fn a_card_that_is_not_what_would_be_signed_is_refused() {
    let (world, id, four) = waiting();
    world.add_operator();
    let file = world
        .root()
        .join(format!(".lodestar/approvals/s-1/{id}.request.json"));
    let mut announced: Value =
        serde_json::from_slice(&fs::read(&file).expect("there")).expect("JSON");
    announced["request"]["card"]["action"]["arguments"]["to"] = json!("eve@evil.example");
    fs::write(&file, announced.to_string()).expect("written");
    let run = world.run(&["approve", "show", &id]).expect(1);
    assert!(run.err.contains("card_digest"), "{}", run.err);
    world
        .run(&["approve", "grant", &id, "--yes-fingerprint", &four])
        .expect(1);
    let list = world.run(&["approve", "list"]).expect(0);
    assert!(list.out.contains("not shown"), "{}", list.out);
    assert!(answers(&world).is_empty());
}

#[test]
fn a_grant_is_signed_after_fingerprint_and_passphrase_were_typed() {
    if !python() {
        return;
    }
    let (world, id, four) = sealed();
    let grant = ["approve", "grant", &id, "--reason", "agreed"];
    let pass = format!("{PASSPHRASE}\r");
    let run = at_terminal(&world, &grant, &[], &[(FOUR, "zzzz\r")]);
    assert_eq!(run.code, 1, "{}", run.screen);
    let right = format!("{four}\r");
    let run = at_terminal(&world, &grant, &[], &[(FOUR, &right), (ASK, "wrong one\r")]);
    assert_eq!(run.code, 4, "{}", run.screen);
    assert!(answers(&world).is_empty());
    let run = at_terminal(&world, &grant, &[], &[(FOUR, &right), (ASK, &pass)]);
    assert_eq!(run.code, 0, "{}", run.screen);
    assert!(run.screen.contains("anna@corp.example"), "{}", run.screen);
    assert!(!run.screen.contains("battery"), "{}", run.screen);
    let [answer] = answers(&world).try_into().expect("one answer");
    let said = payload(&answer);
    assert_eq!(said["subject"]["decision"], json!(ApprovalDecision::Grant));
    assert_eq!(said["subject"]["approver"], "alice");
    assert_eq!(said["subject"]["reason"], "agreed");
    let list = world.run(&["approve", "list", "--json"]).expect(0).json();
    assert_eq!(list["requests"][0]["answers_sent"], 1);
}

#[test]
fn a_denial_needs_a_reason_and_the_passphrase() {
    if !python() {
        return;
    }
    let (world, id, _) = sealed();
    world.run(&["approve", "deny", &id]).expect(2);
    let deny = ["approve", "deny", &id, "--reason", "not on a Friday"];
    let pass = format!("{PASSPHRASE}\r");
    let run = at_terminal(&world, &deny, &[], &[(ASK, &pass)]);
    assert_eq!(run.code, 0, "{}", run.screen);
    let [answer] = answers(&world).try_into().expect("one answer");
    assert_eq!(
        payload(&answer)["subject"]["decision"],
        json!(ApprovalDecision::Deny)
    );
}

#[test]
fn a_tool_that_runs_as_the_same_user_cannot_grant() {
    if !python() {
        return;
    }
    let (world, id, four) = sealed();
    let grant = ["approve", "grant", id.as_str()];
    let hurried = [
        "approve",
        "grant",
        id.as_str(),
        "--yes-fingerprint",
        four.as_str(),
    ];
    let deny = ["approve", "deny", id.as_str(), "--reason", "r"];
    // No terminal: neither an answer in advance nor standard input takes its place.
    for args in [&grant[..], &hurried[..], &deny[..]] {
        without_terminal(&world, args).expect(4);
    }
    // A passphrase in a file is for other commands, even where somebody left the right one.
    let file = world.write_private("passphrase", PASSPHRASE);
    let mut command = Command::new("setsid");
    command
        .arg("--wait")
        .arg(env!("CARGO_BIN_EXE_lodestar"))
        .args(deny);
    let template = world.command(&deny);
    command.env_clear().current_dir(world.root());
    for (name, value) in template.get_envs() {
        command.env(name, value.expect("set"));
    }
    command.env("PATH", std::env::var_os("PATH").expect("set"));
    command
        .env("LODESTAR_PASSPHRASE_FILE", &file)
        .stdin(Stdio::null());
    Run::of(command.output().expect("started")).expect(4);
    // A terminal that the tool makes itself can be typed into, and lacks the passphrase.
    let right = format!("{four}\r");
    for guess in ["\r", "alice\r", "\u{4}"] {
        let run = at_terminal(&world, &grant, &[], &[(FOUR, &right), (ASK, guess)]);
        assert_ne!(run.code, 0, "{}", run.screen);
    }
    // The key file is readable, and is no secret without the passphrase.
    let text = fs::read_to_string(world.path("config/keys/alice.key")).expect("readable");
    assert!(parse_secret(text.trim_end()).is_err());
    assert!(text.contains("kdf argon2id"), "{text}");
    assert!(answers(&world).is_empty());
}

#[test]
fn a_key_without_a_passphrase_answers_for_programs_that_name_the_fingerprint() {
    if !python() {
        return;
    }
    let (world, id, four) = waiting();
    world.add_operator();
    without_terminal(&world, &["approve", "grant", &id]).expect(4);
    without_terminal(
        &world,
        &["approve", "grant", &id, "--yes-fingerprint", "zzzz"],
    )
    .expect(1);
    assert!(answers(&world).is_empty());
    let run = without_terminal(
        &world,
        &[
            "approve",
            "grant",
            &id,
            "--yes-fingerprint",
            &four,
            "--as",
            "alice",
            "--json",
        ],
    )
    .expect(0);
    assert_eq!(run.json()["decision"], "grant");
    without_terminal(
        &world,
        &[
            "approve",
            "grant",
            &id,
            "--yes-fingerprint",
            &four,
            "--as",
            "bob",
        ],
    )
    .expect(3);
    assert_eq!(answers(&world).len(), 1);
}

#[test]
fn an_expired_request_is_shown_as_such_and_not_signed_for() {
    let world = World::new();
    world.add_operator();
    let mut asked = request(1);
    asked.request.expires_at = asked.request.created_at;
    let asked = settled(asked);
    announce(&drop_directory(&world), &asked);
    let id = asked.request.id.to_string();
    assert!(
        world
            .run(&["approve", "show", &id])
            .expect(0)
            .out
            .contains("expired")
    );
    world
        .run(&[
            "approve",
            "grant",
            &id,
            "--yes-fingerprint",
            &last_four(&asked),
        ])
        .expect(1);
    world
        .run(&["approve", "deny", &id, "--reason", "r"])
        .expect(1);
    assert!(answers(&world).is_empty());
}

#[test]
fn hostile_values_are_inert_in_every_place() {
    let world = World::new();
    let drop = drop_directory(&world);
    let huge = "\u{202e}x\n".repeat(400_000);
    for (n, text) in [
        (1, HOSTILE),
        (2, "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07"),
        (3, &huge),
    ] {
        announce(&drop, &hostile(n, text));
        let id = hostile(n, text).request.id.to_string();
        for args in [
            &["approve", "show", &id][..],
            &["approve", "list"],
            &["approve", "show", &id, "--full"],
        ] {
            assert_inert(&world.run(args).expect(0).out);
        }
        let shown = world.run(&["approve", "show", &id]).expect(0).out;
        assert!(shown.len() < 60_000, "{}", shown.len());
        assert_inert(&world.run(&["approve", "show", &id, "--json"]).expect(0).out);
    }
}

/// The same request as it would stand in another session's folder, usable by itself.
fn of_session(mut asked: lodestar_guard::channel::Announcement, session: &str) -> String {
    asked.request.session = session.parse().expect("a name");
    serde_json::to_string(&settled(asked)).expect("JSON")
}

#[test]
fn a_file_in_another_sessions_folder_does_not_stand_in_the_way_of_a_request() {
    let (world, id, four) = waiting();
    world.add_operator();
    let put = |session: &str, content: &str| {
        let name = format!("work/.lodestar/approvals/{session}/{id}.request.json");
        world.write(&name, content);
    };
    // Nothing that can be shown makes nothing ambiguous.
    put("s-other", "{}");
    put("s-third", &of_session(request(1), "s-1"));
    world.run(&["approve", "show", &id]).expect(0);
    let grant = ["approve", "grant", &id, "--yes-fingerprint", &four];
    world.run(&grant).expect(0);
    assert_eq!(answers(&world).len(), 1);
    // What can be shown is told apart by the session.
    put("s-other", &of_session(request(1), "s-other"));
    let run = world.run(&["approve", "show", &id]).expect(2);
    assert!(run.err.contains("--session: s-1, s-other"), "{}", run.err);
    let list = world.run(&["approve", "list"]).expect(0).out;
    assert!(list.contains("of s-other, as others say too"), "{list}");
    let own = [&grant[..], &["--session", "s-1"]].concat();
    world.run(&own).expect(0);
    assert_eq!(answers(&world).len(), 2);
    let show = ["approve", "show", &id, "--session", "s-other", "--json"];
    let shown = world.run(&show).expect(0).json();
    assert_eq!(shown["request"]["session"], "s-other");
    world
        .run(&["approve", "show", &id, "--session", "nobody"])
        .expect(3);
}

#[test]
fn huge_files_neither_hang_nor_hide_what_waits() {
    let (world, id, _) = waiting();
    for n in 0..300u64 {
        let other = lodestar_core::id::RequestId::from_parts(n, [3; 10]);
        let name = format!("work/.lodestar/approvals/s-0/{other}.request.json");
        let file = fs::File::create(world.write(&name, "")).expect("created");
        file.set_len(64 << 20).expect("sparse");
    }
    let started = std::time::Instant::now();
    let list = world.run(&["approve", "list"]).expect(0).out;
    world.run(&["approve", "show", &id]).expect(0);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    assert!(list.contains("mail.send"), "{list}");
    assert!(list.contains("more that are not shown"), "{list}");
}

#[test]
fn a_key_whose_word_cannot_count_signs_nothing() {
    let (world, id, four) = waiting();
    world.add_operator();
    let grant = ["approve", "grant", &id, "--yes-fingerprint", &four];
    let deny = ["approve", "deny", &id, "--reason", "r"];
    let register = |actor: &str, key: &str, more: &str| {
        let config = format!(
            "project_id = \"web\"\nactor_id = \"agent\"\n[[approvals.authorized_keys]]\n\
             actor_id = \"{actor}\"\npublic_key = \"{key}\"\n{more}"
        );
        world.write("work/lodestar.toml", &config);
    };
    let own = crate::world::operator_key().public().to_string();
    let other = crate::world::log_key().public().to_string();
    for (actor, key, more, why) in [
        ("alice", &other, "", "not in `approvals.authorized_keys`"),
        (
            "alice",
            &own,
            "revoked_at = \"2026-01-01T00:00:00Z\"",
            "was revoked at 2026",
        ),
        ("anna", &own, "", "registered for `anna`"),
        ("alice", &own, "", "one of the roles release-manager"),
        (
            "alice",
            &own,
            "roles = [\"release-manager\"]\nclearance = \"L3\"",
            "clearance L4, and has L3",
        ),
        (
            "alice",
            &own,
            "roles = [\"release-manager\"]\nscope = \"project:web\"",
            "scope global, and has project:web",
        ),
    ] {
        register(actor, key, more);
        for args in [&grant[..], &deny[..]] {
            let run = world.run(args).expect(4);
            assert!(run.err.contains(why), "{}", run.err);
        }
    }
    assert!(answers(&world).is_empty());
    register("alice", &own, "roles = [\"release-manager\"]");
    let run = world.run(&grant).expect(0);
    assert_eq!(run.err, "");
    assert!(
        run.out.contains("no log of the session is here"),
        "{}",
        run.out
    );
    fs::remove_file(world.path("work/lodestar.toml")).expect("removed");
    let run = world.run(&deny).expect(0);
    assert!(run.err.contains("not known here"), "{}", run.err);
    assert_eq!(answers(&world).len(), 2);
}

#[test]
fn a_card_tells_what_it_leaves_out_and_each_reason_on_a_line_of_its_own() {
    let world = World::new();
    let mut asked = request(1);
    let many: Vec<Value> = (0..100).map(|n| json!(n)).collect();
    let card = &mut asked.request.card;
    card.action.arguments.insert("many".to_owned(), json!(many));
    card.why = "held by the floor\nthe policy asks\n\u{202e}and an arbiter".to_owned();
    let seen = |n: u8| lodestar_core::id::ObservationId::from_parts(u64::from(n), [9; 10]);
    card.provenance[2].label = lodestar_core::provenance::Label::Read {
        observations: (0..7).map(seen).collect(),
        how: lodestar_core::provenance::Likeness::Copy,
    };
    announce(&drop_directory(&world), &settled(asked));
    let id = request(1).request.id.to_string();
    let shown = world.run(&["approve", "show", &id]).expect(0).out;
    assert_inert(&shown);
    for line in [
        "why held     held by the floor\n",
        "             · the policy asks\n",
        "             · ⟨U+202E⟩and an arbiter\n",
        "… and 44 more values; `a` in `approve watch`, or",
    ] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
    let running: Vec<&str> = shown.split_whitespace().filter(|w| *w != "┆").collect();
    let more = "… and 4 more; `approve show --json` has all";
    assert!(running.join(" ").contains(more), "{shown}");
}

#[test]
fn a_card_says_how_much_of_a_huge_value_it_hides() {
    let world = World::new();
    let mut asked = request(1);
    asked.request.card.action.arguments["body"] = json!("x".repeat(1_000_000));
    announce(&drop_directory(&world), &settled(asked));
    let id = request(1).request.id.to_string();
    let shown = world.run(&["approve", "show", &id]).expect(0).out;
    let crosses = shown.matches('x').count()
        - shown
            .lines()
            .filter(|l| !l.contains("xxx"))
            .collect::<String>()
            .matches('x')
            .count();
    let hidden = 1_000_000 + 1 - crosses;
    assert!(
        shown.contains(&format!("(+{hidden} bytes)")),
        "{hidden}:\n{shown}"
    );
    let said = shown
        .lines()
        .find(|line| line.contains("bytes are not shown"));
    assert!(said.is_some_and(|line| line.contains("999,")), "{shown}");
    assert!(shown.contains("--full"), "{shown}");
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
}

#[test]
fn an_answer_says_whether_anybody_runs_the_session() {
    let (world, id, four) = waiting();
    world.add_operator();
    let grant = ["approve", "grant", &id, "--yes-fingerprint", &four];
    let writer = world.open("web", "s-1");
    let run = world.run(&grant).expect(0);
    assert!(run.out.contains("handed to the session"), "{}", run.out);
    drop(writer);
    let run = world.run(&grant).expect(0);
    assert!(
        run.out.contains("when the agent makes the call again"),
        "{}",
        run.out
    );
}

#[test]
fn several_operators_are_told_apart_by_the_option_that_there_is() {
    let (world, id, four) = waiting();
    world.add_operator();
    let keygen = ["approve", "keygen", "--name", "bob", "--no-passphrase"];
    world.run(&keygen).expect(0);
    let grant = ["approve", "grant", &id, "--yes-fingerprint", &four];
    let run = world.run(&grant).expect(2);
    assert!(
        run.err.contains("say who signs with --as: alice, bob"),
        "{}",
        run.err
    );
}
