//! What is approved: exactly this act and no other, however alike.

use lodestar_core::canonical;
use lodestar_core::contract::{BlastRadius, Reversibility, Sandbox};
use lodestar_core::digest::sha256;
use lodestar_core::id::RequestId;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_policy::Card;
use serde_json::{Value, json};

use super::*;
use crate::confirmations::{card, card_of};

/// The same request for another act, as Alice would have been asked for it.
fn asked_for(mut card: Card) -> ApprovalRequest {
    card.action.fingerprint = card.fingerprint().unwrap();
    let mut request = asked();
    request.card = card;
    request.card_digest = request.digest().unwrap();
    request
}

fn answered(request: &ApprovalRequest) -> Vec<u8> {
    said(request, "alice", 1, [1; 16]).to_json()
}

#[test]
fn the_same_arguments_spelt_otherwise_are_the_same_act() {
    for spelt in [
        r#"{"path":"a/b","content":"text","n":1}"#,
        r#"{"n":1,"content":"text","path":"a/b"}"#,
        r#"{ "content" : "text" , "n" : 1.0 , "path" : "a/b" }"#,
        r#"{"n":1e0,"content":"text","path":"a/b"}"#,
        r#"{"n":10e-1,"content":"te\u0078t","path":"a\/b"}"#,
        r#"{"n":0.1E1,"content":"text","path":"a/b"}"#,
    ] {
        let arguments = canonical::parse(spelt.as_bytes()).unwrap();
        let request = asked_for(card_of(Rung::L4, arguments));
        let mut requests = half_open();
        let heard = hear(&mut requests, &answered(&request), now());
        assert_eq!(heard, Ok(Counted::Grant { missing: 0 }), "{spelt}");
    }
}

/// Arguments that somebody could take for the ones that were approved.
fn other_arguments() -> Vec<Value> {
    let honest = json!({"path": "a/b", "content": "text", "n": 1});
    let mut all = vec![
        json!({}),
        json!({"path": "a/b", "content": "text"}),
        json!({"path": "a/b", "n": 1}),
        json!({"content": "text", "n": 1}),
        json!({"Path": "a/b", "content": "text", "n": 1}),
        json!({"path": "a/b", "content": "text", "n": 1, "N": 1}),
    ];
    let mut put = |name: &str, value: Value| {
        let mut other = honest.clone();
        other[name] = value;
        all.push(other);
    };
    for value in [
        json!(0),
        json!(-1),
        json!(2),
        json!(1.000_000_1),
        json!(10),
        json!("1"),
        json!(true),
        json!(null),
        json!([1]),
        json!({"n": 1}),
        json!(9_007_199_254_740_991_u64),
    ] {
        put("n", value.clone());
        put("force", value);
    }
    for text in [
        "",
        " text",
        "text ",
        "Text",
        "TEXT",
        "texts",
        "tex",
        "te\u{200b}xt",
        "te\u{445}t",
        "t\u{0435}xt",
        "text\n",
        "text\0",
        "\u{202e}text",
        "tèxt",
        "te\u{300}xt",
        "\"text\"",
    ] {
        put("content", json!(text));
        put("content", json!([text]));
        put("note", json!(text));
    }
    for path in [
        "a/c",
        "a",
        "b",
        "a/b/c",
        "A/b",
        "a/b ",
        "a\\b",
        "a/B",
        "\u{430}/b",
    ] {
        put("path", json!(path));
    }
    for word in 0..500 {
        put("content", json!(format!("text{word}")));
        put(&format!("x{word}"), json!(word));
    }
    all
}

#[test]
fn matrix_other_arguments_are_another_act() {
    let half_open = half_open();
    let mut counts = Counts::default();
    for arguments in other_arguments() {
        let request = asked_for(card_of(Rung::L4, arguments.clone()));
        let refusal = refused(&half_open, &answered(&request), now());
        assert_eq!(refusal, Refusal::OtherFingerprint, "{arguments}");
        counts.note("other arguments");
        // With only the act's fingerprint left as it was, they saw another card.
        let mut mixed = request.clone();
        mixed.card.action.fingerprint = asked().card.action.fingerprint;
        let refusal = refused(&half_open, &answered(&mixed), now());
        assert_eq!(refusal, Refusal::OtherCard, "{arguments}");
        counts.note("other arguments on the card");
    }
    counts.print("resolutions, arguments");
}

#[test]
fn matrix_another_tool_definition_contract_project_policy_session_or_request() {
    type Other = fn(&mut ApprovalRequest);
    let half_open = half_open();
    let mut counts = Counts::default();
    let others: [(&str, &str, Other); 19] = [
        ("other_fingerprint", "tool", |it| {
            it.card.action.tool = "fs.delete".parse().unwrap();
        }),
        ("other_fingerprint", "server", |it| {
            it.card.action.server = "mail".parse().unwrap();
        }),
        ("other_fingerprint", "definition", |it| {
            it.card.definition = sha256(b"another definition");
        }),
        ("other_fingerprint", "path", |it| {
            it.card.paths = vec![crate::confirmations::path("a/c")];
        }),
        ("other_fingerprint", "no path", |it| it.card.paths.clear()),
        ("other_fingerprint", "project", |it| {
            let scope = "organization:acme/project:other".parse().unwrap();
            it.card.action.contract.scope = scope;
        }),
        ("other_fingerprint", "rung", |it| {
            it.card.action.contract.required_level = Rung::L3;
        }),
        ("other_fingerprint", "irreversible", |it| {
            it.card.action.contract.reversibility = Reversibility::Irreversible;
        }),
        ("other_fingerprint", "blast radius", |it| {
            it.card.action.contract.blast_radius = BlastRadius::External;
        }),
        ("other_fingerprint", "sensitivity", |it| {
            it.card.action.contract.data_sensitivity = DataSensitivity::Public;
        }),
        ("other_fingerprint", "sandbox", |it| {
            it.card.action.contract.sandbox = Sandbox::ControlledNetwork;
        }),
        ("other_card", "why", |it| {
            it.card.why = "harmless".to_owned()
        }),
        ("other_card", "what goes out", |it| {
            it.card.going_out = vec!["nothing".to_owned()];
        }),
        ("other_card", "what was measured", |it| {
            it.card.measured = vec![json!({"check": "git_head"})];
        }),
        ("other_card", "decision", |it| {
            it.card.action.decision = lodestar_core::id::DecisionId::from_parts(9, [9; 10]);
        }),
        ("other_policy", "policy", |it| {
            it.policy = sha256(b"another policy")
        }),
        ("other_session", "session", |it| {
            it.session = "s-2".parse().unwrap()
        }),
        ("other_request", "request", |it| {
            it.id = RequestId::from_parts(9, [9; 10]);
        }),
        ("other_session", "project with sessions of its own", |it| {
            it.session = "s-of-another-project".parse().unwrap();
            it.id = RequestId::from_parts(9, [9; 10]);
        }),
    ];
    for (wanted, what, change) in others {
        let mut request = asked();
        change(&mut request);
        let (id, session, policy) = (request.id, request.session.clone(), request.policy);
        let mut request = asked_for(request.card);
        (request.id, request.session, request.policy) = (id, session, policy);
        let refusal = refused(&half_open, &answered(&request), now());
        assert_eq!(name_of(&refusal), wanted, "{what}");
        counts.note(format!("another {what}"));
    }
    assert_eq!(asked_for(card()), asked());
    counts.print("resolutions, acts");
}
