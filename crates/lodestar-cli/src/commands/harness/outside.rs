//! Outside packs on their way into a run: whose they are is settled before anything of them is played.

use std::io::Write as _;
use std::path::PathBuf;

use lodestar_harness::Probe;
use lodestar_harness::pack::{OutsidePack, Unsealed};
use serde_json::{Value, json};

use crate::cli::App;
use crate::commands::pack;
use crate::failure::Failure;
use crate::inert;
use crate::installation::Installation;
use crate::paint::Paint;

/// A pack that runs.
pub(super) struct Outside {
    folder: PathBuf,
    pack: OutsidePack,
    /// Why it is not its author's, where it runs all the same.
    unsealed: Option<Unsealed>,
}

impl Outside {
    /// Opens a folder. A pack that its author did not sign, or whose author is not pinned here, is refused
    /// unless somebody says otherwise; one that was changed since it was signed always is.
    pub(super) fn open(folder: &str, allow_unsigned: bool) -> Result<Self, Failure> {
        let path = PathBuf::from(folder);
        if !path.is_dir() {
            return Err(Failure::not_found(format!(
                "there is no pack `{}`",
                inert::line(folder, 100)
            ))
            .help("lodestar-core, coding-agent-safety, or the folder of an outside pack"));
        }
        let pack = pack::read(&path)?;
        let authors = Installation::locate()?.pack_authors()?;
        let unsealed = match pack.verify(&authors) {
            Ok(_) => None,
            Err(problem @ (Unsealed::Unsigned | Unsealed::Unknown { .. })) if allow_unsigned => {
                Some(problem)
            }
            Err(problem) => return Err(pack::unsealed(&path, &pack, &problem)),
        };
        Ok(Self {
            folder: path,
            pack,
            unsealed,
        })
    }

    pub(super) fn probes(&self) -> Vec<Probe> {
        self.pack.probes()
    }

    /// A loud line about a pack that nobody vouches for.
    pub(super) fn warn(&self, app: &App) {
        if let Some(problem) = &self.unsealed
            && !app.json
        {
            let text = format!(
                "THE PACK {} RUNS UNVERIFIED (--allow-unsigned): {problem}",
                self.pack.about.name
            );
            let text = Paint::stderr().warn(inert::line(&text, 1000));
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "folder": self.folder.to_string_lossy(),
            "pack": self.pack.about,
            "verified": self.unsealed.is_none(),
            "why_not": self.unsealed.as_ref().map(ToString::to_string),
        })
    }
}
