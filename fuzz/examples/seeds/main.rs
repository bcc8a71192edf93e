//! Writes the sample log and the seeds of all targets anew:
//! `cargo run --package lodestar-fuzz --example seeds`. Needed when a format changes. With `bundle` behind
//! it, it writes the bundles of the sample log that is there, and nothing else; with `device_statement`, the
//! statements of devices and owners; with `run_bundle`, those of a run.

mod gate;
mod run;

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use lodestar_core::event::EventType;
use lodestar_core::name::{ActorId, ProjectId, SessionId};
use lodestar_core::note::{Checkpoint, Note, NoteKey};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::statement::ConfirmationDecision;
use lodestar_core::time::Timestamp;
use lodestar_fuzz::sample;
use lodestar_log::{
    Clock, Disclosure, LogRoot, LogWriter, ProjectLog, SessionDir, Trust, WriterOptions,
    prove_consistency, prove_inclusion, record_anchor, redact,
};
use lodestar_report::{Examination, Projection, bundle};
use serde_json::{Value, json};

type Done = Result<(), Box<dyn Error>>;

/// 2026-11-15T12:00:00Z; each look at the clock is a millisecond later.
const START_MICROS: i64 = 1_794_744_000_000_000;

fn main() -> Done {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scratch = tempfile::tempdir()?;
    let log = LogRoot::in_folder(scratch.path()).project(&ProjectId::new("sample")?);
    let dir = log.session(&SessionId::new("s1")?);
    let trust = Trust {
        log_keys: vec![sample::log_key().public()],
        operators: vec![sample::operator_key().public()],
        witnesses: Vec::new(),
    };
    let seeds = Seeds {
        folder: folder.join("corpus"),
    };
    let sample = folder.join("../docs/reference/sample");
    match std::env::args().nth(1).as_deref() {
        Some("bundle") => {
            copy_folder(&sample, log.dir())?;
            return seeds.bundle(&dir, &trust);
        }
        Some("device_statement") => return seeds.device_statement(),
        Some("run_bundle") => return seeds.run_bundle(),
        _ => {}
    }
    seeds.canonical_json()?;
    let cosigned = write_log(&log, &trust)?;
    let statement = statement(&dir)?;
    seeds.log_line(&dir, &log)?;
    seeds.checkpoint(&dir, &log)?;
    seeds.write("checkpoint", "ok-cosigned", cosigned.as_bytes())?;
    seeds.dsse_envelope(&statement)?;
    seeds.device_statement()?;
    seeds.confirmation(&statement)?;
    seeds.proof(&dir, &trust)?;
    seeds.memory_export(&folder.join("../crates/lodestar-firewall/tests/data/import"))?;
    for (target, named) in gate::TARGETS {
        for (name, bytes) in *named {
            seeds.write(target, name, bytes)?;
        }
    }
    seeds.bundle(&dir, &trust)?;
    seeds.run_bundle()?;
    if sample.exists() {
        fs::remove_dir_all(&sample)?;
    }
    copy_folder(log.dir(), &sample)?;
    Ok(())
}

/// A session with one of everything: opened, a few events, closed, one payload redacted. Gives the
/// ledger's head as a witness signed it.
fn write_log(log: &ProjectLog, trust: &Trust) -> Result<String, Box<dyn Error>> {
    let micros = AtomicI64::new(START_MICROS);
    let mut options = WriterOptions::new(Arc::new(sample::log_key()));
    options.clock = Clock::new(move || {
        let now = micros.fetch_add(1000, Ordering::Relaxed);
        Timestamp::from_unix_micros(now).unwrap_or(Timestamp::MAX)
    });
    let (session, agent) = (SessionId::new("s1")?, ActorId::new("agent-1")?);
    let opening = json!({"configuration": "sample", "versions": {"lodestar": "0.1.0"}});
    let writer = LogWriter::create(log, &session, &agent, &opening, &options)?;
    let notes = [
        json!({}),
        json!({"text": "grüße, 世界 \u{1f600}", "n": [0, -1, 1.5, 1e21, 9_007_199_254_740_992u64]}),
        json!({"text": "a secret that goes", "deep": [[[{"a": null}]]]}),
        json!({"looks_like": ",\"salt\":\"00000000000000000000000000000000\"}"}),
        json!({"text": "large ".repeat(4000)}),
    ];
    for (i, note) in (0..).zip(&notes) {
        let parents: Vec<u64> = (0..=i).collect();
        writer.append(EventType::AGENT_NOTE, &agent, &parents, note)?;
    }
    writer.close(&agent, &json!({"reason": "done"}))?;
    drop(writer);
    redact(
        log,
        &session,
        &BTreeSet::from([3]),
        "it named a person",
        &sample::operator_key(),
        trust,
        &options,
    )?;
    let mut head = Note::parse(&fs::read(log.ledger_checkpoint_path())?)?;
    Checkpoint::cosign(
        &mut head,
        "witness.example/w1",
        &sample::witness_key(),
        1_794_744_100,
    )?;
    let witness = NoteKey::cosignature("witness.example/w1", &sample::witness_key().public())?;
    let cosigned = head.to_string();
    record_anchor(log, cosigned.as_bytes(), &[witness], &options)?;
    Ok(cosigned)
}

fn copy_folder(from: &Path, to: &Path) -> Done {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().ok_or("a file without a name")?);
        match path.is_dir() {
            true => copy_folder(&path, &target)?,
            false => drop(fs::copy(&path, &target)?),
        }
    }
    Ok(())
}

/// The operator's statement in the last event.
fn statement(dir: &SessionDir) -> Result<Vec<u8>, Box<dyn Error>> {
    let events = fs::read_to_string(dir.events_path())?;
    let last: Value = serde_json::from_str(events.lines().last().ok_or("no events")?)?;
    Ok(lodestar_core::canonical::to_vec(
        &last["payload"]["statement"],
    )?)
}

struct Seeds {
    folder: PathBuf,
}

impl Seeds {
    fn write(&self, target: &str, name: &str, bytes: &[u8]) -> Done {
        let folder = self.folder.join(target);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join(name), bytes)?)
    }

    fn canonical_json(&self) -> Done {
        let seeds: &[(&str, &[u8])] = &[
            ("ok-object", br#"{"b":[1,2.5,-0,1e30],"a":"\u20ac\n\"","":null}"#),
            ("ok-canonical", br#"{"":null,"a":[true,false,0,-1,1e-7]}"#),
            ("ok-surrogates", br#""\ud83d\ude00 \u0000 \ufffd""#),
            ("ok-numbers", b"[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001,9007199254740992,-0.0,5e-324]"),
            ("ok-key-order", "{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\u{1f600}\":5,\"\u{80}\":6,\"\u{f6}\":7}".as_bytes()),
            ("ok-space", b" \t\r\n[ { \"a\" : [ ] } ] \n"),
            ("ok-deep", br#"[[[[[[[[[[[[[[[[[[[[{"a":{"a":{"a":{}}}}]]]]]]]]]]]]]]]]]]]]"#),
            ("bad-duplicate-key", br#"{"a":1,"\u0061":2}"#),
            ("bad-lone-surrogate", br#""\ud800""#),
            ("bad-unsafe-integer", b"9007199254740993"),
            ("bad-trailing", b"{} {}"),
            ("bad-leading-zero", b"[01]"),
            ("bad-too-large", b"1e400"),
            ("bad-control", b"\"\x01\""),
            ("bad-utf8", b"\"\xc3\x28\""),
            ("bad-unfinished", br#"{"a":[1,2"#),
            ("bad-empty", b""),
        ];
        for (name, bytes) in seeds {
            self.write("canonical_json", name, bytes)?;
        }
        self.write("canonical_json", "ok-deepest", &nested(128))?;
        self.write("canonical_json", "bad-too-deep", &nested(129))
    }

    fn log_line(&self, dir: &SessionDir, log: &ProjectLog) -> Done {
        let target = "log_line";
        let events = fs::read_to_string(dir.events_path())?;
        for (seq, line) in events.lines().enumerate() {
            self.write(target, &format!("ok-event-{seq}"), line.as_bytes())?;
        }
        let ledger = fs::read_to_string(log.ledger_path())?;
        for (seq, line) in ledger.lines().enumerate() {
            self.write(target, &format!("ok-ledger-{seq}"), line.as_bytes())?;
        }
        let line = events.lines().nth(2).ok_or("too few events")?;
        let damaged = [
            ("bad-space", line.replacen(',', ", ", 1)),
            ("bad-newline", format!("{line}\n")),
            ("bad-seq-zero", line.replacen("\"seq\":2", "\"seq\":02", 1)),
            (
                "bad-seq-large",
                line.replacen("\"seq\":2", "\"seq\":9007199254740993", 1),
            ),
            ("bad-hex", line.replacen("\"prev\":\"", "\"prev\":\"A", 1)),
            (
                "bad-parents",
                line.replacen("\"parents\":[0,1]", "\"parents\":[1,0]", 1),
            ),
            ("bad-name", line.replacen("agent-1", "../agent", 1)),
            ("bad-time", line.replacen("2026-11-15", "2026-02-29", 1)),
            ("bad-type", line.replacen("note@1", "note@01", 1)),
            ("bad-cut", line[..line.len() - 1].to_owned()),
            (
                "bad-both-bodies",
                line.replacen("}\"}", "\"}", 1) + ",\"tombstone\":{\"redaction\":1}}",
            ),
        ];
        for (name, text) in damaged {
            self.write(target, name, text.as_bytes())?;
        }
        Ok(())
    }

    fn checkpoint(&self, dir: &SessionDir, log: &ProjectLog) -> Done {
        let target = "checkpoint";
        let session = fs::read_to_string(dir.checkpoint_path())?;
        let ledger = fs::read_to_string(log.ledger_checkpoint_path())?;
        self.write(target, "ok-session", session.as_bytes())?;
        self.write(target, "ok-ledger", ledger.as_bytes())?;
        let damaged = [
            ("ok-other-size", session.replacen("\n8\n", "\n9\n", 1)),
            ("bad-extension", session.replacen("\n\n", "\nmore\n\n", 1)),
            ("bad-size", session.replacen("\n8\n", "\n08\n", 1)),
            ("bad-no-signature", session.replace('\u{2014}', "-")),
            ("bad-unsigned", "lodestar.log/a/b\n0\n\n".to_owned()),
            ("bad-crlf", session.replace('\n', "\r\n")),
            ("bad-cut", session[..session.len() - 1].to_owned()),
            ("bad-twice", {
                let line = session.lines().last().ok_or("no signature")?;
                format!("{session}{line}\n")
            }),
        ];
        for (name, text) in damaged {
            self.write(target, name, text.as_bytes())?;
        }
        Ok(())
    }

    fn dsse_envelope(&self, statement: &[u8]) -> Done {
        let target = "dsse_envelope";
        let text = String::from_utf8(statement.to_vec())?;
        let value: Value = serde_json::from_str(&text)?;
        let signature = value["signatures"][0].to_string();
        let damaged = [
            ("ok-redaction", text.clone()),
            ("ok-pretty", serde_json::to_string_pretty(&value)?),
            ("ok-other-kind", text.replace("redaction.v1", "approval.v1")),
            (
                "bad-unknown-field",
                text.replacen("{\"payload\"", "{\"a\":1,\"payload\"", 1),
            ),
            (
                "bad-twice",
                text.replacen(&signature, &format!("{signature},{signature}"), 1),
            ),
            ("bad-unsigned", text.replacen(&signature, "", 1)),
            ("bad-key-id", text.replacen("ed25519:", "ed25519:A", 1)),
            ("bad-base64", text.replacen("==\"", "\"", 1)),
            ("bad-cut", text[..text.len() - 1].to_owned()),
        ];
        for (name, text) in damaged {
            self.write(target, name, text.as_bytes())?;
        }
        Ok(())
    }

    fn device_statement(&self) -> Done {
        let target = "device_statement";
        let mut texts = Vec::new();
        for (kind, payload) in lodestar_fuzz::device_payloads() {
            let payload = String::from_utf8(payload)?;
            let value: Value = serde_json::from_str(&payload)?;
            let name = match value["subject"]["order"]["kind"].as_str() {
                Some(order) => order.replace('_', "-"),
                None => kind.name().to_owned(),
            };
            texts.push((format!("ok-{name}"), format!("{kind}\n{payload}")));
        }
        let of = |name: &str| {
            let found = texts.iter().find(|(known, _)| known == name);
            found.map(|(_, text)| text.clone()).ok_or("no such seed")
        };
        let (heartbeat, attestation) = (of("ok-heartbeat")?, of("ok-attestation")?);
        let damaged = [
            (
                "bad-other-kind",
                of("ok-resume")?.replacen("owner-order", "heartbeat", 1),
            ),
            (
                "bad-unknown-order",
                of("ok-resume")?.replace("resume", "promote"),
            ),
            (
                "bad-order-field",
                of("ok-bind")?.replace("\"bind\"", "\"resume\""),
            ),
            (
                "bad-status",
                heartbeat.replace("error: dns", &"x".repeat(33)),
            ),
            ("bad-spaced", heartbeat.replacen("\n{", "\n {", 1)),
            ("bad-predicate", attestation.replace("run/v1", "run/v2")),
            (
                "bad-subject",
                attestation.replace("\"subject\":[", "\"subject\":[{},"),
            ),
            (
                "bad-size",
                attestation.replace("\"size\":12", "\"size\":-12"),
            ),
            ("bad-cut", attestation[..attestation.len() - 1].to_owned()),
            (
                "bad-kind",
                format!("pack{}", heartbeat.trim_start_matches("heartbeat")),
            ),
        ];
        let damaged = damaged.map(|(name, text)| (name.to_owned(), text));
        for (name, text) in texts.into_iter().chain(damaged) {
            self.write(target, &name, text.as_bytes())?;
        }
        Ok(())
    }

    fn confirmation(&self, statement: &[u8]) -> Done {
        let target = "confirmation";
        let signed = |decision| {
            let evidence = lodestar_fuzz::confirmed(decision);
            String::from_utf8(evidence.details().to_json())
        };
        let yes = signed(ConfirmationDecision::Confirm)?;
        let value: Value = serde_json::from_str(&yes)?;
        let named = json!({
            "name": "operator-confirmation-evidence", "display": false, "details": value,
        });
        let seeds = [
            ("ok-confirm", yes.clone()),
            ("ok-decline", signed(ConfirmationDecision::Decline)?),
            ("ok-pretty", serde_json::to_string_pretty(&value)?),
            ("ok-other-kind", String::from_utf8(statement.to_vec())?),
            ("bad-named", named.to_string()),
            ("bad-text", "decision=match".to_owned()),
            (
                "ok-other-type",
                yes.replace("confirmation.v1", "approval.v1"),
            ),
            ("bad-cut", yes[..yes.len() - 1].to_owned()),
        ];
        for (name, text) in seeds {
            self.write(target, name, text.as_bytes())?;
        }
        Ok(())
    }

    fn proof(&self, dir: &SessionDir, trust: &Trust) -> Done {
        let target = "proof";
        let proofs = [
            (
                "ok-inclusion",
                prove_inclusion(dir, 2, Disclosure::Payload, trust)?,
            ),
            (
                "ok-head-only",
                prove_inclusion(dir, 4, Disclosure::HeadOnly, trust)?,
            ),
            (
                "ok-redacted",
                prove_inclusion(dir, 3, Disclosure::Payload, trust)?,
            ),
            ("ok-consistency", prove_consistency(dir, 3, trust)?),
            ("ok-from-nothing", prove_consistency(dir, 0, trust)?),
            ("ok-nothing-new", prove_consistency(dir, 8, trust)?),
        ];
        for (name, proof) in &proofs {
            self.write(target, name, &serde_json::to_vec(proof)?)?;
        }
        let text = serde_json::to_string(&proofs[0].1)?;
        let damaged = [
            (
                "ok-wrong-index",
                text.replacen("\"index\":2", "\"index\":1", 1),
            ),
            (
                "ok-wrong-size",
                text.replacen("\"size\":8", "\"size\":9", 1),
            ),
            (
                "ok-huge-size",
                text.replacen("\"size\":8", "\"size\":18446744073709551615", 1),
            ),
            ("bad-kind", text.replacen("\"inclusion\"", "\"belief\"", 1)),
            ("bad-index", text.replacen("\"index\":2", "\"index\":-2", 1)),
            (
                "bad-field",
                text.replacen("\"index\":2", "\"index\":2,\"a\":0", 1),
            ),
            ("bad-cut", text[..text.len() - 1].to_owned()),
        ];
        for (name, text) in damaged {
            self.write(target, name, text.as_bytes())?;
        }
        Ok(())
    }

    /// What a report of the sample rests on.
    fn bundle(&self, dir: &SessionDir, trust: &Trust) -> Done {
        let target = "bundle";
        let write = |ceiling| {
            let examination = Examination {
                dir,
                trust,
                ceiling,
            };
            let Projection::Report(report) = examination.run(&|_| ())? else {
                return Err("the sample is not intact".into());
            };
            let mut bytes = Vec::new();
            bundle::write(&report, dir, trust, &sample::log_key(), &mut bytes)?;
            if !bundle::check(&mut &*bytes, trust)?.holds() {
                return Err("the sample's bundle does not hold".into());
            }
            Ok::<_, Box<dyn Error>>(String::from_utf8(bytes)?)
        };
        let whole = write(Sensitivity::Internal)?;
        let first = whole.lines().next().ok_or("no lines")?;
        let seeds = [
            ("ok-public", write(Sensitivity::Public)?),
            ("ok-cut", whole[..whole.len() / 2].to_owned()),
            ("ok-flipped", whole.replacen("done", "dond", 1)),
            ("ok-first", format!("{first}\n")),
            ("bad-empty", String::new()),
            ("bad-format", whole.replacen("\"format\"", "\"form\"", 1)),
            ("bad-name", whole.replacen("\"sample\"", "\"../x\"", 1)),
            ("bad-space", whole.replacen(':', ": ", 1)),
            ("ok-sample", whole),
        ];
        for (name, text) in seeds {
            self.write(target, name, text.as_bytes())?;
        }
        Ok(())
    }

    /// The log of a run, whole and damaged.
    fn run_bundle(&self) -> Done {
        let target = "run_bundle";
        let whole = run::bundle()?;
        let end = whole.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or("no head")?;
        let head = str::from_utf8(&whole[..end])?;
        let with = |from: &str, to: &str| {
            let changed = head.replacen(from, to, 1);
            [changed.as_bytes(), &whole[end..]].concat()
        };
        let mut flipped = whole.clone();
        flipped[end + 9] ^= 4;
        let seeds: [(&str, Vec<u8>); 10] = [
            ("ok-cut", whole[..whole.len() / 2].to_vec()),
            ("ok-head", whole[..=end].to_vec()),
            ("ok-flipped", flipped),
            ("ok-trailing", [&whole[..], b"\n"].concat()),
            ("bad-empty", Vec::new()),
            ("bad-format", with("run-bundle/1", "run-bundle/2")),
            (
                "bad-name",
                with("\"events.ndjson\"", "\"../events.ndjson\""),
            ),
            ("bad-session", with("\"s1\"", "\"..\"")),
            ("bad-space", with(":", ": ")),
            ("ok-sample", whole.clone()),
        ];
        for (name, bytes) in seeds {
            self.write(target, name, &bytes)?;
        }
        Ok(())
    }

    /// The exports that the firewall is tested with, and what is none.
    fn memory_export(&self, exports: &Path) -> Done {
        let target = "memory_export";
        for entry in fs::read_dir(exports)? {
            let path = entry?.path();
            let name = path.file_name().ok_or("a file without a name")?;
            let name = format!("ok-{}", name.to_string_lossy().replace('.', "-"));
            self.write(target, &name, &fs::read(&path)?)?;
        }
        let seeds: &[(&str, &[u8])] = &[
            ("ok-numbers", br#"[{"memory":"a","n":[9007199254740993,-1e16,1e400,1e22,0.5]}]"#),
            ("ok-byte-order-mark", b"\xef\xbb\xbf[{\"memory\":\"a\"}]"),
            ("ok-twice", br#"{"facts":["a"],"facts":["b"],"edges":[{"fact":"a","fact":"b"}]}"#),
            ("ok-long-id", br#"[{"id":"/0","memory":"a"},{"id":"\u202e`","memory":"b"},{"id":7,"memory":"c"}]"#),
            ("bad-empty", b""),
            ("bad-shape", br#"{"profile":{"name":"a"}}"#),
            ("bad-not-a-list", br#"{"results":{"memory":"a"}}"#),
            ("bad-lone-surrogate", br#"[{"memory":"\ud800"}]"#),
            ("bad-zip", b"PK\x03\x04\x14\x00"),
            ("bad-utf8", b"[{\"memory\":\"\xc3\x28\"}]"),
            ("bad-control", b"[{\"memory\":\"\x00\"}]"),
            ("bad-unfinished", br#"{"results":[{"memory":"a"},{"memory""#),
        ];
        for (name, bytes) in seeds {
            self.write(target, name, bytes)?;
        }
        self.write(target, "bad-too-deep", &nested(5000))
    }
}

fn nested(levels: usize) -> Vec<u8> {
    [vec![b'['; levels], vec![b']'; levels]].concat()
}
