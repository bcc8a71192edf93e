//! The files of a pack: read once, and everything else is made of those bytes.
//!
//! A pack is `pack.toml`, perhaps `README.md` and `LICENSE`, `scenarios/*.toml`, and `pack.sig`. Anything
//! else that lies in its folder, a link or a device among them, and the pack is refused: what is not part of
//! it cannot be signed, and what is not signed does not run.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use lodestar_core::digest::sha256;
use lodestar_core::name::Excerpt;
use lodestar_core::statement::PackedFile;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};

use super::problem::Problem;

/// What a pack says of itself.
pub(super) const ABOUT: &str = "pack.toml";
/// Who signed it.
pub const SIGNATURE: &str = "pack.sig";
/// Where its scenarios lie.
pub(super) const SCENARIOS: &str = "scenarios";
const PROSE: [&str; 2] = ["README.md", "LICENSE"];

/// Longest file: a scenario is a page or two.
const MAX_FILE: u64 = 256 << 10;
/// Most files in one folder, looked at before anything is read.
const MAX_FILES: usize = 64;

/// The bytes of a pack.
#[derive(Debug, Clone, Default)]
pub struct PackFiles {
    /// By name below the folder, the signature aside.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// The signature, where there is one.
    pub(super) signature: Option<Vec<u8>>,
}

impl PackFiles {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self, Problem> {
        let mut found = Self::default();
        let io = |problem: rustix::io::Errno| Problem::of_file("", problem.to_string());
        let pack = openat(CWD, folder, FOLDER, Mode::empty()).map_err(io)?;
        for (name, kind) in entries(&pack, "")? {
            match (name.as_str(), kind) {
                (SCENARIOS, FileType::Directory) => found.scenarios(&pack)?,
                (SIGNATURE, FileType::RegularFile) => {
                    found.signature = Some(content(&pack, &name, &name)?);
                }
                (ABOUT, FileType::RegularFile) => found.add(&pack, &name, name.clone())?,
                (prose, FileType::RegularFile) if PROSE.contains(&prose) => {
                    found.add(&pack, &name, name.clone())?;
                }
                (name, _) => return Err(foreign(name)),
            }
        }
        Ok(found)
    }

    fn scenarios(&mut self, pack: &OwnedFd) -> Result<(), Problem> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        let folder = openat(pack, SCENARIOS, flags, Mode::empty())
            .map_err(|problem| Problem::of_file(SCENARIOS, problem.to_string()))?;
        for (name, kind) in entries(&folder, SCENARIOS)? {
            let path = format!("{SCENARIOS}/{name}");
            let is_scenario = name.strip_suffix(".toml").is_some_and(is_name);
            match kind {
                FileType::RegularFile if is_scenario => self.add(&folder, &name, path)?,
                _ => return Err(foreign(&path)),
            }
        }
        Ok(())
    }

    fn add(&mut self, folder: &OwnedFd, name: &str, path: String) -> Result<(), Problem> {
        let bytes = content(folder, name, &path)?;
        self.files.insert(path, bytes);
        Ok(())
    }

    /// What an author signs: every file by name, length and digest.
    pub(super) fn listed(&self) -> Vec<PackedFile> {
        let listed = self.files.iter().map(|(name, bytes)| PackedFile {
            length: bytes.len() as u64,
            name: name.clone(),
            sha256: sha256(bytes),
        });
        listed.collect()
    }

    /// A file as text.
    pub(super) fn text(&self, name: &str) -> Result<&str, Problem> {
        let bytes = self.files.get(name);
        let bytes = bytes.ok_or_else(|| Problem::of_file(name, "it is missing"))?;
        str::from_utf8(bytes)
            .map_err(|problem| Problem::of_file(name, format!("it is no UTF-8: {problem}")))
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Whether this may be the name of a pack or a scenario.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('-')
}

fn foreign(name: &str) -> Problem {
    Problem::of_file(
        &Excerpt::of(name).to_string(),
        "this does not belong into a pack: it has pack.toml, README.md, LICENSE, pack.sig and \
         scenarios/NAME.toml, all of them plain files",
    )
}

/// The names in a folder, and what each is; a link is a link.
fn entries(folder: &OwnedFd, path: &str) -> Result<Vec<(String, FileType)>, Problem> {
    let io = |problem: rustix::io::Errno| Problem::of_file(path, problem.to_string());
    let mut found = Vec::new();
    for entry in Dir::read_from(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let name = str::from_utf8(name).map_err(|_| foreign(&String::from_utf8_lossy(name)))?;
        let kind = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io)?;
        found.push((name.to_owned(), FileType::from_raw_mode(kind.st_mode)));
        if found.len() > MAX_FILES {
            let problem = format!("it holds more than {MAX_FILES} files");
            return Err(Problem::of_file(path, problem));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

/// A plain file's bytes. What was swapped for something else meanwhile is not followed, nor waited for.
fn content(folder: &OwnedFd, name: &str, path: &str) -> Result<Vec<u8>, Problem> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(folder, name, flags, Mode::empty())
        .map_err(|problem| Problem::of_file(path, problem.to_string()))?;
    let file = std::fs::File::from(opened);
    let io = |problem: std::io::Error| Problem::of_file(path, problem.to_string());
    if !file.metadata().map_err(io)?.is_file() {
        return Err(foreign(path));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    match bytes.len() as u64 > MAX_FILE {
        true => Err(Problem::of_file(
            path,
            format!("it takes more than {MAX_FILE} bytes"),
        )),
        false => Ok(bytes),
    }
}
