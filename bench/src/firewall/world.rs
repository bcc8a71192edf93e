//! A firewall with a clock that is set, a log that only hashes, and results of tools to take in.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use lodestar_core::chain::{ContentBlock, Observation, ObservationTrust};
use lodestar_core::digest::{Digest, leaf_hash, sha256};
use lodestar_core::id::{InvocationId, ObservationId};
use lodestar_core::name::{ProjectId, ServerIdentity, SessionId, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_firewall::authority::Seats;
use lodestar_firewall::event::{
    FirewallEvent, LogName, LogPosition, NotRecorded, Recorder, Surroundings,
};
use lodestar_firewall::extract::{Extractors, ToolCall};
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::{SqliteStore, Store, Verdict};
use lodestar_firewall::{Firewall, Intake, Outcome, fold};
use serde_json::{Map, Value, json};

use crate::session;

/// Bytes of a tool's result.
const RESULT: usize = 1024;

/// Time between two results.
const STEP_MICROS: i64 = 250_000;

/// Clock and chance, shared by all that makes ids: no two of a run are the same.
#[derive(Clone)]
pub(super) struct Weather {
    micros: Arc<AtomicI64>,
    drawn: Arc<AtomicU64>,
}

impl Weather {
    pub(super) fn new() -> Self {
        Self {
            micros: Arc::new(AtomicI64::new(1_790_000_000_000_000)),
            drawn: Arc::default(),
        }
    }

    pub(super) fn pass(&self) {
        self.micros.fetch_add(STEP_MICROS, Ordering::Relaxed);
    }

    pub(super) fn now_is(&self) -> Timestamp {
        Timestamp::from_unix_micros(self.micros.load(Ordering::Relaxed)).expect("this century")
    }

    /// A new id of this moment.
    pub(super) fn id<T>(&self, make: fn(u64, [u8; 10]) -> T) -> T {
        let millis = self.now_is().unix_micros() / 1000;
        make(millis.cast_unsigned(), self.draw())
    }

    /// Spread like chance, and the same in every run: SplitMix64.
    fn draw(&self) -> [u8; 10] {
        let count = self.drawn.fetch_add(1, Ordering::Relaxed) + 1;
        let mut mixed = count.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&(mixed ^ (mixed >> 31)).to_be_bytes());
        bytes
    }
}

impl Surroundings for Weather {
    fn now(&mut self) -> Timestamp {
        self.now_is()
    }

    fn random(&mut self) -> [u8; 10] {
        self.draw()
    }
}

/// A log that serialises and hashes each event once, as any log must, and keeps none.
pub(super) struct Tape {
    log: LogName,
    next: u64,
    buffer: Vec<u8>,
}

impl Tape {
    pub(super) fn new() -> Self {
        Self {
            log: LogName {
                project: project(),
                session: SessionId::new("s1").expect("a valid name"),
            },
            next: 0,
            buffer: Vec::new(),
        }
    }

    /// Goes on behind so many events.
    pub(super) fn skip(&mut self, events: u64) {
        self.next = events;
    }

    /// The next place, for an event that has this hash.
    pub(super) fn place(&mut self, leaf: Digest) -> LogPosition {
        let seq = self.next;
        self.next += 1;
        LogPosition {
            log: self.log.clone(),
            seq,
            leaf,
        }
    }
}

impl Recorder for Tape {
    fn record(&mut self, event: &FirewallEvent) -> Result<LogPosition, NotRecorded> {
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, event).map_err(|e| NotRecorded(e.into()))?;
        let leaf = leaf_hash(&self.buffer);
        Ok(self.place(leaf))
    }
}

pub(super) fn project() -> ProjectId {
    ProjectId::new("web").expect("a valid name")
}

pub(super) fn scope() -> Scope {
    "project:web".parse().expect("a valid scope")
}

pub(super) fn keys() -> Keyring {
    Keyring::new(Arc::new(session::key()))
}

pub(super) fn sqlite(path: &Path) -> SqliteStore {
    SqliteStore::open(path).expect("a store in a scratch folder")
}

/// What came back of one call.
pub(super) struct ToolResult {
    observation: Observation,
    arguments: Value,
}

/// A firewall, its log, and the seats that belong to it.
pub(super) struct World {
    pub(super) firewall: Firewall,
    pub(super) seats: Seats,
    pub(super) tape: Tape,
    server: ServerIdentity,
    definition: Digest,
    scope: Scope,
}

impl World {
    pub(super) fn over(store: Box<dyn Store>, weather: &Weather) -> Self {
        let surroundings = Box::new(weather.clone());
        let extractors = Extractors::built_in();
        let (firewall, seats) = Firewall::open(store, keys(), extractors, surroundings);
        Self {
            firewall,
            seats,
            tape: Tape::new(),
            server: ServerIdentity::new("files").expect("a valid name"),
            definition: sha256(b"definition"),
            scope: scope(),
        }
    }

    pub(super) fn take_in(&mut self, result: &ToolResult) -> Outcome {
        let observation = &result.observation;
        let call = ToolCall {
            invocation: observation.invocation_id,
            server: &self.server,
            tool: &observation.tool,
            arguments: &result.arguments,
            definition: self.definition,
            reviewed: true,
            is_error: false,
        };
        let intake = Intake {
            call,
            observation,
            scope: &self.scope,
            recorded: None,
        };
        let done = self.firewall.observe(intake, &mut self.tape);
        done.expect("an honest result is taken in")
    }
}

pub(super) fn observation(weather: &Weather, tool: &str, text: String) -> Observation {
    Observation {
        id: weather.id(ObservationId::from_parts),
        tool: ToolName::new(tool).expect("a valid name"),
        invocation_id: weather.id(InvocationId::from_parts),
        captured_at: weather.now_is(),
        session: SessionId::new("s1").expect("a valid name"),
        project: project(),
        actor: session::actor(),
        trust: ObservationTrust::Raw,
        sensitivity: Sensitivity::Internal,
        rest: Default::default(),
        content: vec![ContentBlock::Text {
            text,
            rest: Map::new(),
        }],
    }
}

/// An agent reads a page of a handbook: the how manyeth it is says which.
pub(super) fn page(weather: &Weather, number: u64) -> ToolResult {
    weather.pass();
    let chapter = ["deploy", "storage", "billing", "search"][(number % 4) as usize];
    let path = format!("docs/{chapter}/step-{number}.md");
    ToolResult {
        observation: observation(weather, "read_file", page_text(chapter, number)),
        arguments: json!({ "path": path }),
    }
}

fn page_text(chapter: &str, number: u64) -> String {
    const PROSE: [&str; 4] = [
        "The service reads its settings once, when it starts, and keeps them until it ends.",
        "Whoever changes one of them has to start it again; a reload is not enough.",
        "Most of the time goes into waiting for the database, so look there first.",
        "Keep the old version around until the new one has run for a day.",
    ];
    let mut text = format!(
        "# How {chapter} works, part {number}\n\nWritten for those who are on call.\n\n\
         ## Before you start\n\n\
         ```sh\nmake {chapter}-{number}\ncargo run --release -- {chapter} --step {number}\n```\n\n"
    );
    let mut prose = PROSE.iter().cycle().skip((number % 4) as usize);
    while text.len() < RESULT {
        text.push_str(prose.next().expect("a cycle has no end"));
        text.push('\n');
    }
    text.truncate(RESULT);
    text
}

/// Keeps recorded events of one log in one transaction, as a rebuild does.
pub(super) fn keep(
    store: &mut SqliteStore,
    keys: &Keyring,
    events: &[(FirewallEvent, LogPosition)],
) {
    store
        .write(&mut |tx| {
            for (event, at) in events {
                let waiting = fold::apply(tx, keys, event, at).expect("events that fit");
                assert!(waiting.is_empty(), "each belief is new");
            }
            Ok(Verdict::Commit)
        })
        .expect("the disk has room");
}
