//! What a shell does itself.

use lodestar_core::ladder::Rung::{L0, L3, L4, L5};

use super::NO_OPTIONS;
use crate::command::programs::{Program, Rule, Wrapper, raise};

pub(super) static SHELL: &[Program] = &[
    Program::new(
        L0,
        &["cd", "pushd", "popd", "chdir"],
        "changes the folder",
        Rule::Cd,
    ),
    Program::new(
        L0,
        &["set", "shopt", "setopt", "unsetopt"],
        "changes how the shell reads",
        Rule::Set,
    ),
    Program::new(
        L0,
        &[
            "read",
            "export",
            "declare",
            "typeset",
            "local",
            "readonly",
            "unset",
            "mapfile",
            "readarray",
            "let",
            "getopts",
        ],
        "sets variables",
        Rule::Variables,
    ),
    Program::new(L0, &["command"], "runs a program", Rule::Command),
    Program::new(
        L0,
        &["builtin", "time"],
        "runs what stands behind it",
        Rule::Wraps(Wrapper {
            plain: &["-p", "-v", "-l"],
            ..NO_OPTIONS
        }),
    ),
    Program::new(
        L0,
        &["exec"],
        "runs a program in place of the shell",
        Rule::Exec,
    ),
    Program::new(
        L0,
        &["eval"],
        "runs its words as a command line",
        Rule::Eval,
    ),
    Program::new(
        L3,
        &["source", "."],
        "runs a file in this shell",
        Rule::Source,
    ),
    Program::new(L0, &["trap"], "runs a command later", Rule::Trap),
    Program::new(
        L4,
        &[
            "alias", "unalias", "hash", "enable", "bind", "complete", "compgen", "fc", "logout",
            "disown", "fg", "bg", "suspend",
        ],
        "changes what words mean to the shell, or its jobs",
        Rule::Trap,
    ),
    Program::new(
        L4,
        &["history"],
        "shows earlier commands, and what was typed in them",
        Rule::Any,
    )
    .raised(&[raise(
        &["-c", "-d", "-w", "-a", "-r", "-n"],
        L5,
        "changes the record of commands",
    )]),
];
