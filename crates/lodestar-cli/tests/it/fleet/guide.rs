//! The guide to a fleet of three machines, typed as it stands into one shell.

use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn the_guide_takes_three_machines_from_nothing_to_a_run_that_is_fully_trusted() {
    let page = include_str!("../../../../../docs/guides/fleet.md");
    let mut inside = false;
    let mut script = "exec 2>&1\ntrap 'kill $daemons $gateway 2>/dev/null' EXIT\n".to_owned();
    let mut commands = 0;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(kind) => inside = !inside && kind == "console",
            None if inside => {
                let command = line.strip_prefix("$ ").expect("only commands stand there");
                let (command, exit) = match command.rsplit_once("# exits ") {
                    Some((command, exit)) => (command, exit.parse().expect("a code")),
                    None => (command, 0),
                };
                commands += 1;
                let quoted = command.replace('\'', "'\\''");
                script += &format!(
                    "printf '%s\\n' '$ {quoted}'\n{command}\ncode=$?; [ $code = {exit} ] || {{ echo \"exit $code\"; exit 99; }}\n"
                );
            }
            None => {}
        }
    }
    assert!(commands > 30, "{commands}");
    let scratch = tempfile::tempdir().expect("a folder");
    let bin = Path::new(env!("CARGO_BIN_EXE_lodestar"));
    let bin = bin.parent().expect("in a folder").to_str().expect("UTF-8");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("timeout")
        .args(["600", "sh", "-c", &script])
        .current_dir(scratch.path())
        .env("PATH", format!("{bin}:{path}"))
        .env("HOME", scratch.path())
        .env("TMPDIR", scratch.path())
        .env_remove("LODESTAR_CONFIG_DIR")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}
