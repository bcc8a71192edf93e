//! What every store does, whatever it is made of: one list of cases, run for each.

mod context;
mod hostile;
mod reading;
mod writing;

use lodestar_core::id::BeliefId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_firewall::row::StoredRow;
use lodestar_firewall::store::{
    ContextQuery, MemoryStore, SqliteStore, Store, StoreError, Verdict, Writing,
};

use super::cluster::Schema;
use super::rows::{self, WEB};

/// A case: it is given an empty store.
pub(crate) type Case = fn(&mut dyn Store);

fn in_memory(case: Case) {
    case(&mut MemoryStore::new());
}

fn on_sqlite(case: Case) {
    let folder = tempfile::tempdir().unwrap();
    case(&mut SqliteStore::open(&folder.path().join("state.db")).unwrap());
}

/// Makes of each case a test per store that costs nothing to begin.
macro_rules! cases {
    ($($file:ident: $($name:ident)+;)+) => {
        /// All cases by name.
        const ALL: &[(&str, Case)] = &[$($((stringify!($name), $file::$name)),+),+];

        mod memory {
            $($(#[test] fn $name() { super::in_memory(super::$file::$name); })+)+
        }
        mod sqlite {
            $($(#[test] fn $name() { super::on_sqlite(super::$file::$name); })+)+
        }
    };
}

cases! {
    writing:
        rows_come_back_as_they_went_in
        a_second_row_with_an_id_is_a_conflict
        a_row_is_replaced_by_its_next_revision_only
        a_replaced_row_keeps_its_place_in_the_order
        an_error_takes_everything_back
        a_rollback_takes_everything_back
        an_error_that_is_passed_over_takes_everything_back_too
        work_sees_its_own_changes
        the_next_transaction_sees_nothing_of_one_that_was_taken_back
        history_comes_in_the_order_of_revisions
        one_revision_has_one_change
        contradictions_are_kept_once
        logs_advance
        rows_are_due_longest_first
        forgetting_takes_out_what_an_installation_gave
        forgetting_can_be_taken_back
        what_was_forgotten_can_come_again;
    reading:
        an_empty_store_has_nothing
        one_row_is_found_by_its_id
        rows_are_found_by_the_beginning_of_their_id
        settled_and_unverified_rows_are_told_apart
        a_colliding_key_hash_finds_nothing_else
        lists_come_newest_first
        a_list_is_filtered_by_everything_it_names
        a_list_finds_text_in_either_case
        disputes_come_in_the_order_asked_for
        disputes_say_when_there_are_more
        a_scan_goes_through_all_rows_once
        a_scan_goes_through_all_contradictions_once
        logs_come_in_order
        the_tally_counts_every_place
        a_limit_of_nothing_gives_nothing
        there_is_no_limit_too_large;
    context:
        eligible_rows_come_newest_first
        all_words_have_to_occur
        words_of_the_subject_count
        scopes_are_those_of_the_list
        many_scopes_can_be_asked_for
        old_rows_stay_out
        sensitive_rows_stay_out
        the_limit_counts_what_is_given
        gated_rows_are_never_found
        every_state_but_one_stays_out
        a_row_that_moves_out_is_lost_and_found_again
        a_row_whose_words_change_is_found_by_the_new_ones
        rows_of_one_scope_are_found_among_many_of_others
        many_rows_are_found_by_a_rare_word;
    hostile:
        text_of_any_kind_comes_back
        huge_text_comes_back
        words_of_every_script_are_found
        what_is_no_word_finds_nothing
        a_word_that_looks_like_syntax_is_a_word
        prefixes_of_any_kind_are_harmless
        numbers_at_their_limits_come_back;
}

/// All in one test, since each test may be a process of its own with a server of its own.
#[test]
fn postgres() {
    let mut failed = Vec::new();
    for (name, case) in ALL {
        let Some(schema) = Schema::new() else { return };
        let run = || case(&mut schema.open());
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "PostgreSQL fails {failed:#?}");
}

/// No row.
const NONE: [u64; 0] = [];

/// A transaction that has to succeed.
fn write(store: &mut dyn Store, mut work: impl FnMut(&mut dyn Writing) -> Result<(), StoreError>) {
    store
        .write(&mut |writing| work(writing).map(|()| Verdict::Commit))
        .unwrap();
}

fn insert(store: &mut dyn Store, rows: &[StoredRow]) {
    write(store, |writing| writing.insert(rows));
}

/// What a question within a transaction gives.
fn ask<T>(
    store: &mut dyn Store,
    mut question: impl FnMut(&mut dyn Writing) -> Result<T, StoreError>,
) -> T {
    let mut answer = None;
    store
        .write(&mut |writing| {
            answer = Some(question(writing)?);
            Ok(Verdict::Rollback)
        })
        .unwrap();
    answer.unwrap()
}

/// The numbers that rows were made from.
fn numbers(rows: &[StoredRow]) -> Vec<u64> {
    let number = |row: &StoredRow| number(&row.belief_id().unwrap());
    rows.iter().map(number).collect()
}

fn number(id: &BeliefId) -> u64 {
    id.unix_millis() - rows::id(0).unix_millis()
}

/// Everything in [`WEB`] with these words.
fn query(words: &[&str]) -> ContextQuery {
    ContextQuery {
        scopes: vec![WEB.to_owned()],
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        not_before: Timestamp::MIN,
        ceiling: Sensitivity::Secret,
        limit: 100,
    }
}

fn found(store: &mut dyn Store, words: &[&str]) -> Vec<u64> {
    numbers(&store.context(&query(words)).unwrap())
}
