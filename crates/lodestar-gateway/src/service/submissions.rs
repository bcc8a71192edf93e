//! Work that is handed in, and where everybody stands.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lodestar_core::event::EventType;
use lodestar_core::execution::{Effect, ExecutionLevel};
use lodestar_core::id::{AccountId, BattleId, ContenderId, RunId, SubmissionId};
use serde_json::json;

use super::desk::{Desk, Stop, new_id};
use super::known::Identity;
use super::runs::owned_run;
use super::{Service, grading, name, page};
use crate::code::{Code, Refusal};
use crate::store::submissions::{self, Submission};
use crate::store::{battles, effects, evaluations};
use crate::wire;

impl Service {
    /// Takes a piece of work.
    pub async fn hand_in(
        &self,
        caller: Identity,
        asked: wire::HandIn,
    ) -> Result<wire::Submission, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            if let Some(battle) = asked.battle {
                in_battle(desk, &caller, battle)?;
            }
            let submission = Submission {
                id: new_id!(SubmissionId, desk.now),
                account: caller.account,
                battle: asked.battle,
                content: asked.content.to_string(),
                created_at: desk.now,
            };
            if !submissions::add(desk.sql, &submission)? {
                return Err(Code::Internal.into());
            }
            let payload = json!({
                "account": caller.account,
                "submission": submission.id,
                "battle": submission.battle,
                "content": asked.content,
            });
            desk.record(EventType::SUBMISSION_RECEIVED, &payload)?;
            grading::reward(desk, submission.id, None)?;
            if let Some(run) = asked.run {
                link(desk, &caller, &submission, run)?;
            }
            shown(desk, submission)
        })
        .await
    }

    /// Puts one more run behind a submission.
    pub async fn link_run(
        &self,
        caller: Identity,
        id: SubmissionId,
        asked: wire::LinkRun,
    ) -> Result<wire::Submission, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let submission = owned_submission(desk, &caller, id)?;
            link(desk, &caller, &submission, asked.run)?;
            shown(desk, submission)
        })
        .await
    }

    /// One submission.
    pub async fn submission(
        &self,
        caller: Identity,
        id: SubmissionId,
    ) -> Result<wire::Submission, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let submission = owned_submission(desk, &caller, id)?;
            shown(desk, submission)
        })
        .await
    }

    /// The account's submissions.
    pub async fn submissions(
        &self,
        caller: Identity,
        after: Option<SubmissionId>,
        limit: usize,
    ) -> Result<wire::Page<wire::Submission>, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = submissions::list(desk.sql, caller.account, after, limit + 1)?;
            let mut items = Vec::with_capacity(found.len());
            for submission in found {
                items.push(shown(desk, submission)?);
            }
            Ok(page(items, limit, |submission| submission.id.to_string()))
        })
        .await
    }

    /// Where everybody stands in a battle that the account takes part in.
    pub async fn standings(
        &self,
        caller: Identity,
        id: BattleId,
    ) -> Result<wire::Standings, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let battle = in_battle(desk, &caller, id)?;
            // Others' places are part of the answer, and nothing else of theirs.
            desk.sql.act_as_server()?;
            Ok(wire::Standings {
                battle: id,
                name: name(&battle.name)?,
                places: places(desk, id)?,
            })
        })
        .await
    }
}

/// The battle, if the account takes part.
fn in_battle(
    desk: &mut Desk<'_>,
    caller: &Identity,
    id: BattleId,
) -> Result<battles::Battle, Stop> {
    let battle = battles::get(desk.sql, id)?.ok_or(Code::BattleUnknown)?;
    let part = battles::participations(desk.sql, id)?;
    let own = |part: &battles::Participation| part.account == caller.account;
    match part.iter().any(own) {
        true => Ok(battle),
        false => Err(Code::NotInBattle.into()),
    }
}

fn owned_submission(
    desk: &mut Desk<'_>,
    caller: &Identity,
    id: SubmissionId,
) -> Result<Submission, Stop> {
    let found = submissions::get(desk.sql, id)?;
    let found = found.filter(|submission| submission.account == caller.account);
    found.ok_or_else(|| Code::SubmissionUnknown.into())
}

/// Puts a run behind a submission, which is then worth what the run is. A run stands behind one: else the same
/// work would earn as often as it is handed in.
fn link(
    desk: &mut Desk<'_>,
    caller: &Identity,
    submission: &Submission,
    id: RunId,
) -> Result<(), Stop> {
    let run = owned_run(desk, caller, id)?;
    if !submissions::of_run(desk.sql, id)?.is_empty() {
        return Err(Code::RunSubmitted.into());
    }
    if let Some(battle) = submission.battle {
        let part = battles::participations(desk.sql, battle)?;
        if !part.iter().any(|part| part.agent == run.agent) {
            let why = "the run's agent takes no part in this battle";
            return Err(Refusal::saying(Code::NotInBattle, why).into());
        }
    }
    if !submissions::link(desk.sql, submission.id, id, caller.account)? {
        return Err(Code::RunSubmitted.into());
    }
    let payload = json!({"account": caller.account, "submission": submission.id, "run": id});
    desk.record(EventType::SUBMISSION_LINKED, &payload)?;
    let device = crate::store::devices::get(desk.sql, run.device)?;
    let doubted = device.and_then(|device| device.compromised_since);
    grading::grade(desk, &run, doubted, "submission")?;
    Ok(())
}

fn shown(desk: &mut Desk<'_>, submission: Submission) -> Result<wire::Submission, Stop> {
    let runs = submissions::runs(desk.sql, submission.id)?;
    let mut level = ExecutionLevel::Unverified;
    for run in &runs {
        let latest = evaluations::latest(desk.sql, *run)?;
        level = level.max(latest.map_or(level, |latest| latest.level));
    }
    let earned = effects::of_submission(desk.sql, submission.id)?;
    let earned = earned.iter().map(|row| row.effect);
    let earned = earned.filter(|effect| effect.earned_from() <= level);
    let earned = earned.map(|effect| effect.to_string());
    Ok(wire::Submission {
        id: submission.id,
        content: submission.content.parse().map_err(|_| Code::Internal)?,
        battle: submission.battle,
        level,
        effects: earned.collect(),
        created_at: submission.created_at,
        runs,
    })
}

/// Everybody who takes part, by what their best submission earned and its level still covers; a tie is broken by who
/// is fully trusted, then by who was first.
fn places(desk: &mut Desk<'_>, battle: BattleId) -> Result<Vec<wire::Place>, Stop> {
    let part = battles::participations(desk.sql, battle)?;
    let handed = submissions::of_battle(desk.sql, battle)?;
    let mut earned: BTreeMap<SubmissionId, Vec<Effect>> = BTreeMap::new();
    for row in effects::of_battle(desk.sql, battle)? {
        earned.entry(row.submission).or_default().push(row.effect);
    }
    let mut behind: BTreeMap<SubmissionId, Vec<ContenderId>> = BTreeMap::new();
    let mut levels: BTreeMap<SubmissionId, ExecutionLevel> = BTreeMap::new();
    for (submission, agent, level) in submissions::runs_of_battle(desk.sql, battle)? {
        behind.entry(submission).or_default().push(agent);
        let known = levels
            .entry(submission)
            .or_insert(ExecutionLevel::Unverified);
        *known = (*known).max(level.unwrap_or(ExecutionLevel::Unverified));
    }
    let mut by_account: BTreeMap<AccountId, Vec<&Submission>> = BTreeMap::new();
    for submission in &handed {
        let own = by_account.entry(submission.account).or_default();
        own.push(submission);
    }
    let mut entries = Vec::with_capacity(part.len());
    for participation in part {
        let mut best = None;
        let own = by_account.get(&participation.account);
        for submission in own.into_iter().flatten() {
            // Without a run, it is the whole account's.
            let agents = behind.get(&submission.id);
            if agents.is_some_and(|agents| !agents.contains(&participation.agent)) {
                continue;
            }
            let level = levels.get(&submission.id);
            let level = level.copied().unwrap_or(ExecutionLevel::Unverified);
            let effects = earned.get(&submission.id).into_iter().flatten().copied();
            let effects: Vec<_> = effects.filter(|it| it.earned_from() <= level).collect();
            let tie_break = effects.contains(&Effect::TieBreak);
            let points = effects.len() - usize::from(tie_break);
            let rank = (points, tie_break, Reverse(submission.created_at));
            if best.as_ref().is_none_or(|(known, _, _)| rank > *known) {
                best = Some((rank, submission.id, effects));
            }
        }
        entries.push((participation.agent, best));
    }
    entries.sort_by(|(a, first), (b, second)| {
        let rank = |best: &Option<(_, _, _)>| best.as_ref().map(|(rank, _, _)| *rank);
        rank(second).cmp(&rank(first)).then(a.cmp(b))
    });
    let places = entries.into_iter().map(|(agent, best)| match best {
        None => wire::Place {
            agent,
            submission: None,
            effects: Vec::new(),
            tie_break: false,
        },
        Some(((_, tie_break, _), submission, effects)) => wire::Place {
            agent,
            submission: Some(submission),
            effects: effects.iter().map(ToString::to_string).collect(),
            tie_break,
        },
    });
    Ok(places.collect())
}
