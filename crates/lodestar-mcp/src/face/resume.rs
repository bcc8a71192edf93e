//! Answers in events that can be taken up again: they are followed to their end whoever reads them, and a
//! client whose connection broke off hears the rest of exactly that answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use axum::body::Bytes;
use tokio::sync::mpsc;

use super::attended::{Busy, is_last};
use super::body::{EventId, Written};

/// How many messages of one answer are kept, and how many bytes they may take; the newest is always kept.
const KEPT: usize = 256;
const KEPT_BYTES: usize = 4 << 20;

/// How many answers that are complete are kept for one client, and how many bytes they may take together;
/// the newest is always kept.
const COMPLETE: usize = 32;
const COMPLETE_BYTES: usize = 4 << 20;

/// What waits to be read by whoever reads an answer.
const AHEAD: usize = 16;

/// The answers of one client, the newest last.
#[derive(Debug, Default)]
pub(super) struct Answers(VecDeque<Answer>);

/// One answer, as far as others know it.
#[derive(Debug)]
struct Answer {
    stream: u64,
    attaching: mpsc::Sender<Attached>,
    size: Arc<Size>,
}

/// What an answer takes, which of its messages are kept, and whether all of it is there.
#[derive(Debug, Default)]
struct Size {
    bytes: AtomicUsize,
    oldest: AtomicU64,
    newest: AtomicU64,
    is_complete: AtomicBool,
}

/// Whoever reads from now on, and which message they heard last.
#[derive(Debug)]
struct Attached {
    behind: u64,
    out: mpsc::Sender<Written>,
}

/// Where an answer begins.
#[derive(Debug)]
pub(super) enum Beginning {
    /// With a word that names it, so that it can be taken up again before it says anything.
    Named,
    /// With this message, or with nothing.
    Message(Option<Vec<u8>>),
}

/// An answer on its way.
struct Followed {
    stream: u64,
    kept: VecDeque<(u64, Bytes)>,
    next: u64,
    /// The message that went out last.
    sent: u64,
    out: Option<mpsc::Sender<Written>>,
    size: Arc<Size>,
}

impl Answers {
    /// Follows an answer to its end; gives what its first reader reads.
    pub(super) fn follow(
        &mut self,
        stream: u64,
        beginning: Beginning,
        written: mpsc::Receiver<Vec<u8>>,
        busy: Busy,
    ) -> mpsc::Receiver<Written> {
        let (out, read) = mpsc::channel(AHEAD);
        let (attaching, attached) = mpsc::channel(1);
        let size = Arc::new(Size::default());
        let mut followed = Followed {
            stream,
            kept: VecDeque::new(),
            next: 0,
            sent: 0,
            out: Some(out.clone()),
            size: Arc::clone(&size),
        };
        match beginning {
            Beginning::Named => {
                let id = EventId { stream, number: 0 };
                // There is room: nothing was written before.
                let _ = out.try_send(Written::Named(id));
            }
            Beginning::Message(first) => {
                if let Some(first) = first {
                    followed.keep(first);
                }
            }
        }
        drop(out);
        tokio::spawn(followed.run(written, attached, busy));
        self.make_room();
        self.0.push_back(Answer {
            stream,
            attaching,
            size,
        });
        read
    }

    /// Takes an answer up again, behind the message that was heard last; none where nothing of it is kept.
    pub(super) fn resume(&self, last: EventId) -> Option<mpsc::Receiver<Written>> {
        let answer = self.0.iter().find(|answer| answer.stream == last.stream)?;
        if !answer.size.keeps_behind(last.number) {
            return None;
        }
        let (out, read) = mpsc::channel(AHEAD);
        let attached = Attached {
            behind: last.number,
            out,
        };
        answer.attaching.try_send(attached).ok()?;
        Some(read)
    }

    /// Whoever wants something of them finds nothing any more.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    fn make_room(&mut self) {
        loop {
            let complete = |answer: &&Answer| answer.size.is_complete.load(Ordering::Acquire);
            let all = self.0.iter().filter(complete);
            let bytes: usize = all
                .clone()
                .map(|answer| answer.size.bytes.load(Ordering::Relaxed))
                .sum();
            let count = all.count();
            if count < COMPLETE && (bytes <= COMPLETE_BYTES || count < 2) {
                return;
            }
            match self.0.iter().position(|answer| complete(&answer)) {
                Some(oldest) => drop(self.0.remove(oldest)),
                None => return,
            }
        }
    }
}

impl Size {
    /// Whether this message was written, and all that came behind it is kept.
    fn keeps_behind(&self, number: u64) -> bool {
        number <= self.newest.load(Ordering::Relaxed)
            && number + 1 >= self.oldest.load(Ordering::Relaxed)
    }
}

impl Followed {
    /// Until nobody can take it up again.
    async fn run(
        mut self,
        mut written: mpsc::Receiver<Vec<u8>>,
        mut attaching: mpsc::Receiver<Attached>,
        busy: Busy,
    ) {
        let mut busy = Some(busy);
        loop {
            if let (Some((id, message)), Some(out)) = (self.unsent(), self.out.clone()) {
                let event = Written::Message {
                    id: Some(EventId {
                        stream: self.stream,
                        number: id,
                    }),
                    message,
                };
                tokio::select! {
                    biased;
                    attached = attaching.recv() => match attached {
                        Some(attached) => self.attach(attached),
                        None => return,
                    },
                    sent = out.send(event) => match sent {
                        Ok(()) => self.sent = id,
                        Err(_) => self.out = None,
                    },
                }
                continue;
            }
            if busy.is_none() {
                // All of it went out, or waits for whoever comes back.
                self.out = None;
            }
            tokio::select! {
                attached = attaching.recv() => match attached {
                    Some(attached) => self.attach(attached),
                    None => return,
                },
                message = written.recv(), if busy.is_some() => {
                    // Without a last message, it was cancelled.
                    let is_last = message.as_deref().is_none_or(is_last);
                    if let Some(message) = message {
                        self.keep(message);
                    }
                    if is_last {
                        self.size.is_complete.store(true, Ordering::Release);
                        busy = None;
                    }
                }
                () = closed(self.out.as_ref()), if self.out.is_some() => self.out = None,
            }
        }
    }

    fn unsent(&self) -> Option<(u64, Bytes)> {
        let mut kept = self.kept.iter();
        kept.find(|(id, _)| *id > self.sent).cloned()
    }

    fn attach(&mut self, attached: Attached) {
        // What was kept a moment ago may be gone; whoever asked finds an end instead of a gap.
        if self.size.keeps_behind(attached.behind) {
            self.sent = attached.behind;
            self.out = Some(attached.out);
        }
    }

    fn keep(&mut self, message: Vec<u8>) {
        self.next += 1;
        self.kept.push_back((self.next, message.into()));
        let mut bytes: usize = self.kept.iter().map(|(_, kept)| kept.len()).sum();
        while self.kept.len() > KEPT || (bytes > KEPT_BYTES && self.kept.len() > 1) {
            if let Some((_, gone)) = self.kept.pop_front() {
                bytes -= gone.len();
            }
        }
        self.size.bytes.store(bytes, Ordering::Relaxed);
        self.size.newest.store(self.next, Ordering::Relaxed);
        let oldest = self.kept.front().map_or(0, |(id, _)| *id);
        self.size.oldest.store(oldest, Ordering::Relaxed);
    }
}

async fn closed(out: Option<&mpsc::Sender<Written>>) {
    match out {
        Some(out) => out.closed().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_up_only_where_nothing_is_missing_behind() {
        let mut followed = Followed {
            stream: 1,
            kept: VecDeque::new(),
            next: 0,
            sent: 0,
            out: None,
            size: Arc::default(),
        };
        assert!(followed.size.keeps_behind(0));
        assert!(!followed.size.keeps_behind(1));
        for _ in 0..KEPT + 2 {
            followed.keep(b"{}".to_vec());
        }
        let newest = followed.next;
        for (number, is_kept) in [
            (0, false),
            (1, false),
            (2, true),
            (newest, true),
            (newest + 1, false),
            (u64::MAX, false),
        ] {
            let (out, _read) = mpsc::channel(1);
            followed.out = None;
            followed.attach(Attached {
                behind: number,
                out,
            });
            assert_eq!(followed.out.is_some(), is_kept, "{number}");
        }
    }
}
