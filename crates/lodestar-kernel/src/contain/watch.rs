//! What mounts and rules cannot hold, looked at from outside while a child runs and when it has ended.
//!
//! A mount covers what is there and no link, and it falls when somebody outside puts another file in the place of the
//! one that it covers; Landlock grants a folder without exceptions. So there are three things to look for: a
//! protected file that was not there, a link on the way to one that leads elsewhere now, and a cover that fell.
//! What appeared is moved aside, to a name beside it that no program looks for; a link is laid again; a cover is put
//! back. Nothing is deleted: it may be what somebody wanted, or somebody else's, since who made a file is not to be
//! seen.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::cover::{Cover, Covered};
use super::enter;
use super::plan::OutOfReach;
use crate::protect::lexical;
use crate::protect::repository::is_repository;

/// What is put behind a name that was set aside.
const ASIDE: &str = "refused-by-lodestar";

/// Most names that are tried for one file.
const MAX_TRIES: usize = 8;

/// How much is moved aside for one child before it is ended: whoever makes it anew each time fills the folder.
const MAX_MOVED: usize = 32;

/// What happened to a protected place while a child ran that could have done it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// Where.
    pub place: PathBuf,
    /// What.
    pub what: What,
    /// Its name now; none where it was not moved.
    pub aside: Option<OsString>,
}

/// What happens to protected places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// It was not there.
    Appeared,
    /// It was a link, and is another one, something else or nothing.
    Relinked,
    /// Somebody outside replaced it, and for a moment nothing covered it.
    Uncovered,
    /// The same, and it cannot be covered again.
    Open,
    /// It appeared again and again.
    TooOften,
}

impl Planted {
    /// Whether it is still there for whoever comes: the child must not go on then.
    pub fn is_open(&self) -> bool {
        match self.what {
            What::Open | What::TooOften => true,
            What::Uncovered => false,
            What::Appeared | What::Relinked => self.aside.is_none(),
        }
    }
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.display();
        match self.what {
            What::Appeared => write!(f, "`{place}` appeared while it ran, and is protected")?,
            What::Relinked => write!(f, "`{place}` was a link, and was changed while it ran")?,
            What::TooOften => write!(
                f,
                "`{place}` is protected, and appeared again and again while it ran"
            )?,
            What::Uncovered => write!(
                f,
                "`{place}` was replaced while it ran, and was open to it for a moment: look at it"
            )?,
            What::Open => write!(
                f,
                "`{place}` was replaced while it ran, and was open to it since: look at it"
            )?,
        }
        match (&self.aside, self.what) {
            (Some(aside), _) => write!(f, ": what was there is `{}` now", aside.display()),
            (None, What::Appeared | What::Relinked) => {
                f.write_str("; it cannot be moved: look at it before a client does")
            }
            (None, What::Uncovered | What::Open | What::TooOften) => Ok(()),
        }
    }
}

/// The places to look at.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    places: Vec<Place>,
    covered: Vec<(Covered, Seen)>,
    /// How much was moved aside.
    moved: usize,
}

/// The file that a cover lies over. It is held, since its number is given to another file otherwise as soon as it is gone.
#[derive(Debug, Clone)]
struct Seen {
    number: (u64, u64),
    _held: Option<Arc<OwnedFd>>,
}

impl Seen {
    fn at(place: &Path) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::open(place, flags, Mode::empty()).ok()?;
        let found = rustix::fs::fstat(&held).ok()?;
        Some(Self {
            number: (found.st_dev, found.st_ino),
            _held: Some(Arc::new(held)),
        })
    }
}

/// One of them: the way to it from a folder that the child writes and cannot move.
#[derive(Debug, Clone)]
struct Place {
    from: PathBuf,
    names: Vec<OsString>,
    was: Was,
}

/// How it was when the child started.
#[derive(Debug, Clone)]
enum Was {
    /// Nothing was there.
    Absent,
    /// Nothing was there, and a folder would do no harm.
    AbsentOrFolder,
    /// It was nothing or some file, which would make its folder a repository beside [`REPOSITORY`].
    NoRepository,
    /// A link that leads there.
    Link(PathBuf),
}

/// What a folder with a `HEAD` needs one of to be a repository.
const REPOSITORY: [&str; 2] = ["objects", "commondir"];

impl Watch {
    /// Over these places of a child that writes those, and over what covers it.
    pub(super) fn over(
        out_of_reach: &OutOfReach,
        project: &Path,
        writes: &[PathBuf],
        cover: Option<&Cover>,
    ) -> Self {
        let not_made = out_of_reach.not_made();
        let mut places: Vec<Place> = not_made
            .flat_map(|place| Place::of(place, writes))
            .collect();
        // What Lodestar makes itself is no plant, but a link to it stays.
        let made = out_of_reach.made_here().chain(&out_of_reach.keys);
        let made = made.flat_map(|place| Place::of(place, writes));
        places.extend(made.filter(|place| matches!(place.was, Was::Link(_))));
        // Without a sound `.git`, git takes the folder itself for the repository, and runs what its settings say. Those of
        // one that it is already are fixed.
        if let Some(top) = project
            .canonicalize()
            .ok()
            .filter(|top| !is_repository(top))
        {
            places.extend(Place::below(&top.join("HEAD"), Was::NoRepository, writes));
        }
        let covered = cover.into_iter().flat_map(|cover| &cover.covered);
        let covered = covered.filter_map(|one| Some((one.clone(), Seen::at(one.place())?)));
        Self {
            places,
            covered: covered.collect(),
            moved: 0,
        }
    }

    /// Whether a child could make something that is protected.
    pub fn can_appear(&self) -> bool {
        !self.places.is_empty()
    }

    /// What happened since the last look. Covers that fell are put back while the child `leader` runs; what appeared is
    /// moved aside at once, and links are laid again: a client that starts in the meantime must not find it.
    pub fn look(&mut self, leader: Option<Pid>) -> Vec<Planted> {
        let mut planted = self.uncovered(leader);
        for place in &self.places {
            let Some(mut found) = place.set_aside() else {
                continue;
            };
            self.moved += 1;
            if self.moved > MAX_MOVED {
                found.what = What::TooOften;
            }
            planted.push(found);
        }
        planted
    }

    /// Covers that fell; put back where the child still runs.
    fn uncovered(&mut self, leader: Option<Pid>) -> Vec<Planted> {
        let mut news = Vec::new();
        for (covered, was) in &mut self.covered {
            let now = Seen::at(covered.place());
            let Some(now) = now.filter(|now| now.number != was.number) else {
                continue;
            };
            let again = leader.is_some_and(|leader| {
                let again = covered.mount().and_then(|one| enter::cover(leader, one));
                again.is_ok()
            });
            *was = now;
            news.push(Planted {
                place: covered.place().to_owned(),
                what: match again || leader.is_none() {
                    true => What::Uncovered,
                    false => What::Open,
                },
                aside: None,
            });
        }
        news
    }
}

impl Place {
    /// What is to be looked at for a protected place: each link on the way to it that the child could change, and where it
    /// leads to if nothing is there. What is there is covered.
    fn of(place: &Path, writes: &[PathBuf]) -> Vec<Self> {
        let mut found = Vec::new();
        let mut place = place.to_owned();
        for _ in 0..MAX_LINKS {
            let Some((real, link, rest)) = up_to_a_link(&place, writes) else {
                return found;
            };
            let Some(target) = link else {
                let was = match real.symlink_metadata() {
                    Ok(_) => return found,
                    Err(_) if place.ends_with(".git") => Was::AbsentOrFolder,
                    Err(_) => Was::Absent,
                };
                found.extend(Self::below(&real, was, writes));
                return found;
            };
            let folder = real.parent().unwrap_or(Path::new("/"));
            place = lexical(folder, &target).join(rest);
            found.extend(Self::below(&real, Was::Link(target), writes));
        }
        found
    }

    fn below(real: &Path, was: Was, writes: &[PathBuf]) -> Option<Self> {
        let from = writes.iter().find(|grant| real.starts_with(grant))?;
        let below = real.strip_prefix(from).ok()?;
        let names = below.components().map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            _ => None,
        });
        Some(Self {
            from: from.clone(),
            names: names.collect::<Option<_>>()?,
            was,
        })
    }

    /// Goes from folder to folder without following a link: a link that was put on the way leads wherever the child
    /// wants, so that it is the link that is moved, and never what lies behind it.
    fn set_aside(&self) -> Option<Planted> {
        let mut folder = open_folder(rustix::fs::CWD, self.from.as_os_str()).ok()?;
        let mut place = self.from.clone();
        let (last, above) = self.names.split_last()?;
        for name in above {
            place.push(name);
            let found = rustix::fs::statat(&folder, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW);
            match FileType::from_raw_mode(found.ok()?.st_mode) {
                FileType::Directory => folder = open_folder(&folder, name).ok()?,
                FileType::Symlink => {
                    let aside = move_aside(&folder, name);
                    let what = What::Appeared;
                    return Some(Planted { place, what, aside });
                }
                _ => return None,
            }
        }
        place.push(last);
        let found = rustix::fs::statat(&folder, last.as_os_str(), AtFlags::SYMLINK_NOFOLLOW);
        let kind = found.map(|found| FileType::from_raw_mode(found.st_mode));
        let (what, aside) = match &self.was {
            Was::Link(target) => {
                let now = rustix::fs::readlinkat(&folder, last.as_os_str(), Vec::new());
                if now.is_ok_and(|now| now.as_bytes() == target.as_os_str().as_encoded_bytes()) {
                    return None;
                }
                let aside = match kind {
                    // It was taken away: there is nothing to move.
                    Err(_) => Some(last.clone()),
                    Ok(_) => move_aside(&folder, last),
                };
                // Where it cannot be laid, it is open to whoever comes next.
                let laid = rustix::fs::symlinkat(target.as_path(), &folder, last.as_os_str());
                (What::Relinked, aside.filter(|_| laid.is_ok()))
            }
            Was::Absent => {
                kind.ok()?;
                (What::Appeared, move_aside(&folder, last))
            }
            Was::AbsentOrFolder => {
                kind.ok().filter(|kind| *kind != FileType::Directory)?;
                (What::Appeared, move_aside(&folder, last))
            }
            Was::NoRepository => {
                kind.ok()?;
                let is_there = |name: &str| {
                    rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
                };
                if !REPOSITORY.into_iter().any(is_there) {
                    return None;
                }
                (What::Appeared, move_aside(&folder, last))
            }
        };
        Some(Planted { place, what, aside })
    }
}

/// Most links on the way to one place.
const MAX_LINKS: usize = 40;

/// A place as it really lies, up to the first link on the way that the child could change; that link's target, and what of
/// the place is left behind it. Nothing where it cannot be told.
fn up_to_a_link(place: &Path, writes: &[PathBuf]) -> Option<(PathBuf, Option<PathBuf>, PathBuf)> {
    let mut real = PathBuf::new();
    let mut rest = place.components();
    while let Some(component) = rest.next() {
        let here = real.join(component);
        match std::fs::read_link(&here) {
            Ok(target) if writes.iter().any(|grant| real.starts_with(grant)) => {
                return Some((here, Some(target), rest.as_path().to_owned()));
            }
            // A link that no child can change is as good as what it leads to.
            Ok(_) => real = here.canonicalize().ok()?,
            Err(_) => real = here,
        }
    }
    Some((real, None, PathBuf::new()))
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
            // A child could have taken the next number: nobody guesses this one.
            let mut random = [0; 8];
            getrandom::fill(&mut random).ok()?;
            aside.push(format!("-{:016x}", u64::from_le_bytes(random)));
        }
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(folder, name, folder, aside.as_os_str(), flags) {
            Ok(()) => return Some(aside),
            Err(Errno::EXIST) => {}
            // A child of the same user may have shut the folder.
            Err(Errno::ACCESS) => {
                let open = Mode::RUSR | Mode::WUSR | Mode::XUSR;
                rustix::fs::chmodat(folder, ".", open, AtFlags::empty()).ok()?;
            }
            Err(_) => return None,
        }
    }
    None
}

/// Makes what is harmless where it is empty, so that it is there and can be covered: the hooks of a repository, and
/// folders that Lodestar would make itself a moment later.
pub(super) fn make_coverable(out_of_reach: &OutOfReach, granted: &[PathBuf]) {
    let fixed = &out_of_reach.fixed;
    for folder in out_of_reach.made_here().chain(&out_of_reach.keys) {
        let above = folder
            .ancestors()
            .find_map(|above| above.canonicalize().ok());
        if above.is_some_and(|above| granted.iter().any(|grant| above.starts_with(grant))) {
            // Nobody else's, as whoever makes them later would have it.
            let mut made = std::fs::DirBuilder::new();
            let _ = made.recursive(true).mode(0o700).create(folder);
        }
    }
    for place in fixed {
        let in_repository = place.parent().is_some_and(is_repository);
        if !in_repository || place.symlink_metadata().is_ok() {
            continue;
        }
        // Where it cannot be made, the child, who is the same user, cannot make it either. Settings without a word in them
        // are as good as none; none can be covered.
        if place.ends_with("hooks") {
            let _ = std::fs::create_dir(place);
        } else if place.ends_with("config") {
            let _ = std::fs::File::create_new(place);
        }
    }
}
