//! Configuration: ours, and the little of the repository's own that is taken over.
//!
//! Taken over are settings that only say how files look, and only with words that they can have.

use std::ffi::OsString;
use std::path::PathBuf;

use lodestar_core::contract::Sandbox;
use lodestar_core::name::Excerpt;

use super::command::{Git, Order, variable, words};
use super::config::GitError;
use super::private::{Layout, small_file};
use crate::native::fs::{Reins, Root, shown};
use crate::native::shell::process::{Clients, Confines};

/// Says that neither hook, driver, helper nor program of the repository is to run.
const OWN_CONFIG: &str = "\
\thooksPath = /dev/null
\tfsmonitor = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\talternateRefsCommand = :
\tuseReplaceRefs = false
\tlogAllRefUpdates = true
[commit]
\tgpgSign = false
[push]
\tgpgSign = false
[tag]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[submodule]
\trecurse = false
[credential]
\thelper =
[http]
\tfollowRedirects = false
[log]
\tmailmap = false
\tshowSignature = false
";

/// Settings that say how files look: (key, values it can have).
const TAKEN_OVER: [(&str, &[&str]); 8] = [
    ("core.filemode", BOOLEAN),
    ("core.ignorecase", BOOLEAN),
    ("core.symlinks", BOOLEAN),
    ("core.precomposeunicode", BOOLEAN),
    ("core.autocrlf", &["true", "false", "input"]),
    ("core.eol", &["lf", "crlf", "native"]),
    ("core.safecrlf", &["true", "false", "warn"]),
    ("core.sharedrepository", &["true", "false", "group", "all"]),
];

const BOOLEAN: &[&str] = &["true", "false"];

/// What is taken over of the repository's configuration.
pub(crate) struct Settings {
    /// How objects are named: `sha1` or `sha256`.
    pub(crate) format: String,
    lines: String,
}

impl Settings {
    /// Nothing but how objects are named.
    pub(crate) fn bare(format: &str) -> Self {
        Self {
            format: format.to_owned(),
            lines: String::new(),
        }
    }

    pub(crate) fn read(
        layout: &Layout,
        git: &Git,
        root: &Root,
        reins: &Reins,
    ) -> Result<Self, GitError> {
        let mut settings = Self::bare("sha1");
        let Some(path) = layout.shared_configuration() else {
            return Ok(settings);
        };
        // Git parses what we read: it never opens the file, and follows no `include`.
        let text = small_file(&path)?;
        for (key, value) in entries(git, root, words(["--file", "-"]), Some(&text), reins)? {
            settings.take(&key, &value)?;
        }
        Ok(settings)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), GitError> {
        let value = value.to_ascii_lowercase();
        let unsupported = |key| {
            Err(GitError::Unsupported {
                key,
                value: Excerpt::of(&value),
            })
        };
        match key {
            "extensions.objectformat" if matches!(value.as_str(), "sha1" | "sha256") => {
                self.format.clone_from(&value);
            }
            "extensions.objectformat" => return unsupported("extensions.objectFormat"),
            "extensions.refstorage" if value != "files" => {
                return unsupported("extensions.refStorage");
            }
            _ => {}
        }
        let known = TAKEN_OVER
            .iter()
            .find(|(name, values)| *name == key && values.contains(&value.as_str()));
        if let Some((name, _)) = known {
            let name = name.trim_start_matches("core.");
            self.lines.push_str(&format!("\t{name} = {value}\n"));
        }
        Ok(())
    }

    pub(crate) fn text(&self, bare: &str) -> String {
        let (version, extension) = match self.format.as_str() {
            "sha1" => (0, String::new()),
            format => (1, format!("[extensions]\n\tobjectFormat = {format}\n")),
        };
        format!(
            "{extension}[core]\n\trepositoryFormatVersion = {version}\n\tbare = {bare}\n{}{OWN_CONFIG}",
            self.lines
        )
    }
}

/// The entries of a configuration, as data: keys in lower case but for their middle part.
pub(crate) fn entries(
    git: &Git,
    root: &Root,
    source: Vec<OsString>,
    input: Option<&[u8]>,
    reins: &Reins,
) -> Result<Vec<(String, String)>, GitError> {
    let directory = root
        .open_directory(&root.top())
        .map_err(|errno| GitError::Io {
            path: shown(root.path()),
            source: errno.into(),
        })?;
    // What a configuration includes may lie anywhere; git reads it here, writes nothing and reaches nobody.
    let reads = vec![PathBuf::from("/")];
    let mut arguments = words(["config"]);
    arguments.extend(source);
    arguments.extend(words(["--list", "-z"]));
    let order = Order {
        name: "config",
        arguments,
        // No repository at all, so that no other configuration counts.
        environment: vec![variable("GIT_DIR", "/dev/null")],
        directory: &directory,
        input,
        confines: Confines {
            profile: Sandbox::Read,
            project: root.path().to_owned(),
            reads,
            writes: Vec::new(),
            clients: Clients::Fixed,
        },
    };
    let listed = git.run(&order, reins)?.success("config")?;
    let entries = listed.split(|&byte| byte == 0).filter(|e| !e.is_empty());
    Ok(entries
        .map(|entry| {
            let entry = String::from_utf8_lossy(entry);
            // A key without a value means true.
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            (key.to_owned(), value.to_owned())
        })
        .collect())
}

/// An entry as git reads it back: section, quoted middle part, name, quoted value.
pub(crate) fn entry(key: &str, value: &str) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let (middle, name) = rest.rsplit_once('.').unwrap_or(("", rest));
    let value = quoted(value)
        .replace('\n', "\\n")
        .replace('\t', "\\t")
        .replace('\u{8}', "\\b");
    format!(
        "[{section} \"{}\"]\n\t{name} = \"{value}\"\n",
        quoted(middle)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_quotes_cannot_end_them() {
        let text = entry("url.a\"]\\.b.insteadof", "c\" ; d\n\te\\");
        let expected = "[url \"a\\\"]\\\\.b\"]\n\tinsteadof = \"c\\\" ; d\\n\\te\\\\\"\n";
        assert_eq!(text, expected);
    }
}
