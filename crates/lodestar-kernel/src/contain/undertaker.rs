//! Who ends whatever a child left behind: all of it, in one step.
//!
//! A child that may leave its process group can start processes faster than anybody can end them one by one. The
//! kernel ends everything that one process may signal in a single step, during which nobody is started. So a process
//! is left behind in a Landlock domain that holds the child and nothing else of this machine: it may signal whatever
//! the child started, wherever that went, and nobody outside; and the child, whose own domain lies within, cannot
//! signal it. It waits until the other end of a socket is closed, which also happens when Lodestar itself is killed.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, Scope};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, WaitOptions, getpid};

use super::ContainError;
use super::enter;

/// Made ready before the fork.
pub(super) struct Undertaker {
    /// Taken by the child; the parent's copy stays.
    domain: Option<RulesetCreated>,
    waits: OwnedFd,
    outside: Pid,
}

/// What it waits for. Dropped, it is rung as well.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Undertaker {
    /// Only where Landlock keeps signals in: elsewhere it would end everything of this user.
    pub(super) fn ready() -> Result<(Self, Bell), ContainError> {
        let failed = |problem: landlock::RulesetError| ContainError::Rules(problem.to_string());
        let domain = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .scope(Scope::Signal)
            .and_then(Ruleset::create)
            .map_err(failed)?;
        let (waits, rings) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(io::Error::from)?;
        let undertaker = Self {
            domain: Some(domain),
            waits,
            outside: getpid(),
        };
        Ok((undertaker, Bell(rings)))
    }

    /// Leaves it behind, as nobody's child here: the program would find one that it never started. Called between fork
    /// and exec, before the child's own rules.
    pub(super) fn leave_behind(&mut self) -> io::Result<()> {
        if let Some(domain) = self.domain.take() {
            let entered = domain.restrict_self();
            entered.map_err(|_| io::Error::last_os_error())?;
        }
        // INVARIANT: whoever signals everybody reaches nobody outside.
        match rustix::process::test_kill_process(self.outside) {
            Err(Errno::PERM) => {}
            _ => return Err(io::Error::from_raw_os_error(libc::EPERM)),
        }
        let Some(between) = enter::fork()? else {
            match enter::fork() {
                Ok(None) => self.wait(),
                Ok(Some(_)) => enter::exit(0),
                Err(_) => enter::exit(1),
            }
        };
        let ended = rustix::process::waitpid(Some(between), WaitOptions::empty())?;
        match ended.and_then(|(_, status)| status.exit_status()) {
            Some(0) => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        }
    }

    fn wait(&self) -> ! {
        // What the terminal sends is not for it.
        let _ = rustix::process::setsid();
        // The streams of the program are not either: whoever reads them waits until nobody holds them.
        if enter::close_but(&self.waits).is_ok() {
            let mut byte = [0; 1];
            while let Ok(1..) | Err(Errno::INTR) = rustix::io::read(&self.waits, &mut byte) {}
        }
        enter::signal_everybody(Signal::KILL);
        enter::exit(0)
    }
}

impl Bell {
    /// Has everything ended, and waits until it was. Whether it was.
    pub(super) fn ring(&self, at_most: Duration) -> bool {
        let _ = rustix::net::shutdown(&self.0, Shutdown::Write);
        let Ok(limit) = Timespec::try_from(at_most) else {
            return false;
        };
        let mut waited = [PollFd::new(&self.0, PollFlags::IN)];
        if !matches!(poll(&mut waited, Some(&limit)), Ok(1)) {
            return false;
        }
        let mut byte = [0; 1];
        let told = rustix::net::recv(&self.0, &mut byte, RecvFlags::DONTWAIT);
        matches!(told, Ok((_, 0)) | Err(Errno::CONNRESET))
    }
}
