//! `unsafe` stands in one file: the steps between fork and exec. No attribute lets it into another, and no manifest.

use std::fs;
use std::path::{Path, PathBuf};

/// The one file (docs/decisions/0022-unsafe-between-fork-and-exec.md).
const ALLOWED: &str = "crates/lodestar-kernel/src/contain/enter.rs";

/// The one manifest that does not take the workspace's lints, and denies where they forbid.
const DENIES: &str = "crates/lodestar-kernel/Cargo.toml";

fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}

/// Files of the tree with this ending, without what is built; relative to the workspace.
fn files(ending: &str) -> Vec<(String, String)> {
    fn collect(folder: &Path, ending: &str, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_own = !name.starts_with('.') && name != "target" && name != "node_modules";
            if path.is_dir() && is_own {
                collect(&path, ending, into);
            } else if name.ends_with(ending) {
                into.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&workspace(), ending, &mut found);
    let named = found.into_iter().map(|path| {
        let text = fs::read_to_string(&path).expect("the file can be read");
        let name = path.strip_prefix(workspace()).expect("below the workspace");
        (name.to_string_lossy().into_owned(), text)
    });
    named.collect()
}

/// Code of a file, without comments and blanks.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next());
    let code: String = lines.map(Option::unwrap_or_default).collect();
    code.split_whitespace().collect()
}

/// Whether code lets `unsafe` in: by an attribute of its own, also among others and under a condition.
fn lets_in(code: &str) -> bool {
    let mut rest = code;
    while let Some(at) = rest.find("unsafe_code") {
        let before = &rest[..at];
        let opened = before.rfind("allow(").max(before.rfind("expect("));
        let ended = before.rfind(']');
        if opened.is_some_and(|opened| ended.is_none_or(|ended| ended < opened)) {
            return true;
        }
        rest = &rest[at + "unsafe_code".len()..];
    }
    false
}

#[test]
fn unsafe_code_is_allowed_in_the_one_file_between_fork_and_exec() {
    let own = Path::new(file!()).file_name().unwrap_or_default();
    let files = files(".rs");
    assert!(files.len() > 500, "the tree was looked through");
    let allowed: Vec<&str> = files
        .iter()
        .filter(|(name, _)| Path::new(name).file_name() != Some(own))
        .filter(|(_, text)| lets_in(&code(text)))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(allowed, [ALLOWED]);
}

#[test]
fn every_manifest_takes_the_lints_that_forbid_it_but_one_that_denies_it() {
    let root = fs::read_to_string(workspace().join("Cargo.toml")).expect("the manifest is there");
    assert!(root.contains("unsafe_code = \"forbid\""));
    for (name, text) in files("Cargo.toml") {
        if name == "Cargo.toml" || !text.contains("[package]") {
            continue;
        }
        let takes = code(&text).contains("[lints]workspace=true");
        let denies = name == DENIES && text.contains("unsafe_code = \"deny\"");
        assert!(takes || denies, "{name}");
    }
}

#[test]
fn an_attribute_is_seen_in_every_way_to_write_it() {
    for (text, found) in [
        ("#![allow(unsafe_code)]", true),
        ("#[allow(dead_code,\n  unsafe_code)]", true),
        ("#[cfg_attr(unix, allow( unsafe_code ))]", true),
        ("#[expect(unsafe_code, reason = \"x\")]", true),
        ("// allow(unsafe_code)", false),
        ("#![forbid(unsafe_code)]", false),
        ("#[allow(dead_code)] #![deny(unsafe_code)]", false),
    ] {
        assert_eq!(lets_in(&code(text)), found, "{text}");
    }
}
