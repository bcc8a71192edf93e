//! The searcher: tries attacks, learns from how far each got, and counts what came of them.

use std::path::Path;
use std::time::Instant;

use lodestar_core::defence::Defence;
use serde::Serialize;

use super::benign::Worked;
use super::demo::Demonstration;
use super::obey::{Reached, obey};
use super::office::Office;
use super::plan::Plan;
use super::rng::Rng;
use super::text::planted;
use super::world::World;
use crate::probe::Outcome;
use crate::stage::Stage;

/// Tries in one session: opening one costs more than a try, and what an earlier try left behind is part of the
/// world that a later one finds.
const PER_SESSION: usize = 20;
/// How many attacks are kept to be changed.
const KEPT: usize = 32;
/// One session in so many is behind the proxy, over the servers of the demonstration.
const EACH_DEMO: usize = 5;

/// How the searcher searches.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// The `lodestar` program.
    pub program: &'a Path,
    /// What chance follows from.
    pub seed: u64,
    /// How many attacks are tried.
    pub tries: usize,
    /// Ends at the first success.
    pub stop_at_first: bool,
    /// Where it is tried.
    pub over: Over,
    /// What the sessions lack.
    pub without: &'a [Defence],
}

/// Where attacks are tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Over {
    /// In the scripted office, and in one session of five over the servers of the demonstration.
    #[default]
    Both,
    /// Over the servers of the demonstration alone, behind the proxy.
    Demonstration,
}

/// An attack that got what it wanted.
#[derive(Debug, Clone, Serialize)]
pub struct Success {
    /// Which try.
    pub at: usize,
    /// The attack.
    pub plan: Plan,
    /// What it got.
    pub got: String,
}

/// What became of work that has nothing to do with attacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Benign {
    /// Actions below L4.
    pub actions: usize,
    /// Those that ran unasked.
    pub ran: usize,
    /// Those that were held or refused.
    pub false_holds: usize,
    /// Actions of L4, for which a person was asked.
    pub asked: usize,
}

impl Benign {
    /// The share that went through, of 1.
    pub fn rate(&self) -> f64 {
        self.ran as f64 / self.actions.max(1) as f64
    }
}

/// What came of a search.
#[derive(Debug, Clone, Serialize)]
pub struct AttackReport {
    /// The seed.
    pub seed: u64,
    /// How many attacks were tried.
    pub tries: usize,
    /// How many of those were tried behind the proxy, over the servers of the demonstration.
    pub over_proxy: usize,
    /// What the sessions lacked.
    pub without: Vec<Defence>,
    /// Those that succeeded.
    pub successes: Vec<Success>,
    /// How far attacks got: how many ran something harmless, were held, were denied, or came to nothing.
    pub reached: Tally,
    /// Benign work.
    pub benign: Benign,
    /// Actions of attacks and of benign work together.
    pub actions: usize,
    /// Of a hundred of those, how many were held.
    pub holds_per_100: f64,
    /// How long it took.
    pub ms: u64,
}

/// How far attacks got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Something ran, and not what was wanted.
    pub ran: usize,
    /// A person was asked, and said no.
    pub held: usize,
    /// Denied.
    pub denied: usize,
    /// Not understood, or nothing was called.
    pub nothing: usize,
}

/// Searches. `progress` hears how many tries are done.
pub fn search(options: &Options<'_>, mut progress: impl FnMut(usize)) -> Outcome<AttackReport> {
    let started = Instant::now();
    let mut searcher = Searcher::new(options);
    let stage = || Stage::new(options.program, None, options.without);
    let (one, other) = (stage()?, stage()?);
    let mut office = Office::new(&one)?;
    let mut demo = Demonstration::new(&other)?;
    for round in 0.. {
        if !searcher.is_on() {
            break;
        }
        // Behind the proxy everything takes longer, and there are fewer tools to go wrong.
        match options.over == Over::Demonstration || round % EACH_DEMO == 1 {
            true => demo.session(round, async |world| {
                let before = searcher.report.tries;
                let done = searcher.session(world, &mut progress).await;
                searcher.report.over_proxy += searcher.report.tries - before;
                done
            })?,
            false => office.session(round, async |world| {
                searcher.session(world, &mut progress).await
            })?,
        }
    }
    let mut report = searcher.report;
    report.ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    report.holds_per_100 = 100.0 * searcher.held as f64 / report.actions.max(1) as f64;
    Ok(report)
}

struct Searcher<'a> {
    options: &'a Options<'a>,
    rng: Rng,
    /// The attacks that got furthest, best first.
    best: Vec<(Reached, Plan)>,
    held: usize,
    report: AttackReport,
}

impl<'a> Searcher<'a> {
    fn new(options: &'a Options<'a>) -> Self {
        Self {
            options,
            rng: Rng::new(options.seed),
            best: Vec::new(),
            held: 0,
            report: AttackReport {
                seed: options.seed,
                tries: 0,
                over_proxy: 0,
                without: options.without.to_vec(),
                successes: Vec::new(),
                reached: Tally::default(),
                benign: Benign::default(),
                actions: 0,
                holds_per_100: 0.0,
                ms: 0,
            },
        }
    }

    fn is_on(&self) -> bool {
        let found = self.options.stop_at_first && !self.report.successes.is_empty();
        self.report.tries < self.options.tries && !found
    }

    /// Some tries, with benign work before and after them.
    async fn session(
        &mut self,
        world: &mut impl World,
        progress: &mut impl FnMut(usize),
    ) -> Outcome {
        for _ in 0..PER_SESSION {
            let worked = world.work(&mut self.rng).await?;
            self.count(worked);
            if !self.is_on() {
                return Ok(());
            }
            let plan = self.next();
            let reached = self.attempt(world, &plan).await?;
            self.learn(reached, plan);
            progress(self.report.tries);
        }
        Ok(())
    }

    async fn attempt(&mut self, world: &mut impl World, plan: &Plan) -> Outcome<Reached> {
        for (path, text) in planted(plan, world.surface()) {
            world.plant(&path, &text)?;
        }
        world.begin(plan)?;
        let obeyed = obey(world, plan.repeats).await?;
        self.report.tries += 1;
        self.report.actions += obeyed.actions;
        self.held += obeyed.held;
        if let Some(got) = world.got(plan).await? {
            let at = self.report.tries;
            let plan = plan.clone();
            self.report.successes.push(Success { at, plan, got });
        }
        let reached = obeyed.furthest.unwrap_or(Reached::Nothing);
        let tally = &mut self.report.reached;
        match reached {
            Reached::Ran => tally.ran += 1,
            Reached::Held => tally.held += 1,
            Reached::Denied => tally.denied += 1,
            Reached::Unknown | Reached::Nothing => tally.nothing += 1,
        }
        Ok(reached)
    }

    fn next(&mut self) -> Plan {
        let rng = &mut self.rng;
        if self.best.len() < KEPT || rng.once_in(4) {
            return Plan::random(rng);
        }
        // Of two, the one that got further.
        let (one, two) = (rng.below(self.best.len()), rng.below(self.best.len()));
        let parent = &self.best[one.min(two)].1;
        match rng.once_in(3) {
            true => {
                let other = &self.best[rng.below(self.best.len())].1;
                parent.crossed(other, rng).changed(rng)
            }
            false => parent.changed(rng),
        }
    }

    fn learn(&mut self, reached: Reached, plan: Plan) {
        if self.best.iter().any(|(_, known)| *known == plan) {
            return;
        }
        let at = self.best.partition_point(|(known, _)| *known >= reached);
        self.best.insert(at, (reached, plan));
        self.best.truncate(KEPT);
    }

    fn count(&mut self, worked: Worked) {
        let benign = &mut self.report.benign;
        benign.actions += worked.actions;
        benign.ran += worked.ran;
        benign.false_holds += worked.actions - worked.ran;
        benign.asked += worked.asked;
        self.report.actions += worked.actions + worked.asked;
        self.held += worked.asked + worked.actions - worked.ran;
    }
}
