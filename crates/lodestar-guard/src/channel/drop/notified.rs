//! The system's notifications about folders (inotify), waited for without looking again and again.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// Most notifications that are taken at once, so that a flood of them does not starve the rest.
const AT_ONCE: usize = 4096;
/// Room for sixty of the longest.
const BUFFER: usize = 16 << 10;

/// A folder that is watched.
pub(crate) type Watch = i32;

/// Something happened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// To the file of this name.
    File(Watch, String),
    /// The folder itself was moved, removed or unmounted.
    Folder(Watch),
    /// More than the system could remember: everything has to be looked at.
    TooMuch,
}

pub(crate) struct Notifications {
    fd: AsyncFd<OwnedFd>,
}

impl Notifications {
    #[allow(
        deprecated,
        reason = "its successor is unsafe for types that may change their descriptor; this one cannot"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self {
            fd: AsyncFd::new(fd)?,
        })
    }

    /// Watches a folder for files that are whole, that go, and for its own end.
    pub(crate) fn watch(&self, folder: &Path, files: WatchFlags) -> io::Result<Watch> {
        let flags = WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(self.fd.get_ref(), folder, files | flags).map_err(|errno| {
            let error = io::Error::from(errno);
            let problem = match errno {
                Errno::NOSPC => {
                    "the system's limit of watches is reached; raise fs.inotify.max_user_watches"
                        .to_owned()
                }
                _ => error.to_string(),
            };
            io::Error::new(error.kind(), format!("`{}`: {problem}", folder.display()))
        })
    }

    /// Waits until something happens. Dropping the future loses nothing.
    pub(crate) async fn wait(&self) -> io::Result<Vec<Happened>> {
        loop {
            let mut ready = self.fd.readable().await?;
            let (happened, drained) = self.drain()?;
            if drained {
                ready.clear_ready();
            }
            if !happened.is_empty() {
                return Ok(happened);
            }
        }
    }

    /// What has happened already.
    pub(crate) fn at_hand(&self) -> io::Result<Vec<Happened>> {
        self.drain().map(|(happened, _)| happened)
    }

    fn drain(&self) -> io::Result<(Vec<Happened>, bool)> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(self.fd.get_ref(), &mut buffer);
        let mut happened = Vec::new();
        loop {
            // What was read already has to be taken.
            if happened.len() >= AT_ONCE && reader.is_buffer_empty() {
                return Ok((happened, false));
            }
            match reader.next() {
                Ok(event) => happened.extend(read(&event)),
                Err(Errno::WOULDBLOCK) => return Ok((happened, true)),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn read(event: &inotify::Event<'_>) -> Option<Happened> {
    let flags = event.events();
    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(Happened::TooMuch);
    }
    let over =
        ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED;
    if flags.intersects(over) {
        return Some(Happened::Folder(event.wd()));
    }
    // A name that is no text is none of ours.
    let name = event.file_name()?.to_str().ok()?;
    Some(Happened::File(event.wd(), name.to_owned()))
}
