//! Devices' words on runs, with what the server derived itself when each came.

use lodestar_core::device::DeviceLevel;
use lodestar_core::digest::Digest;
use lodestar_core::id::{AccountId, AttestationId, DeviceId, RunId};
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;

use super::sql::{Columns, all, insert, one};
use super::value::values;
use super::{Row, Sql, StoreError};

/// An attestation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttestationRow {
    /// Which.
    pub id: AttestationId,
    /// Whose.
    pub account: AccountId,
    /// Of which run.
    pub run: RunId,
    /// The device that registered the run.
    pub device: DeviceId,
    /// SHA-256 of the statement: one counts once.
    pub statement: Digest,
    /// Its nonce.
    pub nonce: Nonce,
    /// The root of the run's log.
    pub root: Digest,
    /// Events in it.
    pub size: u64,
    /// Where the device stood when it came; the database compares.
    pub device_level: DeviceLevel,
    /// Whether every field equals what the server stored.
    pub valid: bool,
    /// Whether the device's key signed it. It counts for the device's trust then.
    pub signature_ok: bool,
    /// Whether the server verified the run's log.
    pub gateway_verified: bool,
    /// Whether the server found everything in it to follow from the terms.
    pub policy_passed: bool,
    /// Whether the runner was bound to the device.
    pub runner_bound: bool,
    /// Whether the runner was heard of lately.
    pub runner_fresh: bool,
    /// The envelope, as it came.
    pub envelope: String,
    /// When, by the server's clock.
    pub received_at: Timestamp,
}

impl Columns for AttestationRow {
    fn read(mut row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.read()?,
            account: row.read()?,
            run: row.read()?,
            device: row.read()?,
            statement: row.read()?,
            nonce: row.read()?,
            root: row.read()?,
            size: row.read()?,
            device_level: row.read()?,
            valid: row.read()?,
            signature_ok: row.read()?,
            gateway_verified: row.read()?,
            policy_passed: row.read()?,
            runner_bound: row.read()?,
            runner_fresh: row.read()?,
            envelope: row.read()?,
            received_at: row.read()?,
        })
    }
}

/// Keeps an attestation, and notes on the device when it last attested if this one counts; `false` if the statement, or the device's nonce, was there before.
///
/// Refused by the database if the run is another account's or another device's, if the device's level is not the one
/// that is written or is one from which no attestation is taken, or if what the server derived has nothing behind it:
/// a verified log needs its bundle and a checkpoint before that, a fresh runner its binding.
pub fn add(sql: &mut dyn Sql, attestation: &AttestationRow) -> Result<bool, StoreError> {
    insert(
        sql,
        "INSERT INTO attestations (id, account, run, device, statement, nonce, root, size, device_level, valid,
         signature_ok, gateway_verified, policy_passed, runner_bound, runner_fresh, envelope, received_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING",
        values![
            attestation.id,
            attestation.account,
            attestation.run,
            attestation.device,
            attestation.statement,
            attestation.nonce,
            attestation.root,
            attestation.size,
            attestation.device_level,
            attestation.valid,
            attestation.signature_ok,
            attestation.gateway_verified,
            attestation.policy_passed,
            attestation.runner_bound,
            attestation.runner_fresh,
            &attestation.envelope,
            attestation.received_at
        ],
    )
}

/// One of them.
pub fn get(sql: &mut dyn Sql, id: AttestationId) -> Result<Option<AttestationRow>, StoreError> {
    one(
        sql,
        "SELECT id, account, run, device, statement, nonce, root, size, device_level, valid, signature_ok,
         gateway_verified, policy_passed, runner_bound, runner_fresh, envelope, received_at FROM attestations WHERE id = $1",
        values![id],
    )
}

/// The one with this statement.
pub fn by_statement(
    sql: &mut dyn Sql,
    statement: Digest,
) -> Result<Option<AttestationRow>, StoreError> {
    one(
        sql,
        "SELECT id, account, run, device, statement, nonce, root, size, device_level, valid, signature_ok,
         gateway_verified, policy_passed, runner_bound, runner_fresh, envelope, received_at FROM attestations
         WHERE statement = $1",
        values![statement],
    )
}

/// Those of a run, in the order in which they came.
pub fn of_run(sql: &mut dyn Sql, run: RunId) -> Result<Vec<AttestationRow>, StoreError> {
    all(
        sql,
        "SELECT id, account, run, device, statement, nonce, root, size, device_level, valid, signature_ok,
         gateway_verified, policy_passed, runner_bound, runner_fresh, envelope, received_at FROM attestations
         WHERE run = $1 ORDER BY received_at, id",
        values![run],
    )
}

/// Those of a device since a moment, that moment included: what a revocation puts in doubt.
pub fn of_device_since(
    sql: &mut dyn Sql,
    device: DeviceId,
    since: Timestamp,
) -> Result<Vec<AttestationRow>, StoreError> {
    all(
        sql,
        "SELECT id, account, run, device, statement, nonce, root, size, device_level, valid, signature_ok,
         gateway_verified, policy_passed, runner_bound, runner_fresh, envelope, received_at FROM attestations
         WHERE device = $1 AND received_at >= $2 ORDER BY received_at, id",
        values![device, since],
    )
}
