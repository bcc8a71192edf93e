//! How servers and programs were contained: told as the log records it, and no further than that bears out.

use lodestar_core::event::EventType;
use lodestar_core::name::SessionId;
use lodestar_kernel::contain::{Attempt, State};
use lodestar_report::model::{Contained, Report};
use lodestar_report::{html, markdown};
use serde_json::{Value, json};

use crate::again::{Raw, check};
use crate::governed::Project;
use crate::schema::assert_fits;
use crate::told::{open, project_of, report_of};

/// A record as the proxy writes it: everything tried, and refused but for what is named.
fn record(open: &[&str], gaps: &[&str]) -> Value {
    let tried = Attempt::ALL.iter().map(|attempt| {
        let name = serde_json::to_value(attempt).unwrap();
        let refused = !open.contains(&name.as_str().unwrap());
        json!({"attempt": name, "refused": refused, "errno": 13})
    });
    json!({
        "state": if open.is_empty() && gaps.is_empty() { "proved" } else { "partial" },
        "profiles": ["read", "write-local"], "landlock": 6, "namespaces": true, "filtered": true,
        "network": "none", "tried": tried.collect::<Vec<_>>(), "gaps": gaps,
        "notes": ["ports are granted for every host"],
    })
}

async fn with(starts: &[Value]) -> (Project, SessionId) {
    let project = Project::new();
    let session = open(&project, |_| Vec::new()).await;
    for start in starts {
        let kind = EventType::SERVER_STARTED;
        session.note_proxied(kind, start).unwrap();
    }
    session.close("done").await.unwrap();
    (project, session.id().clone())
}

async fn told(starts: &[Value]) -> (Report, String, String) {
    let (project, session) = with(starts).await;
    let report = report_of(&project, &session);
    let json = serde_json::to_value(&report).unwrap();
    check(&json, &Raw::read(&project, &session));
    assert_fits(&json);
    let told = project_of(&project, &session);
    let (mut page, mut text) = (Vec::new(), Vec::new());
    html::write(&told, &mut page).unwrap();
    markdown::write(&told, &mut text).unwrap();
    let (page, text) = (String::from_utf8(page), String::from_utf8(text));
    (report, page.unwrap(), text.unwrap())
}

fn contained(report: &Report) -> Vec<&Contained> {
    let servers = report.servers.iter();
    servers.filter_map(|one| one.containment.as_ref()).collect()
}

fn states(report: &Report) -> Vec<State> {
    contained(report).iter().map(|one| one.state).collect()
}

fn limit<'a>(report: &'a Report, part: &str) -> Vec<&'a [u64]> {
    let limits = report.limits.iter();
    let of = limits.filter(|one| one.limit.contains(part));
    of.map(|one| one.events.as_slice()).collect()
}

#[tokio::test]
async fn what_was_tried_and_refused_around_a_server_is_told_in_every_form() {
    let start = json!({
        "server": "files", "transport": "stdio", "containment": "proved", "confinement": record(&[], &[]),
    });
    let (report, page, text) = told(&[start]).await;
    let [one] = contained(&report)[..] else {
        panic!("{:?}", report.servers)
    };
    assert_eq!(one.state, State::Proved);
    assert_eq!(one.refused.len(), Attempt::ALL.len());
    assert_eq!(one.layers, ["Landlock 6", "namespaces", "seccomp"]);
    assert_eq!(report.servers[0].note, "started, contained, proved");
    for words in [
        "started, contained, proved",
        "open the keys, open",
        "Landlock 6, namespaces, seccomp",
        "ports are granted for every host",
    ] {
        assert!(text.contains(words), "{words}: {text}");
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(limit(&report, "contained"), [[0_u64; 0]; 0]);
}

#[tokio::test]
async fn a_log_from_before_there_was_any_containment_reads_as_not_contained() {
    let old = json!({"server": "files", "containment": "none"});
    let elsewhere = json!({
        "server": "far", "transport": "http", "containment": "none", "confinement": null,
    });
    let (report, page, text) = told(&[old, elsewhere]).await;
    assert_eq!(states(&report), [State::Absent, State::Absent]);
    let seqs: Vec<u64> = report.servers.iter().map(|one| one.seq).collect();
    assert_eq!(limit(&report, "Servers ran not contained"), [&seqs[..]]);
    for form in [&page, &text] {
        assert!(form.contains("started, not contained"), "{form}");
        assert!(form.contains("reached over the network"), "{form}");
    }
}

#[tokio::test]
async fn a_word_counts_no_further_than_what_stands_beneath_it() {
    let start = |word: &str, record: Value| json!({"server": "x", "containment": word, "confinement": record});
    let mut overstated = record(&["connect_tcp"], &[]);
    overstated["state"] = json!("proved");
    let mut gap = record(&[], &["the kernel gives no user namespaces"]);
    gap["state"] = json!("proved");
    let mut untried = record(&[], &[]);
    untried["tried"] = json!([]);
    let mut unfiltered = record(&[], &[]);
    unfiltered["filtered"] = json!(false);
    let mut later = record(&[], &[]);
    later["tried"][0]["attempt"] = json!("fly_away");
    let starts = [
        start("proved", overstated),
        start("proved", gap),
        start("proved", untried),
        start("proved", unfiltered),
        start("partial", record(&[], &[])),
        start("none", record(&[], &[])),
        start("proved", json!({"state": 7})),
        start("wonderful", record(&[], &[])),
        start("proved", later),
    ];
    let (report, _, text) = told(&starts).await;
    use State::{Absent, Partial, Proved};
    assert_eq!(
        states(&report),
        [
            Partial, Partial, Partial, Partial, Partial, Absent, Absent, Absent, Proved
        ]
    );
    assert_eq!(contained(&report)[0].open, ["connect by TCP"]);
    assert!(
        text.contains("tried inside and not refused: connect by TCP"),
        "{text}"
    );
    assert!(
        text.contains("gap: the kernel gives no user namespaces"),
        "{text}"
    );
    // What a later version tried is shown by its name.
    assert!(text.contains("fly\\_away"), "{text}");
    assert_eq!(limit(&report, "Servers were contained in part")[0].len(), 5);
    assert_eq!(limit(&report, "Servers ran not contained")[0].len(), 3);
}

#[tokio::test]
async fn a_record_without_end_is_bounded_and_counted() {
    let many: Vec<String> = (0..1000).map(|at| format!("gap {at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let start = json!({"server": "x", "containment": "partial", "confinement": record(&[], &many)});
    let (report, _, _) = told(&[start]).await;
    let gaps = &contained(&report)[0].gaps;
    assert_eq!(gaps.len(), 33);
    assert_eq!(gaps[32], "… (+968 entries)");
}
