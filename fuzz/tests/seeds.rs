//! The stable run: every seed, then mutations of them. A panic and a hang are both failures, and
//! both show the input.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lodestar_core::canonical;
use lodestar_core::contract::ArgumentRole;
use lodestar_core::ladder::Verdict;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_core::statement::Envelope;
use lodestar_firewall::import::{ExportFormat, read_export};
use lodestar_fuzz::{Mutator, TARGETS, Target};
use lodestar_guard::Config;
use lodestar_kernel::native::net::endpoint::Location;
use lodestar_log::{Line, Proof};
use lodestar_policy::Suite;
use lodestar_policy::confirmation::Evidence;

/// Enough to reach every branch of these parsers, and a few seconds in all.
const ITERATIONS: u64 = 50_000;
/// Longer than any input takes on a machine that is busy with other tests.
const HANG: Duration = Duration::from_secs(20);
const SEED: u64 = 0x10de_57a2_0000_0001;

fn iterations() -> u64 {
    match std::env::var("LODESTAR_FUZZ_ITERATIONS") {
        Ok(text) => text
            .parse()
            .expect("LODESTAR_FUZZ_ITERATIONS is a whole number"),
        Err(_) => ITERATIONS,
    }
}

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

/// The seeds of a target, by name. What cargo-fuzz found and left there has a hash for a name, and
/// is not the same on every machine.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut seeds: Vec<_> = fs::read_dir(folder("corpus").join(target))
        .expect("every target has a folder of seeds")
        .map(|entry| {
            let path = entry.expect("a readable folder").path();
            let name = path
                .file_name()
                .expect("a file has a name")
                .to_string_lossy()
                .into_owned();
            (name, fs::read(path).expect("a readable seed"))
        })
        .filter(|(name, _): &(String, _)| name.starts_with("ok-") || name.starts_with("bad-"))
        .collect();
    seeds.sort();
    seeds
}

/// Targets that put questions to Cedar, check many signatures or read whole configurations: a tenth of the
/// inputs takes as long there.
const DEAR: [&str; 7] = [
    "device_statement",
    "hook_settings",
    "policy_text",
    "policy_suite",
    "tool_arguments",
    "bundle",
    "pack_scenario",
];

/// Targets that write files, and derive whole sessions from them: a fiftieth.
const DEAREST: [&str; 1] = ["run_bundle"];

/// What the worker is busy with, for whoever watches it.
#[derive(Default)]
struct Busy {
    done: AtomicU64,
    input: Mutex<Vec<u8>>,
}

fn run(name: &str) {
    let (_, target) = *TARGETS
        .iter()
        .find(|(known, _)| *known == name)
        .expect("the target is in the table");
    let seeds: Vec<Vec<u8>> = seeds(name).into_iter().map(|(_, bytes)| bytes).collect();
    let share = match name {
        name if DEAREST.contains(&name) => 50,
        name if DEAR.contains(&name) => 10,
        _ => 1,
    };
    watch(name, target, seeds, iterations() / share, HANG);
}

/// Runs the target on another thread and looks every few milliseconds whether it gets on.
fn watch(name: &str, target: Target, seeds: Vec<Vec<u8>>, times: u64, hang: Duration) {
    let busy = Arc::new(Busy::default());
    let worker = thread::spawn({
        let busy = Arc::clone(&busy);
        move || work(target, &seeds, times, &busy)
    });
    let mut last = (0, Instant::now());
    while !worker.is_finished() {
        thread::sleep(Duration::from_millis(10));
        let done = busy.done.load(Ordering::Relaxed);
        if done != last.0 {
            last = (done, Instant::now());
        }
        assert!(
            last.1.elapsed() < hang,
            "{name} hangs at input {done}: {}",
            shown(&busy)
        );
    }
    if worker.join().is_err() {
        let done = busy.done.load(Ordering::Relaxed);
        panic!("{name} breaks a law at input {done}: {}", shown(&busy));
    }
}

fn work(target: Target, seeds: &[Vec<u8>], times: u64, busy: &Busy) {
    let mut mutator = Mutator::new(SEED);
    let mutations = (0..times).map(|_| mutator.damage(seeds));
    for input in seeds.iter().cloned().chain(mutations) {
        busy.input
            .lock()
            .expect("nobody panics while it holds the input")
            .clone_from(&input);
        target(&input);
        busy.done.fetch_add(1, Ordering::Relaxed);
    }
}

fn shown(busy: &Busy) -> String {
    let input = busy
        .input
        .lock()
        .expect("nobody panics while it holds the input");
    format!("b\"{}\"", input.escape_ascii())
}

#[test]
fn canonical_json_keeps_its_laws() {
    run("canonical_json");
}

#[test]
fn log_line_keeps_its_laws() {
    run("log_line");
}

#[test]
fn checkpoint_keeps_its_laws() {
    run("checkpoint");
}

#[test]
fn dsse_envelope_keeps_its_laws() {
    run("dsse_envelope");
}

#[test]
fn device_statement_keeps_its_laws() {
    run("device_statement");
}

#[test]
fn proof_keeps_its_laws() {
    run("proof");
}

#[test]
fn bundle_keeps_its_laws() {
    run("bundle");
}

#[test]
fn run_bundle_keeps_its_laws() {
    run("run_bundle");
}

#[test]
fn memory_export_keeps_its_laws() {
    run("memory_export");
}

#[test]
fn policy_text_keeps_its_laws() {
    run("policy_text");
}

#[test]
fn policy_suite_keeps_its_laws() {
    run("policy_suite");
}

#[test]
fn guard_config_keeps_its_laws() {
    run("guard_config");
}

#[test]
fn tool_arguments_keeps_its_laws() {
    run("tool_arguments");
}

#[test]
fn protected_path_keeps_its_laws() {
    run("protected_path");
}

#[test]
fn url_keeps_its_laws() {
    run("url");
}

#[test]
fn nostr_key_keeps_its_laws() {
    run("nostr_key");
}

#[test]
fn confirmation_keeps_its_laws() {
    run("confirmation");
}

#[test]
fn approval_answer_keeps_its_laws() {
    run("approval_answer");
}

#[test]
fn mcp_message_keeps_its_laws() {
    run("mcp_message");
}

#[test]
fn mcp_result_keeps_its_laws() {
    run("mcp_result");
}

#[test]
fn pack_scenario_keeps_its_laws() {
    run("pack_scenario");
}

#[test]
fn otlp_answer_keeps_its_laws() {
    run("otlp_answer");
}

#[test]
fn shell_command_keeps_its_laws() {
    run("shell_command");
}

#[test]
fn hook_input_keeps_its_laws() {
    run("hook_input");
}

#[test]
fn hook_settings_keeps_its_laws() {
    run("hook_settings");
}

/// Whether the parser of a target reads an input.
fn reads(target: &str, data: &[u8]) -> bool {
    match target {
        "canonical_json" => canonical::parse(data).is_ok(),
        "log_line" => Line::parse(data).is_ok(),
        "checkpoint" => {
            Note::parse(data).is_ok_and(|note| Checkpoint::parse_body(note.text()).is_ok())
        }
        "dsse_envelope" => Envelope::from_json(data).is_ok(),
        "device_statement" => lodestar_fuzz::stated(data),
        "confirmation" => Evidence::read(data).is_ok(),
        "proof" => Proof::parse(data).is_ok(),
        "bundle" => lodestar_fuzz::named(data),
        "run_bundle" => lodestar_fuzz::has_head(data),
        "memory_export" => ExportFormat::ALL.iter().any(|format| {
            read_export(*format, data).is_ok_and(|export| !export.memories.is_empty())
        }),
        "policy_text" => str::from_utf8(data).is_ok_and(lodestar_fuzz::fits),
        "policy_suite" => str::from_utf8(data)
            .is_ok_and(|text| Suite::parse(text).is_ok_and(|suite| !suite.cases.is_empty())),
        "guard_config" => {
            str::from_utf8(data).is_ok_and(|text| Config::parse(text, "/nonexistent").is_ok())
        }
        "tool_arguments" => {
            lodestar_fuzz::judged(data).is_some_and(|judged| judged.verdict == Verdict::Allow)
        }
        "protected_path" => {
            let text = String::from_utf8_lossy(data);
            lodestar_fuzz::reached(&text, ArgumentRole::Path).is_some()
        }
        "url" => Location::parse(&String::from_utf8_lossy(data)).is_ok(),
        "nostr_key" => lodestar_fuzz::read_key(data).is_some(),
        "approval_answer" => lodestar_fuzz::brought(data).is_ok(),
        "mcp_message" => lodestar_mcp::wire::Message::read(data).is_ok(),
        "mcp_result" => lodestar_fuzz::taken(data).is_some(),
        "pack_scenario" => str::from_utf8(data).is_ok_and(lodestar_fuzz::is_of_a_pack),
        "otlp_answer" => lodestar_fuzz::answered(data).is_some(),
        "shell_command" => lodestar_fuzz::runs_unasked(data),
        "hook_input" => lodestar_fuzz::heard(data),
        "hook_settings" => lodestar_fuzz::settled(data),
        other => panic!("nobody says what an input of {other} is"),
    }
}

/// A seed whose name starts with `ok` is read, any other is refused: a parser that refused
/// everything would keep all laws.
#[test]
fn seeds_are_what_their_names_say() {
    for (target, _) in TARGETS {
        let seeds = seeds(target);
        let mut ok = 0;
        for (name, bytes) in &seeds {
            assert_eq!(
                reads(target, bytes),
                name.starts_with("ok"),
                "{target}/{name}"
            );
            ok += usize::from(name.starts_with("ok"));
        }
        assert!(
            ok >= 3 && seeds.len() - ok >= 3,
            "{target}: {ok} of {}",
            seeds.len()
        );
    }
}

/// Inputs that are all refused test little, and so do inputs that are all read.
#[test]
fn mutations_get_past_the_parsers_and_do_not_all() {
    for (target, _) in TARGETS {
        let seeds: Vec<Vec<u8>> = seeds(target).into_iter().map(|(_, bytes)| bytes).collect();
        let mut mutator = Mutator::new(SEED);
        let read = (0..2000)
            .filter(|_| reads(target, &mutator.damage(&seeds)))
            .count();
        assert!((60..1500).contains(&read), "{target} reads {read} of 2000");
    }
}

fn failure_of(target: Target, hang: Duration) -> String {
    let seeds = vec![b"a seed".to_vec()];
    let run = thread::spawn(move || watch("it", target, seeds, iterations(), hang));
    let failure = run.join().expect_err("the run fails");
    failure
        .downcast_ref::<String>()
        .expect("the failure has a message")
        .clone()
}

#[test]
fn a_hang_is_a_failure_that_shows_the_input() {
    // The thread stays behind, as it must; it ends with the test's process.
    let hangs: Target = |_| thread::sleep(Duration::from_secs(3600));
    assert_eq!(
        failure_of(hangs, Duration::from_millis(100)),
        "it hangs at input 0: b\"a seed\""
    );
}

#[test]
fn a_broken_law_is_a_failure_that_shows_the_input() {
    let breaks: Target = |data| assert!(data.is_empty(), "this panic is wanted");
    assert_eq!(
        failure_of(breaks, HANG),
        "it breaks a law at input 0: b\"a seed\""
    );
}

#[test]
fn every_target_has_an_entry_point_for_cargo_fuzz() {
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for (target, _) in TARGETS {
        let entry = fs::read_to_string(folder("fuzz_targets").join(format!("{target}.rs")));
        assert!(
            entry
                .unwrap()
                .contains(&format!("lodestar_fuzz::{target}("))
        );
        assert!(manifest.contains(&format!("name = \"{target}\"")));
    }
}

#[test]
fn mutations_repeat_and_are_not_all_alike() {
    let seeds = vec![b"{\"a\":[1,2,3]}".to_vec()];
    let inputs = |seed| {
        let mut mutator = Mutator::new(seed);
        (0..1000)
            .map(|_| mutator.damage(&seeds))
            .collect::<Vec<_>>()
    };
    assert_eq!(inputs(3), inputs(3));
    assert_ne!(inputs(3), inputs(5));
    let mut different = inputs(3);
    different.sort();
    different.dedup();
    assert!(different.len() > 600, "{}", different.len());
}
