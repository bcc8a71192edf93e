//! Two accounts that have one of everything, and keys and times to make more with.

use lodestar_core::device::{DeviceActor, DeviceEvent, DeviceLevel};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::execution::{FactSet, evaluate};
use lodestar_core::id::{
    AccountId, AttestationId, BattleId, ContenderId, DeviceId, EvaluationId, RunId, RunnerId,
    SubmissionId, TermsId, TokenId,
};
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::SessionId;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;
use lodestar_gateway::store::accounts::{self, Account};
use lodestar_gateway::store::agents::{self, Agent};
use lodestar_gateway::store::attestations::{self, AttestationRow};
use lodestar_gateway::store::battles::{self, Battle, Participation};
use lodestar_gateway::store::bindings::{self, Binding};
use lodestar_gateway::store::bundles::{self, BundleRow};
use lodestar_gateway::store::challenges::{self, Challenge};
use lodestar_gateway::store::devices::{self, HeartbeatSeen, NewDevice};
use lodestar_gateway::store::evaluations::{self, EvaluationRow};
use lodestar_gateway::store::keys::{self, DeviceKeys};
use lodestar_gateway::store::levels::{self, Transition};
use lodestar_gateway::store::orders::{self, OrderRow};
use lodestar_gateway::store::runners::{self, Runner};
use lodestar_gateway::store::runs::{self, Run, RunCheckpoint, RunSession};
use lodestar_gateway::store::submissions::{self, Submission};
use lodestar_gateway::store::terms::{self, TermsRow};
use lodestar_gateway::store::tokens::{self, Token, TokenKind};
use lodestar_gateway::store::{Sql, StoreError, nonces, transaction};

/// So many seconds after the world began.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros((1_700_000_000 + seconds) * 1_000_000).unwrap()
}

pub(crate) fn key(n: u8) -> PublicKey {
    SecretKey::from_seed([n; 32]).public()
}

pub(crate) fn nonce(n: u64) -> Nonce {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    Nonce::from_bytes(bytes)
}

pub(crate) fn digest(what: &str) -> Digest {
    sha256(what.as_bytes())
}

/// The id with this number.
macro_rules! ids {
    ($($name:ident: $id:ident;)+) => {$(
        pub(crate) fn $name(n: u64) -> $id {
            $id::from_parts(1_700_000_000_000 + n, [7; 10])
        }
    )+};
}

ids! {
    account: AccountId;
    device: DeviceId;
    runner: RunnerId;
    agent: ContenderId;
    run: RunId;
    attestation: AttestationId;
    evaluation: EvaluationId;
    terms_id: TermsId;
    token: TokenId;
    submission: SubmissionId;
    battle: BattleId;
}

/// Work as the server, which has to succeed and to last.
pub(crate) fn write<T>(
    sql: &mut dyn Sql,
    work: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError>,
) -> T {
    transaction(sql, |sql| {
        sql.act_as_server()?;
        work(sql)
    })
    .unwrap()
}

/// What the store says of work as the server; nothing lasts.
pub(crate) fn refusal<T: std::fmt::Debug>(
    sql: &mut dyn Sql,
    work: impl FnOnce(&mut dyn Sql) -> Result<T, StoreError>,
) -> String {
    sql.begin().unwrap();
    sql.act_as_server().unwrap();
    let outcome = work(sql);
    sql.rollback().unwrap();
    match outcome {
        Err(StoreError::Refused(because)) => because,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

pub(crate) fn an_account(n: u64) -> Account {
    Account {
        id: account(n),
        name: format!("account {n}"),
        owner_key: key(200),
        created_at: at(0),
    }
}

pub(crate) fn a_device(n: u64, account_n: u64) -> NewDevice {
    NewDevice {
        id: device(n),
        account: account(account_n),
        name: format!("device {n}"),
        registered_at: at(1),
    }
}

pub(crate) fn an_order(what: &str, account_n: u64) -> OrderRow {
    let what = format!("{what} of {account_n}");
    let digest = digest(&what);
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&digest.as_bytes()[..16]);
    OrderRow {
        digest,
        account: account(account_n),
        kind: what,
        nonce: Nonce::from_bytes(nonce),
        received_at: at(2),
    }
}

/// Records an order and gives its digest.
pub(crate) fn ordered(sql: &mut dyn Sql, what: &str, account_n: u64) -> Result<Digest, StoreError> {
    let order = an_order(what, account_n);
    assert!(orders::add(sql, &order)?, "{what} is ordered once");
    Ok(order.digest)
}

pub(crate) fn first_keys(n: u64) -> DeviceKeys {
    DeviceKeys {
        device: device(n),
        key: key(n as u8),
        log_key: key(100 + n as u8),
        at: at(1),
        order: None,
    }
}

pub(crate) fn a_challenge(device_n: u64, nonce_n: u64) -> Challenge {
    Challenge {
        device: device(device_n),
        nonce: nonce(nonce_n),
        issued_at: at(2),
        expires_at: at(2 + 86_400),
        passed_at: None,
    }
}

pub(crate) fn a_move(
    device_n: u64,
    from: DeviceLevel,
    to: DeviceLevel,
    event: DeviceEvent,
    actor: DeviceActor,
) -> Transition {
    Transition {
        device: device(device_n),
        from: Some(from),
        to,
        event,
        actor,
        at: at(10),
        cause: "a test".to_owned(),
        order: None,
    }
}

/// Registers a device with a key, has it pass its challenge, and approves it.
pub(crate) fn approve(sql: &mut dyn Sql, n: u64, account_n: u64) -> Result<(), StoreError> {
    assert!(devices::add(sql, &a_device(n, account_n))?);
    keys::set_key(sql, &first_keys(n))?;
    assert!(challenges::open(sql, &a_challenge(n, n))?);
    assert!(challenges::pass(sql, device(n), nonce(n), at(3))?);
    let order = ordered(sql, &format!("approve {n}"), account_n)?;
    let (from, to) = (DeviceLevel::Pending, DeviceLevel::Approved);
    let mut approval = a_move(n, from, to, DeviceEvent::Approve, DeviceActor::Owner);
    approval.order = Some(order);
    levels::set_level(sql, &approval)
}

pub(crate) fn beat(sql: &mut dyn Sql, n: u64, seconds: i64) -> Result<(), StoreError> {
    let seen = HeartbeatSeen {
        device: device(n),
        at: at(seconds),
        continuous_since: Some(at(11)),
        gateway_status: "connected",
        daemon_version: "1.0",
    };
    assert!(devices::note_heartbeat(sql, &seen)?);
    Ok(())
}

pub(crate) fn a_run(n: u64, account_n: u64) -> Run {
    Run {
        id: run(n),
        account: account(account_n),
        device: device(account_n),
        runner: runner(account_n),
        agent: agent(account_n),
        terms: terms_id(account_n),
        policy: digest("policy"),
        nonce: nonce(1000 + n),
        workflow_hash: Some(digest("workflow")),
        lens_hash: Some(digest("lens")),
        registered_at: at(20),
    }
}

/// An attestation of a run with the number of its account, with all that can be derived.
pub(crate) fn an_attestation(n: u64, account_n: u64) -> AttestationRow {
    AttestationRow {
        id: attestation(n),
        account: account(account_n),
        run: run(account_n),
        device: device(account_n),
        statement: digest(&format!("statement {n}")),
        nonce: nonce(2000 + n),
        root: digest("root"),
        size: 9,
        device_level: DeviceLevel::Trusted,
        valid: true,
        signature_ok: true,
        gateway_verified: true,
        policy_passed: true,
        runner_bound: true,
        runner_fresh: true,
        envelope: "{}".to_owned(),
        received_at: at(40),
    }
}

pub(crate) fn an_evaluation(n: u64, account_n: u64, facts: FactSet) -> EvaluationRow {
    let made = evaluate(facts);
    EvaluationRow {
        id: evaluation(n),
        run: run(account_n),
        account: account(account_n),
        attestation: Some(attestation(account_n)),
        facts,
        level: made.level(),
        stopped_by: made.stopped_by(),
        cause: "a test".to_owned(),
        at: at(50),
    }
}

pub(crate) fn a_token(n: u64, account_n: u64, kind: TokenKind) -> Token {
    Token {
        id: token(n),
        account: account(account_n),
        kind,
        device: (kind == TokenKind::Device).then(|| device(account_n)),
        hash: digest(&format!("token {n}")),
        created_at: at(2),
        expires_at: Some(at(3600)),
        used_at: None,
        revoked_at: None,
    }
}

/// The contest that both take part in.
pub(crate) const BATTLE: u64 = 1;

/// Account 1 and account 2, each with one of everything under its own number: a device that earned trust, a run
/// that it attested, an evaluation of it with every fact, work handed in for a contest. Device 10 of account 1 and
/// device 20 of account 2 are pending, with a key.
pub(crate) fn furnish(sql: &mut dyn Sql) {
    write(sql, |sql| {
        let contest = Battle {
            id: battle(BATTLE),
            name: "contest".to_owned(),
            created_at: at(0),
        };
        assert!(battles::add(sql, &contest)?);
        for n in [1, 2] {
            furnish_account(sql, n)?;
            assert!(devices::add(sql, &a_device(10 * n, n))?);
            keys::set_key(sql, &first_keys(10 * n))?;
        }
        Ok(())
    });
}

fn furnish_account(sql: &mut dyn Sql, n: u64) -> Result<(), StoreError> {
    assert!(accounts::add(sql, &an_account(n))?);
    approve(sql, n, n)?;
    assert!(tokens::add(sql, &a_token(n, n, TokenKind::Device))?);
    assert!(tokens::add(sql, &a_token(10 * n, n, TokenKind::Enrol))?);
    assert!(nonces::spend(sql, device(n), nonce(1), at(11))?);
    let fresh = Runner {
        id: runner(n),
        account: account(n),
        name: "runner".to_owned(),
        created_at: at(5),
        last_heartbeat: None,
    };
    assert!(runners::add(sql, &fresh)?);
    let bound = Binding {
        account: account(n),
        device: device(n),
        runner: runner(n),
        bound_at: at(6),
        unbound_at: None,
        order: ordered(sql, "bind", n)?,
    };
    assert!(bindings::bind(sql, &bound)?);
    let contender = Agent {
        id: agent(n),
        account: account(n),
        name: "agent".to_owned(),
        created_at: at(5),
    };
    assert!(agents::add(sql, &contender)?);
    let registered = TermsRow {
        id: terms_id(n),
        account: account(n),
        digest: digest("terms"),
        document: "{}".to_owned(),
        registered_at: at(7),
        order: ordered(sql, "terms", n)?,
    };
    assert!(terms::add(sql, &registered)?);
    beat(sql, n, 12)?;
    assert!(runners::note_heartbeat(sql, device(n), runner(n), at(12))?);
    furnish_run(sql, n)?;
    furnish_work(sql, n)
}

fn furnish_run(sql: &mut dyn Sql, n: u64) -> Result<(), StoreError> {
    assert!(runs::add(sql, &a_run(n, n))?);
    let named = RunSession {
        run: run(n),
        account: account(n),
        session: SessionId::new(format!("session-{n}")).unwrap(),
        since: at(24),
    };
    assert!(runs::name_session(sql, &named)?);
    let checkpoint = RunCheckpoint {
        run: run(n),
        size: 3,
        root: digest("root so far"),
        note: "note".to_owned(),
        received_at: at(25),
    };
    assert!(runs::add_checkpoint(sql, &checkpoint)?);
    let bundle = BundleRow {
        run: run(n),
        digest: digest("bundle"),
        bytes: 1234,
        root: digest("root"),
        size: 9,
        received_at: at(30),
    };
    assert!(bundles::add(sql, &bundle)?);
    let first = AttestationRow {
        device_level: DeviceLevel::Approved,
        received_at: at(35),
        ..an_attestation(100 + n, n)
    };
    assert!(attestations::add(sql, &first)?);
    let (from, to) = (DeviceLevel::Approved, DeviceLevel::Trusted);
    let promotion = a_move(n, from, to, DeviceEvent::Promote, DeviceActor::Server);
    levels::set_level(sql, &promotion)?;
    assert!(attestations::add(sql, &an_attestation(n, n))?);
    evaluations::add(sql, &an_evaluation(n, n, FactSet::FULL))
}

fn furnish_work(sql: &mut dyn Sql, n: u64) -> Result<(), StoreError> {
    let part = Participation {
        battle: battle(BATTLE),
        account: account(n),
        agent: agent(n),
        at: at(8),
    };
    assert!(battles::join(sql, &part)?);
    let work = Submission {
        id: submission(n),
        account: account(n),
        battle: Some(battle(BATTLE)),
        content: "work".to_owned(),
        created_at: at(60),
    };
    assert!(submissions::add(sql, &work)?);
    assert!(submissions::link(sql, submission(n), run(n), account(n))?);
    Ok(())
}
