//! Logs that were written anew: what somebody can do who has the device's own log key.

use lodestar_core::canonical;
use lodestar_core::digest::{decode_hex, leaf_hash, sha256_parts};
use lodestar_core::merkle::Frontier;
use lodestar_core::note::Checkpoint;
use lodestar_log::Reader;
use serde_json::{Value, json};

use super::{Prepared, Ran, Trouble, While};

/// A line of a log.
pub type Line = Value;

impl Ran {
    /// The checkpoint that the device's writer would have signed after so many events.
    pub fn note_at(&self, size: usize) -> Prepared<String> {
        let mut tree = Frontier::new();
        let mut reader = Reader::open(&self.dir).while_("reading a log")?;
        while usize::try_from(tree.size()).is_ok_and(|have| have < size) {
            let event = reader.next_event().while_("reading a log")?;
            tree.push(event.ok_or_else(|| Trouble::new("a short log"))?.leaf_hash);
        }
        Ok(self.signed(&tree))
    }

    fn signed(&self, tree: &Frontier) -> String {
        let checkpoint = Checkpoint {
            origin: self.dir.origin(),
            size: tree.size(),
            root: tree.root(),
        };
        checkpoint.sign(&self.log_key).to_string()
    }

    /// Writes the log anew after a change, with every hash, the root and the checkpoint as they have to be.
    pub fn forge(&self, change: impl FnOnce(&mut Vec<Line>)) -> Prepared<()> {
        let path = self.dir.events_path();
        let text = std::fs::read_to_string(&path).while_("reading a log")?;
        let lines = text.lines().map(serde_json::from_str);
        let mut lines: Vec<Line> = lines.collect::<Result<_, _>>().while_("reading a line")?;
        let Some(mut last) = lines.first().map(|line| line["head"]["prev"].clone()) else {
            return Err(Trouble::new("an empty log"));
        };
        change(&mut lines);
        let (mut tree, mut text) = (Frontier::new(), Vec::new());
        for (seq, line) in (0_u64..).zip(&mut lines) {
            let payload = canonical::to_vec(&line["payload"]).while_("writing a payload")?;
            let salt = line["salt"].as_str().unwrap_or_default();
            let salt = decode_hex::<16>(salt.as_bytes());
            let salt = salt.ok_or_else(|| Trouble::new("a line without a salt"))?;
            let head = &mut line["head"];
            head["seq"] = json!(seq);
            head["prev"] = last;
            head["payload_hash"] = json!(sha256_parts(&[&salt, &payload]));
            let leaf = leaf_hash(&canonical::to_vec(head).while_("writing a head")?);
            tree.push(leaf);
            last = json!(leaf);
            text.extend(canonical::to_vec(&line).while_("writing a line")?);
            text.push(b'\n');
        }
        std::fs::write(&path, text).while_("writing a log")?;
        let note = self.signed(&tree);
        std::fs::write(self.dir.checkpoint_path(), note).while_("writing a checkpoint")
    }
}

/// Where an event of a type stands.
pub fn of_kind(lines: &[Line], kind: &str) -> Option<usize> {
    lines.iter().position(|line| line["head"]["type"] == kind)
}
