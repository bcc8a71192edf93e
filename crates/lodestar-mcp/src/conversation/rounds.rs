//! Calls in rounds: an agent without a handshake cannot be asked anything, so a question to it is the answer
//! to its call, and its next call brings what it says to that. The call itself goes on all the while.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

use lodestar_kernel::stop::Stop;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{Conversation, INVALID_PARAMS, Request};
use crate::members::Members;
use crate::peer::Answered;
use crate::streams::{Outbox, WeakOutbox};
use crate::wire::{self, IdKey, Message};

/// Most calls that wait for an agent to come back; beyond, the oldest is given up.
const PARKED: usize = 64;

/// Calls in rounds.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    open: Vec<WeakOutbox>,
    parked: VecDeque<(String, Call)>,
}

/// A call that goes on, whoever waits for it.
#[derive(Debug)]
struct Call {
    said: mpsc::Receiver<Vec<u8>>,
    stop: Stop,
    /// What the agent was asked, by number.
    questions: Vec<i64>,
}

impl Conversation {
    /// A call, or a further round of one.
    pub(super) async fn in_rounds(self: &Arc<Self>, request: Request) {
        let members = Members::of_some(request.params.as_deref()).unwrap_or_default();
        let Some(state) = members.text("requestState") else {
            let call = self.begin_rounds(&request);
            return self.follow(call, &request).await;
        };
        let Some(call) = self.rounds().take(&state) else {
            let why = "nothing is known of this `requestState`; make the call again without it";
            return request.fail(INVALID_PARAMS, why).await;
        };
        let responses = Members::of_some(members.get("inputResponses")).unwrap_or_default();
        for number in &call.questions {
            let answered = match responses.get(&format!("q{number}")) {
                Some(response) => Answered::Result(response.to_owned()),
                None => Answered::Error(unanswered()),
            };
            self.answered(&IdKey::Number(*number), answered);
        }
        self.follow(call, &request).await;
    }

    fn begin_rounds(self: &Arc<Self>, request: &Request) -> Call {
        let (back, said) = Outbox::new();
        self.rounds().open.push(back.downgrade());
        let stop = Stop::new();
        let inner = Request {
            id: request.id.clone(),
            key: request.key.clone(),
            method: request.method.clone(),
            params: request.params.clone(),
            era: request.era,
            back,
            stop: stop.clone(),
        };
        let conversation = Arc::clone(self);
        tokio::spawn(async move { conversation.serve(inner).await });
        Call {
            said,
            stop,
            questions: Vec::new(),
        }
    }

    /// Gives the agent what a call says, until it is over or a question has to be answered first.
    async fn follow(&self, mut call: Call, request: &Request) {
        call.questions.clear();
        let mut asked = Vec::new();
        loop {
            let said = match asked.is_empty() {
                true => tokio::select! {
                    said = call.said.recv() => said,
                    () = request.stop.stopped() => {
                        call.stop.stop();
                        return;
                    }
                },
                // Questions that come together are asked together.
                false => match call.said.try_recv() {
                    Ok(said) => Some(said),
                    Err(_) => return self.park(call, &asked, request).await,
                },
            };
            let Some(said) = said else { return };
            match Message::read(&said) {
                Ok(Message::Request { id, method, params }) => {
                    let IdKey::Number(number) = id.key() else {
                        continue;
                    };
                    let params = params.map_or("{}", RawValue::get);
                    let method = crate::members::quoted(&method);
                    call.questions.push(number);
                    asked.push(format!(
                        "\"q{number}\":{{\"method\":{method},\"params\":{params}}}"
                    ));
                }
                Ok(Message::Answer { result, .. }) => {
                    let mut message = Vec::new();
                    wire::answer(&mut message, &request.id, result.get());
                    let _ = request.back.put(message).await;
                    return;
                }
                Ok(Message::Failure { error, .. }) => return request.error(error.get()).await,
                Ok(Message::Notification { .. }) => {
                    let _ = request.back.put(said).await;
                }
                Err(_) => {}
            }
        }
    }

    /// Answers with the questions; whoever brings the state back goes on with the call.
    async fn park(&self, call: Call, asked: &[String], request: &Request) {
        let mut bytes = [0; 16];
        if getrandom::fill(&mut bytes).is_err() {
            call.stop.stop();
            return request.fail(INVALID_PARAMS, "there is no randomness").await;
        }
        let state = hex(&bytes);
        let result = format!(
            "{{\"resultType\":\"input_required\",\"inputRequests\":{{{}}},\"requestState\":\"{state}\"}}",
            asked.join(",")
        );
        self.rounds().park(state, call);
        request.answer(&result).await;
    }

    /// Puts a question into the newest call that is out; says whether there is one.
    pub(super) fn ask_in_rounds(&self, message: &[u8]) -> bool {
        let mut rounds = self.rounds();
        rounds.open.retain(WeakOutbox::is_open);
        rounds.open.iter().rev().any(|open| open.offer(message))
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rounds {
    fn take(&mut self, state: &str) -> Option<Call> {
        let at = self.parked.iter().position(|(known, _)| known == state)?;
        self.parked.remove(at).map(|(_, call)| call)
    }

    fn park(&mut self, state: String, call: Call) {
        self.parked.push_back((state, call));
        if self.parked.len() > PARKED
            && let Some((_, oldest)) = self.parked.pop_front()
        {
            oldest.stop.stop();
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unanswered() -> Box<RawValue> {
    let error = json!({"code": INVALID_PARAMS, "message": "the agent did not answer"});
    RawValue::from_string(error.to_string()).expect("INVARIANT: an object is written")
}
