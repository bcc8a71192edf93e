//! Damaging inputs in the ways that find bugs in parsers. The same seed gives the same inputs.

use std::ops::Range;

/// What the formats are made of; whole words get a mutation past the first check.
const WORDS: &[&[u8]] = &[
    b"{\"head\":",
    b",\"payload\":{",
    b",\"salt\":\"",
    b",\"tombstone\":{\"redaction\":",
    b"\"parents\":[",
    b"\"seq\":",
    b"\"type\":\"",
    b"_ledger",
    b"session.opened@1",
    b"log.redacted@1",
    b"2026-02-29T23:59:60.000000Z",
    b"9999-12-31T23:59:59.999999Z",
    b"\"payloadType\":",
    b"\"signatures\":[",
    b"application/vnd.lodestar.redaction.v1+json",
    b"ed25519:",
    b"\"proof\":\"consistency\"",
    b"\"hashes\":[]",
    b"\"index\":",
    b"\"results\":[",
    b"\"memory\":\"",
    b"\"messages\":[",
    b"\"facts\":[",
    b"\"created_at\":",
    b"permit (principal, action, resource)",
    b"context.args.",
    b"Action::\"run:",
    b"when { ",
    b"[[case]]\n",
    b"\"__entity\":",
    b"\"__extn\":{",
    b".lodestar",
    b"%2e%2f",
    b"../",
    b"https://",
    b"@",
    b"nsec1",
    b"\xe2\x80\x94 ",
    b"lodestar.log/",
    b"\n\n",
    b"==",
    b"..",
    b"null",
    b"true",
    b"[[[[[[[[",
    b"\\u0000",
    b"\\ud800",
    b"\\ud83d\\ude00",
    b"\"\":",
    b"1e400",
    b"-0.0",
    b"\xff\xfe",
    b"\xf0\x9f\x98\x80",
];

/// Where integers go wrong.
const INTEGERS: &[&str] = &[
    "0",
    "00",
    "1",
    "-1",
    "127",
    "128",
    "255",
    "256",
    "1023",
    "1024",
    "1025",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
];

/// No mutation makes an input longer than this; long inputs slow the run down and find little.
const MAX_LEN: usize = 16 << 10;

/// A source of damaged inputs: xorshift, so that no dependency and no clock is involved.
#[derive(Debug, Clone)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// Starts the sequence of this seed.
    pub fn new(seed: u64) -> Self {
        // Zero is the one state that xorshift never leaves.
        Self { state: seed | 1 }
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let mixed = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        (mixed as usize).checked_rem(limit).unwrap_or(0)
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    fn range(&mut self, len: usize, longest: usize) -> Range<usize> {
        let start = self.below(len + 1);
        let length = self.below(longest.min(len - start) + 1);
        start..start + length
    }

    /// A seed, damaged once to four times.
    pub fn damage(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = match seeds.is_empty() {
            true => Vec::new(),
            false => seeds[self.below(seeds.len())].clone(),
        };
        // Half of them once: strict formats refuse nearly everything that is damaged more often.
        let times = 1 + self.below(2) * self.below(4);
        for _ in 0..times {
            self.damage_once(&mut input, seeds);
        }
        input.truncate(MAX_LEN);
        input
    }

    fn damage_once(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let len = input.len();
        match self.below(11) {
            0 | 1 if len > 0 => input[self.below(len)] ^= 1 << self.below(8),
            2 if len > 0 => input[self.below(len)] = self.below(256) as u8,
            3 => input.truncate(self.below(len + 1)),
            4 => {
                let range = self.range(len, 64);
                input.drain(range);
            }
            5 => {
                let range = self.range(len, 256);
                let copy = input[range].to_vec();
                self.insert(input, &copy);
            }
            6 => {
                let range = self.range(len, 64);
                let copy = input[range].to_vec();
                for _ in 0..self.below(64) {
                    self.insert(input, &copy);
                }
            }
            7 if !seeds.is_empty() => {
                let other = &seeds[self.below(seeds.len())];
                self.splice(input, other);
            }
            8 => self.replace_integer(input),
            _ => {
                let word = self.pick(WORDS);
                self.insert(input, word);
            }
        }
    }

    fn insert(&mut self, input: &mut Vec<u8>, piece: &[u8]) {
        let at = self.below(input.len() + 1);
        input.splice(at..at, piece.iter().copied());
    }

    /// The beginning of one input and the end of another.
    fn splice(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        input.truncate(self.below(input.len() + 1));
        input.extend_from_slice(&other[self.below(other.len() + 1)..]);
    }

    /// Puts a difficult integer in the place of one that is there.
    fn replace_integer(&mut self, input: &mut Vec<u8>) {
        let from = self.below(input.len());
        let integer = self.pick(INTEGERS).as_bytes();
        let Some(start) = (from..input.len()).find(|&at| input[at].is_ascii_digit()) else {
            return self.insert(input, integer);
        };
        let length = input[start..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        input.splice(start..start + length, integer.iter().copied());
    }
}
