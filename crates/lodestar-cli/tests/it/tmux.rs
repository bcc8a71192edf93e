//! A real terminal: tmux draws what the binary writes, and says what a person would see.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::terminal::skip;
use crate::world::World;

const SOON: Duration = Duration::from_secs(20);

/// Whether tests that need tmux can run.
pub(crate) fn tmux() -> bool {
    let found = Command::new("tmux").arg("-V").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        skip("tmux is missing");
    }
    found
}

pub(crate) struct Pane {
    socket: PathBuf,
}

impl Pane {
    /// Runs the binary in a terminal of this size. The pane outlives it, so that what is left is seen.
    pub(crate) fn run(
        world: &World,
        args: &[&str],
        environment: &[(&str, &str)],
        (columns, rows): (u16, u16),
    ) -> Self {
        let pane = Self {
            socket: world.path(&format!("tmux-{columns}-{rows}-{}", environment.len())),
        };
        let template = world.command(args);
        let mut words = vec![
            "env".to_owned(),
            "-i".to_owned(),
            "TERM=screen-256color".to_owned(),
        ];
        for (name, value) in template.get_envs() {
            let value = value.expect("set").to_str().expect("text");
            words.push(format!("{}={value}", name.to_str().expect("text")));
        }
        words.extend(
            environment
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        words.push(env!("CARGO_BIN_EXE_lodestar").to_owned());
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "{}; echo \"[left with $?]\"; stty -a | grep -o ' -\\?echo '; cat",
            quoted.join(" ")
        );
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let root = world.root();
        pane.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "-c",
            root.to_str().expect("text"),
            &script,
        ]);
        pane
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-u", "-S"])
            .arg(&self.socket)
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX")
            .output()
            .expect("started");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// What stands on the screen, without colours.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The same, with what colours it.
    pub(crate) fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        let mut args = vec!["send-keys"];
        args.extend(keys);
        self.tmux(&args);
    }

    pub(crate) fn type_in(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Waits until the screen is as expected.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + SOON;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < until, "never saw {what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .output();
    }
}
