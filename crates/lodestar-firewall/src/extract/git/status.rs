//! What `git status` reports, whichever form it was written in.

use lodestar_core::digest::{Digest, Hasher};

/// Paths that are listed of each group; all of them are counted and enter the digest.
pub(super) const MAX_PATHS: usize = 50;

/// What one output reports.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// The branch, or what a detached head is at.
    pub(super) head: Option<String>,
    pub(super) detached: bool,
    pub(super) upstream: Option<String>,
    /// Commits ahead of and behind the upstream.
    pub(super) distance: Option<(u64, u64)>,
    pub(super) staged: Paths,
    pub(super) unstaged: Paths,
    pub(super) untracked: Paths,
    pub(super) unmerged: Paths,
}

impl Status {
    /// Sorts a path by the two letters of the porcelain forms.
    pub(super) fn change(&mut self, [x, y]: [u8; 2], path: &str) {
        let unmerged = x == b'U' || y == b'U' || (x == y && matches!(x, b'A' | b'D'));
        if unmerged {
            return self.unmerged.add(path);
        }
        // A dot stands for "unchanged" in one form, a space in the other.
        if !matches!(x, b' ' | b'.') {
            self.staged.add(path);
        }
        if !matches!(y, b' ' | b'.') {
            self.unstaged.add(path);
        }
    }
}

/// Paths of one group: the first ones, how many there are, and a digest of all.
#[derive(Debug, Default)]
pub(super) struct Paths {
    listed: Vec<String>,
    count: u64,
    hasher: Hasher,
}

impl Paths {
    pub(super) fn add(&mut self, path: &str) {
        self.count += 1;
        self.hasher.update(&(path.len() as u64).to_be_bytes());
        self.hasher.update(path.as_bytes());
        if self.listed.len() < MAX_PATHS {
            self.listed.push(path.to_owned());
        }
    }

    pub(super) fn listed(&self) -> &[String] {
        &self.listed
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn digest(&self) -> Digest {
        self.hasher.clone().finish()
    }
}

/// A path as git writes it: in quotes with C escapes if it has unusual characters, else as it is.
pub(super) fn unquote(path: &str) -> String {
    let Some(inner) = path
        .strip_prefix('"')
        .and_then(|path| path.strip_suffix('"'))
    else {
        return path.to_owned();
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest {
            [
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                after @ ..,
            ] => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            [escape, after @ ..] => {
                bytes.push(match escape {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => *other,
                });
                rest = after;
            }
            [] => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
