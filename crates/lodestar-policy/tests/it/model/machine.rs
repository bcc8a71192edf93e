//! The rules by which one state follows another: those of the desk, the session, the kernel and the
//! ledger, one step at a time, with a crash possible between any two.

use super::law::Law;
use super::state::{
    Asked, At, Budget, Call, Closing, Counting, END, Fold, Log, Process, Record, SLOTS, STALE,
    Said, Standing, State, TWO, Word,
};

/// Who takes part, and what may happen to them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// The act of each agent's calls.
    pub(crate) acts: [u8; TWO],
    /// Whether each process has a project of its own; if not, they contend for one.
    pub(crate) apart: bool,
    pub(crate) quorum: u32,
    /// How often each agent calls.
    pub(crate) calls: [u8; TWO],
    /// Whether an operator confirms the first act beforehand.
    pub(crate) confirms: bool,
    /// What approvers say: whether only yes and no for this act, and whether at once.
    pub(crate) words: &'static [Word],
    pub(crate) post: Post,
    pub(crate) budget: Budget,
}

/// How long what somebody signs is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Post {
    /// It is heard when it is signed; after a crash it may come again.
    Swift,
    /// It is heard some time later, or too late.
    Slow,
}

/// A rule that is deliberately wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    RunsBeforeTheRecordIsSafe,
    GrantsAnyAct,
    RestartForgetsSpends,
    RestartForgetsGrants,
    ChannelForgetsBeforeTheLogKnows,
    DenyComesTooLateForAPermit,
    ExpiryIsNotLookedAt,
    LedgerSpendsTwice,
    NobodySweeps,
    TwoWritersOfOneLog,
    MovedLeavesTheGrant,
    OnePersonCountsTwice,
    TwoPermitsOfOneGrant,
    WorldIsNotMeasuredAgain,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// An agent calls, in a process.
    Call(usize, usize),
    /// Its request is opened.
    Open(usize),
    /// People are told of it.
    Announce(usize),
    /// A waiting call looks at its request.
    Look(usize),
    /// It lays the confirmation beside it.
    Weigh(usize),
    /// The ledger spends the confirmation on it.
    Consume(usize),
    Measure(usize),
    /// Its request is closed because the world moved.
    CloseMoved(usize),
    Clear(usize),
    /// Its clearance is safe.
    Secure(usize),
    /// The tool does it.
    Run(usize),
    End(usize),
    /// The caller goes away.
    Leave(usize),
    /// An approver signs something.
    Sign(usize, usize, Word),
    /// The session hears it.
    Hear(usize, usize, Word),
    /// The operator confirms the first act.
    Confirm,
    /// What a log has becomes safe.
    Sync(usize),
    /// A process dies; so many of the unsafe records are left.
    Crash(usize, usize),
    /// A process closes its session.
    Close(usize),
    /// A process starts, with the same configuration or another.
    Start(usize, Configured),
    Tick,
    WorldMoves,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Configured {
    Same,
    Otherwise,
}

/// The rules, for one scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) scenario: Scenario,
    pub(crate) wrong: Option<Wrong>,
}

impl Machine {
    pub(crate) fn right(scenario: Scenario) -> Self {
        Self {
            scenario,
            wrong: None,
        }
    }

    pub(super) fn is_wrong(&self, wrong: Wrong) -> bool {
        self.wrong == Some(wrong)
    }

    /// The first process is up, and the second too if it has a project of its own.
    pub(crate) fn start(&self) -> State {
        let log = |locked| Log {
            safe: Fold::EMPTY,
            tail: Vec::new(),
            locked,
            session: 0,
        };
        let process = |log| Process {
            log,
            desk: Fold::EMPTY,
        };
        let apart = self.scenario.apart;
        let call = |left| Call {
            at: At::Idle,
            process: 0,
            left,
        };
        State {
            clock: 0,
            world: 0,
            asked: [None; SLOTS],
            logs: [log(true), log(apart)],
            processes: [Some(process(0)), apart.then(|| process(1))],
            calls: self.scenario.calls.map(call),
            words: [[[Said::Nothing; 3]; TWO]; SLOTS],
            confirmed: false,
            spent: false,
            ran: [0; SLOTS],
            budget: self.scenario.budget,
            broken: 0,
        }
    }

    fn counting<'a>(&self, asked: &'a [Option<Asked>; SLOTS]) -> Counting<'a> {
        Counting {
            asked,
            quorum: self.scenario.quorum,
            twice: self.is_wrong(Wrong::OnePersonCountsTwice),
        }
    }

    /// What follows from all that a log has, safe or not.
    pub(crate) fn whole(&self, state: &State, log: usize) -> Fold {
        let mut fold = state.logs[log].safe.clone();
        let counting = self.counting(&state.asked);
        for record in &state.logs[log].tail {
            fold.follow(*record, &counting);
        }
        fold
    }

    /// The log that a process writes.
    pub(super) fn home(&self, process: usize) -> usize {
        if self.scenario.apart { process } else { 0 }
    }

    pub(super) fn desk<'a>(&self, state: &'a State, process: usize) -> &'a Fold {
        let process = state.processes[process].as_ref();
        &process
            .expect("INVARIANT: calls are in processes that are up")
            .desk
    }

    /// Whether somebody has a permit of this request in this process.
    pub(super) fn is_taken(&self, state: &State, process: usize, r: usize) -> bool {
        let gives_up = self.is_wrong(Wrong::MovedLeavesTheGrant);
        state.calls.iter().any(|call| {
            let has_left = gives_up && matches!(call.at, At::Moved(..));
            let taken = call.at.permit().filter(|_| !has_left);
            call.process == process && taken.is_some_and(|(taken, _)| taken == r)
        })
    }

    /// Writes a record; the desk follows. A second ending of a request is against the law.
    pub(super) fn write(&self, state: &mut State, process: usize, record: Record) {
        let log = state.processes[process].as_ref().map(|p| p.log);
        let log = log.expect("INVARIANT: only what is up writes");
        let ends = match record {
            Record::Denied(r) | Record::Closed(r, _) | Record::Cleared(r) => Some(r),
            _ => None,
        };
        if let Some(r) = ends {
            match (self.whole(state, log).heard[r].standing, record) {
                (Standing::Over(Closing::Denied), Record::Cleared(_)) => {
                    state.broken |= Law::DenyWins.bit() | Law::OneEnding.bit();
                }
                (Standing::Over(_), _) => state.broken |= Law::OneEnding.bit(),
                _ => {}
            }
        }
        state.logs[log].tail.push(record);
        let asked = state.asked;
        let counting = self.counting(&asked);
        if let Some(process) = &mut state.processes[process] {
            process.desk.follow(record, &counting);
        }
    }

    /// Everything that can happen now. What changes nothing may be among it.
    pub(crate) fn steps(&self, state: &State) -> Vec<Step> {
        let mut steps = Vec::new();
        for (c, call) in state.calls.iter().enumerate() {
            self.steps_of(state, c, call, &mut steps);
        }
        self.steps_of_people(state, &mut steps);
        for (log, kept) in state.logs.iter().enumerate() {
            if !kept.tail.is_empty() && kept.locked {
                steps.push(Step::Sync(log));
            }
        }
        for process in 0..TWO {
            self.steps_of_process(state, process, &mut steps);
        }
        if state.clock < END {
            steps.push(Step::Tick);
        }
        if state.budget.moves > 0 {
            steps.push(Step::WorldMoves);
        }
        steps
    }

    fn steps_of(&self, state: &State, c: usize, call: &Call, steps: &mut Vec<Step>) {
        let is_safe = |wanted: fn(usize) -> Record, r: usize| {
            let log = self.home(call.process);
            !state.logs[log].tail.contains(&wanted(r))
        };
        match call.at {
            At::Idle => {
                if call.left == 0 || state.clock >= END {
                    return;
                }
                // Agents who do the same are alike: the first begins.
                let Scenario { acts, calls, .. } = self.scenario;
                let alike = acts[0] == acts[1] && calls[0] == calls[1] && !self.scenario.apart;
                if alike && c == 1 && state.calls[0].left == calls[0] {
                    return;
                }
                let own = |process: usize| !self.scenario.apart || process == c;
                let up = (0..TWO).filter(|p| own(*p) && state.processes[*p].is_some());
                steps.extend(up.map(|process| Step::Call(c, process)));
            }
            At::Looked { .. } => steps.extend([Step::Open(c), Step::Leave(c)]),
            At::Opened(r) => {
                if is_safe(Record::Requested, r) {
                    steps.push(Step::Announce(c));
                }
                steps.push(Step::Leave(c));
            }
            At::Waiting(r) => {
                steps.extend([Step::Look(c), Step::Leave(c)]);
                if self.matches(state, call.process, r) && !state.spent {
                    steps.push(Step::Weigh(c));
                }
            }
            At::Weighed(_) => steps.push(Step::Consume(c)),
            At::Permitted(..) => steps.extend([Step::Measure(c), Step::Leave(c)]),
            At::Measured(..) => steps.push(Step::Clear(c)),
            At::Moved(..) => steps.push(Step::CloseMoved(c)),
            At::Cleared(r) => {
                let hasty = self.is_wrong(Wrong::RunsBeforeTheRecordIsSafe);
                if hasty || is_safe(Record::Cleared, r) {
                    steps.push(Step::Secure(c));
                }
                steps.push(Step::Leave(c));
            }
            At::Safe(_) => steps.extend([Step::Run(c), Step::Leave(c)]),
            At::Ran(_) => steps.push(Step::End(c)),
        }
    }

    /// Whether the operator's confirmation is about what a request of a process asks for.
    fn matches(&self, state: &State, process: usize, r: usize) -> bool {
        let is_its_session = state.logs[self.home(process)].session == 0;
        let is_its_act = state.asked[r].is_some_and(|asked| asked.act == 0);
        state.confirmed && state.clock < STALE && is_its_session && is_its_act
    }

    fn steps_of_people(&self, state: &State, steps: &mut Vec<Step>) {
        for r in 0..SLOTS {
            let Some(asked) = state.asked[r] else {
                continue;
            };
            let is_open = asked.announced
                && state.clock < asked.expires
                && self.whole(state, asked.log).heard[r].is_live();
            let is_up = state.processes.iter().flatten().any(|p| p.log == asked.log);
            for approver in 0..TWO {
                // Approvers are alike, unless one has confirmed: the first begins.
                let begins = state.words[r][0].iter().any(|said| *said != Said::Nothing);
                let is_next = approver == 0 || begins || self.scenario.confirms;
                let says = is_open && is_next && state.budget.words > 0;
                let says = says && (is_up || self.scenario.post == Post::Slow);
                for word in self.scenario.words.iter().copied() {
                    match state.words[r][approver][word as usize] {
                        Said::Nothing if says => {
                            steps.push(Step::Sign(r, approver, word));
                        }
                        Said::Waits if is_up => steps.push(Step::Hear(r, approver, word)),
                        _ => {}
                    }
                }
            }
        }
        if self.scenario.confirms && !state.confirmed && state.clock < STALE {
            steps.push(Step::Confirm);
        }
    }

    fn steps_of_process(&self, state: &State, process: usize, steps: &mut Vec<Step>) {
        let log = self.home(process);
        let kept = &state.logs[log];
        let stops = state.budget.stops > 0;
        if state.processes[process].is_some() {
            if stops {
                let left = 0..=kept.tail.len();
                steps.extend(left.map(|left| Step::Crash(process, left)));
            }
            let mut calls = state.calls.iter();
            let is_idle = calls.all(|call| call.process != process || call.at == At::Idle);
            if is_idle && (stops || state.clock == END) {
                steps.push(Step::Close(process));
            }
            return;
        }
        // Processes are alike: after each stop it is the other that goes on.
        let stopped = self.scenario.budget.stops - state.budget.stops;
        let is_next = self.scenario.apart || usize::from(stopped) % TWO == process;
        let is_free = match self.is_wrong(Wrong::TwoWritersOfOneLog) {
            false => !kept.locked && is_next,
            true => true,
        };
        let has_work = kept.safe.live().next().is_some() || kept.safe.unended != 0;
        if is_free && (state.clock < END || has_work) {
            steps.push(Step::Start(process, Configured::Same));
            if state.budget.other > 0 {
                steps.push(Step::Start(process, Configured::Otherwise));
            }
        }
    }
}
