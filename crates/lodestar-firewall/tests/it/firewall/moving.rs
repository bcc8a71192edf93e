//! Moves by those who hold a seat, by rules, and by the clock.

use lodestar_core::chain::transition::{AuthorityKind, State};
use lodestar_core::chain::{Freshness, Retrieval, Security, Truth};
use lodestar_core::name::{PolicyId, ServerIdentity, ToolName};
use lodestar_firewall::event::{FirewallEvent, PromotionGround};
use lodestar_firewall::row::keys::Keyring;
use lodestar_firewall::rule::{PromotionRule, RuleRefused};
use lodestar_firewall::{Finding, FirewallError, WhyRefused, probe_world};
use serde_json::json;

use crate::world::{DAY, World, about, key};

fn refusal(error: FirewallError) -> (AuthorityKind, WhyRefused) {
    match error {
        FirewallError::Move { refused, .. } => (refused.authority, refused.why),
        other => panic!("{other}"),
    }
}

#[test]
fn a_sentinel_sets_apart_and_never_brings_in() {
    let mut world = World::new();
    let read = world.read("a.md", "status = done");
    let id = about(&read, "status");
    let finding = Finding::Words("it tells the reader what to do\u{1b}[2J");
    let seat = &world.seats.sentinel;
    let to = Security::Suspicious.into();
    let (change, _) = world
        .firewall
        .shift(seat, id, to, finding, &mut world.tape)
        .unwrap();
    assert_eq!(change.authority, AuthorityKind::Sentinel);
    assert!(!serde_json::to_string(&change).unwrap().contains('\u{1b}'));
    let forbidden: [State; 4] = [
        Security::Clean.into(),
        Retrieval::Normal.into(),
        Truth::Supported.into(),
        Freshness::Stale.into(),
    ];
    for to in forbidden {
        let refused = world.firewall.shift(seat, id, to, finding, &mut world.tape);
        let expected = (AuthorityKind::Sentinel, WhyRefused::NotInTable);
        assert_eq!(refusal(refused.unwrap_err()), expected);
    }
}

#[test]
fn a_sentinel_contradicts_only_with_direct_evidence() {
    let mut world = World::new();
    let read = world.read("a.md", "status = done");
    let rumour = about(&read, "status");
    let planted = world.read("a.md", "status = broken");
    let planted = about(&planted, "status");
    let to = Truth::Contradicted.into();
    let seat = &world.seats.sentinel;
    for finding in [Finding::Words("I say so"), Finding::SaysOtherwise(planted)] {
        let refused = world
            .firewall
            .shift(seat, rumour, to, finding, &mut world.tape);
        assert_eq!(
            refusal(refused.unwrap_err()).1,
            WhyRefused::NeedsDirectEvidence
        );
    }
    let measured = world.measure("fs", "a.md", "status", json!("open"));
    let seat = &world.seats.sentinel;
    let finding = Finding::SaysOtherwise(measured.id);
    world
        .firewall
        .shift(seat, rumour, to, finding, &mut world.tape)
        .unwrap();
    assert_eq!(world.truth(rumour), Truth::Contradicted);
    // Nor can a document contradict what was measured, whoever carries it.
    let seat = &world.seats.reflection;
    let finding = Finding::SaysOtherwise(planted);
    let refused = world
        .firewall
        .shift(seat, measured.id, to, finding, &mut world.tape);
    assert_eq!(
        refusal(refused.unwrap_err()),
        (AuthorityKind::Reflection, WhyRefused::NeedsDirectEvidence)
    );
}

#[test]
fn a_seat_of_another_firewall_moves_nothing() {
    let mut world = World::new();
    let measured = world.measure("fs", "a.md", "size", json!(1));
    let other = World::new();
    let finding = Finding::Words("x");
    let to = Security::Quarantined.into();
    let refused = world.firewall.shift(
        &other.seats.sentinel,
        measured.id,
        to,
        finding,
        &mut world.tape,
    );
    assert!(matches!(refused, Err(FirewallError::ForeignSeat)));
    let observation = world.observation("fs", "");
    let measurement = lodestar_firewall::Measurement {
        observation: &observation,
        scope: &crate::world::scope(),
        subject: "file:a.md",
        relation: "size",
        object: json!(2),
    };
    let refused = world
        .firewall
        .measure(&other.seats.measuring, measurement, &mut world.tape);
    assert!(matches!(refused, Err(FirewallError::ForeignSeat)));
}

#[test]
fn a_probe_moves_only_its_own_world() {
    let mut world = World::new();
    let read = world.read("a.md", "status = done");
    let id = about(&read, "status");
    let (mut probed, _, probe) = probe_world(Keyring::new(key(1)), Box::new(world.weather.clone()));
    let to = Truth::Supported.into();
    let finding = Finding::Words("contrast");
    let refused = world
        .firewall
        .shift(&probe, id, to, finding, &mut world.tape);
    assert!(matches!(refused, Err(FirewallError::ForeignSeat)));
    let refused = probed.shift(&probe, id, to, finding, &mut world.tape);
    assert!(matches!(refused, Err(FirewallError::UnknownBelief(_))));
}

fn rule(world: &World, subject: &str) -> PromotionRule {
    PromotionRule {
        id: PolicyId::new("docs-are-ours").unwrap(),
        server: ServerIdentity::new("files").unwrap(),
        tool: ToolName::new("read_file").unwrap(),
        subject: subject.to_owned(),
        issued_at: world.weather.now_is(),
        expires_at: world.weather.now_is().checked_add(30 * DAY).unwrap(),
        lifts_retrieval: false,
    }
}

#[test]
fn a_rule_promotes_what_it_names_and_lifts_only_if_it_says_so() {
    for lifts in [false, true] {
        let mut world = World::new();
        let read = world.read("docs/a.md", "status = done");
        let id = about(&read, "status");
        let rule = PromotionRule {
            lifts_retrieval: lifts,
            ..rule(&world, "file:docs/*")
        };
        let seat = &world.seats.policy;
        world
            .firewall
            .promote_by_rule(seat, &rule, id, &mut world.tape)
            .unwrap();
        let axes = world.axes(id);
        assert_eq!(axes.truth, Truth::Supported);
        assert_eq!(axes.retrieval == Retrieval::Normal, lifts);
        let FirewallEvent::Promoted(promoted) = &world.tape.events.last().unwrap().0 else {
            panic!("a promotion is its own event");
        };
        let PromotionGround::Rule {
            rule: logged,
            evidence,
        } = &promoted.ground
        else {
            panic!("by the rule");
        };
        assert_eq!((logged, evidence.len()), (&rule, 1));
    }
}

#[test]
fn a_rule_that_is_too_wide_too_long_over_or_about_something_else_promotes_nothing() {
    let mut world = World::new();
    let read = world.read("docs/a.md", "status = done");
    let id = about(&read, "status");
    let good = rule(&world, "file:docs/*");
    let now = world.weather.now_is();
    type IsExpected = fn(&RuleRefused) -> bool;
    let cases: Vec<(PromotionRule, IsExpected)> = vec![
        (rule(&world, "*"), |r| {
            matches!(r, RuleRefused::OpenPattern { .. })
        }),
        (rule(&world, ""), |r| {
            matches!(r, RuleRefused::OpenPattern { .. })
        }),
        (
            PromotionRule {
                expires_at: now,
                ..good.clone()
            },
            |r| matches!(r, RuleRefused::Expired { .. }),
        ),
        (
            PromotionRule {
                expires_at: now.checked_add(91 * DAY).unwrap(),
                ..good.clone()
            },
            |r| matches!(r, RuleRefused::TooLong { .. }),
        ),
        (
            PromotionRule {
                tool: ToolName::new("fetch").unwrap(),
                ..good.clone()
            },
            |r| matches!(r, RuleRefused::OtherTool { .. }),
        ),
        (
            PromotionRule {
                server: ServerIdentity::new("web").unwrap(),
                ..good.clone()
            },
            |r| matches!(r, RuleRefused::OtherTool { .. }),
        ),
        (rule(&world, "file:src/*"), |r| {
            matches!(r, RuleRefused::OtherSubject { .. })
        }),
    ];
    for (rule, is_expected) in cases {
        let seat = &world.seats.policy;
        let refused = world
            .firewall
            .promote_by_rule(seat, &rule, id, &mut world.tape);
        match refused {
            Err(FirewallError::Rule(refused)) => assert!(is_expected(&refused), "{refused}"),
            other => panic!("{rule:?}: {other:?}"),
        }
        assert_eq!(world.truth(id), Truth::Unverified);
    }
    let longest = PromotionRule {
        expires_at: now.checked_add(90 * DAY).unwrap(),
        ..good.clone()
    };
    assert_eq!(longest.check(now), Ok(()));
    // A rule cannot bring back what was superseded or contradicted.
    let seat = &world.seats.policy;
    world
        .firewall
        .promote_by_rule(seat, &good, id, &mut world.tape)
        .unwrap();
    let refused = world
        .firewall
        .promote_by_rule(seat, &good, id, &mut world.tape);
    assert!(matches!(refused, Err(FirewallError::Move { .. })));
}

#[test]
fn beliefs_grow_stale_and_expire_by_the_clock_and_stay_supported() {
    let mut world = World::new();
    let measured = world.measure("fs", "a.md", "size", json!(1));
    assert_eq!(
        world
            .firewall
            .age(&crate::world::project(), &mut world.tape)
            .unwrap(),
        0
    );
    world.weather.pass(8 * DAY);
    assert_eq!(
        world
            .firewall
            .age(&crate::world::project(), &mut world.tape)
            .unwrap(),
        1
    );
    let axes = world.axes(measured.id);
    assert_eq!(
        (axes.freshness, axes.truth),
        (Freshness::Stale, Truth::Supported)
    );
    let context = world.context(None);
    assert_eq!(context.uncertainties, [measured.id]);
    // A clock that goes backwards makes nothing young.
    world.weather.set_back(20 * DAY);
    assert_eq!(
        world
            .firewall
            .age(&crate::world::project(), &mut world.tape)
            .unwrap(),
        0
    );
    assert_eq!(world.axes(measured.id).freshness, Freshness::Stale);
    world.weather.pass(45 * DAY);
    assert_eq!(
        world
            .firewall
            .age(&crate::world::project(), &mut world.tape)
            .unwrap(),
        1
    );
    assert_eq!(world.axes(measured.id).freshness, Freshness::Expired);
    assert!(world.context(None).beliefs.is_empty());
    assert_eq!(
        world
            .firewall
            .age(&crate::world::project(), &mut world.tape)
            .unwrap(),
        0
    );
}

#[test]
fn a_thousand_beliefs_that_are_due_at_once_all_grow_old() {
    let mut world = World::new();
    for i in 0..1100 {
        world.measure("fs", &format!("{i}.md"), "size", json!(i));
    }
    world.weather.pass(40 * DAY);
    assert_eq!(
        world
            .firewall
            .age(&crate::world::project(), &mut world.tape)
            .unwrap(),
        1100
    );
    assert!(world.context(None).beliefs.is_empty());
}

#[test]
fn nobody_may_reach_normal_through_reflection() {
    let mut world = World::new();
    let read = world.read("a.md", "status = done");
    let id = about(&read, "status");
    let seat = &world.seats.reflection;
    for to in [Retrieval::Normal.into(), Truth::Supported.into()] {
        let refused = world
            .firewall
            .shift(seat, id, to, Finding::Words("tidy"), &mut world.tape);
        assert!(matches!(refused, Err(FirewallError::Move { .. })));
    }
}
