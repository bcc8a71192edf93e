use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lodestar_core::chain::ContentBlock;
use serde_json::{Value, json};

use super::*;
use crate::native::fs::tests::{names, run, run_with};
use crate::stop::Stop;
use crate::tool::ToolErrorKind;

struct World {
    whole: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    fn new() -> Self {
        let whole = tempfile::tempdir().unwrap();
        let root = whole.path().join("root");
        fs::create_dir(&root).unwrap();
        Self { whole, root }
    }

    fn config(&self) -> ShellConfig {
        let programs = ["sh", "env", "cat", "printf", "ls", "pwd"];
        let programs = programs
            .iter()
            .map(|name| (String::from(*name), ProgramConfig::new(find(name))))
            .collect();
        ShellConfig {
            timeout_ms: 10_000,
            ..ShellConfig::new(&self.root, programs)
        }
    }

    fn tool(&self) -> ShellRun {
        ShellRun::new(self.config(), Scope::default()).unwrap()
    }

    /// Runs a script. The tests give themselves a shell; an operator should not.
    fn script(&self, script: &str) -> Result<Output, ToolError> {
        run(&self.tool(), sh(script))
    }

    /// The number that a script wrote into a file.
    fn pid(&self, file: &str) -> i32 {
        let text = fs::read_to_string(self.root.join(file)).unwrap();
        text.trim().parse().unwrap()
    }
}

fn sh(script: &str) -> Value {
    json!({ "program": "sh", "args": ["-c", script] })
}

fn find(name: &str) -> PathBuf {
    ["/usr/bin", "/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.exists())
        .unwrap()
}

fn stdout(output: &Output) -> String {
    stream(output, "stdout")
}

fn stream(output: &Output, name: &str) -> String {
    output
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text, rest } if rest["_meta"]["stream"] == name => {
                Some(text.as_str())
            }
            _ => None,
        })
        .collect()
}

fn summary(output: &Output) -> &Value {
    match &output.content[0] {
        ContentBlock::Structured { value } => value,
        other => panic!("{other:?}"),
    }
}

fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit(')').next().unwrap().trim_start();
    !state.starts_with(['Z', 'X'])
}

fn assert_dies(pid: i32) {
    let end = Instant::now() + Duration::from_secs(3);
    while is_alive(pid) {
        assert!(Instant::now() < end, "process {pid} lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn words_reach_the_program_as_they_are() {
    let world = World::new();
    let words = [
        "; touch a",
        "$(touch b)",
        "`touch c`",
        "*",
        "a b",
        "-n",
        "--",
        "&& touch d",
        "| sh",
        "> e",
        "$HOME",
        "\n",
        "\\",
        "'\"",
        "🦀",
    ];
    let mut args = vec!["%s|"];
    args.extend(words);
    let output = run(&world.tool(), json!({ "program": "printf", "args": args })).unwrap();
    assert_eq!(
        stdout(&output),
        words.map(|word| format!("{word}|")).concat()
    );
    assert!(names(&world.root).is_empty());
}

#[test]
fn only_programs_of_the_list_run_and_only_by_their_name_there() {
    let world = World::new();
    for program in [
        "", "bash", "/bin/sh", "../sh", "sh -c", "SH", "sh\0", "./sh", "sh ",
    ] {
        let error = run(&world.tool(), json!({ "program": program })).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{program:?}");
        assert!(error.to_string().contains("not on the list"), "{error}");
    }
}

#[test]
fn words_that_no_program_can_be_given_are_invalid() {
    let world = World::new();
    let long = "x".repeat(200_000);
    let half = "x".repeat(100_000);
    for (args, message) in [
        (json!("ls"), "`args` must be a list of strings"),
        (json!([1]), "`args[0]` must be a string"),
        (json!(["a", ""]), "`args[1]` is empty; leave it out"),
        (
            json!(["a\0b"]),
            "`args[0]` has a NUL byte in it, which no program can be given",
        ),
        (
            json!([long]),
            "`args[0]` is longer than 131071 bytes, which no program can be given",
        ),
        (
            json!(vec![half; 11]),
            "`args` has 1100011 bytes in all; 1048576 are the most",
        ),
        (
            json!(vec!["x"; 5000]),
            "`args` has 5000 words; 4096 are the most",
        ),
    ] {
        let error = run(&world.tool(), json!({ "program": "printf", "args": args })).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
        assert_eq!(error.to_string(), message);
    }
    // The most that is let through is also taken by the system.
    let args = vec!["x".repeat(100_000); 10];
    let output = run(&world.tool(), json!({ "program": "printf", "args": args })).unwrap();
    assert!(!output.is_error);
}

#[test]
fn words_are_held_to_the_operators_lists() {
    let world = World::new();
    let mut config = world.config();
    let program = config.programs.get_mut("printf").unwrap();
    program.args_allow = Some(
        ["status", "--color=*"]
            .map(|p| WordPattern(p.into()))
            .into(),
    );
    config.programs.get_mut("ls").unwrap().args_deny =
        ["--ignore", "-R*"].map(|p| WordPattern(p.into())).into();
    let tool = ShellRun::new(config, Scope::default()).unwrap();
    let answer = |program: &str, word: &str| {
        run(&tool, json!({ "program": program, "args": [word] })).map_err(|error| error.kind)
    };
    for (program, word) in [("printf", "status"), ("printf", "--color=x"), ("ls", "-l")] {
        answer(program, word).unwrap();
    }
    for (program, word) in [
        ("printf", "statu"),
        ("printf", "status2"),
        ("printf", "--colour=x"),
        ("ls", "--ignore"),
        ("ls", "--ignore=x"),
        ("ls", "-Rl"),
    ] {
        assert_eq!(answer(program, word), Err(ToolErrorKind::Refused), "{word}");
    }
}

/// Set by the test below for the run of itself that it starts.
const INNER: &str = "LODESTAR_TEST_INNER_SECRET";

#[test]
fn nothing_of_the_proxys_environment_reaches_a_program() {
    if std::env::var_os(INNER).is_some() {
        let world = World::new();
        let config = ShellConfig {
            env: BTreeMap::from([("CI".to_owned(), "1".to_owned())]),
            pass_env: BTreeSet::from(["EDITOR".to_owned(), "UNSET_VARIABLE".to_owned()]),
            ..world.config()
        };
        let tool = ShellRun::new(config, Scope::default()).unwrap();
        let output = stdout(&run(&tool, json!({ "program": "env" })).unwrap());
        let variables: BTreeMap<&str, &str> = output
            .lines()
            .filter_map(|line| line.split_once('='))
            .collect();
        let names: Vec<&str> = variables.keys().copied().collect();
        assert_eq!(
            names,
            [
                "CI",
                "EDITOR",
                "HOME",
                "LANG",
                process::MARKER,
                "PATH",
                "TMPDIR"
            ]
        );
        assert_eq!(
            (variables["PATH"], variables["HOME"]),
            (DEFAULT_PATH, DEFAULT_HOME)
        );
        println!("looked");
        return;
    }
    let name = "native::shell::tests::nothing_of_the_proxys_environment_reaches_a_program";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .envs([
            (INNER, "secret"),
            ("LODESTAR_KEY", "secret"),
            ("LD_PRELOAD", "/nonexistent.so"),
            ("LD_LIBRARY_PATH", "/nonexistent"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("BASH_ENV", "/nonexistent"),
            ("ENV", "/nonexistent"),
            ("EDITOR", "ed"),
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("looked"), "{said}");
}

#[test]
fn variables_that_load_code_or_are_ours_cannot_be_configured() {
    let world = World::new();
    for name in [
        "LD_PRELOAD",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "LODESTAR_KEY",
        "",
        "A=B",
    ] {
        let mut config = world.config();
        config.env.insert(name.to_owned(), "x".to_owned());
        assert!(
            matches!(
                ShellRun::new(config, Scope::default()),
                Err(ShellError::Variable { .. })
            ),
            "{name}"
        );
        let mut config = world.config();
        config.pass_env.insert(name.to_owned());
        ShellRun::new(config, Scope::default()).unwrap_err();
    }
}

#[test]
fn a_program_has_no_input_and_no_descriptor_of_ours() {
    let world = World::new();
    let output = run(&world.tool(), json!({ "program": "cat" })).unwrap();
    assert_eq!((stdout(&output).as_str(), output.is_error), ("", false));
    let _open = fs::File::create(world.root.join("ours")).unwrap();
    let arguments = json!({ "program": "ls", "args": ["-l", "/proc/self/fd"] });
    let listed = stdout(&run(&world.tool(), arguments).unwrap());
    let root = world.root.to_str().unwrap();
    assert!(listed.contains("0 -> /dev/null"), "{listed}");
    assert!(!listed.contains(root), "{listed}");
}

#[test]
fn how_it_ended_is_said() {
    let world = World::new();
    let output = world.script("echo out; echo err >&2; exit 3").unwrap();
    assert!(output.is_error);
    assert_eq!(summary(&output)["exit_code"], 3);
    assert_eq!(
        (stdout(&output), stream(&output, "stderr")),
        ("out\n".into(), "err\n".into())
    );
    let output = world.script("kill -9 $$").unwrap();
    assert_eq!(
        (&summary(&output)["signal"], output.is_error),
        (&json!(9), true)
    );
    let output = world.script("printf '\\377\\376'").unwrap();
    assert!(matches!(
        &output.content[1],
        ContentBlock::Resource { resource, .. } if resource["blob"] == "//4="
    ));
}

#[test]
fn the_directory_is_below_the_root_and_never_behind_a_link() {
    let world = World::new();
    fs::create_dir(world.root.join("dir")).unwrap();
    symlink("/etc", world.root.join("etc")).unwrap();
    symlink("dir", world.root.join("alias")).unwrap();
    let pwd = |cwd: &str| {
        run(
            &world.tool(),
            json!({ "program": "pwd", "args": ["-P"], "cwd": cwd }),
        )
    };
    let at = world.root.canonicalize().unwrap();
    assert_eq!(
        stdout(&pwd("dir").unwrap()).trim(),
        at.join("dir").to_str().unwrap()
    );
    assert_eq!(stdout(&pwd(".").unwrap()).trim(), at.to_str().unwrap());
    for cwd in ["..", "etc", "alias", "dir/../..", "/etc", "etc/ssl", ""] {
        let error = pwd(cwd).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{cwd}: {error}");
    }
    pwd("missing").unwrap_err();
}

#[test]
fn a_directory_that_is_swapped_for_a_link_is_never_run_in() {
    let world = World::new();
    let (dir, aside) = (world.root.join("dir"), world.root.join("aside"));
    fs::create_dir(&dir).unwrap();
    fs::create_dir(world.whole.path().join("beside")).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let tries = if full { 2_000 } else { 60 };
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(&dir, &aside).unwrap();
                symlink(world.whole.path().join("beside"), &dir).unwrap();
                fs::remove_file(&dir).unwrap();
                fs::rename(&aside, &dir).unwrap();
            }
        });
        let tool = world.tool();
        for _ in 0..tries {
            let arguments = json!({ "program": "pwd", "args": ["-P"], "cwd": "dir" });
            if let Ok(output) = run(&tool, arguments) {
                assert!(!stdout(&output).contains("beside"), "{output:?}");
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn whatever_a_program_left_behind_is_killed() {
    let ways = [
        ("background", "sh -c 'echo $$ > pid; exec sleep 60' &"),
        (
            "nohup",
            "nohup sh -c 'echo $$ > pid; exec sleep 60' > /dev/null 2>&1 &",
        ),
        (
            "ignoring every signal that can be ignored",
            "sh -c 'trap \"\" TERM HUP INT QUIT; echo $$ > pid; sleep 60; sleep 60' &",
        ),
    ];
    for (way, script) in ways {
        let world = World::new();
        let script = format!("{script} while [ ! -s pid ]; do sleep 0.01; done; echo done");
        let script = script.replace("& while", "& \nwhile");
        let start = Instant::now();
        let output = world
            .script(&script)
            .unwrap_or_else(|e| panic!("{way}: {e}"));
        assert_eq!(stdout(&output), "done\n", "{way}: {output:?}");
        assert_dies(world.pid("pid"));
        assert_eq!(summary(&output)["output_held_open"], false, "{way}");
        assert!(start.elapsed() < Duration::from_secs(8), "{way}");
    }
}

#[test]
fn no_program_leaves_its_group_for_a_session_of_its_own() {
    let world = World::new();
    let output = world
        .script("setsid -f sh -c 'echo far > far'; setsid sh -c 'echo near > near'; sleep 0.2; ls");
    let output = output.unwrap();
    let shown = stdout(&output);
    assert!(
        !shown.contains("far") && !shown.contains("near"),
        "{output:?}"
    );
}

#[test]
fn a_flood_on_both_streams_is_cut_with_a_mark_and_does_not_hang() {
    let world = World::new();
    let config = ShellConfig {
        max_output_bytes: 100_000,
        ..world.config()
    };
    let tool = ShellRun::new(config, Scope::default()).unwrap();
    for script in ["yes & yes >&2; wait", "yes 1>&2", "(yes &) ; sleep 60"] {
        let start = Instant::now();
        let output = run(&tool, sh(script)).unwrap();
        assert!(output.is_error);
        assert!(start.elapsed() < Duration::from_secs(5), "{script}");
        let (out, err) = (stdout(&output), stream(&output, "stderr"));
        assert_eq!(out.len().max(err.len()), 100_000);
        assert!(stream(&output, "marker").contains("went past 100000 bytes"));
        assert_eq!(summary(&output)["ended"], "killed: too much output");
    }
    let output = run(&tool, sh("head -c 100000 /dev/zero")).unwrap();
    assert!(!output.is_error, "exactly the limit is not too much");
}

#[test]
fn a_program_that_takes_too_long_ends_with_all_it_started() {
    let world = World::new();
    for script in [
        "echo $$ > pid; sleep 60",
        "trap '' TERM; echo $$ > pid; sleep 60; sleep 60; sleep 60",
        "sh -c 'echo $$ > pid; sleep 60' & sleep 60",
        "echo $$ > pid; kill -STOP $$",
    ] {
        let mut arguments = sh(script);
        arguments["timeout_ms"] = json!(400);
        let start = Instant::now();
        let error = run(&world.tool(), arguments).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::DeadlinePassed, "{script}");
        assert_eq!(error.effect, Effect::Unknown);
        assert!(start.elapsed() < Duration::from_secs(6), "{script}");
        assert_dies(world.pid("pid"));
        fs::remove_file(world.root.join("pid")).unwrap();
    }
    for timeout in [json!(0), json!(-1), json!("1"), json!(1.5)] {
        let arguments = json!({ "program": "pwd", "timeout_ms": timeout });
        let error = run(&world.tool(), arguments).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    }
}

#[test]
fn a_call_that_is_stopped_ends_its_program() {
    let world = World::new();
    let stop = Stop::new();
    let switch = stop.clone();
    let pid = world.root.join("pid");
    let thread = std::thread::spawn(move || {
        while fs::read(&pid).is_ok_and(|text| text.is_empty()) || !pid.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        switch.stop();
    });
    let arguments = sh("echo $$ > pid; sleep 60");
    let error = run_with(&world.tool(), arguments, &stop, Duration::from_secs(20)).unwrap_err();
    thread.join().unwrap();
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Stopped, Effect::Unknown)
    );
    assert_dies(world.pid("pid"));
}

#[test]
fn a_call_that_is_dropped_kills_its_program_and_what_that_started() {
    let world = World::new();
    let tool = world.tool();
    let stop = Stop::new();
    let script = "sh -c 'echo $$ > far; sleep 60' & echo $$ > near; sleep 60";
    let arguments = sh(script);
    let arguments = arguments.as_object().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let there = |file: &str| fs::read(world.root.join(file)).is_ok_and(|text| !text.is_empty());
    runtime.block_on(async {
        let call = Call::new(arguments, &stop, Instant::now() + Duration::from_secs(60));
        let calling = tool.call(call);
        let both = async {
            while !(there("near") && there("far")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            answer = calling => panic!("ended by itself: {answer:?}"),
            () = both => {}
        }
    });
    assert_dies(world.pid("near"));
    assert_dies(world.pid("far"));
}

#[test]
fn a_program_must_be_a_file_that_nobody_else_can_change() {
    let world = World::new();
    let program = world.whole.path().join("program");
    let try_it = |path: &Path| {
        let programs = BTreeMap::from([("p".to_owned(), ProgramConfig::new(path))]);
        ShellRun::new(ShellConfig::new(&world.root, programs), Scope::default())
    };
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let message = |path: &Path| try_it(path).unwrap_err().to_string();
    assert!(message(Path::new("sh")).contains("not an absolute path"));
    assert!(message(&program).contains("cannot be opened"));
    fs::write(&program, "#!/bin/sh\necho one\n").unwrap();
    assert!(message(&program).contains("not an executable file"));
    assert!(message(&world.root).contains("not an executable file"));
    for open in [0o775, 0o757, 0o777] {
        mode(&program, open);
        assert!(message(&program).contains("can be changed by others"));
    }
    mode(&program, 0o755);
    mode(world.whole.path(), 0o777);
    assert!(message(&program).contains("can be changed by others"));
    mode(world.whole.path(), 0o700);

    let tool = try_it(&program).unwrap();
    let output = run(&tool, json!({ "program": "p" })).unwrap();
    assert_eq!(stdout(&output), "one\n");
    fs::write(&program, "#!/bin/sh\necho two\n").unwrap();
    let error = run(&tool, json!({ "program": "p" })).unwrap_err();
    assert!(error.to_string().contains("changed since"), "{error}");
    assert_eq!(
        (error.kind, error.effect),
        (ToolErrorKind::Refused, Effect::None)
    );
}

#[test]
fn a_configuration_that_could_run_nothing_is_refused() {
    let world = World::new();
    let empty = ShellConfig::new(&world.root, BTreeMap::new());
    assert!(matches!(
        ShellRun::new(empty, Scope::default()),
        Err(ShellError::NoPrograms)
    ));
    let zero = ShellConfig {
        timeout_ms: 0,
        ..world.config()
    };
    ShellRun::new(zero, Scope::default()).unwrap_err();
    let misspelt: Result<ShellConfig, _> = serde_json::from_value(json!({
        "root": "/srv",
        "programs": { "ls": { "path": "/bin/ls", "arg_deny": [] } },
    }));
    assert!(misspelt.unwrap_err().to_string().contains("arg_deny"));
}

#[test]
fn every_argument_has_a_role_and_the_schema_takes_no_other() {
    let world = World::new();
    let tool = world.tool();
    let definition = tool.definition();
    let properties = definition.input_schema["properties"].as_object().unwrap();
    let named: BTreeSet<_> = properties.keys().collect();
    assert_eq!(named, definition.roles.keys().collect());
    assert_eq!(definition.input_schema["additionalProperties"], false);
    let error = run(&tool, json!({ "program": "ls", "shell": true })).unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
}
