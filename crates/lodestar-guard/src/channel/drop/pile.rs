//! The approver's side: what is asked, checked so that what is shown is what would be signed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lodestar_core::canonical::CanonicalError;
use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_core::statement::{Envelope, Nonce};
use lodestar_core::time::Timestamp;
use lodestar_log::Clock;
use thiserror::Error;

use super::folder::{Folder, MOST_NAMES, Missing, Stamp};
use super::turns::{MOST_SESSIONS, Turns};
use super::{APPROVALS, LODESTAR, name};
use crate::channel::{Announcement, Notice};

/// Largest announcement that is read: the most that a call's arguments may take, escaped.
const MAX_ANNOUNCED: u64 = 64 << 20;
/// What all that is shown may take together. Real requests are small; a few of the largest fit.
const ROOM: u64 = 128 << 20;
/// What the files may take that are read in one look.
const MOST_BYTES: u64 = 128 << 20;
/// Most files that are read in one look: about a second's work.
const MOST_READ: usize = 10_000;
/// How long the first look goes on where there are more.
const FIRST_LOOK: Duration = Duration::from_secs(3);
const MAX_NOTICES: u64 = 512 << 10;
/// What the notices of all sessions may take together.
const ROOM_FOR_NOTICES: u64 = 16 << 20;

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
    /// Too much lies there to look at all of it.
    #[error("so much lies there that it was not looked at; remove what is not needed")]
    Later,
    /// It is there, and the system does not give it out.
    #[error("it cannot be read at the moment: {0}")]
    NotNow(String),
    /// What it says is no request.
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
    /// The file that was read; none where that has to be tried again.
    stamp: Option<Stamp>,
    found: Result<Shown, Unusable>,
    /// What it takes up where it is shown, in bytes, whatever its file is filled up with.
    weight: u64,
    answers: usize,
}

impl Known {
    /// What it takes up now.
    fn held(&self) -> u64 {
        if self.found.is_ok() { self.weight } else { 0 }
    }

    /// The file of one that was understood and had to make room.
    fn shed(&self) -> Option<Stamp> {
        self.stamp.filter(|_| self.found == Err(Unusable::Later))
    }
}

type Requests = BTreeMap<(RequestId, SessionId), Known>;
type Notices = BTreeMap<SessionId, (Stamp, Vec<Notice>)>;

/// A file that has to be read.
struct Unread {
    key: (RequestId, SessionId),
    stamp: Stamp,
    answers: usize,
    /// How many smaller ones there are in its folder: a folder that somebody filled does not keep
    /// those of others waiting.
    rank: usize,
}

/// Everything that is asked of people in a project.
pub struct Pile {
    root: PathBuf,
    known: Requests,
    notices: Notices,
    troubles: Vec<String>,
    unread: usize,
    turns: Turns,
}

impl Pile {
    /// What lies in the drop directory of the project in this folder.
    pub fn below(root: impl Into<PathBuf>) -> io::Result<Self> {
        let mut pile = Self::unseen(root);
        let started = Instant::now();
        pile.refresh()?;
        let is_midway = |pile: &Self| pile.unread > 0 || pile.turns.is_midway();
        while is_midway(&pile) && started.elapsed() < FIRST_LOOK {
            pile.refresh()?;
        }
        Ok(pile)
    }

    /// The same before anybody has looked: nothing is known of it until [`refresh`](Self::refresh).
    pub fn unseen(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            known: BTreeMap::new(),
            notices: BTreeMap::new(),
            troubles: Vec::new(),
            unread: 0,
            turns: Turns::default(),
        }
    }

    /// Looks again; files that did not change are not read again. One that cannot be read keeps nobody
    /// from the others, and is told. Where too many folders lie there, they have their turn one look after
    /// another.
    pub fn refresh(&mut self) -> io::Result<()> {
        let approvals = Folder::open(&self.root, &[LODESTAR, APPROVALS], Missing::Refused);
        let approvals = match approvals {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                *self = Self::unseen(std::mem::take(&mut self.root));
                return Ok(());
            }
            approvals => approvals?,
        };
        let held = self.known.keys().map(|(_, session)| session);
        let held: BTreeSet<SessionId> = held.chain(self.notices.keys()).cloned().collect();
        let turn = self.turns.next(&approvals, held)?;
        let known = std::mem::take(&mut self.known).into_iter();
        let is_put_off = |session: &SessionId| turn.put_off.contains(session);
        let mut before;
        (self.known, before) = known.partition(|((_, session), _)| is_put_off(session));
        let notices = std::mem::take(&mut self.notices).into_iter();
        let mut notices_before;
        (self.notices, notices_before) = notices.partition(|(session, _)| is_put_off(session));
        self.troubles.clear();
        if !turn.is_all {
            self.troubles.push(format!(
                "more than {MOST_SESSIONS} folders lie in `{}`: they are looked at in turn, and what is asked may be shown late; remove those that are not needed",
                approvals.path().display()
            ));
        }
        let mut unread = Vec::new();
        let mut closed_off = BTreeMap::new();
        let held = self.notices.values().map(|(stamp, _)| stamp.size()).sum();
        let mut room_for_notices = ROOM_FOR_NOTICES.saturating_sub(held);
        for session in &turn.sessions {
            let folder = match approvals.enter(session.as_str(), Missing::Refused) {
                Ok(folder) => folder,
                // A link, a file, or a folder that went meanwhile.
                Err(e) if is_no_folder(&e) => continue,
                Err(problem) => {
                    self.troubles.push(problem.to_string());
                    closed_off.insert(session, problem);
                    continue;
                }
            };
            let notices =
                self.look_at_notices(session, &folder, &mut notices_before, &mut room_for_notices);
            if let Err(problem) = notices {
                self.troubles.push(problem.to_string());
            }
            match self.look(session, &folder, &mut before) {
                Ok(found) => unread.extend(found),
                Err(problem) => {
                    self.troubles.push(problem.to_string());
                    closed_off.insert(session, problem);
                }
            }
        }
        // Nobody knows whether these are gone.
        for (key, _) in before {
            if let Some(problem) = closed_off.get(&key.1) {
                self.known.insert(key, Known::not_now(problem));
            }
        }
        self.take_back(&mut unread);
        self.read_all(&approvals, unread);
        self.make_room();
        Ok(())
    }

    /// Takes over what did not change; gives what has to be read.
    fn look(
        &mut self,
        session: &SessionId,
        folder: &Folder,
        before: &mut Requests,
    ) -> io::Result<Vec<Unread>> {
        let (requests, answers) = self.names(session, folder, before)?;
        let mut unread = Vec::new();
        for request in requests {
            let key = (request, session.clone());
            let answers = answers.get(&request).copied().unwrap_or(0);
            let stamp = match folder.stamp(&name::request(request)) {
                Ok(Some(stamp)) => stamp,
                Ok(None) => continue,
                Err(problem) => {
                    self.known.insert(key, Known::not_now(&problem));
                    continue;
                }
            };
            match before
                .remove(&key)
                .filter(|known| known.stamp == Some(stamp))
            {
                Some(known) => {
                    self.known.insert(key, known.with_answers(answers));
                }
                None => unread.push(Unread {
                    key,
                    stamp,
                    answers,
                    rank: 0,
                }),
            }
        }
        unread.sort_by_key(|file| (file.stamp.size(), file.key.0));
        for (rank, file) in unread.iter_mut().enumerate() {
            file.rank = rank;
        }
        Ok(unread)
    }

    /// The requests that lie in a folder, and how many answers to which.
    fn names(
        &mut self,
        session: &SessionId,
        folder: &Folder,
        before: &Requests,
    ) -> io::Result<(BTreeSet<RequestId>, BTreeMap<RequestId, usize>)> {
        let is_either = |n: &str| name::announced(n).is_some() || name::answered(n).is_some();
        let mut listed = folder.list((0, MOST_NAMES), |n, _| is_either(n))?;
        let mut answers: BTreeMap<RequestId, usize> = BTreeMap::new();
        for request in listed.names.iter().filter_map(|n| name::answered(n)) {
            *answers.entry(request).or_default() += 1;
        }
        let mut requests = BTreeSet::new();
        if !listed.is_all {
            self.troubles.push(format!(
                "more than {MOST_NAMES} files lie in `{}`, and not all are looked at; remove those that are not needed",
                folder.path().display()
            ));
            // Answers hide no request, and new ones none that is known.
            listed = folder.list((0, MOST_NAMES), |n, _| name::announced(n).is_some())?;
            let known = before.keys().filter(|(_, of)| of == session);
            requests.extend(known.map(|(request, _)| *request));
        }
        requests.extend(listed.names.iter().filter_map(|n| name::announced(n)));
        Ok((requests, answers))
    }

    /// What had to make room is read again where there is room for it now.
    fn take_back(&mut self, unread: &mut Vec<Unread>) {
        let held: u64 = self.known.values().map(Known::held).sum();
        let mut room = ROOM.saturating_sub(held);
        let known = self.known.iter();
        let mut shed: Vec<(u64, Unread)> = known
            .filter_map(|(key, known)| {
                let file = Unread {
                    key: key.clone(),
                    stamp: known.shed()?,
                    answers: known.answers,
                    rank: 0,
                };
                Some((known.weight, file))
            })
            .collect();
        shed.sort_by_key(|(weight, _)| *weight);
        for (weight, file) in shed {
            match room.checked_sub(weight) {
                Some(left) => room = left,
                None => break,
            }
            unread.push(file);
        }
    }

    /// What takes most room goes first where all of it does not fit.
    fn make_room(&mut self) {
        let mut held: u64 = self.known.values().map(Known::held).sum();
        if held <= ROOM {
            return;
        }
        let mut shown: Vec<&mut Known> = self.known.values_mut().collect();
        shown.sort_by_key(|known| Reverse(known.held()));
        for known in shown {
            if held <= ROOM {
                break;
            }
            held -= known.held();
            known.found = Err(Unusable::Later);
        }
    }

    /// Reads small ones first, and no more at once than there is time for.
    fn read_all(&mut self, approvals: &Folder, mut unread: Vec<Unread>) {
        let mut left = MOST_BYTES;
        unread.sort_by_key(|file| (file.rank, file.stamp.size()));
        self.unread = unread.len().saturating_sub(MOST_READ);
        for (n, file) in unread.into_iter().enumerate() {
            let size = file.stamp.size();
            let known = if size > MAX_ANNOUNCED {
                Known::unusable(file.stamp, Unusable::TooLarge)
            } else if n >= MOST_READ || size > left {
                Known::later()
            } else {
                left -= size;
                match read(approvals, &file.key) {
                    Ok(Some(known)) => known.with_answers(file.answers),
                    Ok(None) => continue,
                    Err(problem) => Known::not_now(&problem),
                }
            };
            self.known.insert(file.key, known);
        }
    }

    fn look_at_notices(
        &mut self,
        session: &SessionId,
        folder: &Folder,
        before: &mut Notices,
        room: &mut u64,
    ) -> io::Result<()> {
        let Some(stamp) = folder.stamp(name::NOTICES)? else {
            return Ok(());
        };
        let Some(left) = room.checked_sub(stamp.size()) else {
            let problem = format!(
                "what sessions say of what ran takes more than {ROOM_FOR_NOTICES} bytes, and not all is shown; remove what is not needed"
            );
            if !self.troubles.contains(&problem) {
                self.troubles.push(problem);
            }
            return Ok(());
        };
        if stamp.size() > MAX_NOTICES {
            return Err(io::Error::other(format!(
                "the notices of session `{session}` take {} bytes, more than any session writes",
                stamp.size()
            )));
        }
        *room = left;
        let known = match before.remove(session).filter(|(at, _)| *at == stamp) {
            Some(known) => known,
            None => match folder.read(name::NOTICES, MAX_NOTICES as usize)? {
                Some(content) => (content.stamp, notices(&content.bytes, session)),
                None => return Ok(()),
            },
        };
        self.notices.insert(session.clone(), known);
        Ok(())
    }

    /// What went wrong with folders when they were looked at, in words.
    pub fn troubles(&self) -> &[String] {
        &self.troubles
    }

    /// Whether looking again could find more, though nothing changed.
    pub fn is_behind(&self) -> bool {
        let is_open = |known: &Known| known.stamp.is_none();
        self.unread > 0 || !self.troubles.is_empty() || self.known.values().any(is_open)
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

    /// What ran without being held, oldest first. Those of a session stand as it wrote them, whatever
    /// times they say; a time that is yet to come says nothing.
    pub fn notices(&self) -> Vec<&Notice> {
        let now = Clock::system().now();
        let mut all: Vec<(Timestamp, &Notice)> = Vec::new();
        for (_, notices) in self.notices.values() {
            let mut latest = Timestamp::MIN;
            for notice in notices {
                if notice.at <= now {
                    latest = latest.max(notice.at);
                }
                all.push((latest, notice));
            }
        }
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, notice)| notice).collect()
    }

    /// Puts an answer where the session that waits finds it.
    pub fn answer(&self, to: &Shown, answer: &Envelope, nonce: Nonce) -> io::Result<()> {
        let request = &to.announcement.request;
        let below = [LODESTAR, APPROVALS, request.session.as_str()];
        let folder = Folder::open(&self.root, &below, Missing::Refused)?;
        folder.write(&name::answer(request.id, nonce), &answer.to_json())
    }
}

impl Known {
    fn unusable(stamp: Stamp, why: Unusable) -> Self {
        Self {
            stamp: Some(stamp),
            found: Err(why),
            weight: 0,
            answers: 0,
        }
    }

    fn later() -> Self {
        Self {
            stamp: None,
            found: Err(Unusable::Later),
            weight: 0,
            answers: 0,
        }
    }

    fn not_now(problem: &io::Error) -> Self {
        Self {
            stamp: None,
            found: Err(Unusable::NotNow(problem.to_string())),
            weight: 0,
            answers: 0,
        }
    }

    fn with_answers(mut self, answers: usize) -> Self {
        self.answers = answers;
        if let Ok(shown) = &mut self.found {
            shown.answers = answers;
        }
        self
    }
}

fn is_no_folder(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotADirectory | NotFound)
}

fn read(approvals: &Folder, key: &(RequestId, SessionId)) -> io::Result<Option<Known>> {
    let (request, session) = key;
    let folder = approvals.enter(session.as_str(), Missing::Refused)?;
    let content = folder.read(&name::request(*request), MAX_ANNOUNCED as usize + 1)?;
    Ok(content.map(|content| {
        let found = understand(&content.bytes, session, *request);
        let weight = found
            .as_ref()
            .map_or(0, |shown| weight(&shown.announcement));
        Known {
            stamp: Some(content.stamp),
            found,
            weight,
            answers: 0,
        }
    }))
}

/// What an announcement takes, written as short as it can be.
fn weight(announcement: &Announcement) -> u64 {
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, announcement) {
        Ok(()) => count.0,
        // INVARIANT: it was read from JSON; if it were not, it would count as one of the largest.
        Err(_) => MAX_ANNOUNCED,
    }
}

fn understand(bytes: &[u8], session: &SessionId, request: RequestId) -> Result<Shown, Unusable> {
    if bytes.len() as u64 > MAX_ANNOUNCED {
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
