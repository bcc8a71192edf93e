//! The statements that name all columns, written once per connection.

use crate::store::columns::{self, COLUMNS, ELIGIBLE};

#[derive(Debug)]
pub(super) struct Statements {
    pub(super) row: String,
    pub(super) from_id: String,
    pub(super) behind_id: String,
    /// With the arrival behind the columns.
    pub(super) context: String,
    pub(super) by_arrival: String,
    pub(super) listed: String,
    pub(super) in_phase: String,
    pub(super) due: String,
    pub(super) insert: String,
    pub(super) update: String,
}

impl Statements {
    pub(super) fn new() -> Self {
        let (all, of_row) = (columns::list(""), columns::list("b."));
        Self {
            row: format!("SELECT {all} FROM beliefs WHERE id = ?1"),
            from_id: format!("SELECT {all} FROM beliefs WHERE id >= ?1 ORDER BY id LIMIT ?2"),
            behind_id: format!("SELECT {all} FROM beliefs WHERE id > ?1 ORDER BY id LIMIT ?2"),
            // CROSS: from the words to the rows, never the other way.
            context: format!(
                "SELECT {of_row}, b.n FROM search CROSS JOIN beliefs AS b ON b.n = -search.rowid
                 WHERE search MATCH ?1 AND observed_at >= ?2 AND sensitivity <= ?3 AND {ELIGIBLE}
                 ORDER BY search.rowid"
            ),
            by_arrival: format!("SELECT {all}, n FROM beliefs WHERE n = ?1"),
            listed: format!(
                "SELECT {all} FROM beliefs
                 WHERE (?1 IS NULL OR truth = ?1) AND (?2 IS NULL OR retrieval = ?2)
                 AND (?3 IS NULL OR security = ?3) AND (?4 IS NULL OR freshness = ?4)
                 AND (?5 IS NULL OR session = ?5) ORDER BY n DESC"
            ),
            in_phase: format!(
                "SELECT {all} FROM beliefs WHERE key = ?1 AND phase = ?2 AND scope = ?3
                 AND subject = ?4 AND relation = ?5 ORDER BY n DESC LIMIT ?6"
            ),
            due: format!(
                "SELECT {all} FROM beliefs WHERE due_at <= ?1 ORDER BY due_at, n LIMIT ?2"
            ),
            insert: format!("INSERT INTO beliefs ({all}) VALUES ({})", places()),
            update: format!("UPDATE beliefs SET {} WHERE id = ?1", settings()),
        }
    }
}

fn places() -> String {
    let places = (1..=COLUMNS.len()).map(|n| format!("?{n}"));
    places.collect::<Vec<_>>().join(", ")
}

/// Every column but the id, which stays.
fn settings() -> String {
    let columns = COLUMNS.iter().zip(1..).skip(1);
    let settings = columns.map(|(name, n)| format!("{name} = ?{n}"));
    settings.collect::<Vec<_>>().join(", ")
}
