//! Whether a path lies in the project, as it is written and as links lead.

use std::path::{Component, Path, PathBuf};

/// A path as a client means it: relative ones start where the conversation works.
pub(super) fn from(cwd: &Path, written: &str) -> PathBuf {
    cwd.join(written)
}

/// Whether a path certainly lies below a root whose own links are resolved.
pub(super) fn lies_in(root: &Path, path: &Path) -> bool {
    let text = lexical(path);
    text.starts_with(root) && real(path).is_some_and(|real| real.starts_with(root))
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
fn real(path: &Path) -> Option<PathBuf> {
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
        ];
        for path in inside {
            assert!(lies_in(&root, &from(&root, path)), "{path}");
        }
        for path in outside {
            assert!(!lies_in(&root, &from(&root, path)), "{path}");
        }
    }
}
