//! The project's `lodestar.toml`, which hooks go by: without one, they refuse everything.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use lodestar_guard::config::Config;
use lodestar_guard::hook::Client;
use lodestar_guard::hook::daemon::configuration_above;
use serde_json::{Value, json};

use super::Scope;
use crate::cli::App;
use crate::commands::init;
use crate::configured::FILE;
use crate::failure::Failure;
use crate::inert;
use crate::installation::Installation;

/// What says what may run where hooks are put in.
pub(super) enum Project {
    /// A file that is there.
    Found(PathBuf),
    /// One that is to be written.
    New { file: PathBuf, text: String },
    /// The projects of a user, each of which needs its own.
    OfUser,
}

impl Project {
    pub(super) fn of(client: Client, scope: Scope, app: &App) -> Result<Self, Failure> {
        if scope == Scope::User {
            return Ok(Self::OfUser);
        }
        let folder = scope.folder(app)?;
        let root = folder.canonicalize().map_err(Failure::io(&folder))?;
        if let Some(found) = configuration_above(&root) {
            return Ok(Self::Found(found));
        }
        let file = root.join(FILE);
        init::refuse_link(&file)?;
        let keys = Installation::locate()?.dir().to_owned();
        let keys = keys.canonicalize().unwrap_or(keys);
        if keys.starts_with(&root) {
            return Err(init::keys_in_the_project(&keys));
        }
        let text = text(client, &root)?;
        Config::parse(&text, &root)?;
        Ok(Self::New { file, text })
    }

    /// Writes it, where there is none.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        let Self::New { file, text } = self else {
            return Ok(());
        };
        let mut out = std::fs::File::create_new(file).map_err(Failure::io(file))?;
        out.write_all(text.as_bytes())
            .and_then(|()| out.sync_all())
            .map_err(Failure::io(file))
    }

    /// Says what was written, or what is missing.
    pub(super) fn tell(&self, dry_run: bool, app: &mut App) -> Result<(), Failure> {
        match self {
            Self::Found(_) => {}
            Self::OfUser => app.note(
                "in a project without a `lodestar.toml` these hooks refuse everything: \
                 `lodestar hook install` without --user, or `lodestar init`, writes one",
            ),
            Self::New { file, text } => {
                let done = match dry_run {
                    true => "would be written",
                    false => "was written",
                };
                let file = inert::path(file);
                writeln!(
                    app.out,
                    "`{file}` {done}, since hooks refuse everything without one:"
                )?;
                for line in text.lines() {
                    writeln!(app.out, "  {line}")?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Self::Found(file) => json!({"file": file, "text": null}),
            Self::New { file, text } => json!({"file": file, "text": text}),
            Self::OfUser => Value::Null,
        }
    }
}

fn text(client: Client, root: &Path) -> Result<String, Failure> {
    let project = init::project(None, root)?;
    Ok(format!(
        "\
# Written by `lodestar hook install`. Whatever is in force is here to be read and changed.

project_id = \"{project}\"
actor_id = \"{}\"

# Calls up to this rung run unasked: 0 to 3. L4 waits for a person, whatever stands here.
auto_approve_ceiling = 2

# Who may approve what waits: `lodestar approve keygen --name NAME` makes a key and prints its table.
# [[approvals.authorized_keys]]
# actor_id = \"NAME\"
# public_key = \"…\"
",
        client.name()
    ))
}
