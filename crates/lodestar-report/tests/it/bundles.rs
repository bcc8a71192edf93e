//! Proof bundles: written here, checked as if elsewhere, and found out when anything of them is changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use lodestar_core::canonical;
use lodestar_core::digest::sha256;
use lodestar_core::key::SecretKey;
use lodestar_core::note::Note;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::{Trust, WriterOptions};
use lodestar_report::bundle::{self, BundleError, Checked, Written};
use lodestar_report::{Examination, Projection, html, markdown};
use serde_json::{Value, json};

use crate::governed::{Project, log_key};
use crate::told::{poisoned, report_of, trust};

fn bundle_of(
    project: &Project,
    session: &lodestar_core::name::SessionId,
    ceiling: Sensitivity,
) -> (Vec<u8>, Written) {
    let dir = project.log().session(session);
    let trust = trust();
    let examination = Examination {
        dir: &dir,
        trust: &trust,
        ceiling,
    };
    let Projection::Report(report) = examination.run(&|_| ()).unwrap() else {
        panic!("refused");
    };
    let mut bytes = Vec::new();
    let written = bundle::write(&report, &dir, &trust, &log_key(), &mut bytes).unwrap();
    assert_eq!(written.events, report.cited().len() as u64);
    (bytes, written)
}

fn check(bytes: &[u8], trust: &Trust) -> Checked {
    bundle::check(&mut &*bytes, trust).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_holds_elsewhere_with_the_key_and_without_it_does_not() {
    let (project, session) = poisoned().await;
    let (bytes, written) = bundle_of(&project, &session, Sensitivity::Internal);
    drop(project);
    let checked = check(&bytes, &trust());
    assert!(checked.holds(), "{:?}", checked.problems);
    assert_eq!(
        (checked.events, checked.withheld.len()),
        (written.events, 0)
    );
    assert!(checked.closed_at.is_some());
    assert_eq!(checked.session, Some(session));
    let stranger = Trust::only(SecretKey::from_seed([8; 32]).public());
    assert!(!check(&bytes, &stranger).holds());
    assert!(!check(&bytes, &Trust::default()).holds());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_above_the_ceiling_stays_out_and_its_heads_are_proven() {
    let (project, session) = poisoned().await;
    let (bytes, written) = bundle_of(&project, &session, Sensitivity::Public);
    assert!(written.withheld > 0);
    let checked = check(&bytes, &trust());
    assert!(checked.holds(), "{:?}", checked.problems);
    assert_eq!(checked.withheld.len() as u64, written.withheld);
    let text = String::from_utf8(bytes).unwrap();
    for hidden in ["evil.example", "corp.example", "Notes."] {
        assert!(!text.contains(hidden), "{hidden}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_session_of_which_nothing_is_signed_yet_there_is_no_bundle() {
    let (project, session) = poisoned().await;
    project.will_be_edited();
    let report = crate::told::report_of(&project, &session);
    let dir = project.log().session(&session);
    let checkpoint = lodestar_core::note::Checkpoint {
        origin: dir.origin(),
        size: 0,
        root: lodestar_core::digest::sha256(b""),
    };
    let note = checkpoint.sign(&crate::governed::log_key());
    std::fs::write(dir.checkpoint_path(), note.to_string()).unwrap();
    let mut bytes = Vec::new();
    let problem = bundle::write(&report, &dir, &trust(), &log_key(), &mut bytes).unwrap_err();
    assert!(
        problem.to_string().contains("nothing is proven yet"),
        "{problem}"
    );
    assert!(bytes.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_of_a_bundle_that_is_flipped_is_found() {
    let (project, session) = poisoned().await;
    let (bytes, _) = bundle_of(&project, &session, Sensitivity::Internal);
    let step = (bytes.len() / 400).max(1);
    for at in (0..bytes.len())
        .step_by(step)
        .chain(bytes.len() - 200..bytes.len())
    {
        let mut edited = bytes.clone();
        edited[at] ^= 1 << (at % 8);
        assert!(!check(&edited, &trust()).holds(), "byte {at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_missing_repeated_moved_or_added_are_found() {
    let (project, session) = poisoned().await;
    let (bytes, _) = bundle_of(&project, &session, Sensitivity::Internal);
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let broken = |lines: Vec<&str>| {
        let text = lines.join("\n") + "\n";
        assert!(!check(text.as_bytes(), &trust()).holds(), "{}", lines.len());
    };
    for at in 0..lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        broken(fewer);
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        broken(twice);
    }
    let mut swapped = lines.clone();
    swapped.swap(5, 6);
    broken(swapped);
    let mut more = lines.clone();
    more.push("{}");
    broken(more);
    assert!(!check(b"", &trust()).holds());
    assert!(!check(&text.as_bytes()[..text.len() - 1], &trust()).holds());
}

/// A bundle that was opened, to be put together otherwise.
struct Opened(Vec<Value>);

impl Opened {
    fn new(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        Self(lines.collect())
    }

    /// Changes every event of a type.
    fn each(mut self, kind: &str, change: impl Fn(&mut Value, String)) -> Self {
        for line in &mut self.0 {
            let Some(event) = line.get_mut("event") else {
                continue;
            };
            let Some(text) = event["event"]["line"].as_str() else {
                continue;
            };
            let at = text.find("},\"payload\":").unwrap();
            let head = text["{\"head\":".len()..=at].to_owned();
            if head.contains(&format!("\"type\":\"{kind}")) {
                change(event, head);
            }
        }
        self
    }

    fn without(mut self, gone: impl Fn(&Value) -> bool) -> Self {
        self.0.retain(|line| !gone(line));
        self
    }

    /// With counts that fit, and sealed by this key.
    fn sealed(mut self, key: &SecretKey) -> Vec<u8> {
        let count = |member: &str| {
            let all = self.0.iter();
            all.filter(|line| line.get(member).is_some()).count()
        };
        let (events, blobs) = (count("event"), count("blob"));
        let head = self.0[0]["bundle"].clone();
        let mut body = Vec::new();
        self.0.retain(|line| line.get("seal").is_none());
        for line in &mut self.0 {
            if let Some(end) = line.get_mut("end") {
                end["events"] = events.into();
                end["blobs"] = blobs.into();
            }
            body.extend(canonical::to_vec(line).unwrap());
            body.push(b'\n');
        }
        let (project, session) = (&head["project"], &head["session"]);
        let (project, session) = (project.as_str().unwrap(), session.as_str().unwrap());
        let name = format!("lodestar.bundle/{project}/{session}");
        let mut note = Note::new(format!("{name}\n{}\n", sha256(&body))).unwrap();
        note.sign(&name, key).unwrap();
        let seal = json!({"seal": note.to_string()});
        body.extend(canonical::to_vec(&seal).unwrap());
        body.push(b'\n');
        body
    }
}

fn problems(bytes: &[u8]) -> String {
    let checked = check(bytes, &trust());
    assert_eq!(checked.holds(), checked.problems.is_empty());
    let all = checked.problems.iter().map(|one| one.problem.as_str());
    all.collect::<Vec<_>>().join("\n")
}

fn is_event(line: &Value) -> bool {
    line.get("event").is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_the_logs_key_puts_a_bundle_together() {
    let (project, session) = poisoned().await;
    let (bytes, _) = bundle_of(&project, &session, Sensitivity::Internal);
    let again = Opened::new(&bytes).sealed(&log_key());
    assert_eq!(problems(&again), "");
    assert_eq!(again, bytes);
    let stranger = SecretKey::from_seed([8; 32]);
    let said = problems(&Opened::new(&bytes).sealed(&stranger));
    assert!(said.contains("put together by nobody known"), "{said}");
    let unsealed = Opened::new(&bytes).without(|line| line.get("seal").is_some());
    let mut text = Vec::new();
    for line in unsealed.0 {
        text.extend(canonical::to_vec(&line).unwrap());
        text.push(b'\n');
    }
    let said = problems(&text);
    assert!(said.contains("put together by nobody known"), "{said}");

    // What travels is on the word of whoever sealed it: with the seal left as it was, nothing can be
    // changed that the proofs themselves do not cover.
    let ceiling = |mut opened: Opened| {
        opened.0[0]["bundle"]["ceiling"] = "public".into();
        opened
    };
    let withheld = |opened: Opened| {
        opened.each("action.rejected@1", |event, head| {
            event["event"] = json!({"head": head});
            event["without"] = json!({"withheld": "secret"});
        })
    };
    let closing = |mut opened: Opened| {
        let ledger = opened.0.iter_mut().find_map(|line| line.get_mut("ledger"));
        let records = ledger.unwrap()["records"].as_array_mut().unwrap();
        assert_eq!(records.len(), 2);
        records.truncate(1);
        opened
    };
    let changes: [&dyn Fn(Opened) -> Opened; 3] = [&ceiling, &withheld, &closing];
    for change in changes {
        let said = problems(&change(Opened::new(&bytes)).sealed(&stranger));
        assert!(said.contains("put together by nobody known"), "{said}");
        let changed = change(Opened::new(&bytes));
        assert_ne!(changed.0, Opened::new(&bytes).0);
        let mut text = Vec::new();
        for line in changed.0 {
            text.extend(canonical::to_vec(&line).unwrap());
            text.push(b'\n');
        }
        assert!(problems(&text).contains("not what was sealed"));
    }
    // That a record is not here does not say that there is none.
    let open = check(&closing(Opened::new(&bytes)).sealed(&log_key()), &trust());
    let remarks = open.remarks.join("\n");
    assert!(remarks.contains("is not shown here"), "{remarks}");
    assert!(!remarks.contains("still open"), "{remarks}");
}

/// The proofs count for themselves: what does not follow from them is found under any seal.
#[tokio::test(flavor = "multi_thread")]
async fn a_seal_does_not_make_good_what_is_missing() {
    let (project, session) = poisoned().await;
    let (bytes, _) = bundle_of(&project, &session, Sensitivity::Internal);
    let redacted = Opened::new(&bytes).each("action.rejected@1", |event, head| {
        event["event"] = json!({"head": head});
        event["without"] = "redacted".into();
    });
    let said = problems(&redacted.sealed(&log_key()));
    assert!(said.contains("no operator's statement says so"), "{said}");

    let one = Opened::new(&bytes).each("action.rejected@1", |event, _| *event = Value::Null);
    let one = one.without(|line| line.get("event").is_some_and(Value::is_null));
    let said = problems(&one.sealed(&log_key()));
    assert!(
        said.contains("which the report cites, is missing"),
        "{said}"
    );

    let none = Opened::new(&bytes).without(is_event);
    let none = none.without(|line| line.get("blob").is_some());
    let said = problems(&none.sealed(&log_key()));
    assert!(said.contains("no event is proven"), "{said}");

    let mut uncited = Opened::new(&bytes).without(is_event);
    uncited.0[0]["bundle"]["cited"] = json!([]);
    let said = problems(&uncited.sealed(&log_key()));
    assert!(said.contains("no event is proven"), "{said}");

    let mut forged = Opened::new(&bytes);
    let text = forged.0.iter_mut().filter_map(|line| {
        let line = line.pointer_mut("/event/event/line")?;
        line.as_str()?.contains("eve@evil.example").then_some(line)
    });
    for line in text {
        *line = line
            .as_str()
            .unwrap()
            .replace("eve@evil.example", "bob@corp.example")
            .into();
    }
    let said = problems(&forged.sealed(&log_key()));
    assert!(said.contains("payload is not the one"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_redacted_counts_as_redacted_where_the_operator_is_known() {
    let (project, session) = poisoned().await;
    project.will_be_edited();
    let operator = SecretKey::from_seed([5; 32]);
    let events = project.events(&session);
    let seq = events
        .iter()
        .position(|(kind, _)| kind == "observation.recorded@1")
        .unwrap();
    let known = Trust {
        operators: vec![operator.public()],
        ..trust()
    };
    lodestar_log::redact(
        &project.log(),
        &session,
        &BTreeSet::from([seq as u64]),
        "it named somebody",
        &operator,
        &known,
        &WriterOptions::new(Arc::new(log_key())),
    )
    .unwrap();
    let dir = project.log().session(&session);
    let examination = Examination {
        dir: &dir,
        trust: &known,
        // Of the log's own word nothing is withheld.
        ceiling: Sensitivity::Public,
    };
    let Projection::Report(report) = examination.run(&|_| ()).unwrap() else {
        panic!("refused");
    };
    let mut bytes = Vec::new();
    bundle::write(&report, &dir, &known, &log_key(), &mut bytes).unwrap();
    let checked = check(&bytes, &known);
    assert!(checked.holds(), "{:?}", checked.problems);
    assert_eq!(checked.redacted, [seq as u64]);
    let said = problems(&bytes);
    assert!(said.contains("the redaction in event"), "{said}");
    assert!(said.contains("no operator's statement says so"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_in_hand_is_told_from_another() {
    let (project, session) = poisoned().await;
    let (bytes, _) = bundle_of(&project, &session, Sensitivity::Internal);
    let forms = check(&bytes, &trust()).report.unwrap();
    let projection = crate::told::project_of(&project, &session);
    let (mut page, mut text) = (Vec::new(), Vec::new());
    html::write(&projection, &mut page).unwrap();
    markdown::write(&projection, &mut text).unwrap();
    let json = format!("{}\n", lodestar_report::json::pretty(&projection));
    assert_eq!(forms.which(sha256(&page)), Some("html"));
    assert_eq!(forms.which(sha256(&text)), Some("md"));
    assert_eq!(forms.which(sha256(json.as_bytes())), Some("json"));
    text.push(b' ');
    assert_eq!(forms.which(sha256(&text)), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_installation_makes_no_bundle() {
    let (project, session) = poisoned().await;
    let report = report_of(&project, &session);
    let dir = project.log().session(&session);
    let stranger = SecretKey::from_seed([8; 32]);
    let refused = bundle::write(&report, &dir, &trust(), &stranger, &mut Vec::new());
    assert!(matches!(refused, Err(BundleError::NotTheLogsKey)));
}
