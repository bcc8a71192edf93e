//! Outside packs of probes, through the binary: made, checked, signed, verified, run; and refused once anything of
//! them was changed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::world::{World, assert_inert};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/invoice-fraud")
}

/// The example in a world of its own, with its author's key pinned as its README has it.
fn with_example() -> (World, PathBuf) {
    let world = World::new();
    let readme = fs::read_to_string(example().join("README.md")).expect("a README");
    let key = readme
        .split(['`', '\n', ' '])
        .find(|word| word.starts_with("lodestar-examples+"));
    world.write(
        "config/packs/lodestar-examples.pub",
        &format!("{}\n", key.expect("a key")),
    );
    let folder = world.path("invoice-fraud");
    copy(&example(), &folder);
    (world, folder)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target).expect("copied")),
        }
    }
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let scenarios = fs::read_dir(folder.join("scenarios")).expect("readable");
    let own = fs::read_dir(folder).expect("readable");
    let all = own
        .chain(scenarios)
        .map(|entry| entry.expect("readable").path());
    all.filter(|path| path.is_file()).collect()
}

#[test]
fn the_example_is_sound_signed_and_passes_with_every_contrast() {
    let (world, folder) = with_example();
    let folder = folder.to_str().expect("UTF-8");
    let checked = world
        .run(&["--json", "pack", "check", folder])
        .expect(0)
        .json();
    assert_eq!(checked["passed"], true);
    world.run(&["pack", "verify", folder]).expect(0);
    let report = world.run(&["--json", "harness", "run", "--pack", folder]);
    let report = report.expect(0).json();
    assert_eq!(
        (&report["passed"], &report["failed"]),
        (&json!(4), &json!(0)),
        "{report:#}"
    );
    for probe in report["probes"].as_array().expect("probes") {
        assert_eq!(probe["pack"], "invoice-fraud");
        assert_eq!(probe["contrast"], "breached", "{probe:#}");
    }
    assert_eq!(report["outside_packs"][0]["verified"], true);
    let listed = world.run(&["harness", "list", "--pack", folder]).expect(0);
    assert!(
        listed.out.contains("changed-account-waits"),
        "{}",
        listed.out
    );
}

#[test]
fn tampering_with_any_file_is_refused_whatever_is_allowed() {
    for file in files_of(&example()) {
        let (world, folder) = with_example();
        let name = file.strip_prefix(example()).expect("inside");
        let path = folder.join(name);
        let mut bytes = fs::read(&path).expect("read");
        bytes.push(b'\n');
        // A signature may end in as many line ends as it likes: what it says is changed instead.
        if name == Path::new("pack.sig") {
            let at = bytes.iter().position(|byte| *byte == b'A').expect("base64");
            bytes[at] = b'B';
        }
        fs::write(&path, bytes).expect("written");
        let folder = folder.to_str().expect("UTF-8");
        let verified = world.run(&["pack", "verify", folder]).expect(1);
        assert!(!verified.err.is_empty());
        let run = ["harness", "run", "--allow-unsigned", "--pack", folder];
        let run = world.run(&run).expect(1);
        assert!(!run.out.contains("passed"), "{name:?}: {}", run.out);
    }
    let (world, folder) = with_example();
    fs::remove_file(folder.join("scenarios/changed-account-waits.toml")).expect("removed");
    let missing = world.run(&["pack", "verify", folder.to_str().expect("UTF-8")]);
    assert!(missing.expect(1).err.contains("is not there"));
    let (world, folder) = with_example();
    fs::write(folder.join("scenarios/run.sh"), "true").expect("written");
    let extra = world.run(&["pack", "verify", folder.to_str().expect("UTF-8")]);
    assert!(extra.expect(1).err.contains("does not belong"));
}

#[test]
fn a_pack_that_nobody_vouches_for_runs_only_when_told_and_says_so() {
    let world = World::new();
    world.run(&["pack", "new", "mine"]).expect(0);
    world.run(&["pack", "check", "mine"]).expect(0);
    world.run(&["pack", "new", "mine"]).expect(2);
    let refused = world.run(&["harness", "run", "--pack", "mine"]).expect(1);
    assert!(refused.err.contains("nobody signed it"), "{}", refused.err);
    let told = ["harness", "run", "--pack", "mine", "--allow-unsigned"];
    let run = world.run(&told).expect(0);
    assert!(run.err.contains("RUNS UNVERIFIED"), "{}", run.err);
    assert!(run.out.contains("1 passed"), "{}", run.out);
    let mut told = told.to_vec();
    told.push("--json");
    let report = world.run(&told).expect(0).json();
    assert_eq!(report["outside_packs"][0]["verified"], false);
}

#[test]
fn an_author_signs_and_counts_where_the_key_is_pinned() {
    let world = World::new();
    world.add_operator();
    world
        .run(&["pack", "new", "mine", "--author", "alice"])
        .expect(0);
    world
        .run(&["pack", "sign", "mine", "--as", "bob"])
        .expect(2);
    let signed = world.run(&["--json", "pack", "sign", "mine", "--as", "alice"]);
    let public = signed.expect(0).json()["public"]
        .as_str()
        .expect("a key")
        .to_owned();
    world
        .run(&["pack", "verify", "mine", "--key", &public])
        .expect(0);
    let unknown = world.run(&["pack", "verify", "mine"]).expect(4);
    assert!(unknown.err.contains("packs/alice.pub"), "{}", unknown.err);
    world.write("config/packs/bob.pub", &format!("{public}\n"));
    world.run(&["pack", "verify", "mine"]).expect(4);
    world.write("config/packs/alice.pub", &format!("{public}\n"));
    world.run(&["pack", "verify", "mine"]).expect(0);
    world.run(&["harness", "run", "--pack", "mine"]).expect(0);
}

#[test]
fn problems_have_a_place_and_are_shown_inert() {
    let world = World::new();
    world.run(&["pack", "new", "mine"]).expect(0);
    let file = world.root().join("mine/scenarios/note-cannot-send.toml");
    let text = fs::read_to_string(&file).expect("text");
    let changed = text.replacen("ceiling = 3", "ceiling = 3\n\"a\\u001b[2Jb\" = 1", 1);
    fs::write(&file, changed).expect("written");
    let run = world.run(&["pack", "check", "mine"]).expect(1);
    assert!(
        run.out.contains("scenarios/note-cannot-send.toml:16:1:"),
        "{}",
        run.out
    );
    assert_inert(&run.out);
    let run = world
        .run(&["--json", "pack", "check", "mine"])
        .expect(1)
        .json();
    assert_eq!(run["problems"][0]["line"], 16);
    let run = world
        .run(&["harness", "run", "--pack", "nowhere"])
        .expect(3);
    assert!(run.err.contains("no pack"), "{}", run.err);
}
