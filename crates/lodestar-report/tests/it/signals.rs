//! What sentinels saw and what calibration they went by, told of sessions in which the real gate heard them.

use std::sync::Arc;

use lodestar_core::calibration::{Came, Sample, measure};
use lodestar_core::chain::Confidence;
use lodestar_core::ladder::{Severity, Verdict};
use lodestar_core::name::{ActorId, CalibrationClass, SessionId};
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::store::SqliteStore;
use lodestar_guard::{Operator, OperatorSession};
use lodestar_kernel::tool::Output;
use lodestar_policy::Mode;
use lodestar_replay::Refused;
use lodestar_replay::calibration::{CALIBRATION_PURPOSE, CALIBRATION_SESSIONS, Computed};

use lodestar_report::model::Report;
use lodestar_report::{html, markdown};
use serde_json::{Value, json};

use crate::again::{Raw, check};
use crate::governed::{CountingTool, GRADES, Project, log_key, three};
use crate::schema::assert_fits;
use crate::told::{project_of, report_of, trust};

/// `box.send` reaches outside and needs nobody's leave.
fn unasked(sentinels: &str) -> String {
    let graded = GRADES.replace(
        "required_trust_level = \"L4\"",
        "required_trust_level = \"L3\"",
    );
    format!("sentinels = [{sentinels}]\n{graded}")
}

fn told(project: &Project, session: &SessionId) -> (Report, Value) {
    let report = report_of(project, session);
    let json = serde_json::to_value(&report).unwrap();
    check(&json, &Raw::read(project, session));
    assert_fits(&json);
    (report, json)
}

fn forms(project: &Project, session: &SessionId) -> (String, String) {
    let told = project_of(project, session);
    let (mut page, mut text) = (Vec::new(), Vec::new());
    html::write(&told, &mut page).unwrap();
    markdown::write(&told, &mut text).unwrap();
    (
        String::from_utf8(page).unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

/// Reads, sends, writes: the last completes a sequence.
async fn in_sequence(sentinels: &str) -> (Project, SessionId, Option<Verdict>) {
    let project = Project::new();
    let session = project.open(&unasked(sentinels), &three()).await;
    let calls = [
        ("box.read", json!({"path": "a.md"})),
        ("box.send", json!({"to": "bob@corp.example", "text": "x"})),
        ("box.write", json!({"path": "b.md", "text": "x"})),
    ];
    let mut verdict = None;
    for (tool, arguments) in calls {
        verdict = session.call(tool, arguments).await.unwrap().verdict;
    }
    session.close("done").await.unwrap();
    (project, session.id().clone(), verdict)
}

#[tokio::test]
async fn what_a_sentinel_saw_is_told_with_its_action_and_how_grave_it_is() {
    let (project, session, verdict) = in_sequence("\"anomalous-tool-sequence\"").await;
    assert_eq!(verdict, Some(Verdict::Deny));
    let (report, json) = told(&project, &session);
    let [alert] = &report.alerts[..] else {
        panic!("{:?}", report.alerts)
    };
    let action = &report.actions[2];
    assert_eq!(
        (alert.action, alert.proposed),
        (action.id, Some(action.seq))
    );
    assert_eq!(alert.sentinel, "anomalous-tool-sequence");
    assert_eq!(
        (alert.severity, alert.mode),
        (Severity::Critical, Mode::Arbitrate)
    );
    assert!(
        alert.saw.contains("something reached outside"),
        "{}",
        alert.saw
    );
    assert_eq!(json["alerts"][0]["severity"], "critical");
    assert_eq!(json["alerts"][0]["mode"], "arbitrate");
    let (page, text) = forms(&project, &session);
    let proposed = action.seq;
    assert!(
        text.contains(&format!(
            "`anomalous-tool-sequence`, critical in the action of #{proposed}: `it writes,"
        )),
        "{text}"
    );
    assert!(
        page.contains(
            "<span class=\"tag open\">critical</span> <code>anomalous-tool-sequence</code>"
        )
    );
}

#[tokio::test]
async fn one_that_only_observes_is_told_as_such() {
    let sentinel = "{ name = \"anomalous-tool-sequence\", mode = \"observe\" }";
    let (project, session, verdict) = in_sequence(sentinel).await;
    assert_eq!(verdict, Some(Verdict::Allow));
    let (report, json) = told(&project, &session);
    assert_eq!(report.alerts[0].mode, Mode::Observe);
    assert_eq!(json["alerts"][0]["mode"], "observe");
    assert_eq!(report.actions[2].phase.as_str(), "completed");
    let (page, text) = forms(&project, &session);
    assert!(page.contains("only observes") && text.contains("critical, only observes in"));
}

#[tokio::test]
async fn what_a_sentinel_saw_leaves_with_the_trace() {
    use lodestar_log::verify::{VerifyOptions, verify_project};
    use lodestar_report::otel::{admit, project as spans};

    let (project, session, _) = in_sequence("\"anomalous-tool-sequence\"").await;
    let dir = project.log().session(&session);
    let options = VerifyOptions {
        session: Some(session.clone()),
        ..VerifyOptions::default()
    };
    let verified = verify_project(&project.log(), &trust(), &options, &|_| ()).unwrap();
    let admitted = admit(&dir, &verified, &project.replay(&session)).unwrap();
    let mut alerts = Vec::new();
    let ceiling = lodestar_core::sensitivity::Sensitivity::Secret;
    spans::<lodestar_report::otel::Unprojectable>(admitted, ceiling, |span| {
        for event in span.events.iter() {
            if event.name == "lodestar.sentinel.alerted" {
                let said = event.attributes.iter();
                let said = said.map(|one| format!("{}={}", one.key, one.value));
                alerts.push((span.name.to_string(), said.collect::<Vec<_>>().join(" ")));
            }
        }
        Ok(())
    })
    .unwrap();
    let [(span, said)] = &alerts[..] else {
        panic!("{alerts:?}")
    };
    assert!(span.contains("box.write"), "on the action: {span}");
    for expected in [
        "lodestar.sentinel=anomalous-tool-sequence",
        "lodestar.severity=critical",
        "lodestar.sentinel.mode=arbitrate",
        "lodestar.reason=it writes, 1 step after something reached outside",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

fn sample(class: &str, confidence: f64, came: Came) -> Sample {
    Sample {
        class: CalibrationClass::new(class).unwrap(),
        confidence: Confidence::new(confidence).unwrap(),
        came,
    }
}

/// What a person at a command line records.
fn record(project: &Project, samples: Vec<Sample>) -> SessionId {
    let dir = project.root.join(".lodestar");
    std::fs::create_dir_all(&dir).unwrap();
    let operator = Operator {
        log: project.log(),
        key: Arc::new(log_key()),
        trust: trust(),
        keyring: Keyring::new(Arc::new(log_key())),
        store: Box::new(SqliteStore::open(&dir.join("state.db")).unwrap()),
        actor: ActorId::new("tester").unwrap(),
        purpose: CALIBRATION_PURPOSE,
    };
    let mut session = OperatorSession::open_as(operator, CALIBRATION_SESSIONS).unwrap();
    let refused = Refused {
        session: "s-0".to_owned(),
        reason: "it was | edited <b>".to_owned(),
    };
    let computed = Computed {
        report: measure(samples),
        sessions: 3,
        refused: vec![refused],
    };
    session.calibrated(&computed).unwrap();
    session.calibrated(&computed).unwrap();
    let id = session.id().clone();
    session.close("done").unwrap();
    id
}

const HOSTILE: &str = "a|b`</code><script>alert(1)</script>\u{202e}";

#[test]
fn a_calibration_is_a_plot_and_a_table_on_the_page_and_a_table_in_markdown() {
    let project = Project::new();
    let mut samples = vec![sample("extract/content", 0.9, Came::False); 7];
    samples.extend(vec![sample("extract/content", 0.9, Came::True); 3]);
    samples.push(sample("measured", 1.0, Came::True));
    samples.push(sample(HOSTILE, 0.0, Came::False));
    let session = record(&project, samples);
    let (report, _) = told(&project, &session);
    assert_eq!(report.calibrations.len(), 2);
    let (page, text) = forms(&project, &session);
    assert_eq!(page.matches("<div class=\"plots\">").count(), 2);
    assert_eq!(page.matches("flagged: extract/content</text>").count(), 2);
    let ids = page
        .split(" id=\"")
        .skip(1)
        .map(|rest| rest.split('"').next());
    let mut ids: Vec<_> = ids.collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "no id is there twice");
    let row = "<code>extract/content</code></th><td>10</td><td>0.900</td><td>0.300</td><td>0.600</td><td>0.570</td><td>+0.600</td><td><span class=\"tag bad\">flagged</span></td>";
    assert!(page.contains(row), "{page}");
    assert!(!page.contains("<script") && !page.contains('\u{202e}'));
    assert!(
        text.contains(
            "| class | n | confidence | came true | ece | brier | gap | flagged |\n|---|--:|--:|--:|--:|--:|--:|---|\n"
        ),
        "{text}"
    );
    assert!(
        text.contains(
            "| `extract/content` | 10 | 0.900 | 0.300 | 0.600 | 0.570 | +0.600 | **flagged** |"
        ),
        "{text}"
    );
    assert!(text.contains("| `measured` | 1 | 1.000 | 1.000 | 0.000 | 0.000 | +0.000 | no |"));
    assert!(text.contains("| `` a\\|b`</code>"), "{text}");
    assert!(text.contains("plot of these classes stands in the HTML form"));
    assert!(
        text.contains("Session `s-0` did not count: it was \\| edited \\<b\\>"),
        "{text}"
    );
    assert!(!text.contains("\"classes\""), "no raw JSON");
}

#[test]
fn where_nothing_was_settled_the_page_says_so_instead_of_a_plot() {
    let project = Project::new();
    let session = record(&project, Vec::new());
    told(&project, &session);
    let (page, text) = forms(&project, &session);
    assert!(page.contains("Nothing was measured yet") && !page.contains("class=\"plots\""));
    assert!(text.contains("0 samples from 3 sessions; no class is flagged"));
}

fn page() -> [CountingTool; 3] {
    let [_, write, send] = three();
    let read = CountingTool::answering("box.read", |_| Output::text("mail anna@corp.example"));
    [read, write, send]
}

async fn flagging(project: &Project) -> SessionId {
    let session = project
        .open(&unasked("\"calibration-flag\""), &page())
        .await;
    session
        .call("box.read", json!({"path": "a.md"}))
        .await
        .unwrap();
    let to = json!({"to": "anna@corp.example", "text": "hello"});
    session.call("box.send", to).await.unwrap();
    session.close("done").await.unwrap();
    session.id().clone()
}

#[tokio::test]
async fn a_session_names_the_flags_that_it_was_opened_under_and_where_they_were_measured() {
    let project = Project::new();
    let before = flagging(&project).await;
    let (report, json) = told(&project, &before);
    assert_eq!(
        json["session"]["calibration"],
        json!({"seq": 0, "flagged": []})
    );
    assert_eq!(report.alerts, []);
    let (_, text) = forms(&project, &before);
    assert!(
        text.contains("Opened (#0) before anybody had measured"),
        "{text}"
    );

    let events = project.events(&before);
    let class = events
        .iter()
        .find_map(|(_, payload)| payload.pointer("/dependencies/0/class")?.as_str());
    let class = class.expect("the proposal names the class of what it rests on");
    let samples = vec![sample(class, 0.95, Came::False); 5];
    let cal = record(&project, samples);
    let session = flagging(&project).await;
    let (report, json) = told(&project, &session);
    let in_force = &json["session"]["calibration"];
    assert_eq!(in_force["flagged"], json!([class]));
    assert_eq!(in_force["computed"], json!({"session": cal, "seq": 2}));
    assert_eq!(report.alerts.len(), 1);
    assert_eq!(report.alerts[0].sentinel, "calibration-flag");
    let (page, text) = forms(&project, &session);
    let pointer = format!("calibration of session `{cal}`, event 2, which flags `{class}`.");
    assert!(text.contains(&pointer), "{text}");
    assert!(page.contains(&format!(
        "calibration of session <code>{cal}</code>, event 2, which flags <code>{class}</code>."
    )));
    assert!(
        !page.contains("class=\"plots\""),
        "the plot is in the other report"
    );

    // Of sessions in which nobody looks at calibration there is nothing to say.
    let (project, session, _) = in_sequence("\"anomalous-tool-sequence\"").await;
    let (_, json) = told(&project, &session);
    assert_eq!(json["session"].get("calibration"), None);
}

#[tokio::test]
async fn the_check_notices_another_number_flag_or_sentinel() {
    let (project, session, _) = in_sequence("\"anomalous-tool-sequence\"").await;
    let cal = record(&project, vec![sample("a", 0.9, Came::False); 5]);
    let after = flagging(&project).await;
    let lies = [
        (&session, "/alerts/0/sentinel", json!("another")),
        (&session, "/alerts/0/severity", json!("info")),
        (&session, "/alerts/0/mode", json!("observe")),
        (&session, "/alerts/0/proposed", json!(1)),
        (&session, "/alerts/0/saw", json!("nothing")),
        (
            &cal,
            "/calibrations/0/computed/classes/0/flagged",
            json!(false),
        ),
        (&cal, "/calibrations/0/computed/classes/0/ece", json!(0.0)),
        (
            &cal,
            "/calibrations/0/computed/classes/0/bins/9/n",
            json!(4),
        ),
        (&cal, "/calibrations/0/computed/sessions", json!(4)),
        (
            &cal,
            "/calibrations/0/at",
            json!("2026-01-01T00:00:00.000000Z"),
        ),
        (&after, "/session/calibration/flagged", json!([])),
        (&after, "/session/calibration/computed/seq", json!(1)),
    ];
    for (session, place, lie) in lies {
        let (_, mut json) = told(&project, session);
        let raw = Raw::read(&project, session);
        *json.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = lie;
        let noticed = std::panic::catch_unwind(|| check(&json, &raw));
        assert!(noticed.is_err(), "{place}");
    }
}
