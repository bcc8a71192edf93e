//! What ends processes, and what cannot be taken back.

use lodestar_core::ladder::Rung::{L4, L5};

use crate::command::programs::{Program, Rule, raise};

pub(super) static DESTROYS: &[Program] = &[
    Program::new(L4, &["kill"], "ends processes", Rule::Kill),
    Program::new(
        L4,
        &["pkill", "killall", "skill", "xkill"],
        "ends processes of others",
        Rule::Any,
    ),
    Program::new(
        L4,
        &["rm", "unlink", "srm"],
        "deletes files, which cannot be taken back",
        Rule::Deletes,
    ),
    Program::new(L4, &["shred", "wipe"], "destroys files", Rule::Deletes),
    Program::new(
        L5,
        &[
            "mkfs",
            "mke2fs",
            "mkswap",
            "wipefs",
            "fdisk",
            "sfdisk",
            "sgdisk",
            "parted",
            "blkdiscard",
            "diskutil",
            "format",
        ],
        "destroys what is on a device",
        Rule::Any,
    ),
    Program::new(
        L5,
        &[
            "setenforce",
            "auditctl",
            "spctl",
            "csrutil",
            "aa-teardown",
            "aa-disable",
            "aa-complain",
        ],
        "turns protection of the system off or changes it",
        Rule::Any,
    ),
    Program::new(
        L4,
        &["ufw", "iptables", "ip6tables", "nft", "firewall-cmd"],
        "changes the firewall",
        Rule::Any,
    )
    .raised(&[raise(
        &[
            "disable",
            "reset",
            "-F",
            "--flush",
            "-X",
            "flush",
            "--panic-off",
        ],
        L5,
        "takes the firewall away",
    )]),
];
