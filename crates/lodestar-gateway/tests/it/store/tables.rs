//! What the databases compare with is what `lodestar-core` decides by.

use std::collections::BTreeSet;

use lodestar_core::device;
use lodestar_core::execution::{Effect, ExecutionFact, ExecutionLevel, FactSet, evaluate};
use lodestar_gateway::store::{Row, Sql, evaluations};

use super::place::on_both;
use super::world::{an_evaluation, evaluation, furnish, refusal, write};

fn rows(sql: &mut dyn Sql, text: &'static str) -> Vec<Row> {
    write(sql, |sql| sql.query(text, &[]))
}

#[test]
fn they_have_the_tables_of_core() {
    on_both(|place| {
        let mut sql = place.open();
        let found: BTreeSet<[String; 4]> = rows(
            &mut *sql,
            "SELECT from_level, to_level, event, actor FROM legal_transitions",
        )
        .into_iter()
        .map(|mut row| std::array::from_fn(|_| row.read().unwrap()))
        .collect();
        let wanted = device::rows().map(|row| {
            let from = row.from.map_or(String::new(), |from| from.to_string());
            [
                from,
                row.to.to_string(),
                row.event.to_string(),
                row.actor.to_string(),
            ]
        });
        assert_eq!(found, wanted.collect());

        let found = rows(
            &mut *sql,
            "SELECT facts, level, stopped_by FROM execution_levels ORDER BY facts",
        );
        assert_eq!(found.len(), 1 << ExecutionFact::ALL.len());
        for (mut row, facts) in found.into_iter().zip(FactSet::all()) {
            let made = evaluate(facts);
            assert_eq!(row.read::<FactSet>().unwrap(), facts);
            assert_eq!(row.read::<ExecutionLevel>().unwrap(), made.level());
            assert_eq!(
                row.read::<Option<ExecutionFact>>().unwrap(),
                made.stopped_by()
            );
        }

        let found: BTreeSet<(Effect, ExecutionLevel)> =
            rows(&mut *sql, "SELECT effect, level FROM effect_levels")
                .into_iter()
                .map(|mut row| (row.read().unwrap(), row.read().unwrap()))
                .collect();
        let of = |level: ExecutionLevel| level.effects().map(move |effect| (effect, level));
        assert_eq!(
            found,
            ExecutionLevel::ALL.iter().copied().flat_map(of).collect()
        );
    });
}

/// With everything behind it, each set of facts is taken with its own level, and with no other.
#[test]
fn every_set_of_facts_has_one_level() {
    on_both(|place| {
        let mut sql = place.open();
        furnish(&mut *sql);
        let (mut taken, mut refused) = (0, 0);
        write(&mut *sql, |sql| {
            for (n, facts) in (100..).zip(FactSet::all()) {
                evaluations::add(sql, &an_evaluation(n, 1, facts))?;
                taken += 1;
            }
            Ok(())
        });
        for (n, facts) in (10_000..).zip(FactSet::all()).step_by(37) {
            for &level in ExecutionLevel::ALL {
                let claimed = evaluations::EvaluationRow {
                    level,
                    ..an_evaluation(n, 1, facts)
                };
                if level != evaluate(facts).level() {
                    refusal(&mut *sql, |sql| evaluations::add(sql, &claimed));
                    refused += 1;
                }
            }
        }
        assert_eq!((taken, refused), (4096, 111 * 6));
    });
}

/// Of an attestation with nothing behind it, each fact is refused by itself.
#[test]
fn no_fact_is_taken_that_nothing_says() {
    on_both(|place| {
        let mut sql = place.open();
        furnish(&mut *sql);
        write(&mut *sql, |sql| {
            let bare = lodestar_gateway::store::attestations::AttestationRow {
                valid: false,
                signature_ok: false,
                gateway_verified: false,
                policy_passed: false,
                runner_bound: false,
                runner_fresh: false,
                ..super::world::an_attestation(9, 1)
            };
            lodestar_gateway::store::attestations::add(sql, &bare).map(|new| assert!(new))
        });
        // The device was trusted when it came, and the run has its hashes.
        use ExecutionFact::*;
        let said = [
            AttestationPresent,
            AccountOwnsRun,
            ContenderOwned,
            DeviceTrusted,
            WorkflowRecorded,
            LensRecorded,
        ];
        for (n, &fact) in (100..).zip(ExecutionFact::ALL) {
            let mut claimed = an_evaluation(n, 1, FactSet::EMPTY.with(fact));
            claimed.attestation = Some(super::world::attestation(9));
            match said.contains(&fact) {
                true => write(&mut *sql, |sql| evaluations::add(sql, &claimed)),
                false => {
                    let because = refusal(&mut *sql, |sql| evaluations::add(sql, &claimed));
                    assert!(
                        because.contains("the one that is named"),
                        "{fact}: {because}"
                    );
                }
            }
        }
        let last = write(&mut *sql, |sql| {
            evaluations::latest(sql, super::world::run(1))
        });
        assert_eq!(
            last.unwrap().id,
            evaluation(111),
            "the last fact that was taken"
        );
    });
}
