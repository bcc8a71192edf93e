//! What is refused beyond keys and checks, and what follows from a row by itself.
//!
//! Expressions are read by both databases. A rule asks for what has to be there (`NOT EXISTS …`), so that a row that is
//! hidden from whoever acts is a row that is not there.

use lodestar_core::device::{DeviceActor, DeviceEvent, DeviceLevel};
use lodestar_core::execution::{ExecutionFact, ExecutionLevel, FactSet};

use super::{Consequence, On, Rule};

/// What happens with a row, in the same statement.
pub(in crate::store) const CONSEQUENCES: &[Consequence] = &[
    Consequence {
        table: "devices",
        on: On::Insert,
        when: "1 = 1",
        statements: &[
            "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
             VALUES (NEW.id, NULL, NEW.level, 'register', 'owner', NEW.registered_at, 'registered')",
        ],
    },
    // The level is what the last transition says.
    Consequence {
        table: "device_transitions",
        on: On::Insert,
        when: "NEW.from_level <> NEW.to_level",
        statements: &[
            "UPDATE devices SET level = NEW.to_level, level_since = NEW.at WHERE id = NEW.device",
        ],
    },
    // The keys are the last that were given; the first come without an order.
    Consequence {
        table: "device_keys",
        on: On::Insert,
        when: "NEW.order_digest IS NULL",
        statements: &[
            "UPDATE devices SET key = NEW.key, log_key = NEW.log_key WHERE id = NEW.device",
        ],
    },
    Consequence {
        table: "device_keys",
        on: On::Insert,
        when: "NEW.order_digest IS NOT NULL",
        statements: &[
            "UPDATE devices SET key = NEW.key, log_key = NEW.log_key, challenge_passed_at =
                 CASE WHEN level IN ('approved', 'trusted') THEN challenge_passed_at END
             WHERE id = NEW.device",
            "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
             SELECT d.id, d.level, l.to_level, l.event, l.actor, NEW.at, 'key rotation', NEW.order_digest
             FROM devices AS d JOIN legal_transitions AS l ON l.from_level = d.level
             WHERE d.id = NEW.device AND l.event = 'rotate_key'",
        ],
    },
    Consequence {
        table: "challenges",
        on: On::Update(&["passed_at"]),
        when: "NEW.passed_at IS NOT NULL",
        statements: &[
            "UPDATE devices SET challenge_passed_at = NEW.passed_at WHERE id = NEW.device",
        ],
    },
    // What counts for trust is whose signature verified.
    Consequence {
        table: "attestations",
        on: On::Insert,
        when: "NEW.signature_ok = 1",
        statements: &[
            "UPDATE devices SET last_attested = NEW.received_at
             WHERE id = NEW.device AND (last_attested IS NULL OR last_attested < NEW.received_at)",
        ],
    },
];

/// Columns that are set once.
pub(in crate::store) const ONCE: &[(&str, &[&str])] = &[
    ("devices", &["compromised_since"]),
    ("tokens", &["used_at"]),
    ("tokens", &["revoked_at"]),
    ("bindings", &["unbound_at"]),
    ("challenges", &["passed_at"]),
];

/// Every rule.
pub(in crate::store) fn rules() -> Vec<Rule> {
    let mut rules = Vec::new();
    for &(table, columns) in ONCE {
        let column = columns[0];
        rules.push(Rule {
            table,
            on: On::Update(columns),
            when: format!(
                "OLD.{column} IS NOT NULL AND NEW.{column} IS DISTINCT FROM OLD.{column}"
            ),
            because: "what was set once stays",
        });
    }
    rules.extend(devices());
    rules.extend(transitions());
    rules.extend(keys());
    rules.extend(runs());
    rules.extend(attestations());
    rules.extend(evaluations());
    rules.extend(submissions());
    rules
}

fn rule(table: &'static str, on: On, when: impl Into<String>, because: &'static str) -> Rule {
    Rule {
        table,
        on,
        when: when.into(),
        because,
    }
}

/// A device begins with nothing, and its level, keys and dates are those of the rows they follow.
fn devices() -> Vec<Rule> {
    vec![
        rule(
            "devices",
            On::Insert,
            "NEW.level <> 'pending' OR NEW.level_since <> NEW.registered_at OR NEW.key IS NOT NULL
             OR NEW.challenge_passed_at IS NOT NULL OR NEW.last_heartbeat IS NOT NULL
             OR NEW.continuous_since IS NOT NULL OR NEW.last_attested IS NOT NULL",
            "a device begins pending, without a key, and never heard of",
        ),
        rule(
            "devices",
            On::Update(&["level", "level_since"]),
            "(NEW.level <> OLD.level OR NEW.level_since <> OLD.level_since) AND NOT EXISTS
             (SELECT 1 FROM device_transitions AS t WHERE t.device = OLD.id
              AND t.n = (SELECT max(l.n) FROM device_transitions AS l WHERE l.device = OLD.id)
              AND t.from_level = OLD.level AND t.to_level = NEW.level AND t.at = NEW.level_since)",
            "a level moves with a transition, and as it says",
        ),
        rule(
            "devices",
            On::Update(&["key", "log_key"]),
            "(NEW.key IS DISTINCT FROM OLD.key OR NEW.log_key IS DISTINCT FROM OLD.log_key) AND NOT EXISTS
             (SELECT 1 FROM device_keys AS k WHERE k.device = OLD.id
              AND k.n = (SELECT max(l.n) FROM device_keys AS l WHERE l.device = OLD.id)
              AND k.key = NEW.key AND k.log_key = NEW.log_key)",
            "the keys of a device are the last that were given",
        ),
        rule(
            "devices",
            On::Update(&["challenge_passed_at"]),
            "NEW.challenge_passed_at IS DISTINCT FROM OLD.challenge_passed_at
             AND NOT (NEW.challenge_passed_at IS NULL AND NEW.key <> OLD.key)
             AND NOT EXISTS (SELECT 1 FROM challenges AS c WHERE c.device = OLD.id
                 AND c.n = (SELECT max(l.n) FROM challenges AS l WHERE l.device = OLD.id)
                 AND c.key = NEW.key AND c.passed_at = NEW.challenge_passed_at)",
            "a challenge is passed where it stands, with the key that the device has",
        ),
        rule(
            "devices",
            On::Update(&["last_attested"]),
            "NEW.last_attested IS DISTINCT FROM OLD.last_attested AND NOT EXISTS
             (SELECT 1 FROM attestations AS a WHERE a.device = OLD.id
              AND a.received_at = NEW.last_attested AND a.signature_ok = 1)",
            "a device attested when an attestation came",
        ),
    ]
}

fn transitions() -> Vec<Rule> {
    let refused = |when: String, because| rule("device_transitions", On::Insert, when, because);
    let (approved, trusted) = (DeviceLevel::Approved, DeviceLevel::Trusted);
    vec![
        refused(
            "NOT EXISTS (SELECT 1 FROM legal_transitions AS l WHERE l.from_level = COALESCE(NEW.from_level, '')
             AND l.to_level = NEW.to_level AND l.event = NEW.event AND l.actor = NEW.actor)"
                .to_owned(),
            "the table of moves has no such row",
        ),
        refused(
            "NOT EXISTS (SELECT 1 FROM devices AS d WHERE d.id = NEW.device AND d.level = COALESCE(NEW.from_level, d.level))
             OR (NEW.from_level IS NULL) =
                EXISTS (SELECT 1 FROM device_transitions AS t WHERE t.device = NEW.device)"
                .to_owned(),
            "a device leaves the level that it stands on",
        ),
        refused(
            format!(
                "NEW.to_level IN ('{approved}', '{trusted}') AND NOT EXISTS (SELECT 1 FROM devices AS d
                 WHERE d.id = NEW.device AND d.key IS NOT NULL AND d.challenge_passed_at IS NOT NULL)"
            ),
            "approval needs a key that passed its challenge",
        ),
        refused(
            format!(
                "NEW.to_level = '{trusted}' AND NOT EXISTS (SELECT 1 FROM devices AS d WHERE d.id = NEW.device
                 AND d.level = '{approved}' AND d.last_heartbeat IS NOT NULL AND d.continuous_since IS NOT NULL
                 AND d.last_attested IS NOT NULL)"
            ),
            "trust comes out of approval, with heartbeats and an attestation that counted",
        ),
        refused(
            format!(
                "NEW.actor = '{}' AND NEW.event <> '{}' AND NOT EXISTS
                 (SELECT 1 FROM orders AS o JOIN devices AS d ON d.account = o.account
                  WHERE o.digest = NEW.order_digest AND d.id = NEW.device)",
                DeviceActor::Owner,
                DeviceEvent::Register
            ),
            "the owner acts by an order of the device's account",
        ),
        refused(
            format!(
                "NEW.event = '{}' AND NOT EXISTS (SELECT 1 FROM device_keys AS k
                 WHERE k.device = NEW.device AND k.order_digest = NEW.order_digest)",
                DeviceEvent::RotateKey
            ),
            "a rotation has its keys",
        ),
    ]
}

fn keys() -> Vec<Rule> {
    vec![
        rule(
            "device_keys",
            On::Insert,
            "NOT EXISTS (SELECT 1 FROM devices AS d JOIN device_levels AS l ON l.level = d.level
                 WHERE d.id = NEW.device AND l.permanent = 0
                 AND ((NEW.order_digest IS NULL AND d.key IS NULL AND d.level = 'pending')
                   OR (NEW.order_digest IS NOT NULL AND d.key IS NOT NULL AND EXISTS
                      (SELECT 1 FROM orders AS o WHERE o.digest = NEW.order_digest AND o.account = d.account))))",
            "a pending device gets its first keys, and others by an order of its account",
        ),
        rule(
            "challenges",
            On::Insert,
            "NEW.passed_at IS NOT NULL OR NOT EXISTS
             (SELECT 1 FROM devices AS d JOIN device_levels AS l ON l.level = d.level
              WHERE d.id = NEW.device AND d.key = NEW.key AND l.permanent = 0)",
            "a challenge is open at first, and for the key that the device has",
        ),
        rule(
            "challenges",
            On::Update(&["passed_at"]),
            "NEW.passed_at IS DISTINCT FROM OLD.passed_at AND (NOT EXISTS
             (SELECT 1 FROM devices AS d WHERE d.id = OLD.device AND d.key = OLD.key)
             OR OLD.n <> (SELECT max(l.n) FROM challenges AS l WHERE l.device = OLD.device))",
            "only the last challenge can be passed, with the key that it is for",
        ),
    ]
}

fn runs() -> Vec<Rule> {
    let standing =
        "NOT EXISTS (SELECT 1 FROM devices AS d JOIN device_levels AS l ON l.level = d.level
         WHERE d.id = NEW.device AND l.permanent = 0)";
    let registered = "NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = NEW.run
         AND r.registered_at <= NEW.received_at)";
    let since = "nothing comes of a run before it is registered";
    vec![
        rule(
            "bindings",
            On::Insert,
            format!("NEW.unbound_at IS NOT NULL OR {standing}"),
            "a binding begins, on a device that is not gone for good",
        ),
        rule(
            "runs",
            On::Insert,
            standing,
            "a device that is gone for good makes no run",
        ),
        rule(
            "runs",
            On::Insert,
            "NOT EXISTS (SELECT 1 FROM terms AS t WHERE t.id = NEW.terms AND t.registered_at <= NEW.registered_at)",
            "terms are registered before a run",
        ),
        rule("run_checkpoints", On::Insert, registered, since),
        rule(
            "run_checkpoints",
            On::Insert,
            "NOT EXISTS (SELECT 1 FROM run_sessions AS s WHERE s.run = NEW.run)",
            "a run's session is known before its checkpoints",
        ),
        rule("bundles", On::Insert, registered, since),
        rule("attestations", On::Insert, registered, since),
    ]
}

/// What the server says it derived has something behind it.
fn attestations() -> Vec<Rule> {
    let refused = |when, because| rule("attestations", On::Insert, when, because);
    vec![
        refused(
            "NOT EXISTS (SELECT 1 FROM devices AS d JOIN device_levels AS l ON l.level = d.level
             WHERE d.id = NEW.device AND d.level = NEW.device_level AND l.attests = 1)",
            "the level is the device's, and one from which attestations are taken",
        ),
        refused(
            "NEW.gateway_verified = 1 AND NOT EXISTS
             (SELECT 1 FROM bundles AS b JOIN run_checkpoints AS c ON c.run = b.run AND c.received_at <= b.received_at
              WHERE b.run = NEW.run AND b.root = NEW.root AND b.size = NEW.size)",
            "a log that was verified came as a bundle, after a checkpoint",
        ),
        refused(
            "NEW.runner_bound = 1 AND NOT EXISTS
             (SELECT 1 FROM runs AS r JOIN bindings AS b ON b.device = r.device AND b.runner = r.runner
              WHERE r.id = NEW.run AND b.unbound_at IS NULL)",
            "a runner that is bound has an active binding",
        ),
        refused(
            "NEW.runner_fresh = 1 AND NOT EXISTS
             (SELECT 1 FROM runs AS r JOIN runners AS u ON u.id = r.runner
              WHERE r.id = NEW.run AND u.last_heartbeat IS NOT NULL)",
            "a runner that is fresh was heard of",
        ),
    ]
}

/// Facts hold of the attestation that is named, and of the run.
fn evaluations() -> Vec<Rule> {
    use ExecutionFact::*;
    let refused = |when, because| rule("evaluations", On::Insert, when, because);
    let claims = |facts: &[ExecutionFact]| {
        let bits = facts.iter().copied().collect::<FactSet>().bits();
        format!("((NEW.facts & {bits}) <> 0)")
    };
    let of_attestation = [
        (AttestationPresent, "a.id = NEW.attestation"),
        (AttestationValid, "a.valid = 1"),
        (
            DeviceTrusted,
            "(a.device_level = 'trusted' AND (d.compromised_since IS NULL OR a.received_at < d.compromised_since))",
        ),
        (RunnerBound, "a.runner_bound = 1"),
        (RunnerFresh, "a.runner_fresh = 1"),
        (SignatureVerifies, "a.signature_ok = 1"),
        (GatewayVerified, "a.gateway_verified = 1"),
        (PolicyPassed, "a.policy_passed = 1"),
    ];
    let any = of_attestation.map(|(fact, _)| fact);
    let each = of_attestation.map(|(fact, holds)| format!("(NOT {} OR {holds})", claims(&[fact])));
    vec![
        refused(
            format!(
                "{} AND NOT EXISTS (SELECT 1 FROM attestations AS a JOIN devices AS d ON d.id = a.device
                 WHERE a.id = NEW.attestation AND {})",
                claims(&any),
                each.join(" AND ")
            ),
            "a fact about an attestation holds of the one that is named",
        ),
        refused(
            format!(
                "NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = NEW.run
                 AND (NOT {} OR r.workflow_hash IS NOT NULL) AND (NOT {} OR r.lens_hash IS NOT NULL))",
                claims(&[WorkflowRecorded]),
                claims(&[LensRecorded])
            ),
            "a hash that is recorded stands in the run",
        ),
        refused(
            "NOT EXISTS (SELECT 1 FROM execution_levels AS l WHERE l.facts = NEW.facts
             AND l.level = NEW.level AND l.stopped_by IS NOT DISTINCT FROM NEW.stopped_by)"
                .to_owned(),
            "the level, and what stopped it, follow from the facts",
        ),
    ]
}

fn submissions() -> Vec<Rule> {
    vec![
        rule(
            "submissions",
            On::Insert,
            "NEW.battle IS NOT NULL AND NOT EXISTS (SELECT 1 FROM participations AS p
             WHERE p.battle = NEW.battle AND p.account = NEW.account)",
            "work is handed in by an account that takes part",
        ),
        rule(
            "submission_runs",
            On::Insert,
            "NOT EXISTS (SELECT 1 FROM submissions AS s JOIN runs AS r ON r.id = NEW.run
             WHERE s.id = NEW.submission AND (s.battle IS NULL OR EXISTS (SELECT 1 FROM participations AS p
                 WHERE p.battle = s.battle AND p.account = r.account AND p.agent = r.agent)))",
            "in a contest, a run is one of an agent that takes part",
        ),
        rule(
            "effects",
            On::Insert,
            format!(
                "NOT EXISTS (SELECT 1 FROM effect_levels AS l WHERE l.effect = NEW.effect
                 AND ((NEW.evaluation IS NULL AND l.level = '{}') OR EXISTS
                     (SELECT 1 FROM evaluations AS e JOIN submission_runs AS s ON s.run = e.run
                      WHERE e.id = NEW.evaluation AND e.level = l.level AND s.submission = NEW.submission
                      AND e.n = (SELECT max(o.n) FROM evaluations AS o WHERE o.run = e.run))))",
                ExecutionLevel::Unverified
            ),
            "an effect is earned by what a run of the submission amounts to",
        ),
    ]
}
