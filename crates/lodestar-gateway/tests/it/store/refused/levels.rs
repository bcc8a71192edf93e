//! Every move there could be, from every level, in everybody's name: the database takes those of the table.

use lodestar_core::device::{self, DeviceActor, DeviceEvent, DeviceLevel};
use lodestar_gateway::store::{Sql, StoreError, challenges, devices, levels};

use super::fill::fill;
use crate::store::place::{As, on_both};
use crate::store::world::{
    a_challenge, a_move, an_account, approve, at, beat, device, furnish, nonce, ordered, write,
};

/// A device of account 1 for each level; all of them could be trusted, as far as anything but the level goes.
fn at_every_level(sql: &mut dyn Sql) -> Vec<(DeviceLevel, u64)> {
    use DeviceLevel::*;
    let to = |n, from, to, event, actor| a_move(n, from, to, event, actor);
    let server = DeviceActor::Server;
    let mut stand = Vec::new();
    write(sql, |sql| {
        // Device 10 has a key; the others get theirs on the way to approval.
        assert!(challenges::open(sql, &a_challenge(10, 10))?);
        assert!(challenges::pass(sql, device(10), nonce(10), at(3))?);
        stand.push((Pending, 10));
        for (n, level) in (31..).zip([Approved, Offline, Unhealthy, Revoked, Blocked]) {
            approve(sql, n, 1)?;
            beat(sql, n, 12)?;
            let step = match level {
                Offline => Some(to(n, Approved, Offline, DeviceEvent::GoOffline, server)),
                Unhealthy => Some(to(n, Approved, Unhealthy, DeviceEvent::GoUnhealthy, server)),
                Blocked => Some(to(
                    n,
                    Approved,
                    Blocked,
                    DeviceEvent::Block,
                    DeviceActor::Platform,
                )),
                Revoked => {
                    let mut step = to(
                        n,
                        Approved,
                        Revoked,
                        DeviceEvent::Revoke,
                        DeviceActor::Owner,
                    );
                    step.order = Some(ordered(sql, "revoke", 1)?);
                    Some(step)
                }
                _ => None,
            };
            step.map(|step| levels::set_level(sql, &step)).transpose()?;
            stand.push((level, n));
        }
        stand.push((Trusted, 1));
        ordered(sql, "anything", 1)?;
        Ok::<_, StoreError>(())
    });
    stand
}

/// Whether the table has it. A rotation has its own way in, beside its keys; and of the devices here only the one
/// that is trusted ever attested.
fn is_lawful(from: DeviceLevel, to: DeviceLevel, event: DeviceEvent, actor: DeviceActor) -> bool {
    let is_row = |row: device::Move| {
        (row.from, row.to, row.event, row.actor) == (Some(from), to, event, actor)
    };
    device::rows().any(is_row) && ![DeviceEvent::RotateKey, DeviceEvent::Promote].contains(&event)
}

/// Every move from where a device stands and from nowhere, and what the table has from elsewhere.
fn candidates(
    stands: DeviceLevel,
) -> Vec<(Option<DeviceLevel>, DeviceLevel, DeviceEvent, DeviceActor)> {
    let mut all = Vec::new();
    for from in [None, Some(stands)] {
        for &to in DeviceLevel::ALL {
            for &event in DeviceEvent::ALL {
                all.extend(
                    DeviceActor::ALL
                        .iter()
                        .map(|&actor| (from, to, event, actor)),
                );
            }
        }
    }
    let elsewhere = device::rows().filter(|row| row.from.is_some_and(|from| from != stands));
    all.extend(elsewhere.map(|row| (row.from, row.to, row.event, row.actor)));
    all
}

#[test]
fn of_all_moves_the_database_takes_those_of_the_table() {
    on_both(|place| {
        let mut sql = place.open();
        furnish(&mut *sql);
        let stand = at_every_level(&mut *sql);
        let mut direct = place.direct();
        let (mut taken, mut refused) = (0, 0);
        for &(stands, n) in &stand {
            for (from, to, event, actor) in candidates(stands) {
                let before = from.map_or("NULL".to_owned(), |from| format!("'{from}'"));
                let text = fill(&format!(
                    "INSERT INTO device_transitions
                     (device, from_level, to_level, event, actor, at, cause, order_digest)
                     VALUES ({{device {n}}}, {before}, '{to}', '{event}', '{actor}', {{at 99}}, 'test',
                         {{digest anything of 1}})"
                ));
                direct.begin(As::Server);
                let done = direct.run(&text);
                direct.rollback();
                let lawful = from == Some(stands) && is_lawful(stands, to, event, actor);
                assert_eq!(done.is_ok(), lawful, "{text}: {done:?}");
                match lawful {
                    true => taken += 1,
                    false => refused += 1,
                }
            }
        }
        // But for five rotations and the promotion.
        let table = device::rows().filter(|row| row.from.is_some()).count();
        assert_eq!(taken, table - 6);
        assert!(refused > 7 * 2 * 7 * 11 * 4 - table, "{refused}");
    });
}

#[test]
fn after_every_move_the_device_stands_where_it_says() {
    on_both(|place| {
        let mut sql = place.open();
        furnish(&mut *sql);
        for (stands, n) in at_every_level(&mut *sql) {
            let found = write(&mut *sql, |sql| devices::get(sql, device(n))).unwrap();
            assert_eq!(found.level, stands);
            let history = write(&mut *sql, |sql| levels::history(sql, device(n)));
            assert_eq!(history.last().unwrap().to, stands);
            assert_eq!(history[0].from, None);
            for pair in history.windows(2) {
                assert_eq!(pair[1].from, Some(pair[0].to), "{history:?}");
            }
            let last = history.last().unwrap();
            assert_eq!(found.level_since, last.at, "{stands}");
        }
    });
}

#[test]
fn nobody_s_level_moves_by_another_account_s_hand() {
    on_both(|place| {
        let mut sql = place.open();
        furnish(&mut *sql);
        let account = an_account(2).id.to_string();
        let mut direct = place.direct();
        direct.begin(As::Account(&account));
        let text =
            "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
             VALUES ({device 10}, 'pending', 'blocked', 'block', 'platform', {at 71}, 'test')";
        let done = direct.run(&fill(text));
        direct.rollback();
        // One file has no accounts to act for; PostgreSQL does not even show the device.
        assert_eq!(done.is_ok(), direct.is_sqlite(), "{done:?}");
    });
}
