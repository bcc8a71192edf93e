//! Explains an untrusted value by what was read.
//!
//! From the closest likeness to the weakest, and the first that holds is the answer. Every step is a
//! bounded number of lookups, whatever the session has read. Nothing found here raises trust.

use std::collections::HashMap;

use lodestar_core::id::ObservationId;

use super::decode::decodings;
use super::kind::{Normal, classify};
use super::loose::{is_telling, loose, loose_chars};
use super::reading::{GRAM, Reading, is_telling_part};
use super::sightings::{Domain, Ordinal};
use lodestar_core::provenance::{Label, Likeness};

/// Most observations that an answer names.
const MAX_SOURCES: usize = 4;

/// Longest text of which every run is looked up, in letters and digits. Of a longer one, samples
/// are taken, so that a payload of megabytes costs no more than a page.
const MAX_TRACED: usize = 2048;

/// Samples of a longer text, and their length.
const SAMPLES: usize = 32;
const SAMPLE_LEN: usize = MAX_TRACED / SAMPLES;

/// How much of a value has to be found before it counts as read, in percent: the greater part.
const MIN_FOUND: usize = 50;

/// How many letters a further observation has to add before it is named as a source too.
const MIN_ADDED: usize = 4;

/// Words of addresses that say nothing about where one came from.
const COMMON_PARTS: &[&str] = &[
    "com", "example", "ftp", "html", "http", "https", "mailto", "net", "org", "www",
];

/// Counts lookups, so that a test can hold the cost to what this module promises.
#[derive(Debug, Default)]
pub(super) struct Probes(pub(super) usize);

/// Finds where a value was read.
pub(super) fn trace(reading: &Reading, text: &str, probes: &mut Probes) -> Label {
    let found = whole(reading, text, probes).or_else(|| {
        let decoded = decodings(text);
        decoded
            .iter()
            .find_map(|decoded| whole(reading, decoded, probes))
            .map(|found| found.decoded())
            .or_else(|| most_pieces(reading, text, &decoded, probes))
    });
    let Some(found) = found else {
        return Label::Unknown;
    };
    Label::Read {
        observations: named(reading, found.ordinals),
        how: found.how,
    }
}

/// The spelling of which most is found: the text itself, or what it says once decoded.
fn most_pieces(
    reading: &Reading,
    text: &str,
    decoded: &[String],
    probes: &mut Probes,
) -> Option<Found> {
    let plain = pieces(reading, text, probes);
    let decoded = decoded
        .iter()
        .filter_map(|decoded| pieces(reading, decoded, probes))
        .map(|(percent, found)| (percent, found.decoded()));
    plain
        .into_iter()
        .chain(decoded)
        .max_by_key(|(percent, _)| *percent)
        .map(|(_, found)| found)
}

fn named(reading: &Reading, mut ordinals: Vec<Ordinal>) -> Vec<ObservationId> {
    ordinals.sort_unstable();
    let mut observations = Vec::new();
    for id in ordinals.into_iter().filter_map(|o| reading.observation(o)) {
        if !observations.contains(&id) {
            observations.push(id);
        }
    }
    observations.truncate(MAX_SOURCES);
    observations
}

/// Where a value stands, and how it is like what stands there.
struct Found {
    // INVARIANT: not empty, and every one of them is still known to the reading.
    ordinals: Vec<Ordinal>,
    how: Likeness,
}

impl Found {
    fn decoded(self) -> Self {
        Self {
            how: Likeness::Decoded,
            ..self
        }
    }
}

/// The value as a whole: same text, same normal form, same letters.
fn whole(reading: &Reading, text: &str, probes: &mut Probes) -> Option<Found> {
    if text.is_empty() {
        return None;
    }
    let mut seen = |domain, text: &str| {
        probes.0 += 1;
        let ordinals: Vec<Ordinal> = known(reading, reading.value(domain, text));
        (!ordinals.is_empty()).then_some(ordinals)
    };
    let found = |how| move |ordinals| Found { ordinals, how };
    let copy = seen(Domain::Exact, text);
    if copy.is_some() {
        return copy.map(found(Likeness::Copy));
    }
    let Normal { text: normal, .. } = classify(text);
    let spelling = seen(Domain::Exact, &normal).or_else(|| seen(Domain::Normal, &normal));
    if spelling.is_some() {
        return spelling.map(found(Likeness::NormalForm));
    }
    let loose = loose(text);
    if !is_telling(&loose) {
        return None;
    }
    let alike = seen(Domain::Loose, &loose).or_else(|| seen(Domain::Exact, &loose));
    alike.map(found(Likeness::Loose))
}

fn known(reading: &Reading, ordinals: impl Iterator<Item = Ordinal>) -> Vec<Ordinal> {
    ordinals
        .filter(|&ordinal| reading.observation(ordinal).is_some())
        .collect()
}

/// Some letters of the value, found in one observation.
struct Hit {
    start: usize,
    end: usize,
    ordinal: Ordinal,
}

/// The value as a part of something, or put together from several; and how much of it was found, in
/// percent.
fn pieces(reading: &Reading, text: &str, probes: &mut Probes) -> Option<(usize, Found)> {
    let letters: Vec<char> = loose_chars(text).collect();
    let sampled = sample(&letters);
    let mut hits = Vec::new();
    for (offset, run) in &sampled {
        gram_hits(reading, run, *offset, probes, &mut hits);
    }
    let whole_text = letters.len() <= MAX_TRACED;
    if whole_text {
        part_hits(reading, text, probes, &mut hits);
        hits.sort_by_key(|hit| hit.start);
    }
    let total = sampled.iter().map(|(_, run)| run.len()).sum();
    cover(&hits, letters.len(), total)
}

/// The letters to look at, with their offsets: all of them, or samples spread evenly.
fn sample(letters: &[char]) -> Vec<(usize, &[char])> {
    if letters.len() <= MAX_TRACED {
        return vec![(0, letters)];
    }
    let last = letters.len() - SAMPLE_LEN;
    (0..SAMPLES)
        .map(|n| last * n / (SAMPLES - 1))
        .map(|start| (start, &letters[start..start + SAMPLE_LEN]))
        .collect()
}

fn gram_hits(
    reading: &Reading,
    letters: &[char],
    offset: usize,
    probes: &mut Probes,
    hits: &mut Vec<Hit>,
) {
    for (at, run) in letters.windows(GRAM).enumerate() {
        let run = run.try_into().expect("INVARIANT: windows have this length");
        probes.0 += 1;
        hits.extend(
            known(reading, reading.gram(run))
                .into_iter()
                .map(|ordinal| Hit {
                    start: offset + at,
                    end: offset + at + GRAM,
                    ordinal,
                }),
        );
    }
}

/// Names inside the value that stood somewhere as values of their own.
fn part_hits(reading: &Reading, text: &str, probes: &mut Probes, hits: &mut Vec<Hit>) {
    let mut start = 0;
    for part in text.split(|c: char| !c.is_alphanumeric()) {
        let folded = loose(part);
        let end = start + folded.chars().count();
        if is_telling_part(part) && !COMMON_PARTS.contains(&folded.as_str()) {
            probes.0 += 2;
            let exact = reading.value(Domain::Exact, part);
            let alike = reading.value(Domain::Loose, &folded);
            hits.extend(
                known(reading, exact.chain(alike))
                    .into_iter()
                    .map(|ordinal| Hit {
                        start,
                        end,
                        ordinal,
                    }),
            );
        }
        start = end;
    }
}

/// Chooses the observations that explain most of the letters, the best first.
fn cover(hits: &[Hit], letters: usize, total: usize) -> Option<(usize, Found)> {
    let mut covered = vec![false; letters];
    let mut chosen: Vec<Ordinal> = Vec::new();
    let mut found = 0;
    let mut complete = false;
    while chosen.len() < MAX_SOURCES {
        let gains = gains(hits, &covered);
        let Some(best) = gains.values().copied().max() else {
            break;
        };
        if best == 0 || (found > 0 && best < MIN_ADDED) {
            break;
        }
        // Observations that explain equally much are equally good answers, if they explain all.
        let mut equal: Vec<Ordinal> = gains
            .into_iter()
            .filter_map(|(ordinal, gain)| (gain == best).then_some(ordinal))
            .collect();
        equal.sort_unstable();
        complete = found == 0 && best == total;
        if !complete {
            equal.truncate(1);
        }
        for hit in hits.iter().filter(|hit| equal.contains(&hit.ordinal)) {
            covered[hit.start..hit.end].fill(true);
        }
        chosen.extend(equal);
        found += best;
        if complete || found == total {
            break;
        }
    }
    chosen.truncate(MAX_SOURCES);
    let how = match complete {
        true => Likeness::Part,
        false => Likeness::Pieces,
    };
    let percent = (found * 100).checked_div(total)?;
    let ordinals = chosen;
    (percent >= MIN_FOUND).then_some((percent, Found { ordinals, how }))
}

/// How many letters that are not yet covered each observation would cover.
fn gains(hits: &[Hit], covered: &[bool]) -> HashMap<Ordinal, usize> {
    // Per observation: letters gained, and up to where they are counted.
    let mut gains: HashMap<Ordinal, (usize, usize)> = HashMap::new();
    for hit in hits {
        let (gain, counted) = gains.entry(hit.ordinal).or_default();
        let from = hit.start.max(*counted);
        if from < hit.end {
            *gain += covered[from..hit.end].iter().filter(|done| !**done).count();
            *counted = hit.end;
        }
    }
    gains
        .into_iter()
        .map(|(ordinal, (gain, _))| (ordinal, gain))
        .collect()
}
