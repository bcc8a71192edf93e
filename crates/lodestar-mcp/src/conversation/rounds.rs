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
    /// How much the agent wants to be told meanwhile; none for nothing.
    level: Option<&'static str>,
    /// Whether it waits for the agent to come back: there is nobody to tell.
    is_parked: bool,
}

/// A question to the agent, before it is asked.
#[derive(Debug)]
struct Question {
    number: i64,
    /// The server's own name for it.
    name: Option<String>,
    /// What is asked, as an object.
    asked: String,
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
        let rounds = self.rounds().begin(back.downgrade(), level);
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
        let mut asked: Vec<Question> = Vec::new();
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
                    Err(_) => {
                        asked.retain(|question| self.is_asked(question.number));
                        match asked.is_empty() {
                            true => continue,
                            false => return self.park(call, asked, request).await,
                        }
                    }
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
                    let said = name.as_ref().and_then(|name| call.said_before.remove(name));
                    if let Some(said) = said {
                        self.answered(&IdKey::Number(number), Answered::Result(said));
                        continue;
                    }
                    // One answer would be given to two.
                    if name.is_some() && asked.iter().any(|other| other.name == name) {
                        self.answered(&IdKey::Number(number), Answered::Error(unanswered()));
                        continue;
                    }
                    asked.push(Question {
                        number,
                        name,
                        asked: format!("{{\"method\":{method}{params}}}"),
                    });
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
    async fn park(&self, mut call: Call, asked: Vec<Question>, request: &Request) {
        let mut bytes = [0; 16];
        if getrandom::fill(&mut bytes).is_err() {
            call.stop.stop();
            return request.fail(INVALID_PARAMS, "there is no randomness").await;
        }
        let state = hex(&bytes);
        let names = names(&asked, &call.said_before);
        let written = names.iter().zip(&asked).map(|(name, question)| {
            let name = crate::members::quoted(name);
            format!("{name}:{}", question.asked)
        });
        let written: Vec<_> = written.collect();
        let numbers = asked.iter().map(|question| question.number);
        call.questions = numbers.zip(names).collect();
        let result = format!(
            "{{\"resultType\":\"input_required\",\"inputRequests\":{{{}}},\"requestState\":\"{state}\"}}",
            written.join(",")
        );
        self.rounds().park(state, call);
        request.answer(&result).await;
    }

    /// Puts a question into the call that it belongs to, or into the newest that is out where nobody knows;
    /// says whether there is one.
    pub(super) fn ask_in_rounds(&self, id: u64, message: &[u8], beside: &Beside) -> bool {
        self.rounds().ask(id, message, beside)
    }

    /// Nobody waits any more for the answer to a question.
    pub(super) fn forget_in_rounds(&self, id: u64) {
        if let Ok(id) = i64::try_from(id) {
            self.rounds().names.remove(&id);
        }
    }

    /// Tells something of this level to the newest call whose agent is there and wants to be told.
    pub(super) fn tell_in_rounds(&self, level: &str, message: &[u8]) {
        self.rounds().tell(level, message);
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
    fn begin(&mut self, back: WeakOutbox, level: Option<&'static str>) -> u64 {
        self.next += 1;
        self.open.retain(|open| open.back.is_open());
        self.open.push(Open {
            rounds: self.next,
            back,
            level,
            is_parked: false,
        });
        self.next
    }

    fn ask(&mut self, id: u64, message: &[u8], beside: &Beside) -> bool {
        let belongs = |open: &&Open| beside.rounds.is_none_or(|rounds| open.rounds == rounds);
        let mut fitting = self.open.iter().rev().filter(belongs);
        let is_asked = fitting.any(|open| open.back.offer(message));
        // Whoever reads the question looks for its name behind the same lock.
        if let (true, Some(name), Ok(id)) = (is_asked, &beside.question, i64::try_from(id)) {
            self.names.insert(id, name.clone());
        }
        if let Some(own) = beside.rounds {
            self.is_over(own, beside.question.as_deref());
        }
        is_asked
    }

    fn tell(&self, level: &str, message: &[u8]) -> bool {
        let wants = |open: &&Open| {
            let wants = open
                .level
                .is_some_and(|least| beside::is_told(least, level));
            wants && !open.is_parked
        };
        let mut fitting = self.open.iter().rev().filter(wants);
        fitting.any(|open| open.back.tell(message))
    }

    fn set_parked(&mut self, rounds: u64, is_parked: bool) {
        let mut open = self.open.iter_mut();
        if let Some(open) = open.find(|open| open.rounds == rounds) {
            open.is_parked = is_parked;
        }
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
        let (_, call) = self.parked.remove(at)?;
        self.set_parked(call.rounds, false);
        Some(call)
    }

    fn park(&mut self, state: String, call: Call) {
        self.set_parked(call.rounds, true);
        self.parked.push_back((state, call));
        if self.parked.len() > PARKED
            && let Some((_, oldest)) = self.parked.pop_front()
        {
            oldest.stop.stop();
        }
    }
}

/// A name for each question: the server's own, or one that nobody has and nobody has answered.
fn names(asked: &[Question], said_before: &HashMap<String, Box<RawValue>>) -> Vec<String> {
    let own = asked.iter().filter_map(|question| question.name.as_deref());
    let mut taken: HashSet<String> = own.map(str::to_owned).collect();
    let named = asked.iter().map(|question| {
        question.name.clone().unwrap_or_else(|| {
            let mut name = format!("q{}", question.number);
            while said_before.contains_key(&name) || !taken.insert(name.clone()) {
                name.push('_');
            }
            name
        })
    });
    named.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unanswered() -> Box<RawValue> {
    let error = json!({"code": INVALID_PARAMS, "message": "the agent did not answer"});
    RawValue::from_string(error.to_string()).expect("INVARIANT: an object is written")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(number: i64, name: Option<&str>) -> Question {
        Question {
            number,
            name: name.map(str::to_owned),
            asked: "{}".to_owned(),
        }
    }

    fn call(rounds: u64, said: mpsc::Receiver<Vec<u8>>) -> Call {
        Call {
            said,
            stop: Stop::new(),
            rounds,
            questions: Vec::new(),
            said_before: HashMap::new(),
        }
    }

    #[test]
    fn a_question_without_a_name_gets_one_that_nobody_has() {
        let asked = [
            question(5, None),
            question(6, Some("q5")),
            question(7, Some("q5_")),
            question(8, None),
        ];
        let said = RawValue::from_string("{}".to_owned()).unwrap();
        let said_before = HashMap::from([("q8".to_owned(), said)]);
        let names = names(&asked, &said_before);
        assert_eq!(names, ["q5__", "q5", "q5_", "q8_"]);
    }

    #[test]
    fn an_agent_is_told_what_it_asked_for_and_only_while_it_is_there() {
        let mut rounds = Rounds::default();
        let (back, said) = Outbox::new();
        let own = rounds.begin(back.downgrade(), Some("warning"));
        assert!(rounds.tell("warning", b"told"));
        assert!(rounds.tell("emergency", b"told"));
        for level in ["info", "", "loud"] {
            assert!(!rounds.tell(level, b"not told"), "{level}");
        }
        rounds.park("state".to_owned(), call(own, said));
        assert!(!rounds.tell("error", b"not told"));
        assert!(rounds.ask(1, b"asked", &Beside::default()));
        let mut call = rounds.take("state").unwrap();
        assert!(rounds.tell("error", b"told"));
        let mut heard = Vec::new();
        while let Ok(said) = call.said.try_recv() {
            heard.push(String::from_utf8(said).unwrap());
        }
        assert_eq!(heard, ["told", "told", "asked", "told"]);
    }

    #[test]
    fn a_question_that_finds_nobody_leaves_no_name() {
        let mut rounds = Rounds::default();
        let (back, said) = Outbox::new();
        let beside = Beside {
            rounds: Some(rounds.begin(back.downgrade(), None)),
            question: Some("place".to_owned()),
            ..Beside::default()
        };
        assert!(rounds.ask(1, b"asked", &beside));
        assert_eq!(rounds.names.len(), 1);
        drop(said);
        assert!(!rounds.ask(2, b"asked", &beside));
        assert_eq!(rounds.names.len(), 1);
    }
}
