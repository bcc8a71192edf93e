//! What the agent is asked: questions go out under numbers of one's own, and each answer finds its question.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use lodestar_kernel::tool::Progress;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{Conversation, Era};
use crate::beside::Beside;
use crate::members::Members;
use crate::peer::{Answered, with_token};
use crate::wire::{self, IdKey};

/// Something that the agent was asked, and that it has not answered.
#[derive(Debug)]
pub(crate) struct Question {
    answer: oneshot::Sender<Answered>,
    progress: Option<Arc<dyn Progress>>,
}

/// A question that is out. Dropping it forgets it.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    conversation: &'a Conversation,
    id: u64,
    answer: oneshot::Receiver<Answered>,
}

impl Conversation {
    /// Asks the agent something; none where nobody is there to answer.
    pub(crate) async fn ask_agent(
        &self,
        method: &str,
        params: Option<&RawValue>,
        progress: Option<Arc<dyn Progress>>,
        beside: &Beside,
    ) -> Option<Asking<'_>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let mut message = Vec::new();
        match progress {
            None => wire::request(&mut message, id, method, params),
            Some(_) => wire::request(&mut message, id, method, Some(&with_token(params, id))),
        }
        let question = Question {
            answer: sender,
            progress,
        };
        self.asked().insert(id, question);
        let asking = Asking {
            conversation: self,
            id,
            answer,
        };
        match self.era.get() {
            Some(Era::Inline) if !self.ask_in_rounds(id, &message, beside) => None,
            Some(Era::Inline) => Some(asking),
            _ => {
                self.agent.put(message).await.ok()?;
                Some(asking)
            }
        }
    }

    /// The agent answered something.
    pub(super) fn answered(&self, id: &IdKey, answered: Answered) {
        let IdKey::Number(id) = id else { return };
        let question = u64::try_from(*id)
            .ok()
            .and_then(|id| self.asked().remove(&id));
        if let Some(question) = question {
            let _ = question.answer.send(answered);
        }
    }

    /// The agent says how far it is with something that it was asked.
    pub(super) fn agent_reported(&self, params: Option<&RawValue>) {
        let Ok(members) = Members::of_some(params) else {
            return;
        };
        let token = members.get("progressToken");
        let sink = token.and_then(|token| {
            let id = token.get().parse().ok()?;
            self.asked().get(&id)?.progress.clone()
        });
        if let Some(sink) = sink {
            sink.made(params.map_or("{}", RawValue::get));
        }
    }

    /// Whether anybody still waits for the answer to a question.
    pub(super) fn is_asked(&self, id: i64) -> bool {
        u64::try_from(id).is_ok_and(|id| self.asked().contains_key(&id))
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<u64, Question>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking<'_> {
    /// The answer; none where nobody is there any more.
    pub(crate) async fn answer(&mut self) -> Option<Answered> {
        (&mut self.answer).await.ok()
    }

    /// Tells the agent that nobody waits for it any more.
    pub(crate) async fn cancel(self, reason: &str) {
        let params = serde_json::json!({"requestId": self.id, "reason": reason}).to_string();
        let mut message = Vec::new();
        if let Ok(params) = RawValue::from_string(params) {
            wire::notification(&mut message, "notifications/cancelled", Some(&params));
            let _ = self.conversation.agent.put(message).await;
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.conversation.asked().remove(&self.id);
        self.conversation.forget_in_rounds(self.id);
    }
}
