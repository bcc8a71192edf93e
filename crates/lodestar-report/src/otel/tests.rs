//! The projection of a recorded session, and of what may become of one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::note::NoteKey;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::verify::{ProjectReport, VerifyOptions, verify_project};
use lodestar_log::{Event, LogRoot, Payload, Reader, SessionDir, Trust};
use lodestar_replay::{SessionReplay, derive};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanId, Status};

use super::batch::{Batch, MAX_BYTES, MAX_SPANS};
use super::*;

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/otel")
}

fn recorded() -> SessionDir {
    let project = ProjectId::new("demo").unwrap();
    let log = LogRoot::at(data().join("log")).project(&project);
    log.session(&SessionId::new("tour").unwrap())
}

fn checked(dir: &SessionDir) -> (ProjectReport, SessionReplay) {
    let key = std::fs::read_to_string(data().join("log.pub")).unwrap();
    let key: NoteKey = key.trim().parse().unwrap();
    let trust = Trust {
        log_keys: vec![*key.public_key()],
        ..Trust::default()
    };
    let options = VerifyOptions {
        session: Some(dir.session().clone()),
        ..VerifyOptions::default()
    };
    let report = verify_project(&dir.project_log(), &trust, &options, &|_| ()).unwrap();
    let replay = derive(&dir.project_log(), dir.session(), &[], None).unwrap();
    (report, replay)
}

fn admitted() -> Admitted {
    let dir = recorded();
    let (report, replay) = checked(&dir);
    admit(&dir, &report, &replay).unwrap()
}

fn events() -> Vec<Event> {
    let reader = Reader::open(&recorded()).unwrap();
    reader.collect::<Result<_, _>>().unwrap()
}

fn folded(admitted: Admitted, ceiling: Sensitivity, events: &[Event]) -> Vec<SpanData> {
    let mut fold = Fold::new(admitted, ceiling);
    let mut spans = Vec::new();
    for event in events {
        spans.extend(fold.take(event).unwrap());
    }
    spans.extend(fold.finish());
    spans
}

fn exported(ceiling: Sensitivity) -> Vec<SpanData> {
    folded(admitted(), ceiling, &events())
}

fn attribute<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a opentelemetry::Value> {
    let found = attributes.iter().find(|one| one.key.as_str() == name);
    found.map(|one| &one.value)
}

fn json_of(spans: Vec<SpanData>) -> String {
    let mut out = Vec::new();
    json::write(spans, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The spans as a tree, with everything that is in them.
fn told(spans: &[SpanData]) -> String {
    let root = spans
        .iter()
        .find(|span| span.parent_span_id == SpanId::INVALID);
    let root = root.expect("a root");
    let mut text = String::new();
    tell(root, spans, root.start_time, 0, &mut text);
    text
}

fn tell(span: &SpanData, all: &[SpanData], zero: SystemTime, depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    let at = |time: SystemTime| format!("{}", time.duration_since(zero).unwrap().as_micros());
    let status = match &span.status {
        Status::Unset => String::new(),
        Status::Ok => " ok".to_owned(),
        Status::Error { description } => format!(" error: {description}"),
    };
    let (from, to) = (at(span.start_time), at(span.end_time));
    let id = span.span_context.span_id();
    text.push_str(&format!(
        "{pad}{} [{from}..{to} µs] {id}{status}\n",
        span.name
    ));
    for one in &span.attributes {
        text.push_str(&format!("{pad}  · {} = {}\n", one.key, one.value));
    }
    for event in span.events.iter() {
        let attributes = event.attributes.iter();
        let attributes = attributes.map(|one| format!("{}={}", one.key, one.value));
        let attributes: Vec<String> = attributes.collect();
        let at = at(event.timestamp);
        text.push_str(&format!(
            "{pad}  ! {} [{at} µs] {}\n",
            event.name,
            attributes.join(" ")
        ));
    }
    for link in span.links.iter() {
        text.push_str(&format!("{pad}  → {}\n", link.span_context.span_id()));
    }
    let mut children: Vec<&SpanData> = all
        .iter()
        .filter(|one| one.parent_span_id == span.span_context.span_id())
        .collect();
    children.sort_by_key(|one| one.start_time);
    for child in children {
        tell(child, all, zero, depth + 1, text);
    }
}

#[test]
fn a_poisoned_session_as_a_trace() {
    insta::assert_snapshot!(told(&exported(Sensitivity::Internal)));
}

#[test]
fn exporting_twice_gives_the_same_spans() {
    let once = exported(Sensitivity::Internal);
    assert_eq!(once, exported(Sensitivity::Internal));
    // What may leave changes what is in a span, and never which span it is.
    let ids = |spans: &[SpanData]| -> Vec<_> {
        let contexts = spans.iter().map(|span| span.span_context.clone());
        contexts.map(|it| (it.trace_id(), it.span_id())).collect()
    };
    assert_eq!(ids(&once), ids(&exported(Sensitivity::Public)));
    let distinct: BTreeSet<_> = ids(&once).iter().map(|(_, id)| id.to_bytes()).collect();
    assert_eq!(distinct.len(), once.len());
}

#[test]
fn every_span_and_span_event_leads_back_to_the_log() {
    let log: BTreeMap<i64, Event> = events()
        .into_iter()
        .map(|event| (event.seq as i64, event))
        .collect();
    let check = |attributes: &[KeyValue], time: SystemTime| {
        let seq = match attribute(attributes, names::SEQ) {
            Some(opentelemetry::Value::I64(seq)) => *seq,
            other => panic!("{other:?}"),
        };
        let leaf = attribute(attributes, names::LEAF_HASH)
            .unwrap()
            .as_str()
            .into_owned();
        assert_eq!(leaf, log[&seq].leaf_hash.to_string());
        let micros = log[&seq].time.unix_micros() as u64;
        assert_eq!(time, SystemTime::UNIX_EPOCH + Duration::from_micros(micros));
    };
    for span in exported(Sensitivity::Internal) {
        check(&span.attributes, span.start_time);
        assert!(span.start_time <= span.end_time, "{}", span.name);
        for event in span.events.iter() {
            assert!(
                super::root::EVENT_NAMES.contains(&&*event.name),
                "{}",
                event.name
            );
            check(&event.attributes, event.timestamp);
        }
    }
}

#[test]
fn every_span_hangs_below_the_one_root() {
    let spans = exported(Sensitivity::Internal);
    let ids: BTreeSet<_> = spans
        .iter()
        .map(|it| it.span_context.span_id().to_bytes())
        .collect();
    let (mut roots, mut traces) = (0, BTreeSet::new());
    for span in &spans {
        traces.insert(span.span_context.trace_id().to_bytes());
        match span.parent_span_id {
            SpanId::INVALID => roots += 1,
            parent => assert!(ids.contains(&parent.to_bytes()), "{}", span.name),
        }
    }
    assert_eq!((roots, traces.len()), (1, 1));
}

#[test]
fn below_the_ceiling_of_a_session_nothing_of_its_content_leaves() {
    // Arguments, results, reasons; and what the task and the files say.
    let content = [
        "hotfix-4711",
        "OPS-4711",
        "note.ts",
        "pinned",
        "bytes written",
        "DEVELOPMENT",
    ];
    let internal = json_of(exported(Sensitivity::Internal));
    let public = json_of(exported(Sensitivity::Public));
    for word in content {
        assert!(internal.contains(word), "{word}");
        assert!(!public.contains(word), "{word}");
    }
    for span in exported(Sensitivity::Public) {
        let arguments = attribute(&span.attributes, names::GEN_AI_TOOL_CALL_ARGUMENTS);
        if let Some(arguments) = arguments {
            assert!(arguments.as_str().starts_with("sha256:"), "{arguments}");
            let form = attribute(&span.attributes, names::ARGUMENTS_FORM).unwrap();
            assert_eq!(form.as_str(), "withheld");
            assert!(attribute(&span.attributes, names::ARGUMENTS_BYTES).is_some());
        }
    }
    // A fingerprint is a digest of the arguments that has no salt: whoever guesses them finds it.
    let fingerprints = |ceiling| -> Vec<String> {
        let spans = exported(ceiling);
        let found = spans
            .iter()
            .filter_map(|span| attribute(&span.attributes, names::FINGERPRINT));
        found.map(ToString::to_string).collect()
    };
    let plain = fingerprints(Sensitivity::Internal);
    let withheld = fingerprints(Sensitivity::Public);
    assert!(!plain.is_empty());
    assert_eq!(plain.len(), withheld.len());
    for fingerprint in &plain {
        assert!(!public.contains(fingerprint.as_str()), "{fingerprint}");
    }
    for fingerprint in &withheld {
        assert!(fingerprint.starts_with("sha256:"), "{fingerprint}");
    }
}

#[test]
fn whatever_was_redacted_the_rest_is_told() {
    let log = events();
    let whole = exported(Sensitivity::Internal).len();
    for redacted in 1..log.len() {
        let mut log = log.clone();
        log[redacted].payload = Payload::Redacted { by: 99 };
        log[redacted].salt = None;
        let spans = folded(admitted(), Sensitivity::Secret, &log);
        assert_eq!(spans.len(), whole, "without #{redacted}");
    }
}

#[test]
fn of_a_session_that_goes_on_what_is_known_is_told() {
    let log = events();
    for known in 1..log.len() {
        let spans = folded(admitted(), Sensitivity::Internal, &log[..known]);
        let last = spans.last().expect("the session's span");
        assert_eq!(last.parent_span_id, SpanId::INVALID);
        let until = attributes::moment(log[known - 1].time);
        assert_eq!(last.end_time, until, "the session ends with what is known");
        assert!(spans.iter().all(|span| span.end_time <= until));
    }
    let spans = folded(admitted(), Sensitivity::Internal, &log[..13]);
    let pending = spans.iter().filter(|span| {
        let outcome = attribute(&span.attributes, names::OUTCOME);
        outcome.is_some_and(|outcome| outcome.as_str() == "pending")
    });
    assert_eq!(pending.count(), 1);
}

#[test]
fn a_log_that_differs_lies_or_lacks_a_defence_is_not_admitted() {
    let dir = recorded();
    let (report, replay) = checked(&dir);
    let mut without = replay.clone();
    without.defences_off = vec!["provenance\u{1b}[2J".into()];
    let problem = admit(&dir, &report, &without).unwrap_err().to_string();
    assert!(
        problem.contains("defences taken out (provenance\\u{1b}[2J)"),
        "{problem}"
    );
    let mut differs = replay.clone();
    differs.differences.push(lodestar_replay::Difference {
        seq: 7,
        recorded: "allow".into(),
        derived: "hold".into(),
    });
    let problem = admit(&dir, &report, &differs).unwrap_err().to_string();
    assert!(problem.contains("#7: the log says allow"), "{problem}");
    let mut unproven = report.clone();
    unproven.sessions[0].proven = 0;
    assert_eq!(
        admit(&dir, &unproven, &replay).unwrap_err(),
        NotAdmitted::NothingProven
    );
    let mut other = report.clone();
    other.sessions.clear();
    assert!(matches!(
        admit(&dir, &other, &replay),
        Err(NotAdmitted::NotChecked(_))
    ));
    let mut tampered = report;
    tampered.sessions[0].problems.push(tampered_problem());
    assert!(matches!(
        admit(&dir, &tampered, &replay),
        Err(NotAdmitted::NotIntact { .. })
    ));
}

/// A problem of a log of which a byte was changed.
fn tampered_problem() -> lodestar_log::Problem {
    let folder = tempfile::tempdir().unwrap();
    let from = recorded();
    let log = LogRoot::at(folder.path()).project(from.project());
    let to = log.session(from.session());
    std::fs::create_dir_all(to.dir()).unwrap();
    for name in [
        "ledger.ndjson",
        "ledger.checkpoint",
        "tour/checkpoint",
        "tour/events.ndjson",
    ] {
        let bytes = std::fs::read(data().join("log/demo").join(name)).unwrap();
        std::fs::write(folder.path().join("demo").join(name), bytes).unwrap();
    }
    let text = std::fs::read_to_string(to.events_path()).unwrap();
    std::fs::write(to.events_path(), text.replacen("\"allow\"", "\"deny!\"", 1)).unwrap();
    let (report, _) = checked(&to);
    report.all_problems().next().expect("tampered").clone()
}

#[test]
fn batches_are_bounded_and_lose_nothing() {
    let spans = exported(Sensitivity::Internal);
    let many: Vec<SpanData> = spans
        .iter()
        .cycle()
        .take(3 * MAX_SPANS + 7)
        .cloned()
        .collect();
    let mut batch = Batch::default();
    let mut sizes: Vec<usize> = Vec::new();
    for span in many {
        sizes.extend(batch.push(span).map(|complete| complete.len()));
    }
    sizes.push(batch.rest().len());
    assert_eq!(sizes.iter().sum::<usize>(), 3 * MAX_SPANS + 7);
    assert!(
        sizes.iter().all(|size| (1..=MAX_SPANS).contains(size)),
        "{sizes:?}"
    );

    let mut large = spans[0].clone();
    large
        .attributes
        .push(KeyValue::new("x", "y".repeat(MAX_BYTES / 2)));
    let mut batch = Batch::default();
    assert!(batch.push(large.clone()).is_none());
    assert_eq!(batch.push(large.clone()).expect("full").len(), 1);
    assert_eq!(batch.push(large).expect("full").len(), 1);
    assert_eq!(batch.rest().len(), 1);
}

#[test]
fn a_flood_of_one_sort_does_not_hide_another() {
    let mut log = events();
    let close = log.pop().expect("closed");
    let template = log
        .iter()
        .find(|it| it.kind == "belief.adopted@2")
        .expect("one")
        .clone();
    for at in 0..1000 {
        let mut alert = template.clone();
        alert.seq = close.seq + at;
        alert.kind = "sentinel.alerted@1".into();
        let said = lodestar_policy::Alert {
            action: lodestar_core::id::ActionId::from_parts(0, [0; 10]),
            sentinel: "canary".into(),
            severity: lodestar_core::ladder::Severity::Critical,
            mode: lodestar_policy::Mode::Observe,
            saw: "a\u{202e}b".into(),
        };
        alert.payload = Payload::Present(lodestar_core::canonical::to_vec(&said).unwrap());
        alert.parents = Vec::new();
        log.push(alert);
    }
    log.push(close);
    let spans = folded(admitted(), Sensitivity::Internal, &log);
    let root = spans.last().expect("a root");
    let alerts = root
        .events
        .iter()
        .filter(|it| it.name == "lodestar.sentinel.alerted");
    let alerts: Vec<_> = alerts.collect();
    assert_eq!(alerts.len(), 128);
    assert_eq!(root.events.dropped_count, 872);
    assert!(root.events.iter().any(|it| it.name == "lodestar.closed"));
    let said = &alerts[0].attributes;
    for (name, value) in [
        (names::SENTINEL, "canary"),
        (names::SEVERITY, "critical"),
        (names::SENTINEL_MODE, "observe"),
    ] {
        assert_eq!(attribute(said, name).unwrap().as_str(), value);
    }
    assert_eq!(
        attribute(said, names::REASON).unwrap().as_str(),
        "a\\u202eb"
    );
}
