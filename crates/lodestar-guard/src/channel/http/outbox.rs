//! What is on its way to the server: one thing after another, each until it is there.
//!
//! Of each request only the latest word is kept, so that nothing old overtakes it. Whoever put
//! something in may wait for it a little; the outbox goes on without them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use tokio::sync::{Notify, oneshot};

use super::answer::AnswerId;
use super::outward::Outward;
use crate::channel::Closing;

/// Most notices that wait; older ones are let go, since the log has them all.
const MOST_NOTICES: usize = 100;

/// Something for the server.
#[derive(Debug)]
pub(super) enum Letter {
    Announce(RequestId, Outward),
    Withdraw(RequestId, Closing),
    /// A request of another session is over.
    ClearAway(SessionId, RequestId, Closing),
    Notice(Outward),
    Consume(AnswerId),
}

impl Letter {
    /// The session that it is about, where that is another one than the channel serves.
    pub(super) fn other_session(&self) -> Option<&SessionId> {
        match self {
            Self::ClearAway(session, ..) => Some(session),
            Self::Announce(..) | Self::Withdraw(..) | Self::Notice(_) | Self::Consume(_) => None,
        }
    }
}

/// What a letter is about. Of two about the same thing, the later one counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Request(RequestId),
    Abandoned(SessionId, RequestId),
    Notice(u64),
    Answer(AnswerId),
}

/// A letter that is being sent.
#[derive(Debug)]
pub(super) struct Sending {
    about: About,
    number: u64,
    pub(super) letter: Arc<Letter>,
}

/// What came of a letter, for whoever waits for it. It is dropped when a later one took its place.
pub(super) type Receipt = oneshot::Receiver<Result<(), String>>;

#[derive(Debug)]
struct Waiting {
    number: u64,
    letter: Arc<Letter>,
    receipt: Option<oneshot::Sender<Result<(), String>>>,
}

#[derive(Debug, Default)]
struct Inside {
    order: VecDeque<About>,
    letters: BTreeMap<About, Waiting>,
    count: u64,
    /// Why nothing gets through at the moment.
    stuck: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    inside: Mutex<Inside>,
    bell: Notify,
}

impl Outbox {
    /// Puts a letter in. There is no use in waiting for it while nothing gets through.
    pub(super) fn put(&self, letter: Letter) -> Result<Receipt, String> {
        let mut inside = self.inside();
        inside.count += 1;
        let number = inside.count;
        let about = match &letter {
            Letter::Announce(request, _) | Letter::Withdraw(request, _) => About::Request(*request),
            Letter::ClearAway(session, request, _) => About::Abandoned(session.clone(), *request),
            Letter::Notice(_) => About::Notice(number),
            Letter::Consume(answer) => About::Answer(answer.clone()),
        };
        let (sender, receipt) = oneshot::channel();
        let waiting = Waiting {
            number,
            letter: Arc::new(letter),
            receipt: Some(sender),
        };
        if inside.letters.insert(about.clone(), waiting).is_none() {
            inside.enqueue(about);
        }
        inside.let_notices_go();
        self.bell.notify_one();
        match &inside.stuck {
            Some(problem) => Err(problem.clone()),
            None => Ok(receipt),
        }
    }

    /// The next letter; it stays in until it is told what came of it.
    pub(super) async fn first(&self) -> Sending {
        loop {
            let rung = self.bell.notified();
            if let Some(sending) = self.inside().first() {
                return sending;
            }
            rung.await;
        }
    }

    /// It is there, or will never be: it goes.
    pub(super) fn done(&self, sending: Sending, came: Result<(), String>) {
        let mut inside = self.inside();
        inside.stuck = None;
        let Some(waiting) = inside.letters.get_mut(&sending.about) else {
            return;
        };
        if waiting.number != sending.number {
            // A later one took its place.
            return;
        }
        if let Some(receipt) = waiting.receipt.take() {
            let _ = receipt.send(came);
        }
        inside.letters.remove(&sending.about);
        inside.order.retain(|about| *about != sending.about);
    }

    /// It did not get through: it stays, behind the others.
    pub(super) fn failed(&self, sending: &Sending, problem: String) {
        let mut inside = self.inside();
        inside.order.retain(|about| *about != sending.about);
        if inside.letters.contains_key(&sending.about) {
            inside.order.push_back(sending.about.clone());
        }
        let receipts: Vec<_> = inside.letters.values_mut().collect();
        for waiting in receipts {
            if let Some(receipt) = waiting.receipt.take() {
                let _ = receipt.send(Err(problem.clone()));
            }
        }
        inside.stuck = Some(problem);
    }

    /// Somebody waited longer than they should have to.
    pub(super) fn is_slow(&self, problem: String) {
        self.inside().stuck.get_or_insert(problem);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // What is inside is whole between any two statements.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Nobody waits for what is abandoned: whatever else there is goes before it.
    fn enqueue(&mut self, about: About) {
        let is_abandoned = |about: &About| matches!(about, About::Abandoned(..));
        let end = match is_abandoned(&about) {
            true => None,
            false => self.order.iter().position(is_abandoned),
        };
        let end = end.unwrap_or(self.order.len());
        self.order.insert(end, about);
    }

    fn first(&self) -> Option<Sending> {
        let about = self.order.front()?;
        let waiting = self.letters.get(about)?;
        Some(Sending {
            about: about.clone(),
            number: waiting.number,
            letter: Arc::clone(&waiting.letter),
        })
    }

    fn let_notices_go(&mut self) {
        let is_notice = |about: &&About| matches!(about, About::Notice(_));
        if self.order.iter().filter(is_notice).count() <= MOST_NOTICES {
            return;
        }
        if let Some(oldest) = self.order.iter().find(is_notice).cloned() {
            self.letters.remove(&oldest);
            self.order.retain(|about| *about != oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64) -> RequestId {
        RequestId::from_parts(number, [0; 10])
    }

    #[tokio::test]
    async fn the_latest_word_on_a_request_is_the_one_that_is_sent() {
        let outbox = Outbox::default();
        let first = outbox
            .put(Letter::Withdraw(request(1), Closing::Denied))
            .unwrap();
        let sending = outbox.first().await;
        let second = outbox
            .put(Letter::Withdraw(request(1), Closing::Expired))
            .unwrap();
        assert!(first.await.is_err(), "nobody waits for what was overtaken");
        outbox.done(sending, Ok(()));
        let sending = outbox.first().await;
        let later = matches!(*sending.letter, Letter::Withdraw(_, Closing::Expired));
        assert!(later, "{:?}", sending.letter);
        outbox.done(sending, Ok(()));
        assert_eq!(second.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn what_fails_stays_behind_the_others_and_nobody_waits_meanwhile() {
        let outbox = Outbox::default();
        let receipts = [1, 2].map(|number| {
            let letter = Letter::Withdraw(request(number), Closing::Spent);
            outbox.put(letter).unwrap()
        });
        let sending = outbox.first().await;
        outbox.failed(&sending, "away".into());
        for receipt in receipts {
            assert_eq!(receipt.await.unwrap(), Err("away".into()));
        }
        let third = outbox.put(Letter::Withdraw(request(3), Closing::Spent));
        assert_eq!(third.unwrap_err(), "away");
        let mut sent = Vec::new();
        for _ in 0..3 {
            let sending = outbox.first().await;
            if let Letter::Withdraw(request, _) = &*sending.letter {
                sent.push(*request);
            }
            outbox.done(sending, Ok(()));
        }
        assert_eq!(sent, [2, 1, 3].map(request));
    }

    #[tokio::test]
    async fn what_is_abandoned_goes_last_and_is_told_apart_by_its_session() {
        let outbox = Outbox::default();
        for session in ["one", "two"] {
            let session = session.parse().unwrap();
            let letter = Letter::ClearAway(session, request(1), Closing::Spent);
            outbox.put(letter).unwrap();
        }
        let own = Letter::Withdraw(request(1), Closing::Spent);
        outbox.put(own).unwrap();
        let mut sent = Vec::new();
        for _ in 0..3 {
            let sending = outbox.first().await;
            let session = sending.letter.other_session();
            sent.push(session.map(ToString::to_string));
            outbox.done(sending, Ok(()));
        }
        assert_eq!(sent, [None, Some("one".into()), Some("two".into())]);
    }

    #[test]
    fn notices_do_not_pile_up() {
        let outbox = Outbox::default();
        for _ in 0..1_000 {
            let notice = crate::channel::Notice {
                session: "s".parse().unwrap(),
                at: lodestar_core::time::Timestamp::MAX,
                what: String::new(),
            };
            let limit = super::super::Limit {
                ceiling: lodestar_core::sensitivity::Sensitivity::Public,
                session: lodestar_core::sensitivity::Sensitivity::Public,
            };
            let _ = outbox.put(Letter::Notice(Outward::notice(&notice, limit).unwrap()));
        }
        assert_eq!(outbox.inside().letters.len(), MOST_NOTICES);
        assert_eq!(outbox.inside().order.len(), MOST_NOTICES);
    }
}
