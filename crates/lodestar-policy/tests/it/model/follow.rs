//! What each step does.

use super::law::Law;
use super::machine::{Configured, Machine, Post, Step, Wrong};
use super::state::{
    Asked, At, Closing, END, Fold, Permit, Process, Record, SLOTS, Said, Standing, State, TWO, Word,
};

impl Machine {
    /// The state after a step that can happen.
    pub(crate) fn follow(&self, before: &State, step: Step) -> State {
        let mut state = before.clone();
        let after = &mut state;
        match step {
            Step::Call(c, process) => {
                after.calls[c].process = process;
                after.calls[c].left -= 1;
                self.ask(after, c);
            }
            Step::Open(c) => self.open(after, c),
            Step::Announce(c) => {
                if let At::Opened(r) = after.calls[c].at {
                    after.calls[c].at = At::Waiting(r);
                    self.announce(after, r);
                }
            }
            Step::Look(c) => self.look(after, c),
            Step::Weigh(c) => {
                if let At::Waiting(r) = after.calls[c].at {
                    after.calls[c].at = At::Weighed(r);
                }
            }
            Step::Consume(c) => self.consume(after, c),
            Step::Measure(c) => self.measure(after, c),
            Step::CloseMoved(c) => self.close_moved(after, c),
            Step::Clear(c) => self.clear(after, c),
            Step::Secure(c) => {
                if let At::Cleared(r) = after.calls[c].at {
                    after.calls[c].at = At::Safe(r);
                }
            }
            Step::Run(c) => self.run(after, c),
            Step::End(c) | Step::Leave(c) => self.leave(after, c),
            Step::Sign(r, approver, word) => {
                after.words[r][approver][word as usize] = Said::Waits;
                after.budget.words -= 1;
                if self.scenario.post == Post::Swift {
                    self.hear(after, r, approver, word);
                }
            }
            Step::Hear(r, approver, word) => self.hear(after, r, approver, word),
            Step::Confirm => after.confirmed = true,
            Step::Sync(log) => self.sync(after, log),
            Step::Crash(process, left) => self.crash(after, process, left),
            Step::Close(process) => self.close(after, process),
            Step::Start(process, configured) => self.start_again(after, process, configured),
            Step::Tick => after.clock += 1,
            Step::WorldMoves => {
                after.world ^= 1;
                after.budget.moves -= 1;
            }
        }
        state
    }

    /// Sweeps, then joins the request that asks for the act already, or gets ready to open one.
    fn ask(&self, state: &mut State, c: usize) {
        let process = state.calls[c].process;
        self.sweep(state, process);
        let act = self.scenario.acts[c];
        let joined = self.desk(state, process).joined[usize::from(act)];
        let in_time = |r: &usize| state.asked[*r].is_some_and(|asked| state.clock < asked.expires);
        // One whose grants are on their way is among them: they may come back unspent.
        let joined = joined.filter(in_time);
        state.calls[c].at = match joined {
            Some(r) => At::Waiting(r),
            None => At::Looked { world: state.world },
        };
    }

    /// Ends every request whose time is over, unless its grants are on their way.
    fn sweep(&self, state: &mut State, process: usize) {
        if self.is_wrong(Wrong::NobodySweeps) {
            return;
        }
        let live: Vec<usize> = self.desk(state, process).live().collect();
        for r in live {
            let is_over = state.asked[r].is_none_or(|asked| state.clock >= asked.expires);
            if is_over && !self.is_taken(state, process, r) {
                self.write(state, process, Record::Closed(r, Closing::Expired));
            }
        }
    }

    fn open(&self, state: &mut State, c: usize) {
        let call = state.calls[c];
        let At::Looked { world } = call.at else {
            return;
        };
        let free = (0..SLOTS).find(|r| state.asked[*r].is_none());
        let (Some(r), true) = (free, state.clock < END) else {
            state.calls[c].at = At::Idle;
            return;
        };
        state.asked[r] = Some(Asked {
            log: self.home(call.process),
            act: self.scenario.acts[c],
            world,
            expires: state.clock + 1,
            announced: false,
        });
        self.write(state, call.process, Record::Requested(r));
        state.calls[c].at = At::Opened(r);
    }

    fn announce(&self, state: &mut State, r: usize) {
        if let Some(asked) = &mut state.asked[r] {
            asked.announced = true;
        }
    }

    fn look(&self, state: &mut State, c: usize) {
        let call = state.calls[c];
        let At::Waiting(r) = call.at else { return };
        let Some(asked) = state.asked[r] else { return };
        let in_time = state.clock < asked.expires;
        let is_taken = self.is_taken(state, call.process, r);
        state.calls[c].at = match self.desk(state, call.process).heard[r].standing {
            Standing::Granted if is_taken && !self.is_wrong(Wrong::TwoPermitsOfOneGrant) => {
                match in_time {
                    true => call.at,
                    false => At::Idle,
                }
            }
            Standing::Granted if in_time || self.is_wrong(Wrong::ExpiryIsNotLookedAt) => {
                if !in_time {
                    state.broken |= Law::OnlyInTime.bit();
                }
                At::Permitted(r, Permit::Good)
            }
            Standing::Open if in_time => call.at,
            Standing::Over(Closing::Spent | Closing::WorldMoved | Closing::Abandoned) => {
                return match state.clock < END {
                    true => self.ask(state, c),
                    false => state.calls[c].at = At::Idle,
                };
            }
            _ => At::Idle,
        };
    }

    fn consume(&self, state: &mut State, c: usize) {
        let call = state.calls[c];
        let At::Weighed(r) = call.at else { return };
        state.calls[c].at = At::Waiting(r);
        if state.spent && !self.is_wrong(Wrong::LedgerSpendsTwice) {
            return;
        }
        state.spent = true;
        let heard = self.desk(state, call.process).heard[r];
        let in_time = state.asked[r].is_some_and(|asked| state.clock < asked.expires);
        if heard.standing == Standing::Open && in_time {
            self.write(state, call.process, Record::Confirmed(r));
        }
    }

    fn measure(&self, state: &mut State, c: usize) {
        let At::Permitted(r, permit) = state.calls[c].at else {
            return;
        };
        let as_shown = state.asked[r].is_some_and(|asked| asked.world == state.world);
        let passes = as_shown || self.is_wrong(Wrong::WorldIsNotMeasuredAgain);
        if passes && !as_shown {
            state.broken |= Law::AsShown.bit();
        }
        state.calls[c].at = match passes {
            true => At::Measured(r, permit),
            false => At::Moved(r, permit),
        };
    }

    /// The rejection of the call is what ends its request, in one record.
    fn close_moved(&self, state: &mut State, c: usize) {
        let call = state.calls[c];
        let At::Moved(r, permit) = call.at else {
            return;
        };
        state.calls[c].at = At::Idle;
        if permit == Permit::Good {
            self.write(state, call.process, Record::Closed(r, Closing::WorldMoved));
        }
    }

    /// Whoever is about to spend the grants of a request has nothing to spend any more.
    fn revoke(&self, state: &mut State, process: usize, r: usize) {
        for call in &mut state.calls {
            if call.process != process {
                continue;
            }
            match &mut call.at {
                At::Permitted(taken, permit)
                | At::Measured(taken, permit)
                | At::Moved(taken, permit)
                    if *taken == r =>
                {
                    *permit = Permit::Revoked;
                }
                _ => {}
            }
        }
    }

    fn clear(&self, state: &mut State, c: usize) {
        let call = state.calls[c];
        let At::Measured(r, permit) = call.at else {
            return;
        };
        if permit == Permit::Revoked {
            state.calls[c].at = At::Idle;
            return;
        }
        state.calls[c].at = At::Cleared(r);
        self.write(state, call.process, Record::Cleared(r));
    }

    fn run(&self, state: &mut State, c: usize) {
        let call = state.calls[c];
        let (At::Safe(r), Some(asked)) = (call.at, call_request(state, c)) else {
            return;
        };
        state.calls[c].at = At::Ran(r);
        state.ran[r] += 1;
        let mut breaks = |law: Law, is_broken: bool| {
            if is_broken {
                state.broken |= law.bit();
            }
        };
        breaks(Law::AtMostOnce, state.ran[r] > 1);
        let safe = state.logs[asked.log].safe.heard[r];
        let is_spent = safe.standing == Standing::Over(Closing::Spent);
        breaks(Law::RecordedFirst, !is_spent);
        // Not what the desk counted, but what people did.
        let said = |approver: usize| state.words[r][approver][Word::Grant as usize];
        let answered = (0..TWO).filter(|approver| said(*approver) != Said::Nothing);
        let answers = answered.fold(0_u8, |bits, approver| bits | 1 << approver);
        let confirmed = u8::from(state.confirmed && asked.act == 0);
        let is_enough = (answers | confirmed).count_ones() >= self.scenario.quorum
            && (self.scenario.quorum == 1 || answers != 0);
        let is_its_act = asked.act == self.scenario.acts[c];
        breaks(Law::OnlyGranted, !(is_enough && is_its_act));
    }

    /// A call ends. What was cleared gets its end in the log, whether it is known or not.
    fn leave(&self, state: &mut State, c: usize) {
        let call = state.calls[c];
        if let At::Cleared(r) | At::Safe(r) | At::Ran(r) = call.at {
            self.write(state, call.process, Record::Ended(r));
        }
        state.calls[c].at = At::Idle;
    }

    fn hear(&self, state: &mut State, r: usize, approver: usize, word: Word) {
        let Some(asked) = state.asked[r] else { return };
        let has = |p: &Option<Process>| p.as_ref().is_some_and(|p| p.log == asked.log);
        let Some(process) = state.processes.iter().position(has) else {
            return;
        };
        let heard = self.desk(state, process).heard[r];
        let in_time = state.clock < asked.expires;
        let any_act = self.is_wrong(Wrong::GrantsAnyAct);
        let counted = match word {
            Word::Grant => in_time && heard.standing == Standing::Open,
            Word::Stray => any_act && in_time && heard.standing == Standing::Open,
            Word::Deny => in_time && heard.is_live(),
        };
        // Said before, and heard by a session that has been taken up again since.
        let is_repeated = word != Word::Deny && heard.answers & (1 << approver) != 0;
        let counted = counted && !is_repeated;
        if counted && word == Word::Deny {
            self.write(state, process, Record::Denied(r));
            if !self.is_wrong(Wrong::DenyComesTooLateForAPermit) {
                self.revoke(state, process, r);
            }
        } else if counted {
            self.write(state, process, Record::Granted(r, approver));
        }
        let is_hasty = self.is_wrong(Wrong::ChannelForgetsBeforeTheLogKnows);
        // Nothing is lost with a word that does not count.
        state.words[r][approver][word as usize] = match counted && !is_hasty {
            true => Said::Heard,
            false => Said::Kept { counted },
        };
    }

    fn sync(&self, state: &mut State, log: usize) {
        state.logs[log].safe = self.whole(state, log);
        state.logs[log].tail.clear();
        self.each_word(state, log, |said| match said {
            Said::Heard => Said::Kept { counted: true },
            said => said,
        });
    }

    fn each_word(&self, state: &mut State, log: usize, change: impl Fn(Said) -> Said) {
        for r in 0..SLOTS {
            if state.asked[r].is_some_and(|asked| asked.log == log) {
                for said in state.words[r].iter_mut().flatten() {
                    *said = change(*said);
                }
            }
        }
    }

    /// What was not safe may be gone, and what was heard is brought again.
    fn crash(&self, state: &mut State, process: usize, left: usize) {
        let log = self.home(process);
        state.budget.stops -= 1;
        state.logs[log].tail.truncate(left);
        state.logs[log].safe = self.whole(state, log);
        state.logs[log].tail.clear();
        self.stop(state, process);
        self.each_word(state, log, |said| match said {
            Said::Heard => Said::Waits,
            said => said,
        });
        for r in 0..SLOTS {
            let was_asked = state.asked[r].is_some_and(|asked| asked.log == log);
            let is_lost = state.logs[log].safe.heard[r].standing == Standing::Nothing;
            if was_asked && is_lost {
                state.asked[r] = None;
            }
        }
    }

    fn stop(&self, state: &mut State, process: usize) {
        let log = self.home(process);
        state.processes[process] = None;
        state.logs[log].locked = state.processes.iter().flatten().any(|p| p.log == log);
        for call in &mut state.calls {
            if call.process == process {
                call.at = At::Idle;
            }
        }
    }

    fn close(&self, state: &mut State, process: usize) {
        if state.clock < END {
            state.budget.stops -= 1;
        }
        self.sweep(state, process);
        self.sync(state, self.home(process));
        self.stop(state, process);
    }

    /// Takes up the session if somebody can still answer, or spend an answer; ends it otherwise.
    fn start_again(&self, state: &mut State, process: usize, configured: Configured) {
        let log = self.home(process);
        if configured == Configured::Otherwise {
            state.budget.other -= 1;
        }
        let desk = self.remembered(state, log);
        state.processes[process] = Some(Process { log, desk });
        state.logs[log].locked = true;
        let unended = state.logs[log].safe.unended;
        for r in (0..SLOTS).filter(|r| unended & (1 << r) != 0) {
            self.write(state, process, Record::Ended(r));
        }
        let live: Vec<usize> = self.desk(state, process).live().collect();
        let (asked, clock) = (state.asked, state.clock);
        let in_time = |r: &usize| asked[*r].is_some_and(|asked| clock < asked.expires);
        if configured == Configured::Same && live.iter().any(in_time) {
            return self.announce_all(state, &live);
        }
        for r in live {
            let closing = match in_time(&r) {
                true => Closing::Abandoned,
                false => Closing::Expired,
            };
            if !self.is_wrong(Wrong::NobodySweeps) {
                self.write(state, process, Record::Closed(r, closing));
            }
        }
        self.sync(state, log);
        // Never the first again, and never the one before.
        state.logs[log].session = 1 + state.logs[log].session % 3;
    }

    /// What a process that starts makes of a log.
    fn remembered(&self, state: &State, log: usize) -> Fold {
        let mut desk = state.logs[log].safe.clone();
        for (r, heard) in desk.heard.iter_mut().enumerate() {
            if self.is_wrong(Wrong::RestartForgetsGrants) && heard.is_live() {
                (heard.answers, heard.confirmed) = (0, false);
                heard.standing = Standing::Open;
            }
            let is_spent = heard.standing == Standing::Over(Closing::Spent);
            if is_spent && self.is_wrong(Wrong::RestartForgetsSpends) {
                heard.standing = Standing::Granted;
                if let Some(asked) = state.asked[r] {
                    desk.joined[usize::from(asked.act)] = Some(r);
                }
            }
        }
        desk
    }

    fn announce_all(&self, state: &mut State, live: &[usize]) {
        for r in live {
            self.announce(state, *r);
        }
    }
}

/// What a call's request is about.
fn call_request(state: &State, c: usize) -> Option<Asked> {
    match state.calls[c].at {
        At::Safe(r) => state.asked[r],
        _ => None,
    }
}
