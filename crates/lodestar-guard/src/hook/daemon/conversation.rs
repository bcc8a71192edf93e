//! One conversation of a client: its session, and the uses of tools whose end the client has still to tell.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lodestar_core::digest::{Digest, sha256};
use lodestar_core::name::Excerpt;
use lodestar_kernel::stop::Stop;
use lodestar_kernel::tool::Beside;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::error::GuardError;
use crate::hook::tools::{Governed, READING, Told, Turn, governed};
use crate::hook::{Answer, Client, Use};
use crate::session::{CallOptions, Reply, Session};

/// How long a use may take. Between the hook before it and the one after it the client may ask its user,
/// who has lunch.
pub(super) const LONGEST_USE: Duration = Duration::from_secs(6 * 3600);

/// Most uses whose end is open: clients that are interrupted never say what came of a tool. Of the oldest
/// beyond that, nobody will know.
const MAX_OPEN: usize = 256;

/// How long the hook after a use waits until its result is recorded.
const RECORDED_WITHIN: Duration = Duration::from_secs(20);

/// A use that was cleared, and whose end the client has still to tell.
struct Open {
    number: u64,
    id: Option<String>,
    tool: String,
    input: Digest,
    told: oneshot::Sender<Told>,
    ended: JoinHandle<Result<Reply, GuardError>>,
}

/// What a hook before a use is answered; and the use, if it was cleared.
pub(super) struct Before {
    pub(super) answer: Answer,
    pub(super) cleared: Option<u64>,
}

/// A conversation.
pub(super) struct Conversation {
    pub(super) session: Session,
    client: Client,
    root: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: VecDeque<Open>,
    numbered: u64,
    used: Option<Instant>,
}

impl Conversation {
    pub(super) fn new(session: Session, client: Client, root: &Path) -> Self {
        let conversation = Self {
            session,
            client,
            root: root.to_owned(),
            state: Mutex::default(),
        };
        conversation.touch();
        conversation
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody spoke just now.
    pub(super) fn touch(&self) {
        self.state().used = Some(Instant::now());
    }

    /// How long nobody has spoken.
    pub(super) fn quiet_for(&self) -> Duration {
        let used = self.state().used;
        used.map_or(Duration::ZERO, |used| used.elapsed())
    }

    /// Whether the end of some use is open.
    pub(super) fn has_open_uses(&self) -> bool {
        !self.state().open.is_empty()
    }

    /// Judges a use; returns when it is cleared or refused.
    pub(super) async fn before(&self, used: &Use, cwd: Option<&Path>, stop: &Stop) -> Before {
        let Governed { tool, arguments } = governed(self.client, used, cwd, &self.root);
        let reading = arguments
            .get(READING)
            .and_then(Value::as_str)
            .map(str::to_owned);
        let (cleared, mut is_cleared) = oneshot::channel();
        let (told, hears) = oneshot::channel();
        let options = CallOptions {
            deadline: Some(LONGEST_USE),
            // Once cleared, the hook that asked may go away.
            stop: stop.clone(),
            beside: Some(Arc::new(Turn::new(cleared, hears)) as Beside),
            ..CallOptions::default()
        };
        let session = self.session.clone();
        let arguments = Value::Object(arguments);
        let mut ended =
            tokio::spawn(async move { session.call_with(&tool, arguments, options).await });
        tokio::select! {
            biased;
            Ok(()) = &mut is_cleared => {}
            reply = &mut ended => return Before {
                answer: Answer::Refuse { reason: refusal(reply, reading.as_deref()) },
                cleared: None,
            },
        }
        let mut state = self.state();
        state.numbered += 1;
        let number = state.numbered;
        if state.open.len() == MAX_OPEN {
            state.open.pop_front();
        }
        state.open.push_back(Open {
            number,
            id: used.id.clone(),
            tool: used.tool.clone(),
            input: digest(used),
            told,
            ended,
        });
        Before {
            answer: Answer::Proceed,
            cleared: Some(number),
        }
    }

    /// Nobody could be told that a use was cleared: whether it runs all the same, nobody knows.
    pub(super) fn give_up(&self, number: u64) {
        let mut state = self.state();
        state.open.retain(|open| open.number != number);
    }

    /// Records what came of a use.
    pub(super) async fn after(
        &self,
        used: &Use,
        cwd: Option<&Path>,
        told: Told,
    ) -> Result<(), String> {
        let Some(open) = self.take(used) else {
            // Nothing was cleared of which this could be the result: it is recorded as what somebody said.
            let Governed { tool, .. } = governed(self.client, used, cwd, &self.root);
            let output = told.output();
            let observed = self.session.observe(&tool, output.content).await;
            return observed.map(drop).map_err(|problem| problem.to_string());
        };
        if open.told.send(told).is_err() {
            return Err("nobody waits for it any more; it is recorded as unknown".to_owned());
        }
        match tokio::time::timeout(RECORDED_WITHIN, open.ended).await {
            Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err(problem))) => Err(problem.to_string()),
            Ok(Err(_)) => Err(GuardError::Panicked.to_string()),
            Err(_) => Err("it is not yet recorded".to_owned()),
        }
    }

    /// The use that a result is of: by the client's number, or where it gives none, the open one of the same tool with
    /// the same input. If there are several of those, one may never have happened: which it is cannot be told, so that the end of
    /// all of them is unknown.
    fn take(&self, used: &Use) -> Option<Open> {
        let mut state = self.state();
        let input = digest(used);
        let same = |open: &Open| match &used.id {
            Some(_) => open.id == used.id && open.tool == used.tool,
            None => open.tool == used.tool && open.input == input,
        };
        if used.id.is_none() && state.open.iter().filter(|open| same(open)).count() > 1 {
            state.open.retain(|open| !same(open));
            return None;
        }
        let at = state.open.iter().position(same)?;
        state.open.remove(at)
    }

    /// Ends it: of what the client has not told, nobody will know.
    pub(super) async fn close(&self, reason: &str) -> Result<(), GuardError> {
        self.state().open.clear();
        self.session.close(reason).await.map(drop)
    }
}

fn digest(used: &Use) -> Digest {
    // Members of a JSON object come in the order of their names here.
    sha256(Value::Object(used.input.clone()).to_string().as_bytes())
}

/// Why a use is not to happen, in words for the agent; of a command line also what decided its rung.
fn refusal(
    reply: Result<Result<Reply, GuardError>, tokio::task::JoinError>,
    reading: Option<&str>,
) -> String {
    match reply {
        Ok(Ok(reply)) => {
            let read = reading.map(|reading| format!(" The command line is {reading}."));
            format!(
                "Lodestar: {}{}",
                reply.for_agent(),
                read.unwrap_or_default()
            )
        }
        Ok(Err(problem)) => format!(
            "Lodestar: not run, because the session cannot go on: {}. Stop here and tell the user.",
            Excerpt::of(&problem.to_string())
        ),
        Err(_) => format!(
            "Lodestar: not run: {}. Stop here and tell the user.",
            GuardError::Panicked
        ),
    }
}
