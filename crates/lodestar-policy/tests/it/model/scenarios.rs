//! Who takes part, and what may happen to them: small enough to go everywhere.

use super::machine::{Post, Scenario};
use super::state::{Budget, Word};

/// Two agents want the same, and one approver is enough.
pub(crate) const PAIR: Scenario = Scenario {
    name: "two calls of one act",
    acts: [0, 0],
    apart: false,
    quorum: 1,
    calls: [1, 1],
    confirms: false,
    words: &[Word::Grant, Word::Deny],
    post: Post::Swift,
    budget: Budget {
        stops: 1,
        words: 2,
        moves: 0,
        other: 0,
    },
};

/// As little as possible happens.
pub(crate) const SIMPLE: Scenario = Scenario {
    name: "two calls of one act, one grant",
    words: &[Word::Grant],
    budget: Budget {
        stops: 0,
        words: 1,
        moves: 0,
        other: 0,
    },
    ..PAIR
};

/// One agent calls again after one crash.
pub(crate) const CUT: Scenario = Scenario {
    name: "a call that is made again, a crash",
    calls: [2, 0],
    budget: Budget {
        stops: 1,
        ..SIMPLE.budget
    },
    ..SIMPLE
};

const TWO_STOPS: Budget = Budget {
    stops: 2,
    ..PAIR.budget
};

/// One agent calls, and calls again.
pub(crate) const AGAIN: Scenario = Scenario {
    name: "a call that is made again, two crashes, another configuration",
    calls: [2, 0],
    budget: Budget {
        other: 1,
        ..TWO_STOPS
    },
    ..PAIR
};

const QUORUM: Scenario = Scenario {
    name: "two approvers are needed",
    quorum: 2,
    calls: [2, 0],
    budget: Budget {
        words: 3,
        ..PAIR.budget
    },
    ..PAIR
};

/// Approvers also sign for other acts, and their post is slow.
pub(crate) const STRAY: Scenario = Scenario {
    name: "two acts, words for others of them, late post",
    acts: [0, 1],
    words: &[Word::Grant, Word::Stray],
    post: Post::Slow,
    budget: Budget {
        stops: 0,
        ..PAIR.budget
    },
    ..PAIR
};

/// The world moves after a card was shown, and perhaps back.
pub(crate) const MOVING: Scenario = Scenario {
    name: "the world moves, and back",
    words: &[Word::Grant],
    budget: Budget {
        stops: 0,
        words: 2,
        moves: 2,
        other: 0,
    },
    ..PAIR
};

/// An operator confirms what two approvers have to grant.
pub(crate) const CONFIRMED: Scenario = Scenario {
    name: "a confirmation beside two approvers",
    quorum: 2,
    calls: [2, 0],
    confirms: true,
    words: &[Word::Grant],
    ..PAIR
};

/// Two projects whose sessions have one name share a ledger, and both could use the confirmation.
pub(crate) const APART: Scenario = Scenario {
    name: "two projects, one ledger",
    apart: true,
    confirms: true,
    words: &[Word::Grant],
    budget: Budget {
        words: 1,
        ..PAIR.budget
    },
    ..PAIR
};

/// What is looked at every time.
pub(crate) const QUICK: [Scenario; 7] = [PAIR, AGAIN, QUORUM, STRAY, MOVING, CONFIRMED, APART];

/// What takes longer; the first is looked at every time.
pub(crate) const LARGE: [Scenario; 7] = [
    Scenario {
        name: "two calls, a crash while the world moves",
        budget: Budget {
            stops: 1,
            words: 1,
            ..MOVING.budget
        },
        ..MOVING
    },
    Scenario {
        name: "two calls of one act, one made again",
        calls: [2, 1],
        ..PAIR
    },
    Scenario {
        name: "two calls, two crashes, another configuration",
        budget: AGAIN.budget,
        ..PAIR
    },
    Scenario {
        name: "two calls, two approvers are needed",
        calls: [2, 1],
        ..QUORUM
    },
    Scenario {
        name: "two acts, made again",
        acts: [0, 1],
        calls: [2, 1],
        ..PAIR
    },
    Scenario {
        name: "all words, late post, a crash",
        words: &[Word::Grant, Word::Stray, Word::Deny],
        budget: PAIR.budget,
        ..STRAY
    },
    Scenario {
        name: "two calls, a confirmation beside two approvers",
        calls: [2, 1],
        ..CONFIRMED
    },
];

/// What random ways go through: everything but stops, and far more of it than can be gone everywhere.
pub(crate) const WALKS: [Scenario; 4] = {
    let one = Scenario {
        name: "ways with one act",
        calls: [6, 6],
        words: &[Word::Grant, Word::Stray, Word::Deny],
        post: Post::Slow,
        budget: Budget {
            stops: 0,
            words: 8,
            moves: 4,
            other: 0,
        },
        ..PAIR
    };
    let two = Scenario {
        name: "ways with two acts and a confirmation",
        acts: [0, 1],
        confirms: true,
        ..one
    };
    [
        one,
        two,
        Scenario {
            name: "ways with one act and a quorum",
            quorum: 2,
            ..one
        },
        Scenario {
            name: "ways with one act, a quorum and a confirmation",
            quorum: 2,
            confirms: true,
            ..one
        },
    ]
};
