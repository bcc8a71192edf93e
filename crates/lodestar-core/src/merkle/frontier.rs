//! The root of a growing tree in logarithmic memory.

use crate::digest::{Digest, node_hash, sha256};

/// A tree that only grows: takes leaf hashes, gives the root at any moment.
#[derive(Debug, Clone, Default)]
pub struct Frontier {
    size: u64,
    /// INVARIANT: one root per set bit of `size`, largest subtree first.
    subtrees: Vec<Digest>,
}

impl Frontier {
    /// The empty tree.
    pub const fn new() -> Self {
        Self {
            size: 0,
            subtrees: Vec::new(),
        }
    }

    /// Appends the hash of a leaf, as made by [`leaf_hash`](crate::digest::leaf_hash).
    pub fn push(&mut self, leaf: Digest) {
        let mut subtree = leaf;
        // The new leaf completes one subtree for each trailing one bit of the old size.
        for _ in 0..self.size.trailing_ones() {
            let left = self
                .subtrees
                .pop()
                .expect("there is a subtree for every set bit of the size");
            subtree = node_hash(&left, &subtree);
        }
        self.subtrees.push(subtree);
        self.size += 1;
    }

    /// The number of leaves.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The root over all leaves so far; SHA-256 of nothing for the empty tree.
    pub fn root(&self) -> Digest {
        self.subtrees
            .iter()
            .rev()
            .copied()
            .reduce(|right, left| node_hash(&left, &right))
            .unwrap_or_else(|| sha256(b""))
    }
}
