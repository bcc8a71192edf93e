//! The PostgreSQL schema: tables, who may do what with them, and which rows are shown to whom.
//!
//! What never changes, the runtime role has no right to change. What follows from another row is written by functions
//! that run as the schema's owner, and that nobody can call in another place: `EXECUTE` on them is taken from all.
//! Functions name where they look (`search_path`), so that no table of somebody's own can stand in for one of these.

use lodestar_firewall::database::Place;
use postgres::{Client, Transaction};

use super::{LOCK, RUNTIME, failed};
use crate::store::StoreError;
use crate::store::schema::tables::{INDEXES, TABLES};
use crate::store::schema::{Consequence, KNOWN, On, Owner, Rule, Table, reference, rules};

/// Makes sure of the schema and of its version, and leaves the connection in the runtime role.
pub(super) fn prepare(client: &mut Client, place: &Place) -> Result<(), StoreError> {
    let schema = &place.schema;
    let role = format!("{schema}{RUNTIME}");
    // Whatever the server is set up with, what is acknowledged waits for its disk.
    client
        .batch_execute(&format!(
            "SET synchronous_commit TO on; SET search_path TO \"{schema}\", pg_temp"
        ))
        .map_err(failed)?;
    if !is_there(client, schema, &role)? {
        migrate(client, place, &role)?;
    }
    client
        .batch_execute(&format!("SET ROLE \"{role}\""))
        .map_err(failed)?;
    let found: i64 = client
        .query_one("SELECT version FROM schema_version", &[])
        .map_err(failed)?
        .get(0);
    match found {
        KNOWN => powerless(client, place),
        _ => Err(StoreError::TooNew {
            found,
            known: KNOWN,
        }),
    }
}

fn is_there(client: &mut Client, schema: &str, role: &str) -> Result<bool, StoreError> {
    let text = "SELECT EXISTS (SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE n.nspname = $1 AND c.relname = 'schema_version')
         AND EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $2)";
    let row = client.query_one(text, &[&schema, &role]).map_err(failed)?;
    Ok(row.get(0))
}

/// The role that serves requests must not be able to change what holds it.
fn powerless(client: &mut Client, place: &Place) -> Result<(), StoreError> {
    let text = "SELECT r.rolsuper OR r.rolbypassrls OR r.rolcreaterole OR has_schema_privilege(n.oid, 'CREATE')
             OR EXISTS (SELECT 1 FROM pg_class AS c
                 WHERE c.relnamespace = n.oid AND pg_has_role(c.relowner, 'USAGE'))
         FROM pg_roles AS r, pg_namespace AS n WHERE r.rolname = current_user AND n.nspname = $1";
    let row = client.query_one(text, &[&place.schema]).map_err(failed)?;
    match row.get(0) {
        false => Ok(()),
        true => Err(place
            .refused("its runtime role owns tables or has rights beyond theirs; take them from it")
            .into()),
    }
}

/// Makes the schema; several programs may come at once.
fn migrate(client: &mut Client, place: &Place, role: &str) -> Result<(), StoreError> {
    let schema = &place.schema;
    let mut transaction = client.transaction().map_err(failed)?;
    transaction
        .execute(
            "SELECT pg_advisory_xact_lock($1, hashtext($2))",
            &[&LOCK, &format!("{schema} migration")],
        )
        .map_err(failed)?;
    let there = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    let there = transaction.query_opt(there, &[&schema]).map_err(failed)?;
    // Asked first, since `IF NOT EXISTS` needs the right to create even where nothing is created.
    if there.is_none() {
        run(&mut transaction, &format!("CREATE SCHEMA \"{schema}\""))?;
    }
    make_role(&mut transaction, role)?;
    let made = "SELECT to_regclass('schema_version') IS NOT NULL";
    let made = transaction.query_one(made, &[]).map_err(failed)?;
    if !made.get::<_, bool>(0) {
        begin(&mut transaction, schema, role)?;
    }
    transaction.commit().map_err(failed)
}

fn make_role(transaction: &mut Transaction<'_>, role: &str) -> Result<(), StoreError> {
    let there = "SELECT 1 FROM pg_roles WHERE rolname = $1";
    let there = transaction.query_opt(there, &[&role]).map_err(failed)?;
    if there.is_some() {
        return Ok(());
    }
    run(transaction, &format!("CREATE ROLE \"{role}\" NOLOGIN"))?;
    run(transaction, &format!("GRANT \"{role}\" TO CURRENT_USER"))
}

fn run(transaction: &mut Transaction<'_>, text: &str) -> Result<(), StoreError> {
    transaction.batch_execute(text).map_err(failed)
}

/// Makes version 1 in an empty schema.
fn begin(
    transaction: &mut Transaction<'_>,
    schema: &str,
    role: &str,
) -> Result<(), StoreError> {
    run(
        transaction,
        &format!(
            "CREATE TABLE schema_version (version bigint NOT NULL);
             INSERT INTO schema_version VALUES ({KNOWN});
             REVOKE ALL ON SCHEMA \"{schema}\" FROM PUBLIC;
             GRANT USAGE ON SCHEMA \"{schema}\" TO \"{role}\";
             GRANT SELECT ON schema_version TO \"{role}\""
        ),
    )?;
    for table in TABLES {
        run(transaction, &created(table))?;
    }
    for index in INDEXES {
        run(transaction, index)?;
    }
    for statement in reference::rows() {
        run(transaction, &statement)?;
    }
    for (n, rule) in rules::rules().iter().enumerate() {
        run(transaction, &asked(schema, n, rule))?;
    }
    for (n, consequence) in rules::CONSEQUENCES.iter().enumerate() {
        run(transaction, &followed(schema, n, consequence))?;
    }
    for table in TABLES {
        run(transaction, &granted(table, role))?;
        run(transaction, &shown(table))?;
    }
    Ok(())
}

/// Text compares by bytes, as in SQLite.
fn created(table: &Table) -> String {
    let columns = table
        .columns
        .replace("INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER PRIMARY KEY")
        .replace(
            "INTEGER PRIMARY KEY",
            "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        )
        .replace(" INTEGER", " bigint")
        .replace(" TEXT", " text COLLATE \"C\"");
    format!("CREATE TABLE {} ({columns})", table.name)
}

fn granted(table: &Table, role: &str) -> String {
    let name = table.name;
    let mut rights = vec!["SELECT".to_owned()];
    // The kill switch has its row from the beginning.
    if !reference::FILLED.contains(&name) && name != "control" {
        rights.push("INSERT".to_owned());
    }
    if !table.changing.is_empty() {
        rights.push(format!("UPDATE ({})", table.changing.join(", ")));
    }
    if table.forgets {
        rights.push("DELETE".to_owned());
    }
    format!("GRANT {} ON {name} TO \"{role}\"", rights.join(", "))
}

/// Which rows are shown, and may be written: one account's, or all to the server. The owner of the schema is held to
/// it too.
fn shown(table: &Table) -> String {
    let name = table.name;
    let own = match table.owner {
        Owner::Account(column) => {
            format!("{column} = current_setting('lodestar.account', true)")
        }
        // A row of the other table is found only by whoever is shown it.
        Owner::Through(column, other) => {
            format!("EXISTS (SELECT 1 FROM {other} AS o WHERE o.id = {name}.{column})")
        }
        Owner::Nobody => return String::new(),
    };
    let shown = format!("current_setting('lodestar.role', true) = 'server' OR {own}");
    format!(
        "ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;
         ALTER TABLE {name} FORCE ROW LEVEL SECURITY;
         CREATE POLICY own ON {name} USING ({shown}) WITH CHECK ({shown})"
    )
}

fn event(on: On) -> String {
    match on {
        On::Insert => "INSERT".to_owned(),
        On::Update(columns) => format!("UPDATE OF {}", columns.join(", ")),
    }
}

fn asked(schema: &str, n: usize, rule: &Rule) -> String {
    let Rule {
        table,
        on,
        when,
        because,
    } = rule;
    let function = format!("{table}_rule_{n}");
    format!(
        "CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql
         SET search_path = pg_catalog, \"{schema}\", pg_temp AS $rule$
         BEGIN
             IF {when} THEN
                 RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = '{because}';
             END IF;
             RETURN NEW;
         END $rule$;
         REVOKE ALL ON FUNCTION {function}() FROM PUBLIC;
         CREATE TRIGGER {function} BEFORE {} ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()",
        event(*on)
    )
}

fn followed(schema: &str, n: usize, consequence: &Consequence) -> String {
    let Consequence {
        table,
        on,
        when,
        statements,
    } = consequence;
    let function = format!("{table}_then_{n}");
    format!(
        "CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
         SET search_path = pg_catalog, \"{schema}\", pg_temp AS $then$
         BEGIN
             IF {when} THEN
                 {};
             END IF;
             RETURN NULL;
         END $then$;
         REVOKE ALL ON FUNCTION {function}() FROM PUBLIC;
         CREATE TRIGGER {function} AFTER {} ON {table} FOR EACH ROW EXECUTE FUNCTION {function}()",
        statements.join(";\n"),
        event(*on)
    )
}
