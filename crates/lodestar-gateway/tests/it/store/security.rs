//! PostgreSQL as the role that serves requests: what it is shown, and what it cannot do.

use super::place::{As, Direct, Place};
use super::refused::fill::fill;
use super::world::{account, furnish};

fn furnished() -> Option<(Place, Direct)> {
    let place = Place::postgres()?;
    furnish(&mut *place.open());
    let direct = place.direct();
    Some((place, direct))
}

/// Tables and whether rows are shown by account, also to their owner.
fn tables(direct: &mut Direct) -> Vec<(String, bool, bool)> {
    let Direct::Postgres(client) = direct else {
        unreachable!()
    };
    let text = "SELECT c.relname::text, c.relrowsecurity AND c.relforcerowsecurity,
             EXISTS (SELECT 1 FROM pg_attribute AS a WHERE a.attrelid = c.oid
                 AND a.attname IN ('account', 'device', 'run', 'submission') AND NOT a.attisdropped)
         FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         WHERE n.nspname = current_schema() AND c.relkind = 'r' ORDER BY 1";
    let rows = client.query(text, &[]).unwrap();
    rows.iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect()
}

#[test]
fn rows_are_shown_to_whom_they_belong() {
    let Some((_place, mut direct)) = furnished() else {
        return;
    };
    let mut held = 0;
    for (table, shown_by_account, is_somebody_s) in tables(&mut direct) {
        assert_eq!(
            shown_by_account,
            is_somebody_s || table == "accounts",
            "{table}"
        );
        if !shown_by_account {
            continue;
        }
        let count = format!("SELECT count(*) FROM {table}");
        let [one, two] = [1, 2].map(|n| account(n).to_string());
        let mut seen = |who: As<'_>| {
            direct.begin(who);
            let seen = direct.number(&count);
            direct.rollback();
            seen
        };
        let all = seen(As::Server);
        assert_eq!(seen(As::Nobody), 0, "{table}");
        let (ones, twos) = (seen(As::Account(&one)), seen(As::Account(&two)));
        assert_eq!(ones, twos, "{table}: both have the same");
        assert_eq!(ones + twos, all, "{table}");
        assert!(seen(As::Account("' OR ''='")) == 0, "{table}");
        held += i64::from(all > 0);
    }
    assert!(held >= 17, "{held}");
}

#[test]
fn what_is_not_shown_is_not_written_either() {
    let Some((_place, mut direct)) = furnished() else {
        return;
    };
    let one = account(1).to_string();
    for (own, other) in [
        (
            "UPDATE devices SET paused = 1 WHERE id = {device 1}",
            "UPDATE devices SET paused = 1 WHERE id = {device 2}",
        ),
        (
            "UPDATE tokens SET revoked_at = {at 70} WHERE id = {token 1}",
            "UPDATE tokens SET revoked_at = {at 70} WHERE id = {token 2}",
        ),
        (
            "DELETE FROM nonces WHERE device = {device 1}",
            "DELETE FROM nonces WHERE device = {device 2}",
        ),
        (
            "INSERT INTO agents (id, account, name, created_at) VALUES ({agent 9}, {account 1}, 'a', {at 70})",
            "INSERT INTO agents (id, account, name, created_at) VALUES ({agent 9}, {account 2}, 'a', {at 70})",
        ),
        (
            "INSERT INTO nonces (device, nonce, seen_at) VALUES ({device 1}, {nonce 99}, {at 70})",
            "INSERT INTO nonces (device, nonce, seen_at) VALUES ({device 2}, {nonce 99}, {at 70})",
        ),
        (
            "INSERT INTO run_checkpoints (run, size, root, note, received_at) VALUES ({run 1}, 7, {digest r}, '', {at 70})",
            "INSERT INTO run_checkpoints (run, size, root, note, received_at) VALUES ({run 2}, 7, {digest r}, '', {at 70})",
        ),
    ] {
        direct.begin(As::Account(&one));
        let done = direct.run(&fill(own));
        direct.rollback();
        assert_eq!(done, Ok(1), "{own}");
        direct.begin(As::Account(&one));
        let done = direct.run(&fill(other));
        direct.rollback();
        assert!(!matches!(done, Ok(1..)), "{other}: {done:?}");
    }
}

#[test]
fn the_runtime_role_cannot_change_what_there_is() {
    let Some((place, mut direct)) = furnished() else {
        return;
    };
    let Place::Postgres(schema) = &place else {
        unreachable!()
    };
    let name = schema.name();
    for text in [
        "CREATE TABLE mine (n bigint)",
        "CREATE FUNCTION mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "ALTER TABLE devices DISABLE TRIGGER ALL",
        "ALTER TABLE devices DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE devices NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE devices ADD COLUMN more text",
        "DROP TABLE attestations",
        "TRUNCATE attestations",
        "DROP POLICY own ON devices",
        "CREATE POLICY mine ON devices USING (true)",
        "DROP TRIGGER devices_then_0 ON devices",
        "SET session_replication_role = replica",
        "SET ROLE lodestar",
        "INSERT INTO legal_transitions VALUES ('pending', 'trusted', 'promote', 'server')",
        "UPDATE schema_version SET version = 0",
        "CREATE RULE mine AS ON UPDATE TO devices DO INSTEAD NOTHING",
        "COPY devices TO '/dev/null'",
    ] {
        let done = direct.attempt(&[], text);
        assert!(done.is_err(), "`{text}` was taken");
    }
    // PostgreSQL only warns here, and grants nothing.
    let _ = direct.attempt(&[], "GRANT UPDATE ON attestations TO PUBLIC");
    let may = "SELECT has_table_privilege('attestations', 'UPDATE')::int::bigint";
    assert_eq!(direct.number(may), 0);
    let owns = format!("ALTER SCHEMA {name} RENAME TO mine");
    assert!(direct.attempt(&[], &owns).is_err());
    // The same connection is allowed what it is for.
    assert_eq!(
        direct.attempt(&[], "UPDATE control SET reason = 'test'"),
        Ok(1)
    );
}

/// Names are looked up in temporary tables first, unless a function says otherwise.
#[test]
fn a_temporary_table_does_not_stand_in_for_one_of_the_rules() {
    let Some((_place, mut direct)) = furnished() else {
        return;
    };
    let before: Vec<String> = [
        "CREATE TEMPORARY TABLE legal_transitions (from_level text, to_level text, event text, actor text)",
        "INSERT INTO pg_temp.legal_transitions VALUES ('pending', 'revoked', 'promote', 'server')",
    ]
    .map(str::to_owned)
    .to_vec();
    let forged =
        "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
         VALUES ({device 10}, 'pending', 'revoked', 'promote', 'server', {at 71}, 'test')";
    let said = direct.attempt(&before, &fill(forged)).unwrap_err();
    assert!(said.contains("the table of moves"), "{said}");
    let lawful =
        "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
         VALUES ({device 10}, 'pending', 'blocked', 'block', 'platform', {at 71}, 'test')";
    assert_eq!(direct.attempt(&before, &fill(lawful)), Ok(1));
}

/// The functions that write what the role may not are for the tables they belong to.
#[test]
fn the_owner_s_functions_are_called_by_nobody_else() {
    let Some((_place, mut direct)) = furnished() else {
        return;
    };
    let Direct::Postgres(client) = &mut direct else {
        unreachable!()
    };
    let text = "SELECT p.proname::text, p.prosecdef FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
         WHERE n.nspname = current_schema() ORDER BY 1";
    let functions: Vec<(String, bool)> = client
        .query(text, &[])
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    assert!(functions.iter().filter(|(_, as_owner)| *as_owner).count() >= 6);
    for (function, _) in &functions {
        let before = [
            "CREATE TEMPORARY TABLE mine (device text, to_level text, from_level text, at bigint)"
                .to_owned(),
        ];
        let text = format!(
            "CREATE TRIGGER mine AFTER INSERT ON pg_temp.mine FOR EACH ROW EXECUTE FUNCTION {function}()"
        );
        let said = direct.attempt(&before, &text).unwrap_err();
        assert!(said.contains("permission denied"), "{function}: {said}");
    }
}
