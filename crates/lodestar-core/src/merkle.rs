//! Merkle trees as in RFC 6962: the root of a growing list of leaves, and proofs about it.
//!
//! Nothing here but [`Tree`] keeps the tree. [`Frontier`] holds the roots of its complete subtrees, one per set
//! bit of the size; the provers take the leaf hashes once, in order, and keep only what the proof
//! needs. Verification follows the algorithms of RFC 9162, sections 2.1.3.2 and 2.1.4.2.

mod frontier;
mod proof;
mod prover;
mod tree;

pub use frontier::Frontier;
pub use proof::{ConsistencyProof, InclusionProof, ProofError};
pub use prover::{ConsistencyProver, InclusionProver};
pub use tree::Tree;

#[cfg(test)]
mod tests;
