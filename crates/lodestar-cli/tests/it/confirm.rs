//! `lodestar confirm`: what an operator signs is what a session would hold.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lodestar_core::contract::ArgumentRole;
use lodestar_core::name::SessionId;
use lodestar_core::statement::confirmation::ConsumeLedger as _;
use lodestar_firewall::store::SqliteLedger;
use lodestar_guard::config::Config;
use lodestar_guard::confirmations::{DropFolder, Dropped, ledger};
use lodestar_policy::ApprovalRequest;
use lodestar_policy::confirmation::{Confirmations, HeldAct, Settled, Unmatched, settle};
use serde_json::{Value, json};

use crate::gated::{RUN, SCRIPT, configure, events, project};
use crate::terminal::{at_terminal, python, without_terminal};
use crate::world::{World, operator_key};

const CALL: &str = r#"{"path": "out.md", "content": "done"}"#;
const CONFIRM: [&str; 5] = ["confirm", "--tool", "fs.write", "--args", "call.json"];

fn section(mode: &str) -> String {
    format!(
        "auto_approve_ceiling = 2\n[confirmations]\nmode = \"{mode}\"\n[[confirmations.keys]]\n\
         public_key = \"{0}\"\norigins = [\"operator-contract-review\"]\noperators = [\"alice\"]\n\
         [[approvals.authorized_keys]]\nactor_id = \"alice\"\npublic_key = \"{0}\"\n",
        operator_key().public()
    )
}

/// A session that has held the call, and an operator who may confirm it.
fn held(mode: &str) -> World {
    let world = project();
    configure(&world, "s-1", &section(mode));
    world.write("work/script.toml", SCRIPT);
    world.write("work/call.json", CALL);
    world.add_operator();
    world.run(&RUN).expect(0);
    world
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&CONFIRM, more].concat()
}

fn asked(world: &World) -> ApprovalRequest {
    let all = events(world, "s-1");
    let request = all
        .iter()
        .find(|(_, kind, _)| kind.starts_with("approval.requested"));
    serde_json::from_value(request.expect("held").2.clone()).expect("a request")
}

fn now() -> lodestar_core::time::Timestamp {
    lodestar_log::Clock::system().now()
}

fn settled(world: &World, sent: &[u8], confirmations: &Confirmations) -> Settled {
    let roles = [("path".to_owned(), ArgumentRole::Path)].into();
    let session = SessionId::new("s-1").expect("a name");
    let act = HeldAct::on_card(&asked(world).card, &roles, &session).expect("an act");
    let mut ledger = ledger(&config(world)).expect("opened");
    settle(Some(sent), &act, confirmations, &mut *ledger, now()).expect("a ledger that answers")
}

fn config(world: &World) -> Config {
    Config::read(world.root().join("lodestar.toml")).expect("a configuration")
}

/// What lies there for this act.
fn dropped(config: &Config, act: lodestar_core::fingerprint::Fingerprint) -> Vec<Dropped> {
    DropFolder::of(config)
        .dropped(act, &Default::default())
        .expect("readable")
        .found
}

fn confirmed_file(report: &Value) -> PathBuf {
    PathBuf::from(report["file"].as_str().expect("a path"))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[test]
fn what_is_signed_is_exactly_the_act_that_a_session_holds() {
    let world = held("enforce");
    let report = world.run(&with(&["--json"])).expect(0).json();
    let request = asked(&world);
    assert_eq!(
        report["fingerprint"],
        json!(request.card.action.fingerprint)
    );
    assert_eq!(report["session"], "s-1");
    assert_eq!(report["operator"], "alice");
    assert_eq!(report["origin"], "operator-contract-review");
    let file = confirmed_file(&report);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a folder")), 0o700);
    let lying: Vec<_> = fs::read_dir(file.parent().expect("a folder"))
        .expect("read")
        .collect();
    assert_eq!(lying.len(), 1, "no temporary file stays");

    let config = config(&world);
    let found = dropped(&config, request.card.action.fingerprint);
    assert_eq!(found.len(), 1);
    let sent = &found[0].bytes;
    let Settled::Confirmed(confirmed, _) = settled(&world, sent, &config.confirmations) else {
        panic!("it matches")
    };
    let state = world.root().join(".lodestar/state.db");
    let mut ledger = SqliteLedger::open(&state).expect("opened");
    assert!(ledger.is_spent(confirmed.id()).expect("an answer"));
    let Settled::Refused(refused) = settled(&world, sent, &config.confirmations) else {
        panic!("it was spent")
    };
    assert_eq!(refused.reason, Unmatched::Consumed);
}

#[test]
fn report_only_says_so_and_spends_nothing() {
    let world = held("report-only");
    let run = world.run(&CONFIRM).expect(0);
    assert!(run.out.contains("✓ confirmed fs.write"), "{}", run.out);
    assert!(run.err.contains("grants nothing"), "{}", run.err);
    assert!(
        run.err.contains("this confirms fs.write on L3"),
        "{}",
        run.err
    );
    let config = config(&world);
    let found = dropped(&config, asked(&world).card.action.fingerprint);
    for _ in 0..2 {
        let settled = settled(&world, &found[0].bytes, &config.confirmations);
        assert!(matches!(settled, Settled::WouldMatch(_)), "{settled:?}");
    }
}

#[test]
fn a_decline_is_dropped_as_well_and_opens_nothing() {
    let world = held("enforce");
    let report = world.run(&with(&["--decline", "--json"])).expect(0).json();
    assert_eq!(report["decision"], "decline");
    let sent = fs::read(confirmed_file(&report)).expect("readable");
    let config = config(&world);
    let Settled::Refused(refused) = settled(&world, &sent, &config.confirmations) else {
        panic!("it is a decline")
    };
    assert!(matches!(refused.reason, Unmatched::Declined { .. }));
}

/// Both are signed by one who may: the report tells them from what was forged.
#[test]
fn a_decline_and_a_word_on_another_session_are_not_told_as_forged() {
    let world = held("enforce");
    world.run(&with(&["--decline"])).expect(0);
    configure(&world, "s-2", &section("enforce"));
    world.run(&RUN).expect(0);
    let report = world.run(&["report", "s-2", "--json"]).expect(0).json();
    let told = |report: &Value| -> Vec<String> {
        let list = report["forged"].as_array().expect("a list");
        list.iter()
            .map(|one| one["what"].as_str().expect("a word").to_owned())
            .collect()
    };
    assert_eq!(told(&report), ["unfitting"], "{}", report["forged"]);
    let world = held("enforce");
    configure(&world, "s-3", &section("enforce"));
    world.run(&with(&["--decline"])).expect(0);
    world.run(&RUN).expect(0);
    let report = world.run(&["report", "s-3", "--json"]).expect(0).json();
    assert_eq!(told(&report), ["declined"], "{}", report["forged"]);
    let text = world.run(&["report", "s-3"]).expect(0).out;
    assert!(!text.to_lowercase().contains("forged"), "{text}");
}

#[test]
fn other_arguments_are_another_act() {
    let world = held("enforce");
    world.write(
        "work/call.json",
        r#"{"path": "out.md", "content": "done "}"#,
    );
    let report = world.run(&with(&["--json"])).expect(0).json();
    let fingerprint = asked(&world).card.action.fingerprint;
    assert_ne!(report["fingerprint"], json!(fingerprint));
    let found = dropped(&config(&world), fingerprint);
    assert!(found.is_empty(), "another name");
    let sent = fs::read(confirmed_file(&report)).expect("readable");
    let Settled::Refused(refused) = settled(&world, &sent, &config(&world).confirmations) else {
        panic!("another act")
    };
    assert!(
        refused.reason.to_string().contains("`payload`"),
        "{}",
        refused.reason
    );
}

#[test]
fn nothing_is_signed_for_what_could_not_count() {
    let world = held("enforce");
    let refused = |more: &[&str], code: i32, why: &str| {
        let run = world.run(&with(more)).expect(code);
        assert!(run.err.contains(why), "{}", run.err);
    };
    refused(&["--ttl", "25h"], 2, "86400 s");
    refused(&["--ttl", "soon"], 2, "is not a duration");
    refused(
        &["--origin", "runtime-ui-confirm"],
        4,
        "may not sign for origin",
    );
    refused(&["--origin", "text"], 2, "unknown confirmation origin");
    refused(&["--session", "nobody"], 3, "no session");
    refused(&["--operator", "bob"], 3, "no key of operator");
    for (call, why) in [
        ("[]", "no JSON object"),
        ("{", "call.json"),
        (r#"{"path": "../../etc/passwd"}"#, "climbs out"),
        (r#"{"path": "a", "content": 9007199254740993}"#, "call.json"),
        (r#"{"path": "a"}"#, "`content` is missing"),
        (r#"{"path": "a", "content": 1}"#, "`content` is no string"),
        (r#"{"path": "a", "content": "", "x": 1}"#, "no argument `x`"),
        (r#"{"path": "a", "path": "b"}"#, "call.json"),
    ] {
        world.write("work/call.json", call);
        refused(&[], 2, why);
    }
    world.write("work/call.json", CALL);
    let other = ["confirm", "--tool", "no.such", "--args", "call.json"];
    world.run(&other).expect(3);
    world
        .run(&["confirm", "--tool", "fs.write", "--args", "missing.json"])
        .expect(3);
    world.run(&["confirm"]).expect(2);
    configure(&world, "s-1", "auto_approve_ceiling = 2");
    refused(&[], 4, "not in `confirmations.keys`");
    let folder = fs::read_dir(world.root().join(".lodestar/confirmations"));
    assert!(folder.is_ok_and(|mut folder| folder.next().is_none()));
}

#[test]
fn a_sealed_key_is_opened_on_the_terminal_only() {
    if !python() {
        return;
    }
    let world = project();
    let keygen = ["approve", "keygen", "--name", "carol"];
    let steps = [
        (
            "new key of carol (8 characters or more): ",
            "correct horse\r",
        ),
        ("Once more: ", "correct horse\r"),
    ];
    assert_eq!(at_terminal(&world, &keygen, &[], &steps).code, 0);
    let pin = fs::read_to_string(world.path("config/operators/carol.pub")).expect("pinned");
    let pin: lodestar_core::note::NoteKey = pin.trim_end().parse().expect("a key");
    let section = section("enforce")
        .replace(
            &operator_key().public().to_string(),
            &pin.public_key().to_string(),
        )
        .replace("alice", "carol");
    configure(&world, "s-1", &section);
    world.write("work/call.json", CALL);

    let run = without_terminal(&world, &CONFIRM);
    assert_eq!(run.code, 4, "{}", run.err);
    assert!(run.err.contains("no terminal to ask on"), "{}", run.err);
    let wrong = at_terminal(
        &world,
        &CONFIRM,
        &[],
        &[("Passphrase of carol: ", "wrong\r")],
    );
    assert_eq!(wrong.code, 4, "{}", wrong.screen);
    assert!(!world.root().join(".lodestar/confirmations").exists());
    let right = [("Passphrase of carol: ", "correct horse\r")];
    let right = at_terminal(&world, &CONFIRM, &[], &right);
    assert_eq!(right.code, 0, "{}", right.screen);
    assert!(right.screen.contains("confirmed"), "{}", right.screen);
}

#[test]
fn a_plan_says_what_channels_may_do_and_changes_nothing() {
    for (mode, operations) in [
        ("report-only", json!(["record-decision"])),
        ("enforce", json!(["record-decision", "consume-envelope"])),
    ] {
        let world = project();
        configure(&world, "s-1", &section(mode));
        let plan = world.run(&["confirm", "plan", "--json"]).expect(0).json();
        assert_eq!(plan["mode"], mode);
        assert_eq!(plan["operations"], operations);
        assert_eq!(plan["channel"], "guard-owned-dialog");
        assert_eq!(plan["channels"][0]["may"], operations);
        assert_eq!(plan["channels"][1]["may"], json!([]));
        assert_eq!(plan["may_dispatch"], false);
        assert_eq!(plan["keys"][0]["operators"], json!(["alice"]));
        let text = world.run(&["confirm", "plan"]).expect(0).out;
        assert!(text.contains(&format!("{mode}: ")), "{text}");
        assert!(!world.root().join(".lodestar").exists(), "it only looks");
    }
    let world = World::bare();
    world.run(&["confirm", "plan"]).expect(3);
}

#[test]
fn who_is_no_approver_and_a_key_that_is_revoked_confirm_nothing() {
    let world = held("enforce");
    let own = section("enforce");
    let (keys, _) = own.split_once("[[approvals").expect("an approver");
    configure(&world, "s-1", keys);
    let run = world.run(&CONFIRM).expect(4);
    assert!(run.err.contains("`alice` is no approver"), "{}", run.err);
    // Where it grants nothing anyway, that is said.
    configure(&world, "s-1", &keys.replace("enforce", "report-only"));
    let run = world.run(&CONFIRM).expect(0);
    assert!(run.err.contains("`alice` is no approver"), "{}", run.err);
    let revoked = own.replace(
        "operators = ",
        "revoked_at = 2026-01-01T00:00:00Z\noperators = ",
    );
    configure(&world, "s-1", &revoked);
    let run = world.run(&CONFIRM).expect(4);
    assert!(run.err.contains("was revoked at 2026-01-01"), "{}", run.err);
}

#[test]
fn a_session_that_is_over_is_not_confirmed_for() {
    let world = project();
    configure(&world, "s-1", &section("enforce"));
    world.write(
        "work/script.toml",
        "[[step]]\ncall = \"fs.read\"\nargs = { path = \"plan.md\" }\n",
    );
    world.write("work/call.json", CALL);
    world.add_operator();
    world.run(&CONFIRM).expect(0);
    world.run(&RUN).expect(0);
    for more in [&[][..], &["--session", "s-1"]] {
        let run = world.run(&with(more)).expect(1);
        assert!(run.err.contains("`s-1` is over"), "{}", run.err);
    }
}

#[test]
fn all_of_a_long_act_is_shown_before_it_is_signed() {
    let world = held("enforce");
    let long = format!("{}the end", "x".repeat(50_000));
    let call = json!({"path": "out.md", "content": long});
    world.write("work/call.json", &call.to_string());
    let run = world.run(&CONFIRM).expect(0);
    assert!(run.err.contains("the end"), "{} bytes", run.err.len());
}

#[test]
fn a_path_that_is_spelt_otherwise_is_found_and_matches_in_a_real_session() {
    let world = held("enforce");
    world.write(
        "work/call.json",
        r#"{"path": "./a/../out.md", "content": "done"}"#,
    );
    let report = world.run(&with(&["--json"])).expect(0).json();
    let request = asked(&world);
    assert_ne!(
        report["fingerprint"],
        json!(request.card.action.fingerprint)
    );
    let (_, write) = SCRIPT
        .split_once("[[step]]\ncall = \"fs.write\"")
        .expect("held");
    let (write, _) = write.split_once("expect").expect("held");
    let again = format!("[[step]]\ncall = \"fs.write\"{write}expect = \"returned\"\n");
    world.write("work/script.toml", &again);
    world.run(&RUN).expect(0);
    assert!(world.path("work/out.md").exists());
    assert!(
        !confirmed_file(&report).exists(),
        "what is spent is put away"
    );
}

#[test]
fn what_expired_long_ago_is_removed_by_the_next_confirmation() {
    let world = held("enforce");
    let report = world
        .run(&with(&["--ttl", "1s", "--json"]))
        .expect(0)
        .json();
    let file = confirmed_file(&report);
    let folder = DropFolder::of(&config(&world));
    let later = |hours: u64| {
        now()
            .checked_add(std::time::Duration::from_secs(hours * 3600))
            .expect("in range")
    };
    assert_eq!(folder.remove_expired(now()).expect("looked"), 0);
    assert!(
        file.exists(),
        "a session may still say that it came too late"
    );
    fs::write(file.with_file_name("else.json"), "{}").expect("written");
    assert_eq!(folder.remove_expired(later(2)).expect("looked"), 1);
    assert!(!file.exists());
    assert!(
        file.with_file_name("else.json").exists(),
        "nobody knows what that is"
    );
}
