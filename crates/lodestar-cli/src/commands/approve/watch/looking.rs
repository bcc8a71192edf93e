//! Looks at what lies in the drop directory, again whenever something changed, beside the thread that
//! draws and reads keys. What goes wrong is told, and ends nothing.

use std::path::PathBuf;
use std::time::Duration;

use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_guard::channel::Notice;
use lodestar_guard::channel::drop::{Pile, Shown, Watching};
use tokio::sync::mpsc;

/// How long it takes at least from one look to the next: a flood of changes is one change.
const BETWEEN: Duration = Duration::from_millis(25);
/// When it looks again, after something went wrong or was too much for one look.
const AGAIN: Duration = Duration::from_secs(2);

/// What lay there.
pub(super) struct Look {
    pub(super) requests: Vec<Shown>,
    pub(super) unusable: Vec<(RequestId, SessionId, String)>,
    pub(super) notices: Vec<Notice>,
    pub(super) problem: Option<String>,
}

impl Look {
    fn at(pile: &Pile, problem: Option<String>) -> Self {
        let unusable = pile.unusable();
        Self {
            requests: pile.requests().cloned().collect(),
            unusable: unusable
                .map(|(id, session, why)| (id, session.clone(), why.to_string()))
                .collect(),
            notices: pile.notices().into_iter().cloned().collect(),
            problem: problem.or_else(|| pile.troubles().first().cloned()),
        }
    }
}

/// Starts to look. It ends when nobody listens any more.
pub(super) fn start(root: PathBuf) -> mpsc::Receiver<Look> {
    let (sender, looks) = mpsc::channel(1);
    tokio::spawn(look_on(root, sender));
    looks
}

async fn look_on(root: PathBuf, looks: mpsc::Sender<Look>) {
    let mut watching = None;
    let mut pile = Pile::unseen(&root);
    loop {
        let mut problem = None;
        if watching.is_none() {
            match Watching::below(&root) {
                Ok(new) => watching = Some(new),
                Err(error) => problem = Some(error.to_string()),
            }
        }
        let looking = tokio::task::spawn_blocking(move || {
            let refreshed = pile.refresh();
            let problem = refreshed.err().map(|error| error.to_string()).or(problem);
            let look = Look::at(&pile, problem);
            (pile, look)
        });
        let Ok((seen, look)) = looking.await else {
            return;
        };
        pile = seen;
        let again = look.problem.is_some() || pile.is_behind();
        if looks.send(look).await.is_err() {
            return;
        }
        tokio::time::sleep(BETWEEN).await;
        let changed = async {
            match &mut watching {
                Some(watching) => watching.changed().await,
                None => std::future::pending().await,
            }
        };
        let rest = async {
            match again {
                true => tokio::time::sleep(AGAIN).await,
                false => std::future::pending().await,
            }
        };
        let changed = tokio::select! {
            changed = changed => changed,
            () = rest => Ok(()),
            () = looks.closed() => return,
        };
        if changed.is_err() {
            // Whatever was wrong with it, the next one says so again if it still is.
            watching = None;
            tokio::time::sleep(BETWEEN).await;
        }
    }
}
