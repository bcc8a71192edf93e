//! Keeping what stands at paths, and looking at them again.
//!
//! A path is made real first: links on the way are followed by the system, and what they come to has to lie
//! below the root. From there on nothing is opened through a link, so one that is laid in between leads
//! to *not kept*, and never elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use lodestar_core::digest::{Hasher, sha256};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{
    Content, Image, MAX_ACT_BYTES, MAX_IMAGE_BYTES, MAX_IMAGES, MODE_BITS, Spelling, State, Stood,
    Unkept,
};
use crate::native::fs::{Below, Links, Root};
use crate::tool::AtLinks;

/// Links after links that are followed: the system's own limit is 40, and nobody needs that many.
const MAX_LINKS: usize = 16;

/// How often a file is read again that changes while it is read.
const READ_TRIES: usize = 3;

/// Largest file that is hashed when a call is over; whoever undoes a larger one is told that nobody saw it.
const MAX_SEEN_BYTES: u64 = 256 << 20;

/// What stands at the paths of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Where, and how it can be seen that it still does.
    pub sight: Sight,
    /// What.
    pub images: Vec<Image>,
}

/// Paths that are looked at, and how each was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The folder that they lie below.
    pub root: PathBuf,
    paths: Vec<(Spelling, Mark)>,
}

/// By what a change of a file shows without reading it; nothing where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark(Option<[i64; 8]>);

impl Mark {
    const NOTHING: Self = Self(None);

    #[allow(
        clippy::cast_possible_wrap,
        clippy::unnecessary_cast,
        reason = "compared, never reckoned with; and systems differ in the types"
    )]
    fn of(stat: &Stat) -> Self {
        Self(Some([
            stat.st_dev as i64,
            stat.st_ino as i64,
            i64::from(stat.st_mode),
            stat.st_size as i64,
            stat.st_mtime as i64,
            stat.st_mtime_nsec as i64,
            stat.st_ctime as i64,
            stat.st_ctime_nsec as i64,
        ]))
    }
}

impl Taken {
    /// The first path of which nothing is kept.
    pub fn first_unkept(&self) -> Option<(&Spelling, &Unkept)> {
        self.images.iter().find_map(|image| match &image.stood {
            Stood::Unkept { because } => Some((&image.path, because)),
            _ => None,
        })
    }
}

impl Sight {
    /// Of no path.
    pub(crate) fn of_nothing(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            paths: Vec::new(),
        }
    }

    /// Whether a look without reading shows no change.
    pub fn is_unchanged(&self) -> bool {
        let Ok(root) = Root::open(&self.root, Links::Refuse) else {
            return false;
        };
        self.paths.iter().all(|(path, mark)| {
            let below = root.path_below(path.as_path());
            below.map_or(Mark::NOTHING, |below| mark_at(&root, &below)) == *mark
        })
    }

    /// What stands there now, in the order of the images.
    pub fn look(&self) -> Vec<State> {
        let paths = self.paths.iter().map(|(path, _)| path);
        paths.map(|path| look(&self.root, path)).collect()
    }
}

/// What stands at a path below a root.
pub fn look(root: &Path, path: &Spelling) -> State {
    let unseen = |problem: String| State::Unseen { problem };
    let root = match Root::open(root, Links::Refuse) {
        Ok(root) => root,
        Err(problem) => return unseen(problem.to_string()),
    };
    match root.path_below(path.as_path()) {
        Some(below) => look_at(&root, &below),
        None => unseen(Unkept::Outside.to_string()),
    }
}

/// Keeps what stands at these paths; relative ones start from the root. What a link leads to is kept beside the
/// link where it may be followed.
pub fn take(root: &Path, paths: &[PathBuf], at_links: AtLinks) -> Taken {
    let mut taking = Taking {
        at_links,
        images: Vec::new(),
        paths: Vec::new(),
        left: MAX_ACT_BYTES,
    };
    let root = match Root::open(root, Links::Refuse) {
        Ok(root) => root,
        Err(problem) => {
            let problem = problem.to_string();
            for path in paths {
                let because = Unkept::Unreadable {
                    problem: problem.clone(),
                };
                taking.unkept(Spelling::from(path.as_path()), because);
            }
            return taking.done(root.to_owned());
        }
    };
    for path in paths {
        taking.whole(&root, path);
    }
    taking.done(root.path().to_owned())
}

struct Taking {
    at_links: AtLinks,
    images: Vec<Image>,
    paths: Vec<(Spelling, Mark)>,
    left: u64,
}

impl Taking {
    fn done(self, root: PathBuf) -> Taken {
        Taken {
            sight: Sight {
                root,
                paths: self.paths,
            },
            images: self.images,
        }
    }

    fn unkept(&mut self, path: Spelling, because: Unkept) {
        self.push(path, Stood::Unkept { because }, Mark::NOTHING);
    }

    fn push(&mut self, path: Spelling, stood: Stood, mark: Mark) {
        self.paths.push((path.clone(), mark));
        self.images.push(Image { path, stood });
    }

    /// A path in both readings: `..` taken out of the text, and `..` from where links led.
    fn whole(&mut self, root: &Root, path: &Path) {
        match root.path_below(path) {
            Some(below) => self.real(root, &root.path().join(below.as_path())),
            None => self.unkept(Spelling::from(path), Unkept::Outside),
        }
        if path.components().any(|one| one == Component::ParentDir) {
            self.real(root, &root.path().join(path));
        }
    }

    /// What stands at an absolute path, and at the end of its links.
    fn real(&mut self, root: &Root, path: &Path) {
        let mut next = path.to_owned();
        for _ in 0..MAX_LINKS {
            let below = match real(root, &next) {
                Ok(below) => below,
                Err(because) => {
                    let shown = next.strip_prefix(root.path()).unwrap_or(&next);
                    return self.unkept(Spelling::from(shown), because);
                }
            };
            let spelling = Spelling::from(below.as_path());
            if self.images.iter().any(|image| image.path == spelling) {
                return;
            }
            if self.images.len() == MAX_IMAGES {
                // Said once; more of the same says no more.
                return;
            }
            if self.images.len() + 1 == MAX_IMAGES {
                return self.unkept(spelling, Unkept::TooMuch);
            }
            let (stood, mark) = keep_at(root, &below, self.left);
            if let Stood::File { bytes, .. } = &stood {
                self.left = self.left.saturating_sub(*bytes);
            }
            let link = match (&stood, self.at_links) {
                (Stood::Link { to }, AtLinks::Follows) => Some(to.clone()),
                _ => None,
            };
            self.push(spelling, stood, mark);
            let (Some(link), Some((folder, _))) = (link, below.split()) else {
                return;
            };
            next = root.path().join(folder.as_path()).join(link.as_path());
        }
        let problem = "too many links".to_owned();
        let shown = next.strip_prefix(root.path()).unwrap_or(&next);
        self.unkept(Spelling::from(shown), Unkept::Unreadable { problem });
    }
}

/// The path without links on the way; its last name may be one.
fn real(root: &Root, path: &Path) -> Result<Below, Unkept> {
    let unreadable = |problem: String| Unkept::Unreadable { problem };
    let (mut folder, mut names) = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => (folder.to_owned(), vec![name.to_owned()]),
        // It ends in `..`, or is `/`: a folder.
        _ => (path.to_owned(), Vec::new()),
    };
    loop {
        match folder.canonicalize() {
            Ok(real) => {
                let mut real = real;
                real.extend(names.iter().rev());
                return root.path_below(&real).ok_or(Unkept::Outside);
            }
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
                if folder.symlink_metadata().is_ok() {
                    return Err(unreadable("a link on the way leads nowhere".to_owned()));
                }
                let name: Option<OsString> = folder.file_name().map(OsStr::to_owned);
                match (name, folder.parent()) {
                    (Some(name), Some(above)) => {
                        let above = above.to_owned();
                        names.push(name);
                        folder = above;
                    }
                    _ => return Err(unreadable(problem.to_string())),
                }
            }
            // Nothing can stand below what is no folder; whoever writes there finds out.
            Err(problem) if problem.kind() == io::ErrorKind::NotADirectory => {
                let mut real = folder;
                real.extend(names.iter().rev());
                return root.path_below(&real).ok_or(Unkept::Outside);
            }
            Err(problem) => return Err(unreadable(problem.to_string())),
        }
    }
}

/// The folder that a path lies in, and its name there.
enum Place<'a> {
    In(OwnedFd, &'a OsStr),
    /// This many folders on the way are missing.
    Missing(u32),
    /// It is the root.
    Root,
}

fn place<'a>(root: &Root, path: &'a Below) -> Result<Place<'a>, Errno> {
    let Some((mut folder, name)) = path.split() else {
        return Ok(Place::Root);
    };
    let mut missing = 0;
    loop {
        match root.open_directory(&folder) {
            Ok(opened) if missing == 0 => return Ok(Place::In(opened, name)),
            Ok(_) => return Ok(Place::Missing(missing)),
            Err(Errno::NOENT) => missing += 1,
            // A file stands where a folder would have to be.
            Err(Errno::NOTDIR) => return Ok(Place::Missing(missing)),
            Err(errno) => return Err(errno),
        }
        let Some((above, _)) = folder.split() else {
            return Err(Errno::NOENT);
        };
        folder = above;
    }
}

fn stat(folder: &OwnedFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn mark_at(root: &Root, path: &Below) -> Mark {
    match place(root, path) {
        Ok(Place::In(folder, name)) => match stat(&folder, name) {
            Ok(Some(stat)) => Mark::of(&stat),
            _ => Mark::NOTHING,
        },
        _ => Mark::NOTHING,
    }
}

fn told(errno: Errno) -> String {
    match errno {
        Errno::LOOP => "a link was laid on the way".to_owned(),
        errno => io::Error::from(errno).to_string(),
    }
}

fn keep_at(root: &Root, path: &Below, left: u64) -> (Stood, Mark) {
    let unkept = |because| (Stood::Unkept { because }, mark_at(root, path));
    match try_keep(root, path, left) {
        Ok(Ok(kept)) => kept,
        Ok(Err(because)) => unkept(because),
        Err(errno) => unkept(Unkept::Unreadable {
            problem: told(errno),
        }),
    }
}

fn try_keep(root: &Root, path: &Below, left: u64) -> Result<Result<(Stood, Mark), Unkept>, Errno> {
    let (folder, name) = match place(root, path)? {
        Place::In(folder, name) => (folder, name),
        Place::Missing(missing_folders) => {
            return Ok(Ok((Stood::Nothing { missing_folders }, Mark::NOTHING)));
        }
        Place::Root => return Ok(Ok((Stood::Folder, Mark::NOTHING))),
    };
    for _ in 0..READ_TRIES {
        let Some(seen) = stat(&folder, name)? else {
            let nothing = Stood::Nothing { missing_folders: 0 };
            return Ok(Ok((nothing, Mark::NOTHING)));
        };
        let mark = Mark::of(&seen);
        match FileType::from_raw_mode(seen.st_mode) {
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(&folder, name, Vec::new())?;
                let to = OsStr::from_bytes(to.as_bytes()).to_owned();
                let to = Spelling::from(to);
                return Ok(Ok((Stood::Link { to }, mark)));
            }
            // What is in a folder changes its times, and is nothing of it.
            FileType::Directory => return Ok(Ok((Stood::Folder, mark))),
            FileType::RegularFile => {}
            _ => return Ok(Err(Unkept::Special)),
        }
        let size = u64::try_from(seen.st_size).unwrap_or(u64::MAX);
        if size > MAX_IMAGE_BYTES {
            return Ok(Err(Unkept::TooLarge { bytes: size }));
        }
        if size > left {
            return Ok(Err(Unkept::TooMuch));
        }
        let file = open(&folder, name)?;
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        let read = (&file).take(MAX_IMAGE_BYTES + 1).read_to_end(&mut content);
        if let Err(problem) = read {
            let problem = problem.to_string();
            return Ok(Err(Unkept::Unreadable { problem }));
        }
        let after = rustix::fs::fstat(&file)?;
        if Mark::of(&after) != mark || content.len() as u64 != size {
            continue;
        }
        let stood = Stood::File {
            mode: mode(&seen),
            bytes: size,
            sha256: sha256(&content),
            content: Content::of(content),
        };
        return Ok(Ok((stood, mark)));
    }
    let problem = "it changes while it is read".to_owned();
    Ok(Err(Unkept::Unreadable { problem }))
}

fn mode(stat: &Stat) -> u32 {
    stat.st_mode & MODE_BITS
}

fn open(folder: &OwnedFd, name: &OsStr) -> Result<File, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty()).map(File::from)
}

/// What stands at a path now.
fn look_at(root: &Root, path: &Below) -> State {
    match place(root, path) {
        Ok(Place::In(folder, name)) => look_in(&folder, name),
        Ok(Place::Missing(missing_folders)) => State::Nothing { missing_folders },
        Ok(Place::Root) => State::Folder,
        Err(errno) => State::Unseen {
            problem: told(errno),
        },
    }
}

/// What stands in a folder under a name.
pub(crate) fn look_in(folder: &OwnedFd, name: &OsStr) -> State {
    let unseen = |problem: String| State::Unseen { problem };
    let seen = match stat(folder, name) {
        Ok(Some(seen)) => seen,
        Ok(None) => return State::Nothing { missing_folders: 0 },
        Err(errno) => return unseen(told(errno)),
    };
    match FileType::from_raw_mode(seen.st_mode) {
        FileType::Symlink => match rustix::fs::readlinkat(folder, name, Vec::new()) {
            Ok(to) => State::Link {
                to: Spelling::from(OsStr::from_bytes(to.as_bytes()).to_owned()),
            },
            Err(errno) => unseen(told(errno)),
        },
        FileType::Directory => State::Folder,
        FileType::RegularFile => match hash(folder, name) {
            Ok((mode, sha256)) => State::File { mode, sha256 },
            Err(problem) => unseen(problem.to_string()),
        },
        _ => unseen(Unkept::Special.to_string()),
    }
}

fn hash(folder: &OwnedFd, name: &OsStr) -> io::Result<(u32, lodestar_core::digest::Digest)> {
    let file = open(folder, name)?;
    let seen = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is no longer a file"));
    }
    let (mut hasher, mut read) = (Hasher::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    let mut limited = (&file).take(MAX_SEEN_BYTES + 1);
    loop {
        let n = limited.read(&mut buffer)?;
        if n == 0 {
            return Ok((mode(&seen), hasher.finish()));
        }
        read += n as u64;
        if read > MAX_SEEN_BYTES {
            return Err(io::Error::other(format!(
                "it has more than {MAX_SEEN_BYTES} bytes"
            )));
        }
        hasher.update(&buffer[..n]);
    }
}
