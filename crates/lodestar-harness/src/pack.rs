//! Outside packs: somebody else's scenarios, as data. A pack runs none of its own code.
//!
//! | part | role |
//! |---|---|
//! | [`PackFiles`] | the files, read once |
//! | [`OutsidePack`], [`About`] | what they say, checked whole before anything runs |
//! | [`Problem`] | what is wrong, with line and column |
//! | [`Unsealed`] | why a pack is not taken for its author's |
//! | [`template`] | a first pack, to change |
//!
//! Everything that a scenario can do is a word of its format (`docs/reference/pack-format.md`): there are no
//! commands, no paths out of the scratch folder, no network and no environment in it.

mod about;
mod check;
mod files;
mod play;
mod problem;
mod scenario;
mod seal;
pub mod template;
mod written;

#[cfg(test)]
mod tests;

pub use about::About;
pub use files::{PackFiles, SIGNATURE};
pub use problem::Problem;
pub use scenario::Scenario;
pub use seal::Unsealed;

use std::path::Path;

use crate::header::{Header, Needs, Pack, Section};
use crate::probe::Probe;
use files::SCENARIOS;

/// A pack that is as its format says.
#[derive(Debug, Clone)]
pub struct OutsidePack {
    /// What it says of itself.
    pub about: About,
    scenarios: Vec<Scenario>,
    files: PackFiles,
}

impl OutsidePack {
    /// Reads and checks a folder. Nothing of it runs, and whose it is is another question.
    pub fn read(folder: &Path) -> Result<Self, Vec<Problem>> {
        let files = PackFiles::read(folder).map_err(|problem| vec![problem])?;
        Self::of(files)
    }

    fn of(files: PackFiles) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let about = files.text(files::ABOUT).map_err(|problem| vec![problem]);
        let about = about.and_then(About::parse);
        let about = about.map_err(|mut found| problems.append(&mut found)).ok();
        let mut scenarios = Vec::new();
        let of_scenarios = |name: &&String| name.starts_with(SCENARIOS);
        for name in files.files.keys().filter(of_scenarios) {
            let text = files.text(name).map_err(|problem| vec![problem]);
            match text.and_then(|text| Scenario::parse(name, text)) {
                Ok(scenario) => scenarios.push(scenario),
                Err(mut found) => problems.append(&mut found),
            }
        }
        if scenarios.is_empty() && problems.is_empty() {
            problems.push(Problem::of_file(SCENARIOS, "there is no scenario"));
        }
        match about {
            Some(about) if problems.is_empty() => Ok(Self {
                about,
                scenarios,
                files,
            }),
            _ => Err(problems),
        }
    }

    /// Its scenarios.
    pub fn scenarios(&self) -> &[Scenario] {
        &self.scenarios
    }

    /// Its scenarios as probes.
    pub fn probes(&self) -> Vec<Probe> {
        let probes = self.scenarios.iter().map(|scenario| {
            let header = Header {
                name: scenario.name.clone().into(),
                pack: Pack::outside(self.about.name.clone()),
                section: Section::Outside,
                scenario: scenario.scenario.clone().into(),
                asserts: scenario.asserts.clone().into(),
                does_not_claim: scenario.does_not_claim.clone().into(),
                class: scenario.class.clone(),
                defence: scenario.defence,
                needs: Needs::Nothing,
                deadline: scenario.deadline,
            };
            let scenario = scenario.clone();
            Probe::new(header, move |stage| play::play(&scenario, stage))
        });
        probes.collect()
    }
}
