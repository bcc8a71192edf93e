//! Streams: one's own standard streams, polled where that is possible; and messages written out in turns.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// What messages are read from.
pub(crate) type Source = Box<dyn AsyncRead + Send + Unpin>;

/// Where they go.
pub(crate) type Sink = Box<dyn AsyncWrite + Send + Unpin>;

/// What is written at once, if there is so much.
const BATCH: usize = 64 << 10;

/// Messages that wait to be written to one peer; whoever has more waits.
const QUEUE: usize = 256;

/// Of these, places that what may be lost leaves to what may not.
const RESERVED: usize = 64;

/// What stands at the other end of a descriptor. Clients start servers with pipes or with sockets; both are
/// polled, which saves every message two changes of thread.
enum Kind {
    Pipe,
    Socket,
    Other,
}

fn kind(fd: &OwnedFd) -> io::Result<Kind> {
    Ok(match FileType::from_raw_mode(fstat(fd)?.st_mode) {
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        _ => Kind::Other,
    })
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = StdUnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// This process's standard input.
pub(crate) fn standard_input() -> io::Result<Source> {
    let fd = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(match kind(&fd)? {
        Kind::Pipe => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        Kind::Socket => Box::new(socket(fd)?),
        Kind::Other => Box::new(tokio::io::stdin()),
    })
}

/// This process's standard output.
pub(crate) fn standard_output() -> io::Result<Sink> {
    let fd = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(match kind(&fd)? {
        Kind::Pipe => Box::new(pipe::Sender::from_owned_fd(fd)?),
        Kind::Socket => Box::new(socket(fd)?),
        Kind::Other => Box::new(tokio::io::stdout()),
    })
}

/// Where messages to one peer are put.
#[derive(Debug, Clone)]
pub(crate) struct Outbox(mpsc::Sender<Vec<u8>>);

/// An outbox that does not keep its peer waiting: it is gone with the others.
#[derive(Debug, Clone)]
pub(crate) struct WeakOutbox(mpsc::WeakSender<Vec<u8>>);

/// The peer is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl Outbox {
    /// An outbox, and what is to be written from it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), receiver)
    }

    /// Puts a message there; waits where the peer does not read.
    pub(crate) async fn put(&self, message: Vec<u8>) -> Result<(), Closed> {
        self.0.send(message).await.map_err(|_| Closed)
    }

    /// Puts a message there if there is room: for what may be lost.
    pub(crate) fn offer(&self, message: Vec<u8>) -> bool {
        self.0.capacity() > RESERVED && self.0.try_send(message).is_ok()
    }

    /// A handle that does not keep it open.
    pub(crate) fn downgrade(&self) -> WeakOutbox {
        WeakOutbox(self.0.downgrade())
    }
}

impl WeakOutbox {
    /// Puts a message there if it is still open and has room.
    pub(crate) fn offer(&self, message: &[u8]) -> bool {
        let open = self.0.upgrade();
        open.is_some_and(|open| open.try_send(message.to_vec()).is_ok())
    }

    /// As [`offer`](Self::offer), for what may be lost.
    pub(crate) fn tell(&self, message: &[u8]) -> bool {
        let open = self.0.upgrade().map(Outbox);
        open.is_some_and(|open| open.offer(message.to_vec()))
    }

    /// Whether anybody may still put something there.
    pub(crate) fn is_open(&self) -> bool {
        self.0.upgrade().is_some_and(|open| !open.is_closed())
    }
}

/// Writes messages as lines until nobody has more; those that are there go out together.
pub(crate) async fn write_lines(
    mut from: mpsc::Receiver<Vec<u8>>,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut waiting = Vec::new();
    let mut batch = Vec::new();
    while from.recv_many(&mut waiting, QUEUE).await > 0 {
        for message in waiting.drain(..) {
            push_line(&mut batch, &message);
            if batch.len() >= BATCH {
                to.write_all(&batch).await?;
                batch.clear();
            }
        }
        if !batch.is_empty() {
            to.write_all(&batch).await?;
            batch.clear();
        }
        batch.shrink_to(2 * BATCH);
        to.flush().await?;
    }
    to.shutdown().await
}

/// A message as one line. Between tokens of JSON, a space means what a line's end means; within a text there
/// is none.
fn push_line(batch: &mut Vec<u8>, message: &[u8]) {
    let start = batch.len();
    batch.extend_from_slice(message);
    if memchr::memchr2(b'\n', b'\r', message).is_some() {
        for byte in &mut batch[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    batch.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_lost_leaves_room_for_what_may_not() {
        let (outbox, _read) = Outbox::new();
        let weak = outbox.downgrade();
        let told = (0..2 * QUEUE).filter(|_| weak.tell(b"told")).count();
        assert_eq!(told, QUEUE - RESERVED);
        assert!(!outbox.offer(b"told".to_vec()));
        assert!(weak.offer(b"a question"));
    }
}
