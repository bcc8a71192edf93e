//! What the store does, on either database: one list of cases, run for each.

mod devices;
mod proofs;
mod transactions;
mod who;

use lodestar_gateway::store::Sql;

use super::place::Place;

/// A case: it is given an empty store.
type Case = fn(&mut dyn Sql);

/// Makes of each case a test on SQLite, which costs nothing to begin.
macro_rules! cases {
    ($($file:ident: $($name:ident)+;)+) => {
        /// All cases by name.
        const ALL: &[(&str, Case)] = &[$($((stringify!($name), $file::$name)),+),+];

        mod sqlite {
            $($(#[test] fn $name() { super::on_sqlite(super::$file::$name); })+)+
        }
    };
}

fn on_sqlite(case: Case) {
    case(&mut *Place::sqlite().open());
}

cases! {
    who:
        accounts_have_names_of_their_own
        accounts_are_listed_page_by_page
        tokens_are_found_by_their_hash
        a_token_is_spent_once
        a_token_is_revoked_by_its_own_account
        orders_are_kept_once
        agents_and_runners_have_names_of_their_own
        text_of_any_kind_comes_back;
    devices:
        a_device_begins_with_nothing
        names_are_told_apart_within_an_account
        devices_are_listed_page_by_page
        a_challenge_is_passed_once_and_in_time
        only_the_last_challenge_counts
        keys_are_given_once_and_then_rotated
        a_rotation_out_of_good_standing_opens_the_challenge
        a_heartbeat_is_noted
        a_runner_is_heard_of_through_its_device
        nonces_are_a_device_s_own
        old_nonces_are_forgotten_so_many_at_a_time
        strikes_are_counted_and_forgotten
        bindings_begin_and_end
        a_revoked_device_may_have_been_compromised;
    proofs:
        terms_are_registered_once
        runs_are_kept_as_they_were_registered
        checkpoints_and_bundles_come_once
        attestations_come_back_and_count
        evaluations_come_in_their_order
        work_earns_each_effect_once
        contests_have_standings
        the_kill_switch_is_one
        the_outbox_keeps_its_order_and_its_numbers;
    transactions:
        an_error_takes_everything_back
        an_attempt_is_taken_back_alone
        an_attempt_that_the_database_refused_leaves_the_rest
        many_attempts_share_a_transaction
        nothing_is_done_in_nobody_s_name
        a_rollback_without_a_transaction_is_nothing;
}

/// All in one test, since each test may be a process of its own with a server of its own.
#[test]
fn postgres() {
    let mut failed = Vec::new();
    for (name, case) in ALL {
        let Some(place) = Place::postgres() else {
            return;
        };
        let run = || case(&mut *place.open());
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "PostgreSQL fails {failed:#?}");
}
