//! Whether a path lies in the project, and whether it holds credentials: as it is written and as links lead.

use std::path::{Component, Path, PathBuf};

use lodestar_core::ladder::Rung;
use lodestar_kernel::command::{self, Reach, Spelt};

/// Most ways that the braces of a pattern are written out.
const MAX_WAYS: usize = 64;

/// How a pattern says more than characters, names and braces do.
const BEYOND: [&str; 5] = ["@(", "+(", "!(", "?(", "*("];

/// A path as a client may mean it: relative ones start where the conversation works, a tilde is a home, and where a
/// variable leads is not known.
pub(super) fn from(cwd: &Path, written: &str) -> PathBuf {
    let written = match written.strip_prefix("file:") {
        Some(rest) => {
            let rest = rest.strip_prefix("//").unwrap_or(rest);
            rest.strip_prefix("localhost").unwrap_or(rest)
        }
        None => written,
    };
    if !written.starts_with(['~', '$']) {
        return cwd.join(written);
    }
    let home = match written.strip_prefix('~') {
        Some("") => std::env::home_dir(),
        Some(rest) if rest.starts_with('/') => {
            std::env::home_dir().map(|home| home.join(rest.trim_start_matches('/')))
        }
        _ => None,
    };
    // Of a variable, and of the home of somebody whom nobody knows here, this much is known: they are no project.
    home.unwrap_or_else(|| Path::new("/").join(written))
}

/// Whether a path certainly lies below a root whose own links are resolved.
pub(super) fn lies_in(root: &Path, path: &Path) -> bool {
    let text = lexical(path);
    text.starts_with(root) && real(path).is_some_and(|real| real.starts_with(root))
}

/// Whether a path is inside by its text, and links lead out.
pub(super) fn leads_out(root: &Path, path: &Path) -> bool {
    lexical(path).starts_with(root) && !lies_in(root, path)
}

/// Whether links lead from a path to a file that holds credentials.
pub(super) fn leads_to_secret(root: &Path, path: &Path) -> bool {
    let real = real(path).filter(|real| *real != lexical(path));
    real.is_some_and(|real| is_secret(root, &real, Reach::File, Spelt::Exactly))
}

/// Whether a file that is read or changed holds credentials, or a pattern means such files among others.
pub(super) fn holds_secrets(root: &Path, path: &Path) -> bool {
    let Some(ways) = ways(&path.to_string_lossy()) else {
        return true;
    };
    let holds = |way: &String| {
        let spelt = match way.contains(['*', '?', '[']) {
            true => Spelt::AsPattern,
            false => Spelt::Exactly,
        };
        is_secret(root, &lexical(Path::new(way)), Reach::File, spelt)
    };
    ways.iter().any(holds) || leads_to_secret(root, path)
}

/// Whether a search is aimed at credentials. A part that begins with a star only narrows a search that nobody minds
/// without it, unless it names such files itself, as `*.pem` does.
pub(super) fn searches_secrets(root: &Path, path: &Path) -> bool {
    let Some(ways) = ways(&path.to_string_lossy()) else {
        return true;
    };
    let aims = |way: &String| {
        let written = lexical(Path::new(way));
        let parts = written.iter().filter(|part| {
            let part = part.to_string_lossy();
            !part.starts_with('*')
        });
        let aimed: PathBuf = parts.collect();
        is_secret(root, &written, Reach::Below, Spelt::Exactly)
            || is_secret(root, &aimed, Reach::Below, Spelt::AsPattern)
    };
    ways.iter().any(aims)
        || real(path).is_some_and(|real| is_secret(root, &real, Reach::Below, Spelt::Exactly))
}

fn is_secret(root: &Path, path: &Path, reach: Reach, spelt: Spelt) -> bool {
    let (path, root) = (path.to_string_lossy(), root.to_string_lossy());
    command::judge_path(&path, &root, reach, spelt).0 >= Rung::L4
}

/// The ways to read a pattern with its braces written out; none where there are too many, or where it is of a sort
/// that is not known here.
fn ways(pattern: &str) -> Option<Vec<String>> {
    if BEYOND.iter().any(|sign| pattern.contains(sign)) {
        return None;
    }
    let mut open = vec![pattern.to_owned()];
    let mut ways = Vec::new();
    while let Some(next) = open.pop() {
        // The innermost pair: nothing in it is a brace.
        let pair = next
            .find('}')
            .and_then(|end| Some((next[..end].rfind('{')?, end)));
        match pair {
            None => ways.push(next),
            Some((start, end)) => {
                let (before, after) = (&next[..start], &next[end + 1..]);
                let inside = next[start + 1..end].split(',');
                open.extend(inside.map(|one| format!("{before}{one}{after}")));
            }
        }
        if ways.len() + open.len() > MAX_WAYS {
            return None;
        }
    }
    Some(ways)
}

/// With `..` taken out of the text.
fn lexical(path: &Path) -> PathBuf {
    let mut made = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => {
                made.pop();
            }
            Component::Normal(name) => made.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    made
}

/// Where it leads: links of what is there are followed, what is not there yet is as it is written. None where
/// it climbs out of a folder that is not there, or a link leads nowhere.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    let mut there = path;
    let mut missing = Vec::new();
    loop {
        if let Ok(real) = there.canonicalize() {
            let mut real = real;
            real.extend(missing.iter().rev());
            return Some(real);
        }
        if there.symlink_metadata().is_ok() {
            return None;
        }
        match there.components().next_back()? {
            Component::Normal(name) => missing.push(name.to_owned()),
            _ => return None,
        }
        there = there.parent()?;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_lies_in_the_project_only_if_text_and_links_agree() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let root = base.join("project");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::create_dir_all(base.join("elsewhere")).unwrap();
        symlink(base.join("elsewhere"), root.join("out")).unwrap();
        symlink(base.join("nowhere"), root.join("dangling")).unwrap();
        let inside = ["src/new/deep.rs", "src/../a.rs", "a", "."];
        let outside = [
            "../elsewhere/x",
            "out/x",
            "dangling",
            "out/../elsewhere/x",
            "missing/../../../x",
            "/etc/passwd",
            "~/.bashrc",
            "~anna/.bashrc",
            "~",
            "$HOME/.bashrc",
            "file:///etc/hosts",
        ];
        for path in inside {
            assert!(lies_in(&root, &from(&root, path)), "{path}");
        }
        for path in outside {
            assert!(!lies_in(&root, &from(&root, path)), "{path}");
        }
    }

    #[test]
    fn credentials_are_known_by_name_by_pattern_and_behind_links() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let root = base.join("project");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(base.join(".ssh")).unwrap();
        std::fs::write(base.join(".ssh/id_rsa"), "x").unwrap();
        symlink(base.join(".ssh/id_rsa"), root.join("notes.txt")).unwrap();
        let read = |path: &str| holds_secrets(&root, &from(&root, path));
        for path in [
            ".env",
            ".env.local",
            "deploy/server.pem",
            "notes.txt",
            "~/.ssh/id_rsa",
            "~root/.aws/credentials",
            "/proc/self/environ",
            "{a,.env}",
            "*.{rs,pem}",
            "{{a,.env},b}",
            "@(.env)",
            ".en[v]",
        ] {
            assert!(read(path), "{path}");
        }
        for path in [
            "a.rs",
            ".env.example",
            "src/[id].tsx",
            "/etc/hosts",
            "{a,b}.rs",
        ] {
            assert!(!read(path), "{path}");
        }
        let search = |path: &str| searches_secrets(&root, &from(&root, path));
        for path in [
            ".env",
            ".env*",
            "**/.env*",
            "**/*.pem",
            "*.{pem,rs}",
            "~",
            "/",
            "/**",
            "/home/anna",
            "~/.ssh",
            "notes.txt",
            "id_*",
        ] {
            assert!(search(path), "{path}");
        }
        for path in [".", "**/*", "**/*.json", "src/**", "/usr/include/linux"] {
            assert!(!search(path), "{path}");
        }
    }
}
