//! How the databases of this project are reached: what the belief store here and the gateway's store have in common.
//!
//! PostgreSQL is spoken to without TLS, and so on this machine only ([`Place`]); text goes there without NUL
//! ([`to_database`]). A SQLite file is its owner's alone ([`keep_private`]).

mod connection;
mod place;
mod text;

pub use connection::Connection;
pub use place::{BadPlace, Place};
pub use text::{from_database, to_database};

use std::error::Error;
use std::path::Path;

/// The error with everything beneath it; the database's own words are there.
pub fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Makes the file, or takes the rights of others away. SQLite gives its side files the same rights.
pub fn keep_private(path: &Path) -> Result<(), String> {
    if path.is_symlink() {
        return Err("it is a symbolic link".to_owned());
    }
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if found.permissions().mode() & 0o077 != 0 {
            file.set_permissions(PermissionsExt::from_mode(0o600))
                .map_err(|error| {
                    format!("others may read it, and that cannot be changed: {error}")
                })?;
        }
    }
    Ok(())
}
