//! Protected places that were not there when a child started, and are there now.
//!
//! A mount covers only what exists, and Landlock grants a folder without exceptions: a child that may write in a
//! folder can make a file there that decides what runs later. Such a file is not left in place. It is moved aside, to
//! a name beside it that no program looks for, and that is said. Nothing is deleted: it may be what somebody wanted,
//! or somebody else's, since who made a file is not to be seen.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::plan::OutOfReach;

/// What is put behind a name that was set aside.
const ASIDE: &str = "refused-by-lodestar";

/// Most names that are tried for one file.
const MAX_TRIES: usize = 100;

/// What appeared, while a child ran that could make it, where nothing was and nothing may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// Where it was.
    pub place: PathBuf,
    /// Its name now; none where it could not be moved.
    pub aside: Option<OsString>,
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.display();
        match &self.aside {
            Some(aside) => {
                let aside = aside.display();
                write!(
                    f,
                    "`{place}` appeared while it ran, and is protected: it is `{aside}` now"
                )
            }
            None => write!(
                f,
                "`{place}` appeared while it ran, is protected, and cannot be moved aside"
            ),
        }
    }
}

/// The places to look at.
#[derive(Debug, Clone, Default)]
pub struct Absent(Vec<Place>);

/// One of them: the way to it from a folder that the child writes and cannot move.
#[derive(Debug, Clone)]
struct Place {
    from: PathBuf,
    names: Vec<OsString>,
    /// Whether a folder is no harm there.
    unless_folder: bool,
}

impl Absent {
    /// Those of the places that are not there, and that could be made.
    pub(super) fn of<'a>(
        places: impl IntoIterator<Item = &'a PathBuf>,
        writes: &[PathBuf],
    ) -> Self {
        let absent = places.into_iter().filter_map(|place| {
            let unless_folder = place.ends_with(".git");
            if place.symlink_metadata().is_ok() {
                return None;
            }
            let above = place.ancestors().find_map(|above| {
                let real = above.canonicalize().ok()?;
                Some((real, place.strip_prefix(above).ok()?))
            });
            let (real, rest) = above?;
            let whole = real.join(rest);
            let from = writes.iter().find(|grant| whole.starts_with(grant))?;
            let below = whole.strip_prefix(from).ok()?;
            let names = below.components().map(|component| match component {
                Component::Normal(name) => Some(name.to_owned()),
                _ => None,
            });
            Some(Place {
                from: from.clone(),
                names: names.collect::<Option<_>>()?,
                unless_folder,
            })
        });
        Self(absent.collect())
    }

    /// What is there by now, left where it is: while a child runs for long, others may have made it.
    pub fn found(&self) -> Vec<PathBuf> {
        let places = self.0.iter().map(|place| {
            let names = place.names.iter();
            (
                place,
                names.fold(place.from.clone(), |path, name| path.join(name)),
            )
        });
        let there = places.filter(|(place, path)| {
            let found = path.symlink_metadata();
            found.is_ok_and(|found| !(place.unless_folder && found.is_dir()))
        });
        there.map(|(_, path)| path).collect()
    }

    /// Moves aside what is there by now.
    pub fn set_aside(&self) -> Vec<Planted> {
        let planted = self.0.iter().filter_map(Place::set_aside);
        planted.collect()
    }
}

impl Place {
    /// Goes from folder to folder without following a link: a link that was put on the way leads wherever the child
    /// wants, so that it is the link that is moved, and never what lies behind it.
    fn set_aside(&self) -> Option<Planted> {
        let mut folder = open_folder(rustix::fs::CWD, self.from.as_os_str()).ok()?;
        let mut place = self.from.clone();
        let last = self.names.len().checked_sub(1)?;
        for (at, name) in self.names.iter().enumerate() {
            place.push(name);
            let found = rustix::fs::statat(&folder, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW);
            let kind = FileType::from_raw_mode(found.ok()?.st_mode);
            let is_folder = kind == FileType::Directory;
            if at < last && is_folder {
                folder = open_folder(&folder, name).ok()?;
            } else if (at == last && !(is_folder && self.unless_folder))
                || kind == FileType::Symlink
            {
                let aside = move_aside(&folder, name);
                return Some(Planted { place, aside });
            } else {
                return None;
            }
        }
        None
    }
}

fn open_folder(at: impl rustix::fd::AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

fn move_aside(folder: &OwnedFd, name: &OsStr) -> Option<OsString> {
    for at in 1..=MAX_TRIES {
        let mut aside = name.to_owned();
        aside.push(format!(".{ASIDE}"));
        if at > 1 {
            aside.push(format!("-{at}"));
        }
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(folder, name, folder, aside.as_os_str(), flags) {
            Ok(()) => return Some(aside),
            Err(Errno::EXIST) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Makes what is harmless where it is empty, so that it is there and can be covered: the hooks of a repository, and
/// folders that Lodestar would make itself a moment later.
pub(super) fn make_coverable(out_of_reach: &OutOfReach, writes: &[PathBuf]) {
    let fixed = &out_of_reach.fixed;
    for folder in out_of_reach.made_here() {
        let above = folder
            .ancestors()
            .find_map(|above| above.canonicalize().ok());
        if above.is_some_and(|above| writes.iter().any(|grant| above.starts_with(grant))) {
            let _ = std::fs::create_dir_all(folder);
        }
    }
    for place in fixed.iter().filter(|place| place.ends_with(".git/hooks")) {
        let is_repository = place.parent().is_some_and(is_repository);
        if is_repository && place.symlink_metadata().is_err() {
            // Where it cannot be made, the child, who is the same user, cannot make it either.
            let _ = std::fs::create_dir(place);
        }
    }
}

fn is_repository(git: &Path) -> bool {
    git.join("HEAD").is_file() && git.join("objects").is_dir()
}
