//! A run's log on its way: packed, taken apart, verified and judged; and everything that somebody may do to it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lodestar_core::canonical;
use lodestar_core::digest::sha256;
use lodestar_core::statement::Nonce;
use lodestar_gateway::bundle::{
    BundleError, FORMAT, Fault, Limits, Packed, Unpacked, Verified, checkpoint, pack, unpack,
    verify,
};
use lodestar_replay::Patience;
use lodestar_replay::terms::{Judgement, Reason, judge};
use serde_json::{Value, json};

use crate::ran::{Ran, expected, key, log_key, of_kind, ticket, tree};

fn unpacked(bytes: &[u8]) -> Result<Unpacked, BundleError> {
    let below = tempfile::tempdir().unwrap();
    let unpacked = unpack(&mut &*bytes, below.path(), &Limits::default());
    if unpacked.is_err() {
        assert!(tree(below.path()).is_empty(), "nothing is left behind");
    }
    // The folder outlives this call with what is in it.
    std::mem::forget(below);
    unpacked
}

fn code(refused: Result<impl std::fmt::Debug, BundleError>) -> &'static str {
    match refused.unwrap_err() {
        BundleError::Fault(fault) => fault.code(),
        other => panic!("{other}"),
    }
}

/// As a server does it: with a checkpoint from the middle and the last.
fn received(ran: &Ran, packed: &Packed) -> Vec<String> {
    let size = usize::try_from(packed.size).unwrap();
    vec![ran.note_at(0), ran.note_at(size / 2), ran.note_at(size)]
}

fn verified(ran: &Ran, bytes: &[u8], packed: &Packed) -> Result<Verified, BundleError> {
    let notes = received(ran, packed);
    let public = log_key().public();
    let expected = expected(packed, &notes, &public, ran.ticket);
    verify(&unpacked(bytes)?, &expected, &Limits::default())
}

fn judged(ran: &Ran, bytes: &[u8]) -> Judgement {
    let unpacked = unpacked(bytes).unwrap();
    judge(
        &unpacked.log(),
        unpacked.session(),
        &ran.terms,
        &ran.ticket,
        ran.moments(),
        Patience::of(Duration::from_secs(60)),
    )
    .unwrap()
}

#[tokio::test]
async fn an_honest_run_arrives_as_it_left_and_is_verified_and_judged() {
    let ran = Ran::honest(ticket(1)).await;
    let (bytes, packed) = ran.packed();
    assert_eq!(packed.bundle, sha256(&bytes));
    assert_eq!(packed.bytes, bytes.len() as u64);
    assert_eq!(ran.packed().0, bytes, "there is one spelling");
    let there = unpacked(&bytes).unwrap();
    assert_eq!(
        (there.bundle(), there.bytes()),
        (packed.bundle, packed.bytes)
    );
    let sent = tree(ran.dir.dir());
    assert_eq!(tree(there.dir().dir()), sent);
    assert!(sent.iter().any(|(name, _)| name.starts_with("blobs/")));
    let found = verified(&ran, &bytes, &packed).unwrap();
    assert_eq!((found.size, found.root), (packed.size, packed.root));
    assert_eq!(found.session, *ran.session());
    assert_eq!(found.checkpoints, 2);
    let judgement = judged(&ran, &bytes);
    assert!(judgement.passed(), "{:?}", judgement.reasons);
    assert_eq!((judgement.verdicts, judgement.clearances), (3, 3));
    // It goes away with what knows of it.
    let folder = there.log().dir().to_owned();
    drop(there);
    assert!(!folder.exists());
}

#[tokio::test]
async fn only_what_is_closed_and_signed_is_packed() {
    let ran = Ran::honest(ticket(1)).await;
    let mut bytes = Vec::new();
    let other = pack(&ran.dir, &key(8).public(), &mut bytes).unwrap_err();
    assert!(other.to_string().contains("checkpoint"), "{other}");
    assert!(bytes.is_empty());
    let ran = ran.forged(|lines| drop(lines.pop()));
    let open = pack(&ran.dir, &log_key().public(), &mut bytes).unwrap_err();
    assert!(open.to_string().contains("is not closed"), "{open}");
    let ran = Ran::honest(ticket(1)).await;
    std::fs::write(ran.dir.checkpoint_path(), ran.note_at(3)).unwrap();
    let unproven = pack(&ran.dir, &log_key().public(), &mut bytes).unwrap_err();
    assert!(unproven.to_string().contains("covers 3"), "{unproven}");
}

/// The first line of a bundle, and what follows.
fn split(bytes: &[u8]) -> (Value, Vec<u8>) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let header = serde_json::from_slice(&bytes[..end]).unwrap();
    (header, bytes[end + 1..].to_vec())
}

fn joined(header: &Value, rest: &[u8]) -> Vec<u8> {
    let mut bytes = canonical::to_vec(header).unwrap();
    bytes.push(b'\n');
    bytes.extend_from_slice(rest);
    bytes
}

#[tokio::test]
async fn every_flipped_bit_and_every_cut_is_found() {
    let ran = Ran::honest(ticket(1)).await;
    let (bytes, packed) = ran.packed();
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    // Every byte costs too much; a step that is prime to every period meets all kinds of places.
    for at in (0..bytes.len()).step_by(61) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        *found
            .entry(code(verified(&ran, &flipped, &packed)))
            .or_default() += 1;
    }
    for at in (0..bytes.len()).step_by(211) {
        *found.entry(code(unpacked(&bytes[..at]))).or_default() += 1;
    }
    let mut longer = bytes.clone();
    longer.push(b'\n');
    assert_eq!(code(unpacked(&longer)), "trailing_bytes");
    println!("{found:?}");
    for code in ["file_digest", "truncated", "header", "header_too_long"] {
        assert!(found.contains_key(code), "{code}: {found:?}");
    }
}

#[tokio::test]
async fn a_head_says_what_there_is_in_one_way() {
    let ran = Ran::honest(ticket(1)).await;
    let (bytes, _) = ran.packed();
    let (header, rest) = split(&bytes);
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 18] = [
        ("format", |head| {
            head["format"] = json!("lodestar.run-bundle/2")
        }),
        ("header", |head| head["note"] = json!(1)),
        ("header", |head| head["files"][0]["note"] = json!(1)),
        ("header", |head| head["files"] = json!({})),
        ("header", |head| head["session"] = json!("../../etc")),
        ("header", |head| head["project"] = json!("a/b")),
        ("header", |head| head["session"] = json!("")),
        ("header", |head| head["files"][0]["bytes"] = json!(-1)),
        ("too_large", |head| {
            head["files"][0]["bytes"] = json!(1_u64 << 52);
        }),
        ("file_name", |head| {
            head["files"][0]["name"] = json!("../checkpoint");
        }),
        ("file_name", |head| {
            head["files"][0]["name"] = json!("/etc/passwd")
        }),
        ("file_name", |head| {
            head["files"][0]["name"] = json!("blobs/../x")
        }),
        ("file_name", |head| {
            head["files"][0]["name"] = json!("recovered/../events.ndjson");
        }),
        ("file_name", |head| {
            head["files"][0]["name"] = json!("ledger.ndjson")
        }),
        ("file_order", |head| {
            let files = head["files"].as_array_mut().unwrap();
            files.reverse();
        }),
        ("file_order", |head| {
            let files = head["files"].as_array_mut().unwrap();
            let twice = files[0].clone();
            files.insert(0, twice);
        }),
        ("file_missing", |head| {
            let files = head["files"].as_array_mut().unwrap();
            files.retain(|file| file["name"] != "checkpoint");
        }),
        ("file_missing", |head| {
            let files = head["files"].as_array_mut().unwrap();
            files.retain(|file| file["name"] != "events.ndjson");
        }),
    ];
    for (wanted, change) in changes {
        let mut changed = header.clone();
        change(&mut changed);
        assert_eq!(code(unpacked(&joined(&changed, &rest))), wanted);
    }
    // The same head in another spelling is none.
    let spelt = [format!("{header} \n").into_bytes(), rest.clone()].concat();
    assert_eq!(code(unpacked(&spelt)), "header");
    assert_eq!(code(unpacked(b"")), "header_too_long");
    assert_eq!(code(unpacked(b"\n")), "header");
    let endless = vec![b'['; 5 << 20];
    assert_eq!(code(unpacked(&endless)), "header_too_long");
}

/// The most structure in one event: its line's, and what was lifted out of it.
fn densest(ran: &Ran) -> u64 {
    let text = std::fs::read_to_string(ran.dir.events_path()).unwrap();
    let structure = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let own = canonical::to_vec(&line["payload"]).unwrap().len() as u64;
        let blobs = line["payload"]["blobs"].as_array();
        let lifted = blobs.into_iter().flatten();
        let lifted = lifted.filter(|blob| blob["encoding"] == "json");
        own + lifted
            .map(|blob| blob["raw_bytes"].as_u64().unwrap())
            .sum::<u64>()
    });
    structure.max().unwrap()
}

#[tokio::test]
async fn what_unpacks_to_a_great_deal_of_structure_is_not_even_parsed() {
    let ran = Ran::honest(ticket(1)).await;
    let raw = format!("[{}0]", "0,".repeat(8 << 20));
    let stored = zstd::bulk::compress(raw.as_bytes(), 3).unwrap();
    assert!(stored.len() < 10_000);
    let name = sha256(&stored);
    std::fs::create_dir_all(ran.dir.blobs_dir()).unwrap();
    std::fs::write(ran.dir.blobs_dir().join(name.to_string()), &stored).unwrap();
    let ran = ran.forged(|lines| {
        lines[0]["payload"]["extra"] = Value::Null;
        lines[0]["payload"]["blobs"] = json!([{
            "at": "/extra", "encoding": "json", "raw_bytes": raw.len(), "raw_sha256": sha256(raw.as_bytes()),
            "sha256": name,
        }]);
    });
    let (bytes, packed) = ran.packed();
    let below = tempfile::tempdir().unwrap();
    let limits = Limits::default();
    let there = unpack(&mut &bytes[..], below.path(), &limits).unwrap();
    let notes = received(&ran, &packed);
    let public = log_key().public();
    let expected = expected(&packed, &notes, &public, ran.ticket);
    assert_eq!(
        code(verify(&there, &expected, &limits)),
        "too_much_structure"
    );
}

#[tokio::test]
async fn bounds_are_bounds() {
    let ran = Ran::honest(ticket(1)).await;
    let (bytes, packed) = ran.packed();
    let all = Limits::default();
    let exact = Limits {
        bytes: packed.bytes,
        files: split(&bytes).0["files"].as_array().unwrap().len(),
        events: packed.size,
        contents: 5_000 * "something was read\n".len() as u64,
        structure: densest(&ran),
    };
    let with = |limits: Limits| -> Result<Verified, BundleError> {
        let below = tempfile::tempdir().unwrap();
        let there = unpack(&mut &bytes[..], below.path(), &limits)?;
        let notes = received(&ran, &packed);
        let public = log_key().public();
        verify(
            &there,
            &expected(&packed, &notes, &public, ran.ticket),
            &limits,
        )
    };
    with(all).unwrap();
    with(exact).unwrap();
    let fewer = |change: fn(&mut Limits)| {
        let mut limits = exact;
        change(&mut limits);
        code(with(limits))
    };
    assert_eq!(fewer(|limits| limits.bytes -= 1), "too_large");
    assert_eq!(fewer(|limits| limits.files -= 1), "too_many_files");
    assert_eq!(fewer(|limits| limits.events -= 1), "too_many_events");
    assert_eq!(fewer(|limits| limits.contents -= 1), "too_much_content");
    assert_eq!(fewer(|limits| limits.structure -= 1), "too_much_structure");
}

#[tokio::test]
async fn nothing_is_written_beside_the_folder_and_a_folder_that_is_not_there_is_no_fault() {
    let ran = Ran::honest(ticket(1)).await;
    let (bytes, _) = ran.packed();
    let outer = tempfile::tempdir().unwrap();
    let below = outer.path().join("scratch");
    std::fs::create_dir(&below).unwrap();
    let there = unpack(&mut &bytes[..], &below, &Limits::default()).unwrap();
    let inside = there.log().dir().parent().unwrap().to_owned();
    let inside = inside.strip_prefix(&below).unwrap().to_owned();
    for (name, _) in tree(outer.path()) {
        assert!(Path::new(&name).starts_with(Path::new("scratch").join(&inside)));
    }
    let nowhere = unpack(
        &mut &bytes[..],
        &outer.path().join("no"),
        &Limits::default(),
    );
    assert!(matches!(nowhere, Err(BundleError::Io(_))));
}

#[tokio::test]
async fn a_bundle_of_another_run_or_session_passes_for_none() {
    let (ran, other) = (Ran::honest(ticket(1)).await, Ran::honest(ticket(2)).await);
    let (bytes, packed) = ran.packed();
    let (others, others_packed) = other.packed();
    let public = log_key().public();
    let notes = received(&ran, &packed);
    let honest = expected(&packed, &notes, &public, ran.ticket);
    let with = |bytes: &[u8], expected| {
        code(verify(
            &unpacked(bytes).unwrap(),
            &expected,
            &Limits::default(),
        ))
    };
    // Somebody else's bytes, however they are announced.
    assert_eq!(with(&others, honest), "other_bundle");
    let mut expected = honest;
    expected.bundle = others_packed.bundle;
    assert_eq!(with(&others, expected), "other_log");
    let others_notes = received(&other, &others_packed);
    expected.checkpoints = &others_notes;
    // How many results share a line depends on how fast they came.
    assert!(["other_size", "other_root"].contains(&with(&others, expected)));
    expected.root = others_packed.root;
    expected.size = others_packed.size;
    assert_eq!(with(&others, expected), "other_run");
    expected.ticket.id = other.ticket.id;
    assert_eq!(with(&others, expected), "other_nonce");
    expected.ticket = other.ticket;
    assert!(verify(&unpacked(&others).unwrap(), &expected, &Limits::default()).is_ok());
    expected.session = Some(ran.session());
    assert_eq!(with(&others, expected), "other_session");
    // What was attested is not what came.
    let mut expected = honest;
    expected.size += 1;
    assert_eq!(with(&bytes, expected), "other_size");
    let mut expected = honest;
    expected.root = sha256(b"another");
    assert_eq!(with(&bytes, expected), "other_root");
    let stranger = key(8).public();
    let mut expected = honest;
    expected.log_key = &stranger;
    assert_eq!(with(&bytes, expected), "checkpoint");
}

#[tokio::test]
async fn every_checkpoint_that_was_received_lies_on_the_logs_way() {
    let ran = Ran::honest(ticket(1)).await;
    let (bytes, packed) = ran.packed();
    let public = log_key().public();
    let size = usize::try_from(packed.size).unwrap();
    let with = |notes: &[String]| {
        let expected = expected(&packed, notes, &public, ran.ticket);
        verify(&unpacked(&bytes).unwrap(), &expected, &Limits::default())
    };
    for at in 1..=size {
        assert_eq!(with(&[ran.note_at(at)]).unwrap().checkpoints, 1);
    }
    assert_eq!(code(with(&[])), "no_checkpoint");
    assert_eq!(code(with(&[ran.note_at(0)])), "no_checkpoint");
    // One of a log that went otherwise, or further.
    let signed = |size: u64, root: &[u8]| {
        let checkpoint = lodestar_core::note::Checkpoint {
            origin: ran.dir.origin(),
            size,
            root: sha256(root),
        };
        checkpoint.sign(&log_key()).to_string()
    };
    let good = ran.note_at(size);
    assert_eq!(code(with(&[good.clone(), signed(3, b"x")])), "inconsistent");
    let further = signed(packed.size + 1, b"x");
    assert_eq!(code(with(&[good.clone(), further])), "inconsistent");
    let others = checkpoint(&good, &key(8).public());
    assert!(matches!(others, Err(Fault::Checkpoint { .. })));
    assert_eq!(checkpoint(&good, &public).unwrap().size, packed.size);
    assert!(checkpoint("", &public).is_err());
    // A log that was rewritten since, by somebody who has its key.
    let notes = [ran.note_at(5)];
    let ran = ran.forged(|lines| lines[2]["payload"]["note"] = json!(1));
    let (bytes, packed) = ran.packed();
    let expected = expected(&packed, &notes, &public, ran.ticket);
    let refused = verify(&unpacked(&bytes).unwrap(), &expected, &Limits::default());
    assert_eq!(code(refused), "inconsistent");
}

/// A forged log that is right in every hash is verified as what it is; what is in it is judged.
fn found_out(ran: &Ran) -> Vec<Reason> {
    let (bytes, packed) = ran.packed();
    verified(ran, &bytes, &packed).unwrap();
    let judgement = judged(ran, &bytes);
    assert!(!judgement.passed());
    judgement.reasons
}

#[tokio::test]
async fn a_forged_log_that_the_device_signed_itself_does_not_pass() {
    type Change = fn(&mut Vec<Value>);
    let changes: [(&str, Change); 7] = [
        // What was sent had nobody's leave.
        ("differs", |lines| {
            let granted = of_kind(lines, "approval.granted@1", 0);
            lines[granted]["head"]["type"] = json!("agent.note@1");
        }),
        // The tool is said to be harmless.
        ("other_tool", |lines| {
            let tools = lines[0]["payload"]["tools"].as_array_mut().unwrap();
            let send = tools.iter_mut().find(|tool| tool["name"] == "box.send");
            send.unwrap()["contract"]["required_level"] = json!("L1");
        }),
        // The policy lets everything run.
        ("other_policy", |lines| {
            let lax = "permit (principal, action, resource);";
            lines[0]["payload"]["policy"]["text"] = json!(lax);
            lines[0]["payload"]["policy"]["digest"] = json!(sha256(lax.as_bytes()));
        }),
        // Nobody signed it.
        ("other_policy_signature", |lines| {
            lines[0]["payload"]["policy"]["signature"] = json!({"state": "unsigned"});
        }),
        // Somebody else approves.
        ("other_approvers", |lines| {
            lines[0]["payload"]["approvers"][0]["public_key"] = json!(key(9).public());
        }),
        // It was a harness.
        ("defences_off", |lines| {
            lines[0]["payload"]["defences_off"] = json!(["policy_signature"]);
        }),
        // The verdict was another.
        ("differs", |lines| {
            let held = of_kind(lines, "action.judged@1", 2);
            lines[held]["payload"]["verdict"] = json!("allow");
        }),
    ];
    for (code, change) in changes {
        let ran = Ran::honest(ticket(1)).await.forged(change);
        let reasons = found_out(&ran);
        let codes: Vec<_> = reasons.iter().map(Reason::code).collect();
        assert!(codes.contains(&code), "{code}: {reasons:?}");
    }
    // Sealed anew without a change, it is the same log.
    let ran = Ran::honest(ticket(1)).await;
    let (before, _) = ran.packed();
    let ran = ran.forged(|_| ());
    assert_eq!(ran.packed().0, before);
}

#[tokio::test]
async fn a_log_from_before_the_run_was_registered_is_not_its_log() {
    type Change = fn(&mut Vec<Value>);
    let changes: [(&str, Change); 3] = [
        ("no_ticket", |lines| {
            lines[0]["payload"].as_object_mut().unwrap().remove("run");
        }),
        ("other_nonce", |lines| {
            lines[0]["payload"]["run"]["nonce"] = json!(Nonce::from_bytes([9; 16]));
        }),
        ("other_run", |lines| {
            lines[0]["payload"]["run"]["id"] = json!(ticket(9).id);
        }),
    ];
    for (wanted, change) in changes {
        let ran = Ran::honest(ticket(1)).await.forged(change);
        let (bytes, packed) = ran.packed();
        assert_eq!(code(verified(&ran, &bytes, &packed)), wanted);
        let judgement = judged(&ran, &bytes);
        assert_eq!(judgement.reasons[0].code(), wanted);
    }
}

#[tokio::test]
async fn what_nobody_would_write_is_found_however_it_is_signed() {
    // A payload that is not in canonical form, with every hash right.
    let ran = Ran::honest(ticket(1)).await;
    let text = std::fs::read_to_string(ran.dir.events_path()).unwrap();
    let last = text.lines().last().unwrap();
    let spelt = last.replace(r#""payload":{"#, r#""payload":{ "#);
    assert_ne!(spelt, last);
    reseal_last(&ran, &spelt);
    let (bytes, packed) = ran.packed();
    assert_eq!(code(verified(&ran, &bytes, &packed)), "log");
    // Bytes behind the last line.
    let ran = Ran::honest(ticket(1)).await;
    let (bytes, _) = ran.packed();
    let torn = with_file(&bytes, "events.ndjson", |file| file.extend(b"{\"head\""));
    let packed = Packed {
        bundle: sha256(&torn),
        ..ran.packed().1
    };
    assert_eq!(code(verified(&ran, &torn, &packed)), "log");
    // A file that no event names.
    let (mut header, mut rest) = split(&bytes);
    let more = b"some bytes";
    let name = format!("recovered/events-{}", 9);
    let file = json!({"bytes": more.len(), "name": name, "sha256": sha256(more)});
    header["files"].as_array_mut().unwrap().push(file);
    rest.extend_from_slice(more);
    let more = joined(&header, &rest);
    let packed = Packed {
        bundle: sha256(&more),
        ..packed
    };
    assert_eq!(code(verified(&ran, &more, &packed)), "file_unnamed");
    // A blob that is not there.
    let (mut header, rest) = split(&bytes);
    let files = header["files"].as_array_mut().unwrap();
    let blob = files.remove(0);
    assert!(blob["name"].as_str().unwrap().starts_with("blobs/"));
    let length = usize::try_from(blob["bytes"].as_u64().unwrap()).unwrap();
    let fewer = joined(&header, &rest[length..]);
    let packed = Packed {
        bundle: sha256(&fewer),
        ..packed
    };
    assert_eq!(code(verified(&ran, &fewer, &packed)), "log");
}

/// Puts another line in the place of the last, and signs the log anew.
fn reseal_last(ran: &Ran, line: &str) {
    use lodestar_core::digest::{decode_hex, leaf_hash, sha256_parts};
    let text = std::fs::read_to_string(ran.dir.events_path()).unwrap();
    let before = text.trim_end().rfind('\n').unwrap() + 1;
    let start = line.find(r#","payload":"#).unwrap() + r#","payload":"#.len();
    let end = line.find(r#","salt":"#).unwrap();
    let value: Value = serde_json::from_str(line).unwrap();
    let salt: [u8; 16] = decode_hex(value["salt"].as_str().unwrap().as_bytes()).unwrap();
    let mut head = value["head"].clone();
    head["payload_hash"] = json!(sha256_parts(&[&salt, &line.as_bytes()[start..end]]));
    let head = canonical::to_vec(&head).unwrap();
    let mut tree = lodestar_core::merkle::Frontier::new();
    let events = lodestar_log::Reader::open(&ran.dir).unwrap();
    let mut leaves: Vec<_> = events.map(|event| event.unwrap().leaf_hash).collect();
    *leaves.last_mut().unwrap() = leaf_hash(&head);
    leaves.into_iter().for_each(|leaf| tree.push(leaf));
    let mut bytes = text.as_bytes()[..before].to_vec();
    bytes.extend(b"{\"head\":");
    bytes.extend(&head);
    bytes.extend(&line.as_bytes()[start - r#","payload":"#.len()..]);
    bytes.push(b'\n');
    std::fs::write(ran.dir.events_path(), bytes).unwrap();
    let checkpoint = lodestar_core::note::Checkpoint {
        origin: ran.dir.origin(),
        size: tree.size(),
        root: tree.root(),
    };
    let note = checkpoint.sign(&log_key()).to_string();
    std::fs::write(ran.dir.checkpoint_path(), note).unwrap();
}

/// The bundle with one of its files changed, and its head with it.
fn with_file(bytes: &[u8], name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let (mut header, rest) = split(bytes);
    let (mut change, mut at, mut files) = (Some(change), 0, Vec::new());
    for file in header["files"].as_array_mut().unwrap() {
        let length = usize::try_from(file["bytes"].as_u64().unwrap()).unwrap();
        let mut content = rest[at..at + length].to_vec();
        at += length;
        if file["name"] == name {
            change.take().unwrap()(&mut content);
            file["bytes"] = json!(content.len());
            file["sha256"] = json!(sha256(&content));
        }
        files.extend(content);
    }
    joined(&header, &files)
}

/// `1073741824` → `1,073,741,824`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

#[test]
fn the_reference_page_has_every_code_and_limit() {
    let page = include_str!("../../../../docs/reference/run-bundle.md");
    let sources = [
        include_str!("../../src/bundle/fault.rs"),
        include_str!("../../../lodestar-replay/src/terms/reason.rs"),
    ];
    let mut codes = 0;
    for line in sources.iter().flat_map(|source| source.lines()) {
        let code = line
            .split_once("=> \"")
            .and_then(|(_, rest)| rest.split_once('"'));
        if let Some((code, _)) = code {
            assert!(
                page.contains(&format!("`{code}`")),
                "the page lacks `{code}`"
            );
            codes += 1;
        }
    }
    assert!(codes > 45, "{codes}");
    let limits = Limits::default();
    for limit in [
        limits.bytes,
        limits.files as u64,
        limits.events,
        limits.contents,
        limits.structure,
    ] {
        assert!(page.contains(&grouped(limit)), "{limit}");
    }
    for format in [FORMAT, lodestar_replay::terms::TERMS_FORMAT] {
        assert!(page.contains(&format!("`{format}`")));
    }
}
