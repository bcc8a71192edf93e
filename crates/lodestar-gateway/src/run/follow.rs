//! A run's checkpoints, on their way while the session goes on.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lodestar_core::id::RunId;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_log::SessionDir;
use thiserror::Error;
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

/// Why a checkpoint did not arrive.
#[derive(Debug, Error)]
pub enum SendError {
    /// It cannot be read.
    #[error("`{}`: {problem}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// The gateway was not reached, or refused.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

impl SendError {
    /// Whether no checkpoint of this session will ever arrive as one of this run.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Read { .. } => false,
            Self::Gateway(problem) => matches!(
                problem.code(),
                Some(
                    Code::SessionTaken
                        | Code::CheckpointInvalid
                        | Code::RunUnknown
                        | Code::DeviceRevoked
                        | Code::DeviceBlocked
                )
            ),
        }
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
        // What is on its way when it ends is sent again by whoever ships the log.
        let outcome = tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return client,
            outcome = send(&client, run, &dir, &mut sent) => outcome,
        };
        let pause = match &outcome {
            Ok(()) => LOOK,
            Err(why) if why.is_final() => {
                report.say(&format!("no checkpoint of {run} is taken: {why}"));
                let _ = ended.wait_for(|ended| *ended).await;
                return client;
            }
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
) -> Result<(), SendError> {
    let path = dir.checkpoint_path();
    // A few hundred bytes.
    let note = match std::fs::read_to_string(&path) {
        Ok(note) => note,
        // It is replaced by a rename; the next look finds it.
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(problem) => return Err(SendError::Read { path, problem }),
    };
    // One over nothing shows nothing.
    if note == *sent || size(&note) == Some(0) {
        return Ok(());
    }
    match client.checkpoint(run, &note).await {
        Ok(_) => {}
        Err(problem) if is_there(&problem) => {}
        Err(problem) => return Err(problem.into()),
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

/// How many events a checkpoint covers, if it is one. Whose it is, the gateway looks.
fn size(note: &str) -> Option<u64> {
    let note = Note::parse(note.as_bytes()).ok()?;
    Some(Checkpoint::parse_body(note.text()).ok()?.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: Code) -> SendError {
        SendError::Gateway(GatewayError::Refused {
            code,
            message: String::new(),
            field: None,
            retry_after: None,
        })
    }

    #[test]
    fn what_can_never_arrive_is_told_from_what_may() {
        for code in [Code::SessionTaken, Code::CheckpointInvalid] {
            assert!(refused(code).is_final(), "{code}");
        }
        for code in [Code::KillSwitch, Code::RateLimited, Code::Unavailable] {
            assert!(!refused(code).is_final(), "{code}");
        }
        assert!(!SendError::from(GatewayError::Unreached(String::new())).is_final());
    }

    #[test]
    fn the_size_is_that_of_the_checkpoint() {
        let checkpoint = Checkpoint {
            origin: "lodestar/notes/s".to_owned(),
            size: 7,
            root: lodestar_core::digest::sha256(b""),
        };
        let key = lodestar_core::key::SecretKey::from_seed([1; 32]);
        let note = checkpoint.sign(&key).to_string();
        assert_eq!(size(&note), Some(7));
        assert_eq!(size("x\n7\n"), None);
    }
}
