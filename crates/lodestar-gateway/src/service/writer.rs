//! The one thread that decides: it has the store and the event log to itself, and answers many at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use lodestar_core::defence::Defence;
use lodestar_core::device::{DeviceLevel, DeviceSettings};
use lodestar_core::event::EventType;
use lodestar_core::id::DeviceId;
use lodestar_log::Clock;
use serde_json::json;

use super::desk::{Coming, Desk, Memory, Stop, Work};
use super::journal::Journal;
use super::known::Known;
use super::ladder;
use super::report::Report;
use crate::code::Code;
use crate::store::{Sql, StoreError, devices as rows, nonces, strikes};

/// Pieces of work that share a transaction, at most: more would keep the first waiting for the last.
const BATCH: usize = 256;

/// Devices that are looked at in one go, between requests.
const SWEPT: usize = 128;

/// How long recorded events may wait for the log while there is other work.
const UNLOGGED: Duration = Duration::from_millis(25);

/// How long until that is tried again, if the database would not give them.
const AGAIN: Duration = Duration::from_secs(1);

/// How many old nonces and strikes are forgotten at a time.
const FORGOTTEN: usize = 512;

pub(super) struct Writer {
    pub(super) sql: Box<dyn Sql>,
    pub(super) journal: Journal,
    pub(super) clock: Clock,
    pub(super) settings: DeviceSettings,
    pub(super) known: Arc<Known>,
    pub(super) work: Receiver<Coming>,
    pub(super) sweep_every: Duration,
    pub(super) memory: Memory,
    pub(super) report: Report,
    /// Told when the log failed: from then on nothing is decided.
    pub(super) failed: Arc<std::sync::atomic::AtomicBool>,
    /// What a harness has taken out.
    pub(super) without: Arc<[Defence]>,
}

/// How far a sweep has come.
struct Sweep {
    due: Instant,
    /// Where it goes on; nowhere, while none is under way.
    at: Option<(usize, Option<DeviceId>)>,
}

/// The levels that something can be due on without anybody's asking.
const SWEPT_LEVELS: [DeviceLevel; 4] = [
    DeviceLevel::Trusted,
    DeviceLevel::Approved,
    DeviceLevel::Offline,
    DeviceLevel::Unhealthy,
];

impl Writer {
    /// Works until nobody is left who could ask; then everything is in the log.
    pub(super) fn run(mut self) {
        let mut sweep = Sweep {
            due: Instant::now(),
            at: None,
        };
        // When what is recorded goes into the log.
        let mut log_at = Instant::now();
        loop {
            let wait = match (sweep.at, self.memory.recorded) {
                (Some(_), _) => Duration::ZERO,
                (None, true) => log_at.saturating_duration_since(Instant::now()),
                (None, false) => sweep.due.saturating_duration_since(Instant::now()),
            };
            match self.work.recv_timeout(wait) {
                Ok(Coming::Work(first)) => {
                    if self.batch(first) {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Coming::End) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.memory.recorded && Instant::now() >= log_at {
                let pause = match self.log() {
                    true => UNLOGGED,
                    false => AGAIN,
                };
                log_at = Instant::now() + pause;
            }
            self.sweep(&mut sweep);
        }
        while let Ok(Coming::Work(first)) = self.work.try_recv() {
            self.batch(first);
        }
        self.say_stopped();
        self.log();
        // What cannot be closed now is closed by the next start.
        let _ = self.journal.close("the service ended");
    }

    fn desk(&mut self) -> Desk<'_> {
        Desk {
            sql: self.sql.as_mut(),
            now: self.clock.now(),
            settings: &self.settings,
            known: &self.known,
            memory: &mut self.memory,
            without: &self.without,
        }
    }

    /// Does what waits, in one transaction, and then tells everybody. Whether it was the last.
    fn batch(&mut self, first: Box<dyn Work>) -> bool {
        let mut batch = vec![first];
        let mut last = false;
        while batch.len() < BATCH && !last {
            match self.work.try_recv() {
                Ok(Coming::Work(work)) => batch.push(work),
                Ok(Coming::End) => last = true,
                Err(_) => break,
            }
        }
        let failed = self.failed.load(std::sync::atomic::Ordering::Acquire);
        let done = match failed {
            true => Err(()),
            false => self.transact(&mut batch),
        };
        if done.is_err() {
            self.known.forget_all();
            self.memory.forget();
            for work in &mut batch {
                work.fail(Code::Unavailable);
            }
        }
        for work in batch {
            work.answer();
        }
        last
    }

    fn transact(&mut self, batch: &mut [Box<dyn Work>]) -> Result<(), ()> {
        let done = self.sql.begin().and_then(|()| {
            for work in batch {
                self.one(work.as_mut())?;
            }
            self.forget_nonces()?;
            self.sql.commit()
        });
        done.map_err(|problem| {
            // Whoever asked is told; whoever runs the service reads this.
            self.report.say(&problem.to_string());
            let _ = self.sql.rollback();
        })
    }

    /// Does one piece; what goes wrong with it is its own, unless the database itself does.
    fn one(&mut self, work: &mut dyn Work) -> Result<(), StoreError> {
        self.sql.savepoint()?;
        let recorded = self.memory.recorded;
        let mut desk = self.desk();
        let done = catch_unwind(AssertUnwindSafe(|| work.work(&mut desk)));
        match done {
            Ok(Ok(true)) => return self.sql.release(),
            Ok(Ok(false)) => {}
            Ok(Err(StoreError::Refused(problem))) => {
                self.report.say(&format!("the database refused: {problem}"));
                work.fail(Code::Internal);
            }
            Ok(Err(problem)) => {
                self.report.say(&problem.to_string());
                work.fail(Code::Unavailable);
            }
            Err(_) => work.fail(Code::Internal),
        }
        self.memory.recorded = recorded;
        self.memory.forget();
        self.sql.rollback_to()
    }

    /// Forgets old nonces about as fast as new ones come.
    fn forget_nonces(&mut self) -> Result<(), StoreError> {
        let fresh = std::mem::take(&mut self.memory.nonces);
        if fresh == 0 {
            return Ok(());
        }
        let desk = self.desk();
        let before = desk.ago(desk.settings.nonces_kept);
        desk.sql.act_as_server()?;
        nonces::prune(desk.sql, before, fresh * 2)?;
        Ok(())
    }

    /// Puts what was recorded into the log; whether that could be done. A log that takes nothing more ends
    /// everything.
    fn log(&mut self) -> bool {
        loop {
            match self.journal.drain(self.sql.as_mut()) {
                Ok(drained) if drained.more => {}
                Ok(_) => {
                    self.memory.recorded = false;
                    return true;
                }
                Err(super::journal::JournalError::Store(problem)) => {
                    // It waits in the outbox, and is tried again.
                    self.report.say(&problem.to_string());
                    let _ = self.sql.rollback();
                    return false;
                }
                Err(problem) => {
                    let problem = format!("{problem}; nothing is decided any more");
                    self.report.say(&problem);
                    self.failed
                        .store(true, std::sync::atomic::Ordering::Release);
                    self.memory.recorded = false;
                    return false;
                }
            }
        }
    }

    /// Records that everything that was asked was answered.
    fn say_stopped(&mut self) {
        let mut desk = self.desk();
        let said = desk
            .sql
            .begin()
            .and_then(|()| desk.sql.act_as_server())
            .and_then(|()| desk.record(EventType::GATEWAY_STOPPED, &json!({"answered": true})))
            .and_then(|()| desk.sql.commit());
        if said.is_err() {
            let _ = self.sql.rollback();
        }
    }

    /// Looks at some devices for what is due, and where it goes on.
    fn sweep(&mut self, sweep: &mut Sweep) {
        let (level, after) = match sweep.at {
            Some(at) => at,
            None if Instant::now() >= sweep.due => (0, None),
            None => return,
        };
        if self.failed.load(std::sync::atomic::Ordering::Acquire) {
            sweep.due = Instant::now() + self.sweep_every;
            return;
        }
        let swept = self.sweep_some(SWEPT_LEVELS[level], after);
        sweep.at = match swept {
            Ok(Some(last)) => Some((level, Some(last))),
            Ok(None) if level + 1 < SWEPT_LEVELS.len() => Some((level + 1, None)),
            Ok(None) => None,
            Err(problem) => {
                self.report.say(&problem.to_string());
                let _ = self.sql.rollback();
                self.known.forget_all();
                self.memory.forget();
                None
            }
        };
        if sweep.at.is_none() {
            sweep.due = Instant::now() + self.sweep_every;
        }
    }

    fn sweep_some(
        &mut self,
        level: DeviceLevel,
        after: Option<DeviceId>,
    ) -> Result<Option<DeviceId>, StoreError> {
        self.sql.begin()?;
        let report = self.report.clone();
        let mut desk = self.desk();
        desk.sql.act_as_server()?;
        let found = rows::at_level(desk.sql, level, after, SWEPT)?;
        let last = (found.len() == SWEPT).then(|| found.last().map(|device| device.id));
        for mut device in found {
            if !ladder::is_due(&mut desk, &device)? {
                continue;
            }
            // What cannot be done for one is no reason to leave the others.
            desk.sql.savepoint()?;
            desk.sql.act_as_server()?;
            match ladder::settle(&mut desk, &mut device) {
                Ok(()) => desk.sql.release()?,
                Err(problem) => {
                    desk.sql.rollback_to()?;
                    if let Stop::Store(problem) = problem {
                        report.say(&format!("device `{}`: {problem}", device.id));
                    }
                }
            }
            desk.sql.act_as_server()?;
        }
        if level == SWEPT_LEVELS[0] && after.is_none() {
            let before = desk.ago(desk.settings.nonces_kept);
            nonces::prune(desk.sql, before, FORGOTTEN)?;
            let before = desk.ago(desk.settings.strikes_kept());
            strikes::prune(desk.sql, before, FORGOTTEN)?;
        }
        self.sql.commit()?;
        Ok(last.flatten())
    }
}
