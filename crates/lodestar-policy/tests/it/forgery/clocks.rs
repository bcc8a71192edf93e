//! Early, late, exactly at the end, again, and with the clock set back.

use super::*;
use crate::forging::signed_raw;

fn micros(offset: i64) -> Timestamp {
    Timestamp::from_unix_micros(now().unix_micros() + offset).unwrap()
}

const SECOND: i64 = 1_000_000;

#[test]
fn matrix_early_late_and_exactly_at_the_end() {
    let half_open = half_open();
    let mut counts = Counts::default();
    let (mut opened, own) = (0, payload(&honest()));
    // From when until when it says it holds, and when it is heard.
    for issued in [-3600, -1, 0, 1, 5, 6, 3600] {
        for lasts in [-1, 0, 1, 30, 900, 100_000] {
            for heard in [-3600, -6, -5, -1, 0, 1, 29, 30, 31, 899, 900, 901] {
                for off in [-1, 0, 1] {
                    let (from, until) = (issued * SECOND, (issued + lasts) * SECOND);
                    let at = heard * SECOND + off;
                    let mut dated = own.clone();
                    dated["issued_at"] = serde_json::to_value(micros(from)).unwrap();
                    dated["expires_at"] = serde_json::to_value(micros(until)).unwrap();
                    let sent = signed_raw(APPROVAL, &dated, &[&key(1)]);
                    let wanted = if from > at + 5 * SECOND {
                        "not_yet_issued"
                    } else if at >= until {
                        "expired"
                    } else if at >= 900 * SECOND {
                        "request_expired"
                    } else {
                        let mut requests = half_open.clone();
                        let heard = hear(&mut requests, &sent, micros(at));
                        // The other word was heard at the beginning, and counts from then on.
                        let missing = u32::from(at < 0);
                        assert_eq!(heard, Ok(Counted::Grant { missing }));
                        opened += 1;
                        continue;
                    };
                    let refusal = refused(&half_open, &sent, micros(at));
                    let dates = (issued, lasts, heard, off);
                    assert_eq!(name_of(&refusal), wanted, "{dates:?}");
                    counts.note(wanted);
                }
            }
        }
    }
    counts.print("resolutions, dates");
    println!("({opened} were heard in their time, and count)");
}

/// A copy of what was heard, and the clock set back to any moment at which it was good.
#[test]
fn matrix_a_copy_never_counts_whatever_the_clock_says() {
    let mut requests = Requests::default();
    let mut asked = asked();
    asked.requirement.quorum = 3;
    requests.open(asked.clone());
    let heard = hear(&mut requests, &honest(), later(20));
    assert_eq!(heard, Ok(Counted::Grant { missing: 2 }));
    let mut counts = Counts::default();
    for second in -900_i64..=900 {
        let refusal = hear(&mut requests, &honest(), earlier(-second)).unwrap_err();
        let wanted = match second {
            ..-5 => "not_yet_issued",
            -5..900 => "repeated",
            _ => "expired",
        };
        assert_eq!(name_of(&refusal), wanted, "after {second} s");
        assert_eq!(requests.get(asked.id).unwrap().missing(later(20)), 2);
        counts.note(format!("a copy: {wanted}"));
    }
    counts.print("resolutions, copies");
}

#[test]
fn matrix_what_is_over_is_not_opened_again() {
    use lodestar_policy::Closing;
    let mut counts = Counts::default();
    for closing in [
        Closing::Spent,
        Closing::Denied,
        Closing::Expired,
        Closing::WorldMoved,
        Closing::Abandoned,
    ] {
        let mut requests = half_open();
        hear(&mut requests, &honest(), now()).unwrap();
        requests.close(asked().id, closing);
        for nonce in 10..60 {
            let fresh = said(&asked(), "alice", 1, [nonce; 16]).to_json();
            assert_eq!(hear(&mut requests, &fresh, now()), Err(Refusal::Closed));
            counts.note(format!("after it was over: {closing:?}"));
        }
        assert_eq!(requests.standing(asked().id), Some(Standing::Over(closing)));
        let grants = requests.spendable(asked().id, asked().card.action.fingerprint, now());
        assert!(grants.is_err());
    }
    counts.print("resolutions, closed requests");
}

#[test]
fn a_key_counts_until_the_moment_of_its_revocation() {
    for (revoked, counts) in [(-1, false), (0, false), (1, true)] {
        let mut alice = approver("alice", &key(1), &["dev"]);
        alice.revoked_at = Some(micros(revoked));
        let people = registry(vec![alice, approver("fred", &key(6), &["dev"])]);
        let mut requests = half_open();
        let statement = said(&asked(), "alice", 1, [1; 16]);
        let heard = requests.hear(asked().id, &statement, &people, now());
        assert_eq!(heard.is_ok(), counts, "{heard:?}");
    }
}

#[test]
fn a_word_is_spendable_until_it_expires_or_its_key_is_revoked_and_not_before_it_was_heard() {
    let fingerprint = asked().card.action.fingerprint;
    let spendable = |requests: &Requests, at| requests.spendable(asked().id, fingerprint, at);
    let mut short = asked();
    short.expires_at = micros(10 * SECOND);
    let statement = said(&short, "alice", 1, [1; 16]);
    let mut requests = half_open();
    let heard = requests.hear(asked().id, &statement, &approvers(), later(5));
    assert_eq!(heard, Ok(Counted::Grant { missing: 0 }));
    assert!(spendable(&requests, micros(5 * SECOND - 1)).is_err());
    assert_eq!(spendable(&requests, later(5)).unwrap().len(), 2);
    assert!(spendable(&requests, micros(10 * SECOND - 1)).is_ok());
    assert!(spendable(&requests, later(10)).is_err());
    // Who says it again is heard again, although nobody is missing by what was said.
    let again = said(&asked(), "alice", 1, [2; 16]);
    let heard = requests.hear(asked().id, &again, &approvers(), later(10));
    assert_eq!(heard, Ok(Counted::Grant { missing: 0 }));
    assert_eq!(spendable(&requests, later(10)).unwrap().len(), 2);

    let mut alice = approver("alice", &key(1), &["dev"]);
    alice.revoked_at = Some(later(10));
    let people = registry(vec![alice, approver("fred", &key(6), &["dev"])]);
    let mut requests = half_open();
    let statement = said(&asked(), "alice", 1, [1; 16]);
    let heard = requests.hear(asked().id, &statement, &people, later(5));
    assert_eq!(heard, Ok(Counted::Grant { missing: 0 }));
    assert!(spendable(&requests, micros(10 * SECOND - 1)).is_ok());
    assert!(spendable(&requests, later(10)).is_err());
}
