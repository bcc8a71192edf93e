//! What somebody does to the files of a log, and what shows it.

use std::fs;

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, leaf_hash, node_hash};
use lodestar_core::key::SecretKey;
use lodestar_core::note::{Checkpoint, Note};
use lodestar_log::SessionDir;

use super::{Parts, closed, codes, crashed, files_below, rewritten, workshop};
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "event-log-canonical-hash",
            pack: CORE,
            section: Log,
            scenario: "A session runs through the real proxy. Its log is taken apart by a few lines of code that share \
                       nothing with the log's own. Then somebody changes what one event says and leaves its head alone, \
                       and somebody spells a payload otherwise without changing what it says.",
            asserts: "Every line is canonical JSON, every payload and every head has the hash that is written down, and the \
                      root over all of them is the one that is signed. Verification finds both changes.",
            does_not_claim: "That what a tool said is true: the log says that it was said.",
            class: "ASI10 AML.T0048",
            defence: HashChain,
            run: canonical_hash,
        },
        probe! {
            name: "single-bit-flip-detected",
            pack: CORE,
            section: Log,
            scenario: "A session runs through the real proxy and is closed. In each file of it, blobs among them, and in the \
                       ledger, bits are flipped one at a time: a fixed choice of 16 of every file.",
            asserts: "Verification finds each of them.",
            does_not_claim: "That every bit was tried here: the log's own tests try all of them.",
            class: "ASI10 AML.T0048",
            defence: LogVerification,
            run: single_bit_flip,
        },
        probe! {
            name: "rewrite-detected-by-checkpoint",
            pack: CORE,
            section: Log,
            scenario: "Somebody without the log key rewrites a whole session, of one that was closed and of one whose process \
                       was killed: another file name in every event, and all hashes computed anew. In a second attempt \
                       they sign a checkpoint over it with a key of their own.",
            asserts: "Verification finds each: the chain is without a fault, and the signed checkpoint is over another one.",
            does_not_claim: "Anything against somebody who has the log key, without a witness.",
            class: "ASI10 AML.T0048",
            defence: Checkpoints,
            run: rewrite,
        },
        probe! {
            name: "deleted-session-detected-by-ledger",
            pack: CORE,
            section: Log,
            scenario: "Two sessions run through the real proxy. Somebody removes one of them, whole; somebody puts it in the \
                       place of the other; somebody adds one that was never opened.",
            asserts: "Verification finds each, and names the session that is gone.",
            does_not_claim: "That sessions and ledger rolled back together show without a witnessed head.",
            class: "ASI10 AML.T0048",
            defence: LedgerRecords,
            run: deleted_session,
        },
    ]
}

/// The root of an RFC 6962 tree, as the RFC says it.
fn root(leaves: &[Digest]) -> Option<Digest> {
    match leaves {
        [] => None,
        [leaf] => Some(*leaf),
        _ => {
            let half = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at(half);
            Some(node_hash(&root(left)?, &root(right)?))
        }
    }
}

fn checkpoint(dir: &SessionDir) -> Outcome<Checkpoint> {
    let note = Note::parse(&fs::read(dir.checkpoint_path())?)?;
    Ok(Checkpoint::parse_body(note.text())?)
}

fn canonical_hash(stage: &Stage) -> Outcome {
    let project = workshop(stage)?;
    let dir = closed(&project)?;
    let events = fs::read_to_string(dir.events_path())?;
    let mut leaves: Vec<Digest> = Vec::new();
    for (seq, line) in events.lines().enumerate() {
        hold(canonical::is_canonical(line.as_bytes()), || {
            format!("#{seq} is no canonical JSON")
        })?;
        let parts = Parts::of(line)?;
        let head: serde_json::Value = serde_json::from_str(parts.head)?;
        hold(head["seq"] == seq, || format!("#{seq} has another number"))?;
        hold(head["payload_hash"] == *parts.payload_hash()?, || {
            format!("#{seq} has another payload hash")
        })?;
        if let Some(before) = leaves.last() {
            hold(head["prev"] == *before.to_string(), || {
                format!("#{seq} names another event before it")
            })?;
        }
        leaves.push(leaf_hash(parts.head.as_bytes()));
    }
    let signed = checkpoint(&dir)?;
    hold(
        signed.size == leaves.len() as u64 && Some(signed.root) == root(&leaves),
        || "the checkpoint signs another root",
    )?;
    settle(project.verified()?.is_intact(), || "the log is not intact")?;
    for (what, from, to) in [
        ("what an event says was changed", "notes.md", "other.md"),
        (
            "a payload was spelt otherwise",
            "\"notes.md\"",
            "\"\\u006eotes.md\"",
        ),
    ] {
        let mut changed = String::new();
        for line in events.lines() {
            let parts = Parts::of(line)?;
            let payload = parts.payload.replace(from, to);
            let (head, salt) = (parts.head, parts.salt);
            changed += &format!("{{\"head\":{head},\"payload\":{payload},\"salt\":\"{salt}\"}}\n");
        }
        settle(changed != events, || "nothing was changed")?;
        fs::write(dir.events_path(), &changed)?;
        let report = project.verified()?;
        hold(!report.is_intact(), || {
            format!("{what}, and nobody sees it")
        })?;
        hold(codes(&report).contains(&"payload_changed"), || {
            format!("{what}, and what is found is {:?}", codes(&report))
        })?;
    }
    Ok(())
}

/// The same numbers every time, each below a bound.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

const FLIPS: usize = 16;

fn single_bit_flip(stage: &Stage) -> Outcome {
    let project = workshop(stage)?;
    let dir = closed(&project)?;
    let files = files_below(project.log()?.dir())?;
    settle(
        files.iter().any(|file| file.starts_with(dir.blobs_dir())),
        || "the session has no blob",
    )?;
    settle(project.verified()?.is_intact(), || "the log is not intact")?;
    let mut dice = Dice(7);
    for file in &files {
        let genuine = fs::read(file)?;
        settle(!genuine.is_empty(), || {
            format!("`{}` is empty", file.display())
        })?;
        for _ in 0..FLIPS {
            let bit = dice.below(genuine.len() as u64 * 8);
            let mut flipped = genuine.clone();
            let at = usize::try_from(bit / 8)?;
            flipped[at] ^= 1 << (bit % 8);
            fs::write(file, &flipped)?;
            hold(!project.verified()?.is_intact(), || {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                format!(
                    "bit {} of byte {at} of `{name}` was flipped, and nobody sees it",
                    bit % 8
                )
            })?;
        }
        fs::write(file, &genuine)?;
    }
    settle(
        project.verified()?.is_intact(),
        || "the flips were not undone",
    )
}

fn rewrite(stage: &Stage) -> Outcome {
    let project = workshop(stage)?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|problem| Broken::Failed(problem.to_string()))?;
    let forger = SecretKey::from_seed(seed);
    // The one that was killed comes last: the next process would end it properly.
    for (what, dir) in [
        ("closed", closed(&project)?),
        ("killed", crashed(&project)?),
    ] {
        settle(project.verified()?.is_intact(), || "the log is not intact")?;
        let events = fs::read_to_string(dir.events_path())?;
        let note = fs::read(dir.checkpoint_path())?;
        let forged = rewritten(&events, "notes.md", "other.md")?;
        settle(forged != events, || "nothing was rewritten")?;
        fs::write(dir.events_path(), &forged)?;
        hold(!project.verified()?.is_intact(), || {
            format!("a session that was {what} was rewritten as a whole, and nobody sees it")
        })?;
        let proven = checkpoint(&dir)?;
        let heads = forged.lines().map(Parts::of);
        let heads: Vec<Parts<'_>> = heads.collect::<Outcome<_>>()?;
        let leaves: Vec<Digest> = heads
            .iter()
            .take(usize::try_from(proven.size)?)
            .map(|parts| leaf_hash(parts.head.as_bytes()))
            .collect();
        let root = root(&leaves).ok_or_else(|| Broken::Failed("nothing is proven".to_owned()))?;
        let own = Checkpoint { root, ..proven };
        fs::write(dir.checkpoint_path(), own.sign(&forger).to_string())?;
        hold(!project.verified()?.is_intact(), || {
            format!(
                "a session that was {what} was rewritten and signed by a stranger, and nobody sees it"
            )
        })?;
        fs::write(dir.events_path(), &events)?;
        fs::write(dir.checkpoint_path(), &note)?;
    }
    settle(
        project.verified()?.is_intact(),
        || "what was genuine was not put back",
    )
}

fn deleted_session(stage: &Stage) -> Outcome {
    let project = workshop(stage)?;
    let (first, second) = (closed(&project)?, closed(&project)?);
    let log = project.log()?;
    settle(project.verified()?.is_intact(), || "the log is not intact")?;
    let aside = stage.folder().join("aside");
    fs::rename(first.dir(), &aside)?;
    let report = project.verified()?;
    hold(
        !report.is_intact(),
        || "a session was deleted, and nobody sees it",
    )?;
    let named = report.problems.iter().any(|problem| {
        problem.kind.code() == "session_missing"
            && problem.to_string().contains(first.session().as_str())
    });
    hold(named, || "the deleted session is not named")?;

    fs::rename(second.dir(), first.dir())?;
    hold(
        !project.verified()?.is_intact(),
        || "a session stands in the place of another, and nobody sees it",
    )?;
    fs::rename(first.dir(), second.dir())?;
    fs::rename(&aside, first.dir())?;
    settle(
        project.verified()?.is_intact(),
        || "what was genuine was not put back",
    )?;

    fs::create_dir(log.dir().join("s-added"))?;
    for file in ["events.ndjson", "checkpoint"] {
        fs::copy(first.dir().join(file), log.dir().join("s-added").join(file))?;
    }
    hold(
        !project.verified()?.is_intact(),
        || "a session was added, and nobody sees it",
    )
}
