//! Completions and man pages.

use std::fs;

use crate::world::World;

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    let world = World::bare();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = world.run(&["completions", shell]).expect(0);
        for word in [
            "check-proof",
            "keygen",
            "--head-only",
            "explain",
            "grade",
            "--auto-approve-up-to",
        ] {
            let bare = word.trim_start_matches('-');
            assert!(run.out.contains(bare), "{shell} does not know {word}");
        }
    }
    let report = world
        .run(&["completions", "bash", "--json"])
        .expect(0)
        .json();
    assert_eq!(report["shell"], "bash");
}

#[test]
fn there_is_a_man_page_per_command_with_its_examples() {
    let world = World::bare();
    let dir = world.path("man/man1");
    let run = world
        .run(&["man", dir.to_str().expect("UTF-8"), "--json"])
        .expect(0)
        .json();
    let mut pages: Vec<String> = fs::read_dir(&dir)
        .expect("made")
        .map(|e| {
            e.expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    pages.sort();
    assert_eq!(run["written"].as_array().map(Vec::len), Some(pages.len()));
    insta::assert_snapshot!(pages.join("\n"));
    let page = fs::read_to_string(dir.join("lodestar.1")).expect("readable");
    for variable in [
        "LODESTAR_CONFIG_DIR",
        "LODESTAR_PASSPHRASE_FILE",
        "LODESTAR_STORE_FILE",
        "NO_COLOR",
    ] {
        assert!(page.contains(variable), "{variable}");
    }
    for page in &pages {
        let text = fs::read_to_string(dir.join(page)).expect("readable");
        assert!(text.contains("Examples"), "{page}");
        assert!(text.contains(".TH"), "{page}");
    }
}
