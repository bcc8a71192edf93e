//! Files below one folder.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::{Serves, text, tool};

pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The file of this name, which stays below the root.
    fn file(&self, arguments: &Value) -> Result<PathBuf, String> {
        let name = text(arguments, "path")?;
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        match Path::new(name).components().all(inside) {
            true => Ok(self.root.join(name)),
            false => Err(format!("`{name}` leads out of the folder that is served")),
        }
    }

    fn read(&self, arguments: &Value) -> Result<String, String> {
        fs::read_to_string(self.file(arguments)?).map_err(|problem| problem.to_string())
    }

    fn write(&self, arguments: &Value) -> Result<String, String> {
        let (file, content) = (self.file(arguments)?, text(arguments, "content")?);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|problem| problem.to_string())?;
        }
        fs::write(&file, content).map_err(|problem| problem.to_string())?;
        Ok(format!("{} bytes written", content.len()))
    }

    fn list(&self) -> Result<String, String> {
        let entries = fs::read_dir(&self.root).map_err(|problem| problem.to_string())?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        Ok(names.join("\n"))
    }
}

impl Serves for Files {
    fn name(&self) -> &'static str {
        "demo-files"
    }

    fn tools(&self) -> Value {
        let path = ("path", "The file, from the project's folder");
        json!([
            tool("read_file", "Read a text file", &[path]),
            tool(
                "write_file",
                "Write a text file, in place of what is there",
                &[path, ("content", "All of its text")],
            ),
            tool("list_files", "List the files of the project", &[]),
        ])
    }

    fn call(&self, tool: &str, arguments: &Value) -> Option<Result<String, String>> {
        match tool {
            "read_file" => Some(self.read(arguments)),
            "write_file" => Some(self.write(arguments)),
            "list_files" => Some(self.list()),
            _ => None,
        }
    }
}
