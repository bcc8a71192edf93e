//! Hears from the system when something of what is asked changes.

use std::io;
use std::path::PathBuf;

use rustix::fs::inotify::WatchFlags;

use super::folder::{Folder, Missing};
use super::notified::{Happened, Notifications};
use super::turns::sessions;
use super::{APPROVALS, DropDirectory, LODESTAR};

/// Hears from the system when a request or a notice comes, changes or goes.
pub struct Watching {
    root: PathBuf,
    notifications: Notifications,
}

impl Watching {
    /// Starts to listen. Refresh the [`Pile`] afterwards: what comes from here on is told.
    pub fn below(root: impl Into<PathBuf>) -> io::Result<Self> {
        let watching = Self {
            root: root.into(),
            notifications: Notifications::new()?,
        };
        watching.watch_all()?;
        Ok(watching)
    }

    /// Waits until something changed. Dropping the future loses nothing that a refresh would not see.
    pub async fn changed(&mut self) -> io::Result<()> {
        let happened = self.notifications.wait().await?;
        let over = |h: &Happened| matches!(h, Happened::Folder(_) | Happened::TooMuch);
        if happened.iter().any(over) {
            self.notifications = Notifications::new()?;
        }
        self.watch_all()
    }

    /// Watches what is not watched yet; for the rest the system does nothing.
    fn watch_all(&self) -> io::Result<()> {
        let comes = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        let goes = WatchFlags::DELETE | WatchFlags::MOVED_FROM;
        let changes = WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE | goes;
        self.notifications.watch(&self.root.join(LODESTAR), comes)?;
        let path = DropDirectory::path_below(&self.root);
        match self.notifications.watch(&path, comes | goes) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            watched => watched?,
        };
        let approvals = Folder::open(&self.root, &[LODESTAR, APPROVALS], Missing::Refused)?;
        for session in sessions(&approvals)? {
            match self
                .notifications
                .watch(&path.join(session.as_str()), changes)
            {
                Err(e) if e.kind() == io::ErrorKind::StorageFull => return Err(e),
                // A file, a link, or gone by now.
                _ => {}
            }
        }
        Ok(())
    }
}
