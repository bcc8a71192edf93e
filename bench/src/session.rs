//! The session that is measured: notes of about 600 bytes a line.

use std::path::Path;
use std::sync::Arc;

use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, ProjectId, SessionId};
use lodestar_log::{LogRoot, LogWriter, Receipt, SessionDir, WriterOptions};
use serde::Serialize;

/// What an agent might note at each step; typed, with its fields in canonical order, as the
/// payloads of the log are.
#[derive(Serialize)]
struct Step<'a> {
    ok: bool,
    path: &'a str,
    seconds: f64,
    step: u64,
    text: &'a str,
    tool: &'a str,
}

pub(crate) fn key() -> SecretKey {
    SecretKey::from_seed([42; 32])
}

pub(crate) fn actor() -> ActorId {
    ActorId::new("agent-1").expect("a valid name")
}

pub(crate) fn create(folder: &Path, session: &str) -> LogWriter {
    let log = LogRoot::in_folder(folder).project(&ProjectId::new("bench").expect("a valid name"));
    LogWriter::create(
        &log,
        &SessionId::new(session).expect("a valid name"),
        &actor(),
        &serde_json::json!({}),
        &WriterOptions::new(Arc::new(key())),
    )
    .expect("a session in a scratch folder")
}

pub(crate) fn append(writer: &LogWriter, actor: &ActorId, step: u64) -> Receipt {
    let payload = Step {
        tool: "files.read",
        path: "src/notes/store.ts",
        step,
        ok: true,
        seconds: 0.25,
        text: "export function store(note: Note): Promise<void> { return db.put(note.id, note); } \
               // kept as it was read, with whatever it says",
    };
    writer
        .append(EventType::AGENT_NOTE, actor, &[], &payload)
        .expect("the disk has room")
}

/// A closed session of that many events; gives its directory.
pub(crate) fn write(folder: &Path, session: &str, events: u64) -> SessionDir {
    let writer = create(folder, session);
    let actor = actor();
    for step in 1..events - 1 {
        append(&writer, &actor, step);
    }
    writer
        .close(&actor, &serde_json::json!({}))
        .expect("the disk has room");
    writer.dir().clone()
}
