//! What would go out: commits and changed files, bounded.

use lodestar_core::name::Excerpt;

use super::config::GitError;
use super::repository::{Desk, Repository, limit};

/// Most commits that are listed: more than anybody reads on a card.
pub const MAX_COMMITS: usize = 100;

/// Most files that are listed.
pub const MAX_FILES: usize = 200;

/// What lies between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outgoing {
    /// The commits, newest first, at most [`MAX_COMMITS`].
    pub commits: Vec<Commit>,
    /// How many there are in all.
    pub commits_total: u64,
    /// The changed files, at most [`MAX_FILES`].
    pub files: Vec<FileChange>,
    /// How many there are in all.
    pub files_total: usize,
    /// Lines added in all files of text.
    pub added: u64,
    /// Lines removed in all files of text.
    pub removed: u64,
}

/// A commit. Whoever wrote it chose every word of it: render it inert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its name in hexadecimal.
    pub id: String,
    /// Who wrote it.
    pub author: String,
    /// With what address.
    pub email: String,
    /// The first line of its message.
    pub subject: String,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path; a byte that is not UTF-8 shows as a replacement character.
    pub path: String,
    /// Lines added and removed; none if git takes it for binary.
    pub lines: Option<(u64, u64)>,
}

impl Repository {
    /// What is in `to` and not in `from`; without `from`, all of it.
    pub fn outgoing(&self, from: Option<&str>, to: &str) -> Result<Outgoing, GitError> {
        self.desk(&limit())?.outgoing(from, to)
    }
}

impl Desk<'_> {
    fn outgoing(&self, from: Option<&str>, to: &str) -> Result<Outgoing, GitError> {
        let to = self.existing(to)?;
        let from = from.map(|from| self.existing(from)).transpose()?;
        let mut range = vec![to.clone()];
        range.extend(from.iter().map(|from| format!("^{from}")));
        let mut outgoing = Outgoing {
            commits: self.commits(&range)?,
            commits_total: self.count(&range)?,
            ..Outgoing::default()
        };
        let base = match from {
            Some(from) => from,
            None => self.empty_tree()?,
        };
        self.changes_between(&base, &to, &mut outgoing)?;
        Ok(outgoing)
    }

    fn existing(&self, revision: &str) -> Result<String, GitError> {
        self.commit_of(revision)?.ok_or_else(|| GitError::NoCommit {
            name: Excerpt::of(revision),
        })
    }

    fn empty_tree(&self) -> Result<String, GitError> {
        let name = self.tell("hash-object", ["-t", "tree", "/dev/null"])?;
        Ok(String::from_utf8_lossy(&name).trim().to_owned())
    }

    fn count(&self, range: &[String]) -> Result<u64, GitError> {
        let mut arguments = vec!["--count"];
        arguments.extend(range.iter().map(String::as_str));
        let count = self.tell("rev-list", arguments)?;
        String::from_utf8_lossy(&count)
            .trim()
            .parse()
            .map_err(|_| GitError::Failed {
                command: "rev-list",
                message: "it did not answer with a number".to_owned(),
            })
    }

    fn commits(&self, range: &[String]) -> Result<Vec<Commit>, GitError> {
        let most = format!("--max-count={MAX_COMMITS}");
        let mut arguments = vec![
            "-z",
            "--no-color",
            "--no-decorate",
            "--no-mailmap",
            "--no-show-signature",
            "--no-patch",
            "--format=%H%x00%an%x00%ae%x00%s",
            &most,
        ];
        arguments.extend(range.iter().map(String::as_str));
        let listed = self.tell("log", arguments)?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let fields: Vec<&str> = listed.split('\0').collect();
        let (commits, _) = fields.as_chunks::<4>();
        Ok(commits
            .iter()
            .map(|[id, author, email, subject]| Commit {
                id: (*id).to_owned(),
                author: (*author).to_owned(),
                email: (*email).to_owned(),
                subject: (*subject).to_owned(),
            })
            .collect())
    }

    fn changes_between(&self, from: &str, to: &str, out: &mut Outgoing) -> Result<(), GitError> {
        let listed = self.tell(
            "diff-tree",
            [
                "-r",
                "-z",
                "--numstat",
                "--no-renames",
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=dirty",
                from,
                to,
            ],
        )?;
        for record in listed.split(|&byte| byte == 0) {
            let record = String::from_utf8_lossy(record);
            let mut parts = record.splitn(3, '\t');
            let (Some(added), Some(removed), Some(path)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let lines = added.parse().ok().zip(removed.parse().ok());
            let (added, removed) = lines.unwrap_or((0, 0));
            out.added += added;
            out.removed += removed;
            out.files_total += 1;
            if out.files.len() < MAX_FILES {
                out.files.push(FileChange {
                    path: path.to_owned(),
                    lines,
                });
            }
        }
        Ok(())
    }
}
