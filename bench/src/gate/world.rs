//! Policies, the bare question that they are measured against, and sessions with a tool that does
//! nothing.

use std::fmt::Write as _;
use std::path::Path;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicySet, Request, RestrictedExpression,
};
use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use lodestar_guard::{Config, Holds, Keys, Session, Setup};
use lodestar_kernel::step::Steps;
use lodestar_kernel::tool::{Call, Calling, Definition, Output, Tool};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::session;

/// Five policies on each of so many tools.
pub(super) fn policies(tools: usize) -> String {
    let mut text = String::new();
    for at in 0..tools {
        let _ = write!(
            text,
            r#"permit (principal, action == Action::"run:tool{at}", resource) when {{ context.args.path like "src/*" && context.level <= 3 }};
permit (principal, action == Action::"ask:tool{at}", resource) when {{ context.level <= 3 }};
forbid (principal, action == Action::"run:tool{at}", resource) when {{ context.untrusted_args.contains("content") }};
forbid (principal, action == Action::"ask:tool{at}", resource) when {{ context.sensitivity == "secret" }};
permit (principal, action == Action::"run:tool{at}", resource) when {{ context.args has count && context.args.count < 10 }};
"#
        );
    }
    text
}

/// The tools' arguments.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"}, "content": {"type": "string"},
            "count": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["path"],
        "additionalProperties": false,
    })
}

pub(super) fn named(tool: usize) -> ToolName {
    ToolName::new(format!("tool{tool}")).expect("a valid name")
}

/// What Cedar alone has to do for one question over all policies: everything is made beforehand.
pub(super) struct Bare {
    authorizer: Authorizer,
    policies: PolicySet,
    request: Request,
    entities: Entities,
}

impl Bare {
    pub(super) fn new(source: &str, tool: usize) -> Self {
        let uid = |text: String| text.parse::<EntityUid>().expect("an entity's name");
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let args = [("path".to_owned(), text("src/a.rs"))];
        let args = RestrictedExpression::new_record(args).expect("no key is there twice");
        let context = Context::from_pairs([
            ("args".to_owned(), args),
            ("level".to_owned(), RestrictedExpression::new_long(0)),
            ("sensitivity".to_owned(), text("private")),
            (
                "untrusted_args".to_owned(),
                RestrictedExpression::new_set([]),
            ),
        ]);
        let resource = uid(format!("Tool::\"tool{tool}\""));
        let request = Request::new(
            uid("Agent::\"coder\"".to_owned()),
            uid(format!("Action::\"run:tool{tool}\"")),
            resource.clone(),
            context.expect("no key is there twice"),
            None,
        );
        Self {
            authorizer: Authorizer::new(),
            policies: source.parse().expect("the policies are Cedar"),
            request: request.expect("there is no schema to offend"),
            entities: Entities::from_entities([Entity::with_uid(resource)], None)
                .expect("one entity"),
        }
    }

    pub(super) fn answer(&self) -> cedar_policy::Response {
        let Self {
            authorizer,
            policies,
            request,
            entities,
        } = self;
        authorizer.is_authorized(request, policies, entities)
    }

    pub(super) fn len(&self) -> usize {
        self.policies.policies().count()
    }
}

/// A tool that does nothing.
struct Idle(Definition);

impl Idle {
    fn new(tool: usize) -> Self {
        let roles = [
            ("path", ArgumentRole::Path),
            ("content", ArgumentRole::Payload),
        ];
        Self(Definition {
            name: named(tool),
            server: ServerIdentity::new("bench").expect("a valid name"),
            description: "does nothing".to_owned(),
            input_schema: schema(),
            roles: roles.map(|(name, role)| (name.to_owned(), role)).into(),
            declared: None,
            minimum: contract(),
        })
    }
}

impl Tool for Idle {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn call<'a>(&'a self, _: Call<'a>) -> Calling<'a> {
        Box::pin(async { Ok(Output::text("done")) })
    }
}

/// The contract of a tool that only looks.
pub(super) fn contract() -> Contract {
    Contract {
        required_level: Rung::L0,
        blast_radius: BlastRadius::SelfOnly,
        reversibility: Reversibility::Reversible,
        scope: Scope::global(),
        data_sensitivity: DataSensitivity::Private,
        preconditions: Preconditions::default(),
        sandbox: Sandbox::Read,
        permissions: [Permission::ReadFiles].into(),
    }
}

/// Everything that a session needs beside its folder.
pub(super) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// A session over a SQLite store, with two idle tools at L0 and ten policies on them.
pub(super) fn open(runtime: &Runtime, folder: &Path, steps: Steps) -> Session {
    const TOOLS: usize = 2;
    std::fs::create_dir_all(folder).expect("a scratch folder");
    std::fs::write(folder.join("policy.cedar"), policies(TOOLS)).expect("the disk has room");
    let mut config = "project_id = \"bench\"\nactor_id = \"coder\"\n\
         [policy]\nfile = \"policy.cedar\"\nallow_unsigned = true\n"
        .to_owned();
    for tool in 0..TOOLS {
        let _ = write!(
            config,
            "[tool_defaults.tool{tool}]\nrequired_trust_level = \"L0\"\nblast_radius = \"self\"\n\
             reversibility = \"reversible\"\ndata_sensitivity = \"private\"\n"
        );
    }
    let config = Config::parse(&config, folder).expect("a configuration");
    let keys = Keys::new(session::key());
    let setup = (0..TOOLS).fold(Setup::new(config, keys), |setup, tool| {
        setup.tool(Idle::new(tool))
    });
    let opening = setup.holds(Holds::Leave).steps(steps).open();
    runtime
        .block_on(opening)
        .expect("a session in a scratch folder")
}

/// The arguments of a small call, other ones each time.
pub(super) fn arguments(number: u64) -> Value {
    json!({"path": format!("src/part{}.rs", number % 977), "count": number % 10})
}
