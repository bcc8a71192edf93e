//! A gateway in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A gateway that is served by another process.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// An example of the library's: it is built with its tests.
fn program() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let target = this.parent().unwrap().parent().unwrap();
    target.join("examples/gateway_at")
}

impl Served {
    /// Serves what a file describes.
    pub(crate) fn by(config: &Path) -> Self {
        let mut child = Command::new(program())
            .arg(config)
            .arg(config.with_file_name("clock"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the examples are built with the tests");
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let said = line.trim().strip_prefix("listening at http://");
        let address = said.unwrap_or_default().parse();
        let address = address.unwrap_or_else(|_| panic!("it says `{line}`"));
        Self { child, address }
    }

    /// By SIGKILL: it has no say in it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// As its operator does it.
    pub(crate) fn end(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

/// A configuration in a folder, and where its data will be.
pub(crate) fn configured(folder: &Path, more: &str) -> (PathBuf, PathBuf) {
    let file = folder.join("gateway.toml");
    let text = format!(
        "data = \"data\"\n\n[http]\nlisten = \"127.0.0.1:0\"\ntoken_per_second = 1000000\ntoken_burst = 1000000\n\
         address_per_second = 1000000\naddress_burst = 1000000\n{more}"
    );
    std::fs::write(&file, text).unwrap();
    std::fs::write(folder.join("clock"), "0").unwrap();
    (file, folder.join("data"))
}
