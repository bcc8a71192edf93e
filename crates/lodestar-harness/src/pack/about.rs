//! What a pack says of itself.

use lodestar_core::name::{ActorId, Excerpt};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::files::{ABOUT, is_name};
use super::problem::{Problem, read};
use crate::header::Pack;

/// `pack.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whose it is, by the name that their key is pinned under.
    pub author: String,
    /// What it is about.
    pub description: String,
    /// Under which licence.
    pub license: String,
    /// The first version of Lodestar that it is for.
    pub min_lodestar: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Spanned<String>,
    version: Spanned<String>,
    author: Spanned<String>,
    description: Spanned<String>,
    license: Spanned<String>,
    min_lodestar: Spanned<String>,
}

impl About {
    /// Reads and checks `pack.toml`.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let written: Written = read(ABOUT, text).map_err(|problem| vec![problem])?;
        let mut problems = Vec::new();
        let mut wrong = |at: &Spanned<String>, problem: String| {
            problems.push(Problem::at(ABOUT, text, at.span().start, problem));
        };
        let name = written.name.get_ref();
        let is_taken = Pack::BUILT_IN.iter().any(|pack| pack.as_str() == name);
        if !is_name(name) || is_taken {
            let shown = Excerpt::of(name);
            wrong(
                &written.name,
                format!(
                    "`{shown}` is no name for a pack: small letters, digits and hyphens, up to 64, and not that of a built-in one"
                ),
            );
        }
        if let Err(problem) = ActorId::new(written.author.get_ref()) {
            wrong(
                &written.author,
                format!("this is no author's name: {problem}"),
            );
        }
        for (what, text) in [
            ("a description", &written.description),
            ("a licence", &written.license),
        ] {
            let length = text.get_ref().trim().chars().count();
            if !(1..=1000).contains(&length) {
                wrong(text, format!("{what} has 1 to 1000 characters"));
            }
        }
        if version(written.version.get_ref()).is_none() {
            wrong(
                &written.version,
                "a version is three numbers: `1.0.0`".to_owned(),
            );
        }
        match version(written.min_lodestar.get_ref()) {
            None => {
                let problem = "a version of Lodestar is three numbers: `0.1.0`";
                wrong(&written.min_lodestar, problem.to_owned());
            }
            Some(wanted) if version(OWN).is_some_and(|own| own < wanted) => {
                let problem = format!("it is for Lodestar from that version on; this one is {OWN}");
                wrong(&written.min_lodestar, problem);
            }
            Some(_) => {}
        }
        match problems.is_empty() {
            false => Err(problems),
            true => Ok(Self {
                name: written.name.into_inner(),
                version: written.version.into_inner(),
                author: written.author.into_inner(),
                description: written.description.into_inner(),
                license: written.license.into_inner(),
                min_lodestar: written.min_lodestar.into_inner(),
            }),
        }
    }
}

/// The version of this program.
const OWN: &str = env!("CARGO_PKG_VERSION");

fn version(text: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = text
        .split('.')
        .map(|part| part.parse().ok().filter(|_| part.len() <= 9))
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
}
