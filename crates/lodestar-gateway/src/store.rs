//! What the gateway keeps, in SQLite or PostgreSQL.
