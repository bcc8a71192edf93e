//! The hunt: which tests reach a mutant, and whether one of them notices it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::compile::{Placed, Program};
use super::notes::Notes;
use super::rewrite::Id;
use super::trial::{Bench, Ended, Place};
use crate::shell::{Failure, because};

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fate {
    /// A test failed: this one.
    Caught(String),
    /// A test did not come to its end.
    TimedOut,
    /// Every test that reaches it passed.
    Survived,
    /// No test reaches it.
    Unreached,
}

/// A test, and what is known of it.
#[derive(Debug)]
struct Test {
    program: usize,
    name: String,
    takes: Duration,
}

/// Which tests reach which mutants.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    tests: Vec<Test>,
    by_mutant: HashMap<Id, Vec<usize>>,
}

/// The first tests to run together take about as long as this; each further group four times that.
const FIRST_GROUP: Duration = Duration::from_millis(300);

/// So many tests that caught the last mutants of a file are asked first.
const RECENT: usize = 6;

/// What is known of the tests of each program.
const REACHED_BY: &str = "reached.json";

/// The tests of one program: how many milliseconds each takes, and which mutants it reaches.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Reached(BTreeMap<String, (u64, Vec<Id>)>);

impl Reached {
    fn by(program: &Program, place: &Place) -> Result<Self, Failure> {
        let names = Bench::new(place, 0)?.list(program)?;
        let found = Mutex::new(BTreeMap::new());
        on_all_cores(&names, place, "coverage: test", |bench, name| {
            let (takes, reached) = bench.reach(program, name)?;
            let millis = u64::try_from(takes.as_millis()).unwrap_or(u64::MAX);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.insert(name.clone(), (millis, reached));
            Ok(())
        })?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let longest = found.values().map(|(millis, _)| *millis).max();
        let longest = Duration::from_millis(longest.unwrap_or_default());
        let names = found.keys().map(String::as_str);
        match Bench::new(place, 0)?.run(program, names, None, longest)? {
            Ended::Passed => Ok(Self(found)),
            ended => Err(because(format!(
                "the tests of {} do not pass one after the other: {ended:?}",
                program.name
            ))),
        }
    }
}

/// One process per core: tests of one process run one after the other.
fn workers() -> usize {
    thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

/// Does something with every item, on all cores; the first failure ends it.
fn on_all_cores<T: Sync>(
    items: &[T],
    place: &Place,
    what: &str,
    work: impl Fn(&Bench<'_>, &T) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failure = Mutex::new(None);
    thread::scope(|scope| {
        for worker in 0..workers() {
            let (next, done, failure, work) = (&next, &done, &failure, &work);
            scope.spawn(move || {
                let outcome = Bench::new(place, worker).and_then(|bench| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(at) else {
                            return Ok(());
                        };
                        work(&bench, item)?;
                        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                        if done % 50 == 0 || done == items.len() {
                            eprintln!("{what} {done} of {}", items.len());
                        }
                    }
                });
                if let Err(problem) = outcome {
                    next.store(items.len(), Ordering::Relaxed);
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    failure.get_or_insert(problem);
                }
            });
        }
    });
    let failure = failure.into_inner();
    match failure.unwrap_or_else(PoisonError::into_inner) {
        None => Ok(()),
        Some(problem) => Err(problem),
    }
}

impl Coverage {
    /// Runs every test without a mutant: alone, to see what it reaches, and together with the others
    /// of its program, as they will run later. What is known of a program from an earlier run holds
    /// for as long as the program is the same.
    pub(super) fn measure(
        programs: &[Program],
        place: &Place,
        notes: &Path,
    ) -> Result<Self, Failure> {
        let known = notes.join(REACHED_BY);
        let mut noted: BTreeMap<String, Reached> = std::fs::read(&known)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let stamps: Vec<_> = programs.iter().map(Program::stamp).collect();
        noted.retain(|stamp, _| stamps.contains(stamp));
        for (program, stamp) in programs.iter().zip(&stamps) {
            if !noted.contains_key(stamp) {
                eprintln!("coverage of {}", program.name);
                noted.insert(stamp.clone(), Reached::by(program, place)?);
                let bytes = serde_json::to_vec(&noted).expect("names and numbers are JSON");
                // Without the note, the next run measures again.
                let _ = std::fs::write(&known, bytes);
            }
        }
        let mut coverage = Self::default();
        for (at, stamp) in stamps.iter().enumerate() {
            for (name, (millis, reached)) in noted.remove(stamp).unwrap_or_default().0 {
                for id in reached {
                    let of_mutant = coverage.by_mutant.entry(id).or_default();
                    of_mutant.push(coverage.tests.len());
                }
                coverage.tests.push(Test {
                    program: at,
                    name,
                    takes: Duration::from_millis(millis),
                });
            }
        }
        for reaching in coverage.by_mutant.values_mut() {
            reaching.sort_by_key(|&test| coverage.tests[test].takes);
        }
        Ok(coverage)
    }

    /// Tries every mutant on the tests that reach it.
    pub(super) fn hunt(
        &self,
        mutants: &[&Placed],
        programs: &[Program],
        place: &Place,
        notes: &mut Notes,
    ) -> Result<BTreeMap<Id, Fate>, Failure> {
        let fates = Mutex::new((BTreeMap::new(), notes));
        let recent = Mutex::new(HashMap::<&str, Vec<usize>>::new());
        on_all_cores(mutants, place, "mutant", |bench, placed| {
            let id = placed.mutant.id;
            let known = {
                let recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
                recent
                    .get(placed.file.as_str())
                    .cloned()
                    .unwrap_or_default()
            };
            let (fate, by) = self.try_one(id, &known, programs, bench)?;
            if matches!(fate, Fate::Survived | Fate::Unreached) {
                let Placed { file, mutant, .. } = placed;
                eprintln!("lives: {file}:{}: {}", mutant.line, mutant.change);
            }
            if let Some(by) = by {
                let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
                let of_file = recent.entry(&placed.file).or_default();
                of_file.retain(|&test| test != by);
                of_file.insert(0, by);
                of_file.truncate(RECENT);
            }
            let mut fates = fates.lock().unwrap_or_else(PoisonError::into_inner);
            let (fates, notes) = &mut *fates;
            notes.note(placed, &fate);
            fates.insert(id, fate);
            Ok(())
        })?;
        let (fates, notes) = fates.into_inner().unwrap_or_else(PoisonError::into_inner);
        notes.write();
        Ok(fates)
    }

    fn try_one(
        &self,
        id: Id,
        recent: &[usize],
        programs: &[Program],
        bench: &Bench<'_>,
    ) -> Result<(Fate, Option<usize>), Failure> {
        let Some(reaching) = self.by_mutant.get(&id) else {
            return Ok((Fate::Unreached, None));
        };
        for group in self.groups(reaching, recent) {
            let of_group = |&test: &usize| &self.tests[test];
            let longest = group.iter().map(|test| of_group(test).takes).max();
            let program = of_group(&group[0]).program;
            let names = group.iter().map(|test| of_group(test).name.as_str());
            let longest = longest.unwrap_or_default();
            match bench.run(&programs[program], names, Some(id), longest)? {
                Ended::Passed => {}
                Ended::TimedOut => return Ok((Fate::TimedOut, None)),
                Ended::Failed(name) => {
                    let by = group.iter().copied().find(|t| self.tests[*t].name == name);
                    return Ok((Fate::Caught(name), by));
                }
            }
        }
        Ok((Fate::Survived, None))
    }

    /// Tests of one program each, those first that will tell soonest.
    fn groups(&self, reaching: &[usize], recent: &[usize]) -> Vec<Vec<usize>> {
        let is_recent =
            |test: &usize| recent.contains(test) && self.tests[*test].takes < FIRST_GROUP;
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &test in reaching.iter().filter(|test| is_recent(test)) {
            let program = self.tests[test].program;
            let of_program = |group: &&mut Vec<usize>| self.tests[group[0]].program == program;
            match groups.iter_mut().find(of_program) {
                Some(group) => group.push(test),
                None => groups.push(vec![test]),
            }
        }
        let mut open: BTreeMap<usize, (Vec<usize>, Duration, Duration)> = BTreeMap::new();
        for &test in reaching.iter().filter(|test| !is_recent(test)) {
            let Test { program, takes, .. } = &self.tests[test];
            let empty = || (Vec::new(), Duration::ZERO, FIRST_GROUP);
            let (group, sum, limit) = open.entry(*program).or_insert_with(empty);
            if !group.is_empty() && *sum + *takes > *limit {
                groups.push(std::mem::take(group));
                *sum = Duration::ZERO;
                *limit *= 4;
            }
            group.push(test);
            *sum += *takes;
        }
        groups.extend(
            open.into_values()
                .map(|(group, ..)| group)
                .filter(|g| !g.is_empty()),
        );
        groups
    }
}
