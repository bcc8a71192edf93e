//! Where confirmations are dropped, and where it stands which were spent.
//!
//! The drop folder is a channel like any other: whatever lies there is bytes, and counts only for what
//! [`lodestar_policy::confirmation::settle`] makes of it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use lodestar_core::fingerprint::Fingerprint;
use lodestar_core::name::SessionId;
use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::{ConsumeLedger, MemoryLedger};
use lodestar_core::time::Timestamp;
use lodestar_firewall::store::{PostgresLedger, SqliteLedger};
use lodestar_policy::confirmation::{Evidence, MAX_EVIDENCE_LEN};
use rustix::fs::FileType;
use rustix::fs::inotify::WatchFlags;
use serde_json::Value;

use crate::channel::drop::folder::{Folder, MOST_NAMES, Missing};
use crate::channel::drop::notified::{Happened, Notifications};
use crate::config::{Backend, Config};
use crate::session::{OpenError, shared_state, state_file};

/// Most that are given for one act at once, and what they may take: who can write here could write very
/// many.
const MOST: usize = 64;
const MOST_BYTES: usize = 4 << 20;
/// Most files that are read to find out which expired, and what they may take.
const MOST_EXPIRED: usize = 4096;
const MOST_EXPIRED_BYTES: usize = 16 << 20;

/// How long an expired confirmation stays, so that a session which holds its act meanwhile can say that
/// it came too late.
const KEPT_MICROS: i64 = 3_600_000_000;

/// Beside the approvals and not among them, where every name is a session's.
const BELOW: [&str; 2] = [".lodestar", "confirmations"];
const ENDING: &str = ".json";

/// Where confirmations of a project are dropped.
#[derive(Debug, Clone)]
pub struct DropFolder {
    root: PathBuf,
}

/// Something that was dropped. Nobody has looked whether it says what it seems to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The file.
    pub path: PathBuf,
    /// What is in it, at most one byte longer than evidence may be.
    pub bytes: Vec<u8>,
    /// The session that it says it is for; none where it says none that can be read. What is for another
    /// session is that one's to put away.
    pub session: Option<SessionId>,
}

/// What was found of what was dropped for an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What looks like evidence comes first.
    pub found: Vec<Dropped>,
    /// Whether that is all of it. Where it is not, look again once these are dealt with.
    pub is_all: bool,
}

impl Dropped {
    fn read(path: PathBuf, bytes: Vec<u8>) -> Self {
        let session = claims(&bytes).and_then(|said| {
            let session = said.get("subject")?.get("session")?.as_str()?;
            SessionId::new(session).ok()
        });
        Self {
            path,
            bytes,
            session,
        }
    }
}

/// What evidence claims, unverified; none where it is no evidence.
fn claims(bytes: &[u8]) -> Option<Value> {
    let evidence = Evidence::read(bytes).ok()?;
    serde_json::from_slice(evidence.details().unverified_payload()).ok()
}

/// The name of a dropped confirmation. What it is found by is the act with its paths in normal form, as
/// [`found_by`](lodestar_policy::confirmation::found_by) gives it.
pub fn file_name(found_by: Fingerprint, id: ConfirmationId) -> String {
    format!("{found_by}.{id}{ENDING}")
}

impl DropFolder {
    /// That of the project of a configuration.
    pub fn of(config: &Config) -> Self {
        Self {
            root: config.root().to_owned(),
        }
    }

    /// Where it is: the folder to watch for new ones.
    pub fn path(&self) -> PathBuf {
        self.root.join(BELOW[0]).join(BELOW[1])
    }

    /// The folder, if it is there.
    fn there(&self) -> io::Result<Option<Folder>> {
        match Folder::open(&self.root, &BELOW, Missing::Refused) {
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            folder => folder.map(Some),
        }
    }

    fn made(&self) -> io::Result<Folder> {
        let folder = Folder::open(&self.root, &BELOW, Missing::Made)?;
        folder.keep_private()?;
        Ok(folder)
    }

    /// Drops a confirmation, whole, and tells where it lies.
    pub fn put(
        &self,
        found_by: Fingerprint,
        id: ConfirmationId,
        evidence: &Evidence,
    ) -> io::Result<PathBuf> {
        let (folder, name) = (self.made()?, file_name(found_by, id));
        folder.write(&name, &evidence.details().to_json())?;
        Ok(folder.path().join(name))
    }

    /// The plain files in it with such names, in order, and whether these are all.
    fn files(
        folder: &Folder,
        is_looked_for: impl Fn(&str) -> bool,
    ) -> io::Result<(impl Iterator<Item = String>, bool)> {
        let listed = folder.list((0, MOST_NAMES), |name, kind| {
            matches!(kind, FileType::RegularFile | FileType::Unknown) && is_looked_for(name)
        })?;
        let mut names = listed.names;
        names.sort();
        // Without opening them: what has a second name elsewhere is none either.
        let is_plain = |name: &String| matches!(folder.stamp(name), Ok(Some(_)));
        Ok((names.into_iter().filter(is_plain), listed.is_all))
    }

    /// What was dropped for an act, but for some; a part of it where that is much. What is no plain file,
    /// or cannot be read, is passed over.
    pub fn dropped(&self, found_by: Fingerprint, but_for: &BTreeSet<PathBuf>) -> io::Result<Found> {
        let mut found = Found {
            found: Vec::new(),
            is_all: true,
        };
        let Some(folder) = self.there()? else {
            return Ok(found);
        };
        let beginning = format!("{found_by}.");
        let is_meant = |name: &str| {
            name.starts_with(&beginning)
                && name.ends_with(ENDING)
                && !but_for.contains(&folder.path().join(name))
        };
        let (names, is_all) = Self::files(&folder, is_meant)?;
        found.is_all = is_all;
        let mut taken = 0;
        for name in names {
            if found.found.len() == MOST || taken >= MOST_BYTES {
                found.is_all = false;
                break;
            }
            let Ok(Some(content)) = folder.read(&name, MAX_EVIDENCE_LEN + 1) else {
                continue;
            };
            taken += content.bytes.len();
            let one = Dropped::read(folder.path().join(name), content.bytes);
            found.found.push(one);
        }
        let looks_like_evidence = |one: &Dropped| one.session.is_some();
        found
            .found
            .sort_by_key(|one| Reverse(looks_like_evidence(one)));
        Ok(found)
    }

    /// Removes what was dropped, by its name in this folder; what is not there any more is as good as
    /// removed. No link is followed, and nothing that lies elsewhere is touched.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let name = match (path.parent(), path.file_name().and_then(OsStr::to_str)) {
            (Some(parent), Some(name)) if parent == self.path() => name,
            _ => {
                let problem = format!("`{}` lies elsewhere", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
        };
        match self.there()? {
            Some(folder) => folder.remove(name),
            None => Ok(()),
        }
    }

    /// Removes what expired a while ago and nobody took, and tells how many that were. A copy is as
    /// expired as the one it was made of, so nobody has to have signed it.
    pub fn remove_expired(&self, now: Timestamp) -> io::Result<usize> {
        let Some(folder) = self.there()? else {
            return Ok(0);
        };
        let is_over = |bytes: &[u8]| {
            let said = claims(bytes);
            let until = said.and_then(|said| said.get("expires_at")?.as_str()?.parse().ok());
            until.is_some_and(|until: Timestamp| {
                until.unix_micros().saturating_add(KEPT_MICROS) < now.unix_micros()
            })
        };
        let (names, _) = Self::files(&folder, |name| name.ends_with(ENDING))?;
        let (mut removed, mut taken) = (0, 0);
        for name in names.take(MOST_EXPIRED) {
            if taken >= MOST_EXPIRED_BYTES {
                break;
            }
            let Ok(Some(content)) = folder.read(&name, MAX_EVIDENCE_LEN + 1) else {
                continue;
            };
            taken += content.bytes.len();
            if is_over(&content.bytes) {
                folder.remove(&name)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Starts to listen for new ones. Look at what is there afterwards: what comes from here on is told.
    pub fn arrivals(&self) -> io::Result<Arrivals> {
        let mut arrivals = Arrivals {
            folder: self.clone(),
            ears: None,
        };
        arrivals.ears = Some(arrivals.listen()?);
        Ok(arrivals)
    }
}

/// Hears from the system when a confirmation comes.
pub struct Arrivals {
    folder: DropFolder,
    ears: Option<Notifications>,
}

impl Arrivals {
    fn listen(&self) -> io::Result<Notifications> {
        let folder = self.folder.made()?;
        let ears = Notifications::new()?;
        let whole = WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE;
        ears.watch(folder.path(), whole)?;
        // A folder above that goes takes this one along, and tells only its own watch.
        ears.watch(&self.folder.root.join(BELOW[0]), WatchFlags::empty())?;
        Ok(ears)
    }

    /// Waits until something came, or may have come: look then. Dropping the future loses nothing that a
    /// look would not see. After an error, wait a little before the next.
    pub async fn next(&mut self) -> io::Result<()> {
        let Some(ears) = &self.ears else {
            // What came while nobody listened has to be looked at.
            self.ears = Some(self.listen()?);
            return Ok(());
        };
        let happened = ears.wait().await;
        let is_over = |happened: &Vec<Happened>| {
            let over = |one: &Happened| !matches!(one, Happened::File(..));
            happened.iter().any(over)
        };
        if happened.as_ref().map_or(true, is_over) {
            self.ears = None;
        }
        happened.map(|_| ())
    }
}

/// The ledger of spent confirmations: where the beliefs are kept.
pub fn ledger(config: &Config) -> Result<Box<dyn ConsumeLedger>, OpenError> {
    Ok(match config.persistence.backend {
        Backend::Memory => Box::new(MemoryLedger::default()),
        Backend::Sqlite => Box::new(SqliteLedger::open(&state_file(config)?)?),
        Backend::Postgres => Box::new(PostgresLedger::connect(&shared_state(config)?, None)?),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use lodestar_core::digest::sha256;
    use rustix::fs::{CWD, Mode, mknodat};

    use super::*;

    fn fingerprint(of: &[u8]) -> Fingerprint {
        sha256(of).to_string().parse().expect("a fingerprint")
    }

    fn project() -> (tempfile::TempDir, DropFolder) {
        let root = tempfile::tempdir().expect("a folder");
        let text = "project_id = \"web\"\nactor_id = \"agent\"\n";
        let config = Config::parse(text, root.path()).expect("a configuration");
        (root, DropFolder::of(&config))
    }

    fn named(folder: &DropFolder, act: Fingerprint, n: u8) -> PathBuf {
        let name = file_name(act, ConfirmationId::from_bytes([n; 16]));
        folder.path().join(name)
    }

    fn dropped(folder: &DropFolder, act: Fingerprint) -> io::Result<Vec<Dropped>> {
        let found = folder.dropped(act, &BTreeSet::new())?;
        Ok(found.found)
    }

    #[test]
    fn only_plain_files_of_this_act_are_found_and_none_is_read_without_end() {
        let (_root, folder) = project();
        let act = fingerprint(b"act");
        assert_eq!(dropped(&folder, act).expect("no folder yet"), []);

        fs::create_dir_all(folder.path()).expect("created");
        let named = |n: u8| named(&folder, act, n);
        fs::write(named(1), b"one").expect("written");
        fs::write(named(2), vec![b'x'; 4 * MAX_EVIDENCE_LEN]).expect("written");
        symlink("/etc/passwd", named(3)).expect("linked");
        let fifo = (FileType::Fifo, Mode::from_raw_mode(0o600));
        mknodat(CWD, named(4), fifo.0, fifo.1, 0).expect("a pipe");
        fs::create_dir(named(5)).expect("created");
        let other = file_name(fingerprint(b"other"), ConfirmationId::from_bytes([6; 16]));
        fs::write(folder.path().join(other), b"other").expect("written");
        fs::write(folder.path().join(format!("{act}.tmp")), b"half").expect("written");
        // A second name of something that lies elsewhere.
        fs::hard_link(named(1), folder.path().join("elsewhere")).expect("linked");
        fs::write(named(7), b"two").expect("written");

        let found = dropped(&folder, act).expect("readable");
        let lengths: Vec<_> = found
            .iter()
            .map(|one| (&one.path, one.bytes.len()))
            .collect();
        let (two, seven) = (named(2), named(7));
        assert_eq!(lengths, [(&two, MAX_EVIDENCE_LEN + 1), (&seven, 3)]);
    }

    #[test]
    fn very_many_files_are_not_all_given_and_those_that_cannot_be_read_hide_no_other() {
        let (_root, folder) = project();
        let act = fingerprint(b"act");
        fs::create_dir_all(folder.path()).expect("created");
        for n in 0..MOST as u8 {
            symlink("/dev/zero", named(&folder, act, n)).expect("linked");
        }
        fs::write(named(&folder, act, 0xff), b"x").expect("written");
        assert_eq!(dropped(&folder, act).expect("readable").len(), 1);
        for n in 0..MOST as u8 {
            fs::remove_file(named(&folder, act, n)).expect("removed");
            fs::write(named(&folder, act, n), b"x").expect("written");
        }
        assert_eq!(dropped(&folder, act).expect("readable").len(), MOST);
    }

    #[test]
    fn links_are_not_counted_and_what_is_left_out_is_told() {
        let (_root, folder) = project();
        let act = fingerprint(b"act");
        fs::create_dir_all(folder.path()).expect("created");
        let name = |n: u16| {
            let mut id = [0; 16];
            id[..2].copy_from_slice(&n.to_be_bytes());
            folder
                .path()
                .join(file_name(act, ConfirmationId::from_bytes(id)))
        };
        for n in 0..4_100 {
            symlink("/dev/zero", name(n)).expect("linked");
        }
        fs::write(name(u16::MAX), b"genuine").expect("written");
        let look = || folder.dropped(act, &BTreeSet::new()).expect("readable");
        let found = look();
        assert!(found.is_all);
        assert_eq!(found.found.len(), 1);
        assert_eq!(found.found[0].bytes, b"genuine");

        for n in 5_000..5_200 {
            fs::write(name(n), vec![b'x'; 2 * MAX_EVIDENCE_LEN]).expect("written");
        }
        let mut looks = 0;
        let mut seen = 0;
        let last = loop {
            let found = look();
            looks += 1;
            seen += found.found.len();
            assert!(found.found.len() <= MOST);
            let taken: usize = found.found.iter().map(|one| one.bytes.len()).sum();
            assert!(taken <= MOST_BYTES + MAX_EVIDENCE_LEN);
            if found.is_all {
                break found;
            }
            for one in found.found {
                folder.remove(&one.path).expect("removed");
            }
        };
        assert_eq!((looks, seen), (4, 201));
        let genuine = last.found.iter().any(|one| one.bytes == b"genuine");
        assert!(genuine, "it comes once what lay before it is dealt with");
    }

    #[test]
    fn only_what_lies_in_the_folder_is_removed_and_no_link_is_followed() {
        let (root, folder) = project();
        let act = fingerprint(b"act");
        let file = named(&folder, act, 1);
        folder.remove(&file).expect("there is no folder yet");
        fs::create_dir_all(folder.path()).expect("created");
        folder.remove(&file).expect("it is not there");
        let elsewhere = root.path().join("elsewhere");
        fs::write(&elsewhere, b"mine").expect("written");
        for path in [elsewhere.clone(), folder.path(), folder.path().join("..")] {
            let refused = folder.remove(&path).expect_err("it lies elsewhere");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
        symlink(&elsewhere, &file).expect("linked");
        folder.remove(&file).expect("removed");
        assert!(file.symlink_metadata().is_err() && elsewhere.exists());

        // The whole folder may be a link by now.
        fs::remove_dir_all(folder.path()).expect("removed");
        let other = root.path().join("other");
        fs::create_dir(&other).expect("created");
        symlink(&other, folder.path()).expect("linked");
        let kept = other.join(file.file_name().expect("a name"));
        fs::write(&kept, b"mine").expect("written");
        folder.remove(&file).expect_err("a link");
        assert!(kept.exists());
    }

    #[tokio::test]
    async fn arrivals_are_heard_also_after_the_folder_went() {
        const SOON: Duration = Duration::from_secs(5);
        let (root, folder) = project();
        fs::create_dir(root.path().join(".lodestar")).expect("created");
        let act = fingerprint(b"act");
        let mut arrivals = folder.arrivals().expect("listening");
        fs::write(named(&folder, act, 1), b"x").expect("written");
        let told = tokio::time::timeout(SOON, arrivals.next()).await;
        told.expect("at once").expect("told");
        fs::remove_dir_all(folder.path()).expect("removed");
        for _ in 0..2 {
            let told = tokio::time::timeout(SOON, arrivals.next()).await;
            told.expect("at once").expect("told");
        }
        fs::write(named(&folder, act, 2), b"x").expect("there again");
        let told = tokio::time::timeout(SOON, arrivals.next()).await;
        told.expect("at once").expect("told");
    }
}
