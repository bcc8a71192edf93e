//! `fs.write`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use super::put::{MadeDirectories, Temporary, open_or_make};
use super::root::{Below, explain};
use super::{FsConfig, Reins, Root, RootError, blocking, only};
use crate::tool::{
    AtLinks, Call, Calling, Definition, Effect, NATIVE_SERVER, Output, Tool, ToolError,
};

/// `fs.write`: one regular file below the root, replaced in one step or not at all.
#[derive(Debug)]
pub struct FsWrite {
    files: Arc<Files>,
    definition: Definition,
}

#[derive(Debug)]
struct Files {
    root: Root,
    max_bytes: u64,
}

/// Whether missing directories on the way are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directories {
    Create,
    MustExist,
}

impl FsWrite {
    /// The tool for a root.
    pub fn new(config: FsConfig, scope: Scope) -> Result<Self, RootError> {
        let root = Root::open(&config.root, config.links)?;
        Ok(Self::on(root, config.max_bytes, scope))
    }

    pub(crate) fn on(root: Root, max_bytes: u64, scope: Scope) -> Self {
        Self {
            files: Arc::new(Files { root, max_bytes }),
            definition: definition(max_bytes, scope),
        }
    }
}

impl Tool for FsWrite {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn root(&self) -> Option<&Path> {
        Some(self.files.root.path())
    }

    fn writes(&self, arguments: &Map<String, Value>) -> Vec<PathBuf> {
        let path = arguments.get("path").and_then(Value::as_str);
        // What is refused writes nothing.
        let below = path.and_then(|path| self.files.root.file_below(path).ok());
        let below = below.map(|below| below.as_path().to_owned());
        below.into_iter().collect()
    }

    fn at_links(&self) -> AtLinks {
        AtLinks::Replaces
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            only(&call, &self.definition)?;
            let path = self.files.root.file_below(call.text("path")?);
            let path = path.map_err(|refused| ToolError::refused(refused.to_string()))?;
            let content = call.text("content")?;
            if content.len() as u64 > self.files.max_bytes {
                return Err(ToolError::refused(format!(
                    "the content has {} bytes, more than the {} that may be written; raise \
                     `max_bytes`, or write less",
                    content.len(),
                    self.files.max_bytes
                )));
            }
            let directories = match call.arguments().get("create_dirs") {
                None | Some(Value::Bool(false)) => Directories::MustExist,
                Some(Value::Bool(true)) => Directories::Create,
                Some(_) => {
                    return Err(ToolError::invalid("`create_dirs` must be true or false"));
                }
            };
            let content = content.to_owned();
            let files = Arc::clone(&self.files);
            blocking(&call, move |reins| {
                files.write(&path, content.as_bytes(), directories, reins)
            })
            .await
        })
    }
}

impl Files {
    fn write(
        &self,
        path: &Below,
        content: &[u8],
        directories: Directories,
        reins: &Reins,
    ) -> Result<Output, ToolError> {
        let (parent, name) = path
            .split()
            .ok_or_else(|| ToolError::refused("the root itself is not a file"))?;
        let mut made = MadeDirectories::default();
        let directory = match directories {
            Directories::MustExist => self.root.open_directory(&parent),
            Directories::Create => open_or_make(&self.root, &parent, &mut made),
        }
        .map_err(|errno| explain(path, errno))?;
        let before = target(&directory, name, path)?;
        let temporary = Temporary::create(&directory, before.as_ref())
            .map_err(|errno| failed(path, "prepared", errno))?;
        temporary
            .fill(content)
            .map_err(|error| failed(path, "written", error))?;
        reins.check()?;
        temporary.put(name, before.is_some()).map_err(|errno| {
            if errno == Errno::EXIST {
                let path = path.shown();
                ToolError::refused(format!("`{path}` came into being meanwhile; look at it"))
            } else {
                failed(path, "replaced", errno)
            }
        })?;
        made.keep();
        rustix::fs::fsync(&directory).map_err(|errno| {
            let (path, error) = (path.shown(), std::io::Error::from(errno));
            ToolError::failed(
                Effect::Unknown,
                format!("`{path}` was written, but may not survive a crash: {error}"),
            )
        })?;
        Ok(Output::structured(json!({
            "path": path.as_path().to_string_lossy(),
            "bytes": content.len(),
            "replaced": before.is_some(),
        })))
    }
}

fn failed(path: &Below, what: &str, error: impl Into<std::io::Error>) -> ToolError {
    let (path, error) = (path.shown(), error.into());
    ToolError::failed(Effect::None, format!("`{path}` cannot be {what}: {error}"))
}

/// What stands at the name now, if it may be replaced.
fn target(directory: &OwnedFd, name: &OsStr, path: &Below) -> Result<Option<Stat>, ToolError> {
    let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        answer => answer.map_err(|errno| explain(path, errno))?,
    };
    let path = path.shown();
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ToolError::refused(format!(
            "`{path}` is not a regular file and is not replaced"
        )));
    }
    // Replacing needs leave to write the directory only; read-only files would not be safe.
    if Mode::from_raw_mode(stat.st_mode).bits() & 0o222 == 0 {
        return Err(ToolError::refused(format!(
            "`{path}` is read-only; make it writable first"
        )));
    }
    Ok(Some(stat))
}

fn definition(max_bytes: u64, scope: Scope) -> Definition {
    Definition {
        name: ToolName::new("fs.write").expect("a literal name is valid"),
        server: ServerIdentity::new(NATIVE_SERVER).expect("a literal name is valid"),
        description: format!(
            "Writes one text file of the project, up to {max_bytes} bytes, replacing what was \
             there in one step. Symbolic links, devices, read-only files and anything outside the \
             project are refused."
        ),
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The file, relative to the root of the project.",
                },
                "content": {
                    "type": "string",
                    "description": "The whole new content.",
                },
                "create_dirs": {
                    "type": "boolean",
                    "default": false,
                    "description": "Whether to make the directories that are missing.",
                },
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        }),
        roles: BTreeMap::from([
            ("path".to_owned(), ArgumentRole::Path),
            ("content".to_owned(), ArgumentRole::Payload),
            ("create_dirs".to_owned(), ArgumentRole::Other),
        ]),
        declared: None,
        minimum: Contract {
            required_level: Rung::L3,
            blast_radius: BlastRadius::Project,
            // The kernel keeps what was there, or it does not run.
            reversibility: Reversibility::Reversible,
            scope,
            data_sensitivity: DataSensitivity::Private,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::WriteLocal,
            permissions: BTreeSet::from([Permission::WriteFiles]),
        },
    }
}
