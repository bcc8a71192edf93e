//! Requests in a world's drop directory, announced as a session does it.

use std::collections::BTreeSet;
use std::fs;

use lodestar_core::chain::Action;
use lodestar_core::contract::Contract;
use lodestar_core::digest::sha256;
use lodestar_core::id::{ActionId, DecisionId, ObservationId, RequestId};
use lodestar_core::name::{ProjectId, ServerIdentity, SessionId, ToolName};
use lodestar_core::provenance::{
    ArgumentProvenance, GivenSource, Label, Likeness, Place, Resemblance, Resembled, ValueKind,
};
use lodestar_core::scope::Scope;
use lodestar_core::time::Timestamp;
use lodestar_guard::channel::drop::DropDirectory;
use lodestar_guard::channel::{Announcement, Channel as _};
use lodestar_policy::{ApprovalRequest, Card, Requirement};
use serde_json::{Value, json};

use crate::world::World;

/// 2026-01-02T03:04:05Z
const ASKED: i64 = 1_767_323_045_000_000;
/// 2126: a test must not see a request expire.
const EXPIRES: i64 = 4_922_996_645_000_000;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(micros).expect("in range")
}

/// The n-th request, to send something.
pub(crate) fn request(n: u8) -> Announcement {
    let arguments = json!({
        "to": "anna@corp.example",
        "remote": "https://git.corp.example/web.git",
        "body": "as agreed",
        "count": 3,
    });
    let label = |pointer: &str, kind, label| ArgumentProvenance {
        pointer: pointer.to_owned(),
        place: Place::Value,
        kind,
        label,
        resembles: None,
        inside: Vec::new(),
        inside_omitted: 0,
    };
    let provenance = vec![
        label(
            "/to",
            ValueKind::Email,
            Label::Given {
                source: GivenSource::Task,
            },
        ),
        label(
            "/remote",
            ValueKind::Url,
            Label::Measured {
                what: "git_remote_url".to_owned(),
            },
        ),
        label(
            "/body",
            ValueKind::Text,
            Label::Read {
                observations: vec![ObservationId::from_parts(1, [9; 10])],
                how: Likeness::Copy,
            },
        ),
        label("/count", ValueKind::Number, Label::Unknown),
    ];
    let Value::Object(arguments) = arguments else {
        unreachable!("it is an object")
    };
    let millis = ASKED as u64 / 1000 + u64::from(n) * 86_400_000 * 20;
    let card = Card {
        action: Action {
            id: ActionId::from_parts(millis, [n; 10]),
            decision: DecisionId::from_parts(millis, [n; 10]),
            server: ServerIdentity::new("mail").expect("a name"),
            tool: ToolName::new("mail.send").expect("a name"),
            arguments,
            contract: Contract::ungraded(Scope::global()),
            fingerprint: sha256(b"later").to_string().parse().expect("a digest"),
            proposed_at: at(ASKED),
        },
        definition: sha256(b"definition"),
        paths: Vec::new(),
        provenance,
        measured: vec![json!({
            "check": "git_head",
            "expected_at_approval": {"found": "text", "is": "0123abcd"},
        })],
        going_out: vec!["1 commit: fix the greeting".to_owned()],
        why: "held: the ladder asks a person at L4".to_owned(),
    };
    settled(Announcement {
        project: ProjectId::new("web").expect("a name"),
        request: ApprovalRequest {
            id: RequestId::from_parts(millis, [n; 10]),
            project: ProjectId::new("web").expect("a name"),
            session: SessionId::new("s-1").expect("a name"),
            card_digest: sha256(b"later"),
            card,
            requirement: Requirement {
                roles: BTreeSet::from(["release-manager".to_owned()]),
                quorum: 2,
                expires_seconds: 900,
            },
            policy: sha256(b"policy"),
            created_at: at(ASKED),
            expires_at: at(EXPIRES),
        },
        granted_by: Vec::new(),
        missing: 2,
    })
}

/// Fingerprint and digest follow from what the card says.
pub(crate) fn settled(mut announcement: Announcement) -> Announcement {
    let request = &mut announcement.request;
    request.card.action.fingerprint = request.card.fingerprint().expect("canonical");
    request.card_digest = request.digest().expect("canonical");
    announcement
}

/// Hostile text in every place that an agent, a tool or a repository fills.
pub(crate) fn hostile(n: u8, hostile: &str) -> Announcement {
    let mut announcement = request(n);
    let card = &mut announcement.request.card;
    if let Ok(tool) = ToolName::new(hostile) {
        card.action.tool = tool;
    }
    if let Ok(server) = ServerIdentity::new(hostile) {
        card.action.server = server;
    }
    card.action.arguments["body"] = json!(hostile);
    let nested = json!({hostile: [hostile, {"x": hostile}]});
    card.action.arguments.insert("nested".to_owned(), nested);
    card.action
        .arguments
        .insert(hostile.to_owned(), json!(hostile));
    card.provenance[1].label = Label::Measured {
        what: hostile.to_owned(),
    };
    card.provenance[0].label = Label::Given {
        source: GivenSource::KnownValue {
            list: hostile.to_owned(),
        },
    };
    card.provenance[3].resembles = Some(Resemblance {
        to: Resembled::TrustedValue,
        text: hostile.to_owned(),
    });
    card.measured.push(json!({
        "check": hostile, "of": hostile,
        "expected_at_approval": {"found": "text", "is": hostile},
    }));
    card.going_out = vec![hostile.to_owned(); 2];
    card.why = hostile.to_owned();
    announcement
        .request
        .requirement
        .roles
        .insert(hostile.to_owned());
    settled(announcement)
}

pub(crate) fn drop_directory(world: &World) -> DropDirectory {
    fs::create_dir_all(world.root().join(".lodestar")).expect("created");
    DropDirectory::below(world.root())
}

pub(crate) fn announce(drop: &DropDirectory, announcement: &Announcement) {
    block_on(drop.announce(announcement)).expect("announced");
}

pub(crate) fn block_on<T>(doing: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(doing)
}

pub(crate) fn last_four(announcement: &Announcement) -> String {
    let text = announcement.request.card.action.fingerprint.to_string();
    text[text.len() - 4..].to_owned()
}

/// The answers that lie there.
pub(crate) fn answers(world: &World) -> Vec<Vec<u8>> {
    let folder = world.root().join(".lodestar/approvals/s-1");
    let entries = fs::read_dir(folder).expect("there").flatten();
    let answers = entries.filter(|e| e.file_name().to_string_lossy().ends_with(".answer.json"));
    answers
        .map(|e| fs::read(e.path()).expect("readable"))
        .collect()
}
