//! Whatever is done to the files of a closed session shows, and the message names the place.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::digest::{decode_hex, leaf_hash, sha256_parts};
use lodestar_core::key::SecretKey;
use lodestar_log::verify::ProjectReport;
use lodestar_log::{LogWriter, Trust};

use crate::support::{
    Dice, World, append, close, copy_tree, files_below, full_matrix, id, verify_folder,
};

const EVENTS: u64 = 300;

/// A closed session of 300 events, one of them with a blob, and the ledger.
fn closed_world() -> World {
    let world = World::fast();
    let writer = world.create("s1");
    for i in 1..EVENTS - 2 {
        append(&writer, i);
    }
    let large = serde_json::json!({"content": "blob ".repeat(4000)});
    writer
        .append(
            lodestar_core::event::EventType::OBSERVATION_RECORDED,
            &crate::support::actor(),
            &[],
            &large,
        )
        .unwrap();
    close(&writer);
    drop(writer);
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    assert_eq!(report.sessions[0].events, EVENTS);
    world
}

fn detected(world: &World) -> bool {
    let report = world.verify();
    let named = report.all_problems().all(|p| !p.file.is_empty());
    !report.is_intact() && named
}

fn codes(report: &ProjectReport) -> Vec<&'static str> {
    report.all_problems().map(|p| p.kind.code()).collect()
}

fn session_file(world: &World, name: &str) -> PathBuf {
    world.log().session(&id("s1")).dir().join(name)
}

#[test]
fn matrix_every_single_bit() {
    let world = closed_world();
    let sizes: Vec<(PathBuf, u64)> = files_below(world.folder())
        .into_iter()
        .map(|path| {
            let bits = fs::metadata(&path).unwrap().len() * 8;
            (path.strip_prefix(world.folder()).unwrap().to_owned(), bits)
        })
        .collect();
    let total: u64 = sizes.iter().map(|(_, bits)| bits).sum();
    // The sample: every bit of the small files, and a fixed-seed choice from the events.
    let mut dice = Dice::new(300);
    let flips: Vec<(usize, u64)> = sizes
        .iter()
        .enumerate()
        .flat_map(|(file, (_, bits))| {
            let small = *bits < 4_000;
            let chosen: Vec<u64> = match full_matrix() || small {
                true => (0..*bits).collect(),
                false => (0..3_000).map(|_| dice.roll(*bits)).collect(),
            };
            chosen.into_iter().map(move |bit| (file, bit))
        })
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let share = flips.len().div_ceil(threads);
    let missed: Vec<(usize, u64)> = std::thread::scope(|scope| {
        let workers: Vec<_> = flips
            .chunks(share)
            .map(|part| {
                let (world, sizes) = (world.copy(), &sizes);
                scope.spawn(move || flip_each(&world, sizes, part))
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    println!(
        "single bits: {} of {total} flipped in {} files, {} detected",
        flips.len(),
        sizes.len(),
        flips.len() - missed.len()
    );
    assert_eq!(missed, [], "undetected flips in {sizes:?}");
}

fn flip_each(world: &World, sizes: &[(PathBuf, u64)], flips: &[(usize, u64)]) -> Vec<(usize, u64)> {
    let files: Vec<fs::File> = sizes
        .iter()
        .map(|(path, _)| {
            fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(world.folder().join(path))
                .unwrap()
        })
        .collect();
    let mut missed = Vec::new();
    for &(file, bit) in flips {
        let mut byte = [0];
        files[file].read_exact_at(&mut byte, bit / 8).unwrap();
        let flipped = [byte[0] ^ (1 << (bit % 8))];
        files[file].write_all_at(&flipped, bit / 8).unwrap();
        if !detected(world) {
            missed.push((file, bit));
        }
        files[file].write_all_at(&byte, bit / 8).unwrap();
    }
    assert!(world.verify().is_intact(), "the flips were not undone");
    missed
}

#[test]
fn matrix_every_line_deleted_duplicated_swapped() {
    let world = closed_world();
    let path = session_file(&world, "events.ndjson");
    let original = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = original.split_inclusive(|b| *b == b'\n').collect();
    let mut tried = 0;
    let mut check = |lines: Vec<&[u8]>, what: &str, at: usize| {
        fs::write(&path, lines.concat()).unwrap();
        assert!(detected(&world), "{what} of line {at} was not detected");
        tried += 1;
    };
    for i in 0..lines.len() {
        let mut deleted = lines.clone();
        deleted.remove(i);
        check(deleted, "deletion", i);
        let mut doubled = lines.clone();
        doubled.insert(i, lines[i]);
        check(doubled, "duplication", i);
        if i + 1 < lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(i, i + 1);
            check(swapped, "swap", i);
        }
    }
    println!("lines deleted, duplicated, swapped: {tried} tried, {tried} detected");
}

#[test]
fn matrix_truncation_of_a_closed_session_at_every_offset() {
    let world = closed_world();
    let path = session_file(&world, "events.ndjson");
    let original = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let step = if full_matrix() { 1 } else { 41 };
    let mut tried = 0;
    for len in (0..original.len()).rev().step_by(step) {
        file.set_len(len as u64).unwrap();
        assert!(
            detected(&world),
            "truncation to {len} bytes was not detected"
        );
        tried += 1;
    }
    println!(
        "truncations of a closed session: {tried} of {} tried, all detected",
        original.len()
    );
}

#[test]
fn matrix_truncation_of_an_open_session_below_its_checkpoint() {
    let world = World::fast();
    let writer = world.create("s1");
    for i in 1..EVENTS {
        append(&writer, i);
    }
    drop(writer); // a checkpoint over everything, and no closing record
    assert!(world.verify().is_intact());
    let path = session_file(&world, "events.ndjson");
    let original = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let step = if full_matrix() { 1 } else { 41 };
    let mut tried = 0;
    for len in (0..original.len()).rev().step_by(step) {
        file.set_len(len as u64).unwrap();
        let report = world.verify();
        assert!(codes(&report).contains(&"truncated"), "{len}: {report:#?}");
        tried += 1;
    }
    println!(
        "truncations of an open session: {tried} of {} tried, all detected",
        original.len()
    );
}

#[test]
fn two_spliced_sessions_are_detected() {
    let world = World::fast();
    let (a, b) = (world.closed("s1", 40), world.closed("s2", 40));
    let lines = |dir: &Path| -> Vec<Vec<u8>> {
        let bytes = fs::read(dir.join("events.ndjson")).unwrap();
        bytes
            .split_inclusive(|b| *b == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    };
    let (first, second) = (lines(&a), lines(&b));
    for cut in 0..40 {
        let spliced = [&first[..cut], &second[cut..]].concat().concat();
        fs::write(a.join("events.ndjson"), spliced).unwrap();
        let report = world.verify();
        assert!(
            codes(&report).contains(&"wrong_session"),
            "{cut}: {report:#?}"
        );
    }
    // The directories swapped as a whole.
    fs::write(a.join("events.ndjson"), first.concat()).unwrap();
    fs::rename(&a, world.log().dir().join("x")).unwrap();
    fs::rename(&b, &a).unwrap();
    fs::rename(world.log().dir().join("x"), &b).unwrap();
    let report = world.verify();
    assert_eq!(report.sessions.iter().filter(|s| !s.is_intact()).count(), 2);
}

/// Somebody without the log key writes the whole session anew, with a key of their own, and puts
/// it in the place of the genuine one: alone, or with a ledger that fits it.
#[test]
fn a_complete_rewrite_without_the_log_key_is_detected() {
    let world = World::fast();
    let genuine = world.closed("s1", 50);
    let mut forger = World::fast();
    forger.key = Arc::new(SecretKey::from_seed([66; 32]));
    let forged = forger.closed("s1", 50);
    assert!(
        forger.verify().is_intact(),
        "the forgery is flawless under its own key"
    );
    let copy = world.copy();

    for file in ["events.ndjson", "checkpoint"] {
        fs::copy(forged.join(file), genuine.join(file)).unwrap();
    }
    let report = world.verify();
    let found = codes(&report);
    assert!(
        found.contains(&"checkpoint_invalid") && found.contains(&"wrong_opening"),
        "{report:#?}"
    );

    copy_tree(forger.folder(), copy.folder());
    let report = copy.verify();
    let found = codes(&report);
    assert_eq!(
        found.iter().filter(|c| **c == "checkpoint_invalid").count(),
        2,
        "{report:#?}"
    );
}

/// Somebody changes one payload and recomputes every hash behind it, by hand and correctly; the
/// genuine checkpoint and ledger stay, because they cannot be signed again.
#[test]
fn recomputed_hashes_do_not_fit_the_genuine_checkpoint() {
    let world = World::fast();
    let path = world.closed("s1", 50).join("events.ndjson");
    let genuine = fs::read_to_string(&path).unwrap();
    let mut forged = String::new();
    let mut prev: Option<String> = None;
    for (i, line) in genuine.lines().enumerate() {
        let (mut head, rest) = line.split_once(",\"payload\":").unwrap();
        let (mut payload, salt) = rest.rsplit_once(",\"salt\":\"").unwrap();
        let salt = salt.strip_suffix("\"}").unwrap();
        head = head.strip_prefix("{\"head\":").unwrap();
        let changed = payload.replace("event 20:", "event 99:");
        if i == 20 {
            assert_ne!(payload, changed);
            payload = &changed;
        }
        let raw_salt = decode_hex::<16>(salt.as_bytes()).unwrap();
        let hash = sha256_parts(&[&raw_salt, payload.as_bytes()]).to_string();
        let mut head = with_field(head, "payload_hash", &hash);
        if let Some(prev) = &prev {
            head = with_field(&head, "prev", prev);
        }
        prev = Some(leaf_hash(head.as_bytes()).to_string());
        forged += &format!("{{\"head\":{head},\"payload\":{payload},\"salt\":\"{salt}\"}}\n");
    }
    fs::write(&path, forged).unwrap();
    let report = world.verify();
    let found = codes(&report);
    // The chain itself is without a fault: only the two commitments tell.
    assert_eq!(found, ["rewritten", "rewritten"], "{report:#?}");
}

fn with_field(head: &str, name: &str, value: &str) -> String {
    let (before, after) = head.split_once(&format!("\"{name}\":\"")).unwrap();
    format!("{before}\"{name}\":\"{value}{}", &after[64..])
}

#[test]
fn a_deleted_session_is_detected() {
    let world = World::fast();
    world.closed("s1", 10);
    fs::remove_dir_all(world.closed("s2", 10)).unwrap();
    let report = world.verify();
    assert_eq!(codes(&report), ["session_missing"]);
    let message = report.problems[0].to_string();
    assert!(
        message.contains("`s2`") && message.contains("ledger.ndjson #2"),
        "{message}"
    );
}

#[test]
fn an_added_session_and_a_missing_ledger_are_detected() {
    let world = World::fast();
    let s1 = world.closed("s1", 10);
    copy_tree(&s1, &world.log().dir().join("s9"));
    assert_eq!(codes(&world.verify()), ["unknown_session"]);
    fs::remove_file(world.log().ledger_path()).unwrap();
    assert!(codes(&world.verify()).contains(&"ledger_missing"));
}

#[test]
fn missing_files_are_detected() {
    for file in ["checkpoint", "events.ndjson"] {
        let world = closed_world();
        fs::remove_file(session_file(&world, file)).unwrap();
        assert!(detected(&world), "{file}");
    }
    let world = closed_world();
    for blob in files_below(&session_file(&world, "blobs")) {
        fs::remove_file(blob).unwrap();
    }
    assert_eq!(codes(&world.verify()), ["blob_missing"]);
    let world = closed_world();
    fs::remove_file(world.log().ledger_checkpoint_path()).unwrap();
    assert_eq!(codes(&world.verify()), ["checkpoint_missing"]);
}

#[test]
fn a_rolled_back_session_is_detected() {
    let world = World::fast();
    let writer = world.create("s1");
    (1..50).for_each(|i| drop(append(&writer, i)));
    drop(writer);
    let old = world.copy();
    assert!(
        old.verify().is_intact(),
        "the older copy is valid in itself"
    );
    let writer = LogWriter::reopen(&world.log(), &id("s1"), &world.options()).unwrap();
    (50..80).for_each(|i| drop(append(&writer, i)));
    close(&writer);
    drop(writer);
    let dir = world.log().session(&id("s1")).dir().to_owned();
    fs::remove_dir_all(&dir).unwrap();
    copy_tree(old.log().session(&id("s1")).dir(), &dir);
    let report = world.verify();
    let found = codes(&report);
    assert!(found.contains(&"truncated"), "{report:#?}");
    assert!(found.contains(&"not_the_closing_checkpoint"), "{report:#?}");
}

#[test]
fn session_and_ledger_rolled_back_together_are_detected_against_a_witnessed_head() {
    let world = World::fast();
    world.closed("s1", 20);
    let old = world.copy();
    world.closed("s2", 20);
    let witnessed = fs::read(world.log().ledger_checkpoint_path()).unwrap();
    let trust: Trust = world.trust();
    let check = |world: &World| verify_folder(world.folder(), &trust, Some(witnessed.clone()));
    assert!(check(&world).is_intact());
    // Without the witnessed head it goes unnoticed, and the documentation says so.
    assert!(old.verify().is_intact());
    assert_eq!(codes(&check(&old)), ["rolled_back"]);
    // The rolled-back log that goes another way is found as well, when it is long enough again.
    old.closed("s3", 20);
    assert_eq!(codes(&check(&old)), ["not_what_was_witnessed"]);
    // And grown honestly from the witnessed head it is fine.
    world.closed("s4", 5);
    assert!(check(&world).is_intact());
}

#[test]
fn events_added_behind_the_closing_are_detected() {
    let world = closed_world();
    let path = session_file(&world, "events.ndjson");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes
        .split_inclusive(|b| *b == b'\n')
        .next_back()
        .unwrap()
        .to_vec();
    bytes.extend_from_slice(&last);
    fs::write(&path, &bytes).unwrap();
    assert!(codes(&world.verify()).contains(&"grown_after_closing"));
    bytes.truncate(bytes.len() - last.len());
    bytes.extend_from_slice(b"junk without a newline");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(codes(&world.verify()), ["unterminated_line"]);
}

#[test]
fn problems_name_event_and_byte() {
    let world = closed_world();
    let path = session_file(&world, "events.ndjson");
    let mut bytes = fs::read(&path).unwrap();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(
            bytes
                .iter()
                .enumerate()
                .filter(|(_, b)| **b == b'\n')
                .map(|(i, _)| i + 1),
        )
        .collect();
    let target = starts[100] + 480;
    bytes[target] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let report = world.verify();
    let problem = report.all_problems().next().unwrap();
    assert_eq!(problem.seq, Some(100));
    assert_eq!(problem.offset, Some(starts[100] as u64));
    assert!(
        problem
            .to_string()
            .starts_with(&format!("s1/events.ndjson #100 (byte {}): ", starts[100]))
    );
}

/// A hostile file must not fill the memory or the screen.
#[test]
fn garbage_of_any_size_is_an_error_and_nothing_worse() {
    let world = closed_world();
    let path = session_file(&world, "events.ndjson");
    for garbage in [
        vec![b'\n'; 200_000],
        vec![0; 5 << 20],
        b"{\"head\":".repeat(300_000),
        [
            b"{\"head\":{\"actor\":\"".as_slice(),
            &vec![b'a'; 3 << 20],
            b"\n",
        ]
        .concat(),
    ] {
        fs::write(&path, garbage).unwrap();
        let report = world.verify();
        assert!(!report.is_intact());
        assert!(report.all_problems().count() <= 1010);
    }
}
