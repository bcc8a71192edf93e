//! Terms, runs, attestations, evaluations, work; the kill switch and the outbox.

use lodestar_core::device::DeviceLevel;
use lodestar_core::execution::{Effect, ExecutionFact, ExecutionLevel, FactSet};
use lodestar_gateway::store::attestations::{self, AttestationRow};
use lodestar_gateway::store::effects::{self, EffectRow};
use lodestar_gateway::store::evaluations;
use lodestar_gateway::store::runs::{self, Run, RunCheckpoint};
use lodestar_gateway::store::submissions::{self, Submission};
use lodestar_gateway::store::terms::{self, TermsRow};
use lodestar_gateway::store::{Sql, battles, bundles, control, devices, outbox};

use crate::store::world::{
    BATTLE, a_run, account, an_attestation, an_evaluation, at, attestation, battle, device, digest,
    evaluation, furnish, ordered, refusal, run, submission, terms_id, write,
};

pub(super) fn terms_are_registered_once(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        let found = terms::get(sql, terms_id(1))?.unwrap();
        assert_eq!(
            terms::by_digest(sql, account(1), digest("terms"))?,
            Some(found.clone())
        );
        assert_eq!(terms::by_digest(sql, account(1), digest("others"))?, None);
        let again = TermsRow {
            id: terms_id(3),
            order: ordered(sql, "terms again", 1)?,
            ..found.clone()
        };
        assert!(!terms::add(sql, &again)?);
        let others = TermsRow {
            digest: digest("others"),
            ..again
        };
        assert!(terms::add(sql, &others)?);
        let entry = |terms: &TermsRow| terms::TermsEntry {
            id: terms.id,
            digest: terms.digest,
            registered_at: terms.registered_at,
        };
        let both = [entry(&found), entry(&others)];
        assert_eq!(terms::list(sql, account(1), None, 10)?, both);
        assert_eq!(terms::list(sql, account(1), Some(found.id), 10)?, both[1..]);
        assert_eq!(terms::list(sql, account(1), None, 1)?, both[..1]);
        Ok(())
    });
}

pub(super) fn runs_are_kept_as_they_were_registered(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        assert_eq!(runs::get(sql, run(1))?, Some(a_run(1, 1)));
        assert!(!runs::add(sql, &a_run(1, 1))?);
        let bare = Run {
            workflow_hash: None,
            lens_hash: None,
            ..a_run(3, 1)
        };
        assert!(runs::add(sql, &bare)?);
        let same_nonce = Run {
            id: run(4),
            ..a_run(3, 1)
        };
        assert!(!runs::add(sql, &same_nonce)?);
        assert_eq!(
            runs::list(sql, account(1), None, 9)?,
            [a_run(1, 1), bare.clone()]
        );
        assert_eq!(runs::list(sql, account(1), Some(run(1)), 9)?, [bare]);
        assert_eq!(runs::list(sql, account(2), None, 9)?, [a_run(2, 2)]);
        Ok(())
    });
    let of_another = Run {
        runner: a_run(2, 2).runner,
        ..a_run(5, 1)
    };
    refusal(sql, |sql| runs::add(sql, &of_another));
}

pub(super) fn checkpoints_and_bundles_come_once(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        let [first] = <[_; 1]>::try_from(runs::checkpoints(sql, run(1))?).unwrap();
        let fork = RunCheckpoint {
            root: digest("fork"),
            ..first.clone()
        };
        assert!(!runs::add_checkpoint(sql, &fork)?);
        let next = RunCheckpoint { size: 2, ..fork };
        assert!(runs::add_checkpoint(sql, &next)?);
        assert_eq!(runs::count_checkpoints(sql, run(1))?, 2);
        assert_eq!(runs::last_checkpoint(sql, run(1))?, Some(first.clone()));
        assert_eq!(runs::checkpoints(sql, run(1))?, [next, first]);
        let named = runs::session(sql, run(1))?.unwrap();
        assert!(!runs::name_session(sql, &named)?, "it is one already");
        assert!(runs::add(sql, &a_run(6, 1))?);
        let taken = runs::RunSession {
            run: run(6),
            ..named
        };
        assert!(!runs::name_session(sql, &taken)?, "another run is it");
        assert_eq!(runs::session(sql, run(6))?, None);

        let [bundle] = <[_; 1]>::try_from(bundles::of_run(sql, run(1))?).unwrap();
        assert!(!bundles::add(sql, &bundle)?);
        assert_eq!(
            bundles::get(sql, run(1), bundle.digest)?,
            Some(bundle.clone())
        );
        assert_eq!(bundles::get(sql, run(1), digest("none"))?, None);
        let other = bundles::BundleRow {
            digest: digest("other"),
            received_at: at(31),
            ..bundle.clone()
        };
        assert!(bundles::add(sql, &other)?);
        assert_eq!(bundles::of_run(sql, run(1))?, [bundle, other]);
        Ok(())
    });
}

pub(super) fn attestations_come_back_and_count(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        let wanted = an_attestation(1, 1);
        assert_eq!(
            attestations::get(sql, attestation(1))?,
            Some(wanted.clone())
        );
        assert_eq!(
            attestations::by_statement(sql, wanted.statement)?,
            Some(wanted.clone())
        );
        assert_eq!(attestations::by_statement(sql, digest("none"))?, None);
        assert!(!attestations::add(sql, &wanted)?);
        let same_nonce = AttestationRow {
            nonce: wanted.nonce,
            ..an_attestation(9, 1)
        };
        assert!(!attestations::add(sql, &same_nonce)?);
        assert_eq!(
            devices::get(sql, device(1))?.unwrap().last_attested,
            Some(at(40))
        );

        // One that nobody signed counts for nothing.
        let unsigned = AttestationRow {
            signature_ok: false,
            received_at: at(50),
            ..an_attestation(9, 1)
        };
        assert!(attestations::add(sql, &unsigned)?);
        assert_eq!(
            devices::get(sql, device(1))?.unwrap().last_attested,
            Some(at(40))
        );
        let signed = AttestationRow {
            received_at: at(55),
            ..an_attestation(10, 1)
        };
        assert!(attestations::add(sql, &signed)?);
        assert_eq!(
            devices::get(sql, device(1))?.unwrap().last_attested,
            Some(at(55))
        );

        let ids = |found: Vec<AttestationRow>| found.iter().map(|one| one.id).collect::<Vec<_>>();
        let all = [101, 1, 9, 10].map(attestation);
        assert_eq!(ids(attestations::of_run(sql, run(1))?), all);
        assert_eq!(
            ids(attestations::of_device_since(sql, device(1), at(40))?),
            all[1..]
        );
        assert_eq!(
            ids(attestations::of_device_since(sql, device(1), at(41))?),
            all[2..]
        );
        Ok(())
    });
    let wrong_level = AttestationRow {
        device_level: DeviceLevel::Approved,
        ..an_attestation(11, 1)
    };
    refusal(sql, |sql| attestations::add(sql, &wrong_level));
}

pub(super) fn evaluations_come_in_their_order(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        let best = an_evaluation(1, 1, FactSet::FULL);
        assert_eq!(best.level, ExecutionLevel::FullyTrusted);
        assert_eq!(evaluations::latest(sql, run(1))?, Some(best.clone()));
        // A lower id, made later.
        let lower = evaluations::EvaluationRow {
            id: evaluation(0),
            ..an_evaluation(9, 1, FactSet::FULL.without(ExecutionFact::RunnerBound))
        };
        assert_eq!(lower.level, ExecutionLevel::DeviceVerified);
        evaluations::add(sql, &lower)?;
        assert_eq!(evaluations::latest(sql, run(1))?, Some(lower.clone()));
        assert_eq!(evaluations::get(sql, evaluation(0))?, Some(lower.clone()));
        assert_eq!(evaluations::of_run(sql, run(1))?, [best, lower]);
        assert_eq!(evaluations::latest(sql, run(9))?, None);
        Ok(())
    });
    refusal(sql, |sql| {
        evaluations::add(sql, &an_evaluation(1, 1, FactSet::FULL))
    });
}

pub(super) fn work_earns_each_effect_once(sql: &mut dyn Sql) {
    furnish(sql);
    let earned = |effect, by: Option<u64>| EffectRow {
        submission: submission(1),
        effect,
        evaluation: by.map(evaluation),
        at: at(70),
    };
    write(sql, |sql| {
        assert!(effects::grant(
            sql,
            &earned(Effect::SubmissionCompleted, None)
        )?);
        assert!(!effects::grant(
            sql,
            &earned(Effect::SubmissionCompleted, Some(1))
        )?);
        for &effect in Effect::ALL {
            let first = effect != Effect::SubmissionCompleted;
            assert_eq!(effects::grant(sql, &earned(effect, Some(1)))?, first);
            assert!(!effects::grant(sql, &earned(effect, Some(1)))?);
        }
        let mut found = effects::of_submission(sql, submission(1))?;
        found.sort_by_key(|row| row.effect);
        let wanted = Effect::ALL.iter().map(|&effect| {
            let by = (effect != Effect::SubmissionCompleted).then_some(1);
            earned(effect, by)
        });
        assert_eq!(found, wanted.collect::<Vec<_>>());
        assert_eq!(effects::of_submission(sql, submission(2))?, []);
        Ok(())
    });
}

pub(super) fn contests_have_standings(sql: &mut dyn Sql) {
    furnish(sql);
    write(sql, |sql| {
        let contest = battles::get(sql, battle(BATTLE))?.unwrap();
        assert!(!battles::add(sql, &contest)?);
        assert_eq!(battles::list(sql)?, [contest]);
        let parts = battles::participations(sql, battle(BATTLE))?;
        assert_eq!(parts.len(), 2);
        assert!(!battles::join(sql, &parts[0])?);
        let work = submissions::of_battle(sql, battle(BATTLE))?;
        let ids: Vec<_> = work.iter().map(|one| one.id).collect();
        assert_eq!(ids, [submission(1), submission(2)]);
        assert_eq!(submissions::get(sql, submission(1))?, Some(work[0].clone()));
        assert!(!submissions::add(sql, &work[0])?);
        assert!(!submissions::link(sql, submission(1), run(1), account(1))?);
        assert_eq!(submissions::runs(sql, submission(1))?, [run(1)]);
        assert_eq!(submissions::of_run(sql, run(1))?, [work[0].clone()]);
        let loose = Submission {
            id: submission(3),
            battle: None,
            ..work[0].clone()
        };
        assert!(submissions::add(sql, &loose)?);
        assert_eq!(submissions::list(sql, account(1), None, 9)?.len(), 2);
        assert_eq!(
            submissions::list(sql, account(1), Some(submission(1)), 9)?,
            [loose]
        );
        let earned = EffectRow {
            submission: submission(2),
            effect: Effect::TieBreak,
            evaluation: Some(evaluation(2)),
            at: at(70),
        };
        assert!(effects::grant(sql, &earned)?);
        assert_eq!(effects::of_battle(sql, battle(BATTLE))?, [earned]);
        assert_eq!(effects::of_battle(sql, battle(9))?, []);
        Ok(())
    });
}

pub(super) fn the_kill_switch_is_one(sql: &mut dyn Sql) {
    write(sql, |sql| {
        let never = control::get(sql)?;
        assert_eq!(
            (never.kill_switch, never.since, &*never.reason),
            (false, None, "")
        );
        control::set(sql, true, at(5), "fire")?;
        let thrown = control::get(sql)?;
        assert_eq!(
            (thrown.kill_switch, thrown.since, &*thrown.reason),
            (true, Some(at(5)), "fire")
        );
        control::set(sql, false, at(6), "out")?;
        assert!(!control::get(sql)?.kill_switch);
        Ok(())
    });
}

pub(super) fn the_outbox_keeps_its_order_and_its_numbers(sql: &mut dyn Sql) {
    let numbers = |found: &[outbox::Outgoing]| found.iter().map(|one| one.n).collect::<Vec<_>>();
    let last = write(sql, |sql| {
        for text in ["a", "b", "c"] {
            outbox::push(sql, "device.approved@1", text, at(5))?;
        }
        let found = outbox::waiting(sql, 2)?;
        assert_eq!((&*found[0].payload, &*found[1].payload), ("a", "b"));
        assert_eq!((&*found[0].kind, found[0].at), ("device.approved@1", at(5)));
        let all = numbers(&outbox::waiting(sql, 9)?);
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
        assert_eq!(outbox::remove_through(sql, all[1])?, 2);
        assert_eq!(numbers(&outbox::waiting(sql, 9)?), all[2..]);
        assert_eq!(outbox::remove_through(sql, u64::MAX)?, 1);
        Ok(all[2])
    });
    write(sql, |sql| {
        outbox::push(sql, "device.approved@1", "d", at(5))?;
        let [next] = <[_; 1]>::try_from(outbox::waiting(sql, 9)?).unwrap();
        assert!(next.n > last, "a number is never used again");
        Ok(())
    });
}
