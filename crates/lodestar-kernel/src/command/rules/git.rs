//! What `git` does, by its subcommand and options.

use lodestar_core::ladder::Rung::{self, L0, L3, L4};
use lodestar_core::name::Excerpt;

use super::given;
use crate::command::expand::Arg;
use crate::command::grade::{Grade, Grader};
use crate::command::paths::Use;

/// A subcommand, its rung, and options that raise it to L4.
type Row = (
    &'static [&'static str],
    Rung,
    &'static str,
    &'static [&'static str],
);

/// Options of everything that shows a difference.
const SHOWS: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "-O",
    "--exec",
    "--show-signature",
    "--lost-found",
];

/// The subcommands that are graded; all others are held.
pub(in crate::command) const ROWS: &[Row] = &[
    (
        &[
            "status",
            "ls-files",
            "ls-tree",
            "rev-parse",
            "rev-list",
            "merge-base",
            "name-rev",
            "describe",
            "show-ref",
            "for-each-ref",
            "count-objects",
            "check-ignore",
            "check-attr",
            "version",
            "whatchanged",
            "cherry",
            "fsck",
            "verify-commit",
            "verify-tag",
            "show-branch",
            "diff-tree",
            "diff-index",
            "diff-files",
        ],
        L0,
        "looks at the repository",
        SHOWS,
    ),
    (
        &[
            "log",
            "diff",
            "show",
            "blame",
            "annotate",
            "shortlog",
            "range-diff",
        ],
        L0,
        "shows history",
        SHOWS,
    ),
    (
        &["cat-file"],
        L0,
        "shows an object",
        &["--textconv", "--filters"],
    ),
    (&["grep"], L0, "searches the repository", SHOWS),
    (
        &["branch"],
        L3,
        "makes or moves a branch",
        &[
            "-d",
            "-D",
            "--delete",
            "-f",
            "--force",
            "-M",
            "-C",
            "-u",
            "--set-upstream-to",
            "--unset-upstream",
            "--edit-description",
        ],
    ),
    (
        &["tag"],
        L3,
        "makes a tag",
        &[
            "-d",
            "--delete",
            "-s",
            "--sign",
            "-u",
            "--local-user",
            "-f",
            "--force",
        ],
    ),
    (
        &[
            "add",
            "stage",
            "mv",
            "init",
            "notes",
            "cherry-pick",
            "revert",
        ],
        L3,
        "changes the repository or the folder, and can be taken back",
        &[
            "-S",
            "--gpg-sign",
            "--directory",
            "--unsafe-paths",
            "--template",
            "--separate-git-dir",
            "-f",
            "--force",
            "--strategy",
            "--build-fake-ancestor",
        ],
    ),
    (
        &["am", "apply"],
        L4,
        "writes whatever files a patch names, what governs an agent with them",
        &[],
    ),
    (
        &["format-patch"],
        L3,
        "writes commits to files",
        &[
            "-o",
            "--output-directory",
            "--output",
            "--ext-diff",
            "--textconv",
        ],
    ),
    (
        &["help"],
        L0,
        "shows a manual",
        &["-w", "--web", "-i", "--info"],
    ),
    (
        &["commit"],
        L3,
        "records a commit",
        &["-S", "--gpg-sign", "--no-verify", "-n"],
    ),
    (
        &["merge", "rebase"],
        L3,
        "joins histories",
        &[
            "-S",
            "--gpg-sign",
            "-x",
            "--exec",
            "--no-verify",
            "--strategy",
            "-s",
        ],
    ),
    (
        &["rm"],
        L3,
        "takes files out, and they stay in history",
        &["-f", "--force"],
    ),
    (
        &["switch"],
        L3,
        "changes the branch",
        &["-f", "--force", "--discard-changes", "-C"],
    ),
    (
        &["archive"],
        L3,
        "packs a version",
        &["--remote", "--exec", "-o", "--output"],
    ),
];

impl Grader {
    pub(super) fn git(&mut self, args: &[Arg], grade: &mut Grade) {
        let mut at = 0;
        while let Some(arg) = args.get(at).filter(|arg| arg.is_option()) {
            at += 1;
            match arg.text.as_str() {
                "--no-pager"
                | "-P"
                | "--literal-pathspecs"
                | "--no-optional-locks"
                | "--no-replace-objects" => {}
                "--version" | "--help" | "-h" | "-v" => return,
                "-C" => {
                    let folder = args.get(at).map_or("", |folder| &folder.text).to_owned();
                    if !args.get(at).is_some_and(Arg::is_known) || !self.places.is_inside(&folder) {
                        grade.raise(
                            L4,
                            "`git` would work in another repository, by its settings",
                        );
                    }
                    self.places.judge(&folder, Use::Names, false, grade);
                    at += 1;
                }
                text => {
                    let shown = Excerpt::of(text);
                    grade.raise(
                        L4,
                        format!("`git {shown}` changes what git runs, or nobody graded it"),
                    );
                    at += usize::from(text == "-c");
                }
            }
        }
        let Some(sub) = args.get(at) else {
            return;
        };
        let rest = &args[at + 1..];
        let Some(name) = sub.literal() else {
            return grade.raise(L4, "what `git` does is only known when it runs");
        };
        if matches!(rest, [only] if only.text == "--help") {
            return;
        }
        self.git_words(name, rest, grade);
        // Also behind `--`, which can be the value of the option before it.
        let has = |options: &[&str]| {
            let mut given = rest
                .iter()
                .flat_map(|arg| options.iter().filter_map(|option| given(&arg.text, option)));
            given.next().is_some()
        };
        // What makes it do less counts only where it surely is an option.
        let lessens = |options: &[&str]| {
            rest.iter().take_while(|arg| arg.text != "--").any(|arg| {
                options
                    .iter()
                    .any(|option| given(&arg.text, option).is_some())
            })
        };
        let only = |options: &[&str]| {
            let given = rest
                .iter()
                .filter(|arg| arg.text.starts_with('-') && arg.text != "-");
            given.into_iter().all(|arg| {
                let head = arg.text.split('=').next().unwrap_or_default();
                options.contains(&head)
            })
        };
        let operands: Vec<&str> = rest
            .iter()
            .filter(|arg| !arg.is_option())
            .map(|arg| arg.text.as_str())
            .collect();
        let first = operands.first().copied();
        let (rung, why) = match name {
            "branch"
                if operands.is_empty()
                    || lessens(&[
                        "--list",
                        "-l",
                        "--contains",
                        "--merged",
                        "--no-merged",
                        "--points-at",
                    ]) =>
            {
                match has(&[
                    "-d",
                    "-D",
                    "--delete",
                    "-m",
                    "-M",
                    "--move",
                    "-c",
                    "-C",
                    "--copy",
                    "-f",
                    "--force",
                    "-u",
                    "--set-upstream-to",
                    "--unset-upstream",
                    "--edit-description",
                ]) {
                    true => (L4, "changes branches"),
                    false => (L0, "lists branches"),
                }
            }
            "tag"
                if (operands.is_empty() || lessens(&["-l", "--list"]))
                    && !has(&["-m", "-F", "-a", "--message", "--file", "--annotate"]) =>
            {
                match has(&[
                    "-d",
                    "-s",
                    "-u",
                    "-f",
                    "--delete",
                    "--sign",
                    "--local-user",
                    "--force",
                ]) {
                    true => (L4, "changes tags"),
                    false => (L0, "lists tags"),
                }
            }
            "stash" => match first {
                Some("list" | "show") if !has(SHOWS) => (L0, "lists what was put aside"),
                None | Some("push" | "save" | "pop" | "apply" | "create" | "store" | "branch") => {
                    (L3, "puts work aside, or back")
                }
                _ => (L4, "throws away what was put aside"),
            },
            "remote" => match first {
                None => (L0, "lists other repositories"),
                Some("get-url") => (L0, "names another repository"),
                _ => (L4, "reaches or changes other repositories"),
            },
            "config" => match (
                (lessens(&["--get", "get"]) || first == Some("get"))
                    && only(&["--get", "--global", "--local", "--system", "--show-origin"]),
                operands.last(),
            ) {
                (true, Some(key)) if operands.len() <= 2 && is_shown(key) => {
                    (L0, "shows a setting")
                }
                _ => (L4, "changes settings, or shows credentials in them"),
            },
            "worktree" if first == Some("list") => (L0, "lists folders"),
            "submodule" if first == Some("status") => (L0, "lists repositories in the repository"),
            "reflog" if matches!(first, None | Some("show")) && !has(SHOWS) => {
                (L0, "shows where branches were")
            }
            "bisect" if matches!(first, Some("start" | "good" | "bad" | "skip" | "reset")) => {
                (L3, "searches history")
            }
            "clean"
                if lessens(&["-n", "--dry-run"])
                    && !has(&["-f", "--force", "-e", "--exclude", "-i", "--interactive"]) =>
            {
                (L0, "lists what it would delete")
            }
            "clean" => (L4, "deletes files that no commit holds"),
            "reset" if has(&["--hard", "--merge", "--keep"]) => {
                (L4, "throws away work that no commit holds")
            }
            "reset" => (L3, "moves the branch, and leaves files as they are"),
            "restore" if lessens(&["--staged", "-S"]) && !has(&["--worktree", "-W"]) => {
                (L3, "takes changes out of the next commit")
            }
            "restore" => (L4, "throws away work that no commit holds"),
            "notes" if matches!(first, Some("remove" | "prune")) => (L4, "deletes notes"),
            "init" if !operands.iter().all(|folder| self.places.is_inside(folder)) => {
                (L4, "makes a repository outside the project")
            }
            "var" => match operands.as_slice() {
                [_] if only(&[]) => (L0, "shows a setting"),
                _ => (L4, "shows every setting, credentials with them"),
            },
            "checkout" => {
                let plain = [
                    "-b",
                    "-q",
                    "--quiet",
                    "-d",
                    "--detach",
                    "-t",
                    "--track",
                    "--no-track",
                ];
                match !only(&plain) && !only(&["--orphan", "-q", "--quiet"]) {
                    true => (L4, "throws away work that no commit holds"),
                    false
                        if lessens(&["-b", "--orphan", "--track", "-t"])
                            && rest.iter().all(Arg::is_known) =>
                    {
                        (L3, "makes a branch")
                    }
                    false => match operands.as_slice() {
                        [only] if is_branch(only) && rest.iter().all(Arg::is_known) => {
                            (L3, "changes the branch")
                        }
                        _ => (L4, "may throw away work that no commit holds"),
                    },
                }
            }
            name => match ROWS.iter().find(|(names, ..)| names.contains(&name)) {
                Some((_, rung, why, raising)) => match has(raising) {
                    true => (
                        L4,
                        "with such an option runs other programs, signs, forces or skips checks",
                    ),
                    false => (*rung, *why),
                },
                None => (
                    L4,
                    "reaches other repositories, rewrites history, or nobody graded it",
                ),
            },
        };
        let reason = format!("`git {}` {why}", Excerpt::of(name));
        match grade.reason.is_empty() {
            true => *grade = Grade::new(grade.rung.max(rung), reason),
            false => grade.raise(rung, reason),
        }
        let works = self.places.is_inside(".");
        if !works {
            grade.raise(
                L4,
                "`git` would work in another repository, by its settings",
            );
        }
    }

    /// The words behind a subcommand: texts are texts, all others may name files.
    fn git_words(&mut self, name: &str, rest: &[Arg], grade: &mut Grade) {
        let mut text = false;
        // What is shown, recorded or packed is read; names of branches are not files.
        let shows = matches!(
            name,
            "log"
                | "show"
                | "grep"
                | "diff"
                | "blame"
                | "cat-file"
                | "add"
                | "stage"
                | "commit"
                | "apply"
                | "am"
                | "archive"
                | "notes"
                | "tag"
        );
        for arg in rest {
            if std::mem::take(&mut text) {
                if !arg.is_known() && arg.splits {
                    grade.raise(L4, "which options `git` gets is only known when it runs");
                }
                continue;
            }
            text = match name {
                "commit" | "tag" | "merge" | "notes" | "stash" | "revert" => {
                    matches!(
                        arg.text.as_str(),
                        "-m" | "--message" | "-am" | "-a -m" | "--author" | "--date"
                    ) || (arg.text.starts_with('-')
                        && !arg.text.starts_with("--")
                        && arg.text.ends_with('m'))
                }
                "log" | "shortlog" | "rev-list" => matches!(
                    arg.text.as_str(),
                    "--grep" | "--author" | "-S" | "-G" | "--since" | "--until"
                ),
                "grep" => arg.text == "-e",
                _ => false,
            };
            let message = arg.text.starts_with("--message=") || arg.text.starts_with("-m");
            if message {
                continue;
            }
            if !arg.is_known() {
                grade.raise(
                    L4,
                    "which options or files `git` gets is only known when it runs",
                );
            }
            let path = arg.text.rsplit('=').next().unwrap_or_default();
            let to = match shows {
                // `git grep --no-index` searches folders that no repository holds.
                true if name == "grep" => Use::ReadsBelow,
                true => Use::Reads,
                false => Use::Names,
            };
            self.places.judge(path, to, arg.pattern, grade);
            if let Some((_, below)) = path.split_once(':') {
                self.places.judge(below, to, arg.pattern, grade);
            }
        }
    }
}

/// Whether a setting can be shown: none that holds credentials or addresses with them.
fn is_shown(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let begins = [
        "user.", "core.", "branch.", "init.", "pull.", "push.", "alias.", "merge.", "rebase.",
    ];
    begins.iter().any(|begin| key.starts_with(begin))
}

/// Whether a word names a branch or commit and no file: `git checkout src` throws away what was done there.
fn is_branch(word: &str) -> bool {
    const TRUNKS: [&str; 8] = [
        "main", "master", "trunk", "develop", "dev", "-", "HEAD", "@",
    ];
    let name = word.split(['~', '^', '@']).next().unwrap_or_default();
    let name = name.strip_prefix("origin/").unwrap_or(name);
    let hash = name.len() >= 7 && name.chars().all(|c| c.is_ascii_hexdigit());
    let version = name.strip_prefix('v').is_some_and(|rest| {
        rest.contains('.') && rest.chars().all(|c| c.is_ascii_digit() || c == '.')
    });
    TRUNKS.contains(&name) || TRUNKS.contains(&word) || hash || version
}
