//! The gateway's store in one SQLite file.
