//! What a path leads to, by its text: the project, something outside, a device, a credential, or Lodestar itself.
//!
//! Links are not followed here: that takes a file system, and is for [`crate::protect`] and the operating system.

use std::cell::Cell;

use lodestar_core::fingerprint::MAX_PATH_LEN;
use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use super::grade::Grade;
use crate::protect::{NOT_MOVED, NOT_WRITTEN, PROTECTED};

/// Stands in a text for what is only known when the command runs.
pub(super) const MARK: char = '\u{e000}';

/// Most paths that are judged for one line, from each folder that it can be in.
const MAX_LOOKS: usize = 20_000;

/// Longest name of a file on any file system, in bytes of UTF-8, with room to spare.
const MAX_NAME_LEN: usize = 1024;

/// What is done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Only its name is looked at.
    Names,
    Reads,
    /// Everything below it is read.
    ReadsBelow,
    Writes,
    /// It is deleted, with what is below it.
    Deletes,
}

/// Where a path lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Located {
    Inside(Vec<String>),
    /// Absolute, or from somebody's home, or above the project.
    Outside(Vec<String>),
}

/// Places from which paths are read: the project first, then wherever a line changes to.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) root: Option<String>,
    /// Folders, as spelt; the empty one is the project.
    pub(super) current: Vec<String>,
    /// How many paths were judged so far.
    pub(super) looks: Cell<usize>,
}

impl Places {
    pub(super) fn locate(&self, place: &str, path: &str) -> Located {
        let whole = match path.starts_with(['/', '~']) || place.is_empty() {
            true => path.to_owned(),
            false => format!("{place}/{path}"),
        };
        let mut names: Vec<String> = Vec::new();
        let absolute = whole.starts_with('/');
        for name in whole.split('/') {
            match name {
                "" | "." => {}
                ".." if names
                    .last()
                    .is_some_and(|last| last != ".." && !last.starts_with('~')) =>
                {
                    names.pop();
                }
                ".." if absolute && names.is_empty() => {}
                name => names.push(name.to_owned()),
            }
        }
        if absolute {
            names.insert(0, String::new());
            // `Project` and `project` are two folders; only what is looked for by its name is folded.
            let root = self.root.as_deref();
            let root = root.map(|root| root.trim_end_matches('/'));
            let joined = names.join("/");
            return match root.and_then(|root| joined.strip_prefix(root)) {
                Some("") => Located::Inside(Vec::new()),
                Some(below) if below.starts_with('/') => {
                    Located::Inside(below.split('/').skip(1).map(str::to_lowercase).collect())
                }
                _ => Located::Outside(folded(&names)),
            };
        }
        let unknown = names.first().is_some_and(|name| name.starts_with(MARK));
        let climbs = names
            .first()
            .is_some_and(|name| name == ".." || name.starts_with('~'));
        match climbs || (unknown && !place.is_empty()) {
            true => Located::Outside(folded(&names)),
            false => Located::Inside(folded(&names)),
        }
    }

    /// Whether a path is the project itself.
    pub(super) fn is_root(&self, path: &str) -> bool {
        let root = |place: &String| matches!(self.locate(place, path), Located::Inside(names) if names.is_empty());
        self.current.iter().any(root)
    }

    /// Whether a path stays in the project from wherever it is read.
    pub(super) fn is_inside(&self, path: &str) -> bool {
        self.current
            .iter()
            .all(|place| matches!(self.locate(place, path), Located::Inside(_)))
    }

    /// Raises a grade by what is done with a path.
    pub(super) fn judge(&self, path: &str, to: Use, pattern: bool, grade: &mut Grade) {
        let looks = self.looks.get() + self.current.len();
        self.looks.set(looks);
        if looks > MAX_LOOKS {
            return grade.raise(Rung::L4, "it names more files than anybody looks through");
        }
        if path.len() > MAX_PATH_LEN || path.split('/').any(|name| name.len() > MAX_NAME_LEN) {
            return grade.raise(Rung::L4, "a word of it is longer than the name of any file");
        }
        for place in &self.current {
            let located = self.locate(place, path);
            judge(path, &located, to, pattern, grade);
        }
    }
}

/// Names as they are compared with those of credentials and of Lodestar: some file systems do not tell cases apart.
fn folded(names: &[String]) -> Vec<String> {
    names.iter().map(|name| name.to_lowercase()).collect()
}

const DEVICES: [&str; 9] = [
    "null", "stdin", "stdout", "stderr", "tty", "zero", "random", "urandom", "full",
];

/// Begins of the names of block devices and of memory.
const BLOCK: [&str; 15] = [
    "sd", "nvme", "hd", "vd", "xvd", "mmcblk", "disk", "rdisk", "mapper", "dm-", "loop", "md",
    "mem", "kmem", "port",
];

fn judge(path: &str, located: &Located, to: Use, pattern: bool, grade: &mut Grade) {
    let shown = Excerpt::of(path);
    let (names, outside) = match located {
        Located::Inside(names) => (names.as_slice(), false),
        Located::Outside(names) => (names.as_slice(), true),
    };
    let writes = matches!(to, Use::Writes | Use::Deletes);
    if is_own(names, writes, pattern) {
        let reason = format!("`{shown}` leads to what governs the agent, which no tool may reach");
        return grade.raise(Rung::L5, reason);
    }
    if writes && may_be_own(names) {
        grade.raise(
            Rung::L4,
            format!("`{shown}` could lead to what governs the agent"),
        );
    }
    let parts: Vec<&str> = names.iter().map(String::as_str).collect();
    if let ["", "dev", device, ..] = parts.as_slice() {
        let block = BLOCK.iter().any(|begin| device.starts_with(begin));
        match () {
            () if *device == "fd" || DEVICES.contains(device) => {}
            () if *device == "tcp" || *device == "udp" => {
                grade.raise(
                    Rung::L4,
                    format!("`{shown}` is a connection to the network"),
                );
            }
            () if block && writes => {
                grade.raise(
                    Rung::L5,
                    format!("`{shown}` is a device, and writing to it destroys it"),
                );
            }
            () if to == Use::Names => {}
            () => grade.raise(Rung::L4, format!("`{shown}` is a device")),
        }
        return;
    }
    if to == Use::Names {
        return;
    }
    if outside && names.first().is_some_and(|name| name.contains(MARK)) {
        grade.raise(
            Rung::L4,
            format!("where `{shown}` lies is only known when it runs"),
        );
    }
    if is_secret(&parts, outside, pattern) {
        grade.raise(Rung::L4, format!("`{shown}` holds or may hold credentials"));
    }
    match to {
        Use::ReadsBelow if outside && is_broad(&parts) => {
            let reason = format!("everything below `{shown}` would be read, credentials with it");
            grade.raise(Rung::L4, reason);
        }
        Use::Deletes if outside && is_broad(&parts) => {
            grade.raise(Rung::L5, format!("`{shown}` is more than a project"));
        }
        Use::Writes | Use::Deletes if outside => {
            grade.raise(Rung::L4, format!("`{shown}` lies outside the project"));
        }
        _ => {}
    }
}

/// Where keys are kept.
const KEYS: [&[&str]; 1] = [&[".config", "lodestar"]];

/// Whether the components are, or lie below, what is Lodestar's or governs the agent.
fn is_own(names: &[String], writes: bool, pattern: bool) -> bool {
    let same = |name: &String, protected: &str| {
        name == protected || (pattern && is_telling(name) && matches(name, protected))
    };
    for run in PROTECTED.iter().chain(&KEYS) {
        let hit = names
            .windows(run.len())
            .any(|window| window.iter().zip(*run).all(|(name, part)| same(name, part)));
        if hit {
            return true;
        }
    }
    writes
        && (names.iter().any(|name| same(name, NOT_WRITTEN))
            || names
                .last()
                .is_some_and(|last| NOT_MOVED.iter().any(|folder| same(last, folder))))
}

/// Whether names of which one is only known when it runs could lead there: the others have to be told.
fn may_be_own(names: &[String]) -> bool {
    PROTECTED.iter().any(|run| {
        names.windows(run.len()).any(|window| {
            let mut pairs = window.iter().zip(*run);
            let told = pairs.clone().any(|(name, part)| name == part);
            told && pairs.all(|(name, part)| name == part || could_be(name, part))
        })
    })
}

/// Whether a name of which something is only known when it runs could come to this one.
fn could_be(name: &str, part: &str) -> bool {
    let hidden = name.starts_with(MARK) && matches(name, part.trim_start_matches('.'));
    name.contains(MARK) && (hidden || matches(name, part))
}

/// Whether a pattern or path leads to no file that governs the agent: by its ending, or into a folder.
pub(super) fn is_narrow(path: &str) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path);
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let hidden = path.starts_with(['.', MARK]) || path.contains("/.");
    let into = !folder.is_empty() && folder.chars().any(char::is_alphanumeric);
    let plain = !name.contains(['*', '?', '[', MARK]);
    !hidden && (name.is_empty() || into || plain && !name.is_empty() || is_narrow_name(name))
}

/// Whether a pattern for names has an ending that no file has which governs the agent.
pub(super) fn is_narrow_name(pattern: &str) -> bool {
    let ends = pattern
        .rsplit_once('.')
        .is_some_and(|(_, end)| !end.is_empty() && end.chars().all(char::is_alphanumeric));
    let governs = |run: &&[&str]| {
        run.last().is_some_and(|last| {
            matches(pattern, last) || matches(pattern, last.trim_start_matches('.'))
        })
    };
    ends && !PROTECTED.iter().any(governs)
}

/// Folders that hold credentials, wherever they lie.
const SECRET_FOLDERS: [&str; 13] = [
    "keyrings",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".mozilla",
    "keychains",
    "gcloud",
    "google-chrome",
    "secrets",
];

/// Files that hold credentials, by name.
const SECRET_FILES: [&str; 33] = [
    "shadow-",
    "gshadow-",
    "hosts.yml",
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".vault-token",
    ".htpasswd",
    ".bash_history",
    ".zsh_history",
    ".histfile",
    ".my.cnf",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "secrets.yaml",
    "secrets.yml",
    "secrets.json",
    "secrets.toml",
    "terraform.tfstate",
    "shadow",
    "gshadow",
    "sudoers",
    "master.passwd",
];

/// Ends of the names of files that hold credentials, each with a name that a pattern is held against.
const SECRET_ENDS: [(&str, &str); 8] = [
    (".pem", "server.pem"),
    (".key", "server.key"),
    (".p12", "server.p12"),
    (".pfx", "server.pfx"),
    (".jks", "server.jks"),
    (".keystore", "app.keystore"),
    (".kdbx", "keys.kdbx"),
    (".tfvars", "prod.tfvars"),
];

/// Endings of files that only show how a file with credentials looks.
const SAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".pub"];

fn is_secret(parts: &[&str], outside: bool, pattern: bool) -> bool {
    if let ["", "proc", process, rest @ ..] = parts {
        let plain = process
            .chars()
            .all(|c| c.is_ascii_alphabetic() && c.is_lowercase());
        return !(plain && rest.is_empty() && *process != "kcore" && *process != "self");
    }
    if let ["", "var", "run", ..] | ["", "run", ..] = parts {
        return true;
    }
    let one = |name: &str| {
        if SAMPLES.iter().any(|end| name.ends_with(end)) {
            return false;
        }
        SECRET_FOLDERS.contains(&name)
            || SECRET_FILES.contains(&name)
            || name.starts_with(".env.")
            || name.starts_with("id_rsa")
            || name.starts_with("id_ed25519")
            || SECRET_ENDS.iter().any(|(end, _)| name.ends_with(end))
    };
    let by_pattern = |name: &str| {
        let wide = !name.contains(['*', '?', '[']) || (!outside && !is_telling(name));
        !wide
            && SECRET_FOLDERS
                .iter()
                .chain(&SECRET_FILES)
                .copied()
                .chain(SECRET_ENDS.iter().map(|(_, name)| *name))
                .chain([".env.local"])
                .any(|secret| matches(name, secret))
    };
    // `HEAD:.env` and `host:.env` name files too.
    parts
        .iter()
        .flat_map(|part| [*part, part.rsplit(':').next().unwrap_or(part)])
        .any(|name| one(name) || (pattern && by_pattern(name)))
}

/// Whether a pattern says more than *anything*.
fn is_telling(pattern: &str) -> bool {
    pattern
        .chars()
        .any(|c| !matches!(c, '*' | '?' | '.' | MARK))
        || (pattern.starts_with('.') && pattern.contains('?'))
        || pattern == ".*"
}

/// Whether a place holds more than one project: the root, homes, what the system is made of.
fn is_broad(parts: &[&str]) -> bool {
    let parts = match parts {
        [rest @ .., "*" | "." | "**" | ".*" | "{*,.*}"] => rest,
        parts => parts,
    };
    match parts {
        [] | [""] | ["", _] => true,
        ["", "home" | "users" | "usr" | "var" | "lib" | "boot", _] => true,
        [home] => home.starts_with('~') || *home == "..",
        _ => parts.iter().all(|part| *part == ".."),
    }
}

/// Whether a shell pattern could match a name in ASCII. Bracket expressions match any character.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    // A pattern does not match the dot of a hidden file.
    if name.starts_with('.') && !pattern.starts_with(['.', '[']) {
        return false;
    }
    let mut rest = pattern;
    let mut name = name;
    // Where to go on after the last star, one character later each time.
    let mut star: Option<(&str, &str)> = None;
    loop {
        let mut chars = rest.chars();
        let step = match chars.next() {
            Some('*' | MARK) => {
                star = Some((chars.as_str(), name));
                rest = chars.as_str();
                continue;
            }
            Some('?') => Some((None, chars.as_str())),
            Some('[') => {
                // The first character belongs to the brackets, whatever it is.
                let mut inside = chars.clone();
                inside.next();
                match inside.as_str().split_once(']') {
                    Some((_, after)) => Some((None, after)),
                    None => Some((Some('['), chars.as_str())),
                }
            }
            Some(c) => Some((Some(c), chars.as_str())),
            None => None,
        };
        let first = name.chars().next();
        match (step, first) {
            (None, None) => return true,
            (Some((wanted, after)), Some(first)) if wanted.is_none_or(|c| c == first) => {
                rest = after;
                name = &name[first.len_utf8()..];
            }
            _ => match star {
                Some((after, from)) if !from.is_empty() => {
                    let first = from.chars().next().map_or(1, char::len_utf8);
                    star = Some((after, &from[first..]));
                    rest = after;
                    name = &from[first..];
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_a_shell_would_match_and_brackets_anything() {
        for (pattern, name) in [
            ("*", "shadow"),
            ("sh?dow", "shadow"),
            ("s*w", "shadow"),
            ("s**d*w*", "shadow"),
            ("[a-z]hadow", "shadow"),
            ("sh[]a]dow", "shadow"),
            ("sh[\u{e9}a]dow", "shadow"),
            (".e*", ".env"),
            (".[e]nv", ".env"),
            ("*.p?m", "server.pem"),
            ("id_*", "id_rsa"),
            ("\u{e000}dow", "shadow"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*", ".env"),
            ("?env", ".env"),
            ("*.rs", "server.pem"),
            ("sh?dow", "shdow"),
            ("shadow*x", "shadow"),
            ("", "shadow"),
            ("sh[dow", "shadow"),
            ("a*a*a*a*b", "aaaaaaaaaaaaaaaa"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_path_is_where_its_components_lead() {
        let places = Places {
            root: Some("/srv/project".to_owned()),
            current: vec![String::new()],
            looks: Cell::default(),
        };
        for inside in [
            "a",
            "./a/../b",
            "a/b/../../c",
            "/srv/project",
            "/srv/./project/a",
            ".",
        ] {
            assert!(places.is_inside(inside), "{inside}");
        }
        for outside in [
            "..",
            "a/../../b",
            "/srv/projects",
            "/srv/project/..",
            "~",
            "~root/x",
            "/",
            "/srv/Project",
            "/SRV/project/a",
        ] {
            assert!(!places.is_inside(outside), "{outside}");
        }
        assert_eq!(
            places.locate("/etc", "../a/./b"),
            Located::Outside(vec![String::new(), "a".to_owned(), "b".to_owned()])
        );
    }
}
