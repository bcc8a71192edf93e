//! The table itself: what each level means, and what leads from one to another.

use super::DeviceActor::{self, Owner, Platform, Server};
use super::DeviceEvent::{
    self, Approve, Block, Demote, GoOffline, GoUnhealthy, Promote, Recover, Register, Return,
    Revoke, RotateKey,
};
use super::DeviceLevel::{self, Approved, Blocked, Offline, Pending, Revoked, Trusted, Unhealthy};

/// A level in words, and what is taken from a device that stands on it.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelSpec {
    /// The level.
    pub level: DeviceLevel,
    /// What it means.
    pub meaning: &'static str,
    /// Who sets it.
    pub set_by: &'static str,
    /// Whether heartbeats are taken.
    pub heartbeats: bool,
    /// Whether attestations are taken.
    pub attests: bool,
    /// Whether strikes are counted: who has no standing has none to lose.
    pub strikes: bool,
    /// Whether nothing leads out of it.
    pub permanent: bool,
}

static LEVELS: [LevelSpec; 7] = [
    LevelSpec {
        level: Pending,
        meaning: "registered, with or without a key; without one there is no challenge and no approval",
        set_by: "the owner's registration",
        heartbeats: true,
        attests: false,
        strikes: false,
        permanent: false,
    },
    LevelSpec {
        level: Approved,
        meaning: "the owner approved, and the device signed the server's challenge with that key",
        set_by: "the owner, after verification; the server, on the way back",
        heartbeats: true,
        attests: true,
        strikes: true,
        permanent: false,
    },
    LevelSpec {
        level: Trusted,
        meaning: "continuous heartbeats, and an attestation that counted not long ago",
        set_by: "the server alone",
        heartbeats: true,
        attests: true,
        strikes: true,
        permanent: false,
    },
    LevelSpec {
        level: Offline,
        meaning: "no heartbeat for long; advisory",
        set_by: "the server alone",
        heartbeats: true,
        attests: true,
        strikes: true,
        permanent: false,
    },
    LevelSpec {
        level: Unhealthy,
        meaning: "heartbeats failed, signatures were wrong repeatedly, or a policy was violated",
        set_by: "the server alone",
        heartbeats: true,
        attests: false,
        strikes: true,
        permanent: false,
    },
    LevelSpec {
        level: Revoked,
        meaning: "the owner revoked it",
        set_by: "the owner",
        heartbeats: false,
        attests: false,
        strikes: false,
        permanent: true,
    },
    LevelSpec {
        level: Blocked,
        meaning: "the platform blocked it",
        set_by: "the platform role alone",
        heartbeats: false,
        attests: false,
        strikes: false,
        permanent: true,
    },
];

/// The levels in words, in their order.
pub fn levels() -> &'static [LevelSpec] {
    &LEVELS
}

pub(super) fn spec(level: DeviceLevel) -> &'static LevelSpec {
    &LEVELS[level as usize]
}

/// Moves that one event makes: from each of `from` to the level beside it.
pub(super) struct Rule {
    pub(super) event: DeviceEvent,
    pub(super) actor: DeviceActor,
    /// What has to be so, in words.
    pub(super) when: &'static str,
    from: &'static [(Option<DeviceLevel>, DeviceLevel)],
}

#[rustfmt::skip]
pub(super) static RULES: [Rule; 11] = [
    Rule { event: Register, actor: Owner, when: "the name is new in the account",
        from: &[(None, Pending)] },
    Rule { event: Approve, actor: Owner, when: "the device has a key and passed the challenge with it",
        from: &[(Some(Pending), Approved)] },
    Rule { event: Promote, actor: Server, when: "heartbeats are continuous and an attestation counted lately",
        from: &[(Some(Approved), Trusted)] },
    Rule { event: Demote, actor: Server, when: "continuity is broken, or the last attestation that counted is too old",
        from: &[(Some(Trusted), Approved)] },
    Rule { event: GoOffline, actor: Server, when: "there was no heartbeat for long",
        from: &[(Some(Approved), Offline), (Some(Trusted), Offline)] },
    Rule { event: Return, actor: Server, when: "a heartbeat came back; trust is earned anew",
        from: &[(Some(Offline), Approved)] },
    Rule { event: GoUnhealthy, actor: Server, when: "bad signatures, gaps or a policy violation reached the limit",
        from: &[(Some(Approved), Unhealthy), (Some(Trusted), Unhealthy), (Some(Offline), Unhealthy)] },
    Rule { event: Recover, actor: Server, when: "the cooldown is over, no limit is exceeded still, and the heartbeat is fresh",
        from: &[(Some(Unhealthy), Approved)] },
    Rule { event: RotateKey, actor: Owner, when: "owner, old key and new key signed; unless that leaves it approved, a new challenge opens",
        from: &[(Some(Pending), Pending), (Some(Approved), Approved), (Some(Trusted), Approved), (Some(Offline), Offline),
            (Some(Unhealthy), Unhealthy)] },
    Rule { event: Revoke, actor: Owner, when: "for good",
        from: &[(Some(Pending), Revoked), (Some(Approved), Revoked), (Some(Trusted), Revoked), (Some(Offline), Revoked),
            (Some(Unhealthy), Revoked)] },
    Rule { event: Block, actor: Platform, when: "for good",
        from: &[(Some(Pending), Blocked), (Some(Approved), Blocked), (Some(Trusted), Blocked), (Some(Offline), Blocked),
            (Some(Unhealthy), Blocked)] },
];

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Move {
    /// Where the device stood; nowhere, before it was registered.
    pub from: Option<DeviceLevel>,
    /// Where it stands then. A rotation may leave it where it was.
    pub to: DeviceLevel,
    /// What happened.
    pub event: DeviceEvent,
    /// In whose name it may.
    pub actor: DeviceActor,
    /// What else has to be so, in words.
    pub when: &'static str,
}

/// Every row of the table, in the order of events.
pub fn rows() -> impl Iterator<Item = Move> {
    RULES.iter().flat_map(|rule| {
        rule.from.iter().map(|&(from, to)| Move {
            from,
            to,
            event: rule.event,
            actor: rule.actor,
            when: rule.when,
        })
    })
}

/// The pairs of levels that a device may go between, each once: what a database holds a level to.
pub fn moves() -> Vec<(Option<DeviceLevel>, DeviceLevel)> {
    let mut moves: Vec<_> = rows()
        .map(|row| (row.from, row.to))
        .filter(|&(from, to)| from != Some(to))
        .collect();
    moves.sort_unstable();
    moves.dedup();
    moves
}

/// Whether any event leads from the one level to the other.
pub fn is_legal(from: Option<DeviceLevel>, to: DeviceLevel) -> bool {
    from != Some(to) && rows().any(|row| row.from == from && row.to == to)
}

pub(super) fn actor(event: DeviceEvent) -> DeviceActor {
    RULES[event as usize].actor
}
