//! `lodestar report` as a process, over sessions of governed calls: verified, derived again, told and
//! written as a page.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lodestar_core::note::NoteKey;

use crate::call::world;
use crate::verify::{beside_this, run};
use crate::{Bound, Figure, session};

const TRIES: u32 = 5;
const EVENTS: u64 = 100_000;
const SECONDS: f64 = 1.5;
const MEMORY_LIMIT_MIB: f64 = 150.0;
/// Twice the events, and what may come on top for what does not grow.
const GROWTH: f64 = 2.3;

pub(crate) fn measure() -> Result<Vec<Figure>, String> {
    let binary = beside_this("lodestar")?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (large, small) = (folder.path().join("large"), folder.path().join("small"));
    let many = write(&large, EVENTS)?;
    let half = write(&small, EVENTS / 2)?;
    let key = NoteKey::ed25519("lodestar-log", &session::key().public())
        .map_err(|e| e.to_string())?
        .to_string();
    let page = folder.path().join("report.html");
    let tell = |root: &Path| {
        let (mut best, mut memory) = (Duration::MAX, 0f64);
        for _ in 0..TRIES {
            let mut command = Command::new(&binary);
            command
                .args(["--root".as_ref(), root.as_os_str()])
                .args([
                    "report", "latest", "--format", "html", "--key", &key, "--out",
                ])
                .arg(&page);
            let (time, peak) = run(&mut command)?;
            best = best.min(time);
            memory = memory.max(peak);
        }
        Ok::<_, String>((best, memory))
    };
    let (time, memory) = tell(&large)?;
    let bytes = std::fs::metadata(&page).map_err(|e| e.to_string())?.len();
    let (half_time, half_memory) = tell(&small)?;
    let growth = time.as_secs_f64() / half_time.as_secs_f64() * half as f64 / many as f64 * 2.0;
    Ok(vec![
        Figure {
            name: "report of 100,000 events, seconds",
            value: time.as_secs_f64() * EVENTS as f64 / many as f64,
            bound: Bound::AtMost(SECONDS),
            detail: format!(
                "{many} events, a page of {:.1} MiB",
                bytes as f64 / (1 << 20) as f64
            ),
        },
        Figure {
            name: "report: twice the events",
            value: growth,
            bound: Bound::AtMost(GROWTH),
            detail: format!("{half} events in {half_time:.2?}, {many} in {time:.2?}"),
        },
        Figure {
            name: "peak memory of report, MiB",
            value: memory,
            bound: Bound::AtMost(MEMORY_LIMIT_MIB),
            detail: format!("{half_memory:.0} MiB for {half} events"),
        },
    ])
}

/// A closed session of governed calls with about that many events; gives how many it has.
fn write(folder: &Path, events: u64) -> Result<u64, String> {
    let runtime = world::runtime();
    let session = world::open(&runtime, folder);
    let file = {
        let log = lodestar_log::LogRoot::in_folder(folder);
        let project = "bench".parse().map_err(|_| "a name".to_owned())?;
        log.project(&project).session(session.id()).events_path()
    };
    let mut number = 0;
    let lines = loop {
        for _ in 0..500 {
            number += 1;
            let arguments = world::arguments(&world::other(number));
            let call = session.call(world::Echo::NAME, arguments);
            runtime.block_on(call).map_err(|e| e.to_string())?;
        }
        // A call writes five lines and a bit.
        if number * 5 >= events {
            runtime
                .block_on(session.close("done"))
                .map_err(|e| e.to_string())?;
            let log = std::fs::read(&file).map_err(|e| e.to_string())?;
            break log.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    };
    Ok(lines)
}
