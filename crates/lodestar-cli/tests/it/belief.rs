//! `lodestar belief list`, `show`, `promote` and `quarantine`

use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::note::encode_secret;
use lodestar_core::statement::Envelope;
use lodestar_firewall::event::{FirewallEvent, PromotionGround};
use lodestar_firewall::store::SqliteStore;
use lodestar_guard::{Operator, OperatorSession};
use lodestar_log::{Reader, Trust};
use serde_json::Value;

use crate::governed::{Governed, keyring, stable, state_db, told};
use crate::terminal::{at_terminal, python, without_terminal};
use crate::world::{Run, World, actor, assert_inert, log_key, operator_key, vkey};

fn world() -> World {
    let world = World::new();
    world.add_operator();
    world
}

fn order(world: &World, what: &str, belief: &impl ToString, more: &[&str]) -> Run {
    let belief = belief.to_string();
    let mut args = vec!["belief", what, &belief, "--yes"];
    args.extend(more);
    world.run(&args)
}

fn ids(context: &Value) -> Vec<String> {
    let beliefs = context["context"]["beliefs"].as_array().expect("a list");
    let id = |belief: &Value| belief["id"].as_str().expect("an id").to_owned();
    beliefs.iter().map(id).collect()
}

fn listed(world: &World) -> Vec<String> {
    ids(&world.run(&["belief", "list", "--json"]).expect(0).json())
}

#[test]
fn the_default_list_has_what_direct_evidence_carries_and_no_word_of_what_was_read() {
    let world = world();
    let told = told(&world);
    let run = world.run(&["belief", "list"]).expect(0);
    insta::assert_snapshot!(stable(&world, &run.out));
    assert!(run.err.is_empty(), "{}", run.err);
    for word in ["evil.example", "IGNORE", "promote it"] {
        assert!(!run.out.contains(word), "{}", run.out);
    }
    let mut expected = vec![told.measured.to_string(), told.envelope.to_string()];
    expected.sort();
    let mut found = listed(&world);
    found.sort();
    assert_eq!(found, expected);
    // Looking at the default context leaves no trace in the log.
    assert_eq!(world.log("web").sessions_on_disk().expect("read").len(), 1);
    let none = ["belief", "list", "--scope", "project:other"];
    let run = world.run(&none).expect(0);
    assert!(run.out.contains("nothing is believed"), "{}", run.out);
    let words = ["belief", "list", "--text", "exists", "--json"];
    assert_eq!(
        ids(&world.run(&words).expect(0).json()),
        [told.measured.to_string()]
    );
    world
        .run(&["belief", "list", "--project", "nope"])
        .expect(3);
}

#[test]
fn reading_past_the_policy_shows_everything_and_is_on_record() {
    let world = world();
    let told = told(&world);
    let args = [
        "belief",
        "list",
        "--all",
        "--truth",
        "unverified",
        "--reason",
        "weekly look",
    ];
    let run = world.run(&args).expect(0);
    assert_inert(&run.out);
    insta::assert_snapshot!(stable(&world, &run.out));
    assert!(run.err.contains("it is on record at op-"), "{}", run.err);
    let events = world
        .run(&[
            "log",
            "show",
            "latest",
            "--type",
            "belief.read_privileged",
            "--json",
        ])
        .expect(0)
        .ndjson();
    assert_eq!(events[0]["payload"]["reason"], "weekly look");
    assert_eq!(events[0]["payload"]["query"]["truth"], "unverified");
    let all = world
        .run(&["belief", "list", "--all", "--json"])
        .expect(0)
        .json();
    assert_eq!(all["reason"], "belief list --all");
    assert!(all["recorded"]["seq"].is_u64());
    let rows = all["rows"].as_array().expect("a list");
    for belief in [told.envelope, told.content, told.measured, told.derived] {
        assert!(rows.iter().any(|row| row["id"] == belief.to_string()));
    }
    let filtered = [
        "belief",
        "list",
        "--all",
        "--session",
        "s-1",
        "--containing",
        "a.txt",
        "--json",
    ];
    let rows = world.run(&filtered).expect(0).json()["rows"].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
    world.run(&["log", "verify"]).expect(0);
}

#[test]
fn one_belief_is_shown_whole_and_a_gated_one_only_on_record() {
    let world = world();
    let told = told(&world);
    let measured = told.measured.to_string();
    let run = world.run(&["belief", "show", &measured]).expect(0);
    insta::assert_snapshot!("show-measured", stable(&world, &run.out));
    assert!(run.err.is_empty(), "{}", run.err);
    assert_eq!(world.log("web").sessions_on_disk().expect("read").len(), 1);
    let derived = told.derived.to_string();
    let run = world.run(&["belief", "show", &derived[4..27]]).expect(0);
    insta::assert_snapshot!("show-derived", stable(&world, &run.out));
    assert_inert(&run.out);
    assert!(run.err.contains("is on record at op-"), "{}", run.err);
    let value = world
        .run(&["belief", "show", &derived, "--json", "--reason", "a test"])
        .expect(0)
        .json();
    assert_eq!(value["standing"], "genuine");
    assert_eq!(value["belief"]["truth"], "unverified");
    let recorded = world
        .run(&[
            "log",
            "show",
            "latest",
            "--type",
            "belief.read_privileged",
            "--json",
        ])
        .expect(0)
        .ndjson();
    assert_eq!(recorded[0]["payload"]["query"]["belief"], derived);
    assert_eq!(recorded[0]["payload"]["reason"], "a test");
    let status = world.run(&["store", "status", "--json"]).expect(0).json();
    assert_eq!(status["findings"], serde_json::json!([]));
}

#[test]
fn names_that_fit_no_belief_or_several_are_refused() {
    let world = world();
    let told = told(&world);
    for what in ["show", "why", "promote", "quarantine"] {
        let unknown = "blf_01890a5d-ac96-774b-bcce-b302099a8057";
        let run = world.run(&["belief", what, unknown]).expect(3);
        assert!(run.err.contains("there is no belief"), "{}", run.err);
        world.run(&["belief", what, "\x1b[2J"]).expect(2);
    }
    let run = world.run(&["belief", "show", "blf_0"]).expect(2);
    assert!(run.err.contains("any of several beliefs"), "{}", run.err);
    assert!(run.err.contains(&told.measured.to_string()), "{}", run.err);
}

#[test]
fn an_operator_vouches_for_what_was_read() {
    let world = world();
    let told = told(&world);
    let args = ["--key", "alice", "--reason", "asked the team"];
    let run = order(&world, "promote", &told.content, &args).expect(0);
    insta::assert_snapshot!(stable(&world, &run.out));
    assert_inert(&run.out);
    assert!(listed(&world).contains(&told.content.to_string()));
    let run = order(&world, "promote", &told.content, &[]).expect(1);
    assert!(
        run.err
            .contains("`user` may not move truth from `supported` to `supported`"),
        "{}",
        run.err
    );
    world.run(&["log", "verify"]).expect(0);
    world.run(&["store", "status"]).expect(0);
}

#[test]
fn truth_alone_brings_nothing_into_the_context() {
    let world = world();
    let told = told(&world);
    let run = order(
        &world,
        "promote",
        &told.content,
        &["--truth-only", "--json"],
    )
    .expect(0);
    let value = run.json();
    assert_eq!(value["axes"]["truth"], "supported");
    assert_eq!(value["axes"]["retrieval"], "restricted");
    assert_eq!(value["signed_by"], "alice");
    assert!(!listed(&world).contains(&told.content.to_string()));
    order(&world, "promote", &told.content, &[]).expect(0);
    assert!(listed(&world).contains(&told.content.to_string()));
}

#[test]
fn only_a_pinned_operator_gives_orders() {
    let world = World::new();
    let told = told(&world);
    let run = order(&world, "promote", &told.content, &[]).expect(4);
    assert!(run.err.contains("lodestar approve keygen"), "{}", run.err);
    let mallory = SecretKey::from_seed([9; 32]);
    let secret = encode_secret("mallory", &mallory).expect("a name");
    let key = format!("{}\n", secret.as_str());
    world.write_private("config/keys/mallory.key", &key);
    for what in ["promote", "quarantine"] {
        let run = order(&world, what, &told.content, &["--key", "mallory"]).expect(4);
        assert!(run.err.contains("pinned here"), "{}", run.err);
    }
    // A pin of that name for another key helps nobody.
    world.write(
        "config/operators/mallory.pub",
        &format!("{}\n", vkey("mallory", &operator_key())),
    );
    order(&world, "promote", &told.content, &["--key", "mallory"]).expect(4);
    order(&world, "promote", &told.content, &["--key", "nobody"]).expect(3);
    // Nothing of all that is in the log.
    assert_eq!(world.log("web").sessions_on_disk().expect("read").len(), 1);
    assert!(!listed(&world).contains(&told.content.to_string()));
}

#[test]
fn whoever_signs_sees_what_and_is_asked() {
    if !python() {
        return;
    }
    let world = world();
    let told = told(&world);
    let id = told.content.to_string();
    let args = ["belief", "promote", &id];
    let run = without_terminal(&world, &args).expect(2);
    assert!(
        run.err.contains("--yes signs without asking"),
        "{}",
        run.err
    );
    let session = at_terminal(&world, &args, &[], &[("to sign: ", "no\n")]);
    assert_eq!(session.code, 2, "{}", session.screen);
    assert!(!listed(&world).contains(&id));
    let session = at_terminal(&world, &args, &[], &[("to sign: ", "yes\n")]);
    assert_eq!(session.code, 0, "{}", session.screen);
    for shown in [
        "`file:DEVELOPMENT.md`, read as block 0",
        "read with read_file of files, external_document",
        "You sign: truth unverified → supported, retrieval restricted → normal",
    ] {
        assert!(session.screen.contains(shown), "{}", session.screen);
    }
    assert!(listed(&world).contains(&id));
}

#[test]
fn a_signed_order_fits_once() {
    let world = world();
    let told = told(&world);
    order(&world, "promote", &told.content, &[]).expect(0);
    let envelope = signed_order(&world);
    order(&world, "quarantine", &told.content, &[]).expect(0);
    order(&world, "quarantine", &told.content, &["--release"]).expect(0);
    let mut session = OperatorSession::open(Operator {
        log: world.log("web"),
        key: log_key().into(),
        trust: Trust {
            operators: vec![operator_key().public()],
            ..Trust::only(log_key().public())
        },
        keyring: keyring(),
        store: Box::new(SqliteStore::open(&state_db(&world)).expect("opened")),
        actor: actor(),
        purpose: "a replayed order",
    })
    .expect("opened");
    let (firewall, _, recorder) = session.parts();
    let log = world.log("web");
    let refused = firewall
        .follow_order(log.project(), &envelope, recorder)
        .expect_err("used before");
    assert!(refused.to_string().contains("revision"), "{refused}");
    session.close("refused").expect("closed");
}

/// The envelope of the promotion in the log.
fn signed_order(world: &World) -> Envelope {
    let log = world.log("web");
    for session in log.sessions_on_disk().expect("read") {
        for event in Reader::open(&log.session(&session)).expect("opened") {
            let event = event.expect("a line");
            let Some(kind) = EventType::parse(event.kind.as_bytes()) else {
                continue;
            };
            let payload = event.inline().expect("JSON").expect("present");
            if let Some(Ok(FirewallEvent::Promoted(promoted))) = FirewallEvent::read(kind, payload)
                && let PromotionGround::Statement(envelope) = promoted.ground
            {
                return envelope;
            }
        }
    }
    panic!("no promotion in the log");
}

#[test]
fn what_is_set_apart_is_in_no_context_until_it_is_released() {
    let world = world();
    let told = told(&world);
    let measured = told.measured;
    order(&world, "quarantine", &measured, &["--reason", "looks odd"]).expect(0);
    assert!(!listed(&world).contains(&measured.to_string()));
    let run = order(&world, "quarantine", &measured, &[]).expect(1);
    assert!(
        run.err
            .contains("may not move security from `quarantined` to `quarantined`"),
        "{}",
        run.err
    );
    order(&world, "quarantine", &measured, &["--release"]).expect(0);
    assert!(listed(&world).contains(&measured.to_string()));
    let run = order(&world, "quarantine", &measured, &["--malicious", "--block"]).expect(0);
    insta::assert_snapshot!(stable(&world, &run.out));
    let run = order(&world, "quarantine", &measured, &["--release", "--json"]).expect(1);
    let message = run.error()["message"].as_str().expect("text").to_owned();
    assert!(
        message.contains("`user` may not move security from `malicious` to `clean`"),
        "{message}"
    );
}

#[test]
fn what_speaks_against_a_belief_stands_below_the_list() {
    let world = world();
    let mut session = Governed::open(&world, "s-1");
    // The extractor of file reads says of a file what a measurement says of it, and otherwise.
    let read = session.read("a.txt", "one\n");
    let object = read.adopted.claims[1].predicate.clone();
    let measured = session.measure(
        &object.subject,
        &object.relation,
        serde_json::json!("other"),
    );
    session.close();
    let run = world.run(&["belief", "list"]).expect(0);
    assert!(
        run.out
            .contains(&format!("contradicted: {}", &measured.to_string()[..27])),
        "{}",
        run.out
    );
}

#[test]
fn a_store_url_with_a_password_is_no_argument_and_is_never_repeated() {
    let world = world();
    told(&world);
    let url = "postgres://alice:hunter2@localhost/lodestar";
    let run = world.run(&["belief", "list", "--store", url]).expect(2);
    assert!(run.err.contains("LODESTAR_STORE_FILE"), "{}", run.err);
    assert!(!run.err.contains("hunter2"), "{}", run.err);
    // Nobody listens there.
    let nowhere = "postgres://alice:hunter2@127.0.0.1:1/lodestar?connect_timeout=2";
    let file = world.write_private("store-url", &format!("{nowhere}\n"));
    for (name, value) in [
        ("LODESTAR_STORE", nowhere),
        ("LODESTAR_STORE_FILE", file.to_str().expect("UTF-8")),
    ] {
        let mut command = world.command(&["belief", "list"]);
        command.env(name, value);
        let run = Run::of(command.output().expect("started")).expect(2);
        assert!(run.err.contains("127.0.0.1"), "{}", run.err);
        assert!(!run.err.contains("hunter2"), "{}", run.err);
    }
    world.chmod(&file, 0o644);
    let mut command = world.command(&["belief", "list"]);
    command.env("LODESTAR_STORE_FILE", &file);
    Run::of(command.output().expect("started")).expect(4);
    let elsewhere = world.path("elsewhere.db");
    let mut command = world.command(&["belief", "list"]);
    command.env("LODESTAR_STORE", &elsewhere);
    let run = Run::of(command.output().expect("started")).expect(0);
    assert!(run.out.contains("confidence 0.95"), "{}", run.out);
    assert!(elsewhere.exists());
}
