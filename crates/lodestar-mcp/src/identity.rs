//! Who a server is: what is started or called under its name.

use lodestar_core::canonical;
use lodestar_core::digest::sha256;
use lodestar_core::name::{Excerpt, ServerIdentity};
use lodestar_guard::config::{Reached, Server};
use serde_json::json;

/// Programs that fetch a package and run it, if its version is not said, in whatever version there is today.
const FETCHERS: [&str; 8] = [
    "npx", "bunx", "pnpx", "uvx", "pipx", "docker", "podman", "deno",
];

/// The identity of a server: its name, its command and arguments by digest, or its host. It is part of every
/// fingerprint and stands on every card, so it also says where the version of a package is left open.
pub(crate) fn of(server: &Server) -> ServerIdentity {
    let name = &server.name;
    let text = match &server.reached {
        Reached::Child { command, args, .. } => {
            let started = canonical::to_vec(&json!([command, args]));
            let digest = sha256(&started.unwrap_or_default());
            match unpinned(command, args) {
                Some(package) => format!(
                    "{name} ({}, version not pinned) {digest}",
                    Excerpt::of(&package)
                ),
                None => format!("{name} {digest}"),
            }
        }
        Reached::Url { url, .. } => {
            let host = url.host_str().unwrap_or_default();
            let port = url.port_or_known_default().unwrap_or_default();
            format!("{name} {}://{host}:{port}", url.scheme())
        }
    };
    ServerIdentity::new(text).expect("INVARIANT: a name, an excerpt and a digest, all bounded")
}

/// The package that a command runs in whatever version there is.
fn unpinned(command: &str, args: &[String]) -> Option<String> {
    let program = command.rsplit('/').next().unwrap_or(command);
    let program = program.strip_suffix(".cmd").unwrap_or(program);
    if !FETCHERS.contains(&program) {
        return None;
    }
    let mut words = args.iter().filter(|arg| !arg.starts_with('-'));
    let package = match program {
        "pipx" | "docker" | "podman" | "deno" => {
            words.find(|word| !matches!(word.as_str(), "run" | "container"))?
        }
        _ => words.next()?,
    };
    let versioned = match program {
        "uvx" | "pipx" => package.contains("==") || package.contains('@'),
        "docker" | "podman" => package.contains("@sha256:"),
        _ => package.get(1..).is_some_and(|rest| {
            let version = rest.rsplit_once('@').map(|(_, version)| version);
            version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        }),
    };
    (!versioned).then(|| package.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(command: &str, args: &[&str]) -> bool {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        unpinned(command, &args).is_some()
    }

    #[test]
    fn a_version_that_is_left_open_is_seen() {
        assert!(open("npx", &["-y", "@modelcontextprotocol/server-memory"]));
        assert!(open("/usr/bin/npx", &["-y", "server@latest"]));
        assert!(!open(
            "npx",
            &["-y", "@modelcontextprotocol/server-memory@2026.8.31"]
        ));
        assert!(open("uvx", &["mcp-server-git"]));
        assert!(!open(
            "uvx",
            &["mcp-server-git==1.2.3", "--repository", "."]
        ));
        assert!(open("docker", &["run", "-i", "--rm", "mcp/git"]));
        assert!(!open("docker", &["run", "-i", "mcp/git@sha256:00"]));
        assert!(!open("node", &["server.js"]));
    }
}
