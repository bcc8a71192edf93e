//! `fs.read`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use rustix::fs::FileType;
use serde_json::json;

use super::root::{Below, explain};
use super::{FsConfig, Reins, Root, RootError, block_of, blocking, only};
use crate::tool::{Call, Calling, Definition, Effect, NATIVE_SERVER, Output, Tool, ToolError};

/// `fs.read`: one regular file below the root, whole or not at all.
#[derive(Debug)]
pub struct FsRead {
    files: Arc<Files>,
    definition: Definition,
}

#[derive(Debug)]
struct Files {
    root: Root,
    max_bytes: u64,
}

impl FsRead {
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

impl Tool for FsRead {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn root(&self) -> Option<&Path> {
        Some(self.files.root.path())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            only(&call, &self.definition)?;
            let path = self.files.root.file_below(call.text("path")?);
            let path = path.map_err(|refused| ToolError::refused(refused.to_string()))?;
            let files = Arc::clone(&self.files);
            blocking(&call, move |reins| files.read(&path, reins)).await
        })
    }
}

impl Files {
    fn read(&self, path: &Below, reins: &Reins) -> Result<Output, ToolError> {
        let mut file = self
            .root
            .open_file(path)
            .map_err(|errno| explain(path, errno))?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| explain(path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let path = path.shown();
            return Err(ToolError::refused(format!(
                "`{path}` is not a regular file"
            )));
        }
        let announced = u64::try_from(stat.st_size).unwrap_or(0);
        if announced > self.max_bytes {
            return Err(self.too_large(path));
        }
        let bytes = self.read_all(&mut file, path, announced, reins)?;
        let block = block_of(bytes, || self.uri(path));
        Ok(Output {
            content: vec![block],
            ..Output::default()
        })
    }

    /// What was announced is a hint only: the file may grow while it is read.
    fn read_all(
        &self,
        file: &mut impl Read,
        path: &Below,
        announced: u64,
        reins: &Reins,
    ) -> Result<Vec<u8>, ToolError> {
        let mut bytes = Vec::with_capacity(usize::try_from(announced).unwrap_or(0));
        let mut chunk = vec![0; 64 * 1024];
        loop {
            reins.check()?;
            let read = match file.read(&mut chunk) {
                Ok(0) => return Ok(bytes),
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let path = path.shown();
                    return Err(ToolError::failed(
                        Effect::None,
                        format!("`{path}` cannot be read: {error}"),
                    ));
                }
            };
            bytes.extend_from_slice(&chunk[..read]);
            if bytes.len() as u64 > self.max_bytes {
                return Err(self.too_large(path));
            }
        }
    }

    fn too_large(&self, path: &Below) -> ToolError {
        ToolError::refused(format!(
            "`{}` is larger than {} bytes; raise `max_bytes`, or read a smaller file",
            path.shown(),
            self.max_bytes
        ))
    }

    fn uri(&self, path: &Below) -> String {
        let whole = self.root.path().join(path.as_path());
        url::Url::from_file_path(whole).map_or_else(|()| "file:///".to_owned(), String::from)
    }
}

fn definition(max_bytes: u64, scope: Scope) -> Definition {
    Definition {
        name: ToolName::new("fs.read").expect("a literal name is valid"),
        server: ServerIdentity::new(NATIVE_SERVER).expect("a literal name is valid"),
        description: format!(
            "Reads one file of the project, whole, up to {max_bytes} bytes. A file that is not \
             UTF-8 comes as a base64 resource. Symbolic links, devices and anything outside the \
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
            },
            "required": ["path"],
            "additionalProperties": false,
        }),
        roles: BTreeMap::from([("path".to_owned(), ArgumentRole::Path)]),
        declared: None,
        minimum: Contract {
            required_level: Rung::L0,
            blast_radius: BlastRadius::SelfOnly,
            reversibility: Reversibility::Reversible,
            scope,
            data_sensitivity: DataSensitivity::Private,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::Read,
            permissions: BTreeSet::from([Permission::ReadFiles]),
        },
    }
}

#[cfg(test)]
pub(super) fn tests_read_all(
    config: &FsConfig,
    reader: &mut impl Read,
) -> Result<Vec<u8>, ToolError> {
    let files = Files {
        root: Root::open(&config.root, config.links).expect("the root exists"),
        max_bytes: 1_000_000,
    };
    let path = files.root.file_below("growing").expect("a plain name");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    files.read_all(reader, &path, 1, &Reins::until(deadline))
}
