//! Where a path leads: by its text, and by the links that lie on its way.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::spelling;

/// Names below `/proc/PID` that lead wherever that process is: nobody can say where from here.
const PROCESS_LINKS: [&str; 6] = ["cwd", "root", "fd", "task", "map_files", "exe"];

/// Most links that are followed, as systems have it.
const MAX_LINKS: usize = 40;

/// A folder that relative paths start from.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// As it is written, without `.` and `..`.
    pub(super) written: PathBuf,
    /// Where it really lies.
    pub(super) real: PathBuf,
    /// The names of `written`.
    names: Vec<Name<'static>>,
    has_a_processes_name: bool,
}

impl Base {
    pub(super) fn at(written: PathBuf) -> Self {
        Self::new(walk(Path::new("/"), &written).path, written)
    }

    /// One that was walked to.
    pub(super) fn real(real: PathBuf) -> Self {
        Self::new(real.clone(), real)
    }

    fn new(real: PathBuf, written: PathBuf) -> Self {
        let names: Vec<_> = names(&written).into_iter().map(Name::owned).collect();
        Self {
            real,
            has_a_processes_name: has_a_processes_name(&names),
            names,
            written,
        }
    }
}

/// A path as somebody wrote it, read once for all folders that it may start from.
pub(super) struct Written<'a> {
    pub(super) path: &'a Path,
    names: Vec<Name<'a>>,
    /// Whether it is relative and has nothing but names in it, each followed by one slash or the end.
    is_plain: bool,
}

impl<'a> Written<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let path = Path::new(text);
        let (mut length, mut is_plain) = (0, true);
        for component in path.components() {
            is_plain &= matches!(component, Component::Normal(_));
            length += component.as_os_str().len() + 1;
        }
        Self {
            path,
            names: names(path),
            is_plain: is_plain && length == text.len() + 1,
        }
    }

    /// An absolute path, by its text alone, and the names of it.
    pub(super) fn by_text<T>(&self, base: &Base, look: impl FnOnce(&Path, &[&Name<'_>]) -> T) -> T {
        if self.is_plain {
            let names: Vec<&Name<'_>> = base.names.iter().chain(&self.names).collect();
            return look(&base.written.join(self.path), &names);
        }
        let path = lexical(&base.written, self.path);
        let names = names(&path);
        look(&path, &names.iter().collect::<Vec<_>>())
    }

    /// Whether it comes by a place that is another's for every process, also where a later `..` leads out
    /// of it again.
    pub(super) fn passes_a_process(&self, base: &Base) -> bool {
        // Most paths have no such name at all.
        if !base.has_a_processes_name && !has_a_processes_name(&self.names) {
            return false;
        }
        let mut way = PathBuf::from("/");
        base.written.join(self.path).components().any(|component| {
            match component {
                Component::Normal(name) => way.push(name),
                Component::ParentDir => {
                    way.pop();
                }
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
            // Only the top of the tree is asked about.
            way.components().count() <= 4 && leads_through_a_process(&names(&way))
        })
    }
}

/// One name of a path, folded.
#[derive(Debug, Clone)]
pub(super) struct Name<'a> {
    pub(super) text: Cow<'a, str>,
    /// Whether some of its characters may stand for others.
    is_pattern: bool,
}

impl<'a> Name<'a> {
    fn of(name: &'a OsStr) -> Self {
        let text = match name.to_string_lossy() {
            Cow::Borrowed(name) => spelling::fold(name),
            Cow::Owned(name) => Cow::Owned(spelling::fold(&name).into_owned()),
        };
        Self {
            is_pattern: spelling::is_pattern(&text),
            text,
        }
    }

    fn owned(self) -> Name<'static> {
        Name {
            text: Cow::Owned(self.text.into_owned()),
            is_pattern: self.is_pattern,
        }
    }

    /// Whether it may mean this name.
    pub(super) fn may_be(&self, name: &str) -> bool {
        self.text == name || (self.is_pattern && spelling::may_mean(&self.text, name))
    }
}

/// The names of a path.
pub(super) fn names(path: &Path) -> Vec<Name<'_>> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(Name::of(name)),
            _ => None,
        })
        .collect()
}

/// Whether one of them is a name that such a place begins with.
fn has_a_processes_name(names: &[Name<'_>]) -> bool {
    let mut names = names.iter();
    names.any(|name| matches!(name.text.as_ref(), "proc" | "dev"))
}

/// `/proc/self/cwd`, `/dev/fd`, `/dev/stdin`: places that are another's for every process.
fn leads_through_a_process(names: &[Name<'_>]) -> bool {
    let names = names.iter().map(|name| name.text.as_ref());
    match names.collect::<Vec<_>>()[..] {
        ["proc", _, link, ..] => PROCESS_LINKS.contains(&link),
        ["dev", "fd" | "stdin" | "stdout" | "stderr", ..] => true,
        _ => false,
    }
}

/// An absolute path without `.` and `..`, by its text alone; `..` at the root stays there.
pub(crate) fn lexical(base: &Path, path: &Path) -> PathBuf {
    let mut found = PathBuf::with_capacity(base.as_os_str().len() + path.as_os_str().len() + 2);
    found.push("/");
    let base = if path.is_absolute() {
        Path::new("/")
    } else {
        base
    };
    for component in base.components().chain(path.components()) {
        match component {
            Component::Normal(name) => found.push(name),
            Component::ParentDir => {
                found.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    found
}

/// Where a path leads.
pub(super) struct Walked {
    pub(super) path: PathBuf,
    /// False where it is certain that nothing is there.
    pub(super) is_there: bool,
    /// Whether a link on the way led through a place that is another's for every process.
    pub(super) passed_a_process: bool,
}

/// Where a path really leads: component by component as the system does it, links followed before the
/// next `..`, as far as it exists; the rest as written.
///
/// The base is a folder that was walked to before.
pub(super) fn walk(base: &Path, path: &Path) -> Walked {
    let mut found = base.to_owned();
    let mut steps: Vec<Cow<'_, OsStr>> = path.iter().rev().map(Cow::Borrowed).collect();
    let mut links = 0;
    // Below what is not there nothing is, until `..` leads out of it.
    let mut missing = 0_usize;
    let mut passed_a_process = false;
    while let Some(step) = steps.pop() {
        if *step == *"/" {
            found = PathBuf::from("/");
            missing = 0;
        } else if *step == *".." {
            found.pop();
            missing = missing.saturating_sub(1);
        } else if *step != *"." {
            found.push(&step);
            if missing > 0 {
                missing += 1;
                continue;
            }
            let text = found.as_os_str().as_bytes();
            let top = text.starts_with(b"/proc/") || text.starts_with(b"/dev/");
            passed_a_process |= top && leads_through_a_process(&names(&found));
            match found.read_link() {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    found.pop();
                    let target = target.iter().rev();
                    steps.extend(target.map(|step| Cow::Owned(step.to_owned())));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing = 1,
                Ok(_) | Err(_) => {}
            }
        }
    }
    Walked {
        path: found,
        is_there: missing == 0,
        passed_a_process,
    }
}
