//! Uses that wait for people: a signed grant lets exactly the same use run, once.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use lodestar_core::key::SecretKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::{ApprovalDecision, Nonce};
use lodestar_guard::channel::drop::Pile;
use lodestar_log::Clock;
use lodestar_policy::Signed;

use super::*;

fn anna() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

fn config(timeout: u64) -> String {
    format!(
        "approval_timeout_ms = {timeout}\n{CONFIG}\n[[approvals.authorized_keys]]\nactor_id = \"anna\"\npublic_key = \"{}\"\n",
        anna().public()
    )
}

static NONCE: AtomicU8 = AtomicU8::new(100);

/// Answers the one request that is there.
fn answer(root: &Path, decision: ApprovalDecision) {
    let nonce = Nonce::from_bytes([NONCE.fetch_add(1, Ordering::SeqCst); 16]);
    let mut pile = Pile::below(root).unwrap();
    pile.refresh().unwrap();
    let shown = pile.requests().next().cloned().expect("a request");
    let key = anna();
    let signed = Signed {
        key: &key,
        at: Clock::system().now(),
        nonce,
    };
    let request = &shown.announcement().request;
    let name = ActorId::new("anna").unwrap();
    let said = request.answer(&name, decision, "looked", signed).unwrap();
    pile.answer(&shown, &said, nonce).unwrap();
}

/// Until a request is announced.
async fn announced(root: &Path) {
    for _ in 0..500 {
        if let Ok(mut pile) = Pile::below(root) {
            let _ = pile.refresh();
            if pile.requests().next().is_some() {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing was announced");
}

fn fetch(id: &str) -> Use {
    let input = json!({"url": "https://example.org/a", "prompt": "what is it?"});
    used("WebFetch", Kind::Fetch, Some(id), input)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_use_runs_once_when_it_is_repeated() {
    let mut hooked = Hooked::with(&config(0)).await;
    let first = hooked.before("c", &fetch("1")).await;
    let words = refused(&first);
    assert!(words.contains("approval_required"), "{words}");
    assert!(words.contains("lodestar approve list"), "{words}");
    // Asking again asks nobody anew.
    refused(&hooked.before("c", &fetch("2")).await);
    answer(&hooked.project.root, ApprovalDecision::Grant);
    hooked.runs("c", &fetch("3"), json!("a page")).await;
    // The grant is spent.
    refused(&hooked.before("c", &fetch("4")).await);
    hooked.over("c").await;
    hooked.end().await;
    let events = hooked.events("c");
    assert_eq!(count(&events, "action.cleared"), 1);
    assert_eq!(count(&events, "approval.granted"), 1);
    assert_eq!(count(&events, "approval.requested"), 2);
    hooked.project.assert_sound(&hooked.sessions("c")[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_waits_for_people_as_long_as_configured() {
    let mut hooked = Hooked::with(&config(8000)).await;
    let answering = async {
        announced(&hooked.project.root).await;
        answer(&hooked.project.root, ApprovalDecision::Grant);
    };
    let used = fetch("1");
    let (answered, ()) = tokio::join!(hooked.before("c", &used), answering);
    assert_eq!(answered, Answer::Proceed);
    assert_eq!(hooked.after("c", &used, json!("x")).await, Answer::Proceed);
    hooked.over("c").await;
    hooked.end().await;
    assert_eq!(count(&hooked.events("c"), "action.completed"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_use_does_not_run() {
    let mut hooked = Hooked::with(&config(0)).await;
    refused(&hooked.before("c", &fetch("1")).await);
    answer(&hooked.project.root, ApprovalDecision::Deny);
    let answer = hooked.before("c", &fetch("2")).await;
    assert!(refused(&answer).contains("approval_denied"), "{answer:?}");
    hooked.over("c").await;
    hooked.end().await;
    assert_eq!(count(&hooked.events("c"), "action.cleared"), 0);
}

/// A hook that the client killed while it waited takes no grant with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_goes_away_spends_nothing() {
    let mut hooked = Hooked::with(&config(20_000)).await;
    hooked.say("c", Event::Started).await;
    let incoming = hooked.incoming("c", Event::Before { r#use: fetch("1") });
    let stream = hostile::say_raw(&hooked, &hostile::asked(&incoming)).await;
    announced(&hooked.project.root).await;
    drop(stream);
    tokio::time::sleep(Duration::from_millis(200)).await;
    answer(&hooked.project.root, ApprovalDecision::Grant);
    hooked.runs("c", &fetch("2"), json!("a page")).await;
    hooked.over("c").await;
    hooked.end().await;
    let events = hooked.events("c");
    assert_eq!(count(&events, "action.cleared"), 1);
    assert_eq!(count(&events, "action.completed"), 1);
    assert_eq!(count(&events, "action.rejected"), 1);
}

/// The request outlives the daemon, and no other conversation takes it away.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_comes_back_to_what_it_asked_for() {
    let mut hooked = Hooked::with(&config(0)).await;
    let text = "tell anna@corp.example".to_owned();
    hooked.say("c", Event::Prompt { text }).await;
    refused(&hooked.before("c", &fetch("1")).await);
    hooked.end().await;
    hooked.start();
    hooked.runs("other", &read("1", "a.md"), json!("x")).await;
    answer(&hooked.project.root, ApprovalDecision::Grant);
    hooked.runs("c", &fetch("2"), json!("a page")).await;
    let mail = json!({"note": "anna@corp.example"});
    refused(
        &hooked
            .before("c", &used("Mail", Kind::Other, Some("3"), mail))
            .await,
    );
    hooked.end().await;
    let events = hooked.events("c");
    assert_eq!(count(&events, "action.cleared"), 1);
    assert_eq!(count(&events, "approval.expired"), 0);
    // What the user had said before still counts.
    let mailed = of(&events, "action.proposed").last().copied().unwrap();
    let mut values = mailed["provenance"].as_array().unwrap().iter();
    let note = values.find(|one| one["pointer"] == "/rest/note").unwrap();
    assert_eq!(note["label"], "given");
}
