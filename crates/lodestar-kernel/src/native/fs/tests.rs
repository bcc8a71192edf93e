use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lodestar_core::chain::ContentBlock;
use lodestar_core::scope::Scope;
use rustix::fs::{FileType, Mode};
use serde_json::{Map, Value, json};

use super::*;
use crate::stop::Stop;
use crate::tool::{Call, Output, Tool, ToolError, ToolErrorKind};

/// A directory with a root in it, and something beside the root that must not be reached.
struct World {
    _whole: tempfile::TempDir,
    root: PathBuf,
    beside: PathBuf,
}

impl World {
    fn new() -> Self {
        let whole = tempfile::tempdir().unwrap();
        let (root, beside) = (whole.path().join("root"), whole.path().join("beside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("file"), "outside").unwrap();
        Self {
            _whole: whole,
            root,
            beside,
        }
    }

    fn config(&self) -> FsConfig {
        FsConfig::new(&self.root)
    }

    fn read(&self, path: &str) -> Result<Output, ToolError> {
        let tool = FsRead::new(self.config(), Scope::default()).unwrap();
        run(&tool, json!({ "path": path }))
    }

    fn write(&self, arguments: Value) -> Result<Output, ToolError> {
        let tool = FsWrite::new(self.config(), Scope::default()).unwrap();
        run(&tool, arguments)
    }

    fn names(&self) -> Vec<String> {
        names(&self.root)
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub(crate) fn run(tool: &dyn Tool, arguments: Value) -> Result<Output, ToolError> {
    run_with(tool, arguments, &Stop::new(), Duration::from_secs(20))
}

pub(crate) fn run_with(
    tool: &dyn Tool,
    arguments: Value,
    stop: &Stop,
    time: Duration,
) -> Result<Output, ToolError> {
    let arguments: Map<String, Value> = members(arguments);
    let call = Call::new(&arguments, stop, Instant::now() + time);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(tool.call(call))
}

pub(crate) fn text(output: &Output) -> &str {
    match output.content.as_slice() {
        [ContentBlock::Text { text, .. }] => text,
        other => panic!("not one text: {other:?}"),
    }
}

#[test]
fn a_file_below_the_root_is_read_by_any_spelling_of_its_path() {
    let world = World::new();
    fs::create_dir_all(world.root.join("a/b")).unwrap();
    fs::write(world.root.join("a/b/c"), "hello").unwrap();
    let absolute = world.root.join("a/b/c");
    for path in [
        "a/b/c",
        "./a//b/./c",
        "a/x/../b/c",
        absolute.to_str().unwrap(),
    ] {
        assert_eq!(text(&world.read(path).unwrap()), "hello", "{path}");
    }
}

#[test]
fn a_path_that_is_not_below_the_root_is_refused_before_anything_is_opened() {
    let world = World::new();
    let sibling = format!("{}x/file", world.root.display());
    let climbing = format!("{}/../beside/file", world.root.display());
    let paths = [
        "",
        "..",
        "../beside/file",
        "a/../../beside/file",
        "/etc/passwd",
        "/proc/self/environ",
        ".",
        "a\0b",
        &sibling,
        &climbing,
        "/../../etc/passwd",
    ];
    for path in paths {
        let error = world.read(path).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{path:?}: {error}");
        let error = world
            .write(json!({ "path": path, "content": "x", "create_dirs": true }))
            .unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{path:?}: {error}");
    }
    assert!(world.names().is_empty());
}

#[test]
fn arguments_of_another_type_or_name_are_invalid() {
    let world = World::new();
    for arguments in [
        json!({}),
        json!({ "path": 1 }),
        json!({ "path": ["a"] }),
        json!({ "path": "a", "content": 1 }),
        json!({ "path": "a" }),
        json!({ "path": "a", "content": "x", "create_dirs": "yes" }),
        json!({ "path": "a", "content": "x", "mode": "4755" }),
    ] {
        let error = world.write(arguments.clone()).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments, "{arguments}");
    }
    let tool = FsRead::new(world.config(), Scope::default()).unwrap();
    let error = run(&tool, json!({ "path": "a", "offset": 3 })).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no argument `offset`; remove it"
    );
    assert!(world.names().is_empty());
}

#[test]
fn links_are_refused_at_the_end_and_on_the_way() {
    let world = World::new();
    fs::write(world.root.join("inside"), "inside").unwrap();
    symlink(world.beside.join("file"), world.root.join("out")).unwrap();
    symlink(&world.beside, world.root.join("outdir")).unwrap();
    symlink("inside", world.root.join("in")).unwrap();
    symlink("nowhere", world.root.join("dangling")).unwrap();
    for path in ["out", "outdir/file", "in", "dangling"] {
        let error = world.read(path).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{path}: {error}");
        let error = world.write(json!({ "path": path, "content": "x", "create_dirs": true }));
        assert_eq!(error.unwrap_err().kind, ToolErrorKind::Refused, "{path}");
    }
    assert_eq!(fs::read(world.beside.join("file")).unwrap(), b"outside");
    assert_eq!(names(&world.beside), ["file"]);
    assert!(!world.root.join("nowhere").exists());
}

#[test]
fn links_that_stay_below_are_followed_where_the_operator_says_so() {
    let world = World::new();
    fs::create_dir(world.root.join("dir")).unwrap();
    fs::write(world.root.join("dir/file"), "inside").unwrap();
    symlink("dir", world.root.join("alias")).unwrap();
    symlink("../beside", world.root.join("outdir")).unwrap();
    symlink("/proc/self/root", world.root.join("magic")).unwrap();
    let config = FsConfig {
        links: Links::FollowBelow,
        ..world.config()
    };
    let tool = FsRead::new(config.clone(), Scope::default()).unwrap();
    let output = run(&tool, json!({ "path": "alias/file" })).unwrap();
    assert_eq!(text(&output), "inside");
    for path in ["outdir/file", "magic/etc/passwd"] {
        let error = run(&tool, json!({ "path": path })).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{path}: {error}");
    }
    let tool = FsWrite::new(config, Scope::default()).unwrap();
    let arguments = json!({ "path": "outdir/new", "content": "x", "create_dirs": true });
    run(&tool, arguments).unwrap_err();
    assert_eq!(names(&world.beside), ["file"]);
}

#[test]
fn what_is_not_a_regular_file_is_refused_and_nothing_hangs() {
    let world = World::new();
    let directory = fs::File::open(&world.root).unwrap();
    rustix::fs::mkfifoat(&directory, "fifo", Mode::from_raw_mode(0o600)).unwrap();
    let mut refused = vec!["fifo", "dir", "socket"];
    fs::create_dir(world.root.join("dir")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.root.join("socket")).unwrap();
    let zero = rustix::fs::makedev(1, 5);
    // Making devices takes rights that a test run may lack.
    let device = rustix::fs::mknodat(
        &directory,
        "zero",
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o600),
        zero,
    );
    if device.is_ok() {
        refused.push("zero");
    }
    let start = Instant::now();
    for path in refused {
        let error = world.read(path).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{path}: {error}");
        let error = world.write(json!({ "path": path, "content": "x" }));
        assert_eq!(error.unwrap_err().kind, ToolErrorKind::Refused, "{path}");
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    let kind = |name: &str| {
        fs::symlink_metadata(world.root.join(name))
            .unwrap()
            .file_type()
    };
    assert!(kind("dir").is_dir() && !kind("fifo").is_file() && !kind("socket").is_file());
}

#[test]
fn a_file_at_the_limit_is_read_whole_and_one_byte_more_is_refused() {
    let world = World::new();
    let config = FsConfig {
        max_bytes: 1000,
        ..world.config()
    };
    let tool = FsRead::new(config.clone(), Scope::default()).unwrap();
    fs::write(world.root.join("file"), "x".repeat(1000)).unwrap();
    let output = run(&tool, json!({ "path": "file" })).unwrap();
    assert_eq!(text(&output).len(), 1000);
    fs::write(world.root.join("file"), "x".repeat(1001)).unwrap();
    let error = run(&tool, json!({ "path": "file" })).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`file` is larger than 1000 bytes; raise `max_bytes`, or read a smaller file"
    );
    let tool = FsWrite::new(config, Scope::default()).unwrap();
    let write = |bytes| {
        run(
            &tool,
            json!({ "path": "new", "content": "x".repeat(bytes) }),
        )
    };
    assert_eq!(write(1001).unwrap_err().kind, ToolErrorKind::Refused);
    assert!(!world.root.join("new").exists());
    write(1000).unwrap();
}

#[test]
fn a_huge_sparse_file_costs_nothing_to_refuse() {
    let world = World::new();
    let file = fs::File::create(world.root.join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    let start = Instant::now();
    let error = world.read("huge").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Refused);
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// A reader that has more than its file said.
struct Growing(usize);

impl std::io::Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0 += buffer.len();
        assert!(self.0 < 10_000_000, "read on and on");
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

#[test]
fn a_file_that_grows_while_it_is_read_is_refused_once_it_is_too_large() {
    let world = World::new();
    let error = read::tests_read_all(&world.config(), &mut Growing(0)).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Refused);

    // And with a real one, which a thread keeps appending to.
    let path = world.root.join("log");
    fs::write(&path, "x").unwrap();
    let config = FsConfig {
        max_bytes: 2_000_000,
        ..world.config()
    };
    let tool = FsRead::new(config, Scope::default()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            use std::io::Write as _;
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            for _ in 0..100 {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                file.write_all(&[b'y'; 64 * 1024]).unwrap();
            }
        });
        for _ in 0..20 {
            match run(&tool, json!({ "path": "log" })) {
                Ok(output) => assert!(text(&output).len() <= 2_000_000),
                Err(error) => assert_eq!(error.kind, ToolErrorKind::Refused, "{error}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn bytes_that_are_not_utf_8_come_as_base64_and_unchanged() {
    let world = World::new();
    let bytes = [0xff, 0xfe, 0, b'a', 0x80];
    fs::write(world.root.join("b in"), bytes).unwrap();
    let output = world.read("b in").unwrap();
    let [ContentBlock::Resource { resource, .. }] = output.content.as_slice() else {
        panic!("{output:?}");
    };
    let blob = resource["blob"].as_str().unwrap();
    assert_eq!(STANDARD.decode(blob).unwrap(), bytes);
    assert!(resource["uri"].as_str().unwrap().ends_with("/root/b%20in"));
}

#[test]
fn writing_replaces_a_file_and_keeps_its_mode_but_never_setuid() {
    let world = World::new();
    let path = world.root.join("tool");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6750)).unwrap();
    let linked = world.root.join("linked");
    fs::hard_link(&path, &linked).unwrap();
    world
        .write(json!({ "path": "tool", "content": "new" }))
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(
        fs::read(&linked).unwrap(),
        b"old",
        "written through a hard link"
    );
    assert_eq!(world.names(), ["linked", "tool"]);
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let world = World::new();
    let path = world.root.join("file");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let error = world
        .write(json!({ "path": "file", "content": "new" }))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`file` is read-only; make it writable first"
    );
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn directories_are_made_when_asked_and_taken_back_when_the_write_fails() {
    let world = World::new();
    let error = world
        .write(json!({ "path": "a/b/c", "content": "x" }))
        .unwrap_err();
    assert_eq!(error.to_string(), "`a/b/c` does not exist");
    assert!(world.names().is_empty());

    let too_long = format!("a/b/{}", "n".repeat(300));
    world
        .write(json!({ "path": too_long, "content": "x", "create_dirs": true }))
        .unwrap_err();
    assert!(world.names().is_empty());

    world
        .write(json!({ "path": "a/b/c", "content": "x", "create_dirs": true }))
        .unwrap();
    assert_eq!(fs::read(world.root.join("a/b/c")).unwrap(), b"x");
    assert_eq!(names(&world.root.join("a/b")), ["c"]);
}

#[test]
fn a_call_that_is_over_writes_nothing() {
    let world = World::new();
    let tool = FsWrite::new(world.config(), Scope::default()).unwrap();
    let arguments = json!({ "path": "file", "content": "x" });
    let stopped = Stop::new();
    stopped.stop();
    // The switch is seen by the call's own task, which races with the thread: only what is
    // reported as stopped must have had no effect.
    match run_with(&tool, arguments.clone(), &stopped, Duration::from_secs(5)) {
        Ok(_) => fs::remove_file(world.root.join("file")).unwrap(),
        Err(error) => assert_eq!(error.kind, ToolErrorKind::Stopped),
    }
    assert!(world.names().is_empty());
    let error = run_with(&tool, arguments, &Stop::new(), Duration::ZERO).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::DeadlinePassed);
    assert!(world.names().is_empty());
}

#[test]
fn a_root_must_be_an_absolute_directory() {
    let world = World::new();
    for (root, message) in [
        (PathBuf::from("."), "relative"),
        (world.root.join("missing"), "cannot be opened"),
        (world.beside.join("file"), "cannot be opened"),
    ] {
        let error = FsRead::new(FsConfig::new(&root), Scope::default()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn a_configuration_with_a_misspelt_key_is_refused() {
    let config: Result<FsConfig, _> =
        serde_json::from_value(json!({ "root": "/srv", "max_byte": 3 }));
    assert!(config.unwrap_err().to_string().contains("max_byte"));
}

#[test]
fn every_argument_has_a_role_and_the_schema_takes_no_other() {
    let world = World::new();
    let read = FsRead::new(world.config(), Scope::default()).unwrap();
    let write = FsWrite::new(world.config(), Scope::default()).unwrap();
    for tool in [&read as &dyn Tool, &write] {
        let definition = tool.definition();
        let properties = definition.input_schema["properties"].as_object().unwrap();
        let named: BTreeSet<_> = properties.keys().collect();
        assert_eq!(named, definition.roles.keys().collect());
        assert_eq!(definition.input_schema["additionalProperties"], false);
        definition.digest().unwrap();
    }
}

/// Swaps names below the root as fast as it can until told to stop; returns how often.
fn swap(world: &World, done: &AtomicBool) -> u64 {
    let at = |name: &str| world.root.join(name);
    let mut rounds = 0;
    while !done.load(Ordering::Relaxed) {
        // Each may meet what a write just put there; all that counts is that names move.
        let _ = fs::rename(at("dir"), at("aside"));
        let _ = symlink(&world.beside, at("dir"));
        let _ = fs::remove_file(at("dir"));
        let _ = fs::rename(at("aside"), at("dir"));
        let _ = fs::rename(at("dir/file"), at("dir/kept"));
        let _ = symlink(world.beside.join("file"), at("dir/file"));
        let _ = fs::remove_file(at("dir/file"));
        let _ = fs::rename(at("dir/kept"), at("dir/file"));
        rounds += 1;
        // As it should be for a moment, so that checks succeed whose results are then outdated.
        std::thread::sleep(Duration::from_micros(20));
    }
    rounds
}

/// Reads and writes while names are swapped; the file beside the root is never read or changed.
fn race(root: impl Fn(&World) -> Root, tries: usize) {
    let world = World::new();
    fs::create_dir(world.root.join("dir")).unwrap();
    fs::write(world.root.join("dir/file"), "inside").unwrap();
    let reader = FsRead::on(root(&world), 1000, Scope::default());
    let writer = FsWrite::on(root(&world), 1000, Scope::default());
    let done = AtomicBool::new(false);
    let (mut reads, mut writes, mut links) = (0, 0, 0);
    let rounds = std::thread::scope(|threads| {
        let swapper = threads.spawn(|| swap(&world, &done));
        for _ in 0..tries {
            match run(&reader, json!({ "path": "dir/file" })) {
                Ok(output) => {
                    assert_eq!(text(&output), "inside");
                    reads += 1;
                }
                Err(error) => links += usize::from(error.kind == ToolErrorKind::Refused),
            }
            let arguments = json!({ "path": "dir/file", "content": "inside" });
            if run(&writer, arguments).is_ok() {
                writes += 1;
            }
        }
        done.store(true, Ordering::Relaxed);
        swapper.join().unwrap()
    });
    assert_eq!(fs::read(world.beside.join("file")).unwrap(), b"outside");
    assert_eq!(names(&world.beside), ["file"]);
    for directory in ["", "dir", "aside"] {
        let Ok(entries) = fs::read_dir(world.root.join(directory)) else {
            continue;
        };
        for entry in entries {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.ends_with(".tmp"), "left behind: {name}");
        }
    }
    println!(
        "{tries} tries in {rounds} swaps: {reads} reads and {writes} writes of the file inside, {links} reads met a link; none left the root"
    );
    assert!(links > 0 && reads > 0 && writes > 0);
}

fn tries() -> usize {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    if full { 10_000 } else { 1_000 }
}

#[test]
fn matrix_swapped_names_never_lead_out_of_the_root() {
    race(
        |world| Root::open(&world.root, Links::Refuse).unwrap(),
        tries(),
    );
}

#[test]
fn matrix_swapped_names_never_lead_out_where_links_are_followed() {
    race(
        |world| Root::open(&world.root, Links::FollowBelow).unwrap(),
        tries(),
    );
}

#[test]
fn matrix_swapped_names_never_lead_out_where_the_path_is_walked() {
    race(
        |world| Root::open(&world.root, Links::Refuse).unwrap().walking(),
        tries(),
    );
}
