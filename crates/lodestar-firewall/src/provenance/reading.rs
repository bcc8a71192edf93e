//! The untrusted side: fingerprints of what was read, and from which observation.
//!
//! Two tables. One holds whole values and their parts: words, lines, the host of a URL. The other
//! holds every run of [`GRAM`] letters and digits, by which a piece of a text is found again however
//! it was cut out, spaced or spelt. Both forget the oldest; what is forgotten is unknown, which is no
//! more trusted than read.

use std::collections::VecDeque;

use lodestar_core::id::ObservationId;

use super::decode::{decodings, unescaped};
use super::kind::{classify, host_range};
use super::limits::{Limits, OBSERVATION_BYTES};
use super::loose::{is_telling, loose, loose_chars};
use super::sightings::{Domain, FingerprintKey, Ordinal, Sightings};
use super::token::tokens;

/// Observations that may be read in turns: so many of the newest are looked at for one that is not new.
const IN_TURNS: usize = 64;

/// Letters and digits per run. Shorter runs occur by chance in unrelated texts; longer ones miss
/// short pieces.
pub(super) const GRAM: usize = 8;

/// Observations kept per whole value: the first it stood in, and the latest.
const SOURCES_PER_VALUE: usize = 4;

/// Observations kept per run of characters; fewer, since there are many more of them.
const SOURCES_PER_GRAM: usize = 2;

/// Longest word or line that is kept as a whole value; longer ones are found by their runs.
const MAX_VALUE_LEN: usize = 512;

/// Shortest word that is tried as base64 or hexadecimal.
const MIN_ENCODED: usize = 12;

/// Runs of the text at hand that are remembered beside the table: what people and programs write repeats
/// itself, and to see that a run is there already costs less than to find its place again.
const RECENT: usize = 512;

/// What separates values inside a word, such as the sides of `id=13` or the cells of a table.
const SEPARATORS: &[char] = &[
    ',', ';', '|', '=', '(', ')', '<', '>', '[', ']', '{', '}', '"', '\'', '`', '#',
];

/// What was read.
pub(super) struct Reading {
    key: FingerprintKey,
    values: Sightings,
    grams: Sightings,
    observations: VecDeque<ObservationId>,
    /// Ordinal of the newest observation; 0 before the first.
    newest: Ordinal,
    max_observations: usize,
    recent: Box<[u64; RECENT]>,
}

impl Reading {
    pub(super) fn new(limits: Limits, key: FingerprintKey) -> Self {
        Self {
            key,
            values: Sightings::new(limits.value_slots, SOURCES_PER_VALUE),
            grams: Sightings::new(limits.gram_slots, SOURCES_PER_GRAM),
            observations: VecDeque::new(),
            newest: 0,
            max_observations: limits.observations.max(1),
            recent: Box::new([0; RECENT]),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.values.memory_bytes()
            + self.grams.memory_bytes()
            + self.observations.capacity() * OBSERVATION_BYTES / 2
    }

    /// The observation of an ordinal, unless it is forgotten.
    pub(super) fn observation(&self, ordinal: Ordinal) -> Option<ObservationId> {
        let age = usize::try_from(self.newest.checked_sub(ordinal)?).ok()?;
        let at = self.observations.len().checked_sub(age + 1)?;
        self.observations.get(at).copied()
    }

    /// Where a whole value was seen.
    pub(super) fn value(&self, domain: Domain, text: &str) -> impl Iterator<Item = Ordinal> + '_ {
        self.values.find(self.key.of(domain, text.as_bytes()))
    }

    /// Where a run of characters was seen.
    pub(super) fn gram(&self, run: &[char; GRAM]) -> impl Iterator<Item = Ordinal> + '_ {
        self.grams.find(gram_fingerprint(self.key, run))
    }

    /// Reads a text as part of an observation.
    pub(super) fn read(&mut self, observation: ObservationId, text: &str) {
        let ordinal = self.ordinal(observation);
        self.whole(text.trim(), ordinal);
        self.text(text, ordinal);
        if let Some(plain) = unescaped(text) {
            self.text(&plain, ordinal);
        }
    }

    fn ordinal(&mut self, observation: ObservationId) -> Ordinal {
        // Several may be read in turns, piece by piece.
        let recent = self.observations.iter().rev().take(IN_TURNS);
        if let Some(age) = recent.into_iter().position(|other| *other == observation) {
            return self.newest - age as Ordinal;
        }
        if self.newest == Ordinal::MAX {
            // Four thousand million observations: start again with an empty memory.
            self.values.clear();
            self.grams.clear();
            self.observations.clear();
            self.newest = 0;
        }
        if self.observations.len() == self.max_observations {
            self.observations.pop_front();
        }
        self.observations.push_back(observation);
        self.newest += 1;
        self.newest
    }

    fn text(&mut self, text: &str, ordinal: Ordinal) {
        self.grams(text, ordinal);
        for line in text.lines() {
            self.line(line.trim(), ordinal);
        }
        let mut spelt = String::new();
        for token in tokens(text) {
            // A word spelt letter by letter is joined again.
            let mut chars = token.raw.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => spelt.push(c),
                _ => self.spelt(&mut spelt, ordinal),
            }
            let word = match token.core {
                "" => token.raw,
                core => core,
            };
            self.word(word, ordinal);
        }
        self.spelt(&mut spelt, ordinal);
    }

    fn spelt(&mut self, letters: &mut String, ordinal: Ordinal) {
        if letters.len() > 2 {
            self.whole(letters, ordinal);
        }
        letters.clear();
    }

    /// A line of several words is a value too: the cell of a list, a name with a space in it.
    fn line(&mut self, line: &str, ordinal: Ordinal) {
        if line.contains(char::is_whitespace) {
            self.whole(line, ordinal);
            if let Some((_, value)) = line.split_once(": ") {
                self.whole(value.trim(), ordinal);
            }
        }
    }

    fn word(&mut self, word: &str, ordinal: Ordinal) {
        self.whole(word, ordinal);
        if word.bytes().all(|b| b.is_ascii_alphabetic()) && word.len() < MIN_ENCODED {
            return;
        }
        for piece in word.split(SEPARATORS).filter(|piece| *piece != word) {
            self.piece(piece, ordinal);
        }
        self.parts(word, ordinal);
        self.encoded(word, ordinal);
    }

    fn piece(&mut self, piece: &str, ordinal: Ordinal) {
        let piece = piece.trim_matches(':');
        if piece.is_empty() {
            return;
        }
        self.whole(piece, ordinal);
        self.encoded(piece, ordinal);
        // `id:13` but not `10:30` and not `https://…`.
        if let Some((name, value)) = piece.split_once(':')
            && name.ends_with(char::is_alphabetic)
            && !value.starts_with('/')
            && !value.is_empty()
        {
            self.whole(value, ordinal);
        }
    }

    /// Names inside a word: the host of a URL, both sides of an address, the components of a path.
    fn parts(&mut self, word: &str, ordinal: Ordinal) {
        if let Some(host) = host_range(word) {
            self.whole(&word[host], ordinal);
        }
        if let Some((local, domain)) = word.split_once('@') {
            self.whole(local, ordinal);
            self.whole(domain, ordinal);
        }
        if let Some((name, value)) = word.split_once(':')
            && name.ends_with(char::is_alphabetic)
            && !value.starts_with('/')
        {
            self.whole(value, ordinal);
        }
        for part in word.split(|c: char| !c.is_alphanumeric()) {
            if part.len() < word.len() && is_telling_part(part) {
                self.whole(part, ordinal);
            }
        }
        for component in word.split(['/', '?', '&']) {
            if component.len() < word.len() && component.contains(['.', '-', '_', '=', '%']) {
                self.whole(component, ordinal);
            }
        }
    }

    fn encoded(&mut self, word: &str, ordinal: Ordinal) {
        if word.len() < MIN_ENCODED && !word.contains('%') {
            return;
        }
        for decoded in decodings(word) {
            self.grams(&decoded, ordinal);
            self.whole(decoded.trim(), ordinal);
            for token in tokens(&decoded).filter(|token| token.raw.len() < decoded.len()) {
                self.whole(token.core, ordinal);
            }
        }
    }

    /// One value, by its text, its normal form and its loose form.
    fn whole(&mut self, text: &str, ordinal: Ordinal) {
        if text.is_empty() || text.len() > MAX_VALUE_LEN {
            return;
        }
        self.see(Domain::Exact, text, ordinal);
        if text.bytes().all(|b| b.is_ascii_lowercase()) {
            return;
        }
        let normal = classify(text);
        if normal.text != text {
            self.see(Domain::Normal, &normal.text, ordinal);
        }
        let loose = loose(text);
        if loose != text && is_telling(&loose) {
            self.see(Domain::Loose, &loose, ordinal);
        }
    }

    fn see(&mut self, domain: Domain, text: &str, ordinal: Ordinal) {
        let fingerprint = self.key.of(domain, text.as_bytes());
        self.values.insert(fingerprint, ordinal);
    }

    fn grams(&mut self, text: &str, ordinal: Ordinal) {
        if text.is_ascii() {
            return self.ascii_grams(text, ordinal);
        }
        let mut run = ['\0'; GRAM];
        for (count, c) in loose_chars(text).enumerate() {
            run.copy_within(1.., 0);
            run[GRAM - 1] = c;
            if count + 1 >= GRAM {
                self.grams.insert(gram_fingerprint(self.key, &run), ordinal);
            }
        }
    }

    /// The same runs, a byte each: nearly all that is read, so they are worth a loop of their own.
    fn ascii_grams(&mut self, text: &str, ordinal: Ordinal) {
        self.recent.fill(0);
        let mut run = 0_u64;
        let kept = text.bytes().filter(u8::is_ascii_alphanumeric);
        for (count, byte) in kept.enumerate() {
            // The newest in the highest byte, as the characters of a run stand in memory.
            run = (run >> 8) | (u64::from(byte.to_ascii_lowercase()) << 56);
            if count + 1 >= GRAM {
                let fingerprint = self.key.of_run(run.to_le_bytes());
                let recent = &mut self.recent[fingerprint as usize % RECENT];
                if *recent != fingerprint {
                    *recent = fingerprint;
                    self.grams.insert(fingerprint, ordinal);
                }
            }
        }
    }
}

/// Part of a longer word that can be told from chance: `13` in a date cannot.
pub(super) fn is_telling_part(part: &str) -> bool {
    let digits = part.bytes().all(|b| b.is_ascii_digit());
    part.len() >= if digits { 4 } else { 3 }
}

fn gram_fingerprint(key: FingerprintKey, run: &[char; GRAM]) -> u64 {
    // Nearly every run is of ASCII: a byte each.
    if run.iter().all(char::is_ascii) {
        return key.of_run(run.map(|c| c as u8));
    }
    let mut bytes = [0; GRAM * 4];
    let mut len = 0;
    for c in run {
        len += c.encode_utf8(&mut bytes[len..]).len();
    }
    key.of(Domain::Gram, &bytes[..len])
}
