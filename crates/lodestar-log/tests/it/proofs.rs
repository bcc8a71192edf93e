//! Proofs stand alone, and only genuine ones do.

use lodestar_core::key::SecretKey;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_log::{
    Disclosure, Proof, ProveError, ProvenEvent, Trust, prove_consistency, prove_inclusion,
};

use crate::support::{World, id};

#[test]
fn every_event_and_every_prefix_can_be_proven() {
    let world = World::fast();
    world.closed("s1", 37);
    let dir = world.log().session(&id("s1"));
    let trust = Trust::only(world.key.public());
    for seq in 0..37 {
        for disclosure in [Disclosure::Payload, Disclosure::HeadOnly] {
            let proof = prove_inclusion(&dir, seq, disclosure, &trust).unwrap();
            let file = serde_json::to_vec(&proof).unwrap();
            let proven = Proof::parse(&file).unwrap().check(&trust).unwrap();
            let event = proven.event.unwrap();
            assert_eq!(event.seq, seq);
            assert_eq!(event.payload.is_some(), disclosure == Disclosure::Payload);
        }
    }
    for since in 1..=37 {
        let proof = prove_consistency(&dir, since, &trust).unwrap();
        let proven = proof.check(&trust).unwrap();
        assert_eq!(proven.extends.unwrap().size, since);
    }
    assert!(matches!(
        prove_inclusion(&dir, 37, Disclosure::Payload, &trust),
        Err(ProveError::NotProven { seq: 37, size: 37 })
    ));
    assert!(matches!(
        prove_consistency(&dir, 38, &trust),
        Err(ProveError::TooFew {
            since: 38,
            size: 37
        })
    ));
}

/// Flips each bit of a proof file in turn. A flip that JSON does not care about (white space does
/// not occur, but an escape could) would have to mean the same; none does.
#[test]
fn no_altered_proof_holds() {
    let world = World::fast();
    world.closed("s1", 12);
    let dir = world.log().session(&id("s1"));
    let trust = Trust::only(world.key.public());
    let mut tried = 0;
    for proof in [
        prove_inclusion(&dir, 5, Disclosure::Payload, &trust).unwrap(),
        prove_consistency(&dir, 7, &trust).unwrap(),
    ] {
        let file = serde_json::to_vec(&proof).unwrap();
        for bit in 0..file.len() * 8 {
            let mut altered = file.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let holds = Proof::parse(&altered).is_ok_and(|p| p.check(&trust).is_ok());
            assert!(!holds, "bit {bit} of {}", String::from_utf8_lossy(&file));
            tried += 1;
        }
    }
    println!("altered proofs: {tried} tried, none holds");
}

#[test]
fn a_proof_with_another_key_log_or_event_does_not_hold() {
    let world = World::fast();
    world.closed("s1", 12);
    world.closed("s2", 12);
    let trust = Trust::only(world.key.public());
    let stranger = Trust::only(SecretKey::from_seed([1; 32]).public());
    let prove = |session: &str, seq| {
        let dir = world.log().session(&id(session));
        prove_inclusion(&dir, seq, Disclosure::Payload, &trust).unwrap()
    };
    assert!(matches!(
        prove("s1", 3).check(&stranger),
        Err(ProveError::Checkpoint(_))
    ));
    assert!(matches!(
        prove("s1", 3).check(&Trust::default()),
        Err(ProveError::Checkpoint(_))
    ));
    // The event of one session under the checkpoint of another.
    let (Proof::Inclusion(one), Proof::Inclusion(other)) = (prove("s1", 3), prove("s2", 3)) else {
        panic!("an inclusion proof was asked for")
    };
    let mut mixed = one.clone();
    mixed.event = other.event.clone();
    assert!(Proof::Inclusion(mixed).check(&trust).is_err());
    let mut mixed = one.clone();
    mixed.checkpoint = other.checkpoint;
    assert!(Proof::Inclusion(mixed).check(&trust).is_err());
    // A payload that the head does not commit to.
    let ProvenEvent::Line(line) = &one.event else {
        panic!("the payload was asked for")
    };
    let mut lied = one.clone();
    lied.event = ProvenEvent::Line(line.replace("event 3", "event 4"));
    assert!(Proof::Inclusion(lied).check(&trust).is_err());
}

/// A tree over inner nodes as if they were leaves must not pass: the hashes are domain-separated.
#[test]
fn an_inner_node_is_no_event() {
    let world = World::fast();
    world.closed("s1", 4);
    let trust = Trust::only(world.key.public());
    let dir = world.log().session(&id("s1"));
    let Proof::Inclusion(mut proof) =
        prove_inclusion(&dir, 0, Disclosure::HeadOnly, &trust).unwrap()
    else {
        panic!("an inclusion proof was asked for")
    };
    proof.path.size = 2;
    proof.path.hashes.remove(0);
    assert!(Proof::Inclusion(proof).check(&trust).is_err());
}

#[test]
fn a_checkpoint_of_the_ledger_proves_nothing_about_a_session() {
    let world = World::fast();
    world.closed("s1", 4);
    let note = std::fs::read(world.log().ledger_checkpoint_path()).unwrap();
    std::fs::write(world.log().session(&id("s1")).checkpoint_path(), &note).unwrap();
    let report = world.verify();
    let codes: Vec<_> = report.all_problems().map(|p| p.kind.code()).collect();
    assert!(codes.contains(&"checkpoint_invalid"), "{report:#?}");
    let body = Note::parse(&note).unwrap();
    assert_eq!(
        Checkpoint::parse_body(body.text()).unwrap().origin,
        "lodestar.log/notes/_ledger"
    );
}
