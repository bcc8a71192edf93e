//! Proofs and their verification. Sizes and hashes may come from an opponent: nothing here
//! overflows, and the work is bounded by 64 hashes however long the proof is.

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, node_hash, sha256};

/// That one leaf is in a tree: the sibling hashes from the leaf up to the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    /// The position of the leaf, from 0.
    pub index: u64,
    /// The number of leaves of the tree.
    pub size: u64,
    /// The siblings, lowest first.
    pub hashes: Vec<Digest>,
}

/// That a tree is a continuation of an older one: nothing of the older was changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyProof {
    /// The number of leaves of the older tree.
    pub old_size: u64,
    /// The number of leaves of the newer tree.
    pub new_size: u64,
    /// The subtree hashes from which both roots follow.
    pub hashes: Vec<Digest>,
}

/// Why a proof cannot be made or does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The tree has no such leaf.
    #[error("leaf {index} does not exist in a tree of {size} leaves")]
    IndexOutOfRange {
        /// The leaf asked for.
        index: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The older tree is larger than the newer.
    #[error("a tree of {new_size} leaves cannot continue one of {old_size}")]
    Shrunk {
        /// The size of the older tree.
        old_size: u64,
        /// The size of the newer tree.
        new_size: u64,
    },
    /// A prover was given more or fewer leaves than the tree has.
    #[error("the proof needs {expected} leaves, {actual} were given")]
    LeafCount {
        /// The size of the tree.
        expected: u64,
        /// How many leaves came.
        actual: u64,
    },
    /// There are more or fewer hashes than a proof for these sizes has.
    #[error("a proof for these sizes has another number of hashes than {0}")]
    WrongLength(usize),
    /// The hashes do not lead to the root of the tree, or of the newer tree.
    #[error("the proof does not lead to the expected root")]
    RootMismatch,
    /// The hashes do not lead to the root of the older tree.
    #[error("the proof does not lead to the expected root of the older tree")]
    OldRootMismatch,
}

impl InclusionProof {
    /// Checks that the tree with this root has this leaf hash at [`Self::index`].
    pub fn verify(&self, leaf: &Digest, root: &Digest) -> Result<(), ProofError> {
        if self.index >= self.size {
            return Err(ProofError::IndexOutOfRange {
                index: self.index,
                size: self.size,
            });
        }
        let mut path = Path {
            node: self.index,
            last: self.size - 1,
        };
        let mut computed = *leaf;
        for hash in &self.hashes {
            computed = match path.climb() {
                None => return Err(ProofError::WrongLength(self.hashes.len())),
                Some(Side::Left) => node_hash(hash, &computed),
                Some(Side::Right) => node_hash(&computed, hash),
            };
        }
        if !path.at_root() {
            return Err(ProofError::WrongLength(self.hashes.len()));
        }
        if computed != *root {
            return Err(ProofError::RootMismatch);
        }
        Ok(())
    }
}

impl ConsistencyProof {
    /// Checks that the tree of `new_root` starts with all leaves of the tree of `old_root`.
    ///
    /// Two cases need no hashes, and any given are refused. Equal sizes: the roots must be equal.
    /// An old size of 0: every tree continues the empty one, so only `old_root` is checked to be
    /// the empty tree's (SHA-256 of nothing), and nothing is learnt about `new_root`.
    pub fn verify(&self, old_root: &Digest, new_root: &Digest) -> Result<(), ProofError> {
        let (old_size, new_size) = (self.old_size, self.new_size);
        if old_size > new_size {
            return Err(ProofError::Shrunk { old_size, new_size });
        }
        if old_size == 0 && *old_root != sha256(b"") {
            return Err(ProofError::OldRootMismatch);
        }
        if old_size == 0 || old_size == new_size {
            if !self.hashes.is_empty() {
                return Err(ProofError::WrongLength(self.hashes.len()));
            }
            if old_size == new_size && old_root != new_root {
                return Err(ProofError::RootMismatch);
            }
            return Ok(());
        }
        self.verify_growth(old_root, new_root)
    }

    /// INVARIANT: 0 < old size < new size.
    fn verify_growth(&self, old_root: &Digest, new_root: &Digest) -> Result<(), ProofError> {
        let wrong_length = ProofError::WrongLength(self.hashes.len());
        // The proof starts with the largest complete subtree that ends where the old tree ends. If
        // that is the whole old tree, the verifier knows its hash already and the proof omits it.
        let (start, rest) = if self.old_size.is_power_of_two() {
            (old_root, self.hashes.as_slice())
        } else {
            self.hashes.split_first().ok_or(wrong_length)?
        };
        let complete = self.old_size.trailing_zeros();
        let mut path = Path {
            node: (self.old_size - 1) >> complete,
            last: (self.new_size - 1) >> complete,
        };
        let (mut old, mut new) = (*start, *start);
        for hash in rest {
            match path.climb() {
                None => return Err(wrong_length),
                Some(Side::Left) => {
                    old = node_hash(hash, &old);
                    new = node_hash(hash, &new);
                }
                // To the right of the old tree's edge lies only what came later.
                Some(Side::Right) => new = node_hash(&new, hash),
            }
        }
        if !path.at_root() {
            return Err(wrong_length);
        }
        if old != *old_root {
            return Err(ProofError::OldRootMismatch);
        }
        if new != *new_root {
            return Err(ProofError::RootMismatch);
        }
        Ok(())
    }
}

/// On which side of the path the sibling lies.
enum Side {
    Left,
    Right,
}

/// The way from a node up to the root: its position on its level, and the position of the last.
struct Path {
    node: u64,
    last: u64,
}

impl Path {
    fn at_root(&self) -> bool {
        self.last == 0
    }

    /// Steps to the next node that has a sibling and says where that is; `None` from the root.
    fn climb(&mut self) -> Option<Side> {
        if self.at_root() {
            return None;
        }
        let side = if self.node & 1 == 1 {
            Side::Left
        } else if self.node == self.last {
            // The last node of an odd level moves up unchanged until it is a right child.
            // INVARIANT: node = last > 0, so there is a set bit to stop at.
            let levels = self.node.trailing_zeros();
            self.node >>= levels;
            self.last >>= levels;
            Side::Left
        } else {
            Side::Right
        };
        self.node >>= 1;
        self.last >>= 1;
        Some(side)
    }
}
