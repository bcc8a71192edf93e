//! What verification says beside yes and no: of whose signature, of which session, and by which defence.

use std::collections::BTreeSet;
use std::fs;

use lodestar_core::defence::Defence;
use lodestar_core::key::SecretKey;
use lodestar_core::note::{Checkpoint, Note, NoteKey};
use lodestar_log::Trust;
use lodestar_log::verify::{ProjectReport, Remark, SessionState, VerifyOptions, verify_project};

use crate::support::{World, append, id};

const WITNESS: &str = "witness.example";

fn head(world: &World) -> Note {
    Note::parse(&fs::read(world.log().ledger_checkpoint_path()).unwrap()).unwrap()
}

fn verified(world: &World, trust: &Trust, options: &VerifyOptions) -> ProjectReport {
    verify_project(&world.log(), trust, options, &|_| ()).unwrap()
}

#[test]
fn a_signature_in_our_name_by_another_key_is_not_ours() {
    let world = World::fast();
    world.closed("s1", 4);
    let mut note = head(&world);
    let body = Checkpoint::parse_body(note.text()).unwrap();
    let theirs = body.sign(&SecretKey::from_seed([3; 32]));
    note.add_signature(theirs.signatures()[0].clone()).unwrap();
    fs::write(world.log().ledger_checkpoint_path(), note.to_string()).unwrap();
    let report = world.verify();
    assert!(report.is_intact(), "{report:#?}");
    let name = world.log().ledger_origin();
    assert_eq!(report.remarks, [Remark::UnknownSignature { name }]);
}

#[test]
fn a_witness_is_known_by_name_and_key_together() {
    let world = World::fast();
    world.closed("s1", 4);
    let (right, wrong) = (SecretKey::from_seed([3; 32]), SecretKey::from_seed([4; 32]));
    let mut note = head(&world);
    Checkpoint::cosign(&mut note, WITNESS, &right, 1_800_000_000).unwrap();
    fs::write(world.log().ledger_checkpoint_path(), note.to_string()).unwrap();
    let key = |key: &SecretKey| NoteKey::cosignature(WITNESS, &key.public()).unwrap();
    let remarks = |witnesses: Vec<NoteKey>| {
        let trust = Trust {
            witnesses,
            ..world.trust()
        };
        let report = verified(&world, &trust, &VerifyOptions::default());
        assert!(report.is_intact(), "{report:#?}");
        report.remarks
    };
    // Another key of the same name does not make it known, nor does it stand in the way.
    assert_eq!(remarks(vec![key(&wrong), key(&right)]), []);
    let name = WITNESS.to_owned();
    assert_eq!(
        remarks(vec![key(&wrong)]),
        [Remark::UnknownSignature { name }]
    );
}

#[test]
fn one_session_is_looked_at_where_one_is_asked_for() {
    let world = World::fast();
    world.closed("s1", 4);
    world.closed("s2", 5);
    let writer = world.create("s3");
    append(&writer, 1);
    let looked_at = |session: Option<&str>| {
        let options = VerifyOptions {
            session: session.map(id),
            ..VerifyOptions::default()
        };
        let report = verified(&world, &world.trust(), &options);
        let of = |session: &lodestar_log::verify::SessionReport| {
            (session.session.to_string(), session.state.to_string())
        };
        report.sessions.iter().map(of).collect::<Vec<_>>()
    };
    let said = |name: &str, state: &str| (name.to_owned(), state.to_owned());
    assert_eq!(looked_at(Some("s2")), [said("s2", "closed")]);
    assert_eq!(
        looked_at(None),
        [
            said("s1", "closed"),
            said("s2", "closed"),
            said("s3", "live")
        ]
    );
    drop(writer);
    assert_eq!(
        looked_at(Some("s3")),
        [said("s3", SessionState::Open.to_string().as_str())]
    );
    assert_eq!(SessionState::Open.to_string(), "open");
}

#[test]
fn a_harness_is_not_told_what_the_defence_that_it_took_out_finds() {
    let world = World::fast();
    world.closed("s1", 6);
    let path = world.log().session(&id("s1")).events_path();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("event 2", "event 9", 1)).unwrap();
    let codes = |taken_out: &[Defence]| {
        let options = VerifyOptions {
            taken_out: taken_out.iter().copied().collect::<BTreeSet<_>>(),
            ..VerifyOptions::default()
        };
        let report = verified(&world, &world.trust(), &options);
        let codes = report.all_problems().map(|problem| problem.kind.code());
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes(&[]), ["payload_changed"]);
    assert_eq!(codes(&[Defence::Checkpoints]), ["payload_changed"]);
    assert_eq!(codes(&[Defence::HashChain]), [""; 0]);
    assert_eq!(codes(&[Defence::LogVerification]), [""; 0]);
}

#[test]
fn a_head_over_nothing_that_a_witness_signed_is_what_every_ledger_extends() {
    let world = World::fast();
    world.closed("s1", 4);
    let nothing = Checkpoint {
        origin: world.log().ledger_origin(),
        size: 0,
        root: lodestar_core::merkle::Frontier::new().root(),
    };
    let options = VerifyOptions {
        witnessed: Some(nothing.sign(&world.key).to_string().into_bytes()),
        ..VerifyOptions::default()
    };
    let report = verified(&world, &world.trust(), &options);
    assert!(report.is_intact(), "{report:#?}");
}
