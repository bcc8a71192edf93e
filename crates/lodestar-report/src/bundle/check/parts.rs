//! The events of a bundle and the blobs that they name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::canonical;
use lodestar_core::digest::sha256;
use lodestar_core::event::EventType;
use lodestar_log::{LogRoot, ProvenEvent, ProvenHead, RedactedRecord};

use super::super::write::blobs_of;
use super::super::{BlobPart, EventPart, Without};
use super::Checker;

impl Checker<'_> {
    pub(super) fn event(&mut self, part: &EventPart) {
        let Some(signed) = &self.checkpoint else {
            return self.fault("there is no checkpoint that this event could be proven by");
        };
        let proven = match signed.check(&part.event, &part.path) {
            Ok(proven) => proven,
            Err(problem) => return self.fault(problem),
        };
        if self.last.is_some_and(|last| proven.seq <= last) {
            self.fault("events are repeated or out of order");
        }
        while let Some(missing) = self.cited.pop_if(|cited| *cited < proven.seq) {
            self.fault(format!(
                "event {missing}, which the report cites, is missing"
            ));
        }
        if self.cited.pop_if(|cited| *cited == proven.seq).is_none() {
            self.fault(format!(
                "event {} is here, and the report does not cite it",
                proven.seq
            ));
        }
        self.last = Some(proven.seq);
        if proven.seq == 0 && self.opening != Some(proven.prev) {
            self.fault(
                "the session's first event does not follow its opening record in the ledger",
            );
        }
        self.disclosed(part, &proven);
        self.checked.events += 1;
    }

    fn disclosed(&mut self, part: &EventPart, proven: &ProvenHead) {
        match (&part.event, part.without) {
            (ProvenEvent::Line(_), None) => {
                let payload = proven.payload.as_ref();
                self.named.extend(payload.map(blobs_of).unwrap_or_default());
                self.redaction(proven);
            }
            (ProvenEvent::Head(_), Some(Without::Withheld(level))) => {
                if self.checked.ceiling.is_some_and(|ceiling| level <= ceiling) {
                    self.fault("a payload is withheld that is not above the ceiling");
                }
                self.checked.withheld.push((proven.seq, level));
            }
            (ProvenEvent::Head(_), Some(Without::Redacted)) => {
                self.checked.redacted.push(proven.seq);
                self.gone.insert(proven.seq, proven.leaf_hash);
            }
            (ProvenEvent::Head(_), None) => self.fault("a payload is missing without a reason"),
            (ProvenEvent::Line(_), Some(_)) => {
                self.fault("a payload is there that is said to be left out");
            }
        }
    }

    /// Takes in whose statement took which payloads away.
    fn redaction(&mut self, proven: &ProvenHead) {
        if EventType::parse(proven.kind.as_bytes()) != Some(EventType::LOG_REDACTED) {
            return;
        }
        let (Some(project), Some(session)) = (&self.checked.project, &self.checked.session) else {
            return;
        };
        let payload = proven.payload.as_ref().map(canonical::to_vec);
        let Some(Ok(payload)) = payload else {
            return;
        };
        // Only what it is called counts; there is no such directory.
        let dir = LogRoot::at("").project(project).session(session);
        match RedactedRecord::check(&payload, &dir, self.trust, proven.time) {
            Ok(redaction) => {
                let events = redaction.subject().events.iter();
                let before = events.filter(|one| one.seq < proven.seq);
                let before = before.map(|one| (one.seq, one.leaf_hash));
                self.answered.extend(before);
            }
            Err(problem) => self.fault(format!("the redaction in event {}: {problem}", proven.seq)),
        }
    }

    pub(super) fn blob(&mut self, part: &BlobPart) {
        let Ok(bytes) = BASE64.decode(&part.base64) else {
            return self.fault("a blob is not strict base64");
        };
        if sha256(&bytes) != part.sha256 {
            return self.fault("a blob is not the one that it is named after");
        }
        if !self.named.contains(&part.sha256) {
            return self.fault("no event names this blob");
        }
        if self.found.last().is_some_and(|last| part.sha256 <= *last) {
            return self.fault("blobs are repeated or out of order");
        }
        self.found.insert(part.sha256);
        self.checked.blobs += 1;
    }
}
