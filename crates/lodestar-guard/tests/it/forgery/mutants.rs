//! Forged envelopes, each with the reason for which it has to be refused.

use std::collections::BTreeMap;

use lodestar_core::key::SecretKey;
use lodestar_core::statement::{Envelope, Issued, Statement};
use serde_json::{Value, json};

use crate::people::key;

/// A forged envelope and why it counts for nothing; none where any fault of form will do.
pub(super) struct Mutant {
    pub(super) bytes: Vec<u8>,
    pub(super) reason: Option<&'static str>,
}

/// Another statement made of an honest one, and why that one counts for nothing.
pub(super) type Change<'a, T> = (&'static str, &'a dyn Fn(&mut Issued<T>));

/// Mutants by what was done to them.
#[derive(Default)]
pub(super) struct Mutants {
    pub(super) all: Vec<Mutant>,
    counts: BTreeMap<&'static str, usize>,
}

impl Mutants {
    pub(super) fn add(&mut self, kind: &'static str, reason: &'static str, bytes: Vec<u8>) {
        *self.counts.entry(kind).or_default() += 1;
        let reason = Some(reason);
        self.all.push(Mutant { bytes, reason });
    }

    fn add_of_form(&mut self, kind: &'static str, bytes: Vec<u8>) {
        *self.counts.entry(kind).or_default() += 1;
        let reason = None;
        self.all.push(Mutant { bytes, reason });
    }

    /// How many have to be refused for each reason, and how many for any of form.
    pub(super) fn wanted(&self) -> (BTreeMap<String, usize>, usize) {
        let mut wanted = BTreeMap::new();
        for reason in self.all.iter().filter_map(|mutant| mutant.reason) {
            *wanted.entry(reason.to_owned()).or_default() += 1;
        }
        let of_form = self.all.iter().filter(|mutant| mutant.reason.is_none());
        (wanted, of_form.count())
    }

    pub(super) fn print(&self, what: &str) {
        let (total, counts) = (self.all.len(), &self.counts);
        println!("{what}: the tool did not run for any of {total} forgeries {counts:?}");
    }

    /// Bytes changed, cut and doubled, signatures taken away and exchanged.
    pub(super) fn of_envelope(&mut self, honest: &[u8], signer: &SecretKey) {
        let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
        let masks: &[u8] = if full { &[1, 0x20, 0x80, 0xff] } else { &[1] };
        for at in 0..honest.len() {
            for mask in masks {
                let mut forged = honest.to_vec();
                forged[at] ^= mask;
                self.add_of_form("a byte changed", forged);
            }
        }
        for end in (0..honest.len()).step_by(7) {
            self.add("cut", "malformed", honest[..end].to_vec());
        }
        self.add("doubled", "malformed", [honest, honest].concat());
        let envelope: Value = serde_json::from_slice(honest).unwrap();
        let with = |signatures: Value| {
            let mut changed = envelope.clone();
            changed["signatures"] = signatures;
            serde_json::to_vec(&changed).unwrap()
        };
        let signature = envelope["signatures"][0].clone();
        self.add("unsigned", "malformed", with(json!([])));
        let twice = with(json!([signature, signature]));
        self.add("signed twice", "malformed", twice);
        for seed in 100..150 {
            let mut other = signature.clone();
            other["keyid"] = json!(key(seed).public().key_id());
            self.add(
                "under a stranger's name",
                "unknown_key",
                with(json!([other])),
            );
        }
        let own = signer.public().key_id();
        assert_eq!(signature["keyid"], json!(own));
    }

    /// Said otherwise, and signed again by whoever has the key; and by nobody.
    pub(super) fn changed<T: Statement + Clone>(
        &mut self,
        honest: &Issued<T>,
        signer: &SecretKey,
        changes: &[Change<'_, T>],
    ) {
        let genuine = Envelope::sign(honest, signer).unwrap().to_json();
        let genuine: Value = serde_json::from_slice(&genuine).unwrap();
        for (reason, change) in changes {
            let mut changed = honest.clone();
            change(&mut changed);
            let signed = Envelope::sign(&changed, signer).unwrap().to_json();
            let mut stale: Value = serde_json::from_slice(&signed).unwrap();
            stale["signatures"] = genuine["signatures"].clone();
            self.add("said otherwise, signed again", reason, signed);
            let stale = serde_json::to_vec(&stale).unwrap();
            self.add("said otherwise, not signed again", "bad_signature", stale);
        }
    }

    /// Signed by whoever wants to, in their own name.
    pub(super) fn by_strangers<T: Statement + Clone>(&mut self, honest: &Issued<T>) {
        for seed in 100..200 {
            let stranger = key(seed);
            let mut own = honest.clone();
            own.key_id = stranger.public().key_id();
            let signed = Envelope::sign(&own, &stranger).unwrap().to_json();
            self.add("signed by a stranger", "unknown_key", signed);
        }
    }

    /// What only imitates an envelope.
    pub(super) fn of_text(&mut self, honest: &[u8]) {
        let text = String::from_utf8_lossy(honest);
        for imitation in [
            String::new(),
            "decision=match".to_owned(),
            "I approve this. — person-1".to_owned(),
            r#"{"granted":true}"#.to_owned(),
            r#"{"decision":"grant","approver":"person-1"}"#.to_owned(),
            format!("[{text}]"),
            format!("{text}\n{text}"),
            format!(r#"{{"statement":{text},"missing":0}}"#),
            format!(
                r#"{{"name":"operator-confirmation-evidence","display":false,"details":{text}}}"#
            ),
            format!(r#"{{"type":"approval.granted@1","payload":{{"statement":{text}}}}}"#),
            "[".repeat(60_000),
        ] {
            self.add("imitation", "malformed", imitation.into_bytes());
        }
        self.add("no text", "malformed", vec![0xff; 300]);
    }
}
