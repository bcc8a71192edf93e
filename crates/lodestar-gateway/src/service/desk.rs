//! Where requests are decided: one at a time, by one thread, in transactions that many of them share.

use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_core::device::DeviceSettings;
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::time::Timestamp;
use serde::Serialize;
use tokio::sync::oneshot;

use super::known::{Identity, Known};
use crate::code::{Code, Refusal};
use crate::store::{Sql, StoreError, control, outbox, tokens};

/// Why a piece of work ends without a result.
#[derive(Debug)]
pub(super) enum Stop {
    /// It is refused: what it did is taken back, and whoever asked is told.
    Refused(Box<Refusal>),
    /// The store failed.
    Store(StoreError),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<Code> for Stop {
    fn from(code: Code) -> Self {
        Refusal::of(code).into()
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What a piece of work has before it.
pub(super) struct Desk<'a> {
    pub(super) sql: &'a mut dyn Sql,
    /// The moment at which it is decided.
    pub(super) now: Timestamp,
    pub(super) settings: &'a DeviceSettings,
    pub(super) known: &'a Known,
    pub(super) memory: &'a mut Memory,
    pub(super) without: &'a [Defence],
}

/// What the deciding thread remembers between requests.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// How the kill switch stands; unknown after a failure.
    kill_switch: Option<bool>,
    /// Whether there is something for the log.
    pub(super) recorded: bool,
    /// Nonces that were noted and not yet outweighed by forgotten ones.
    pub(super) nonces: usize,
}

impl Memory {
    /// Of a service that began, and has that to record.
    pub(super) fn begun() -> Self {
        Self {
            recorded: true,
            ..Self::default()
        }
    }

    /// After a failure, nothing that was remembered is sure.
    pub(super) fn forget(&mut self) {
        self.kill_switch = None;
    }
}

impl Desk<'_> {
    /// Whether a harness has taken this out.
    pub(super) fn lacks(&self, defence: Defence) -> bool {
        self.without.contains(&defence)
    }

    /// Records an event, in the same transaction as what it tells of.
    pub(super) fn record(
        &mut self,
        kind: EventType,
        payload: &impl Serialize,
    ) -> Result<(), StoreError> {
        let payload = serde_json::to_string(payload).unwrap_or_else(|_| "{}".to_owned());
        outbox::push(self.sql, kind.as_str(), &payload, self.now)?;
        self.memory.recorded = true;
        Ok(())
    }

    /// Goes on in the name of whoever asks, if their token still opens anything.
    pub(super) fn act_for(&mut self, identity: &Identity) -> Result<(), Stop> {
        let token = match self.known.token(identity.hash) {
            Some(token) => Some(token),
            None => self.look_up(identity.hash)?,
        };
        match token {
            Some(token) if token.is_open(self.now) => {}
            _ => return Err(Code::TokenInvalid.into()),
        }
        Ok(self.sql.act_for(identity.account)?)
    }

    /// Whose a token is, from the store.
    pub(super) fn look_up(&mut self, hash: Digest) -> Result<Option<tokens::Token>, StoreError> {
        self.sql.act_as_server()?;
        let token = tokens::by_hash(self.sql, hash)?;
        if let Some(token) = &token {
            self.known.remember_token(token.clone());
        }
        Ok(token)
    }

    /// Whether all signing is stopped.
    pub(super) fn kill_switch(&mut self) -> Result<bool, StoreError> {
        if let Some(known) = self.memory.kill_switch {
            return Ok(known);
        }
        let on = control::get(self.sql)?.kill_switch;
        self.memory.kill_switch = Some(on);
        Ok(on)
    }

    pub(super) fn set_kill_switch(&mut self, on: bool, reason: &str) -> Result<(), StoreError> {
        // Until it lasts, it is not remembered.
        self.memory.kill_switch = None;
        control::set(self.sql, on, self.now, reason)
    }

    /// The moment so long ago.
    pub(super) fn ago(&self, long: Duration) -> Timestamp {
        let micros = i64::try_from(long.as_micros()).unwrap_or(i64::MAX);
        let then = self.now.unix_micros().saturating_sub(micros).max(0);
        Timestamp::from_unix_micros(then).unwrap_or(Timestamp::MIN)
    }
}

/// Random bytes from the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Refusal> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Refusal::of(Code::Internal))?;
    Ok(bytes)
}

/// What an id is made of.
pub(super) fn id_parts(now: Timestamp) -> Result<(u64, [u8; 10]), Refusal> {
    let millis = u64::try_from(now.unix_micros() / 1000).unwrap_or_default();
    Ok((millis, random()?))
}

/// Makes an id of a type.
macro_rules! new_id {
    ($id:ty, $now:expr) => {{
        let (millis, random) = $crate::service::desk::id_parts($now)?;
        <$id>::from_parts(millis, random)
    }};
}

pub(super) use new_id;

/// A piece of work for the desk.
pub(super) trait Work: Send {
    /// Does it, within an open savepoint. Whether what it did is to be kept; an error is the database's.
    fn work(&mut self, desk: &mut Desk<'_>) -> Result<bool, StoreError>;

    /// It went wrong in a way that is nobody's fault who asked.
    fn fail(&mut self, code: Code);

    /// Tells whoever waits.
    fn answer(self: Box<Self>);
}

/// A piece of work that somebody waits for.
pub(super) struct Job<F, T> {
    work: Option<F>,
    outcome: Result<T, Refusal>,
    reply: oneshot::Sender<Result<T, Refusal>>,
}

impl<F, T> Job<F, T> {
    pub(super) fn new(work: F, reply: oneshot::Sender<Result<T, Refusal>>) -> Self {
        Self {
            work: Some(work),
            outcome: Err(Refusal::of(Code::Unavailable)),
            reply,
        }
    }
}

impl<F, T> Work for Job<F, T>
where
    F: FnOnce(&mut Desk<'_>) -> Result<T, Stop> + Send,
    T: Send,
{
    fn work(&mut self, desk: &mut Desk<'_>) -> Result<bool, StoreError> {
        // Whoever no longer waits is not worked for.
        let Some(work) = self.work.take().filter(|_| !self.reply.is_closed()) else {
            return Ok(false);
        };
        match work(desk) {
            Ok(value) => {
                self.outcome = Ok(value);
                Ok(true)
            }
            Err(Stop::Refused(refusal)) => {
                self.outcome = Err(*refusal);
                Ok(false)
            }
            Err(Stop::Store(error)) => Err(error),
        }
    }

    fn fail(&mut self, code: Code) {
        self.outcome = Err(Refusal::of(code));
    }

    fn answer(self: Box<Self>) {
        let _ = self.reply.send(self.outcome);
    }
}

/// What comes to the desk.
pub(super) enum Coming {
    /// Something to decide.
    Work(Box<dyn Work>),
    /// Nothing more.
    End,
}
