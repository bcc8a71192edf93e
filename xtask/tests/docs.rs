//! The documentation does what it says: every command in it runs, and every link leads somewhere.
//!
//! A command is a line that starts with `$ ` in a block marked `console`. The commands of one page
//! are typed one after another into one shell that starts in the clone, as a reader would, with the
//! binary on the path and nothing else prepared. A command that is to fail says so:
//! `$ lodestar … # exits 1`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lodestar_core::key::PublicKey;
use lodestar_core::note::NoteKey;
use lodestar_log::LogRoot;
use lodestar_replay::derive;

/// The commands of the README that are for the shell of a clone; the test suite itself is one of
/// them, and the other only builds before it runs the demonstration that is run here.
const FOR_THE_CLONE: [&str; 2] = ["cargo run --release -- demo", "cargo xtask test"];

fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}

/// The pages at the top and below `docs/`, by path.
fn pages() -> Vec<PathBuf> {
    fn collect(folder: &Path, below: bool, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() && below {
                collect(&path, below, into);
            } else if path.extension().is_some_and(|e| e == "md") {
                into.push(path);
            }
        }
    }
    let mut pages = Vec::new();
    collect(&workspace(), false, &mut pages);
    collect(&workspace().join("docs"), true, &mut pages);
    pages.sort();
    pages
}

#[derive(Debug)]
struct Shown {
    line: usize,
    text: String,
    exit: i32,
}

/// The commands of a page, in order.
fn commands(page: &str) -> Vec<Shown> {
    let mut in_console = false;
    let mut shown = Vec::new();
    for (at, line) in page.lines().enumerate() {
        match line.trim().strip_prefix("```") {
            Some(language) => in_console = !in_console && language == "console",
            None if !in_console => {}
            None => {
                let Some(command) = line.trim().strip_prefix("$ ") else {
                    continue;
                };
                let (text, exit) = match command.rsplit_once("# exits ") {
                    Some((text, exit)) => (text.trim(), exit.parse().expect("an exit code")),
                    None => (command, 0),
                };
                shown.push(Shown {
                    line: at + 1,
                    text: text.to_owned(),
                    exit,
                });
            }
        }
    }
    shown
}

/// The binary that `cargo xtask test` built, or one that is built now.
fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("LODESTAR_BIN") {
        return path.into();
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "lodestar-cli"])
        .current_dir(workspace())
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the binary builds");
    let own = std::env::current_exe().expect("a test has a path");
    // …/debug/deps/docs-1234 → …/debug/lodestar
    let folder = own.ancestors().nth(2).expect("a test lies in deps/");
    folder.join(format!("lodestar{}", std::env::consts::EXE_SUFFIX))
}

fn python_is_there() -> bool {
    let version = Command::new("python3").arg("--version").output();
    let there = version.is_ok_and(|output| output.status.success());
    assert!(
        there || std::env::var_os("LODESTAR_REQUIRE_ALL").is_none(),
        "python3 is missing, and nothing may be skipped"
    );
    there
}

/// Stands in front of every exit code the shell reports.
const MARK: &str = "\u{1}exit ";

fn run_page(page: &Path, commands: &[Shown], lodestar: &Path) -> Vec<String> {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let mut path = lodestar
        .parent()
        .expect("the binary has a folder")
        .as_os_str()
        .to_owned();
    if let Some(others) = std::env::var_os("PATH") {
        path.push(":");
        path.push(others);
    }
    let python = python_is_there();
    let runnable: Vec<&Shown> = commands
        .iter()
        .filter(|command| python || !command.text.starts_with("python3 "))
        .collect();
    let mut script = "exec 2>&1\n".to_owned();
    for command in &runnable {
        script += &format!("{}\nprintf '{MARK}%s\\n' $?\n", command.text);
    }
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(workspace())
        .env("PATH", &path)
        .env("HOME", scratch.path())
        .env("TMPDIR", scratch.path())
        .env_remove("LODESTAR_CONFIG_DIR")
        .env_remove("XDG_CONFIG_HOME")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut rest = text.as_str();
    let mut wrong = Vec::new();
    for Shown { line, text, exit } in runnable {
        let (said, after) = rest.split_once(MARK).unwrap_or((rest, "none\n"));
        let (code, after) = after.split_once('\n').unwrap_or((after, ""));
        rest = after;
        if code != exit.to_string() {
            wrong.push(format!(
                "{}:{line}: `{text}` was to exit with {exit}, not {code}:\n{said}",
                page.display(),
            ));
        }
    }
    wrong.extend(differing(page, scratch.path()));
    wrong
}

/// Where the demonstration puts what it has tampered with.
const TAMPERED: &str = "one-bit-flipped";

/// The sessions that a page left behind and that do not follow from their logs.
fn differing(page: &Path, scratch: &Path) -> Vec<String> {
    let operators = operators_below(scratch);
    let mut wrong = Vec::new();
    for dir in sessions_below(scratch) {
        if dir.iter().any(|name| name == TAMPERED) {
            continue;
        }
        // <root>/<project>/<session>
        let name = |path: Option<&Path>| path?.file_name()?.to_str().map(str::to_owned);
        let names = (name(Some(&dir)), name(dir.parent()));
        let (Some(session), Some(project)) = names else {
            continue;
        };
        let (Ok(session), Ok(project)) = (session.parse(), project.parse()) else {
            continue;
        };
        let root = dir.ancestors().nth(2).expect("a session lies in a log");
        let log = LogRoot::at(root).project(&project);
        let said = match derive(&log, &session, &operators, None) {
            Ok(replay) if replay.agrees() => continue,
            Ok(replay) => format!("{:?}", replay.differences),
            Err(problem) => problem.to_string(),
        };
        wrong.push(format!("{}: {}: {said}", page.display(), dir.display()));
    }
    wrong
}

/// The people whose orders count, in any installation below a folder.
fn operators_below(folder: &Path) -> Vec<PublicKey> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() && !path.is_symlink() {
            found.extend(operators_below(&path));
        } else if path.parent().is_some_and(|dir| dir.ends_with("operators")) {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let key: Option<NoteKey> = text.trim().parse().ok();
            found.extend(key.map(|key| *key.public_key()));
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

/// Every folder of a session below a folder.
fn sessions_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.join("events.ndjson").is_file() {
            found.push(path);
        } else if path.is_dir() && !path.is_symlink() {
            found.extend(sessions_below(&path));
        }
    }
    found
}

#[test]
fn every_command_in_the_documentation_runs() {
    let lodestar = binary();
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let mut shown = commands(&fs::read_to_string(&page).unwrap());
        shown.retain(|command| !FOR_THE_CLONE.contains(&command.text.as_str()));
        count += shown.len();
        if !shown.is_empty() {
            wrong.extend(run_page(&page, &shown, &lodestar));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 20, "only {count} commands were found");
}

#[test]
fn the_readme_asks_for_two_commands_of_cargo_and_no_page_for_more() {
    let mut found = Vec::new();
    for page in pages() {
        let shown = commands(&fs::read_to_string(&page).unwrap());
        let cargo = shown.into_iter().filter(|c| c.text.contains("cargo"));
        found.extend(cargo.map(|command| (page.clone(), command.text)));
    }
    let readme = workspace().join("README.md");
    assert_eq!(
        found,
        FOR_THE_CLONE.map(|text| (readme.clone(), text.to_owned()))
    );
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let mut dead = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        // What stands in backticks is no link, whatever it looks like.
        let outside = text.lines().flat_map(|line| line.split('`').step_by(2));
        for after in outside.flat_map(|part| part.split("](").skip(1)) {
            let target = after.split(')').next().unwrap_or_default();
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !file.is_empty() && !page.with_file_name(file).exists() {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// Every source file of the crates: its path and its text.
fn sources() -> Vec<(PathBuf, String)> {
    fn collect(folder: &Path, into: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).expect("a source is text");
                into.push((path, text));
            }
        }
    }
    let mut sources = Vec::new();
    collect(&workspace().join("crates"), &mut sources);
    sources
}

#[test]
fn every_test_that_the_threat_model_names_is_there() {
    let page = fs::read_to_string(workspace().join("docs/threat-model.md")).unwrap();
    let sources = sources();
    let mut count = 0;
    for named in page.split('`').skip(1).step_by(2) {
        let Some((file, test)) = named.split_once(".rs::") else {
            continue;
        };
        let file = format!("{}.rs", file.trim_start_matches("…/"));
        let is_there = sources
            .iter()
            .any(|(path, text)| path.ends_with(&file) && text.contains(&format!("fn {test}(")));
        assert!(is_there, "there is no test `{named}`");
        count += 1;
    }
    assert!(count >= 20, "only {count} tests were named");
}

#[test]
fn every_probe_in_the_threat_model_stands_beside_its_class() {
    let read = |page: &str| fs::read_to_string(workspace().join("docs").join(page)).unwrap();
    let (model, probes) = (read("threat-model.md"), read("reference/probes.md"));
    let mut count = 0;
    for row in model.lines().filter(|line| line.starts_with("| ASI")) {
        let class = &row[2..7];
        let cells: Vec<&str> = row.split(" | ").collect();
        for named in cells[2].split('`').skip(1).step_by(2) {
            let listed = probes
                .lines()
                .any(|line| line.contains(&format!("`{named}`")) && line.contains(class));
            assert!(listed, "`{named}` is not of {class}");
            count += 1;
        }
    }
    assert!(count >= 25, "only {count} probes were named");
}

#[test]
fn commands_are_found_where_they_are_marked() {
    let page = "```console\n$ one\noutput\n$ two --x # exits 1\n```\n```sh\n$ three\n```\n$ four\n";
    let shown = commands(page);
    assert_eq!(shown.len(), 2);
    assert_eq!((shown[0].text.as_str(), shown[0].exit), ("one", 0));
    assert_eq!((shown[1].text.as_str(), shown[1].exit), ("two --x", 1));
    assert_eq!(shown[1].line, 4);
}
