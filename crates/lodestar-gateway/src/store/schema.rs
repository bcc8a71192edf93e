//! What must be true of the tables, once for both databases.
//!
//! [`tables`] says what there is and what of it may change, [`rules`] what more must hold and what follows, and
//! [`reference`] carries the tables of `lodestar-core` into the database. How a database is brought to hold to all of
//! it is its own affair: SQLite by triggers, PostgreSQL by grants, row-level security and triggers.

pub(super) mod reference;
pub(super) mod rules;
pub(super) mod tables;

/// The newest version of the schema known here.
///
/// The modules beside this one are version 1. A later version adds to it by statements of its own, and leaves those
/// modules as what an empty database begins with.
pub(super) const KNOWN: i64 = 1;

/// A table.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Columns and constraints, in SQLite's words for types; see [`tables`].
    pub(super) columns: &'static str,
    /// Columns that may change.
    pub(super) changing: &'static [&'static str],
    /// Columns that change by a consequence of something else, and never by themselves.
    pub(super) following: &'static [&'static str],
    /// Whether rows may be taken out.
    pub(super) forgets: bool,
    /// Whose rows they are.
    pub(super) owner: Owner,
}

/// How a row is known to be an account's.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    /// This column names the account.
    Account(&'static str),
    /// This column names a row of another table, which is somebody's.
    Through(&'static str, &'static str),
    /// It is nobody's in particular.
    Nobody,
}

/// When a rule is asked.
#[derive(Clone, Copy)]
pub(super) enum On {
    Insert,
    /// An update of one of these columns.
    Update(&'static [&'static str]),
}

/// What is refused.
pub(super) struct Rule {
    pub(super) table: &'static str,
    pub(super) on: On,
    /// Over `NEW` and `OLD`; never null, so that nothing passes for want of an answer.
    pub(super) when: String,
    pub(super) because: &'static str,
}

/// What happens with a row, in the same statement.
pub(super) struct Consequence {
    pub(super) table: &'static str,
    pub(super) on: On,
    /// Over `NEW` and `OLD`.
    pub(super) when: &'static str,
    pub(super) statements: &'static [&'static str],
}

impl Table {
    /// The names of all columns: lines of [`Table::columns`] that begin with a lower-case letter.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let lines = self.columns.lines().map(str::trim);
        lines
            .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
            .filter_map(|line| line.split_once(' ').map(|(name, _)| name))
    }

    /// Columns that never change.
    pub(super) fn fixed(&self) -> Vec<&'static str> {
        let moves = |name: &&str| self.changing.contains(name) || self.following.contains(name);
        self.names().filter(|name| !moves(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_that_changes_is_a_column() {
        for table in tables::TABLES {
            let names: Vec<_> = table.names().collect();
            assert!(!names.is_empty(), "{}", table.name);
            for column in table.changing.iter().chain(table.following) {
                assert!(names.contains(column), "{} {column}", table.name);
            }
            if let Owner::Account(column) | Owner::Through(column, _) = table.owner {
                assert!(table.fixed().contains(&column), "{} {column}", table.name);
            }
        }
    }

    #[test]
    fn rules_are_about_tables_and_columns_that_there_are() {
        let rules = rules::rules();
        let asked = rules.iter().map(|rule| (rule.table, rule.on));
        let follow = rules::CONSEQUENCES.iter().map(|then| (then.table, then.on));
        for (name, on) in asked.chain(follow) {
            let table = tables::TABLES.iter().find(|table| table.name == name);
            let names: Vec<_> = table.expect(name).names().collect();
            if let On::Update(columns) = on {
                assert!(columns.iter().all(|column| names.contains(column)), "{name}");
            }
        }
    }
}
