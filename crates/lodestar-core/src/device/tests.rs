//! The machine against the specification, every state, event and actor; the rest in its own files.

mod limits;
mod standings;

use std::collections::BTreeSet;

use super::*;

/// Where a device can stand: nowhere, or on a level.
fn states() -> impl Iterator<Item = Option<DeviceLevel>> {
    let levels = DeviceLevel::ALL.iter().copied().map(Some);
    std::iter::once(None).chain(levels)
}

fn named(word: &str) -> Option<DeviceLevel> {
    match word {
        "∅" => None,
        word => Some(word.parse().unwrap()),
    }
}

/// The specification's sentence on transitions, word for word, as pairs of levels.
fn transitions_of_the_specification() -> BTreeSet<(Option<DeviceLevel>, DeviceLevel)> {
    let sentence = "∅→pending · pending→approved · approved→trusted · trusted→approved · \
        approved|trusted→offline · offline→approved · approved|trusted|offline→unhealthy · \
        unhealthy→approved · any non-terminal→revoked · any non-terminal→blocked";
    let non_terminal = "pending|approved|trusted|offline|unhealthy";
    sentence
        .replace("any non-terminal", non_terminal)
        .split(" · ")
        .flat_map(|arrow| {
            let (from, to) = arrow.split_once('→').unwrap();
            let to: DeviceLevel = to.parse().unwrap();
            from.split('|')
                .map(|from| (named(from), to))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// What is allowed, written down anew: event, actor, from, to.
const ALLOWED: &str = "
    register    owner    ∅         pending
    approve     owner    pending   approved
    promote     server   approved  trusted
    demote      server   trusted   approved
    go_offline  server   approved  offline
    go_offline  server   trusted   offline
    return      server   offline   approved
    go_unhealthy server  approved  unhealthy
    go_unhealthy server  trusted   unhealthy
    go_unhealthy server  offline   unhealthy
    recover     server   unhealthy approved
    rotate_key  owner    pending   pending
    rotate_key  owner    approved  approved
    rotate_key  owner    trusted   approved
    rotate_key  owner    offline   offline
    rotate_key  owner    unhealthy unhealthy
    revoke      owner    pending   revoked
    revoke      owner    approved  revoked
    revoke      owner    trusted   revoked
    revoke      owner    offline   revoked
    revoke      owner    unhealthy revoked
    block       platform pending   blocked
    block       platform approved  blocked
    block       platform trusted   blocked
    block       platform offline   blocked
    block       platform unhealthy blocked";

/// Why what is not allowed is refused, written down anew.
fn reason(level: Option<DeviceLevel>, event: DeviceEvent, actor: DeviceActor) -> &'static str {
    let whose = match event.as_str() {
        "register" | "approve" | "rotate_key" | "revoke" => "owner",
        "block" => "platform",
        _ => "server",
    };
    match level.map(DeviceLevel::as_str) {
        _ if actor.as_str() != whose => "wrong_actor",
        None => "not_registered",
        Some(_) if event.as_str() == "register" => "already_registered",
        Some("revoked" | "blocked") => "permanent",
        Some(_) => "not_from_here",
    }
}

#[test]
fn every_state_event_and_actor_is_allowed_or_refused_as_specified() {
    let allowed: Vec<[&str; 4]> = ALLOWED
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.try_into().unwrap()
        })
        .collect();
    let (mut moved, mut refused) = (0, 0);
    for level in states() {
        for &event in DeviceEvent::ALL {
            for &actor in DeviceActor::ALL {
                let from = level.map_or("∅", DeviceLevel::as_str);
                let row = allowed
                    .iter()
                    .find(|row| row[..3] == [event.as_str(), actor.as_str(), from]);
                match (step(level, event, actor), row) {
                    (Ok(to), Some(row)) => {
                        assert_eq!(to.as_str(), row[3], "{from} {event} {actor}");
                        moved += 1;
                    }
                    (Err(error), None) => {
                        let why = reason(level, event, actor);
                        assert_eq!(error.reason.as_str(), why, "{from} {event} {actor}");
                        assert_eq!(
                            (error.level, error.event, error.actor),
                            (level, event, actor)
                        );
                        refused += 1;
                    }
                    (said, row) => panic!("{from} {event} {actor}: {said:?}, {row:?}"),
                }
            }
        }
    }
    assert_eq!((moved, refused), (26, 8 * 11 * 4 - 26));
    println!("{moved} allowed, {refused} refused");
}

#[test]
fn the_levels_a_device_moves_between_are_those_of_the_specification() {
    let specified = transitions_of_the_specification();
    assert_eq!(specified.len(), 21);
    assert_eq!(moves(), specified.iter().copied().collect::<Vec<_>>());
    for from in states() {
        for &to in DeviceLevel::ALL {
            assert_eq!(is_legal(from, to), specified.contains(&(from, to)));
        }
    }
}

#[test]
fn a_device_moves_nothing() {
    for level in states() {
        for &event in DeviceEvent::ALL {
            let refused = step(level, event, DeviceActor::Device).unwrap_err();
            assert_eq!(refused.reason, RefusalReason::WrongActor);
        }
    }
}

#[test]
fn nothing_but_the_server_gives_trust_and_nothing_at_all_leads_back_from_the_end() {
    for row in rows() {
        if row.to == DeviceLevel::Trusted {
            assert_eq!(row.actor, DeviceActor::Server);
        }
        assert!(!row.from.is_some_and(DeviceLevel::is_permanent), "{row:?}");
    }
    let permanent: Vec<_> = DeviceLevel::ALL
        .iter()
        .filter(|level| level.is_permanent())
        .collect();
    assert_eq!(permanent, [&DeviceLevel::Revoked, &DeviceLevel::Blocked]);
}

#[test]
fn the_levels_say_what_is_taken_from_a_device() {
    let taken = "pending   heartbeats
        approved  heartbeats attestations strikes
        trusted   heartbeats attestations strikes
        offline   heartbeats attestations strikes
        unhealthy heartbeats strikes
        revoked
        blocked";
    for (line, &level) in taken.lines().zip(DeviceLevel::ALL) {
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[0], level.as_str());
        assert_eq!(level.may_heartbeat(), words.contains(&"heartbeats"));
        assert_eq!(level.may_attest(), words.contains(&"attestations"));
        assert_eq!(level.gathers_strikes(), words.contains(&"strikes"));
    }
}

#[test]
fn the_tables_are_in_the_order_of_levels_and_events() {
    assert_eq!(levels().len(), DeviceLevel::ALL.len());
    for (spec, &level) in levels().iter().zip(DeviceLevel::ALL) {
        assert_eq!(spec.level, level);
        assert_eq!(level.spec(), spec);
    }
    let events: Vec<_> = table::RULES.iter().map(|rule| rule.event).collect();
    assert_eq!(events, DeviceEvent::ALL);
}

#[test]
fn a_refusal_says_what_where_who_and_why() {
    let refused = step(
        Some(DeviceLevel::Revoked),
        DeviceEvent::Approve,
        DeviceActor::Owner,
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        "`approve` by `owner` is refused for a device that is `revoked`: nothing leads out of its level"
    );
    let refused = step(None, DeviceEvent::Block, DeviceActor::Platform);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "`block` by `platform` is refused for a device that is not registered: there is no such device"
    );
}

#[test]
fn the_page_has_every_level_move_refusal_and_limit() {
    let page = reference_page();
    for &level in DeviceLevel::ALL {
        assert_eq!(page.matches(&format!("\n| {level} | ")).count(), 1);
    }
    for row in rows() {
        let start = format!("| {} | {} | ", row.event, row.actor);
        let from = row.from.map_or("nothing", DeviceLevel::as_str);
        let listed = page.lines().any(|line| {
            line.strip_prefix(&start).is_some_and(|rest| {
                let cells: Vec<_> = rest.split(" | ").collect();
                cells[0].split(", ").any(|name| name == from) && cells[1] == row.to.as_str()
            })
        });
        assert!(listed, "{row:?}");
    }
    for &reason in RefusalReason::ALL {
        assert!(page.contains(&format!("| `{reason}` | {} |", reason.phrase())));
    }
    for line in [
        "| `heartbeat_seconds` | 30 |",
        "| `max_gap_seconds` | 900 (15 min) |",
        "| `attested_within_seconds` | 2592000 (30 d) |",
        "| `bad_signatures` | 3 |",
        "| `cooldown_seconds` | 3600 (1 h) |",
    ] {
        assert!(page.contains(line), "{line}");
    }
}
