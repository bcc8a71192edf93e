//! What is tried inside the very sandbox, in the process that is about to become the program.
//!
//! The attempts are harmless where they succeed. They are made ready before the fork; what came of each is told
//! on a pipe, which the program never has.

use std::ffi::{CStr, CString};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Pid;

use super::cover::text;
use super::enter::forbidden;
use super::plan::{Grants, Network, Plan};
use super::record::{Attempt, Tried};

/// What is tried, with what it takes.
#[derive(Debug)]
pub(super) struct Canary {
    keys: Option<CString>,
    lodestar: Option<CString>,
    outside: Option<CString>,
    parent: Pid,
    stream: Option<SocketAddrV4>,
    datagram: Option<SocketAddrV4>,
    unix: bool,
}

/// Who would hear of what got out.
#[derive(Debug)]
pub(super) struct Listeners {
    _stream: Option<TcpListener>,
    datagram: Option<UdpSocket>,
}

impl Canary {
    pub(super) fn ready(plan: &Plan, grants: &Grants) -> io::Result<(Self, Listeners)> {
        let there = |place: &Option<PathBuf>| {
            let place = place.as_deref().filter(|place| place.exists());
            place.map(text).transpose()
        };
        let here = (Ipv4Addr::LOCALHOST, 0);
        let (mut stream, mut datagram) = (None, None);
        if grants.network != Network::ANY {
            stream = Some(TcpListener::bind(here)?);
        }
        if !grants.network.has_names() {
            let socket = UdpSocket::bind(here)?;
            socket.set_nonblocking(true)?;
            datagram = Some(socket);
        }
        let port = |address: io::Result<std::net::SocketAddr>| {
            address.map(|address| SocketAddrV4::new(Ipv4Addr::LOCALHOST, address.port()))
        };
        let canary = Self {
            keys: there(&plan.out_of_reach.keys)?,
            lodestar: there(&plan.out_of_reach.lodestar)?,
            outside: outside(plan, grants)?,
            parent: rustix::process::getpid(),
            stream: stream
                .as_ref()
                .map(|one| port(one.local_addr()))
                .transpose()?,
            datagram: datagram
                .as_ref()
                .map(|one| port(one.local_addr()))
                .transpose()?,
            unix: !plan.unix_sockets,
        };
        let listeners = Listeners {
            _stream: stream,
            datagram,
        };
        Ok((canary, listeners))
    }

    /// Tries everything, and tells; whether all of it was refused, as far as that is to be seen from inside. Called
    /// between fork and exec: system calls and nothing else.
    pub(super) fn sing(&self, to: &OwnedFd) -> bool {
        let mut all = true;
        for (at, attempt) in Attempt::ALL.iter().enumerate() {
            let Some(came) = self.attempt(*attempt) else {
                continue;
            };
            let (refused, errno) = match came {
                Ok(()) => (0, 0),
                Err(errno) => (1, errno),
            };
            // Whether a datagram arrives is seen outside.
            all &= refused == 1 || *attempt == Attempt::SendUdp;
            let [low, high, ..] = errno.to_le_bytes();
            let at = u8::try_from(at).unwrap_or(u8::MAX);
            let _ = rustix::io::write(to, &[at, refused, low, high]);
        }
        all
    }

    /// What there is nothing to try for, though no grant says so.
    pub(super) fn untried(&self) -> Vec<Attempt> {
        let places = [
            (&self.keys, Attempt::ReadKeys),
            (&self.lodestar, Attempt::OpenLodestar),
            (&self.outside, Attempt::WriteOutside),
        ];
        let untried = places.into_iter().filter(|(place, _)| place.is_none());
        untried.map(|(_, attempt)| attempt).collect()
    }

    /// What comes of one; none where there is nothing to try.
    fn attempt(&self, attempt: Attempt) -> Option<Result<(), i32>> {
        let was = |refused: Option<i32>| Some(refused.map_or(Ok(()), Err));
        match attempt {
            Attempt::ReadKeys => Some(opens(self.keys.as_deref()?)),
            Attempt::OpenLodestar => Some(opens(self.lodestar.as_deref()?)),
            Attempt::WriteOutside => Some(makes(self.outside.as_deref()?)),
            Attempt::ReadParent => was(forbidden::read_memory(self.parent)),
            Attempt::TraceParent => was(forbidden::trace(self.parent)),
            Attempt::SignalParent => Some(number(rustix::process::test_kill_process(self.parent))),
            Attempt::ConnectTcp => {
                let address = self.stream?;
                let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
                Some(number(
                    socket.and_then(|socket| rustix::net::connect(&socket, &address)),
                ))
            }
            Attempt::SendUdp => {
                let address = self.datagram?;
                let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
                Some(number(socket.and_then(|socket| {
                    let flags = rustix::net::SendFlags::empty();
                    rustix::net::sendto(&socket, b"canary", flags, &address).map(drop)
                })))
            }
            Attempt::RawSocket => {
                let raw = rustix::net::socket(AddressFamily::INET, SocketType::RAW, None);
                Some(number(raw.map(drop)))
            }
            Attempt::UnixSocket => {
                let socket = || rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
                self.unix.then(|| number(socket().map(drop)))
            }
            Attempt::IoUring => was(forbidden::io_uring()),
            Attempt::Mount => {
                let flags = rustix::mount::MountFlags::empty();
                let mounted = rustix::mount::mount(c"tmpfs", c"/tmp", c"tmpfs", flags, c"");
                Some(number(mounted))
            }
            Attempt::Keyring => was(forbidden::keyring()),
        }
    }
}

fn number(result: rustix::io::Result<()>) -> Result<(), i32> {
    result.map_err(Errno::raw_os_error)
}

fn opens(place: &CStr) -> Result<(), i32> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    number(rustix::fs::open(place, flags, Mode::empty()).map(drop))
}

fn makes(file: &CStr) -> Result<(), i32> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = rustix::fs::open(file, flags, Mode::RUSR | Mode::WUSR).map(drop);
    if made.is_ok() {
        let _ = rustix::fs::unlink(file);
    }
    number(made)
}

/// A file that is not there, in a folder where this user could make it and the child may not.
fn outside(plan: &Plan, grants: &Grants) -> io::Result<Option<CString>> {
    let folders = [
        plan.home.as_deref(),
        plan.project.parent(),
        Some(Path::new("/var/tmp")),
    ];
    let is_granted = |folder: &Path| grants.writes.iter().any(|grant| folder.starts_with(grant));
    let mut folders = folders.into_iter().flatten().filter(|folder| {
        !is_granted(folder) && rustix::fs::access(*folder, Access::WRITE_OK).is_ok()
    });
    let Some(folder) = folders.next() else {
        return Ok(None);
    };
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|problem| io::Error::other(problem.to_string()))?;
    let name = format!(".lodestar-canary-{:016x}", u64::from_le_bytes(random));
    text(&folder.join(name)).map(Some)
}

impl Listeners {
    /// What the child told, and whether something got out after all.
    pub(super) fn heard(&self, told: &[u8]) -> Vec<Tried> {
        let mut arrived = [0; 16];
        let got_out = self
            .datagram
            .as_ref()
            .is_some_and(|socket| socket.recv(&mut arrived).is_ok());
        let read = |four: &[u8]| {
            let [at, refused, low, high] = four else {
                return None;
            };
            let attempt = *Attempt::ALL.get(usize::from(*at))?;
            let errno = u16::from_le_bytes([*low, *high]);
            let refused = match attempt {
                // In a network of its own a datagram leaves and arrives nowhere.
                Attempt::SendUdp => !got_out,
                _ => *refused == 1,
            };
            Some(Tried {
                attempt,
                refused,
                errno: (errno != 0).then_some(errno),
            })
        };
        told.chunks_exact(4).filter_map(read).collect()
    }
}
