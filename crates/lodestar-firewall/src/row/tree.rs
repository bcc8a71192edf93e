//! The rows of one event under one signature: an RFC 6962 tree over their digests, with the way
//! from each leaf to the root.

use lodestar_core::digest::{Digest, node_hash};

/// The root over the leaves, and each leaf's siblings, lowest first.
pub(super) fn paths(leaves: &[Digest]) -> (Digest, Vec<Vec<Digest>>) {
    let mut paths = vec![Vec::new(); leaves.len()];
    let root = climb(leaves, &mut paths);
    (root, paths)
}

fn climb(leaves: &[Digest], paths: &mut [Vec<Digest>]) -> Digest {
    if let [leaf] = leaves {
        return *leaf;
    }
    // The largest power of two below the number of leaves: RFC 6962, section 2.1.
    let split = leaves.len().next_power_of_two() / 2;
    let (left_paths, right_paths) = paths.split_at_mut(split);
    let left = climb(&leaves[..split], left_paths);
    let right = climb(&leaves[split..], right_paths);
    left_paths.iter_mut().for_each(|path| path.push(right));
    right_paths.iter_mut().for_each(|path| path.push(left));
    node_hash(&left, &right)
}

#[cfg(test)]
mod tests {
    use lodestar_core::digest::leaf_hash;
    use lodestar_core::merkle::InclusionProof;

    use super::*;

    #[test]
    fn every_leaf_of_every_size_leads_to_the_root() {
        for size in 1..=70_usize {
            let leaves: Vec<_> = (0..size).map(|i| leaf_hash(&i.to_be_bytes())).collect();
            let (root, paths) = paths(&leaves);
            for (index, (leaf, hashes)) in leaves.iter().zip(paths).enumerate() {
                let proof = InclusionProof {
                    index: index as u64,
                    size: size as u64,
                    hashes,
                };
                assert_eq!(proof.verify(leaf, &root), Ok(()), "{index} of {size}");
            }
        }
    }
}
