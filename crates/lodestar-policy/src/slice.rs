//! Slices: for each tool and question, the policies whose scope can match.
//!
//! Cedar evaluates a policy's scope before its conditions, and a scope that does not match makes it
//! false without an error. So leaving such a policy out changes neither the answer, nor the reasons,
//! nor the errors.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};

use cedar_policy::{
    ActionConstraint, Effect, Entities, Entity, EntityUid, PolicySet, PrincipalConstraint,
    ResourceConstraint, RestrictedExpression,
};
use lodestar_core::contract::{BlastRadius, Reversibility};
use lodestar_core::ladder::Rung;
use lodestar_core::name::PolicyId;
use lodestar_core::sensitivity::DataSensitivity;

use crate::facts::{Agent, Facts, ToolShape};
use crate::gate::Answers;
use crate::policy::Rule;
use crate::reads::{Names, Reads};
use crate::schema::{Kind, Question};

/// A forbid, as far as arguments of another type than declared concern it.
#[derive(Debug)]
pub(crate) struct Forbid {
    pub(crate) id: PolicyId,
    /// The arguments that it can look at.
    pub(crate) arguments: Names,
    /// Whom it concerns; nobody in particular if none.
    pub(crate) principal: Option<EntityUid>,
}

/// The policies that can have a say, with all that they can look at.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) policies: PolicySet,
    pub(crate) reads: Reads,
    pub(crate) forbids: Vec<Forbid>,
}

/// A tool as a resource.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) uid: EntityUid,
    /// The tool, and whatever else policies name, with ancestors.
    pub(crate) entities: Entities,
    /// The same with the agent who asked first: a session has one.
    pub(crate) with_agent: OnceLock<(Agent, Entities)>,
    /// What Cedar answered first, if its answer depends on nothing else than what is beside it.
    settled: OnceLock<(Sight, Answers)>,
    /// What the policies of both questions can look at.
    pub(crate) reads: Reads,
    pub(crate) run: Asked,
    pub(crate) ask: Asked,
}

/// All that an answer about one tool depends on, where its policies look at no more than the agent and the
/// contract. Most do: whatever the arguments are, Cedar need not be asked again.
#[derive(Debug)]
struct Sight {
    agent: Agent,
    level: Rung,
    blast_radius: BlastRadius,
    reversibility: Reversibility,
    sensitivity: DataSensitivity,
}

/// The parts of the context that [`Sight`] has.
const OF_CONTRACT: [&str; 4] = ["blast_radius", "level", "reversibility", "sensitivity"];

impl Sight {
    fn of(facts: &Facts<'_>) -> Self {
        let contract = facts.contract;
        Self {
            agent: facts.agent.clone(),
            level: contract.required_level,
            blast_radius: contract.blast_radius,
            reversibility: contract.reversibility,
            sensitivity: contract.data_sensitivity,
        }
    }

    /// Whether it is what these facts give, too.
    fn is_of(&self, facts: &Facts<'_>) -> bool {
        let contract = facts.contract;
        self.agent == *facts.agent
            && self.level == contract.required_level
            && self.blast_radius == contract.blast_radius
            && self.reversibility == contract.reversibility
            && self.sensitivity == contract.data_sensitivity
    }
}

impl Resource {
    /// What Cedar would answer, if that is known.
    pub(crate) fn settled(&self, facts: &Facts<'_>) -> Option<&Answers> {
        let (sight, answers) = self.settled.get()?;
        sight.is_of(facts).then_some(answers)
    }

    /// Keeps what Cedar answered, if it can depend on nothing else. The first stays: a session's tool has one
    /// contract and one agent.
    pub(crate) fn settle(&self, facts: &Facts<'_>, answers: &Answers) {
        if self.settled.get().is_none() && self.reads.context.are_among(&OF_CONTRACT) {
            let _ = self.settled.set((Sight::of(facts), answers.clone()));
        }
    }
}

/// One question about one tool.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) action: EntityUid,
    pub(crate) slice: Arc<Slice>,
}

/// Whether to leave out what cannot have a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slicing {
    /// Only policies whose scope can match, and only what they can look at.
    Sliced,
    /// Everything.
    Whole,
}

/// Makes the slices, sharing those with the same policies.
pub(crate) struct Slicer<'a> {
    rules: &'a [Rule],
    tools: &'a [ToolShape],
    slicing: Slicing,
    made: BTreeMap<(Vec<usize>, Vec<usize>), Arc<Slice>>,
}

impl<'a> Slicer<'a> {
    pub(crate) fn new(rules: &'a [Rule], tools: &'a [ToolShape], slicing: Slicing) -> Self {
        Self {
            rules,
            tools,
            slicing,
            made: BTreeMap::new(),
        }
    }

    /// The tool's two slices, and the entities that its policies can look at.
    pub(crate) fn resource(&mut self, tool: &ToolShape) -> Resource {
        let [run, ask] = Question::BOTH.map(|question| self.asked(tool, question));
        let mut named: HashSet<EntityUid> = HashSet::new();
        for policy in run
            .slice
            .policies
            .policies()
            .chain(ask.slice.policies.policies())
        {
            named.extend(policy.entity_literals());
        }
        let others = self.tools.iter().filter(|other| {
            other.name == tool.name || self.slicing == Slicing::Whole || is_named(other, &named)
        });
        let mut entities = vec![];
        for tool in others {
            entities.extend(entities_of(tool));
        }
        let mut reads = run.slice.reads.clone();
        reads.join(&ask.slice.reads);
        Resource {
            with_agent: OnceLock::new(),
            settled: OnceLock::new(),
            reads,
            uid: Kind::Tool.named(tool.name.as_str()),
            entities: collect(entities),
            run,
            ask,
        }
    }

    fn asked(&mut self, tool: &ToolShape, question: Question) -> Asked {
        let action = Kind::Action.named(&question.action(&tool.name));
        let group = Kind::Action.named(question.as_str());
        let uid = Kind::Tool.named(tool.name.as_str());
        let ancestors = parents_of(tool);
        let matching: Vec<usize> = (0..self.rules.len())
            .filter(|&at| {
                let policy = &self.rules[at].policy;
                let acts = match policy.action_constraint() {
                    ActionConstraint::Any => true,
                    ActionConstraint::In(actions) => {
                        actions.contains(&action) || actions.contains(&group)
                    }
                    ActionConstraint::Eq(only) => only == action,
                };
                acts && reaches(&policy.resource_constraint(), &uid, &ancestors)
            })
            .collect();
        let kept = match self.slicing {
            Slicing::Sliced => matching.clone(),
            Slicing::Whole => (0..self.rules.len()).collect(),
        };
        let rules = self.rules;
        let slicing = self.slicing;
        let slice = self
            .made
            .entry((kept.clone(), matching.clone()))
            .or_insert_with(|| Arc::new(slice(rules, &kept, &matching, slicing)));
        Asked {
            action,
            slice: Arc::clone(slice),
        }
    }
}

fn slice(rules: &[Rule], kept: &[usize], matching: &[usize], slicing: Slicing) -> Slice {
    let policies = kept.iter().map(|&at| rules[at].policy.clone());
    let policies = PolicySet::from_policies(policies).expect("the ids of a policy's rules differ");
    let mut reads = match slicing {
        Slicing::Sliced => Reads::default(),
        Slicing::Whole => Reads::everything(),
    };
    let mut forbids = Vec::new();
    for &at in matching {
        let Rule { id, policy, .. } = &rules[at];
        let of_policy = Reads::of(policy);
        reads.join(&of_policy);
        if policy.effect() == Effect::Forbid {
            forbids.push(Forbid {
                id: id.clone(),
                arguments: of_policy.arguments,
                principal: match policy.principal_constraint() {
                    PrincipalConstraint::Any | PrincipalConstraint::Is(_) => None,
                    // Agents have no ancestors: to be in one is to be it.
                    PrincipalConstraint::In(one)
                    | PrincipalConstraint::Eq(one)
                    | PrincipalConstraint::IsIn(_, one) => Some(one),
                },
            });
        }
    }
    Slice {
        policies,
        reads,
        forbids,
    }
}

fn reaches(
    constraint: &ResourceConstraint,
    uid: &EntityUid,
    ancestors: &HashSet<EntityUid>,
) -> bool {
    match constraint {
        ResourceConstraint::Any => true,
        ResourceConstraint::In(whole) => whole == uid || ancestors.contains(whole),
        ResourceConstraint::Eq(only) => only == uid,
        ResourceConstraint::Is(kind) => kind == uid.type_name(),
        ResourceConstraint::IsIn(kind, whole) => {
            kind == uid.type_name() && (whole == uid || ancestors.contains(whole))
        }
    }
}

/// Whether policies name the tool, or an action on it.
fn is_named(tool: &ToolShape, named: &HashSet<EntityUid>) -> bool {
    named.contains(&Kind::Tool.named(tool.name.as_str()))
        || Question::BOTH
            .iter()
            .any(|question| named.contains(&Kind::Action.named(&question.action(&tool.name))))
}

fn parents_of(tool: &ToolShape) -> HashSet<EntityUid> {
    let groups = tool.groups.iter().map(|group| Kind::Group.named(group));
    let server = Kind::Server.named(tool.server.as_str());
    groups.chain([server]).collect()
}

fn entities_of(tool: &ToolShape) -> Vec<Entity> {
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let attributes = [
        ("server".to_owned(), text(tool.server.as_str())),
        ("name".to_owned(), text(tool.name.as_str())),
    ];
    let uid = Kind::Tool.named(tool.name.as_str());
    let parents = parents_of(tool);
    let mut entities: Vec<_> = parents.iter().cloned().map(Entity::with_uid).collect();
    let entity = Entity::new(uid, attributes.into(), parents);
    entities.push(entity.expect("a tool's attributes are strings"));
    for question in Question::BOTH {
        let group = Kind::Action.named(question.as_str());
        let action = Kind::Action.named(&question.action(&tool.name));
        entities.push(Entity::new_no_attrs(action, [group.clone()].into()));
        entities.push(Entity::with_uid(group));
    }
    entities
}

fn collect(entities: Vec<Entity>) -> Entities {
    // Tools share servers, groups and action groups; Cedar takes identical entities once.
    Entities::from_entities(entities, None)
        .expect("equal ids are equal entities, and parents are of other types")
}
