//! Whatever happens in whatever order: nothing that was only read is believed without a recorded
//! promotion by a person or a rule.

use std::collections::BTreeSet;

use lodestar_core::chain::transition::{AxisMove, State};
use lodestar_core::chain::{Directness, EvidenceRelation, Freshness, Retrieval, Security, Truth};
use lodestar_core::id::BeliefId;
use lodestar_core::name::{PolicyId, ServerIdentity, ToolName};
use lodestar_firewall::Finding;
use lodestar_firewall::event::FirewallEvent;
use lodestar_firewall::import::{ExportFormat, read_export};
use lodestar_firewall::rule::PromotionRule;
use serde_json::json;

use crate::world::{DAY, World, key, scope};

/// Small and repeatable: the same seed gives the same run everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() {
            return None;
        }
        let place = self.roll(of.len() as u64);
        Some(of[usize::try_from(place).unwrap()])
    }
}

fn state(dice: &mut Dice) -> State {
    match dice.roll(4) {
        0 => dice.one(Truth::ALL).unwrap().into(),
        1 => dice.one(Retrieval::ALL).unwrap().into(),
        2 => dice.one(Security::ALL).unwrap().into(),
        _ => dice.one(Freshness::ALL).unwrap().into(),
    }
}

/// One step of a run. What is refused is refused; that nothing slips through is checked after.
fn step(world: &mut World, dice: &mut Dice, known: &mut Vec<BeliefId>) {
    let path = format!("{}.md", dice.roll(2));
    let value = format!("v{}", dice.roll(3));
    match dice.roll(13) {
        0 | 1 => {
            let outcome = world.read(&path, &format!("status = {value}"));
            known.extend(outcome.beliefs().iter().map(|belief| belief.id));
        }
        2 => known.push(world.measure("fs", &path, "status", json!(value)).id),
        3 => {
            let sources: Vec<_> = (0..dice.roll(3)).filter_map(|_| dice.one(known)).collect();
            let subject = format!("file:{path}");
            if let Ok(belief) = world.derive(&sources, &subject, "status", json!(value)) {
                known.push(belief.id);
            }
        }
        4 => {
            let assertion = world.assertion(&format!("file:{path}"), "status", json!(value));
            known.push(world.assert(assertion).id);
        }
        5 => {
            let export = json!([{"id": value, "memory": "status is fine"}]).to_string();
            let export = read_export(ExportFormat::Mem0, export.as_bytes()).unwrap();
            let observation = world.observation("import/mem0", "");
            let batch = lodestar_firewall::ImportBatch {
                observation: &observation,
                format: ExportFormat::Mem0,
                memories: &export.memories,
                scope: &scope(),
            };
            let outcome = world.firewall.import(batch, &mut world.tape).unwrap();
            known.extend(outcome.beliefs().iter().map(|belief| belief.id));
        }
        6..=8 => {
            let Some(id) = dice.one(known) else { return };
            let to = state(dice);
            let finding = match dice.one(known) {
                Some(other) if dice.roll(2) == 0 => Finding::SaysOtherwise(other),
                _ => Finding::Words("because"),
            };
            let World {
                firewall,
                seats,
                tape,
                ..
            } = world;
            let _ = match dice.roll(3) {
                0 => firewall.shift(&seats.sentinel, id, to, finding, tape),
                1 => firewall.shift(&seats.reflection, id, to, finding, tape),
                _ => firewall.shift(&seats.policy, id, to, finding, tape),
            };
        }
        9 | 10 => {
            let Some(id) = dice.one(known) else { return };
            let axes = world.axes(id);
            let to = state(dice);
            let moves = vec![AxisMove::new(axes.on(to.axis()), to).unwrap()];
            let order = world.order(id, moves);
            // Half of the orders are forged.
            let signer = if dice.roll(2) == 0 {
                world.operator.clone()
            } else {
                key(66)
            };
            let envelope = world.sign(order, &signer);
            let _ = world.follow(&envelope);
        }
        11 => {
            let Some(id) = dice.one(known) else { return };
            let rule = PromotionRule {
                id: PolicyId::new("rule").unwrap(),
                server: ServerIdentity::new("files").unwrap(),
                tool: ToolName::new("read_file").unwrap(),
                subject: "file:0*".to_owned(),
                issued_at: world.weather.now_is(),
                expires_at: world.weather.now_is().checked_add(DAY).unwrap(),
                lifts_retrieval: dice.roll(2) == 0,
            };
            let World {
                firewall,
                seats,
                tape,
                ..
            } = world;
            let _ = firewall.promote_by_rule(&seats.policy, &rule, id, tape);
        }
        _ => {
            if dice.roll(4) == 0 {
                world.weather.set_back(DAY);
            } else {
                world
                    .weather
                    .pass(u32::try_from(dice.roll(10)).unwrap() * DAY);
            }
            world
                .firewall
                .age(&crate::world::project(), &mut world.tape)
                .unwrap();
        }
    }
}

/// Checks every belief against the record of events alone.
fn check(world: &mut World, known: &[BeliefId]) -> u64 {
    let promoted: BTreeSet<_> = world
        .tape
        .events
        .iter()
        .filter_map(|(event, _)| match event {
            // Only what a person or a rule moved there, not what they moved otherwise.
            FirewallEvent::Promoted(promoted) => promoted
                .change
                .moves
                .iter()
                .any(|step| {
                    step.to() == Truth::Supported.into() || step.to() == Retrieval::Normal.into()
                })
                .then_some(promoted.change.belief),
            _ => None,
        })
        .collect();
    let mut gated = 0;
    let context = world.context(None);
    for &id in known {
        let belief = world.belief(id);
        let carried = belief.evidence.items.iter().any(|item| {
            item.quality.directness() == Directness::Direct
                && item.relation == EvidenceRelation::Supports
        });
        if carried || promoted.contains(&id) {
            continue;
        }
        gated += 1;
        let axes = belief.record.axes;
        assert_ne!(axes.truth, Truth::Supported, "{belief:?}");
        assert_ne!(axes.retrieval, Retrieval::Normal, "{belief:?}");
        assert!(context.beliefs.iter().all(|shown| shown.id != id));
    }
    gated
}

#[test]
fn matrix_nothing_that_was_only_read_is_believed_whatever_happens() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let cases: u64 = if full { 100_000 } else { 1_500 };
    let (mut steps, mut beliefs, mut gated, mut promotions) = (0, 0, 0, 0);
    for seed in 0..cases {
        let mut dice = Dice(seed);
        let mut world = World::new();
        let mut known = Vec::new();
        let length = 5 + dice.roll(20);
        for _ in 0..length {
            step(&mut world, &mut dice, &mut known);
        }
        steps += length;
        beliefs += known.len();
        gated += check(&mut world, &known);
        promotions += world
            .tape
            .events
            .iter()
            .filter(|(event, _)| matches!(event, FirewallEvent::Promoted(_)))
            .count();
    }
    println!(
        "{cases} runs, {steps} steps, {beliefs} beliefs, {gated} of them gated to the end, {promotions} recorded promotions and orders; 0 believed without one"
    );
    assert!(gated > cases && promotions > 0);
}
