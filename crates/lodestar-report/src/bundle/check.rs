//! Checking a bundle, with keys from elsewhere.

mod parts;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Read as _};

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, Hasher};
use lodestar_core::event::EventType;
use lodestar_core::name::SessionId;
use lodestar_log::{SignedCheckpoint, Trust};
use serde::Deserialize as _;

use super::checked::{Checked, Fault};
use super::{End, FORMAT, Head, LedgerPart, MAX_BLOB, Piece, seal};
use crate::{inert, words};

/// The longest line: a blob in base64 and what surrounds it.
const MAX_LINE: u64 = MAX_BLOB / 3 * 4 + (1 << 20);
/// Problems that are listed; the rest is counted.
const MOST_FAULTS: usize = 100;

/// Reads a bundle and checks all of it. Only keys of `trust` count.
pub fn check(bundle: &mut dyn BufRead, trust: &Trust) -> io::Result<Checked> {
    let mut checker = Checker {
        trust,
        checked: Checked::default(),
        at: 0,
        stage: Stage::Head,
        hasher: Hasher::new(),
        checkpoint: None,
        note: String::new(),
        opening: None,
        last: None,
        cited: Vec::new(),
        gone: BTreeMap::new(),
        answered: BTreeSet::new(),
        named: BTreeSet::new(),
        found: BTreeSet::new(),
        more: 0,
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = bundle.take(MAX_LINE + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        checker.at += 1;
        if !checker.take(&line) {
            break;
        }
    }
    Ok(checker.finish())
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Head,
    Keys,
    Checkpoint,
    Ledger,
    Events,
    Blobs,
    End,
    Seal,
    Over,
}

struct Checker<'a> {
    trust: &'a Trust,
    checked: Checked,
    at: u64,
    stage: Stage,
    hasher: Hasher,
    checkpoint: Option<SignedCheckpoint>,
    note: String,
    /// The leaf hash of the record that opened the session.
    opening: Option<Digest>,
    last: Option<u64>,
    /// Events that the report cites and that did not come yet, the last first.
    cited: Vec<u64>,
    /// Events that are said to be redacted, by their leaf hashes.
    gone: BTreeMap<u64, Digest>,
    /// Events that an operator's statement redacts, with their leaf hashes.
    answered: BTreeSet<(u64, Digest)>,
    /// Blobs that events name, and those that are here.
    named: BTreeSet<Digest>,
    found: BTreeSet<Digest>,
    more: u64,
}

impl Checker<'_> {
    fn fault(&mut self, problem: impl ToString) {
        if self.checked.problems.len() >= MOST_FAULTS {
            self.more += 1;
            return;
        }
        self.checked.problems.push(Fault {
            line: self.at,
            problem: inert::line(&problem.to_string(), 300),
        });
    }

    /// Takes in a line; false where nothing after it can be understood.
    fn take(&mut self, line: &[u8]) -> bool {
        if self.stage == Stage::Over {
            self.fault("something follows behind the seal");
            return false;
        }
        let Some(text) = line.strip_suffix(b"\n") else {
            self.fault("the line is cut off or too long");
            return false;
        };
        let piece = match read(text) {
            Ok(piece) => piece,
            Err(problem) => {
                self.fault(problem);
                self.hasher.update(line);
                return true;
            }
        };
        let stage = match &piece {
            Piece::Bundle(_) => Stage::Head,
            Piece::Keys(_) => Stage::Keys,
            Piece::Checkpoint(_) => Stage::Checkpoint,
            Piece::Ledger(_) => Stage::Ledger,
            Piece::Event(_) => Stage::Events,
            Piece::Blob(_) => Stage::Blobs,
            Piece::End(_) => Stage::End,
            Piece::Seal(_) => Stage::Seal,
        };
        // Most come once and in this order; of events and blobs there may be any number.
        let is_next = match stage {
            Stage::Events | Stage::Blobs | Stage::End => {
                (Stage::Events..=Stage::Blobs).contains(&self.stage) && stage >= self.stage
            }
            once => once == self.stage,
        };
        if !is_next {
            self.fault(
                "the line does not belong here: lines are missing, repeated or out of order",
            );
        }
        self.stage = match stage {
            Stage::Head => Stage::Keys,
            Stage::Keys => Stage::Checkpoint,
            Stage::Checkpoint => Stage::Ledger,
            Stage::Ledger => Stage::Events,
            Stage::End => Stage::Seal,
            Stage::Seal => Stage::Over,
            several => several,
        };
        match piece {
            Piece::Bundle(head) => self.head(head),
            Piece::Keys(_) => {}
            Piece::Checkpoint(note) => self.checkpoint(note),
            Piece::Ledger(part) => self.ledger(&part),
            Piece::Event(part) => self.event(&part),
            Piece::Blob(part) => self.blob(&part),
            Piece::End(end) => self.end(&end),
            Piece::Seal(seal) => self.seal(&seal),
        }
        self.hasher.update(line);
        true
    }

    fn head(&mut self, head: Head) {
        if head.format != FORMAT {
            self.fault(format!("this is a `{}`, not a `{FORMAT}`", head.format));
        }
        self.checked.project = Some(head.project);
        self.checked.session = Some(head.session);
        self.checked.ceiling = Some(head.ceiling);
        self.checked.report = Some(head.report);
        if !head.cited.is_sorted_by(|one, next| one < next) || head.cited.first() != Some(&0) {
            self.fault("the list of what the report cites does not begin with 0, or does not rise");
        }
        self.cited = head.cited;
        self.cited.reverse();
    }

    /// What the checkpoints of this project and session are of.
    fn origin(&self, session: Option<&str>) -> Option<String> {
        let project = self.checked.project.as_ref()?;
        let session = session.or(self.checked.session.as_ref().map(SessionId::as_str))?;
        Some(format!("lodestar.log/{project}/{session}"))
    }

    fn checkpoint(&mut self, note: String) {
        match SignedCheckpoint::open(&note, self.trust) {
            Ok(signed) => {
                let checkpoint = signed.checkpoint();
                if Some(&checkpoint.origin) != self.origin(None).as_ref() {
                    let origin = checkpoint.origin.clone();
                    self.fault(format!("the checkpoint is of `{origin}`"));
                } else {
                    self.checked.size = Some(checkpoint.size);
                    self.checked.root = Some(checkpoint.root);
                    self.checkpoint = Some(signed);
                }
            }
            Err(problem) => self.fault(problem),
        }
        self.note = note;
    }

    fn ledger(&mut self, part: &LedgerPart) {
        let signed = match SignedCheckpoint::open(&part.head, self.trust) {
            Ok(signed) => signed,
            Err(problem) => return self.fault(format!("the ledger's head: {problem}")),
        };
        let origin = self.origin(Some(lodestar_log::LEDGER_NAME));
        if Some(&signed.checkpoint().origin) != origin.as_ref() {
            return self.fault("the ledger's head is of another project");
        }
        let session = self.checked.session.clone();
        for record in &part.records {
            let proven = match signed.check(&record.event, &record.path) {
                Ok(proven) => proven,
                Err(problem) => {
                    self.fault(format!("a record of the ledger: {problem}"));
                    continue;
                }
            };
            let payload = proven.payload.as_ref();
            let said = payload.and_then(|payload| payload["session"].as_str());
            if said != session.as_ref().map(SessionId::as_str) {
                self.fault("a record of the ledger is about another session");
                continue;
            }
            match EventType::parse(proven.kind.as_bytes()) {
                Some(EventType::LEDGER_SESSION_OPENED) if self.opening.is_none() => {
                    self.opening = Some(proven.leaf_hash);
                }
                Some(EventType::LEDGER_SESSION_CLOSED) if self.checked.closed_at.is_none() => {
                    let note = payload.and_then(|payload| payload["checkpoint"].as_str());
                    match note == Some(self.note.as_str()) {
                        true => self.checked.closed_at = Some(proven.time),
                        false => self.fault(
                            "the ledger closed the session with another checkpoint than this one",
                        ),
                    }
                }
                _ => self.fault("a record of the ledger neither opens nor closes the session"),
            }
        }
        if self.opening.is_none() {
            self.fault("the ledger's record of how the session was opened is missing");
        }
        if self.checked.closed_at.is_none() {
            let remark = "no closing record of the session is included: whether it was closed is not shown here";
            self.checked.remarks.push(remark.to_owned());
        }
    }

    fn end(&mut self, end: &End) {
        if self.checked.events == 0 {
            self.fault("no event is proven");
        }
        for (seq, leaf) in std::mem::take(&mut self.gone) {
            if !self.answered.contains(&(seq, leaf)) {
                self.fault(format!(
                    "event {seq} is said to be redacted, and no operator's statement says so"
                ));
            }
        }
        // What has no checkpoint yet cannot be proven; everything else that is cited has to be here.
        let size = self.checked.size.unwrap_or(0);
        while let Some(missing) = self.cited.pop_if(|cited| *cited < size) {
            self.fault(format!(
                "event {missing}, which the report cites, is missing"
            ));
        }
        if end.unproven != self.cited.len() as u64 {
            self.fault("the number of events that no checkpoint covers is another");
        }
        let missing = self.named.len() as u64 - self.found.len() as u64;
        if end.events != self.checked.events
            || end.blobs != self.checked.blobs
            || end.left_out != missing
        {
            self.fault("events or blobs are missing");
        }
        let mut remark = |many: u64, what: &str, then: &str| {
            if many > 0 {
                let many = words::count(many, what);
                self.checked.remarks.push(format!("{many} {then}"));
            }
        };
        remark(
            end.unproven,
            "event",
            "that the report cites had no checkpoint yet, and are not here",
        );
        remark(
            end.left_out,
            "blob",
            "too large to travel: the events say what is in them by hash",
        );
        remark(
            end.elsewhere,
            "change",
            "of beliefs that the report tells are in other sessions, and not proven here",
        );
    }

    fn seal(&mut self, seal: &str) {
        let digest = std::mem::replace(&mut self.hasher, Hasher::new()).finish();
        let (Some(project), Some(session)) = (&self.checked.project, &self.checked.session) else {
            return self.fault("nobody knows what the seal is of");
        };
        match seal::check(seal, project, session, digest, self.trust) {
            Ok(()) => self.checked.sealed = true,
            Err(problem) => self.fault(problem),
        }
    }

    fn finish(mut self) -> Checked {
        match self.stage {
            Stage::Over => {}
            Stage::Seal => self.fault(
                "the bundle was put together by nobody known: no seal of the log's key is under it",
            ),
            _ => self.fault("the bundle has no end: something is cut off"),
        }
        if self.more > 0 {
            let more = words::number(self.more);
            self.checked.problems.push(Fault {
                line: self.at,
                problem: format!("… and {more} more"),
            });
        }
        self.checked
    }
}

/// A line in its one spelling.
fn read(text: &[u8]) -> Result<Piece, String> {
    let value = canonical::parse(text).map_err(|problem| problem.to_string())?;
    let spelt = canonical::to_vec(&value).map_err(|problem| problem.to_string())?;
    if spelt != text {
        return Err("the line is not in its canonical form".to_owned());
    }
    Piece::deserialize(value).map_err(|problem| problem.to_string())
}
