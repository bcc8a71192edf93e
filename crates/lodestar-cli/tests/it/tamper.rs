//! The tamper matrix through the binary: what the library finds, the command says and exits 1 for.

use std::fs;
use std::path::{Path, PathBuf};

use lodestar_core::event::EventType;
use serde_json::json;

use crate::world::{World, actor};

const FLIPS: u64 = 500;

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files_below(&path, found),
            false => found.push(path),
        }
    }
    found.sort();
}

/// 300 events, one of them with a blob.
fn world_of_300() -> World {
    let world = World::new();
    let writer = world.open("notes", "s1");
    for i in 1..298 {
        let payload = json!({"index": i, "text": "a line of an agent's notes ".repeat(8)});
        writer
            .append(EventType::AGENT_NOTE, &actor(), &[i - 1], &payload)
            .expect("appended");
    }
    let large = json!({"content": "a large result ".repeat(2000)});
    writer
        .append(EventType::OBSERVATION_RECORDED, &actor(), &[], &large)
        .expect("appended");
    writer
        .close(&actor(), &json!({"reason": "done"}))
        .expect("closed");
    world
}

#[test]
fn five_hundred_flipped_bits_are_found_by_the_binary() {
    let world = world_of_300();
    world.run(&["log", "verify"]).expect(0);
    let mut files = Vec::new();
    files_below(&world.root(), &mut files);
    // Every tenth flip goes to each of the small files in turn, the rest anywhere in the events.
    let events = world.session("notes", "s1").events_path();
    let mut seed = 0x1234_5678_9abc_def1u64;
    let mut roll = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for flip in 0..FLIPS {
        let file = match flip % 10 {
            0 => &files[(flip / 10) as usize % files.len()],
            _ => &events,
        };
        let original = fs::read(file).expect("read");
        let bit = roll(original.len() as u64 * 8);
        let mut flipped = original.clone();
        flipped[(bit / 8) as usize] ^= 1 << (bit % 8);
        fs::write(file, &flipped).expect("written");
        let run = world.run(&["log", "verify", "--json"]);
        assert_eq!(run.code, 1, "bit {bit} of {}: {run:?}", file.display());
        let report = run.out;
        assert!(
            report.contains("\"code\""),
            "it names what is wrong: {report}"
        );
        fs::write(file, &original).expect("written");
    }
    world.run(&["log", "verify"]).expect(0);
    println!("through the binary: {FLIPS} bits flipped, {FLIPS} detected");
}
