//! Programs that look at names of files, and not into them.

use lodestar_core::ladder::Rung::{L0, L4};

use crate::command::programs::{Program, Rule, output, raise};

pub(super) static NAMES: &[Program] = &[
    Program::new(
        L0,
        &[
            "ls", "dir", "pwd", "realpath", "readlink", "stat", "df", "pathchk",
        ],
        "lists files",
        Rule::Names,
    )
    .free(),
    Program::new(L0, &["du"], "measures files", Rule::Names).plain(
        "abcd:hHkmsSxlLPDt:B:0",
        &[
            "--max-depth=",
            "--apparent-size",
            "--exclude=",
            "--summarize",
            "--human-readable",
            "--total",
            "--all",
            "--threshold=",
            "--si",
            "--one-file-system",
            "--inodes",
        ],
    ),
    Program::new(L0, &["tree"], "lists files", Rule::Names)
        .plain(
            "adfilL:P:I:pughDFQNqrtscUvSACnxXJ",
            &[
                "--dirsfirst",
                "--filesfirst",
                "--noreport",
                "--gitignore",
                "--prune",
                "--filelimit=",
                "--charset=",
                "--du",
                "--si",
                "--matchdirs",
                "--ignore-case",
                "--sort=",
            ],
        )
        .raised(&[output(&["-o"])]),
    Program::new(L0, &["find"], "finds files", Rule::Find),
    Program::new(L0, &["fd", "fdfind"], "finds files", Rule::Names)
        .plain(
            "HIuisgFae:t:d:E:p0L1q",
            &[
                "--type=",
                "--extension=",
                "--hidden",
                "--no-ignore",
                "--max-depth=",
                "--min-depth=",
                "--exclude=",
                "--glob",
                "--full-path",
                "--absolute-path",
                "--print0",
                "--follow",
                "--max-results=",
                "--changed-within=",
                "--changed-before=",
                "--size=",
                "--fixed-strings",
                "--case-sensitive",
                "--ignore-case",
                "--color=",
            ],
        )
        .raised(&[raise(
            &["-x", "-X", "--exec", "--exec-batch"],
            L4,
            "runs a program for each",
        )]),
];
