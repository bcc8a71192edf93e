//! The tables, once for both databases.
