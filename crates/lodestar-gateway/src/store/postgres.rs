//! The gateway's store in a PostgreSQL database.
