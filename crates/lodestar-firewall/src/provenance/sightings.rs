//! Where fingerprints were seen: a table of fixed size that forgets the oldest.
//!
//! Each fingerprint lives in one bucket of eight slots, so a lookup costs the same however much was
//! read. The table doubles until it reaches its limit; from then on a new sighting takes the place
//! of the oldest in its bucket. A fingerprint is a keyed 64-bit hash: whoever writes the content
//! does not know the key and cannot aim at a bucket or at another value's fingerprint.

use std::hash::Hasher as _;

/// Slots per bucket. With eight, a table at half its capacity almost never has a full bucket.
const WAYS: usize = 8;

/// Buckets that a table starts with: a short session costs a few kilobytes.
const FIRST_BUCKETS: usize = 64;

/// Bytes of one slot: a fingerprint and an ordinal.
pub(super) const SLOT_BYTES: usize = size_of::<Bucket>() / WAYS;

/// What a fingerprint is taken of, so that the two never meet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Domain {
    /// A value as it was written.
    Exact,
    /// A value in the normal form of its kind.
    Normal,
    /// A value in loose form.
    Loose,
    /// Some consecutive characters of a text in loose form.
    Gram,
}

/// The key of all fingerprints of one index.
#[derive(Clone, Copy)]
pub(super) struct FingerprintKey {
    sip: (u64, u64),
    /// Odd, and drawn from the others: keys of [`of_run`](Self::of_run).
    run: [u64; 3],
}

impl FingerprintKey {
    pub(super) fn new(bytes: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(bytes);
        let mut made = Self {
            sip: (key as u64, (key >> 64) as u64),
            run: [0; 3],
        };
        made.run = [0, 1, 2].map(|n: u8| made.of(Domain::Gram, &[n]) | 1);
        made
    }

    /// The fingerprint of eight ASCII characters, for which a general hash is most of the cost of reading:
    /// two multiplications of 128 bits by secret keys, each folded into 64.
    pub(super) fn of_run(self, run: [u8; 8]) -> u64 {
        let folded = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let [first, second, third] = self.run;
        // INVARIANT: ASCII leaves the highest bit free, so different runs stay different, and none is 0.
        let mixed = folded((u64::from_le_bytes(run) ^ first) | (1 << 63), second);
        folded(mixed ^ first, third)
    }

    pub(super) fn of(self, domain: Domain, bytes: &[u8]) -> u64 {
        #[expect(
            deprecated,
            reason = "the standard library's other hasher takes no key from its caller"
        )]
        let mut hasher = std::hash::SipHasher::new_with_keys(self.sip.0, self.sip.1);
        hasher.write(&[domain as u8]);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// A place in the order in which observations were read, from 1; 0 marks an empty slot.
pub(super) type Ordinal = u32;

/// Slots that are looked at together, beside each other in memory.
#[derive(Clone, Copy, Default)]
struct Bucket {
    fingerprints: [u64; WAYS],
    ordinals: [Ordinal; WAYS],
}

/// The table.
pub(super) struct Sightings {
    buckets: Vec<Bucket>,
    used: usize,
    max_buckets: usize,
    /// How many sightings of one fingerprint are kept: the first, and then the latest ones.
    per_fingerprint: usize,
}

impl Sightings {
    /// An empty table of at most so many slots, rounded up to a power of two.
    pub(super) fn new(max_slots: usize, per_fingerprint: usize) -> Self {
        let max_buckets = Self::rounded(max_slots) / WAYS;
        Self {
            buckets: vec![Bucket::default(); FIRST_BUCKETS.min(max_buckets)],
            used: 0,
            max_buckets,
            per_fingerprint,
        }
    }

    /// The number of slots that a table of this limit may have: two buckets at least, so that some
    /// bits of a fingerprint choose between them.
    pub(super) fn rounded(max_slots: usize) -> usize {
        max_slots.max(2 * WAYS).next_power_of_two()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.buckets.len() * WAYS * SLOT_BYTES
    }

    /// The ordinals at which a fingerprint was seen and that are still known, in no order.
    pub(super) fn find(&self, fingerprint: u64) -> impl Iterator<Item = Ordinal> + '_ {
        let bucket = &self.buckets[self.bucket(fingerprint)];
        std::iter::zip(bucket.fingerprints, bucket.ordinals)
            .filter(move |&(there, ordinal)| there == fingerprint && ordinal != 0)
            .map(|(_, ordinal)| ordinal)
    }

    /// Records a sighting.
    pub(super) fn insert(&mut self, fingerprint: u64, ordinal: Ordinal) {
        let may_grow = self.may_grow();
        let at = self.bucket(fingerprint);
        let bucket = &mut self.buckets[at];
        let (mut same, mut newest_same) = (0, None);
        let (mut oldest, mut oldest_slot) = (Ordinal::MAX, 0);
        for slot in 0..WAYS {
            let seen = bucket.ordinals[slot];
            if seen != 0 && bucket.fingerprints[slot] == fingerprint {
                if seen == ordinal {
                    return;
                }
                same += 1;
                newest_same = newest_same.max(Some((seen, slot)));
            }
            // An empty slot is older than any sighting.
            if seen < oldest {
                (oldest, oldest_slot) = (seen, slot);
            }
        }
        let slot = match newest_same {
            // The first sighting is the likeliest origin and stays; the latest gives way.
            Some((_, slot)) if same >= self.per_fingerprint => slot,
            _ if oldest != 0 && may_grow => {
                self.grow();
                return self.insert(fingerprint, ordinal);
            }
            _ => {
                self.used += usize::from(oldest == 0);
                oldest_slot
            }
        };
        bucket.fingerprints[slot] = fingerprint;
        bucket.ordinals[slot] = ordinal;
    }

    fn bucket(&self, fingerprint: u64) -> usize {
        let bits = self.buckets.len().trailing_zeros();
        (fingerprint >> (u64::BITS - bits)) as usize
    }

    /// A full bucket in a nearly empty table is chance; doubling for it would waste memory.
    fn may_grow(&self) -> bool {
        self.buckets.len() < self.max_buckets && self.used * 2 >= self.buckets.len()
    }

    fn grow(&mut self) {
        let doubled = vec![Bucket::default(); self.buckets.len() * 2];
        for old in std::mem::replace(&mut self.buckets, doubled) {
            for (fingerprint, ordinal) in std::iter::zip(old.fingerprints, old.ordinals) {
                if ordinal == 0 {
                    continue;
                }
                let at = self.bucket(fingerprint);
                let bucket = &mut self.buckets[at];
                let empty = bucket.ordinals.iter().position(|seen| *seen == 0);
                let slot = empty.expect("INVARIANT: one old bucket fits into each new one");
                bucket.fingerprints[slot] = fingerprint;
                bucket.ordinals[slot] = ordinal;
            }
        }
    }

    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.buckets.fill(Bucket::default());
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(n: u32) -> u64 {
        FingerprintKey::new([7; 16]).of(Domain::Exact, &n.to_le_bytes())
    }

    #[test]
    fn nothing_is_forgotten_before_the_table_is_near_its_limit() {
        let mut table = Sightings::new(1 << 14, 2);
        for n in 1..=4_000 {
            table.insert(fingerprint(n), n);
        }
        for n in 1..=4_000 {
            assert_eq!(table.find(fingerprint(n)).collect::<Vec<_>>(), [n]);
        }
    }

    #[test]
    fn a_full_table_forgets_the_oldest_and_stays_within_its_limit() {
        let mut table = Sightings::new(1 << 10, 2);
        for n in 1..=100_000 {
            table.insert(fingerprint(n), n);
        }
        assert_eq!(table.memory_bytes(), (1 << 10) * SLOT_BYTES);
        let kept: Vec<u32> = (1..=100_000)
            .filter(|&n| table.find(fingerprint(n)).next().is_some())
            .collect();
        assert_eq!(kept.len(), 1 << 10);
        assert!(kept[0] > 90_000, "{}", kept[0]);
    }

    #[test]
    fn of_many_sightings_the_first_and_the_latest_are_kept() {
        let mut table = Sightings::new(1 << 10, 3);
        for ordinal in 1..=50 {
            table.insert(fingerprint(1), ordinal);
        }
        let mut kept: Vec<u32> = table.find(fingerprint(1)).collect();
        kept.sort_unstable();
        assert_eq!(kept, [1, 2, 50]);
        assert_eq!(table.used, 3);
    }

    #[test]
    fn a_cleared_table_knows_nothing() {
        let mut table = Sightings::new(1 << 10, 3);
        table.insert(fingerprint(1), 1);
        table.clear();
        assert_eq!(table.find(fingerprint(1)).count(), 0);
    }
}
