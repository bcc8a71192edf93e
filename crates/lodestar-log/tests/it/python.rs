//! The verifier in the documentation, in Python, agrees with ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Dice, World, full_matrix, id, skip};

fn verifier() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/verify.py")
}

fn python_says_intact(world: &World) -> bool {
    let output = Command::new("python3")
        .arg(verifier())
        .arg(world.log().session(&id("s1")).dir())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("Traceback"), "{errors}");
    match output.status.code() {
        Some(0) => true,
        Some(1) => {
            assert!(
                !text.is_empty() || !errors.is_empty(),
                "it says what is wrong"
            );
            false
        }
        other => panic!("exit {other:?}: {text}{errors}"),
    }
}

#[test]
fn the_python_verifier_agrees_also_on_tampered_sessions() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("the Python verifier (python3 is missing)");
    }
    let world = World::fast();
    let writer = world.create("s1");
    (1..60).for_each(|i| drop(crate::support::append(&writer, i)));
    crate::support::close(&writer);
    drop(writer);
    assert!(world.verify().is_intact());
    assert!(python_says_intact(&world), "a genuine session");

    let path = world.log().session(&id("s1")).events_path();
    let original = fs::read(&path).unwrap();
    let mut dice = Dice::new(20);
    let rounds = if full_matrix() { 1000 } else { 60 };
    for round in 0..rounds {
        let mut bytes = original.clone();
        let at = dice.roll(bytes.len() as u64) as usize;
        match round % 4 {
            0 | 1 => bytes[at] ^= 1 << dice.roll(8),
            2 => bytes.truncate(at),
            _ => {
                let mut lines: Vec<&[u8]> = original.split_inclusive(|b| *b == b'\n').collect();
                let (a, b) = (dice.roll(61) as usize, dice.roll(61) as usize);
                match a == b {
                    true => drop(lines.remove(a)),
                    false => lines.swap(a, b),
                }
                bytes = lines.concat();
            }
        }
        fs::write(&path, &bytes).unwrap();
        assert!(!world.verify().is_intact(), "round {round}: ours");
        assert!(!python_says_intact(&world), "round {round}: Python's");
    }
    fs::write(&path, &original).unwrap();
    assert!(python_says_intact(&world));
    println!("Python verifier: {rounds} tampered sessions, both verifiers agree on all");
}
