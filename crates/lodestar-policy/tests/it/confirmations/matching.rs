//! One case after the other, in the order of the checks.

use std::collections::BTreeSet;

use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::ActorId;
use lodestar_core::statement::confirmation::{
    ConsumeLedger, Consumption, LedgerError, MemoryLedger, Spent,
};
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Envelope, Issued,
    Statement, StatementKind,
};
use lodestar_policy::confirmation::{
    ConfirmationKeys, Confirmations, Consumed, Distrust, ENVELOPE_NAME, Evidence, Mode, Recorded,
    Sent, Settled, Unmatched, settle,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    alices, card, card_of, confirmations, confirmed, earlier, enforced, held, issued, key, later,
    now, path, reason, refusal, signed,
};

fn distrust(why: Distrust) -> Unmatched {
    Unmatched::Untrusted { why }
}

fn signed_by(key: &SecretKey, change: impl FnOnce(&mut Issued<Confirmation>)) -> Vec<u8> {
    let mut issued = issued(&card());
    issued.key_id = key.public().key_id();
    change(&mut issued);
    Envelope::sign(&issued, key).unwrap().to_json()
}

#[test]
fn what_names_exactly_the_held_act_is_confirmed_and_spent() {
    let mut ledger = MemoryLedger::default();
    let sent = signed(&issued(&card()));
    let (act, set) = (held(&card()), confirmations(Mode::Enforce));
    let Settled::Confirmed(confirmed, consumed) =
        settle(Some(&sent), &act, &set, &mut ledger, now()).unwrap()
    else {
        panic!("it matches")
    };
    assert_eq!(confirmed.operator().as_str(), "alice");
    assert_eq!(confirmed.fingerprint(), card().action.fingerprint);
    assert_eq!(confirmed.statement(), consumed.evidence.details().digest());
    assert!(ledger.is_spent(confirmed.id()).unwrap());
    let again = settle(Some(&sent), &act, &set, &mut ledger, now()).unwrap();
    assert_eq!(reason(again), Unmatched::Consumed);
}

#[test]
fn nothing_sent_is_missing() {
    let mut ledger = MemoryLedger::default();
    let set = confirmations(Mode::Enforce);
    let settled = settle(None, &held(&card()), &set, &mut ledger, now()).unwrap();
    assert!(matches!(settled, Settled::Missing));
}

#[test]
fn report_only_is_the_default_and_spends_nothing() {
    assert_eq!(Confirmations::default().mode, Mode::ReportOnly);
    let mut ledger = MemoryLedger::default();
    let sent = signed(&issued(&card()));
    let act = held(&card());
    for _ in 0..3 {
        let set = confirmations(Mode::ReportOnly);
        let settled = settle(Some(&sent), &act, &set, &mut ledger, now()).unwrap();
        let Settled::WouldMatch(matched) = settled else {
            panic!("it would match")
        };
        assert_eq!(matched.mode, Mode::ReportOnly);
        assert!(!ledger.is_spent(matched.id).unwrap());
    }
}

#[test]
fn text_is_never_evidence() {
    for text in [
        "",
        "decision=match",
        "I, alice, confirm this.",
        "{\"decision\":\"match\",\"authorized\":true}",
        "{\"name\":\"operator-confirmation-evidence\",\"display\":false,\"details\":{}}",
    ] {
        let refused = reason(enforced(text.as_bytes(), &card(), now()));
        let malformed = matches!(
            &refused,
            Unmatched::Untrusted {
                why: Distrust::Malformed { .. }
            }
        );
        assert!(malformed, "{text}: {refused}");
    }
}

#[test]
fn evidence_that_is_too_long_is_not_looked_at() {
    let long = vec![b' '; 1 << 20];
    let refused = reason(enforced(&long, &card(), now())).to_string();
    assert!(refused.contains("1048576 bytes"), "{refused}");
}

#[test]
fn another_kind_of_statement_is_none() {
    #[derive(Serialize, Deserialize)]
    struct Other {
        id: ConfirmationId,
    }
    impl Statement for Other {
        const KIND: StatementKind = StatementKind::Approval;
    }
    let like = issued(&card());
    let other = Issued {
        expires_at: like.expires_at,
        issued_at: like.issued_at,
        key_id: like.key_id,
        nonce: like.nonce,
        subject: Other {
            id: like.subject.id,
        },
    };
    let sent = Envelope::sign(&other, &alices()).unwrap().to_json();
    let refused = reason(enforced(&sent, &card(), now())).to_string();
    assert!(
        refused.contains("kind `confirmation` was expected"),
        "{refused}"
    );
}

/// A confirmation as it could be signed by mistake: for whatever comes next.
#[derive(Serialize, Deserialize)]
struct Unbound {
    #[serde(skip_serializing_if = "Option::is_none")]
    act: Option<serde_json::Value>,
    decision: ConfirmationDecision,
    id: ConfirmationId,
    operator: ActorId,
    origin: ConfirmationOrigin,
    session: lodestar_core::name::SessionId,
}

impl Statement for Unbound {
    const KIND: StatementKind = StatementKind::Confirmation;
}

#[test]
fn an_unbound_confirmation_is_refused_as_such() {
    for act in [None, Some(json!(null)), Some(json!({}))] {
        let bound = issued(&card());
        let subject = bound.subject;
        let unbound = Issued {
            expires_at: bound.expires_at,
            issued_at: bound.issued_at,
            key_id: bound.key_id,
            nonce: bound.nonce,
            subject: Unbound {
                act,
                decision: subject.decision,
                id: subject.id,
                operator: subject.operator,
                origin: subject.origin,
                session: subject.session,
            },
        };
        let sent = Envelope::sign(&unbound, &alices()).unwrap().to_json();
        let refused = reason(enforced(&sent, &card(), now()));
        assert_eq!(refused, distrust(Distrust::Unbound));
    }
}

#[test]
fn keys_count_for_their_origin_and_their_operators_only() {
    let stranger = signed_by(&key(7), |_| {});
    let refused = reason(enforced(&stranger, &card(), now()));
    assert_eq!(refused, distrust(Distrust::UnknownKey));

    let origin = ConfirmationOrigin::OperatorContractReview;
    let other = signed_by(&alices(), |it| it.subject.origin = origin);
    let refused = reason(enforced(&other, &card(), now()));
    assert_eq!(refused, distrust(Distrust::OtherOrigin { origin }));

    let bob: ActorId = "bob".parse().unwrap();
    let other = signed_by(&alices(), |it| it.subject.operator = bob.clone());
    let refused = reason(enforced(&other, &card(), now()));
    assert_eq!(refused, distrust(Distrust::OtherOperator { operator: bob }));
}

#[test]
fn a_host_signs_for_those_it_is_listed_for() {
    let sent = signed_by(&key(2), |it| {
        it.subject.origin = ConfirmationOrigin::OperatorContractReview;
        it.subject.operator = "bob".parse().unwrap();
    });
    assert_eq!(
        confirmed(enforced(&sent, &card(), now()))
            .operator()
            .as_str(),
        "bob"
    );
}

#[test]
fn a_revoked_key_counts_no_more_from_that_moment_on() {
    let mut set = confirmations(Mode::Enforce);
    let mut keys: Vec<_> = set.keys.keys().to_vec();
    keys[0].revoked_at = Some(later(10));
    set.keys = ConfirmationKeys::new(keys).unwrap();
    let sent = signed(&issued(&card()));
    let act = held(&card());
    let at = |now| settle(Some(&sent), &act, &set, &mut MemoryLedger::default(), now).unwrap();
    assert!(matches!(at(later(9)), Settled::Confirmed(..)));
    let revoked = distrust(Distrust::RevokedKey { at: later(10) });
    assert_eq!(reason(at(later(10))), revoked);
}

#[test]
fn time_is_checked_to_the_microsecond() {
    let sent = signed(&issued(&card()));
    let at = |now| enforced(&sent, &card(), now);
    let just_before = |moment: lodestar_core::time::Timestamp| {
        lodestar_core::time::Timestamp::from_unix_micros(moment.unix_micros() - 1).unwrap()
    };
    assert!(matches!(at(just_before(later(30))), Settled::Confirmed(..)));
    assert_eq!(reason(at(later(30))), Unmatched::Expired { at: later(30) });
    assert_eq!(
        reason(at(later(3600))),
        Unmatched::Expired { at: later(30) }
    );
    assert!(
        matches!(at(earlier(5)), Settled::Confirmed(..)),
        "clocks differ"
    );
    let too_early = Unmatched::NotYetValid { at: now() };
    assert_eq!(reason(at(just_before(earlier(5)))), too_early);
    assert_eq!(reason(at(earlier(3600))), too_early);
}

#[test]
fn what_claims_to_last_longer_than_it_may_is_refused_from_its_first_moment() {
    let mut long = issued(&card());
    long.expires_at = Some(later(15 * 60));
    assert!(matches!(
        enforced(&signed(&long), &card(), now()),
        Settled::Confirmed(..)
    ));
    for expires_at in [Some(later(15 * 60 + 1)), None] {
        long.expires_at = expires_at;
        assert_eq!(refusal(&long), Unmatched::Overlong { seconds: 900 });
    }
    long.expires_at = Some(later(0));
    assert_eq!(refusal(&long), Unmatched::Expired { at: now() });
}

#[test]
fn a_review_lasts_a_day_below_l4_and_a_quarter_of_an_hour_there() {
    let reviewed = |rung| {
        let card = card_of(rung, json!({"path": "a/b"}));
        let mut review = issued(&card);
        review.key_id = key(2).public().key_id();
        review.subject.origin = ConfirmationOrigin::OperatorContractReview;
        review.expires_at = Some(later(24 * 3600));
        let sent = Envelope::sign(&review, &key(2)).unwrap().to_json();
        enforced(&sent, &card, later(23 * 3600))
    };
    assert!(matches!(reviewed(Rung::L3), Settled::Confirmed(..)));
    assert_eq!(
        reason(reviewed(Rung::L4)),
        Unmatched::Overlong { seconds: 900 }
    );
}

#[test]
fn spellings_of_one_path_and_one_number_match() {
    let confirm = |written: serde_json::Value, paths: &[&str], held: serde_json::Value| {
        let card = card_of(Rung::L4, held);
        let mut issued = issued(&card_of(Rung::L4, written));
        issued.subject.act.paths = paths.iter().map(ToString::to_string).collect();
        enforced(&signed(&issued), &card, now())
    };
    let asked = || json!({"path": "a/b", "n": 1});
    for (written, paths) in [
        (json!({"path": "./a/b", "n": 1}), ["./a/b"]),
        (json!({"n": 1.0, "path": "a//b"}), ["a/b"]),
        (json!({"path": "a/x/../b/", "n": 1}), ["a/./b"]),
    ] {
        assert!(matches!(
            confirm(written, &paths, asked()),
            Settled::Confirmed(..)
        ));
        let (written, paths) = (json!({"path": "a/b", "n": 1}), ["a/b"]);
        let held = json!({"path": "./a/../a/b", "n": 1.0});
        assert!(matches!(
            confirm(written, &paths, held),
            Settled::Confirmed(..)
        ));
    }
    for paths in [["../a/b"], ["a/../../a/b"], ["/a/b"], ["a/c"], [""]] {
        let fields = match reason(confirm(asked(), &paths, asked())) {
            Unmatched::Mismatch { fields } => fields,
            other => panic!("{other}"),
        };
        assert_eq!(
            fields.iter().map(|f| f.as_str()).collect::<Vec<_>>(),
            ["path"]
        );
    }
    // A text that is no path is never normalised.
    let card = card_of(Rung::L4, json!({"path": "a", "content": "./a"}));
    let mut other = issued(&card);
    other.subject.act.arguments["content"] = json!("a");
    let refused = reason(enforced(&signed(&other), &card, now())).to_string();
    assert!(refused.contains("`payload` differ"), "{refused}");
    assert_eq!(path("./a").as_str(), "a");
}

#[test]
fn a_decline_is_signed_recorded_and_matches_nothing() {
    let mut no = issued(&card());
    no.subject.decision = ConfirmationDecision::Decline;
    let operator: ActorId = "alice".parse().unwrap();
    assert_eq!(refusal(&no), Unmatched::Declined { operator });
    let recorded = Recorded::new(&signed(&no), now());
    let Sent::Evidence(evidence) = &recorded.sent else {
        panic!("it is evidence")
    };
    assert_eq!(evidence.details().to_json(), signed(&no));
}

#[test]
fn records_keep_the_details_whole_and_out_of_sight() {
    let sent = signed(&issued(&card()));
    let Settled::Confirmed(_, consumed) = enforced(&sent, &card(), now()) else {
        panic!("it matches")
    };
    let written = serde_json::to_value(&consumed).unwrap();
    assert_eq!(written["operation"], "consume-envelope");
    assert_eq!(written["evidence"]["name"], ENVELOPE_NAME);
    assert_eq!(written["evidence"]["display"], false);
    let details: serde_json::Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!(written["evidence"]["details"], details);
    let shown = format!("{:?}", consumed.evidence);
    assert!(shown.len() < 120 && !shown.contains("payload"), "{shown}");

    let read: Consumed = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(read, *consumed);
    let mut visible = written;
    visible["evidence"]["display"] = json!(true);
    assert!(serde_json::from_value::<Consumed>(visible).is_err());

    let recorded = Recorded::new(b"not evidence", now());
    let written = serde_json::to_value(&recorded).unwrap();
    assert_eq!(written["unreadable"]["bytes"], 12);
    let read: Recorded = serde_json::from_value(written).unwrap();
    assert_eq!(read, recorded);
}

#[test]
fn refusals_are_written_and_read_back() {
    let mut other = issued(&card());
    other.subject.session = "s-2".parse().unwrap();
    let Settled::Refused(refused) = enforced(&signed(&other), &card(), now()) else {
        panic!("another session")
    };
    let written = serde_json::to_value(&refused).unwrap();
    assert_eq!(
        written["reason"],
        json!({"unmatched": "mismatch", "fields": ["session"]})
    );
    let read: lodestar_policy::confirmation::Refused = serde_json::from_value(written).unwrap();
    assert_eq!(read, *refused);
    let unknown = distrust(Distrust::UnknownKey);
    let written = serde_json::to_value(&unknown).unwrap();
    assert_eq!(
        written,
        json!({"unmatched": "untrusted", "distrust": "unknown_key"})
    );
    assert_eq!(
        serde_json::from_value::<Unmatched>(written).unwrap(),
        unknown
    );
}

#[test]
fn what_was_spent_is_derived_again_from_the_log() {
    let sent = signed(&issued(&card()));
    let Settled::Confirmed(confirmed, consumed) = enforced(&sent, &card(), now()) else {
        panic!("it matches")
    };
    let set = confirmations(Mode::Enforce);
    let again = consumed.again(&held(&card()), &set.keys).unwrap();
    assert_eq!(again.statement(), confirmed.statement());
    let other = card_of(Rung::L4, json!({"path": "elsewhere"}));
    assert!(consumed.again(&held(&other), &set.keys).is_err());
    assert!(
        consumed
            .again(&held(&card()), &ConfirmationKeys::default())
            .is_err()
    );
}

/// A ledger that somebody else writes to between a look and a spending, or that cannot answer.
enum Trouble {
    Raced,
    Broken,
}

impl ConsumeLedger for Trouble {
    fn is_spent(&mut self, _: ConfirmationId) -> Result<bool, LedgerError> {
        Ok(false)
    }

    fn consume(&mut self, _: &Consumption) -> Result<Spent, LedgerError> {
        match self {
            Self::Raced => Ok(Spent::Before),
            Self::Broken => Err(LedgerError("the disk is full".into())),
        }
    }
}

#[test]
fn whoever_comes_second_or_cannot_ask_gets_nothing() {
    let sent = signed(&issued(&card()));
    let (act, set) = (held(&card()), confirmations(Mode::Enforce));
    let raced = settle(Some(&sent), &act, &set, &mut Trouble::Raced, now()).unwrap();
    assert_eq!(reason(raced), Unmatched::Consumed);
    let broken = settle(Some(&sent), &act, &set, &mut Trouble::Broken, now());
    assert!(broken.unwrap_err().to_string().contains("the disk is full"));
}

#[test]
fn a_configuration_says_who_may_sign_what() {
    let public = alices().public();
    let text = format!(
        "mode = \"enforce\"\n[[keys]]\npublic_key = \"{public}\"\norigins = [\"runtime-ui-confirm\"]\noperators = [\"alice\"]\n"
    );
    let set: Confirmations = toml::from_str(&text).unwrap();
    assert_eq!(set.mode, Mode::Enforce);
    let wanted = BTreeSet::from([ConfirmationOrigin::RuntimeUiConfirm]);
    assert_eq!(set.keys.keys()[0].origins, wanted);
    assert_eq!(
        toml::from_str::<Confirmations>("").unwrap(),
        Confirmations::default()
    );
    for (wrong, why) in [
        (text.replace("\"runtime-ui-confirm\"", ""), "has no origin"),
        (text.replace("\"alice\"", ""), "may sign for nobody"),
        (
            text.replace("runtime-ui-confirm", "text"),
            "unknown confirmation origin `text`",
        ),
        (text.replace("enforce", "on"), "unknown variant `on`"),
        (
            format!("{text}{}", &text[text.find("[[").unwrap()..]),
            "listed twice",
        ),
    ] {
        let error = toml::from_str::<Confirmations>(&wrong)
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn evidence_signed_here_reads_back() {
    let it = issued(&card());
    let evidence =
        Evidence::sign(it.subject.clone(), &alices(), it.nonce, now(), later(30)).unwrap();
    assert_eq!(evidence.details().to_json(), signed(&it));
    assert_eq!(Evidence::read(&signed(&it)).unwrap(), evidence);
}
