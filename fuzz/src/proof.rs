//! Laws of proofs.

use lodestar_log::{Proof, Trust};

use crate::sample;

/// A proof that is accepted keeps everything through JSON. It holds for nobody who trusts no key or
/// a stranger's; for those who trust the log's key it shows only what is in the sample log.
pub fn proof(data: &[u8]) {
    let Ok(proof) = Proof::parse(data) else {
        return;
    };
    let json = serde_json::to_vec(&proof).expect("a proof is plain data");
    assert_eq!(Proof::parse(&json).ok().as_ref(), Some(&proof));
    assert!(proof.check(&Trust::default()).is_err());
    assert!(
        proof
            .check(&Trust::only(sample::stranger_key().public()))
            .is_err()
    );
    let Ok(proven) = proof.check(&Trust::only(sample::log_key().public())) else {
        return;
    };
    let signed = sample::signed_checkpoints()
        .into_iter()
        .find(|c| c.origin == proven.origin && c.size == proven.size && c.root == proven.root);
    assert!(signed.is_some(), "nobody signed this checkpoint");
    let leaves = sample::leaves();
    if let Some(event) = &proven.event {
        assert_eq!(leaves.get(event.seq as usize), Some(&event.leaf_hash));
    }
    if let Some(extends) = &proven.extends {
        assert_eq!(sample::root(extends.size), Some(extends.root));
    }
    assert!(proven.event.is_some() != proven.extends.is_some());
}
