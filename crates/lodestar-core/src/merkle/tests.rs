//! Against an independent, naive reading of RFC 6962's definitions (section 2.1), and against
//! proofs altered in every way that is cheap to try.

use proptest::prelude::*;

use super::*;
use crate::digest::{Digest, decode_hex, leaf_hash, node_hash, sha256};

/// MTH of section 2.1, over leaf hashes.
fn mth(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => sha256(b""),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(k(leaves.len()));
            node_hash(&mth(left), &mth(right))
        }
    }
}

/// The largest power of two smaller than n.
fn k(n: usize) -> usize {
    let mut k = 1;
    while k * 2 < n {
        k *= 2;
    }
    k
}

/// PATH of section 2.1.1.
fn path(m: usize, leaves: &[Digest]) -> Vec<Digest> {
    if leaves.len() == 1 {
        return vec![];
    }
    let (left, right) = leaves.split_at(k(leaves.len()));
    let (mut proof, sibling) = if m < left.len() {
        (path(m, left), mth(right))
    } else {
        (path(m - left.len(), right), mth(left))
    };
    proof.push(sibling);
    proof
}

/// SUBPROOF of section 2.1.2.
fn subproof(m: usize, leaves: &[Digest], whole: bool) -> Vec<Digest> {
    if m == leaves.len() {
        return if whole { vec![] } else { vec![mth(leaves)] };
    }
    let (left, right) = leaves.split_at(k(leaves.len()));
    let (mut proof, sibling) = if m <= left.len() {
        (subproof(m, left, whole), mth(right))
    } else {
        (subproof(m - left.len(), right, false), mth(left))
    };
    proof.push(sibling);
    proof
}

fn frontier_root(leaves: &[Digest]) -> Digest {
    let mut frontier = Frontier::new();
    for leaf in leaves {
        frontier.push(*leaf);
    }
    assert_eq!(frontier.size(), leaves.len() as u64);
    frontier.root()
}

fn prove_inclusion(index: usize, leaves: &[Digest]) -> InclusionProof {
    let mut prover = InclusionProver::new(index as u64, leaves.len() as u64).unwrap();
    leaves.iter().for_each(|leaf| prover.push(*leaf));
    prover.finish().unwrap()
}

fn prove_consistency(old_size: usize, leaves: &[Digest]) -> ConsistencyProof {
    let mut prover = ConsistencyProver::new(old_size as u64, leaves.len() as u64).unwrap();
    leaves.iter().for_each(|leaf| prover.push(*leaf));
    prover.finish().unwrap()
}

fn numbered_leaves(count: usize) -> Vec<Digest> {
    (0..count as u64)
        .map(|n| leaf_hash(&n.to_be_bytes()))
        .collect()
}

fn hex(text: &str) -> Digest {
    text.parse().unwrap()
}

/// The leaves used by the reference test data of Certificate Transparency.
fn reference_leaves() -> Vec<Digest> {
    fn leaf<const N: usize>(text: &str) -> Digest {
        leaf_hash(&decode_hex::<N>(text.as_bytes()).unwrap())
    }
    vec![
        leaf::<0>(""),
        leaf::<1>("00"),
        leaf::<1>("10"),
        leaf::<2>("2021"),
        leaf::<2>("3031"),
        leaf::<4>("40414243"),
        leaf::<8>("5051525354555657"),
        leaf::<16>("606162636465666768696a6b6c6d6e6f"),
    ]
}

#[test]
fn roots_of_the_reference_trees_are_the_published_ones() {
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let leaves = reference_leaves();
    for (size, root) in roots.into_iter().enumerate() {
        assert_eq!(frontier_root(&leaves[..size]), hex(root), "size {size}");
    }
}

#[test]
fn reference_proofs_are_the_published_ones() {
    let leaves = reference_leaves();
    assert_eq!(
        prove_inclusion(0, &leaves).hashes,
        [
            hex("96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"),
            hex("5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"),
            hex("6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"),
        ]
    );
    assert_eq!(
        prove_inclusion(5, &leaves).hashes,
        [
            hex("bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"),
            hex("ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"),
            hex("d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
        ]
    );
    assert_eq!(
        prove_consistency(6, &leaves).hashes,
        [
            hex("0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"),
            hex("ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"),
            hex("d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
        ]
    );
}

#[test]
fn every_small_tree_agrees_with_the_definitions() {
    let leaves = numbered_leaves(70);
    for size in 0..=leaves.len() {
        let tree = &leaves[..size];
        let root = frontier_root(tree);
        assert_eq!(root, mth(tree));
        for (index, leaf) in tree.iter().enumerate() {
            let proof = prove_inclusion(index, tree);
            assert_eq!(proof.hashes, path(index, tree));
            assert_eq!(proof.verify(leaf, &root), Ok(()));
        }
        for old_size in 0..=size {
            let proof = prove_consistency(old_size, tree);
            if old_size > 0 {
                assert_eq!(proof.hashes, subproof(old_size, tree, true));
            }
            assert_eq!(proof.verify(&mth(&tree[..old_size]), &root), Ok(()));
        }
    }
}

fn flip(digest: &Digest, bit: usize) -> Digest {
    let mut bytes = *digest.as_bytes();
    bytes[bit / 8] ^= 1 << (bit % 8);
    Digest::from_bytes(bytes)
}

/// Lists of hashes that differ from `hashes` in one step.
fn altered(hashes: &[Digest]) -> Vec<Vec<Digest>> {
    let mut all = Vec::new();
    for at in 0..hashes.len() {
        let mut one = hashes.to_vec();
        one[at] = flip(&one[at], at * 37 % 256);
        all.push(one);
        let mut one = hashes.to_vec();
        one.remove(at);
        all.push(one);
        for other in at + 1..hashes.len() {
            let mut one = hashes.to_vec();
            one.swap(at, other);
            all.push(one);
        }
    }
    for at in 0..=hashes.len() {
        for extra in [sha256(b""), sha256(b"extra")].iter().chain(hashes) {
            let mut one = hashes.to_vec();
            one.insert(at, *extra);
            all.push(one);
        }
    }
    all.retain(|one| one != hashes);
    all
}

#[test]
fn altered_inclusion_proofs_fail() {
    let leaves = numbered_leaves(20);
    for size in 1..=leaves.len() {
        let tree = &leaves[..size];
        let root = mth(tree);
        for (index, leaf) in tree.iter().enumerate() {
            let good = prove_inclusion(index, tree);
            for hashes in altered(&good.hashes) {
                let bad = InclusionProof {
                    hashes,
                    ..good.clone()
                };
                assert!(bad.verify(leaf, &root).is_err(), "{bad:?}");
            }
            for other in 0..size as u64 + 3 {
                let bad = InclusionProof {
                    index: other,
                    ..good.clone()
                };
                assert_eq!(bad.verify(leaf, &root).is_ok(), other == good.index);
            }
            assert_eq!(
                good.verify(&flip(leaf, 255), &root),
                Err(ProofError::RootMismatch)
            );
            assert_eq!(
                good.verify(leaf, &flip(&root, 0)),
                Err(ProofError::RootMismatch)
            );
        }
    }
}

#[test]
fn altered_consistency_proofs_fail() {
    let leaves = numbered_leaves(20);
    for size in 1..=leaves.len() {
        let tree = &leaves[..size];
        let root = mth(tree);
        for old_size in 1..=size {
            let old_root = mth(&tree[..old_size]);
            let good = prove_consistency(old_size, tree);
            for hashes in altered(&good.hashes) {
                let bad = ConsistencyProof {
                    hashes,
                    ..good.clone()
                };
                assert!(bad.verify(&old_root, &root).is_err(), "{bad:?}");
            }
            assert!(good.verify(&flip(&old_root, 9), &root).is_err());
            assert!(good.verify(&old_root, &flip(&root, 9)).is_err());
            for other in 0..size + 3 {
                let bad = ConsistencyProof {
                    old_size: other as u64,
                    ..good.clone()
                };
                assert_eq!(bad.verify(&old_root, &root).is_ok(), other == old_size);
            }
        }
    }
}

#[test]
fn a_tree_with_a_changed_past_is_not_a_continuation() {
    let leaves = numbered_leaves(33);
    for old_size in 1..leaves.len() {
        for changed in 0..old_size {
            let mut rewritten = leaves.clone();
            rewritten[changed] = leaf_hash(b"rewritten");
            let proof = prove_consistency(old_size, &rewritten);
            assert!(
                proof
                    .verify(&mth(&leaves[..old_size]), &mth(&rewritten))
                    .is_err()
            );
        }
    }
}

#[test]
fn the_special_cases_of_consistency_are_as_documented() {
    let (empty, root, other) = (sha256(b""), sha256(b"root"), sha256(b"other"));
    let proof = |old_size, new_size, hashes: &[Digest]| ConsistencyProof {
        old_size,
        new_size,
        hashes: hashes.to_vec(),
    };
    assert_eq!(proof(0, 0, &[]).verify(&empty, &empty), Ok(()));
    assert_eq!(
        proof(0, 0, &[]).verify(&empty, &root),
        Err(ProofError::RootMismatch)
    );
    assert_eq!(proof(0, 9, &[]).verify(&empty, &root), Ok(()));
    assert_eq!(
        proof(0, 9, &[]).verify(&root, &root),
        Err(ProofError::OldRootMismatch)
    );
    assert_eq!(
        proof(0, 9, &[root]).verify(&empty, &root),
        Err(ProofError::WrongLength(1))
    );
    assert_eq!(proof(9, 9, &[]).verify(&root, &root), Ok(()));
    assert_eq!(
        proof(9, 9, &[]).verify(&root, &other),
        Err(ProofError::RootMismatch)
    );
    assert_eq!(
        proof(9, 9, &[root]).verify(&root, &root),
        Err(ProofError::WrongLength(1))
    );
    assert_eq!(
        proof(9, 8, &[]).verify(&root, &root),
        Err(ProofError::Shrunk {
            old_size: 9,
            new_size: 8
        })
    );
    assert!(ConsistencyProver::new(9, 8).is_err());
}

#[test]
fn provers_want_exactly_the_leaves_of_the_tree() {
    let leaves = numbered_leaves(9);
    for given in (0..=9).filter(|&given| given != 7) {
        let mut inclusion = InclusionProver::new(2, 7).unwrap();
        let mut consistency = ConsistencyProver::new(3, 7).unwrap();
        for leaf in &leaves[..given] {
            inclusion.push(*leaf);
            consistency.push(*leaf);
        }
        let error = ProofError::LeafCount {
            expected: 7,
            actual: given as u64,
        };
        assert_eq!(inclusion.finish(), Err(error));
        assert_eq!(consistency.finish(), Err(error));
    }
    assert_eq!(
        InclusionProver::new(7, 7).unwrap_err(),
        ProofError::IndexOutOfRange { index: 7, size: 7 }
    );
    assert!(InclusionProver::new(0, 0).is_err());
}

#[test]
fn proofs_read_back_from_json_and_refuse_unknown_fields() {
    let proof = prove_consistency(3, &numbered_leaves(7));
    let json = serde_json::to_string(&proof).unwrap();
    assert_eq!(
        serde_json::from_str::<ConsistencyProof>(&json).unwrap(),
        proof
    );
    let more = json.replacen('{', "{\"more\":1,", 1);
    assert!(serde_json::from_str::<ConsistencyProof>(&more).is_err());
}

fn hostile_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0..64u32, 0..3u64).prop_map(|(bit, off)| (1u64 << bit).wrapping_add(off).wrapping_sub(1)),
        Just(u64::MAX),
    ]
}

proptest! {
    #[test]
    fn larger_trees_agree_with_the_definitions(size in 1usize..600, a: prop::sample::Index) {
        let leaves = numbered_leaves(size);
        let at = a.index(size);
        let root = frontier_root(&leaves);
        prop_assert_eq!(root, mth(&leaves));
        let inclusion = prove_inclusion(at, &leaves);
        prop_assert_eq!(&inclusion.hashes, &path(at, &leaves));
        prop_assert_eq!(inclusion.verify(&leaves[at], &root), Ok(()));
        let consistency = prove_consistency(at + 1, &leaves);
        prop_assert_eq!(&consistency.hashes, &subproof(at + 1, &leaves, true));
        prop_assert_eq!(consistency.verify(&mth(&leaves[..=at]), &root), Ok(()));
    }

    #[test]
    fn hostile_numbers_neither_panic_nor_verify(
        a in hostile_number(),
        b in hostile_number(),
        length in 0usize..80,
    ) {
        let hashes: Vec<_> = numbered_leaves(length);
        let (one, two) = (sha256(b"one"), sha256(b"two"));
        let inclusion = InclusionProof { index: a, size: b, hashes: hashes.clone() };
        prop_assert!(inclusion.verify(&one, &two).is_err());
        let consistency = ConsistencyProof { old_size: a, new_size: b, hashes };
        prop_assert!(consistency.verify(&one, &two).is_err());
        let _ = InclusionProver::new(a, b).map(|mut prover| { prover.push(one); prover.finish() });
        let _ = ConsistencyProver::new(a, b).map(|mut prover| { prover.push(one); prover.finish() });
    }
}
