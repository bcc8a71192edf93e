//! Taking apart what somebody sent.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, Hasher};
use lodestar_core::name::{Excerpt, ProjectId, SessionId};
use lodestar_log::{LogRoot, ProjectLog, SessionDir};

use super::Limits;
use super::fault::{BundleError, Fault};
use super::header::{CHECKPOINT, EVENTS, FORMAT, Header, MAX_HEADER, Name};

/// A bundle in a folder of its own, which goes away with this. Its form was checked, and nothing else.
#[derive(Debug)]
pub struct Unpacked {
    scratch: tempfile::TempDir,
    project: ProjectId,
    session: SessionId,
    pub(super) names: BTreeSet<Name>,
    bundle: Digest,
    bytes: u64,
}

impl Unpacked {
    /// The log of the one session that is there.
    pub fn log(&self) -> ProjectLog {
        LogRoot::at(self.scratch.path()).project(&self.project)
    }

    /// The session, as the bundle names it.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Its folder.
    pub fn dir(&self) -> SessionDir {
        self.log().session(&self.session)
    }

    /// SHA-256 of the whole bundle.
    pub fn bundle(&self) -> Digest {
        self.bundle
    }

    /// How long it was.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Takes a bundle apart, into a folder that is made below `below`. Nothing is written anywhere else, and nothing
/// before the bundle's head is known to keep within `limits`.
pub fn unpack(
    from: &mut dyn BufRead,
    below: &Path,
    limits: &Limits,
) -> Result<Unpacked, BundleError> {
    let mut from = Hashing {
        from,
        hasher: Hasher::new(),
        bytes: 0,
    };
    let line = from.line()?;
    let header = read(&line)?;
    let names = check(&header, line.len() as u64, limits)?;
    let scratch = tempfile::Builder::new()
        .prefix("bundle-")
        .tempdir_in(below)?;
    let log = LogRoot::at(scratch.path()).project(&header.project);
    let dir = log.session(&header.session);
    let folders = [dir.dir().to_owned(), dir.blobs_dir(), dir.recovered_dir()];
    for folder in folders {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
    }
    for (name, file) in names.iter().zip(&header.files) {
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut out = options.open(dir.dir().join(name.path()))?;
        let digest = from.copy(file.bytes, &file.name, &mut out)?;
        let is_named = match name {
            Name::Blob(name) => *name == digest,
            _ => true,
        };
        if digest != file.sha256 || !is_named {
            let name = file.name.clone();
            return Err(Fault::Digest { name }.into());
        }
    }
    if !from.is_over()? {
        return Err(Fault::Trailing.into());
    }
    Ok(Unpacked {
        bundle: from.hasher.finish(),
        bytes: from.bytes,
        project: header.project,
        session: header.session,
        names: names.into_iter().collect(),
        scratch,
    })
}

fn read(line: &[u8]) -> Result<Header, Fault> {
    let bad = |problem: String| Fault::Header { problem };
    let value = canonical::parse(line).map_err(|problem| bad(problem.to_string()))?;
    // Another version may look otherwise: that is said first.
    let format = value.get("format").and_then(|format| format.as_str());
    if let Some(found) = format.filter(|found| *found != FORMAT) {
        let found = Excerpt::of(found);
        return Err(Fault::Format { found });
    }
    let header: Header =
        serde_json::from_value(value).map_err(|problem| bad(problem.to_string()))?;
    match canonical::to_vec(&header).is_ok_and(|spelt| spelt == line) {
        true => Ok(header),
        false => Err(bad(
            "it is not spelt in the one way that there is".to_owned()
        )),
    }
}

/// The files, if there are no more than are taken, each of a session, once, and in their order.
fn check(header: &Header, line: u64, limits: &Limits) -> Result<Vec<Name>, Fault> {
    let files = &header.files;
    if files.len() > limits.files {
        let files = files.len();
        return Err(Fault::TooManyFiles { files });
    }
    let lengths = files.iter().map(|file| file.bytes);
    let bytes = lengths.fold(line + 1, u64::saturating_add);
    if bytes > limits.bytes {
        return Err(Fault::TooLarge { bytes });
    }
    let mut names = Vec::with_capacity(files.len());
    let mut last: Option<&str> = None;
    for file in files {
        let name = Name::parse(&file.name).ok_or_else(|| Fault::Name {
            name: Excerpt::of(&file.name),
        })?;
        if last.is_some_and(|last| last >= file.name.as_str()) {
            let name = file.name.clone();
            return Err(Fault::Order { name });
        }
        last = Some(&file.name);
        names.push(name);
    }
    for (needed, name) in [(Name::Events, EVENTS), (Name::Checkpoint, CHECKPOINT)] {
        if !names.contains(&needed) {
            return Err(Fault::Missing { name });
        }
    }
    Ok(names)
}

/// What is read, and the digest of it.
struct Hashing<'a> {
    from: &'a mut dyn BufRead,
    hasher: Hasher,
    bytes: u64,
}

impl Hashing<'_> {
    fn take(&mut self, piece: &[u8]) {
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
    }

    /// The first line, without its end.
    fn line(&mut self) -> Result<Vec<u8>, BundleError> {
        let mut line = Vec::new();
        let mut within = (&mut *self.from).take(MAX_HEADER + 1);
        within.read_until(b'\n', &mut line)?;
        self.take(&line);
        match line.pop() {
            Some(b'\n') => Ok(line),
            _ => Err(Fault::HeaderTooLong.into()),
        }
    }

    /// Copies the next file, and gives its digest.
    fn copy(&mut self, bytes: u64, name: &str, out: &mut dyn Write) -> Result<Digest, BundleError> {
        let mut hasher = Hasher::new();
        let mut left = bytes;
        while left > 0 {
            let piece = self.from.fill_buf()?;
            if piece.is_empty() {
                let name = name.to_owned();
                return Err(Fault::Truncated { name }.into());
            }
            let taken = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
            let piece = &piece[..taken];
            hasher.update(piece);
            self.hasher.update(piece);
            out.write_all(piece)?;
            self.from.consume(taken);
            self.bytes += taken as u64;
            left -= taken as u64;
        }
        out.flush()?;
        Ok(hasher.finish())
    }

    fn is_over(&mut self) -> io::Result<bool> {
        Ok(self.from.fill_buf()?.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_to_be_one() {
        let mut bytes: &[u8] = b"some bytes";
        let mut from = Hashing {
            from: &mut bytes,
            hasher: Hasher::new(),
            bytes: 0,
        };
        let mut full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let problem = from.copy(10, EVENTS, &mut full).unwrap_err();
        assert!(matches!(problem, BundleError::NoRoom(_)), "{problem}");
        assert!(problem.to_string().contains("no room"));
    }
}
