//! A run's checkpoints, on their way while the session goes on.

use std::io;
use std::time::Duration;

use lodestar_core::id::RunId;
use lodestar_log::SessionDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::{GatewayClient, GatewayError};
use crate::code::Code;
use crate::service::Report;

/// How often the checkpoint is looked at: often enough that little of a log is not under the gateway's time.
const LOOK: Duration = Duration::from_secs(2);

/// How long it takes until another look once nobody answered.
const LATER: Duration = Duration::from_secs(10);

/// Sends the checkpoints of a session until it is told to end.
#[derive(Debug)]
pub struct Follower {
    end: watch::Sender<bool>,
    task: JoinHandle<GatewayClient>,
}

impl Follower {
    /// Begins to follow a session. Needs a runtime.
    pub fn begin(client: GatewayClient, run: RunId, dir: SessionDir, report: Report) -> Self {
        let (end, ended) = watch::channel(false);
        let task = tokio::spawn(follow(client, run, dir, report, ended));
        Self { end, task }
    }

    /// Ends it, and gives the client back; none where the task is gone.
    pub async fn end(self) -> Option<GatewayClient> {
        let _ = self.end.send(true);
        self.task.await.ok()
    }
}

async fn follow(
    client: GatewayClient,
    run: RunId,
    dir: SessionDir,
    report: Report,
    mut ended: watch::Receiver<bool>,
) -> GatewayClient {
    let mut sent = String::new();
    let mut is_failing = false;
    loop {
        let outcome = send(&client, run, &dir, &mut sent).await;
        let pause = match &outcome {
            Ok(()) => LOOK,
            Err(_) => LATER,
        };
        match (&outcome, is_failing) {
            (Err(why), false) => {
                report.say(&format!(
                    "a checkpoint of {run} did not arrive: {why}; it is tried again"
                ));
            }
            (Ok(()), true) => report.say(&format!("checkpoints of {run} arrive again")),
            _ => {}
        }
        is_failing = outcome.is_err();
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return client,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Sends the checkpoint, if it is another than the one before.
pub(super) async fn send(
    client: &GatewayClient,
    run: RunId,
    dir: &SessionDir,
    sent: &mut String,
) -> Result<(), String> {
    let path = dir.checkpoint_path();
    // A few hundred bytes.
    let note = match std::fs::read_to_string(&path) {
        Ok(note) => note,
        // It is replaced by a rename; the next look finds it.
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(problem) => return Err(format!("`{}`: {problem}", path.display())),
    };
    // One over nothing shows nothing.
    if note == *sent || size(&note) == Some(0) {
        return Ok(());
    }
    match client.checkpoint(run, &note).await {
        Ok(_) => {}
        Err(problem) if is_there(&problem) => {}
        Err(problem) => return Err(problem.to_string()),
    }
    *sent = note;
    Ok(())
}

/// Whether the gateway has this checkpoint or a later one.
fn is_there(problem: &GatewayError) -> bool {
    let code = problem.code();
    matches!(
        code,
        Some(Code::CheckpointBehind | Code::CheckpointAfterBundle)
    )
}

/// How many events a checkpoint covers: its second line.
fn size(note: &str) -> Option<u64> {
    note.lines().nth(1)?.parse().ok()
}
