//! System calls that no child needs and that lead around the rest, refused by seccomp.
//!
//! A list of what is refused, not of what is allowed: programs of any kind run here. Each entry is a way out of
//! what Landlock and the mounts hold: into other processes, into the kernel's own stores, past the file system's
//! paths, or into new namespaces.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::ContainError;
use super::plan::Group;

/// Refused as not permitted.
const REFUSED: [i64; 52] = [
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    // New namespaces, and those of others.
    libc::SYS_unshare,
    libc::SYS_setns,
    // The kernel's own store of keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Files without a path.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Programs in the kernel, and what attackers build on.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_quotactl_fd,
    libc::SYS_lookup_dcookie,
    libc::SYS_personality,
    libc::SYS_mbind,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_set_mempolicy,
];

/// What changes a file without opening it, which Landlock lets pass: modes, owners, times, attributes by path. By a
/// descriptor they stay, since to open a file is what Landlock judges.
const CHANGES_UNOPENED: [i64; 10] = [
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    // By number, since they are younger than the library's list.
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// The older forms of the same, where a processor has them.
#[cfg(target_arch = "x86_64")]
const CHANGES_UNOPENED_OLD: [i64; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];

/// Memory and messages that every program of the user shares.
const SHARED_WITH_ALL: [i64; 5] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
];

/// Refused as not there, because programs then take the older way, which can be looked at.
const NOT_THERE: [i64; 4] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// How a new process must not begin: in a namespace of any kind, or as a child of Lodestar, who would not know it.
const NOT_BEGUN_SO: [libc::c_int; 8] = [
    libc::CLONE_PARENT,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The oldest way to a packet socket, of any family. The library has it under no name on some systems.
const SOCK_PACKET: libc::c_int = 10;

/// Puts words into a terminal's input, as if its user had typed them.
const TYPES_FOR_OTHERS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Where the second set of numbers begins that an x86-64 kernel may have. Some calls have others there than here, so
/// that none of them is let through.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Which sockets there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sockets {
    /// Sockets of the machine's own programs.
    pub(super) unix: bool,
    /// Datagrams.
    pub(super) datagrams: bool,
    /// Connections.
    pub(super) streams: bool,
    /// Whether Landlock decides who is connected to: it looks at TCP alone, and at `connect` alone.
    pub(super) judged: bool,
}

/// What the filters make up for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gaps {
    /// Nothing is mounted read-only.
    pub(super) unopened: bool,
    /// Shared memory and messages are those of every program.
    pub(super) shared: bool,
}

/// The filters, in the order in which they are put on; none on a processor that they cannot be written for.
pub(super) fn filters(
    sockets: Sockets,
    group: Group,
    gaps: Gaps,
) -> Result<Vec<BpfProgram>, ContainError> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        return Ok(Vec::new());
    };
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    for call in [libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm] {
        refused.insert(call, Vec::new());
    }
    if group == Group::Kept {
        refused.insert(libc::SYS_setsid, Vec::new());
        refused.insert(libc::SYS_setpgid, Vec::new());
    }
    if gaps.unopened {
        refused.extend(CHANGES_UNOPENED.map(|call| (call, Vec::new())));
        // Without a path it is the times of a descriptor.
        let path = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
        let times = rule([path.map_err(failed)?])?;
        refused.insert(libc::SYS_utimensat, vec![times]);
        #[cfg(target_arch = "x86_64")]
        refused.extend(CHANGES_UNOPENED_OLD.map(|call| (call, Vec::new())));
    }
    if gaps.shared {
        refused.extend(SHARED_WITH_ALL.map(|call| (call, Vec::new())));
    }
    // Limits of another process: those of Lodestar are no child's.
    refused.insert(libc::SYS_prlimit64, vec![rule([is_not(0, 0)?])?]);
    // Who ends with Lodestar does not take that back.
    let dies_otherwise = [
        is(0, u64::from(libc::PR_SET_PDEATHSIG.unsigned_abs()))?,
        is_not(1, libc::SIGKILL)?,
    ];
    refused.insert(libc::SYS_prctl, vec![rule(dies_otherwise)?]);
    // Whoever else opens a file waits for the holder of a lease.
    let lease = is(1, u64::from(libc::F_SETLEASE.unsigned_abs()))?;
    refused.insert(libc::SYS_fcntl, vec![rule([lease])?]);
    let beginnings: Result<Vec<_>, _> = NOT_BEGUN_SO
        .iter()
        .map(|flag| rule([has(0, u64::from(flag.unsigned_abs()))?]))
        .collect();
    refused.insert(libc::SYS_clone, beginnings?);
    let typing: Result<Vec<_>, _> = TYPES_FOR_OTHERS
        .iter()
        .map(|call| rule([is(1, *call)?]))
        .collect();
    refused.insert(libc::SYS_ioctl, typing?);
    refused.insert(libc::SYS_socket, sockets.refused()?);
    refused.insert(libc::SYS_socketpair, sockets.refused_pairs()?);
    if sockets.judged {
        // Without a port of its own it gets one here, which no rule on ports has seen.
        refused.insert(libc::SYS_listen, Vec::new());
        let fast = u64::from(libc::MSG_FASTOPEN.unsigned_abs());
        for (call, flags) in [
            (libc::SYS_sendto, 3),
            (libc::SYS_sendmsg, 2),
            (libc::SYS_sendmmsg, 3),
        ] {
            refused.insert(call, vec![rule([has(flags, fast)?])?]);
        }
    }
    let not_there: BTreeMap<i64, Vec<SeccompRule>> =
        NOT_THERE.iter().map(|call| (*call, Vec::new())).collect();
    Ok(vec![
        #[cfg(target_arch = "x86_64")]
        one_set_of_numbers(),
        program(not_there, libc::ENOSYS, arch)?,
        program(refused, libc::EPERM, arch)?,
    ])
}

/// Refuses the second set as not there. Written out, since the compiler of filters knows numbers and no ranges.
#[cfg(target_arch = "x86_64")]
fn one_set_of_numbers() -> BpfProgram {
    // The number is the first word of what a filter is shown.
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let at_least = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    let give = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| seccompiler::sock_filter { code, jt, jf, k };
    vec![
        step(load, 0, 0, 0),
        step(at_least, 0, 1, X32),
        step(
            give,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
        step(give, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

impl Sockets {
    /// Of the families only those of the internet, of the routing table (where programs look up their own addresses)
    /// and, if granted, of the machine; of the types none that is raw.
    fn refused(self) -> Result<Vec<SeccompRule>, ContainError> {
        let mut families = vec![
            is_not(0, libc::AF_INET)?,
            is_not(0, libc::AF_INET6)?,
            is_not(0, libc::AF_NETLINK)?,
        ];
        if self.unix {
            families.push(is_not(0, libc::AF_UNIX)?);
        }
        let mut rules = vec![rule(families)?];
        for family in [libc::AF_INET, libc::AF_INET6] {
            let family = u64::from(family.unsigned_abs());
            let mut types = vec![
                libc::SOCK_RAW,
                libc::SOCK_RDM,
                libc::SOCK_SEQPACKET,
                libc::SOCK_DCCP,
                SOCK_PACKET,
            ];
            if !self.datagrams {
                types.push(libc::SOCK_DGRAM);
            }
            if !self.streams {
                types.push(libc::SOCK_STREAM);
            }
            for kind in types {
                let kind = masked(1, 0xf, u64::from(kind.unsigned_abs()))?;
                rules.push(rule([is(0, family)?, kind])?);
            }
        }
        if self.judged {
            for family in [libc::AF_INET, libc::AF_INET6] {
                let family = is(0, u64::from(family.unsigned_abs()))?;
                let stream = masked(1, 0xf, u64::from(libc::SOCK_STREAM.unsigned_abs()))?;
                let other = [is_not(2, 0)?, is_not(2, libc::IPPROTO_TCP)?];
                rules.push(rule([vec![family, stream], other.into()].concat())?);
            }
        }
        let netlink = is(0, u64::from(libc::AF_NETLINK.unsigned_abs()))?;
        rules.push(rule([netlink, is_not(2, libc::NETLINK_ROUTE)?])?);
        Ok(rules)
    }
}

impl Sockets {
    /// Pairs are for talking to one's own. One end of a pair of datagrams can be sent from to any other socket, and a
    /// raw one is such a pair by another name.
    fn refused_pairs(self) -> Result<Vec<SeccompRule>, ContainError> {
        let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
        let families: Result<Vec<_>, _> = families
            .map(|family| is_not(0, family))
            .into_iter()
            .collect();
        let mut rules = vec![rule(families?)?];
        if !self.unix {
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
                rules.push(rule([masked(1, 0xf, u64::from(kind.unsigned_abs()))?])?);
            }
        }
        Ok(rules)
    }
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: libc::c_int,
    arch: TargetArch,
) -> Result<BpfProgram, ContainError> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)
        .and_then(BpfProgram::try_from)
        .map_err(failed)
}

fn rule(conditions: impl Into<Vec<SeccompCondition>>) -> Result<SeccompRule, ContainError> {
    SeccompRule::new(conditions.into()).map_err(failed)
}

fn condition(argument: u8, op: SeccompCmpOp, value: u64) -> Result<SeccompCondition, ContainError> {
    // The kernel looks at 32 bits of each of these arguments, whatever stands above them.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value).map_err(failed)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, ContainError> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: libc::c_int) -> Result<SeccompCondition, ContainError> {
    condition(argument, SeccompCmpOp::Ne, u64::from(value.unsigned_abs()))
}

fn has(argument: u8, flag: u64) -> Result<SeccompCondition, ContainError> {
    masked(argument, flag, flag)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, ContainError> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value)
}

fn failed(problem: seccompiler::BackendError) -> ContainError {
    ContainError::Rules(problem.to_string())
}
