//! A person's word: exactly that belief, exactly as it stands, once.

use lodestar_core::chain::transition::AxisMove;
use lodestar_core::chain::{BeliefAuthority, Retrieval, Security, Truth};
use lodestar_core::statement::StatementError;
use lodestar_firewall::event::{FirewallEvent, PromotionGround};
use lodestar_firewall::{FirewallError, OrderRefused};
use serde_json::json;

use crate::world::{World, about, key};

fn rumour(world: &mut World) -> lodestar_core::id::BeliefId {
    let outcome = world.read("notes.md", "status = done");
    about(&outcome, "status")
}

#[test]
fn a_signed_promotion_lifts_the_belief_it_names_and_is_recorded_whole() {
    let mut world = World::new();
    let id = rumour(&mut world);
    let other = world.read("other.md", "status = done");
    let other = about(&other, "status");
    world.promote(id).unwrap();
    let axes = world.axes(id);
    assert_eq!(
        (axes.truth, axes.retrieval),
        (Truth::Supported, Retrieval::Normal)
    );
    assert_eq!(world.truth(other), Truth::Unverified);
    let FirewallEvent::Promoted(promoted) = &world.tape.events.last().unwrap().0 else {
        panic!("a promotion is its own event");
    };
    assert!(matches!(promoted.ground, PromotionGround::Statement(_)));
    let items = world.belief(id).evidence.items;
    assert_eq!(items.last().unwrap().quality.as_str(), "human_assertion");
    assert_eq!(world.context(Some("done")).beliefs.len(), 1);
}

#[test]
fn an_order_of_somebody_unknown_is_refused() {
    let mut world = World::new();
    let id = rumour(&mut world);
    let order = world.promotion(id);
    let envelope = world.sign(order, &key(66));
    let refused = world.follow(&envelope).unwrap_err();
    assert!(
        matches!(refused, FirewallError::Statement(StatementError::Untrusted)),
        "{refused}"
    );
    // The installation's own key signs rows; it is nobody's word.
    let order = world.promotion(id);
    let envelope = world.sign(order, &world.installation);
    assert!(world.follow(&envelope).is_err());
    assert_eq!(world.truth(id), Truth::Unverified);
}

#[test]
fn an_order_is_used_once() {
    let mut world = World::new();
    let id = rumour(&mut world);
    let order = world.promotion(id);
    let envelope = world.sign(order, &world.operator);
    world.follow(&envelope).unwrap();
    let refused = world.follow(&envelope).unwrap_err();
    assert!(
        matches!(
            refused,
            FirewallError::Order(OrderRefused::OtherRevision {
                stated: 0,
                found: 1
            })
        ),
        "{refused}"
    );
    // Also when the belief is back where the order found it on that axis.
    let back = world.order(
        id,
        vec![AxisMove::new(Retrieval::Normal, Retrieval::Restricted).unwrap()],
    );
    let back = world.sign(back, &world.operator);
    world.follow(&back).unwrap();
    assert!(world.follow(&envelope).is_err());
}

#[test]
fn an_order_is_about_one_claim_one_project_and_some_move() {
    let mut world = World::new();
    let id = rumour(&mut world);
    let other = world.read("other.md", "status = done");
    let other = about(&other, "status");
    let mut order = world.promotion(id);
    order.belief = other;
    let envelope = world.sign(order, &world.operator);
    let refused = world.follow(&envelope).unwrap_err();
    assert!(
        matches!(
            refused,
            FirewallError::Order(OrderRefused::OtherClaim { .. })
        ),
        "{refused}"
    );

    let mut order = world.promotion(id);
    order.project = "elsewhere".to_owned();
    let envelope = world.sign(order, &world.operator);
    let refused = world.follow(&envelope).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the statement is for project `elsewhere`, not for `web`"
    );

    let order = world.order(id, Vec::new());
    let envelope = world.sign(order, &world.operator);
    let refused = world.follow(&envelope).unwrap_err();
    assert!(
        matches!(refused, FirewallError::Order(OrderRefused::NoMove)),
        "{refused}"
    );
    assert_eq!(world.truth(id), Truth::Unverified);
}

#[test]
fn all_moves_of_an_order_happen_or_none() {
    let mut world = World::new();
    let id = rumour(&mut world);
    let order = world.order(
        id,
        vec![
            AxisMove::new(Security::Clean, Security::Quarantined).unwrap(),
            AxisMove::new(Truth::Superseded, Truth::Supported).unwrap(),
        ],
    );
    let envelope = world.sign(order, &world.operator);
    let refused = world.follow(&envelope).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "belief `{id}`: `user` may not move truth from `superseded` to `supported`: the belief does not stand there"
        )
    );
    assert_eq!(world.axes(id).security, Security::Clean);
}

#[test]
fn quarantine_takes_a_supported_belief_out_of_the_context_and_release_brings_it_back() {
    let mut world = World::new();
    let measured = world.measure("fs", "a.md", "size", json!(10));
    let order = world.order(
        measured.id,
        vec![AxisMove::new(Security::Clean, Security::Quarantined).unwrap()],
    );
    let envelope = world.sign(order, &world.operator);
    world.follow(&envelope).unwrap();
    assert!(world.context(None).beliefs.is_empty());
    let order = world.order(
        measured.id,
        vec![AxisMove::new(Security::Quarantined, Security::Clean).unwrap()],
    );
    let envelope = world.sign(order, &world.operator);
    world.follow(&envelope).unwrap();
    assert_eq!(world.context(None).beliefs.len(), 1);
}

#[test]
fn a_signed_assertion_is_supported_unless_something_measured_speaks_against_it() {
    let mut world = World::new();
    let assertion = world.assertion("file:a.md", "owner", json!("ann"));
    let record = world.assert(assertion);
    assert_eq!(record.axes.truth, Truth::Supported);
    assert_eq!(record.authority, BeliefAuthority::UserAsserted);

    let measured = world.measure("fs", "a.md", "size", json!(10));
    let assertion = world.assertion("file:a.md", "size", json!(11));
    let wrong = world.assert(assertion);
    assert_eq!(wrong.axes.truth, Truth::Unverified);
    assert_eq!(world.truth(measured.id), Truth::Supported);

    // Said again, the newer word counts.
    let assertion = world.assertion("file:a.md", "owner", json!("bob"));
    let newer = world.assert(assertion);
    assert_eq!(newer.axes.truth, Truth::Supported);
    assert_eq!(world.truth(record.id), Truth::Superseded);
}

#[test]
fn an_assertion_is_no_promotion_and_the_other_way_round() {
    let mut world = World::new();
    let id = rumour(&mut world);
    let envelope = world.sign(world.assertion("file:a.md", "x", json!(1)), &world.operator);
    assert!(matches!(
        world.follow(&envelope).unwrap_err(),
        FirewallError::Statement(StatementError::WrongKind { .. })
    ));
    let order = world.promotion(id);
    let envelope = world.sign(order, &world.operator);
    let observation = world.observation("operator/assert", "");
    let project = crate::world::project();
    let refused = world
        .firewall
        .assert(&project, &envelope, &observation, &mut world.tape);
    assert!(refused.is_err());
}

#[test]
fn an_assertion_is_taken_in_once_and_only_on_its_day() {
    let mut world = World::new();
    let project = crate::world::project();
    let envelope = world.sign(
        world.assertion("file:a.md", "owner", json!("eve")),
        &world.operator,
    );
    let assert = |world: &mut World| {
        let observation = world.observation("operator/assert", "");
        let World { firewall, tape, .. } = world;
        firewall.assert(&project, &envelope, &observation, tape)
    };
    let id = assert(&mut world).unwrap().beliefs()[0].id;
    let order = world.order(
        id,
        vec![AxisMove::new(Truth::Supported, Truth::Contradicted).unwrap()],
    );
    let order = world.sign(order, &world.operator);
    world.follow(&order).unwrap();
    let refused = assert(&mut world).unwrap_err();
    assert!(
        matches!(refused, FirewallError::Order(OrderRefused::Used(used)) if used == id),
        "{refused}"
    );
    assert_eq!(world.truth(id), Truth::Contradicted);
    world.weather.pass(2 * crate::world::DAY);
    let refused = assert(&mut world).unwrap_err();
    assert!(
        matches!(refused, FirewallError::Order(OrderRefused::TooOld { .. })),
        "{refused}"
    );
}
