//! Shells and interpreters.

use lodestar_core::ladder::Rung::{L0, L3, L4};

use crate::command::programs::{Interpreter, Program, Rule};

pub(super) static INTERPRETERS: &[Program] = &[
    Program::new(
        L0,
        &["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh"],
        "runs commands",
        Rule::Shell,
    ),
    Program::new(
        L4,
        &["fish", "csh", "tcsh", "pwsh", "powershell", "nu", "cmd"],
        "is a shell whose commands are not read here",
        Rule::Any,
    ),
    Program::new(
        L3,
        &["python", "python3", "python2", "pypy", "pypy3"],
        "runs a script",
        Rule::Interprets(Interpreter {
            plain: &[
                "-u", "-B", "-O", "-OO", "-v", "-b", "-q", "-s", "-S", "-I", "-E",
            ],
            modules: &[
                "pytest",
                "unittest",
                "doctest",
                "json.tool",
                "py_compile",
                "compileall",
                "black",
                "mypy",
                "ruff",
                "flake8",
                "isort",
                "coverage",
                "venv",
                "tabnanny",
            ],
        }),
    ),
    Program::new(
        L3,
        &["node", "nodejs"],
        "runs a script",
        Rule::Interprets(Interpreter {
            plain: &[
                "--test",
                "--check",
                "--trace-warnings",
                "--no-warnings",
                "--enable-source-maps",
                "--expose-gc",
            ],
            modules: &[],
        }),
    ),
    Program::new(
        L3,
        &[
            "ruby", "perl", "php", "lua", "Rscript", "bb", "guile", "racket", "julia", "elixir",
            "escript",
        ],
        "runs a script",
        Rule::Interprets(Interpreter {
            plain: &["-w", "-W"],
            modules: &[],
        }),
    ),
    Program::new(
        L3,
        &["tsx", "ts-node"],
        "runs a script",
        Rule::Interprets(Interpreter {
            plain: &[],
            modules: &[],
        }),
    ),
];
