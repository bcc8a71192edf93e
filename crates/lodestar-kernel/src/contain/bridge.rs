//! Listeners on the loopback of a child's own network, served from outside.
//!
//! A network of its own has no way out. A socket belongs to the network in which it was made, whoever holds it: the
//! child makes a listener there before it becomes the program, and hands it over. So the only ways out are those
//! that somebody outside answers.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Connections that wait to be answered.
const WAITING: i32 = 64;

/// Which listeners there are to be, and the way on which they are handed over.
#[derive(Debug)]
pub(super) struct Bridge {
    ports: Vec<u16>,
    hand_over: OwnedFd,
}

/// The other end of that way.
#[derive(Debug)]
pub(super) struct FarEnd {
    count: usize,
    taken: OwnedFd,
}

impl Bridge {
    pub(super) fn ready(ports: &[u16]) -> io::Result<(Self, FarEnd)> {
        let flags = SocketFlags::CLOEXEC;
        let (hand_over, taken) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let bridge = Self {
            ports: ports.to_vec(),
            hand_over,
        };
        let far = FarEnd {
            count: ports.len(),
            taken,
        };
        Ok((bridge, far))
    }

    /// Makes the listeners and hands them over. Called between fork and exec: system calls and nothing else.
    pub(super) fn open(&self) -> rustix::io::Result<()> {
        for port in &self.ports {
            let flags = SocketFlags::CLOEXEC;
            let family = AddressFamily::INET;
            let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
            rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, *port))?;
            rustix::net::listen(&socket, WAITING)?;
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            let handed = [socket.as_fd()];
            beside.push(SendAncillaryMessage::ScmRights(&handed));
            let word = [io::IoSlice::new(b"l")];
            rustix::net::sendmsg(&self.hand_over, &word, &mut beside, SendFlags::empty())?;
        }
        Ok(())
    }
}

impl FarEnd {
    /// The listeners, in the order of their ports.
    pub(super) fn take(&self) -> io::Result<Vec<TcpListener>> {
        let mut listeners = Vec::new();
        while listeners.len() < self.count {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let mut word = [0; 1];
            let mut words = [io::IoSliceMut::new(&mut word)];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            rustix::net::recvmsg(&self.taken, &mut words, &mut beside, flags)?;
            for message in beside.drain() {
                if let RecvAncillaryMessage::ScmRights(sockets) = message {
                    listeners.extend(sockets.map(TcpListener::from));
                }
            }
        }
        Ok(listeners)
    }
}
