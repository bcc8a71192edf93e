//! Calls in rounds: an agent without a handshake cannot be asked anything, so a question to it is the answer
//! to its call, and its next call brings what it says to that. The call itself goes on all the while.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use lodestar_kernel::stop::Stop;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{Conversation, INVALID_PARAMS, Request};
use crate::beside::{self, Beside};
use crate::inline::LEVEL;
use crate::members::Members;
use crate::peer::Answered;
use crate::streams::{Outbox, WeakOutbox};
use crate::wire::{self, IdKey, Message};

/// Most calls that wait for an agent to come back; beyond, the oldest is given up.
const PARKED: usize = 64;

/// How long a first question waits for others that come with it.
const TOGETHER: Duration = Duration::from_millis(10);

/// Calls in rounds.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    next: u64,
    open: Vec<Open>,
    parked: VecDeque<(String, Call)>,
    /// What servers want to know, by the rounds of the call, until it is asked or has come to nothing.
    expected: HashMap<u64, HashSet<String>>,
    /// The servers' own names for questions that are out, by number.
    names: HashMap<i64, String>,
}

/// A call that is out.
#[derive(Debug)]
struct Open {
    rounds: u64,
    back: WeakOutbox,
    /// Whether the agent wants to be told something meanwhile.
    is_told: bool,
}

/// A call that goes on, whoever waits for it.
#[derive(Debug)]
struct Call {
    said: mpsc::Receiver<Vec<u8>>,
    stop: Stop,
    rounds: u64,
    /// What the agent was asked, by number and name.
    questions: Vec<(i64, String)>,
    /// What the agent said before it was asked, by name.
    said_before: HashMap<String, Box<RawValue>>,
}

/// What a server wants to know, until all of it is asked or nobody wants to know it any more.
pub(super) struct Expected<'a> {
    conversation: &'a Conversation,
    rounds: u64,
}

impl Expected<'_> {
    /// One of it was asked, or came to nothing.
    pub(super) fn is_over(&self, name: &str) {
        self.conversation.rounds().is_over(self.rounds, Some(name));
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.conversation.rounds().expected.remove(&self.rounds);
    }
}

impl Conversation {
    /// A call, or a further round of one.
    pub(super) async fn in_rounds(self: &Arc<Self>, request: Request) {
        let members = Members::of_some(request.params.as_deref()).unwrap_or_default();
        let Some(state) = members.text("requestState") else {
            let mut call = self.begin_rounds(&request);
            // Whoever knows what is asked may say it at once; what is no answer is asked for.
            let said = Members::of_some(members.get("inputResponses")).unwrap_or_default();
            let answers = said.iter().filter(|(_, said)| said.get().starts_with('{'));
            call.said_before = answers
                .map(|(name, said)| (name.to_owned(), said.to_owned()))
                .collect();
            return self.follow(call, &request).await;
        };
        let Some(call) = self.rounds().take(&state) else {
            let why = "nothing is known of this `requestState`; make the call again without it";
            return request.fail(INVALID_PARAMS, why).await;
        };
        let responses = Members::of_some(members.get("inputResponses")).unwrap_or_default();
        for (number, name) in &call.questions {
            let answered = match responses.get(name) {
                Some(response) => Answered::Result(response.to_owned()),
                None => Answered::Error(unanswered()),
            };
            self.answered(&IdKey::Number(*number), answered);
        }
        self.follow(call, &request).await;
    }

    fn begin_rounds(self: &Arc<Self>, request: &Request) -> Call {
        let (back, said) = Outbox::new();
        let members = Members::of_some(request.params.as_deref()).unwrap_or_default();
        let meta = Members::of_some(members.get("_meta")).unwrap_or_default();
        let level = meta.text(LEVEL).and_then(|word| beside::level(&word));
        let rounds = self.rounds().begin(back.downgrade(), level.is_some());
        let stop = Stop::new();
        let inner = Request {
            id: request.id.clone(),
            key: request.key.clone(),
            method: request.method.clone(),
            params: request.params.clone(),
            era: request.era,
            back,
            stop: stop.clone(),
            rounds: Some(rounds),
            level,
        };
        let conversation = Arc::clone(self);
        tokio::spawn(async move { conversation.serve(inner).await });
        Call {
            said,
            stop,
            rounds,
            questions: Vec::new(),
            said_before: HashMap::new(),
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
                false => match tokio::time::timeout(TOGETHER, call.said.recv()).await {
                    Ok(said) => said,
                    Err(_) if request.stop.is_stopped() => {
                        call.stop.stop();
                        return;
                    }
                    Err(_) if self.rounds().expected.contains_key(&call.rounds) => continue,
                    Err(_) => return self.park(call, &asked, request).await,
                },
            };
            let Some(said) = said else { return };
            match Message::read(&said) {
                Ok(Message::Request { id, method, params }) => {
                    let IdKey::Number(number) = id.key() else {
                        continue;
                    };
                    let params = params.map(|params| format!(",\"params\":{}", params.get()));
                    let params = params.unwrap_or_default();
                    let method = crate::members::quoted(&method);
                    let name = self.rounds().names.remove(&number);
                    let name = name.unwrap_or_else(|| format!("q{number}"));
                    if let Some(said) = call.said_before.remove(&name) {
                        self.answered(&IdKey::Number(number), Answered::Result(said));
                        continue;
                    }
                    asked.push(format!(
                        "{}:{{\"method\":{method}{params}}}",
                        crate::members::quoted(&name)
                    ));
                    call.questions.push((number, name));
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

    /// Puts a question into the call that it belongs to, or into the newest that is out where nobody knows;
    /// says whether there is one.
    pub(super) fn ask_in_rounds(&self, id: u64, message: &[u8], beside: &Beside) -> bool {
        let mut rounds = self.rounds();
        if let (Some(name), Ok(id)) = (&beside.question, i64::try_from(id)) {
            rounds.names.insert(id, name.clone());
        }
        let is_asked = rounds.offer(message, |open| {
            beside.rounds.is_none_or(|rounds| open.rounds == rounds)
        });
        if let Some(own) = beside.rounds {
            rounds.is_over(own, beside.question.as_deref());
        }
        is_asked
    }

    /// Tells something to the newest call whose agent wants to be told.
    pub(super) fn tell_in_rounds(&self, message: &[u8]) {
        self.rounds().offer(message, |open| open.is_told);
    }

    /// A server wants to know all this for one call.
    pub(super) fn expect(&self, rounds: u64, names: HashSet<String>) -> Expected<'_> {
        self.rounds().expected.insert(rounds, names);
        Expected {
            conversation: self,
            rounds,
        }
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rounds {
    fn begin(&mut self, back: WeakOutbox, is_told: bool) -> u64 {
        self.next += 1;
        self.open.retain(|open| open.back.is_open());
        self.open.push(Open {
            rounds: self.next,
            back,
            is_told,
        });
        self.next
    }

    fn offer(&self, message: &[u8], fits: impl Fn(&Open) -> bool) -> bool {
        let mut fitting = self.open.iter().rev().filter(|open| fits(open));
        fitting.any(|open| open.back.offer(message))
    }

    fn is_over(&mut self, rounds: u64, name: Option<&str>) {
        if let (Some(expected), Some(name)) = (self.expected.get_mut(&rounds), name) {
            expected.remove(name);
            if expected.is_empty() {
                self.expected.remove(&rounds);
            }
        }
    }

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
