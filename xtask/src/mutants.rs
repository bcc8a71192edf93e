//! `cargo xtask mutants`: changes the code that decides, one small change at a time, and shows that
//! the tests notice.
//!
//! cargo-mutants compiles once for each change, which takes a day here. This compiles once: all
//! changes are in the program, each behind a question, and the environment says which one is on.
//! The changes are those of cargo-mutants.
//!
//! | module | what it does |
//! |---|---|
//! | [`modules`] | which files are under test, and whose tests count |
//! | [`points`], [`values`], [`rewrite`] | finds the changes and puts them into the source text |
//! | [`tree`], [`compile`] | a copy of the workspace, compiled; what does not compile is taken out |
//! | [`trial`], [`hunt`] | runs the tests that reach a change, with the change on |
//! | [`notes`], [`reasons`], [`score`] | what is kept, and what is said about it |

mod compile;
mod hunt;
mod modules;
mod notes;
mod points;
mod reasons;
mod rewrite;
mod score;
mod tree;
mod trial;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use self::compile::compile;
use self::hunt::Coverage;
use self::modules::{MODULES, PACKAGES};
use self::notes::Notes;
use self::reasons::Reasons;
use self::score::Score;
use self::tree::Tree;
use self::trial::Place;
use crate::shell::{Failure, because};

/// `cargo xtask mutants [--module NAME]… [--survivors] [--json]`
pub(crate) fn mutants(args: &[&str]) -> Result<(), Failure> {
    let mut chosen = Vec::new();
    let (mut only_survivors, mut as_json) = (false, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--module" => {
                let name = args
                    .next()
                    .ok_or_else(|| because("`--module` needs a name"))?;
                chosen.push(modules::named(name)?);
            }
            "--survivors" => only_survivors = true,
            "--json" => as_json = true,
            other => return Err(because(format!("`mutants` does not know `{other}`"))),
        }
    }
    if chosen.is_empty() {
        chosen.extend(MODULES);
    }
    let reasons = Reasons::read()?;
    let started = Instant::now();
    let crate_roots: Vec<_> = PACKAGES
        .iter()
        .map(|package| format!("crates/{package}/src/lib.rs"))
        .collect();
    let all = Tree::list()?;
    let mut rewritten: BTreeSet<&str> = crate_roots.iter().map(String::as_str).collect();
    // All modules are put in whatever is chosen, so that a choice compiles nothing again.
    for module in MODULES {
        rewritten.extend(module.files(&all)?);
    }
    let tree = Tree::copy(&all, |file| rewritten.contains(file))?;
    let compiled = compile(&all, &tree)?;
    eprintln!("compiled after {:.0?}", started.elapsed());
    let place = Place::new(&tree.root);
    let coverage = Coverage::measure(&compiled.programs, &place, &tree.notes)?;
    eprintln!("coverage known after {:.0?}", started.elapsed());
    let mut notes = Notes::read(&tree.notes);
    let looked_at: Vec<_> = compiled
        .mutants
        .iter()
        .filter(|placed| chosen.iter().any(|module| module.name == placed.module))
        .collect();
    let viable = looked_at
        .iter()
        .copied()
        .filter(|placed| !compiled.not_viable.contains(&placed.mutant.id));
    let (known, tried): (Vec<_>, Vec<_>) =
        viable.partition(|placed| only_survivors && notes.noticed(placed).is_some());
    let mut fates: BTreeMap<_, _> = known
        .into_iter()
        .filter_map(|placed| Some((placed.mutant.id, notes.noticed(placed)?.clone())))
        .collect();
    eprintln!(
        "{} mutants to try, {} noticed before",
        tried.len(),
        fates.len()
    );
    fates.extend(coverage.hunt(&tried, &compiled.programs, &place, &mut notes)?);
    let score = Score::new(&looked_at, &compiled.not_viable, &fates, &reasons);
    match as_json {
        true => println!("{:#}", score.json()),
        false => println!("{score}"),
    }
    eprintln!("done after {:.0?}", started.elapsed());
    match score.holds() {
        true => Ok(()),
        false => Err(Failure::Reported),
    }
}
