//! A whole decision of the gate, recorded, against one bare answer of Cedar over all policies.

use std::hint::black_box;

use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::id::ActionId;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, ServerIdentity};
use lodestar_core::provenance::{ArgumentProvenance, GivenSource, Label, Place, ValueKind};
use lodestar_core::time::Timestamp;
use lodestar_policy::{
    Agent, ArbiterRules, Facts, Gate, Policy, Requirement, Ruling, ToolShape, Trail, Unsigned,
};
use serde_json::{Map, Value, json};

use super::world::{self, Bare};
use super::{Least, ratio, repeated};
use crate::{Bound, Figure, session};

const TOOLS: usize = 20;

/// The tool that is asked about.
const ASKED: usize = 7;

const TRIES: u32 = 50;

/// Decisions of one try.
const TURN: u32 = 100;

pub(crate) fn measure() -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let source = world::policies(TOOLS);
    let bare = Bare::new(&source, ASKED);
    assert_eq!(bare.len(), 100);
    let gate = gate(&source);
    let unsliced = gate.unsliced();
    let action = Action::new();
    let log = session::create(folder.path(), "decisions");
    let actor = session::actor();
    let decide = |gate: &Gate| {
        let ruling = gate.rule(&action.facts(), &[], &log, &actor, 0);
        let ruling = ruling.expect("the disk has room");
        assert!(matches!(black_box(ruling), Ruling::Allowed(_)));
    };
    let Least([whole, answer, judged, slow]) = Least::of(
        TRIES,
        TURN,
        [
            &mut || repeated(TURN, || decide(&gate)),
            &mut || repeated(TURN, || drop(black_box(bare.answer()))),
            &mut || repeated(TURN, || drop(black_box(gate.judge(&action.facts(), &[])))),
            &mut || {
                repeated(TURN, || {
                    drop(black_box(unsliced.judge(&action.facts(), &[])));
                })
            },
        ],
    );
    vec![Figure {
        name: "gate decision ÷ one bare Cedar answer",
        value: ratio(whole, answer),
        bound: Bound::AtMost(1.0),
        detail: format!(
            "100 policies, 5 on the tool: {whole:.1?} against {answer:.1?}; \
             judging alone {judged:.1?}, without slicing {slow:.1?}"
        ),
    }]
}

fn gate(source: &str) -> Gate {
    let policy = Policy::load(
        source.as_bytes(),
        None,
        &[],
        Unsigned::Allowed,
        Timestamp::MIN,
    );
    let tools = (0..TOOLS).map(|at| ToolShape {
        name: world::named(at),
        server: ServerIdentity::new("bench").expect("a valid name"),
        groups: ["all".to_owned()].into(),
        input_schema: world::schema(),
        roles: Default::default(),
    });
    let arbiters = ["untrusted-argument", "low-confidence-action"].map(|name| (name, None));
    Gate::new(
        policy.expect("the policies are Cedar"),
        tools.collect(),
        ArbiterRules::new(arbiters).expect("known arbiters"),
        Requirement {
            roles: Default::default(),
            quorum: 1,
            expires_seconds: 600,
        },
    )
    .expect("the policies fit the tools")
}

/// An action with four arguments, one of them long, that the task gave.
struct Action {
    agent: Agent,
    tool: lodestar_core::name::ToolName,
    contract: lodestar_core::contract::Contract,
    arguments: Map<String, Value>,
    provenance: Vec<ArgumentProvenance>,
    fingerprint: Fingerprint,
}

impl Action {
    fn new() -> Self {
        let content = "x".repeat(2000);
        let arguments = json!({
            "path": "src/a.rs", "content": content, "count": 3, "tags": ["a", "b"],
        });
        let Value::Object(arguments) = arguments else {
            unreachable!("it is written as an object above")
        };
        let provenance = arguments.keys().map(|name| ArgumentProvenance {
            pointer: format!("/{name}"),
            place: Place::Value,
            kind: ValueKind::Text,
            label: Label::Given {
                source: GivenSource::Task,
            },
            resembles: None,
            inside: vec![],
            inside_omitted: 0,
        });
        let provenance = provenance.collect();
        let mut contract = world::contract();
        contract.required_level = Rung::L3;
        Self {
            agent: Agent {
                actor: ActorId::new("coder").expect("a valid name"),
                device_trust: "none".to_owned(),
                execution: "library".to_owned(),
            },
            tool: world::named(ASKED),
            contract,
            arguments,
            provenance,
            fingerprint: "00".repeat(32).parse().expect("a digest"),
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            action: ActionId::from_parts(1, [0; 10]),
            fingerprint: self.fingerprint,
            agent: &self.agent,
            tool: &self.tool,
            contract: &self.contract,
            arguments: &self.arguments,
            paths: &[],
            provenance: &self.provenance,
            dependencies: &[],
            trail: Trail::default(),
        }
    }
}
