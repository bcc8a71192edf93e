//! `lodestar log verify` as a process, against `openssl dgst -sha256` over the same file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lodestar_core::note::NoteKey;

use crate::{Bound, Figure, session};

const TRIES: u32 = 5;
const MEMORY_LIMIT_MIB: f64 = 64.0;

pub(crate) fn measure(events: u64) -> Result<Vec<Figure>, String> {
    let binary = beside_this("lodestar")?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let dir = session::write(folder.path(), "big", events);
    let file = dir.events_path();
    let bytes = std::fs::metadata(&file).map_err(|e| e.to_string())?.len();
    let key = NoteKey::ed25519("lodestar-log", &session::key().public())
        .map_err(|e| e.to_string())?
        .to_string();

    let mut openssl = Duration::MAX;
    let mut verify = Duration::MAX;
    let mut memory = 0f64;
    for _ in 0..TRIES {
        let mut command = Command::new("openssl");
        command.args(["dgst", "-sha256"]).arg(&file);
        openssl = openssl.min(run(&mut command)?.0);
        let mut command = Command::new(&binary);
        command
            .args(["--root".as_ref(), folder.path().as_os_str()])
            .args(["log", "verify", "big", "--key", &key]);
        let (time, peak) = run(&mut command)?;
        verify = verify.min(time);
        memory = memory.max(peak);
    }
    let detail = format!(
        "{events} events, {:.0} bytes each: {verify:.2?} against {openssl:.2?}",
        bytes as f64 / events as f64
    );
    Ok(vec![
        Figure {
            name: "log verify ÷ openssl dgst -sha256",
            value: verify.as_secs_f64() / openssl.as_secs_f64(),
            bound: Bound::AtMost(2.0),
            detail,
        },
        Figure {
            name: "peak memory of log verify, MiB",
            value: memory,
            bound: Bound::AtMost(MEMORY_LIMIT_MIB),
            detail: format!("{:.0} MiB of log", bytes as f64 / (1 << 20) as f64),
        },
    ])
}

/// Runs a command to its end; gives its time and its peak memory in MiB.
pub(crate) fn run(command: &mut Command) -> Result<(Duration, f64), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let started = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("`{name}` cannot be started: {e}"))?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak = 0f64;
    loop {
        // The high-water mark only grows, so the last look before the end is the one that counts.
        peak = peak.max(high_water_mark(&status).unwrap_or(0.0));
        if let Some(exit) = child.try_wait().map_err(|e| e.to_string())? {
            if !exit.success() {
                let output = child.wait_with_output().map_err(|e| e.to_string())?;
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(format!("`{name}` failed: {error}"));
            }
            return Ok((started.elapsed(), peak));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn high_water_mark(status: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024.0)
}

pub(crate) fn beside_this(name: &str) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    let binary = this.with_file_name(name);
    match binary.is_file() {
        true => Ok(binary),
        false => Err(format!(
            "`{}` is missing; run `cargo build --release -p lodestar-cli` first",
            binary.display()
        )),
    }
}
