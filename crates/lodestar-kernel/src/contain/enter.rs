//! The steps between fork and exec, and the only unsafe code of the project.
//!
//! Nothing here allocates, locks or panics: the process that forked has other threads, and what they held is held
//! for ever in the child. So everything is made ready before ([`Entry`]), and every step is a system call on it.
//! A step that fails ends the start: the program never runs with less around it than was planned.
//!
//! Why `unsafe` here and nowhere else, and what was weighed against it, is in `docs/decisions/0022`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use landlock::RulesetCreated;
use rustix::fs::{Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use seccompiler::BpfProgram;

use super::bridge::Bridge;
use super::canary::Canary;
use super::cover::Mount;
use super::plan::Strictness;
use super::undertaker::Undertaker;

/// Everything that a child goes through before it becomes the program.
pub(super) struct Entry {
    pub(super) limits: Vec<(Resource, u64)>,
    pub(super) namespaces: Option<Namespaces>,
    /// Taken by the first child; the parent's copy stays.
    pub(super) rules: Option<RulesetCreated>,
    pub(super) filters: Vec<BpfProgram>,
    /// Left behind where the child may leave its process group.
    pub(super) undertaker: Option<Undertaker>,
    pub(super) canary: Canary,
    /// What follows where something was not refused.
    pub(super) strictness: Strictness,
    /// Whether it ends with the thread that started it.
    pub(super) parent: Option<Pid>,
    /// What is said on the way, by [`Step`] and number.
    pub(super) report: OwnedFd,
}

/// Namespaces of the child's own.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// Whether the network is one of them.
    pub(super) network: bool,
    pub(super) user_map: Vec<u8>,
    pub(super) group_map: Vec<u8>,
    pub(super) mounts: Vec<Mount>,
    /// Its ways out, where the network is one of them.
    pub(super) bridge: Option<Bridge>,
    /// Places that are written; everything else is mounted read-only.
    pub(super) writable: Vec<CString>,
    /// A folder of the child's own, to lie where programs share memory.
    pub(super) shared: Option<CString>,
}

/// Where a start can fail. Numbered for the pipe on which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Step {
    Limits = 1,
    Namespaces,
    Maps,
    Mounts,
    Folder,
    Loopback,
    Rights,
    Descriptors,
    Parent,
    Undertaker,
    Rules,
    Filters,
    Canary,
}

impl Step {
    const ALL: [(Self, &'static str); 13] = [
        (Self::Limits, "limits"),
        (Self::Namespaces, "namespaces"),
        (Self::Maps, "mapping of users"),
        (Self::Mounts, "mounts"),
        (Self::Folder, "folder"),
        (Self::Loopback, "loopback"),
        (Self::Rights, "giving up rights"),
        (Self::Descriptors, "closing descriptors"),
        (Self::Parent, "tie to its parent"),
        (Self::Undertaker, "what ends all that it starts"),
        (Self::Rules, "Landlock"),
        (Self::Filters, "seccomp"),
        (Self::Canary, "something that must be refused was not"),
    ];

    /// What a byte on the pipe names.
    pub(super) fn named(byte: u8) -> Option<&'static str> {
        let mut all = Self::ALL.iter();
        all.find(|(step, _)| *step as u8 == byte)
            .map(|(_, name)| *name)
    }
}

/// Puts all of it between a command's fork and its exec.
pub(super) fn between(command: &mut Command, mut entry: Entry) {
    // SAFETY: `Entry::enter` only makes system calls on memory that was set up before the fork. It neither
    // allocates nor takes a lock nor unwinds: `rustix` calls the kernel directly, `landlock` and `seccompiler` do so
    // with what they hold, and errors are numbers. The one value that it drops, the ruleset, closes a descriptor.
    unsafe {
        command.pre_exec(move || entry.enter());
    }
}

/// Tries whether namespaces can be had: enters them in a child that never runs a program.
pub(super) fn try_namespaces(namespaces: Namespaces) -> io::Result<()> {
    in_a_child_that_never_runs(move || namespaces.enter().map_err(|(_, problem)| problem))
}

/// Does something between fork and exec, and ends there. What it is given must do as [`between`] says.
fn in_a_child_that_never_runs(
    mut work: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    // A program is named and never reached.
    let mut command = Command::new("/proc/self/exe");
    // SAFETY: as above.
    unsafe {
        command.pre_exec(move || {
            work()?;
            Err(io::Error::from_raw_os_error(libc::ECANCELED))
        });
    }
    match command.spawn() {
        Err(problem) if problem.raw_os_error() == Some(libc::ECANCELED) => Ok(()),
        Err(problem) => Err(problem),
        Ok(mut child) => {
            // INVARIANT: the closure above never lets it come to this.
            let _ = child.kill();
            let _ = child.wait();
            Err(io::Error::other("the trial ran"))
        }
    }
}

impl Entry {
    fn enter(&mut self) -> io::Result<()> {
        self.steps().map_err(|(step, problem)| {
            let number = problem.raw_os_error().unwrap_or(0);
            let [low, high, ..] = number.to_le_bytes();
            let _ = rustix::io::write(&self.report, &[0xff, step as u8, low, high]);
            problem
        })
    }

    fn steps(&mut self) -> Result<(), (Step, io::Error)> {
        if let Some(namespaces) = &self.namespaces {
            namespaces.enter()?;
        }
        for (resource, most) in &self.limits {
            let limit = Rlimit {
                current: Some(*most),
                maximum: Some(*most),
            };
            rustix::process::setrlimit(*resource, limit).map_err(at(Step::Limits))?;
        }
        give_up_rights().map_err(at(Step::Rights))?;
        close_the_rest().map_err(|problem| (Step::Descriptors, problem))?;
        if let Some(parent) = self.parent {
            // After the last change of rights, which would undo it.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .map_err(at(Step::Parent))?;
            if rustix::process::getppid() != Some(parent) {
                return Err((Step::Parent, io::Error::from_raw_os_error(libc::ESRCH)));
            }
        }
        rustix::thread::set_no_new_privs(true).map_err(at(Step::Rules))?;
        if let Some(undertaker) = &mut self.undertaker {
            let left = undertaker.leave_behind();
            left.map_err(|problem| (Step::Undertaker, problem))?;
        }
        if let Some(rules) = self.rules.take() {
            let entered = rules.restrict_self();
            entered.map_err(|_| (Step::Rules, io::Error::last_os_error()))?;
        }
        for filter in &self.filters {
            let entered = seccompiler::apply_filter(filter);
            entered.map_err(|_| (Step::Filters, io::Error::last_os_error()))?;
        }
        let refused = self.canary.sing(&self.report);
        match self.strictness {
            Strictness::Wholly if !refused => {
                Err((Step::Canary, io::Error::from_raw_os_error(libc::EPERM)))
            }
            Strictness::Wholly | Strictness::AsFarAsItCan => Ok(()),
        }
    }
}

fn at(step: Step) -> impl Fn(rustix::io::Errno) -> (Step, io::Error) {
    move |problem| (step, problem.into())
}

impl Namespaces {
    fn enter(&self) -> Result<(), (Step, io::Error)> {
        let mut flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
        if self.network {
            flags |= UnshareFlags::NEWNET;
        }
        // SAFETY: none of these flags takes the descriptors of this process, which has one thread, apart.
        unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(at(Step::Namespaces))?;
        let maps = || -> rustix::io::Result<()> {
            put(c"/proc/self/setgroups", b"deny")?;
            put(c"/proc/self/uid_map", &self.user_map)?;
            put(c"/proc/self/gid_map", &self.group_map)
        };
        maps().map_err(at(Step::Maps))?;
        self.mount().map_err(at(Step::Mounts))?;
        // The folder that it is in may lie under a mount by now.
        again_where_it_is().map_err(|problem| (Step::Folder, problem))?;
        if self.network {
            raise_loopback().map_err(|problem| (Step::Loopback, problem))?;
            if let Some(bridge) = &self.bridge {
                bridge.open().map_err(at(Step::Loopback))?;
            }
        }
        Ok(())
    }

    fn mount(&self) -> rustix::io::Result<()> {
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change(c"/", private)?;
        // Landlock knows no modes, times and attributes of files: a mount that is read-only does.
        set_read_only(c"/", true)?;
        for place in &self.writable {
            rustix::mount::mount_bind_recursive(place.as_c_str(), place.as_c_str())?;
            set_read_only(place, false)?;
        }
        if let Some(shared) = &self.shared {
            rustix::mount::mount_bind(shared.as_c_str(), SHARED_MEMORY)?;
        }
        self.mounts.iter().try_for_each(Mount::put)
    }
}

impl Mount {
    fn place(&self) -> &CStr {
        let (Self::Pinned { place }
        | Self::Fixed { place, .. }
        | Self::HiddenFolder { place }
        | Self::HiddenFile { place, .. }) = self;
        place
    }

    fn put(&self) -> rustix::io::Result<()> {
        let shut = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        match self {
            Self::Pinned { place } => {
                rustix::mount::mount_bind_recursive(place.as_c_str(), place.as_c_str())
            }
            Self::Fixed { place, flags } => {
                rustix::mount::mount_bind_recursive(place.as_c_str(), place.as_c_str())?;
                let flags = *flags | MountFlags::BIND | MountFlags::RDONLY;
                rustix::mount::mount_remount(place.as_c_str(), flags, c"")
            }
            Self::HiddenFolder { place } => {
                let size = c"mode=0,size=4k";
                rustix::mount::mount(c"tmpfs", place.as_c_str(), c"tmpfs", shut, size)
            }
            Self::HiddenFile { place, flags } => {
                rustix::mount::mount_bind(c"/dev/null", place.as_c_str())?;
                let flags = *flags | MountFlags::BIND | shut;
                rustix::mount::mount_remount(place.as_c_str(), flags, c"")
            }
        }
    }
}

/// Puts a cover back around a child that runs, in its own mounts.
pub(super) fn cover(leader: Pid, mount: Mount) -> io::Result<()> {
    let open = |kind: &str| {
        let name = format!("/proc/{}/ns/{kind}", leader.as_raw_nonzero());
        std::fs::File::open(name)
    };
    let (user, mounts) = (open("user")?, open("mnt")?);
    in_a_child_that_never_runs(move || {
        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
        move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
        move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
        mount.put()?;
        // A link could have been there for a moment, and what it led to is covered then.
        let place = mount.place();
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statx(rustix::fs::CWD, place, flags, StatxFlags::BASIC_STATS)?;
        match found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::EBUSY)),
        }
    })
}

/// Where programs share memory.
pub(super) const SHARED_MEMORY: &CStr = c"/dev/shm";

/// Makes the mount of a place, with those below it, read-only; or makes it writable again.
fn set_read_only(place: &CStr, read_only: bool) -> rustix::io::Result<()> {
    let attribute = libc::MOUNT_ATTR_RDONLY;
    let attributes = libc::mount_attr {
        attr_set: if read_only { attribute } else { 0 },
        attr_clr: if read_only { 0 } else { attribute },
        propagation: 0,
        userns_fd: 0,
    };
    let set = |flags: libc::c_int| {
        // SAFETY: the path ends with a zero, and the structure is as long as is said.
        let set = unsafe {
            libc::syscall(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                place.as_ptr(),
                flags,
                &raw const attributes,
                size_of::<libc::mount_attr>(),
            )
        };
        if set == 0 {
            return Ok(());
        }
        let problem = io::Error::last_os_error();
        Err(rustix::io::Errno::from_io_error(&problem).unwrap_or(rustix::io::Errno::IO))
    };
    match set(libc::AT_RECURSIVE) {
        // A mount below was read-only for the parent, and stays so.
        Err(rustix::io::Errno::PERM) if !read_only => set(0),
        done => done,
    }
}

fn put(file: &CStr, text: &[u8]) -> rustix::io::Result<()> {
    let file = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file.as_fd(), text).map(drop)
}

/// Resolves the current folder's path anew, through what was mounted since.
fn again_where_it_is() -> io::Result<()> {
    let mut path = [0_u8; libc::PATH_MAX as usize];
    // The kernel's own call: that of the library allocates where a folder is not to be reached.
    // SAFETY: the buffer is as long as is said.
    let found = unsafe { libc::syscall(libc::SYS_getcwd, path.as_mut_ptr(), path.len()) };
    if found < 0 {
        return Err(io::Error::last_os_error());
    }
    if path[0] != b'/' {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    // SAFETY: it ends with a zero, which the kernel wrote.
    match unsafe { libc::chdir(path.as_ptr().cast()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A network of one's own begins with its loopback down.
fn raise_loopback() -> io::Result<()> {
    // SAFETY: a zeroed `ifreq` is a valid one; its name is shorter than its field, and it outlives the calls.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let raised = libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request);
        let problem = io::Error::last_os_error();
        libc::close(socket);
        if raised == 0 { Ok(()) } else { Err(problem) }
    }
}

/// Whoever is root, in a namespace or outside, is so no more.
fn give_up_rights() -> rustix::io::Result<()> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::set_capabilities(None, sets)
}

/// Closes, at exec, every descriptor but the three streams: also those that Lodestar was itself started with.
fn close_the_rest() -> io::Result<()> {
    // SAFETY: marks descriptors, and touches no memory.
    let marked = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3 as libc::c_uint,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if marked == 0 {
        return Ok(());
    }
    let problem = io::Error::last_os_error();
    match problem.raw_os_error() {
        // Before Linux 5.11: one by one.
        Some(libc::ENOSYS | libc::EINVAL) => {
            let most = rustix::process::getrlimit(Resource::Nofile).current;
            let most = most.unwrap_or(u64::MAX).min(MAX_DESCRIPTORS);
            for descriptor in 3..most {
                // SAFETY: marks a descriptor, if there is one of that number.
                unsafe { libc::fcntl(descriptor as libc::c_int, libc::F_SETFD, libc::FD_CLOEXEC) };
            }
            Ok(())
        }
        _ => Err(problem),
    }
}

/// A process like this one: its number, and none in that process. The library's call runs what others registered for
/// it, and may wait for what a thread held that is not here.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: as `fork`, without a stack or memory that is shared; what the new process does is held to [`between`].
    let forked = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match libc::pid_t::try_from(forked) {
        Ok(number) if number >= 0 => Ok(Pid::from_raw(number)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends this process and runs nothing that was registered for its end.
pub(super) fn exit(code: libc::c_int) -> ! {
    // SAFETY: touches no memory.
    unsafe { libc::_exit(code) }
}

/// Sends a signal to everybody whom this process may signal, in one step.
pub(super) fn signal_everybody(signal: Signal) {
    // SAFETY: takes numbers alone.
    unsafe { libc::kill(-1, signal.as_raw()) };
}

/// Closes every descriptor but one.
pub(super) fn close_but(kept: &OwnedFd) -> io::Result<()> {
    let kept = kept.as_raw_fd().unsigned_abs();
    let close = |from: libc::c_uint, to: libc::c_uint| {
        // SAFETY: this process ends without using any of them again.
        match unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    if kept > 0 {
        close(0, kept - 1)?;
    }
    close(kept + 1, libc::c_uint::MAX)
}

/// Most descriptors that are marked one by one: more than any limit that people set.
const MAX_DESCRIPTORS: u64 = 1 << 20;

/// Calls that have no safe form, made only to see that they are refused. Each gives the error's number, or none where
/// it was not refused.
pub(super) mod forbidden {
    use super::{Pid, io};

    /// Reads eight bytes at an address of another process.
    pub(in super::super) fn read_memory(of: Pid) -> Option<i32> {
        let mut bytes = [0_u8; 8];
        let here = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        // The same address is mapped there: that process was forked from this one.
        let there = here;
        // SAFETY: writes eight bytes at most, into `bytes`.
        let read = unsafe {
            libc::process_vm_readv(
                of.as_raw_nonzero().get(),
                &raw const here,
                1,
                &raw const there,
                1,
                0,
            )
        };
        refused(read < 0)
    }

    /// Attaches to another process without stopping it.
    pub(in super::super) fn trace(whom: Pid) -> Option<i32> {
        // SAFETY: touches no memory of this process.
        let traced = unsafe { libc::ptrace(libc::PTRACE_SEIZE, whom.as_raw_nonzero().get(), 0, 0) };
        refused(traced != 0)
    }

    /// Makes a queue of calls.
    pub(in super::super) fn io_uring() -> Option<i32> {
        let mut parameters = [0_u8; 256];
        // SAFETY: the kernel writes 120 bytes at most, into `parameters`.
        let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
        if made >= 0 {
            // SAFETY: it was made just now, and nobody else has it.
            unsafe { libc::close(made as libc::c_int) };
        }
        refused(made < 0)
    }

    /// Asks for the number of the session's keyring.
    pub(in super::super) fn keyring() -> Option<i32> {
        const GET_KEYRING_ID: libc::c_int = 0;
        const SESSION: libc::c_int = -3;
        // SAFETY: takes numbers alone.
        let found = unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION, 0) };
        refused(found < 0)
    }

    fn refused(failed: bool) -> Option<i32> {
        failed.then(|| io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}
