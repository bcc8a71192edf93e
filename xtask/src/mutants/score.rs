//! What is said at the end: a line for each module, then every survivor and why it may live.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use super::compile::Placed;
use super::hunt::Fate;
use super::reasons::Reasons;
use super::rewrite::Id;

/// The share of viable mutants that has to be caught in each module, in percent.
pub(super) const LINE: f64 = 95.0;

/// The mutants of one module, counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    found: usize,
    not_viable: usize,
    caught: usize,
    timed_out: usize,
    survived: usize,
    /// Of those that survived.
    with_reason: usize,
}

impl Count {
    /// Caught ones among the viable, in percent.
    pub(super) fn score(self) -> f64 {
        percent(self.caught + self.timed_out, self.found - self.not_viable)
    }

    /// The same without the survivors that have a reason.
    fn without_reasoned(self) -> f64 {
        let viable = self.found - self.not_viable - self.with_reason;
        percent(self.caught + self.timed_out, viable)
    }
}

#[expect(clippy::cast_precision_loss, reason = "mutants are few")]
fn percent(part: usize, whole: usize) -> f64 {
    match whole {
        0 => 100.0,
        _ => part as f64 * 100.0 / whole as f64,
    }
}

/// A mutant that lives.
#[derive(Debug)]
pub(super) struct Survivor<'a> {
    pub(super) placed: &'a Placed,
    reached: bool,
    reason: Option<&'a str>,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Score<'a> {
    counts: Vec<(&'static str, Count)>,
    pub(super) survivors: Vec<Survivor<'a>>,
    not_viable: Vec<&'a Placed>,
    /// Entries of the reasons that name no survivor.
    stale: Vec<String>,
}

impl<'a> Score<'a> {
    pub(super) fn new(
        mutants: &[&'a Placed],
        not_viable: &BTreeSet<Id>,
        fates: &BTreeMap<Id, Fate>,
        reasons: &'a Reasons,
    ) -> Self {
        let mut counts: Vec<(&'static str, Count)> = Vec::new();
        let (mut survivors, mut dead) = (Vec::new(), Vec::new());
        for &placed in mutants {
            if counts.last().is_none_or(|(name, _)| *name != placed.module) {
                counts.push((placed.module, Count::default()));
            }
            let (_, count) = counts.last_mut().expect("one was pushed");
            count.found += 1;
            if not_viable.contains(&placed.mutant.id) {
                count.not_viable += 1;
                dead.push(placed);
                continue;
            }
            match fates.get(&placed.mutant.id) {
                Some(Fate::Caught(_)) => count.caught += 1,
                Some(Fate::TimedOut) => count.timed_out += 1,
                fate => {
                    let reason = reasons.of(placed);
                    count.survived += 1;
                    count.with_reason += usize::from(reason.is_some());
                    survivors.push(Survivor {
                        placed,
                        reached: fate == Some(&Fate::Survived),
                        reason,
                    });
                }
            }
        }
        let living: Vec<_> = survivors.iter().map(|survivor| survivor.placed).collect();
        let stale = reasons
            .stale(mutants, &living)
            .map(|entry| format!("{}: {}: {}", entry.file, entry.function, entry.change))
            .collect();
        Self {
            counts,
            survivors,
            not_viable: dead,
            stale,
        }
    }

    /// Whether every module is above the line and every survivor has a reason.
    pub(super) fn holds(&self) -> bool {
        self.counts.iter().all(|(_, count)| count.score() >= LINE)
            && self.survivors.iter().all(|s| s.reason.is_some())
            && self.stale.is_empty()
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let modules = self.counts.iter().map(|(name, count)| {
            json!({
                "module": name,
                "mutants": count.found,
                "not_viable": count.not_viable,
                "caught": count.caught,
                "timed_out": count.timed_out,
                "survived": count.survived,
                "survived_with_reason": count.with_reason,
                "score": count.score(),
                "score_without_reasoned": count.without_reasoned(),
            })
        });
        let survivors = self.survivors.iter().map(|survivor| {
            let Placed {
                module,
                file,
                mutant,
            } = survivor.placed;
            json!({
                "module": module,
                "file": file,
                "line": mutant.line,
                "column": mutant.column,
                "function": mutant.function,
                "change": mutant.change,
                "reached": survivor.reached,
                "reason": survivor.reason,
            })
        });
        json!({
            "line": LINE,
            "holds": self.holds(),
            "modules": modules.collect::<Vec<_>>(),
            "survivors": survivors.collect::<Vec<_>>(),
            "not_viable": self.not_viable.iter().map(|p| super::notes::name(p)).collect::<Vec<_>>(),
            "stale_reasons": self.stale,
        })
    }
}

impl fmt::Display for Score<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<12} {:>8} {:>11} {:>7} {:>10} {:>9} {:>8} {:>16}",
            "module",
            "mutants",
            "not viable",
            "caught",
            "timed out",
            "survived",
            "score",
            "without reasoned"
        )?;
        for (name, count) in &self.counts {
            writeln!(
                f,
                "{name:<12} {:>8} {:>11} {:>7} {:>10} {:>9} {:>6.1} % {:>14.1} %",
                count.found,
                count.not_viable,
                count.caught,
                count.timed_out,
                count.survived,
                count.score(),
                count.without_reasoned()
            )?;
        }
        for survivor in &self.survivors {
            let Placed { file, mutant, .. } = survivor.placed;
            let (line, column) = (mutant.line, mutant.column);
            writeln!(f, "\n{file}:{line}:{column}: {}", mutant.function)?;
            writeln!(f, "  {}", mutant.change)?;
            match (survivor.reason, survivor.reached) {
                (Some(reason), _) => writeln!(f, "  lives because {reason}")?,
                (None, true) => writeln!(f, "  NO REASON: the tests that reach it all pass")?,
                (None, false) => writeln!(f, "  NO REASON: no test reaches it")?,
            }
        }
        for entry in &self.stale {
            writeln!(
                f,
                "\nno such survivor, take it out of {}: {entry}",
                super::reasons::FILE
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::points::Mutant;
    use super::*;

    fn placed(id: Id, change: &str) -> Placed {
        Placed {
            module: "gate",
            file: "a.rs".to_owned(),
            mutant: Mutant {
                id,
                point: id,
                line: 1,
                column: 2,
                function: "f".to_owned(),
                change: change.to_owned(),
            },
        }
    }

    fn reasons(change: &str) -> Reasons {
        let text = format!(
            "[[survivor]]\nfile = 'a.rs'\nfunction = 'f'\nchange = '{change}'\nreason = 'it is the same'"
        );
        toml::from_str(&text).unwrap()
    }

    /// One of twenty-one does not compile, one of the others lives.
    fn score<'a>(mutants: &[&'a Placed], reasons: &'a Reasons) -> Score<'a> {
        let fate = |id: Id| match id {
            20 => Fate::Survived,
            19 => Fate::TimedOut,
            _ => Fate::Caught("a_test".to_owned()),
        };
        let fates = (1..=20).map(|id| (id, fate(id))).collect();
        Score::new(mutants, &BTreeSet::from([21]), &fates, reasons)
    }

    #[test]
    fn a_survivor_with_a_reason_is_still_not_noticed() {
        let all: Vec<_> = (1..=21).map(|id| placed(id, &format!("c{id}"))).collect();
        let all: Vec<_> = all.iter().collect();
        let (none, listed, stale) = (Reasons::default(), reasons("c20"), reasons("c3"));
        let without = score(&all, &none);
        assert_eq!(without.counts[0].1.score(), 95.0);
        assert!(!without.holds());
        assert!(
            without
                .to_string()
                .contains("NO REASON: the tests that reach it all pass")
        );
        let with = score(&all, &listed);
        assert_eq!(with.counts[0].1.score(), 95.0);
        assert_eq!(with.counts[0].1.without_reasoned(), 100.0);
        assert!(with.holds());
        assert!(
            with.to_string()
                .contains("a.rs:1:2: f\n  c20\n  lives because it is the same")
        );
        // One mutant fewer, and the share is too small, whatever the reasons say.
        assert!(!score(&all[1..], &listed).holds());
        // A reason for what is noticed hides nothing, and says that it is old.
        assert!(score(&all, &stale).to_string().contains("no such survivor"));
    }
}
