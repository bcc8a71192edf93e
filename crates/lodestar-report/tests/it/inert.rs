//! Nothing that others wrote is markup, moves anything, or leads anywhere.

use lodestar_core::event::EventType;
use lodestar_report::{Projection, html, inert, markdown};
use serde_json::json;

use crate::governed::Project;
use crate::told::{open, project_of};

const HOSTILE: &str = "</code></summary><script>alert(1)</script><img src=x onerror=alert(1)>\" onmouseover='x' `</style>` [a](javascript:x) \u{202e}gnp\u{1b}[31m\u{0}\u{e0041} http://evil.example &lt;";

/// Tags and attributes that the pages are made of.
fn skeleton(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in page.split('<').skip(1) {
        let tag: String = piece.chars().take_while(|c| *c != '>').collect();
        let name: String = tag.chars().take_while(|c| !c.is_whitespace()).collect();
        found.push(name);
    }
    found.sort();
    found.dedup();
    found
}

async fn page_of(text: &str) -> (String, String) {
    let project = Project::new();
    let session = open(&project, |_| Vec::new()).await;
    session
        .call("box.read", json!({"path": text}))
        .await
        .unwrap();
    session
        .call("box.send", json!({"to": text, "text": text}))
        .await
        .unwrap();
    let drifted = json!({"server": text, "tool": text, "why": text, "declared": {text: text}});
    session
        .note_proxied(EventType::TOOL_DRIFTED, &drifted)
        .unwrap();
    let confinement = json!({
        "state": "partial", "profiles": [text], "landlock": 6, "namespaces": true, "filtered": true,
        "network": text, "tried": [{"attempt": text, "refused": true}, {"attempt": text, "refused": false}],
        "gaps": [text], "notes": [text],
    });
    let started = json!({"server": text, "containment": "partial", "confinement": confinement});
    session
        .note_proxied(EventType::SERVER_STARTED, &started)
        .unwrap();
    let forged = json!({"server": text, "stream": "forged", "text": text});
    session
        .note_proxied(EventType::SERVER_OUTPUT, &forged)
        .unwrap();
    session.halt(text).unwrap();
    session.close(text).await.unwrap();
    let told = project_of(&project, session.id());
    assert!(matches!(told, Projection::Report(_)), "{told:?}");
    let (mut page, mut form) = (Vec::new(), Vec::new());
    html::write(&told, &mut page).unwrap();
    markdown::write(&told, &mut form).unwrap();
    (
        String::from_utf8(page).unwrap(),
        String::from_utf8(form).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_text_changes_no_tag_of_the_page_and_nothing_of_it_acts() {
    let (plain, _) = page_of("plain").await;
    let (page, form) = page_of(HOSTILE).await;
    assert_eq!(skeleton(&page), skeleton(&plain));
    for wrong in [
        "<script",
        "<img",
        "onerror=alert(1)>",
        "javascript:x\"",
        "href=\"http",
    ] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)"));
    for text in [&page, &form] {
        let hidden = text.split('\n').find_map(|line| inert::hidden(line).next());
        assert_eq!(hidden, None);
    }
    // Outside of code spans there is no markup, and inside nothing ends them.
    for line in form.lines() {
        let outside = outside_code(line);
        for wrong in ["<script", "[a](", "http://", "`"] {
            assert!(!without_escapes(&outside).contains(wrong), "{outside}");
        }
    }
}

/// What is left when each escaped character is gone.
fn without_escapes(text: &str) -> String {
    let mut characters = text.chars();
    let mut left = String::new();
    while let Some(c) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            c => left.push(c),
        }
    }
    left
}

/// A line without its code spans, as CommonMark reads them: a run of backticks opens one, and the next run
/// of the same length closes it.
fn outside_code(line: &str) -> String {
    let (mut outside, mut rest) = (String::new(), line);
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        outside.push_str(before);
        let fence = from.len() - from.trim_start_matches('`').len();
        if before.ends_with('\\') {
            outside.push_str(&from[..1]);
            rest = &from[1..];
            continue;
        }
        let mut look = &from[fence..];
        loop {
            let Some(next) = look.find('`') else {
                panic!("a span that never ends: {line}");
            };
            let run = look[next..].len() - look[next..].trim_start_matches('`').len();
            look = &look[next + run..];
            if run == fence {
                break;
            }
        }
        rest = look;
    }
    outside + rest
}
