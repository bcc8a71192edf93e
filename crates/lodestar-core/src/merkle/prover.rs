//! Provers that see the leaf hashes once, in order.
//!
//! A proof is a list of subtree roots. Which ranges of leaves they cover follows from the sizes
//! alone; the ranges never overlap, so in a single pass at most one subtree is being built.

use std::ops::Range;

use super::{ConsistencyProof, Frontier, InclusionProof, ProofError};
use crate::digest::Digest;

/// Makes an [`InclusionProof`] from the leaf hashes of the tree.
#[derive(Debug, Clone)]
pub struct InclusionProver {
    index: u64,
    collector: Collector,
}

impl InclusionProver {
    /// Prepares the proof that leaf `index` is in the tree of the first `size` leaves.
    pub fn new(index: u64, size: u64) -> Result<Self, ProofError> {
        if index >= size {
            return Err(ProofError::IndexOutOfRange { index, size });
        }
        Ok(Self {
            index,
            collector: Collector::new(inclusion_ranges(index, size), size),
        })
    }

    /// Takes the next leaf hash; all leaves of the tree are to be given, in order.
    pub fn push(&mut self, leaf: Digest) {
        self.collector.push(leaf);
    }

    /// The proof, provided that exactly `size` leaves were pushed.
    pub fn finish(self) -> Result<InclusionProof, ProofError> {
        Ok(InclusionProof {
            index: self.index,
            size: self.collector.size,
            hashes: self.collector.finish()?,
        })
    }
}

/// Makes a [`ConsistencyProof`] from the leaf hashes of the newer tree.
#[derive(Debug, Clone)]
pub struct ConsistencyProver {
    old_size: u64,
    collector: Collector,
}

impl ConsistencyProver {
    /// Prepares the proof that the tree of `new_size` leaves continues that of `old_size`.
    pub fn new(old_size: u64, new_size: u64) -> Result<Self, ProofError> {
        if old_size > new_size {
            return Err(ProofError::Shrunk { old_size, new_size });
        }
        Ok(Self {
            old_size,
            collector: Collector::new(consistency_ranges(old_size, new_size), new_size),
        })
    }

    /// Takes the next leaf hash; all leaves of the newer tree are to be given, in order.
    pub fn push(&mut self, leaf: Digest) {
        self.collector.push(leaf);
    }

    /// The proof, provided that exactly `new_size` leaves were pushed.
    pub fn finish(self) -> Result<ConsistencyProof, ProofError> {
        Ok(ConsistencyProof {
            old_size: self.old_size,
            new_size: self.collector.size,
            hashes: self.collector.finish()?,
        })
    }
}

/// Where a tree of `size` > 1 leaves splits: the largest power of two smaller than `size`.
fn split(size: u64) -> u64 {
    1 << (size - 1).ilog2()
}

/// The ranges of RFC 6962's PATH, in proof order. INVARIANT: index < size.
fn inclusion_ranges(index: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let (mut start, mut end) = (0, size);
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            ranges.push(middle..end);
            end = middle;
        } else {
            ranges.push(start..middle);
            start = middle;
        }
    }
    // The walk went from the root down, a proof goes from the leaf up.
    ranges.reverse();
    ranges
}

/// The ranges of RFC 6962's SUBPROOF, in proof order. INVARIANT: old size <= new size.
fn consistency_ranges(old_size: u64, new_size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    if old_size == 0 {
        return ranges;
    }
    let (mut start, mut end) = (0, new_size);
    while old_size < end {
        let middle = start + split(end - start);
        if old_size <= middle {
            ranges.push(middle..end);
            end = middle;
        } else {
            ranges.push(start..middle);
            start = middle;
        }
    }
    // What is left ends where the old tree ends. If it also starts there, it is the old tree, whose
    // root the verifier has.
    if start > 0 {
        ranges.push(start..end);
    }
    ranges.reverse();
    ranges
}

/// Collects the roots of disjoint ranges of leaves in one pass.
#[derive(Debug, Clone)]
struct Collector {
    size: u64,
    pushed: u64,
    /// The ranges still to come with their places in the proof, latest first.
    pending: Vec<(Range<u64>, usize)>,
    current: Frontier,
    hashes: Vec<Option<Digest>>,
}

impl Collector {
    fn new(ranges: Vec<Range<u64>>, size: u64) -> Self {
        let hashes = vec![None; ranges.len()];
        let mut pending: Vec<_> = ranges.into_iter().zip(0..).collect();
        pending.sort_unstable_by_key(|(range, _)| std::cmp::Reverse(range.start));
        Self {
            size,
            pushed: 0,
            pending,
            current: Frontier::new(),
            hashes,
        }
    }

    fn push(&mut self, leaf: Digest) {
        if let Some((range, place)) = self.pending.last()
            && range.contains(&self.pushed)
        {
            self.current.push(leaf);
            if self.pushed + 1 == range.end {
                self.hashes[*place] = Some(self.current.root());
                self.current = Frontier::new();
                self.pending.pop();
            }
        }
        self.pushed = self.pushed.saturating_add(1);
    }

    fn finish(self) -> Result<Vec<Digest>, ProofError> {
        let wrong_count = ProofError::LeafCount {
            expected: self.size,
            actual: self.pushed,
        };
        if self.pushed != self.size {
            return Err(wrong_count);
        }
        let hashes: Option<Vec<_>> = self.hashes.into_iter().collect();
        hashes.ok_or(wrong_count)
    }
}
