//! A whole tree, kept: for whoever needs many proofs of one tree and can spare two hashes per leaf.

use super::{InclusionProof, ProofError};
use crate::digest::{Digest, node_hash, sha256};

/// A tree with all of its nodes.
#[derive(Debug, Clone)]
pub struct Tree {
    /// From the leaves up. The last of an odd number stands in the level above as it is: that is how the
    /// trees of RFC 6962 lean to the left.
    levels: Vec<Vec<Digest>>,
}

impl Tree {
    /// The tree over these leaf hashes.
    pub fn of(leaves: Vec<Digest>) -> Self {
        let mut levels = vec![leaves];
        while let Some(last) = levels.last()
            && last.len() > 1
        {
            let pairs = last.chunks(2).map(|pair| match pair {
                [left, right] => node_hash(left, right),
                odd => odd[0],
            });
            let above = pairs.collect();
            levels.push(above);
        }
        Self { levels }
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.levels[0].len() as u64
    }

    /// The root.
    pub fn root(&self) -> Digest {
        let top = self.levels.last().and_then(|level| level.first());
        top.copied().unwrap_or_else(|| sha256(b""))
    }

    /// That leaf `index` is in the tree.
    pub fn inclusion(&self, index: u64) -> Result<InclusionProof, ProofError> {
        let size = self.size();
        if index >= size {
            return Err(ProofError::IndexOutOfRange { index, size });
        }
        let mut at = usize::try_from(index).unwrap_or(usize::MAX);
        let mut hashes = Vec::new();
        for level in &self.levels {
            hashes.extend(level.get(at ^ 1));
            at /= 2;
        }
        Ok(InclusionProof {
            index,
            size,
            hashes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merkle::{Frontier, InclusionProver};

    #[test]
    fn every_proof_of_every_small_tree_is_the_one_that_a_pass_makes() {
        for size in 0..70_u64 {
            let leaves: Vec<Digest> = (0..size).map(|n| sha256(&n.to_be_bytes())).collect();
            let tree = Tree::of(leaves.clone());
            let mut frontier = Frontier::new();
            leaves.iter().for_each(|leaf| frontier.push(*leaf));
            assert_eq!(tree.root(), frontier.root(), "{size}");
            for index in 0..size {
                let mut prover = InclusionProver::new(index, size).unwrap();
                leaves.iter().for_each(|leaf| prover.push(*leaf));
                let proof = tree.inclusion(index).unwrap();
                assert_eq!(proof, prover.finish().unwrap(), "{index} of {size}");
                let leaf = &leaves[usize::try_from(index).unwrap()];
                assert_eq!(proof.verify(leaf, &tree.root()), Ok(()));
            }
            assert!(tree.inclusion(size).is_err());
        }
    }
}
