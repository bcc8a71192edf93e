//! The gate: a policy, the tools it is about, and a verdict for every proposed action.
//!
//! [`Gate::judge`] is a pure function of the facts. In this order: both Cedar questions, errors in
//! evaluating them, the ladder's floor, the arbiters. Each step can only tighten what the one before
//! it said.

mod entities;
mod ladder;
mod mistyped;
mod taken_out;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Effect, Entities, EntityUid, Request,
};
use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::ladder::{CedarAnswer, Say, Verdict, floor};
use lodestar_core::name::{CalibrationClass, PolicyId, ToolName};
use thiserror::Error;

use self::entities::entities_for;
use self::ladder::{Ladder, deciding};
use self::mistyped::forbids_of_broken;
use crate::annotation::{ApprovalAnnotation, Asked};
use crate::arbiter::{ArbiterRules, Seen};
use crate::check::check_rules;
use crate::facts::{Facts, ToolShape};
use crate::finding::{Finding, Gravity};
use crate::judgement::{ErrorKind, EvaluationError, Judgement, Requirement, Signal, Tightener};
use crate::policy::Policy;
use crate::request::{Reviewed, context};
use crate::schema::{CedarSchema, Kind, SchemaError};
use crate::slice::{Asked as Question, Resource, Slicer, Slicing};
use crate::text::inert;

/// Why there is no gate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GateError {
    /// The tools have no schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The policy does not fit the tools.
    #[error("the policy does not fit the tools: {}", listed(.0))]
    Policy(Vec<Finding>),
    /// The default requirement can never be met.
    #[error("`approvals.default` needs a quorum and a time from 1 on")]
    Requirement,
}

fn listed(findings: &[Finding]) -> String {
    let lines: Vec<_> = findings.iter().map(Finding::to_string).collect();
    lines.join("\n")
}

/// Judges proposed actions.
#[derive(Debug)]
pub struct Gate {
    policy: Policy,
    schema: CedarSchema,
    tools: BTreeMap<ToolName, ToolShape>,
    resources: HashMap<ToolName, Resource>,
    arbiters: ArbiterRules,
    flagged: BTreeSet<CalibrationClass>,
    asked: BTreeMap<PolicyId, Asked>,
    default: Requirement,
    warnings: Vec<Finding>,
    authorizer: Authorizer,
    /// Of a harness.
    taken_out: BTreeSet<Defence>,
}

/// What the policies say to one question.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    say: Say,
    reasons: BTreeSet<PolicyId>,
}

impl Answer {
    fn silent() -> Self {
        Self {
            say: Say::Silent,
            reasons: BTreeSet::new(),
        }
    }
}

/// What the policies say to both.
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    run: Answer,
    ask: Answer,
    errors: BTreeSet<EvaluationError>,
}

impl Gate {
    /// Puts a policy before these tools, if it fits them.
    pub fn new(
        policy: Policy,
        tools: Vec<ToolShape>,
        arbiters: ArbiterRules,
        default_requirement: Requirement,
    ) -> Result<Self, GateError> {
        if default_requirement.quorum == 0 || default_requirement.expires_seconds == 0 {
            return Err(GateError::Requirement);
        }
        let schema = CedarSchema::generate(&tools)?;
        let findings = check_rules(policy.source(), policy.rules(), &schema, &tools);
        let (errors, warnings): (Vec<_>, Vec<_>) = findings
            .into_iter()
            .partition(|finding| finding.gravity == Gravity::Error);
        if !errors.is_empty() {
            return Err(GateError::Policy(errors));
        }
        let resources = resources(&policy, &tools, Slicing::Sliced);
        let asked = policy.rules().iter().map(|rule| {
            let mut asked = Asked::default();
            for annotation in ApprovalAnnotation::ALL {
                if let Some(value) = rule.policy.annotation(annotation.as_str()) {
                    let read = asked.read(annotation, value);
                    read.expect("annotations were checked");
                }
            }
            (rule.id.clone(), asked)
        });
        Ok(Self {
            asked: asked.collect(),
            tools: tools.into_iter().map(|t| (t.name.clone(), t)).collect(),
            policy,
            schema,
            resources,
            arbiters,
            flagged: BTreeSet::new(),
            default: default_requirement,
            warnings,
            authorizer: Authorizer::new(),
            taken_out: BTreeSet::new(),
        })
    }

    /// The same gate, told which calibration classes were flagged. Only an arbiter looks at them, so that a
    /// flag can tighten and nothing else.
    #[must_use]
    pub fn flagging(mut self, classes: impl IntoIterator<Item = CalibrationClass>) -> Self {
        if !self.lacks(Defence::CalibrationFlags) {
            self.flagged.extend(classes);
        }
        self
    }

    /// The same gate, asking every policy about every action. Slower, and never of another opinion:
    /// there to compare with.
    #[must_use]
    pub fn unsliced(&self) -> Self {
        let tools: Vec<_> = self.tools.values().cloned().collect();
        Self {
            resources: resources(&self.policy, &tools, Slicing::Whole),
            policy: self.policy.clone(),
            schema: self.schema.clone(),
            tools: self.tools.clone(),
            arbiters: self.arbiters.clone(),
            flagged: self.flagged.clone(),
            asked: self.asked.clone(),
            default: self.default.clone(),
            warnings: self.warnings.clone(),
            authorizer: self.authorizer.clone(),
            taken_out: self.taken_out.clone(),
        }
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The schema that it fits.
    pub fn schema(&self) -> &CedarSchema {
        &self.schema
    }

    /// The tool, as policies see it.
    pub fn tool(&self, name: &ToolName) -> Option<&ToolShape> {
        self.tools.get(name)
    }

    /// What is odd about the policy, and did not keep it out.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// What an approval needs where no policy says.
    pub fn default_requirement(&self) -> &Requirement {
        &self.default
    }

    /// Whether some policy may say that one has to ask for this tool.
    pub fn may_ask(&self, tool: &ToolName) -> bool {
        let asks = |resource: &Resource| {
            let mut policies = resource.ask.slice.policies.policies();
            policies.any(|policy| policy.effect() == Effect::Permit)
        };
        self.resources.get(tool).is_some_and(asks)
    }

    /// The policy's digest.
    pub fn digest(&self) -> Digest {
        self.policy.digest()
    }

    /// The verdict on an action, with everything it rests on.
    pub fn judge(&self, facts: &Facts<'_>, heard: &[Signal]) -> Judgement {
        match self.taken_out.is_empty() {
            true => self.weigh(facts, heard),
            false => self.judge_without(facts, heard),
        }
    }

    fn weigh(&self, facts: &Facts<'_>, heard: &[Signal]) -> Judgement {
        let Answers { run, ask, errors } = self.hear(facts);
        let answer = CedarAnswer {
            run: run.say,
            ask: ask.say,
        };
        let rung = facts.contract.required_level;
        let counted = self.counted(rung, answer);
        let mut ladder = Ladder::start(rung, counted);
        let worst = errors.iter().map(|error| error.kind.at_least()).max();
        if !self.lacks(Defence::EvaluationErrors) {
            ladder.climb(Tightener::EvaluationError, worst.unwrap_or(Verdict::Allow));
        }
        ladder.climb(Tightener::Floor, floor(rung, counted));
        let tool = self.tools.get(facts.tool);
        let Seen { signals, observed } = match self.lacks(Defence::Sentinels) {
            true => Seen::default(),
            false => self.arbiters.look(facts, tool, &self.flagged),
        };
        for signal in signals.iter().chain(heard) {
            if self.lacks(Defence::ArbitersOnlyTighten) {
                ladder.verdict = signal.severity.at_least();
            }
            let by = Tightener::Arbiter(signal.arbiter.clone());
            ladder.climb(by, signal.severity.at_least());
        }
        let requirement = (ladder.verdict == Verdict::Hold).then(|| self.requirement(&ask));
        Judgement {
            action: facts.action,
            verdict: ladder.verdict,
            answer,
            policies: deciding(rung, run, ask),
            errors: errors.into_iter().collect(),
            tightened: ladder.tightened,
            signals,
            observed,
            heard: heard.to_vec(),
            requirement,
            policy: self.policy.digest(),
        }
    }

    fn requirement(&self, ask: &Answer) -> Requirement {
        let mut asked = Asked::default();
        if ask.say == Say::Permit {
            for id in &ask.reasons {
                if let Some(of_policy) = self.asked.get(id) {
                    asked.join(of_policy);
                }
            }
        }
        asked.or(&self.default)
    }

    /// Puts both questions.
    fn hear(&self, facts: &Facts<'_>) -> Answers {
        let mut answers = Answers {
            run: Answer::silent(),
            ask: Answer::silent(),
            errors: BTreeSet::new(),
        };
        let known = self.resources.get(facts.tool);
        let declared = self.schema.arguments(facts.tool);
        let (Some(resource), Some(declared)) = (known, declared) else {
            let tool = facts.tool.shown();
            answers.refuse(format!("the gate does not know the tool `{tool}`"));
            return answers;
        };
        let reviewed = Reviewed::of(declared, facts.arguments);
        if let Some(settled) = resource.settled(facts).filter(|_| reviewed.is_sound()) {
            answers = settled.clone();
            answers.errors.extend(reviewed.errors);
            return answers;
        }
        let principal = Kind::Agent.named(facts.agent.actor.as_str());
        let context = context(
            facts,
            self.tools.get(facts.tool),
            declared,
            &reviewed,
            &resource.reads,
        );
        let entities = entities_for(resource, &principal, facts.agent);
        match (context, entities) {
            (Ok(context), Ok(entities)) => {
                let put = |question: &Question, errors: &mut BTreeSet<EvaluationError>| {
                    forbids_of_broken(&question.slice, &principal, &reviewed, errors);
                    let resource = &resource.uid;
                    self.put(question, &principal, resource, &context, &entities, errors)
                };
                answers.run = put(&resource.run, &mut answers.errors);
                answers.ask = put(&resource.ask, &mut answers.errors);
            }
            (Err(problem), _) | (_, Err(problem)) => answers.refuse(problem),
        }
        if reviewed.is_sound() {
            resource.settle(facts, &answers);
        }
        answers.errors.extend(reviewed.errors);
        answers
    }

    fn put(
        &self,
        question: &Question,
        principal: &EntityUid,
        resource: &EntityUid,
        context: &Context,
        entities: &Entities,
        errors: &mut BTreeSet<EvaluationError>,
    ) -> Answer {
        let policies = &question.slice.policies;
        if policies.is_empty() {
            return Answer::silent();
        }
        let request = Request::new(
            principal.clone(),
            question.action.clone(),
            resource.clone(),
            context.clone(),
            None,
        );
        let request = request.expect("without a schema there is nothing to refuse a request for");
        let response = self.authorizer.is_authorized(&request, policies, entities);
        for error in response.diagnostics().errors() {
            let AuthorizationError::PolicyEvaluationError(error) = error;
            let effect = policies.policy(error.policy_id()).map(|p| p.effect());
            errors.insert(EvaluationError {
                kind: match effect {
                    Some(Effect::Permit) => ErrorKind::Permit,
                    _ => ErrorKind::Forbid,
                },
                policy: named(error.policy_id()),
                message: inert(&error.inner().to_string()),
            });
        }
        let reasons: BTreeSet<_> = response.diagnostics().reason().filter_map(named).collect();
        let say = match response.decision() {
            Decision::Allow => Say::Permit,
            Decision::Deny if reasons.is_empty() => Say::Silent,
            Decision::Deny => Say::Forbid,
        };
        Answer { say, reasons }
    }
}

impl Answers {
    fn refuse(&mut self, message: String) {
        self.errors.insert(EvaluationError {
            kind: ErrorKind::Request,
            policy: None,
            message: inert(&message),
        });
    }
}

fn resources(
    policy: &Policy,
    tools: &[ToolShape],
    slicing: Slicing,
) -> HashMap<ToolName, Resource> {
    let mut slicer = Slicer::new(policy.rules(), tools, slicing);
    let resources = tools
        .iter()
        .map(|tool| (tool.name.clone(), slicer.resource(tool)));
    resources.collect()
}

/// INVARIANT: every policy of a slice has the id of a rule, which is one.
fn named(id: &cedar_policy::PolicyId) -> Option<PolicyId> {
    PolicyId::new(id).ok()
}
