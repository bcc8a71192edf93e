//! Laws of run bundles.

use std::sync::LazyLock;
use std::time::Duration;

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::RunId;
use lodestar_core::key::PublicKey;
use lodestar_core::note::Note;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;
use lodestar_gateway::bundle::{
    BundleError, Expected, Fault, Limits, Unpacked, pack, unpack, verify,
};
use lodestar_kernel::opening::{Opening, RunTicket};
use lodestar_log::Reader;
use lodestar_replay::Patience;
use lodestar_replay::terms::{Moments, Terms, judge};
use serde_json::Value;

use crate::sample;

const SAMPLE: &[u8] = include_bytes!("../corpus/run_bundle/ok-sample");

/// Room for the sample and what it grows by, and no more.
const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    files: 64,
    events: 1_000,
    contents: 1 << 20,
    structure: 1 << 16,
};

/// What was given out for the sample's run.
pub fn ticket() -> RunTicket {
    RunTicket {
        id: RunId::from_parts(1_794_744_000_000, [1; 10]),
        nonce: Nonce::from_bytes([2; 16]),
    }
}

/// What is known of the sample.
struct Known {
    note: [String; 1],
    size: u64,
    root: Digest,
    terms: Terms,
    moments: Moments,
    log_key: PublicKey,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let sample = taken_apart(SAMPLE).expect("the sample is a bundle");
    let dir = sample.dir();
    let note = std::fs::read_to_string(dir.checkpoint_path()).expect("the sample has a checkpoint");
    let parsed = Note::parse(note.as_bytes()).expect("the sample's checkpoint is a note");
    let checkpoint = lodestar_core::note::Checkpoint::parse_body(parsed.text())
        .expect("the sample's checkpoint is one");
    let events = Reader::open(&dir).expect("the sample has events");
    let events: Vec<_> = events.map(|event| event.expect("an event")).collect();
    let opening = events[0].whole(&dir).ok().flatten();
    let opening: Opening = serde_json::from_value(opening.expect("the sample has an opening"))
        .expect("the sample's opening is one");
    let times = || events.iter().map(|event| event.time);
    Known {
        note: [note],
        size: checkpoint.size,
        root: checkpoint.root,
        terms: Terms::of_opening(&opening, None, Vec::new()).expect("the sample has a preset"),
        moments: Moments {
            registered_at: times().next().unwrap_or(Timestamp::MIN),
            received_at: times().next_back().unwrap_or(Timestamp::MAX),
        },
        log_key: sample::log_key().public(),
    }
});

/// What is taken apart is put together again to the same bytes. It holds as the sample's run only if it is the
/// sample's log; so it is also for whoever mends what the head says of the files. The sample itself passes.
pub fn run_bundle(data: &[u8]) {
    if let Ok(unpacked) = taken_apart(data) {
        assert_eq!(
            (unpacked.bundle(), unpacked.bytes()),
            (sha256(data), data.len() as u64)
        );
        look_at(&unpacked, data);
    }
    if let Some(mended) = mended(data)
        && let Ok(unpacked) = taken_apart(&mended)
    {
        look_at(&unpacked, &mended);
    }
}

fn look_at(unpacked: &Unpacked, data: &[u8]) {
    let known = &*KNOWN;
    let expected = Expected {
        bundle: unpacked.bundle(),
        log_key: &known.log_key,
        operators: &[],
        session: None,
        root: known.root,
        size: known.size,
        checkpoints: &known.note,
        ticket: ticket(),
    };
    let verified = verify(unpacked, &expected, &LIMITS);
    let judged = judge(
        &unpacked.log(),
        unpacked.session(),
        &known.terms,
        &ticket(),
        known.moments,
        Patience::of(Duration::from_secs(10)),
    );
    let judged = judged.expect("what was written can be read, and is not long");
    match verified {
        Ok(verified) => {
            assert_eq!((verified.size, verified.root), (known.size, known.root));
            assert!(judged.passed(), "{:?}", judged.reasons);
            let mut again = Vec::new();
            let packed = pack(&unpacked.dir(), &known.log_key, &mut again);
            assert_eq!(packed.expect("it is closed").bundle, unpacked.bundle());
            assert_eq!(again, data);
        }
        Err(BundleError::Fault(_)) => assert_ne!(data, SAMPLE),
        Err(problem) => panic!("{problem}"),
    }
}

/// Whether the head of a bundle is understood, whatever follows.
pub fn has_head(data: &[u8]) -> bool {
    match taken_apart(data) {
        Ok(_) => true,
        Err(fault) => matches!(
            fault,
            Fault::Truncated { .. } | Fault::Digest { .. } | Fault::Trailing
        ),
    }
}

fn taken_apart(data: &[u8]) -> Result<Unpacked, Fault> {
    let below = std::env::temp_dir();
    match unpack(&mut &*data, &below, &LIMITS) {
        Ok(unpacked) => Ok(unpacked),
        Err(BundleError::Fault(fault)) => Err(fault),
        Err(problem) => panic!("{problem}"),
    }
}

/// The same bytes under a head that is right about them: the last file has what is left.
fn mended(data: &[u8]) -> Option<Vec<u8>> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let mut header: Value = serde_json::from_slice(&data[..end]).ok()?;
    let mut rest = &data[end + 1..];
    let files = header.get_mut("files")?.as_array_mut()?;
    let last = files.len().checked_sub(1)?;
    for (at, file) in files.iter_mut().enumerate() {
        let claimed = usize::try_from(file.get("bytes")?.as_u64()?).ok()?;
        let bytes = match at == last {
            true => rest.len(),
            false => claimed.min(rest.len()),
        };
        let (content, behind) = rest.split_at(bytes);
        rest = behind;
        let file = file.as_object_mut()?;
        file.insert("bytes".to_owned(), bytes.into());
        file.insert("sha256".to_owned(), sha256(content).to_string().into());
    }
    let mut mended = canonical::to_vec(&header).ok()?;
    mended.extend_from_slice(&data[end..]);
    Some(mended)
}
