//! Programs that make, change and pack files of the project.

use lodestar_core::ladder::Rung::{L0, L2, L3, L4};

use crate::command::programs::{Program, Rule, output, raise};

pub(super) static FILES: &[Program] = &[
    Program::new(L2, &["mktemp"], "makes a scratch file", Rule::Works)
        .plain(
            "dqtu",
            &["--directory", "--dry-run", "--suffix=", "--quiet"],
        )
        .raised(&[output(&["-p", "--tmpdir"])]),
    Program::new(
        L3,
        &["mkdir", "touch", "truncate", "mkfifo", "rmdir"],
        "makes or changes files",
        Rule::Writes,
    ),
    Program::new(L3, &["tee"], "writes what it reads", Rule::Writes),
    Program::new(L3, &["cp", "mv"], "writes files", Rule::Copies)
        .raised(&[output(&["-t", "--target-directory"])]),
    Program::new(L3, &["ln"], "makes another name for a file", Rule::Link)
        .raised(&[output(&["-t", "--target-directory"])]),
    Program::new(
        L3,
        &["ldd"],
        "loads the program that it looks at",
        Rule::Works,
    ),
    Program::new(L3, &["chmod"], "changes who may use a file", Rule::Chmod),
    Program::new(L3, &["dd"], "copies bytes", Rule::Dd),
    Program::new(
        L3,
        &["tar", "gtar", "bsdtar"],
        "packs and unpacks files",
        Rule::Tar,
    ),
    Program::new(
        L3,
        &["split", "csplit"],
        "writes parts of a file",
        Rule::Works,
    )
    .raised(&[raise(&["--filter"], L4, "runs another program")]),
    Program::new(
        L4,
        &["patch"],
        "writes whatever files a patch names, what governs an agent with them",
        Rule::Works,
    ),
    Program::new(L0, &["zipinfo"], "lists an archive", Rule::Reads).plain("12smlhvtzTMC", &[]),
    Program::new(L3, &["unzip"], "unpacks files", Rule::Unzip).raised(&[raise(
        &["-:"],
        L4,
        "leaves the folder",
    )]),
    Program::new(L3, &["zip"], "packs files", Rule::Works).raised(&[
        raise(
            &["-T", "-TT", "--unzip-command"],
            L4,
            "runs another program",
        ),
        raise(&["-m", "--move"], L4, "deletes what it packs"),
    ]),
    Program::new(
        L3,
        &[
            "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "lz4",
        ],
        "packs or unpacks files",
        Rule::Works,
    ),
];
