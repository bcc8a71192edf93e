//! What a server is granted beyond its profiles, as far as its own entry plainly says that it needs it: folders among its
//! arguments that its tools write, and files that its variables name.

use std::path::{Path, PathBuf};

use lodestar_core::ladder::Rung;
use lodestar_guard::config::Reached;
use lodestar_kernel::contain::plan::fetches_code;

use super::configuration::Tried;
use super::reference::is_secret;

/// How variables end that name a place.
const PLACES: [&str; 6] = ["_PATH", "_FILE", "_DIR", "_FOLDER", "_DIRECTORY", "_DB"];

/// What a server's table says of its containment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    /// Why, line by line.
    pub(crate) because: Vec<String>,
    /// Places to write, beyond its profiles.
    pub(crate) write: Vec<PathBuf>,
}

/// What to grant a server of a project.
pub(crate) fn grant(tried: &Tried, root: &Path) -> Granted {
    let mut granted = Granted::default();
    let Ok(Reached::Child {
        command,
        args,
        env,
        inherit_env,
        ..
    }) = &tried.draft.reached
    else {
        return granted;
    };
    if fetches_code(Path::new(command)) {
        granted.because.push(
            "it fetches its package when it starts: the network and the package caches are granted without a line here".to_owned(),
        );
    }
    let rungs = || tried.tools().into_iter().map(|tool| tool.proposal.rung);
    let home = std::env::home_dir();
    let too_much = |place: &Path| {
        let holds = |inner: &Path| inner.starts_with(place);
        home.as_deref().is_some_and(holds) || place.parent().is_none()
    };
    // What is in the project is written by the profile of tools that write there.
    let is_granted = |place: &Path| place.starts_with(root);
    if rungs().any(|rung| rung == Some(Rung::L3)) {
        for argument in args.iter().filter(|argument| !argument.starts_with('-')) {
            let Ok(place) = root.join(argument).canonicalize() else {
                continue;
            };
            if !place.is_dir() || is_granted(&place) {
                continue;
            }
            let why = match too_much(&place) {
                true => format!(
                    "`{argument}` is too much to be written as a whole: say in `write` what of it may be"
                ),
                false => format!("`{argument}` is among its arguments, and its tools write"),
            };
            granted.because.push(why);
            if !too_much(&place) {
                granted.write.push(place);
            }
        }
    }
    // What nobody graded may write what is its own, once a person let it run.
    if rungs().any(|rung| matches!(rung, None | Some(Rung::L3))) {
        let given = tried.draft.values.iter();
        let given = given.filter(|(name, _)| inherit_env.contains(*name));
        for (name, value) in env.iter().chain(given) {
            let names_place = PLACES.iter().any(|ending| name.ends_with(ending));
            if is_secret(name) || !names_place || !Path::new(value).is_absolute() {
                continue;
            }
            let Some((place, why)) = own_place(Path::new(value)) else {
                continue;
            };
            if !too_much(&place) && !of_others(&place, home.as_deref()) {
                granted.because.push(format!("`{name}` names {why}"));
                granted.write.push(place);
            }
        }
    }
    granted.write.sort();
    granted.write.dedup();
    granted
}

/// Whether a folder is one in which programs of all kinds keep theirs: directly in the home, or in one of its dot-folders.
fn of_others(place: &Path, home: Option<&Path>) -> bool {
    let Some(below) = home.and_then(|home| place.strip_prefix(home).ok()) else {
        return false;
    };
    place.is_dir() && below.components().count() < 2
}

/// What has to be granted so that a place can be written: a file that is not there yet cannot be granted by itself.
fn own_place(named: &Path) -> Option<(PathBuf, &'static str)> {
    if let Ok(there) = named.canonicalize() {
        return Some((there, "what it keeps"));
    }
    let folder = named.parent()?.canonicalize().ok()?;
    Some((
        folder,
        "a file that is not there yet, so its folder is granted",
    ))
}
