//! Everything that the model knows at one moment.

/// Most requests in one run. A call that would need one more gives up: that is where the model ends.
pub(crate) const SLOTS: usize = 4;

/// The last tick of the clock. A request that is opened at one tick expires at the next, and none is
/// opened at the last.
pub(crate) const END: u8 = 2;

/// From this tick on the operator's confirmation is too old.
pub(crate) const STALE: u8 = 1;

/// Agents, approvers and processes: two of each.
pub(crate) const TWO: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Closing {
    Spent,
    Denied,
    Expired,
    WorldMoved,
    Abandoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    Nothing,
    Open,
    Granted,
    Over(Closing),
}

/// What has been heard of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Heard {
    pub(crate) standing: Standing,
    /// Who said yes in answer, one bit each.
    pub(crate) answers: u8,
    /// Whether the first approver's confirmation was counted.
    pub(crate) confirmed: bool,
}

impl Heard {
    const NOTHING: Self = Self {
        standing: Standing::Nothing,
        answers: 0,
        confirmed: false,
    };

    pub(crate) fn is_live(self) -> bool {
        matches!(self.standing, Standing::Open | Standing::Granted)
    }

    /// Whether more people have to agree.
    pub(crate) fn is_missing(self, quorum: u32, same_person_counts_twice: bool) -> bool {
        let confirmed = u8::from(self.confirmed);
        let people = match same_person_counts_twice {
            false => (self.answers | confirmed).count_ones(),
            true => self.answers.count_ones() + u32::from(confirmed),
        };
        people < quorum || (quorum > 1 && self.answers == 0)
    }
}

/// What a request is about; nothing of it ever changes, except that people get to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) log: usize,
    pub(crate) act: u8,
    /// The world that its card shows.
    pub(crate) world: u8,
    pub(crate) expires: u8,
    pub(crate) announced: bool,
}

/// One line of a session's log, as far as holds are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Record {
    Requested(usize),
    Granted(usize, usize),
    Confirmed(usize),
    Denied(usize),
    Closed(usize, Closing),
    Cleared(usize),
    Ended(usize),
}

/// What follows from a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Fold {
    pub(crate) heard: [Heard; SLOTS],
    /// The request that a new call of each act joins.
    pub(crate) joined: [Option<usize>; TWO],
    /// Cleared requests whose call has no end, one bit each.
    pub(crate) unended: u8,
}

impl Fold {
    pub(crate) const EMPTY: Self = Self {
        heard: [Heard::NOTHING; SLOTS],
        joined: [None; TWO],
        unended: 0,
    };

    pub(crate) fn live(&self) -> impl Iterator<Item = usize> {
        (0..SLOTS).filter(|r| self.heard[*r].is_live())
    }

    pub(crate) fn follow(&mut self, record: Record, rules: &Counting<'_>) {
        match record {
            Record::Requested(r) => {
                self.heard[r].standing = Standing::Open;
                if let Some(asked) = rules.asked[r] {
                    self.joined[usize::from(asked.act)] = Some(r);
                }
            }
            Record::Granted(r, approver) => {
                self.heard[r].answers |= 1 << approver;
                self.count(r, rules);
            }
            Record::Confirmed(r) => {
                self.heard[r].confirmed = true;
                self.count(r, rules);
            }
            Record::Denied(r) => self.close(r, Closing::Denied),
            Record::Closed(r, closing) => self.close(r, closing),
            Record::Cleared(r) => {
                self.close(r, Closing::Spent);
                self.unended |= 1 << r;
            }
            Record::Ended(r) => self.unended &= !(1 << r),
        }
    }

    fn count(&mut self, r: usize, rules: &Counting<'_>) {
        let heard = &mut self.heard[r];
        if heard.standing == Standing::Open && !heard.is_missing(rules.quorum, rules.twice) {
            heard.standing = Standing::Granted;
        }
    }

    fn close(&mut self, r: usize, closing: Closing) {
        if !self.heard[r].is_live() {
            return;
        }
        self.heard[r].standing = Standing::Over(closing);
        for joined in &mut self.joined {
            if *joined == Some(r) {
                *joined = None;
            }
        }
    }
}

/// By what a log is counted.
pub(crate) struct Counting<'a> {
    pub(crate) asked: &'a [Option<Asked>; SLOTS],
    pub(crate) quorum: u32,
    /// One of the wrong rules.
    pub(crate) twice: bool,
}

/// A session's log: what is safe, and what a crash can take back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Log {
    pub(crate) safe: Fold,
    pub(crate) tail: Vec<Record>,
    pub(crate) locked: bool,
    /// Which session it is; the first is that of the confirmation.
    pub(crate) session: u8,
}

/// A process with a session: its desk knows what it has written and read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) log: usize,
    pub(crate) desk: Fold,
}

/// Whether a permit is still good: somebody may say no while it is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Permit {
    Good,
    Revoked,
}

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum At {
    Idle,
    /// No request asks for its act: the world is looked at, for the card of a new one.
    Looked {
        world: u8,
    },
    /// Its request is recorded, perhaps not yet safely.
    Opened(usize),
    Waiting(usize),
    /// The ledger said that the confirmation is unspent.
    Weighed(usize),
    Permitted(usize, Permit),
    /// The world was measured again, and is as it was.
    Measured(usize, Permit),
    /// The world had moved; the log does not say so yet.
    Moved(usize, Permit),
    /// The clearance is recorded, perhaps not yet safely.
    Cleared(usize),
    Safe(usize),
    /// The tool did it; the log does not say so yet.
    Ran(usize),
}

impl At {
    pub(crate) fn permit(self) -> Option<(usize, Permit)> {
        match self {
            Self::Permitted(r, permit) | Self::Measured(r, permit) | Self::Moved(r, permit) => {
                Some((r, permit))
            }
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) at: At,
    /// In which process.
    pub(crate) process: usize,
    /// How often the agent will call again.
    pub(crate) left: u8,
}

/// What an approver can say of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    Grant,
    /// A grant that is signed for another act.
    Stray,
    Deny,
}

/// What became of somebody's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Said {
    Nothing,
    /// It is signed, and the channel brings it until it is told that it need not any more.
    Waits,
    /// It counts, and the log has it, perhaps not yet safely.
    Heard,
    /// The channel does not bring it again.
    Kept {
        counted: bool,
    },
}

/// What may still happen from outside, so often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    /// Crashes, and sessions closed before their time.
    pub(crate) stops: u8,
    /// Words of approvers.
    pub(crate) words: u8,
    /// Times that the world moves: there, and back.
    pub(crate) moves: u8,
    /// Starts with another configuration.
    pub(crate) other: u8,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) clock: u8,
    pub(crate) world: u8,
    pub(crate) asked: [Option<Asked>; SLOTS],
    pub(crate) logs: [Log; TWO],
    pub(crate) processes: [Option<Process>; TWO],
    pub(crate) calls: [Call; TWO],
    pub(crate) words: [[[Said; 3]; TWO]; SLOTS],
    /// Whether the operator confirmed the first act, and whether the ledger says that it was spent.
    pub(crate) confirmed: bool,
    pub(crate) spent: bool,
    /// How often the tool did what each request asked for.
    pub(crate) ran: [u8; SLOTS],
    pub(crate) budget: Budget,
    /// Laws that a step broke, one bit each.
    pub(crate) broken: u16,
}
