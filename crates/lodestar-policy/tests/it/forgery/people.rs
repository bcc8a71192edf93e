//! Who signs: what people are stands in the operator's registry, and nowhere in what they sign.

use super::*;
use crate::forging::signed_raw;

#[test]
fn matrix_whoever_lacks_role_clearance_scope_or_a_key_that_counts() {
    let half_open = half_open();
    let mut counts = Counts::default();
    for (name, seed, lacks) in [
        ("bob", 2, "no_role"),
        ("carl", 3, "no_clearance"),
        ("dora", 4, "other_scope"),
        ("erik", 5, "revoked_key"),
        ("mallory", 7, "unknown_key"),
    ] {
        for decision in ["grant", "deny"] {
            for nonce in 0..50 {
                let mut own = payload(&said(&asked(), name, seed, [nonce; 16]).to_json());
                own["subject"]["decision"] = decision.into();
                let sent = signed_raw(APPROVAL, &own, &[&key(seed)]);
                let refusal = refused(&half_open, &sent, now());
                assert_eq!(name_of(&refusal), lacks, "{name}");
                counts.note(lacks);
                // As somebody who has it.
                own["subject"]["approver"] = "alice".into();
                let sent = signed_raw(APPROVAL, &own, &[&key(seed)]);
                let name = name_of(&refused(&half_open, &sent, now()));
                let wanted = match lacks {
                    "revoked_key" | "unknown_key" => lacks,
                    _ => "other_approver",
                };
                assert_eq!(name, wanted);
                counts.note(format!("{lacks}, as Alice"));
            }
        }
    }
    counts.print("resolutions, people");
}

#[test]
fn matrix_one_person_is_no_quorum_however_often_and_with_however_many_keys() {
    let keys = |seed: u8| approver("fred", &key(seed), &["dev"]);
    let freds = registry((6..=40).map(keys).collect());
    let mut requests = Requests::default();
    let asked = asked();
    requests.open(asked.clone());
    let mut counts = Counts::default();
    for nonce in 0..10 {
        for seed in 6..=40 {
            let mut bytes = [nonce; 16];
            bytes[0] = seed;
            let statement = said(&asked, "fred", seed, bytes);
            let heard = requests.hear(asked.id, &statement, &freds, now());
            assert_eq!(heard, Ok(Counted::Grant { missing: 1 }));
            counts.note("the same person again");
        }
    }
    assert_eq!(requests.standing(asked.id), Some(Standing::Open));
    counts.print("resolutions, quorum");
}

#[test]
fn a_quorum_without_the_role_that_is_asked_for_is_none() {
    let people = registry(vec![
        approver("alice", &key(1), &["dev"]),
        approver("bob", &key(2), &["dev"]),
        approver("fred", &key(6), &["release", "dev"]),
    ]);
    let asked = request(2, &["dev", "release"]);
    let mut requests = Requests::default();
    requests.open(asked.clone());
    for (name, seed, missing) in [("alice", 1, 1), ("bob", 2, 1), ("fred", 6, 0)] {
        let statement = said(&asked, name, seed, [seed; 16]);
        let heard = requests.hear(asked.id, &statement, &people, now());
        assert_eq!(heard, Ok(Counted::Grant { missing }), "{name}");
    }
}
