//! The approver's side: what is asked, checked so that what is shown is what would be signed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use lodestar_core::canonical::CanonicalError;
use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_core::statement::{Envelope, Nonce};
use rustix::fs::inotify::WatchFlags;
use thiserror::Error;

use super::folder::{Folder, Missing, Stamp};
use super::notified::{Happened, Notifications};
use super::{APPROVALS, DropDirectory, LODESTAR, name};
use crate::channel::{Announcement, Notice};

/// Largest announcement that is read: the most that a call's arguments may take, escaped.
const MAX_ANNOUNCED: usize = 64 << 20;
/// Most sessions that are looked at.
const MOST_SESSIONS: usize = 10_000;
const MAX_NOTICES: usize = 512 << 10;

/// An announcement whose card is what an answer to it signs for.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    announcement: Announcement,
    answers: usize,
}

impl Shown {
    /// Checks that all that is shown is what an answer signs for: the card and the act on it, who has to
    /// agree, until when, and in which session of which project.
    pub fn check(announcement: Announcement) -> Result<Self, Unusable> {
        let request = &announcement.request;
        if request.digest()? != request.card_digest {
            return Err(Unusable::OtherCard);
        }
        if announcement.project != request.project {
            return Err(Unusable::OtherProject);
        }
        if request.card.fingerprint()? != request.card.action.fingerprint {
            return Err(Unusable::OtherFingerprint);
        }
        Ok(Self {
            announcement,
            answers: 0,
        })
    }

    /// What was announced. Of who agreed and who is missing it says what the session's side wrote.
    pub fn announcement(&self) -> &Announcement {
        &self.announcement
    }

    /// How many answers lie there, and were not taken up yet.
    pub fn answers(&self) -> usize {
        self.answers
    }
}

/// Why an announcement is not shown: signing for it would be signing for something unseen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unusable {
    /// It is larger than any call.
    #[error("it takes more than {MAX_ANNOUNCED} bytes")]
    TooLarge,
    /// It cannot be read.
    #[error("it is no request: {0}")]
    Unreadable(String),
    /// It lies in another session's folder.
    #[error("it names another session than the folder it lies in")]
    OtherSession,
    /// It has another request's name.
    #[error("it names another request than its file does")]
    OtherRequest,
    /// It names two projects.
    #[error("it names another project than would be signed for")]
    OtherProject,
    /// Something that is shown is not what its digest is of.
    #[error("it shows something else than would be signed (`card_digest` differs)")]
    OtherCard,
    /// The card shows another act than its fingerprint is of.
    #[error("its card shows another act than would be signed (`fingerprint` differs)")]
    OtherFingerprint,
}

impl From<CanonicalError> for Unusable {
    fn from(error: CanonicalError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

struct Known {
    stamp: Stamp,
    found: Result<Shown, Unusable>,
}

/// Everything that is asked of people in a project.
pub struct Pile {
    root: PathBuf,
    known: BTreeMap<(RequestId, SessionId), Known>,
    notices: BTreeMap<SessionId, (Stamp, Vec<Notice>)>,
}

impl Pile {
    /// What lies in the drop directory of the project in this folder.
    pub fn below(root: impl Into<PathBuf>) -> io::Result<Self> {
        let mut pile = Self {
            root: root.into(),
            known: BTreeMap::new(),
            notices: BTreeMap::new(),
        };
        pile.refresh()?;
        Ok(pile)
    }

    /// Looks again; files that did not change are not read again.
    pub fn refresh(&mut self) -> io::Result<()> {
        let mut before = std::mem::take(&mut self.known);
        let mut notices_before = std::mem::take(&mut self.notices);
        let approvals = Folder::open(&self.root, &[LODESTAR, APPROVALS], Missing::Refused);
        let approvals = match approvals {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            approvals => approvals?,
        };
        for session in sessions(&approvals)? {
            // A link, a file, or a folder that went meanwhile.
            let Ok(folder) = approvals.enter(session.as_str(), Missing::Refused) else {
                continue;
            };
            self.look(&session, &folder, &mut before)?;
            self.look_at_notices(&session, &folder, &mut notices_before)?;
        }
        Ok(())
    }

    fn look(
        &mut self,
        session: &SessionId,
        folder: &Folder,
        before: &mut BTreeMap<(RequestId, SessionId), Known>,
    ) -> io::Result<()> {
        let names = folder.names()?;
        let mut answers: BTreeMap<RequestId, usize> = BTreeMap::new();
        for request in names.iter().filter_map(|n| name::answered(n)) {
            *answers.entry(request).or_default() += 1;
        }
        for request in names.iter().filter_map(|n| name::announced(n)) {
            let key = (request, session.clone());
            let file = name::request(request);
            let Some(stamp) = folder.stamp(&file)? else {
                continue;
            };
            let mut known = match before.remove(&key).filter(|known| known.stamp == stamp) {
                Some(known) => known,
                None => match read(folder, session, request)? {
                    Some(known) => known,
                    None => continue,
                },
            };
            if let Ok(shown) = &mut known.found {
                shown.answers = answers.get(&request).copied().unwrap_or(0);
            }
            self.known.insert(key, known);
        }
        Ok(())
    }

    fn look_at_notices(
        &mut self,
        session: &SessionId,
        folder: &Folder,
        before: &mut BTreeMap<SessionId, (Stamp, Vec<Notice>)>,
    ) -> io::Result<()> {
        let Some(stamp) = folder.stamp(name::NOTICES)? else {
            return Ok(());
        };
        let known = match before.remove(session).filter(|(at, _)| *at == stamp) {
            Some(known) => known,
            None => match folder.read(name::NOTICES, MAX_NOTICES)? {
                Some(content) => (content.stamp, notices(&content.bytes, session)),
                None => return Ok(()),
            },
        };
        self.notices.insert(session.clone(), known);
        Ok(())
    }

    /// What can be answered, oldest first.
    pub fn requests(&self) -> impl Iterator<Item = &Shown> {
        self.known.values().filter_map(|k| k.found.as_ref().ok())
    }

    /// What is not shown, and why.
    pub fn unusable(&self) -> impl Iterator<Item = (RequestId, &SessionId, &Unusable)> {
        let known = self.known.iter();
        known.filter_map(|((id, session), known)| Some((*id, session, known.found.as_ref().err()?)))
    }

    /// What ran without being held, oldest first.
    pub fn notices(&self) -> Vec<&Notice> {
        let all = self.notices.values().flat_map(|(_, notices)| notices);
        let mut all: Vec<&Notice> = all.collect();
        all.sort_by_key(|notice| notice.at);
        all
    }

    /// Puts an answer where the session that waits finds it.
    pub fn answer(&self, to: &Shown, answer: &Envelope, nonce: Nonce) -> io::Result<()> {
        let request = &to.announcement.request;
        let below = [LODESTAR, APPROVALS, request.session.as_str()];
        let folder = Folder::open(&self.root, &below, Missing::Refused)?;
        folder.write(&name::answer(request.id, nonce), &answer.to_json())
    }
}

fn sessions(approvals: &Folder) -> io::Result<Vec<SessionId>> {
    let names = approvals.names()?.into_iter();
    let sessions = names.filter_map(|name| SessionId::new(&name).ok());
    let mut sessions: Vec<SessionId> = sessions.take(MOST_SESSIONS).collect();
    sessions.sort();
    Ok(sessions)
}

fn read(folder: &Folder, session: &SessionId, request: RequestId) -> io::Result<Option<Known>> {
    let Some(content) = folder.read(&name::request(request), MAX_ANNOUNCED + 1)? else {
        return Ok(None);
    };
    Ok(Some(Known {
        stamp: content.stamp,
        found: understand(&content.bytes, session, request),
    }))
}

fn understand(bytes: &[u8], session: &SessionId, request: RequestId) -> Result<Shown, Unusable> {
    if bytes.len() > MAX_ANNOUNCED {
        return Err(Unusable::TooLarge);
    }
    let announcement: Announcement =
        serde_json::from_slice(bytes).map_err(|e| Unusable::Unreadable(e.to_string()))?;
    if announcement.request.session != *session {
        return Err(Unusable::OtherSession);
    }
    if announcement.request.id != request {
        return Err(Unusable::OtherRequest);
    }
    Shown::check(announcement)
}

fn notices(bytes: &[u8], session: &SessionId) -> Vec<Notice> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let notices = lines.filter_map(|line| serde_json::from_slice::<Notice>(line).ok());
    notices
        .filter(|notice| notice.session == *session)
        .collect()
}

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
