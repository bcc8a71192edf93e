//! The places of a machine that plans are made of, by what they are for; and where a name among them really lies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Programs, libraries and settings of the system: read and executed, never written.
pub(super) const SYSTEM: [&str; 14] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/snap", "/proc", "/sys",
];

/// Where name lookups are told where to ask, if `/etc/resolv.conf` is a link.
pub(super) const NAMES: [&str; 3] = [
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
];

/// Devices that hold nothing and lead nowhere.
pub(super) const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// The terminal that a child is started from. No other: whoever opens those reads what is typed there.
const TERMINAL: &str = "/dev/tty";

/// Toolchains that people keep in their home: read and executed. No folder with credentials is among them.
pub(super) const TOOLCHAINS: [&str; 29] = [
    ".npm",
    ".nvm",
    ".volta",
    ".fnm",
    ".bun",
    ".deno",
    ".asdf",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".cargo/bin",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/env",
    ".local/bin",
    ".local/lib",
    ".local/share/uv",
    ".local/share/pnpm",
    ".local/share/pipx",
    ".local/pipx",
    ".cache/uv",
    ".cache/pip",
    ".cache/node",
    "go/pkg",
    "go/bin",
    ".gitconfig",
    // Not the folder: credentials may lie beside these.
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
];

/// Programs that fetch a package and run it, each with what it keeps packages in, which only it writes. No folder among
/// them has programs that people start by name.
pub(super) const PACKAGE_RUNNERS: [(&str, &[&str]); 9] = [
    ("npx", NPM),
    ("npm", NPM),
    ("pnpm", PNPM),
    ("pnpx", PNPM),
    ("yarn", &[".cache/yarn", ".yarn/berry"]),
    ("bunx", &[".bun/install/cache"]),
    ("uvx", UV),
    ("uv", UV),
    ("pipx", &[".cache/pipx", ".cache/pip", ".local/pipx/.cache"]),
];

const NPM: &[&str] = &[".npm"];
const PNPM: &[&str] = &[".cache/pnpm", ".local/share/pnpm/store"];
const UV: &[&str] = &[".cache/uv"];

/// Hidden from every child wherever it lies: readable only by root, who may be running Lodestar.
pub(super) const SYSTEM_SECRETS: [&str; 10] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
];

/// What toolchains keep among their programs and is a secret.
pub(super) const HOME_SECRETS: [&str; 1] = [".local/share/uv/credentials"];

/// Where a program is, as the system would find it from a folder.
pub fn on_path(program: &Path, folder: &Path) -> PathBuf {
    if program.components().count() > 1 {
        return folder.join(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found
        .find(|file| file.is_file())
        .unwrap_or_else(|| program.to_owned())
}

/// What a program that fetches a package and runs it keeps packages in; none where it is no such program.
pub(super) fn package_caches(program: &Path) -> Option<&'static [&'static str]> {
    let name = program.file_name().and_then(|name| name.to_str())?;
    let mut runners = PACKAGE_RUNNERS.iter();
    runners
        .find(|(runner, _)| *runner == name)
        .map(|(_, caches)| *caches)
}

/// The terminals that this process has as its streams, and the name by which everybody calls their own.
pub(super) fn own_terminals() -> Vec<PathBuf> {
    let streams = (0..3).filter_map(|at| std::fs::read_link(format!("/proc/self/fd/{at}")).ok());
    let terminals =
        streams.filter(|place| place.starts_with("/dev/pts") || place.starts_with("/dev/tty"));
    terminals.chain([PathBuf::from(TERMINAL)]).collect()
}

/// Those that are there, as they really lie; a link is its target. Without repetitions.
pub(super) fn there(places: Vec<PathBuf>) -> Vec<PathBuf> {
    // Many lie in few folders: each of those is looked up once, which is most of what there is to look up.
    let mut folders: BTreeMap<&Path, Option<PathBuf>> = BTreeMap::new();
    let real = |place: &Path| place.canonicalize().ok();
    let mut found = BTreeSet::new();
    for place in &places {
        let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
            found.extend(real(place));
            continue;
        };
        let known = folders.entry(folder).or_insert_with(|| real(folder));
        let Some(here) = known.as_deref().map(|folder| folder.join(name)) else {
            continue;
        };
        match here.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => found.extend(real(&here)),
            Ok(_) => drop(found.insert(here)),
            Err(_) => {}
        }
    }
    found.into_iter().collect()
}
