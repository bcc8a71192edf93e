//! Programs that run what stands behind them.

use lodestar_core::ladder::Rung::{L0, L3, L4};

use super::NO_OPTIONS;
use crate::command::programs::{Program, Rule, Wrapper};

pub(super) static WRAPPERS: &[Program] = &[
    Program::new(
        L0,
        &["env"],
        "runs a program with other variables",
        Rule::Env,
    ),
    Program::new(
        L4,
        &["printenv"],
        "shows the environment, credentials with it",
        Rule::Any,
    ),
    Program::new(
        L0,
        &["nohup", "setsid"],
        "runs a program that stays",
        Rule::Wraps(Wrapper {
            plain: &["-f", "-w", "--fork", "--wait"],
            ..NO_OPTIONS
        }),
    ),
    Program::new(
        L0,
        &["timeout", "gtimeout"],
        "runs a program for a while",
        Rule::Wraps(Wrapper {
            valued: &["-s", "--signal", "-k", "--kill-after"],
            plain: &["--preserve-status", "--foreground", "-v", "--verbose"],
            operands: 1,
            text: false,
        }),
    ),
    Program::new(
        L0,
        &["nice"],
        "runs a program more slowly",
        Rule::Wraps(Wrapper {
            valued: &["-n", "--adjustment"],
            ..NO_OPTIONS
        }),
    ),
    Program::new(
        L0,
        &["ionice"],
        "runs a program more slowly",
        Rule::Wraps(Wrapper {
            valued: &["-c", "-n", "--class", "--classdata"],
            plain: &["-t"],
            ..NO_OPTIONS
        }),
    ),
    Program::new(
        L0,
        &["chronic", "unbuffer"],
        "runs a program",
        Rule::Wraps(NO_OPTIONS),
    ),
    Program::new(
        L0,
        &["stdbuf"],
        "runs a program",
        Rule::Wraps(Wrapper {
            valued: &["-i", "-o", "-e"],
            ..NO_OPTIONS
        }),
    ),
    Program::new(
        L3,
        &["flock"],
        "runs a program under a lock",
        Rule::Wraps(Wrapper {
            valued: &["-w", "--timeout"],
            plain: &["-n", "-x", "-s", "--nonblock"],
            operands: 1,
            text: false,
        }),
    ),
    Program::new(
        L0,
        &["watch"],
        "runs a command again and again",
        Rule::Wraps(Wrapper {
            valued: &["-n", "--interval"],
            plain: &[
                "-d",
                "-t",
                "-b",
                "-e",
                "-g",
                "-c",
                "-x",
                "--color",
                "--differences",
                "--no-title",
            ],
            operands: 0,
            text: true,
        }),
    ),
    Program::new(
        L0,
        &["busybox", "toybox"],
        "runs a program of its own",
        Rule::Wraps(NO_OPTIONS),
    ),
    Program::new(
        L3,
        &["xvfb-run"],
        "runs a program",
        Rule::Wraps(Wrapper {
            plain: &["-a", "--auto-servernum"],
            ..NO_OPTIONS
        }),
    ),
    Program::new(
        L0,
        &["xargs", "gxargs"],
        "runs a program with what it reads",
        Rule::Xargs,
    ),
    Program::new(
        L4,
        &["parallel"],
        "runs programs side by side",
        Rule::Wraps(Wrapper {
            valued: &["-j", "--jobs"],
            plain: &["-k", "--bar"],
            ..NO_OPTIONS
        }),
    ),
    Program::new(
        L4,
        &["sudo", "doas", "pkexec"],
        "runs a program as another user",
        Rule::Wraps(Wrapper {
            valued: &["-u", "-g", "--user", "--group"],
            plain: &["-n", "-E", "-H", "-S", "-k", "-b"],
            ..NO_OPTIONS
        }),
    ),
    Program::new(
        L4,
        &[
            "su", "runuser", "chroot", "unshare", "nsenter", "newgrp", "sg", "login", "chsh",
            "setpriv", "firejail", "bwrap", "strace", "ltrace", "gdb", "perf", "script", "expect",
            "tmux", "screen", "at", "batch",
        ],
        "runs programs in another way than the agent's shell does",
        Rule::Any,
    ),
];
