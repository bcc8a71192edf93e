//! `fs.restore`: puts back what stood where an act wrote, as its image says.
//!
//! The arguments name the act, each path, what is to stand there and what stands there now, by digest; so all
//! that happens is hashed, judged, shown and logged. The contents come beside them and are bound by
//! those digests. Nothing is opened through a link, each file is replaced in one step, and what is not as the
//! arguments say is left alone, all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::id::ActionId;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, SessionId, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::put::{MadeDirectories, Temporary, TemporaryLink, open_or_make};
use super::root::{Below, explain};
use super::{Links, Reins, Root, RootError, blocking};
use crate::grade::Grade;
use crate::image::{MODE_BITS, Spelling, State, look_in};
use crate::tool::{
    AtLinks, Call, Calling, Definition, Effect, NATIVE_SERVER, Output, Tool, ToolError,
};

/// The tool's name.
pub const RESTORE: &str = "fs.restore";

/// What is to be put back: the arguments of `fs.restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restoration {
    /// The act that is undone.
    pub action: ActionId,
    /// The session that it was an act of.
    pub session: SessionId,
    /// Where; below the root.
    pub paths: Vec<Spelling>,
    /// What is to stand there.
    pub to: Vec<State>,
    /// What stands there now.
    pub from: Vec<State>,
}

impl Restoration {
    /// As arguments of a call.
    pub fn arguments(&self) -> Value {
        json!(self)
    }

    /// What the arguments of a call ask for.
    pub fn of(arguments: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        Self::deserialize(&Value::Object(arguments.clone()))
    }
}

/// `fs.restore`, for what one act wrote over.
pub struct FsRestore {
    files: Arc<Files>,
    definition: Definition,
}

struct Files {
    root: Root,
    contents: BTreeMap<Digest, Vec<u8>>,
}

impl fmt::Debug for FsRestore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FsRestore").field(&self.files.root).finish()
    }
}

impl FsRestore {
    /// The tool for a root, with the contents that it may put back.
    pub fn new(
        root: &Path,
        contents: impl IntoIterator<Item = Vec<u8>>,
        scope: Scope,
    ) -> Result<Self, RootError> {
        let by_digest = |content: Vec<u8>| (sha256(&content), content);
        Ok(Self {
            files: Arc::new(Files {
                root: Root::open(root, Links::Refuse)?,
                contents: contents.into_iter().map(by_digest).collect(),
            }),
            definition: definition(scope),
        })
    }

    /// The grade that it comes with.
    pub fn grade() -> Grade {
        let minimum = minimum(Scope::global());
        Grade {
            required_trust_level: Some(minimum.required_level),
            blast_radius: Some(minimum.blast_radius),
            reversibility: Some(minimum.reversibility),
            data_sensitivity: Some(minimum.data_sensitivity),
            permissions: Some(minimum.permissions),
            sandbox: Some(minimum.sandbox),
            ..Grade::default()
        }
    }
}

impl Tool for FsRestore {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn root(&self) -> Option<&Path> {
        Some(self.files.root.path())
    }

    fn writes(&self, arguments: &Map<String, Value>) -> Vec<PathBuf> {
        let paths = Restoration::of(arguments).map(|asked| asked.paths);
        let paths = paths.unwrap_or_default().into_iter();
        paths.map(|path| path.as_path().to_owned()).collect()
    }

    fn at_links(&self) -> AtLinks {
        AtLinks::Replaces
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            let asked = Restoration::of(call.arguments())
                .map_err(|problem| ToolError::invalid(problem.to_string()))?;
            let moves = self.files.moves(asked)?;
            let files = Arc::clone(&self.files);
            blocking(&call, move |reins| files.restore(&moves, reins)).await
        })
    }
}

/// One path, from what stands there to what is to.
struct Move {
    path: Below,
    from: State,
    to: State,
}

/// What is about to be put in place.
enum Staged<'a> {
    File(Temporary<'a>),
    Link(TemporaryLink<'a>),
    Nothing,
}

impl Files {
    fn moves(&self, asked: Restoration) -> Result<Vec<Move>, ToolError> {
        let Restoration {
            paths, to, from, ..
        } = asked;
        let is_even = paths.len() == to.len() && paths.len() == from.len() && !paths.is_empty();
        if !is_even {
            return Err(ToolError::invalid(
                "`paths`, `to` and `from` must have as many members, and at least one",
            ));
        }
        let mut moves: Vec<Move> = Vec::with_capacity(paths.len());
        for ((path, to), from) in paths.into_iter().zip(to).zip(from) {
            let below = self.root.path_below(path.as_path());
            let below = below.filter(|below| !below.is_root() && below.as_path() == path.as_path());
            let below = below.ok_or_else(|| {
                ToolError::refused(format!(
                    "`{}` is no plain path below the root",
                    path.shown()
                ))
            })?;
            if moves.iter().any(|one| one.path == below) {
                return Err(ToolError::invalid(format!(
                    "`{}` is named twice",
                    path.shown()
                )));
            }
            match (&from, &to) {
                (_, State::Folder | State::Unseen { .. }) => {
                    return Err(ToolError::invalid(format!(
                        "there is nothing to put back at `{}`",
                        path.shown()
                    )));
                }
                (State::Folder | State::Unseen { .. }, _) => {
                    return Err(ToolError::refused(format!(
                        "what stands at `{}` is not replaced",
                        path.shown()
                    )));
                }
                (_, State::File { sha256, .. }) if !self.contents.contains_key(sha256) => {
                    return Err(ToolError::refused(format!(
                        "what `{}` held is not at hand",
                        path.shown()
                    )));
                }
                _ => moves.push(Move {
                    path: below,
                    from,
                    to,
                }),
            }
        }
        Ok(moves)
    }

    fn restore(&self, moves: &[Move], reins: &Reins) -> Result<Output, ToolError> {
        let mut made = MadeDirectories::default();
        let mut folders = Vec::with_capacity(moves.len());
        for one in moves {
            folders.push(self.folder(one, &mut made)?);
        }
        let mut staged = Vec::with_capacity(moves.len());
        for (one, folder) in moves.iter().zip(&folders) {
            reins.check()?;
            staged.push(match folder {
                Some((folder, name)) => {
                    is_as_said(folder, name, one)?;
                    self.stage(folder, name, one)?
                }
                None => Staged::Nothing,
            });
        }
        reins.check()?;
        let mut done = Vec::new();
        for ((one, folder), staged) in moves.iter().zip(&folders).zip(staged) {
            // From here on some of it has happened.
            let effect = match done.is_empty() {
                true => Effect::None,
                false => Effect::Unknown,
            };
            if let Some((folder, name)) = folder {
                self.put(folder, name, one, staged).map_err(|mut error| {
                    error.effect = effect;
                    if effect == Effect::Unknown {
                        error.message = format!(
                            "{}; before that {} of {} paths were put back",
                            error.message,
                            done.len(),
                            moves.len()
                        );
                    }
                    error
                })?;
            }
            done.push(Spelling::from(one.path.as_path()));
        }
        made.keep();
        for folder in folders.iter().flatten() {
            rustix::fs::fsync(&folder.0).map_err(|errno| {
                let error = std::io::Error::from(errno);
                ToolError::failed(
                    Effect::Unknown,
                    format!("all was put back, but may not survive a crash: {error}"),
                )
            })?;
        }
        Ok(Output::structured(json!({ "restored": done })))
    }

    /// The folder that the path lies in; none where it is gone and nothing is to stand there.
    fn folder<'a>(
        &self,
        one: &'a Move,
        made: &mut MadeDirectories,
    ) -> Result<Option<(OwnedFd, &'a OsStr)>, ToolError> {
        let (parent, name) = one
            .path
            .split()
            .ok_or_else(|| ToolError::refused("the root itself is not restored"))?;
        let opened = match one.to {
            State::Nothing { .. } => match self.root.open_directory(&parent) {
                Err(Errno::NOENT) if matches!(one.from, State::Nothing { .. }) => return Ok(None),
                answer => answer,
            },
            _ => open_or_make(&self.root, &parent, made),
        };
        let opened = opened.map_err(|errno| explain(&one.path, errno))?;
        Ok(Some((opened, name)))
    }

    fn stage<'a>(
        &self,
        folder: &'a OwnedFd,
        name: &OsStr,
        one: &Move,
    ) -> Result<Staged<'a>, ToolError> {
        let failed = |error: std::io::Error| {
            let path = one.path.shown();
            ToolError::failed(
                Effect::None,
                format!("`{path}` cannot be prepared: {error}"),
            )
        };
        match &one.to {
            State::File { mode, sha256 } => {
                // INVARIANT: the digest is that of the content, see `new`.
                let content = self.contents.get(sha256).ok_or_else(|| {
                    ToolError::refused("what the file held is not at hand".to_owned())
                })?;
                let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
                let stat =
                    stat.filter(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile);
                let temporary = Temporary::create(folder, stat.as_ref())
                    .map_err(|errno| failed(errno.into()))?;
                temporary
                    .chmod(mode & MODE_BITS)
                    .map_err(|errno| failed(errno.into()))?;
                temporary.fill(content).map_err(failed)?;
                Ok(Staged::File(temporary))
            }
            State::Link { to } => {
                let temporary = TemporaryLink::create(folder, to.as_path());
                Ok(Staged::Link(
                    temporary.map_err(|errno| failed(errno.into()))?,
                ))
            }
            State::Nothing { .. } | State::Folder | State::Unseen { .. } => Ok(Staged::Nothing),
        }
    }

    fn put(
        &self,
        folder: &OwnedFd,
        name: &OsStr,
        one: &Move,
        staged: Staged<'_>,
    ) -> Result<(), ToolError> {
        is_as_said(folder, name, one)?;
        let is_there = !matches!(one.from, State::Nothing { .. });
        let put = match staged {
            Staged::File(temporary) => temporary.put(name, is_there),
            Staged::Link(temporary) => temporary.put(name),
            Staged::Nothing if !is_there => Ok(()),
            Staged::Nothing => rustix::fs::unlinkat(folder, name, AtFlags::empty()),
        };
        put.map_err(|errno| {
            let (path, error) = (one.path.shown(), std::io::Error::from(errno));
            ToolError::failed(
                Effect::None,
                format!("`{path}` cannot be put back: {error}"),
            )
        })?;
        if let State::Nothing { missing_folders } = one.to {
            self.remove_folders(&one.path, missing_folders);
        }
        Ok(())
    }

    /// Folders that were not there before the act go with what it put into them. One that holds anything else
    /// stays, and so do those above it.
    fn remove_folders(&self, path: &Below, count: u32) {
        let mut folder = path.split().map(|(folder, _)| folder);
        for _ in 0..count {
            let Some((above, name)) = folder.as_ref().and_then(Below::split) else {
                return;
            };
            let Ok(opened) = self.root.open_directory(&above) else {
                return;
            };
            if rustix::fs::unlinkat(&opened, name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
            let _ = rustix::fs::fsync(&opened);
            folder = Some(above);
        }
    }
}

/// Whoever looked before this was called may have seen something else.
fn is_as_said(folder: &OwnedFd, name: &OsStr, one: &Move) -> Result<(), ToolError> {
    if look_in(folder, name).is_like(&one.from) {
        return Ok(());
    }
    Err(ToolError::refused(format!(
        "`{}` was changed meanwhile; look at it",
        one.path.shown()
    )))
}

fn minimum(scope: Scope) -> Contract {
    Contract {
        required_level: Rung::L3,
        blast_radius: BlastRadius::Project,
        reversibility: Reversibility::Reversible,
        scope,
        data_sensitivity: DataSensitivity::Private,
        preconditions: Preconditions::default(),
        sandbox: Sandbox::WriteLocal,
        permissions: BTreeSet::from([Permission::WriteFiles]),
    }
}

fn definition(scope: Scope) -> Definition {
    let states = json!({
        "type": "array",
        "items": {"type": "object"},
        "description": "File, link or nothing, for each path; a file by mode and SHA-256.",
    });
    let mut to = states.clone();
    to["title"] = json!("What is to stand there");
    let mut from = states;
    from["title"] = json!("What stands there now");
    Definition {
        name: ToolName::new(RESTORE).expect("a literal name is valid"),
        server: ServerIdentity::new(NATIVE_SERVER).expect("a literal name is valid"),
        description:
            "Puts back what stood at the paths that an act wrote, as it was kept before. For \
                      `lodestar undo`; agents are not offered it."
                .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "description": "The act that is undone."},
                "session": {"type": "string", "description": "The session that it was an act of."},
                "paths": {
                    "type": "array",
                    "items": {},
                    "description": "Where, below the root.",
                },
                "to": to,
                "from": from,
            },
            "required": ["action", "session", "paths", "to", "from"],
            "additionalProperties": false,
        }),
        roles: BTreeMap::from([
            ("action".to_owned(), ArgumentRole::Other),
            ("session".to_owned(), ArgumentRole::Other),
            ("paths".to_owned(), ArgumentRole::Path),
            ("to".to_owned(), ArgumentRole::Other),
            ("from".to_owned(), ArgumentRole::Other),
        ]),
        declared: None,
        minimum: minimum(scope),
    }
}
