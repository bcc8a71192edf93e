//! What is remembered of the store, so that a heartbeat costs no question before its own: tokens, keys,
//! and the policies of terms.
//!
//! Only the deciding thread puts something here, out of its store; what changes there is forgotten here at the
//! same time, and everything after a failure. Whatever is decided on what was remembered is looked at again
//! when it is decided.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use lodestar_core::digest::Digest;
use lodestar_core::id::{AccountId, DeviceId, TermsId, TokenId};
use lodestar_core::key::PublicKey;

use crate::store::tokens::{Token, TokenKind};

/// Most that is remembered of one kind; beyond it, all of that kind is forgotten.
const MOST: usize = 1 << 17;

/// Who asks, by a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The token.
    pub token: TokenId,
    /// Its hash.
    pub hash: Digest,
    /// The account.
    pub account: AccountId,
    /// What the token opens.
    pub kind: TokenKind,
    /// The device, if it is one's.
    pub device: Option<DeviceId>,
}

impl From<&Token> for Identity {
    fn from(token: &Token) -> Self {
        Self {
            token: token.id,
            hash: token.hash,
            account: token.account,
            kind: token.kind,
            device: token.device,
        }
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Caller {
    /// Nobody that is known.
    #[default]
    Nobody,
    /// Whoever has this token.
    Known(Identity),
    /// Whoever runs the service.
    Platform,
}

/// Whose a device is, and its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) account: AccountId,
    pub(super) key: Option<PublicKey>,
}

#[derive(Debug, Default)]
struct Remembered {
    tokens: HashMap<Digest, Token>,
    devices: HashMap<DeviceId, Keys>,
    owners: HashMap<AccountId, PublicKey>,
    policies: HashMap<TermsId, (AccountId, Digest)>,
}

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Known(RwLock<Remembered>);

fn put<K: Hash + Eq, V>(map: &mut HashMap<K, V>, key: K, value: V) {
    if map.len() >= MOST {
        map.clear();
    }
    map.insert(key, value);
}

impl Known {
    fn read(&self) -> RwLockReadGuard<'_, Remembered> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Remembered> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn token(&self, hash: Digest) -> Option<Token> {
        self.read().tokens.get(&hash).cloned()
    }

    pub(super) fn remember_token(&self, token: Token) {
        put(&mut self.write().tokens, token.hash, token);
    }

    pub(super) fn forget_token(&self, hash: Digest) {
        self.write().tokens.remove(&hash);
    }

    pub(super) fn forget_tokens_of(&self, account: AccountId) {
        let mut remembered = self.write();
        remembered
            .tokens
            .retain(|_, token| token.account != account);
    }

    pub(super) fn keys(&self, device: DeviceId) -> Option<Keys> {
        self.read().devices.get(&device).copied()
    }

    pub(super) fn remember_keys(&self, device: DeviceId, keys: Keys) {
        put(&mut self.write().devices, device, keys);
    }

    pub(super) fn forget_keys(&self, device: DeviceId) {
        self.write().devices.remove(&device);
    }

    pub(super) fn owner(&self, account: AccountId) -> Option<PublicKey> {
        self.read().owners.get(&account).copied()
    }

    pub(super) fn remember_owner(&self, account: AccountId, key: PublicKey) {
        put(&mut self.write().owners, account, key);
    }

    pub(super) fn policy(&self, account: AccountId, terms: TermsId) -> Option<Digest> {
        let found = self.read().policies.get(&terms).copied();
        found
            .filter(|(owner, _)| *owner == account)
            .map(|(_, policy)| policy)
    }

    /// Terms never change, so this may be remembered by anybody.
    pub(super) fn remember_policy(&self, account: AccountId, terms: TermsId, policy: Digest) {
        put(&mut self.write().policies, terms, (account, policy));
    }

    pub(super) fn forget_all(&self) {
        *self.write() = Remembered::default();
    }
}
