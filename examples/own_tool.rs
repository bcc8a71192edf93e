//! A tool of one's own, held for a person, who signs for exactly this act: what the guide on
//! embedding shows piece by piece. `cargo run -p lodestar-examples --bin own-tool`.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use lodestar_core::chain::{ContentBlock, Predicate};
use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, ProjectId, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_core::statement::{ApprovalDecision, Assertion, Envelope, Issued, Nonce};
use lodestar_guard::{
    CallOptions, Config, Holds, Keys, Outcome, Resolver, Resolving, Session, Setup, wrap,
};
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool, ToolError};
use lodestar_log::{Clock, LogRoot};
use lodestar_policy::{ApprovalRequest, Signed};
use lodestar_replay::derive;
use serde_json::json;

type Failure = Box<dyn Error>;

/// Books a room with somebody else's service; here, on paper.
struct BookRoom {
    definition: Definition,
}

impl BookRoom {
    fn new() -> Result<Self, Failure> {
        let definition = Definition {
            name: ToolName::new("room.book")?,
            server: ServerIdentity::new("rooms.example")?,
            description: "Books a meeting room for an hour.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"room": {"type": "string"}, "note": {"type": "string"}},
                "required": ["room"],
                "additionalProperties": false,
            }),
            roles: BTreeMap::from([
                ("room".to_owned(), ArgumentRole::Destination),
                ("note".to_owned(), ArgumentRole::Payload),
            ]),
            declared: None,
            minimum: Contract {
                required_level: Rung::L4,
                blast_radius: BlastRadius::External,
                reversibility: Reversibility::Compensable,
                scope: Scope::global(),
                data_sensitivity: DataSensitivity::Private,
                preconditions: Preconditions::default(),
                sandbox: Sandbox::ControlledNetwork,
                permissions: [Permission::Network].into(),
            },
        };
        Ok(Self { definition })
    }
}

impl Tool for BookRoom {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            let room = call.text("room")?;
            if room.contains("cellar") {
                return Err(ToolError::refused(format!("`{room}` is not for meetings")));
            }
            Ok(Output::text(format!("booked {room}")))
        })
    }
}

/// Stands for a person at a terminal: a real one is shown the card first, and has the key
/// elsewhere.
struct Anna {
    key: SecretKey,
}

impl Resolver for Anna {
    fn resolve<'a>(&'a self, request: &'a ApprovalRequest) -> Resolving<'a> {
        Box::pin(async move {
            let mut nonce = [0; 16];
            let anna = ActorId::new("anna");
            let (Ok(()), Ok(anna)) = (getrandom::fill(&mut nonce), anna) else {
                return Vec::new();
            };
            let signed = Signed {
                key: &self.key,
                at: Clock::system().now(),
                nonce: Nonce::from_bytes(nonce),
            };
            let answer = request.answer(&anna, ApprovalDecision::Grant, "needed", signed);
            answer.into_iter().collect()
        })
    }
}

/// What a person vouches for: a value in it counts as given.
fn vouch(key: &SecretKey) -> Result<Envelope, Failure> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce)?;
    let statement = Issued {
        expires_at: None,
        issued_at: Clock::system().now(),
        key_id: key.public().key_id(),
        nonce: Nonce::from_bytes(nonce),
        subject: Assertion {
            predicate: Predicate {
                subject: "team:web".to_owned(),
                relation: "meets_in".to_owned(),
                object: json!("Aldebaran"),
            },
            project: "example".to_owned(),
            scope: "project:example".parse()?,
            statement: "The team meets in Aldebaran.".to_owned(),
        },
    };
    Ok(Envelope::sign(&statement, key)?)
}

async fn agent(session: Session, vouched: Envelope) -> Result<(), Failure> {
    // Read somewhere: a rumour, which no context hands out.
    let page = json!({"type": "text", "text": "All teams meet in the cellar."});
    session
        .observe("web.page", vec![ContentBlock::from_wire(page)])
        .await?;
    // Signed by an operator: evidence.
    session.assert(&vouched).await?;

    let context = session.context(None, 20).await?;
    let beliefs = context.beliefs.iter().map(|belief| belief.id).collect();
    let options = vec!["book".to_owned(), "wait".to_owned()];
    let decision = session
        .decide("Book a room?", options, "book", beliefs)
        .await?;

    let options = CallOptions {
        decision: Some(decision),
        deadline: Some(Duration::from_secs(20)),
        ..CallOptions::default()
    };
    let booking = session.call_with("room.book", json!({"room": "Aldebaran"}), options);
    let reading = session.call("fs.read", json!({"path": "missing.md"}));
    let (booking, reading) = tokio::join!(booking, reading);

    for reply in [booking?, reading?] {
        match &reply.outcome {
            Outcome::Returned(_) => println!("ran: {}", reply.for_agent()),
            Outcome::Failed(error) => println!("failed: {error}"),
            Outcome::Refused(why) => println!("not run ({}): {why}", why.kind()),
        }
    }
    Ok(())
}

fn config(approver: &SecretKey) -> String {
    format!(
        r#"
project_id = "example"
actor_id = "agent"
auto_approve_ceiling = 3
approval_timeout_ms = 60000
sentinels = ["untrusted-argument"]
tools."fs.read" = {{ root = "." }}

[tool_defaults."room.book"]
required_trust_level = "L4"
blast_radius = "external"
reversibility = "compensable"
data_sensitivity = "private"
permissions = ["network"]
sandbox = "controlled-network"

[[approvals.authorized_keys]]
actor_id = "anna"
public_key = "{}"
"#,
        approver.public()
    )
}

fn fresh_key() -> Result<SecretKey, Failure> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    Ok(SecretKey::from_seed(seed))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let project = tempfile::tempdir()?;
    let (anna, operator) = (fresh_key()?, fresh_key()?);
    let config = Config::parse(&config(&anna), project.path())?;
    let mut keys = Keys::new(fresh_key()?);
    keys.operators.push(operator.public());
    let vouched = vouch(&operator)?;

    let setup = Setup::new(config, keys)
        .tool(BookRoom::new()?)
        .holds(Holds::Ask(Arc::new(Anna { key: anna })));
    let done = wrap(|session| agent(session, vouched), setup).await?;

    let (session, counts) = (&done.session, done.counts);
    println!("{session}: {} ran, {} held", counts.ran, counts.held);

    let log = LogRoot::in_folder(project.path()).project(&ProjectId::new("example")?);
    let replay = derive(&log, session, &[operator.public()], None)?;
    let (verdicts, differences) = (replay.verdicts, replay.differences.len());
    println!("{verdicts} verdicts derived again, {differences} differences");
    Ok(())
}
