//! What programs do that are told by a word: the subcommands of package managers and builds.

use lodestar_core::ladder::Rung::{L0, L3, L4};

use crate::command::programs::{Raise, Sub, raise, sub};

pub(super) const CARGO: &[Sub] = &[
    sub(
        L0,
        &[
            "tree",
            "metadata",
            "locate-project",
            "version",
            "pkgid",
            "read-manifest",
        ],
        "says what a project consists of",
    ),
    sub(
        L3,
        &[
            "build", "b", "check", "c", "test", "t", "bench", "clippy", "doc", "d", "run", "r",
            "rustc", "rustdoc", "nextest", "miri", "llvm-cov", "insta", "xtask",
        ],
        "builds and runs code of the project",
    ),
    sub(
        L3,
        &[
            "fmt",
            "fix",
            "new",
            "init",
            "clean",
            "generate-lockfile",
            "package",
        ],
        "changes files of the project",
    ),
    sub(
        L4,
        &[
            "install",
            "uninstall",
            "add",
            "update",
            "fetch",
            "vendor",
            "search",
            "info",
        ],
        "fetches packages",
    ),
    sub(
        L4,
        &["publish", "yank", "owner", "login", "logout"],
        "speaks to a registry",
    ),
];

pub(super) const NPM: &[Sub] = &[
    sub(
        L0,
        &[
            "ls", "list", "ll", "root", "prefix", "bin", "why", "explain",
        ],
        "says what is installed",
    ),
    sub(
        L3,
        &[
            "test",
            "t",
            "run",
            "run-script",
            "start",
            "stop",
            "restart",
            "build",
            "lint",
            "typecheck",
            "format",
            "check",
            "dev",
        ],
        "runs scripts of the project",
    ),
    sub(
        L3,
        &["pack", "init", "version"],
        "changes files of the project",
    ),
    sub(
        L4,
        &[
            "install",
            "i",
            "ci",
            "add",
            "update",
            "up",
            "upgrade",
            "remove",
            "uninstall",
            "rm",
            "audit",
            "outdated",
            "view",
            "info",
            "search",
            "link",
            "dlx",
            "exec",
            "x",
            "create",
            "rebuild",
        ],
        "fetches or changes packages",
    ),
    sub(
        L4,
        &[
            "publish",
            "unpublish",
            "deprecate",
            "dist-tag",
            "login",
            "logout",
            "adduser",
            "whoami",
            "token",
            "owner",
            "access",
            "team",
            "org",
            "config",
            "set",
            "get",
        ],
        "speaks to a registry or shows its credentials",
    ),
];

pub(super) const GO: &[Sub] = &[
    sub(L0, &["version", "doc"], "says what is there"),
    sub(
        L3,
        &[
            "build", "test", "vet", "fmt", "run", "generate", "fix", "list",
        ],
        "builds and runs code of the project",
    ),
    sub(
        L4,
        &[
            "get",
            "install",
            "mod",
            "work",
            "clean",
            "env",
            "tool",
            "telemetry",
        ],
        "fetches packages or changes settings",
    ),
];

pub(super) const PIP: &[Sub] = &[
    sub(
        L0,
        &["list", "show", "freeze", "check", "inspect"],
        "says what is installed",
    ),
    sub(
        L4,
        &[
            "install",
            "uninstall",
            "download",
            "wheel",
            "index",
            "search",
            "config",
            "cache",
        ],
        "fetches or changes packages",
    ),
];

pub(super) const APT: &[Sub] = &[
    sub(
        L0,
        &["list", "show", "policy", "search"],
        "says what there is",
    ),
    sub(
        L4,
        &[
            "install",
            "remove",
            "purge",
            "update",
            "upgrade",
            "autoremove",
            "source",
            "build-dep",
        ],
        "changes what is installed",
    ),
];

pub(super) const TERRAFORM: &[Sub] = &[
    sub(
        L3,
        &["fmt", "validate"],
        "looks at or formats files of the project",
    ),
    sub(
        L4,
        &[
            "init",
            "plan",
            "apply",
            "destroy",
            "import",
            "state",
            "output",
            "login",
            "workspace",
        ],
        "reaches infrastructure",
    ),
];

pub(super) const RUFF: &[Sub] = &[sub(
    L3,
    &["check", "format", "rule", "linter", "version"],
    "looks at or changes code of the project",
)];

pub(super) const MVN: &[Sub] = &[
    sub(
        L3,
        &[
            "test",
            "compile",
            "package",
            "verify",
            "validate",
            "clean",
            "check",
            "build",
            "assemble",
            "lint",
            "testClasses",
            "classes",
        ],
        "builds and runs code of the project",
    ),
    sub(
        L4,
        &["install", "deploy", "publish", "release"],
        "puts packages where others find them",
    ),
];

pub(super) const PROJECT_RUN: &[Sub] = &[
    sub(
        L3,
        &["check", "show", "version", "platform"],
        "says what a project is made of",
    ),
    sub(
        L4,
        &[
            "install", "add", "remove", "update", "lock", "sync", "publish", "config", "self",
            "source",
        ],
        "fetches or publishes packages",
    ),
];

pub(super) const CYPRESS: &[Sub] = &[sub(
    L3,
    &["run", "verify", "version"],
    "runs tests of the project",
)];

pub(super) const CMAKE_RAISES: &[Raise] = &[raise(
    &["--install", "--open"],
    L4,
    "installs, or opens another program",
)];
