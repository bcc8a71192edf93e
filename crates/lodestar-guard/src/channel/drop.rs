//! The drop directory: people on the same machine are asked through files.
//!
//! ```text
//! .lodestar/approvals/<session>/<request>.request.json         an announcement
//! .lodestar/approvals/<session>/<request>.<nonce>.answer.json  a signed answer
//! .lodestar/approvals/<session>/notices.ndjson                 what ran without being held
//! ```
//!
//! Nobody trusts what lies there. The session's side is [`DropDirectory`], the approver's is [`Pile`];
//! both put files there whole, under a temporary name first, and hear from the system when one comes.

pub(crate) mod folder;
mod inbox;
mod name;
pub(crate) mod notified;
mod pile;
mod turns;
mod watching;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use rustix::fs::inotify::WatchFlags;
use tokio::sync::Notify;

pub use pile::{Pile, Shown, Unusable};
pub use watching::Watching;

use super::{
    Announcement, Channel, ChannelError, Closing, Delivered, Doing, Notice, lock, remember, serve,
};
use folder::{Folder, MOST_NAMES, Missing};
use inbox::{Came, Inbox, Open};
use notified::{Happened, Notifications, Watch};

const LODESTAR: &str = ".lodestar";
const APPROVALS: &str = "approvals";
/// Where the lines about what ran are cut, and how many stay then.
const MOST_NOTICES: u64 = 128 << 10;
const NOTICES_KEPT: usize = 100;
/// Longest line about something that ran.
const LONGEST_NOTICE: usize = 1000;

/// Rounds of notifications that are heard before an answer is taken, a few thousand each.
const MOST_ROUNDS: usize = 8;

/// The session's side of the drop directory.
///
/// It serves the session whose request or notice it is told first.
pub struct DropDirectory {
    root: PathBuf,
    session: OnceLock<SessionId>,
    learned: Notify,
    /// Taken before `inbox`.
    told: Mutex<TheTold>,
    notices: Mutex<VecDeque<String>>,
    inbox: Mutex<Inbox>,
    ears: tokio::sync::Mutex<Option<Ears>>,
}

/// What people were told of requests.
#[derive(Default)]
struct TheTold {
    /// What is announced, so that it can be put there again.
    open: Open,
    /// Those that are over, the latest last. No late announcement opens one again.
    over: VecDeque<RequestId>,
}

/// The notifications of a session's folder, and of those that it lies in.
struct Ears {
    notifications: Notifications,
    session: Watch,
}

impl DropDirectory {
    /// The drop directory of the project in this folder, the one that holds `.lodestar/`.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            session: OnceLock::new(),
            learned: Notify::new(),
            told: Mutex::default(),
            notices: Mutex::default(),
            inbox: Mutex::default(),
            ears: tokio::sync::Mutex::default(),
        }
    }

    /// Where its files lie.
    pub fn path_below(root: &Path) -> PathBuf {
        root.join(LODESTAR).join(APPROVALS)
    }

    fn serve(&self, session: &SessionId) -> Result<&SessionId, ChannelError> {
        let served = serve(&self.session, session);
        self.learned.notify_waiters();
        served.map_err(unusable)
    }

    async fn served(&self) -> &SessionId {
        loop {
            let learned = self.learned.notified();
            tokio::pin!(learned);
            learned.as_mut().enable();
            if let Some(session) = self.session.get() {
                return session;
            }
            learned.await;
        }
    }

    /// The session's folder, as its name leads to it now.
    fn folder(&self, session: &SessionId) -> io::Result<Folder> {
        let approvals = Folder::open(&self.root, &[LODESTAR, APPROVALS], Missing::Made)?;
        approvals.keep_private()?;
        let folder = approvals.enter(session.as_str(), Missing::Made)?;
        folder.keep_private()?;
        Ok(folder)
    }

    /// Starts to listen, then looks at what is there: nothing that comes meanwhile is missed.
    fn prick_up(&self, session: &SessionId) -> io::Result<Ears> {
        let folder = self.folder(session)?;
        let notifications = Notifications::new()?;
        let whole = WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE;
        let watch = notifications.watch(folder.path(), whole)?;
        // A folder above that goes takes this one along, and tells only its own watch.
        let approvals = Self::path_below(&self.root);
        notifications.watch(&approvals, WatchFlags::empty())?;
        notifications.watch(&self.root.join(LODESTAR), WatchFlags::empty())?;
        let folder = self.folder(session)?;
        self.look(&folder)?;
        for (id, announced) in &lock(&self.told).open {
            let name = name::request(*id);
            if folder.stamp(&name)?.is_none() {
                folder.write(&name, announced)?;
            }
        }
        Ok(Ears {
            notifications,
            session: watch,
        })
    }

    fn look(&self, folder: &Folder) -> io::Result<()> {
        let answers = folder.list((0, MOST_NAMES), |name, _| name::answered(name).is_some())?;
        let told = lock(&self.told);
        let mut inbox = lock(&self.inbox);
        inbox.looked();
        for name in answers.names {
            inbox.came(name, Came::Before, &told.open);
        }
        Ok(())
    }

    async fn wait(&self, session: &SessionId) -> io::Result<Delivered> {
        let mut ears = self.ears.lock().await;
        loop {
            let listening = match &*ears {
                Some(listening) => listening,
                None => ears.insert(self.prick_up(session)?),
            };
            // What came last may be what matters: it is known before anything is taken.
            match self.catch_up(listening) {
                Ok(false) => {}
                Ok(true) => {
                    *ears = None;
                    continue;
                }
                Err(problem) => {
                    *ears = None;
                    return Err(problem);
                }
            }
            if self.has_to_look() {
                self.look(&self.folder(session)?)?;
            }
            if let Some(delivered) = self.take(session)? {
                return Ok(delivered);
            }
            if let Some(problem) = lock(&self.inbox).problem() {
                return Err(problem);
            }
            let ripe = lock(&self.inbox).ripe_at();
            let ripening = async {
                match ripe {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let happened = tokio::select! {
                happened = listening.notifications.wait() => happened,
                () = ripening => Ok(Vec::new()),
            };
            let deaf = match happened {
                Ok(happened) => self.hear(listening.session, happened),
                Err(problem) => {
                    *ears = None;
                    return Err(problem);
                }
            };
            if deaf {
                *ears = None;
            }
        }
    }

    fn has_to_look(&self) -> bool {
        let told = lock(&self.told);
        lock(&self.inbox).has_to_look(&told.open)
    }

    /// The next answer of those that are known to be there.
    fn take(&self, session: &SessionId) -> io::Result<Option<Delivered>> {
        let told = lock(&self.told);
        let mut inbox = lock(&self.inbox);
        if !inbox.has_any(&told.open) {
            return Ok(None);
        }
        let folder = self.folder(session)?;
        Ok(inbox.take(&folder, &told.open))
    }

    /// Hears what has happened already, and tells whether the folder is another one by now.
    fn catch_up(&self, listening: &Ears) -> io::Result<bool> {
        for _ in 0..MOST_ROUNDS {
            let happened = listening.notifications.at_hand()?;
            if happened.is_empty() {
                break;
            }
            if self.hear(listening.session, happened) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Notes what came, and tells whether the folder is another one by now.
    fn hear(&self, session: Watch, happened: Vec<Happened>) -> bool {
        let told = lock(&self.told);
        let mut inbox = lock(&self.inbox);
        inbox.ripen(&told.open);
        let mut deaf = false;
        for happened in happened {
            match happened {
                Happened::File(watch, name) if watch == session => {
                    inbox.came(name, Came::Whole, &told.open);
                }
                Happened::File(..) => {}
                Happened::Folder(_) => deaf = true,
                Happened::TooMuch => inbox.look_again(),
            }
        }
        deaf
    }

    fn put_notice(&self, session: &SessionId, notice: &Notice) -> io::Result<()> {
        let mut line = serde_json::to_string(&shortened(notice))?;
        line.push('\n');
        let mut kept = lock(&self.notices);
        if kept.len() == NOTICES_KEPT {
            kept.pop_front();
        }
        kept.push_back(line.clone());
        let folder = self.folder(session)?;
        match folder.append(name::NOTICES, line.as_bytes())? {
            Some(length) if length <= MOST_NOTICES => Ok(()),
            Some(_) | None => {
                let all: String = kept.iter().map(String::as_str).collect();
                folder.write(name::NOTICES, all.as_bytes())
            }
        }
    }
}

impl Channel for DropDirectory {
    fn announce<'a>(&'a self, announcement: &'a Announcement) -> Doing<'a, ()> {
        Box::pin(async move {
            let request = &announcement.request;
            let session = self.serve(&request.session)?;
            let text = serde_json::to_vec(announcement).map_err(unusable)?;
            // Held until the file is there: whoever withdraws it meanwhile removes it after that.
            let mut told = lock(&self.told);
            if told.over.contains(&request.id) {
                return Ok(());
            }
            let folder = self.folder(session).map_err(unusable)?;
            let written = folder.write(&name::request(request.id), &text);
            told.open.insert(request.id, text);
            written.map_err(unusable)
        })
    }

    fn withdraw<'a>(&'a self, request: RequestId, _: Closing) -> Doing<'a, ()> {
        Box::pin(async move {
            let mut told = lock(&self.told);
            told.open.remove(&request);
            remember(&mut told.over, request);
            let Some(session) = self.session.get() else {
                return Ok(());
            };
            let folder = self.folder(session).map_err(unusable)?;
            folder.remove(&name::request(request)).map_err(unusable)
        })
    }

    fn clear_away<'a>(
        &'a self,
        session: &'a SessionId,
        request: RequestId,
        _: Closing,
    ) -> Doing<'a, ()> {
        Box::pin(async move {
            let below = [LODESTAR, APPROVALS, session.as_str()];
            let removed = Folder::open(&self.root, &below, Missing::Refused)
                .and_then(|folder| folder.remove(&name::request(request)));
            match removed {
                Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed.map_err(unusable),
            }
        })
    }

    fn notify<'a>(&'a self, notice: &'a Notice) -> Doing<'a, ()> {
        Box::pin(async move {
            let session = self.serve(&notice.session)?;
            self.put_notice(session, notice).map_err(unusable)
        })
    }

    fn next(&self) -> Doing<'_, Delivered> {
        Box::pin(async move {
            let session = self.served().await;
            self.wait(session).await.map_err(unusable)
        })
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn recorded<'a>(&'a self, delivered: &'a Delivered) -> Doing<'a, ()> {
        Box::pin(async move {
            let Some(session) = self.session.get() else {
                return Ok(());
            };
            let folder = self.folder(session).map_err(unusable)?;
            let done = lock(&self.inbox).recorded(&folder, delivered);
            done.map_err(unusable)
        })
    }
}

fn unusable(problem: impl ToString) -> ChannelError {
    ChannelError {
        channel: "drop directory",
        problem: problem.to_string(),
    }
}

fn shortened(notice: &Notice) -> Notice {
    let mut short = notice.clone();
    if short.what.len() > LONGEST_NOTICE {
        let whole = short.what.len();
        let boundary = (0..=LONGEST_NOTICE)
            .rev()
            .find(|at| short.what.is_char_boundary(*at));
        short.what.truncate(boundary.unwrap_or(0));
        let rest = whole - short.what.len();
        short.what.push_str(&format!("… (+{rest} bytes)"));
    }
    short
}
