//! Whose rows count: signing them, and telling a genuine one from an edited or foreign one.
//!
//! Rows that are signed together, those of one event or some of them, are the leaves of a tree whose root is signed once. `signature` is
//!
//! | bytes | what |
//! |---|---|
//! | 0..4, 4..8 | place of the row among those that are signed together, and their number, big-endian |
//! | 8..72 | Ed25519 signature over domain, number and root |
//! | 72..104 | root |
//! | 104.. | hashes from the row up to the root, 32 bytes each |
//!
//! `seal` is a keyed hash of the same digest. Only the installation itself can make or check it;
//! one that is right spares the signature's arithmetic, one that is wrong decides nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use lodestar_core::chain::Rigour;
use lodestar_core::defence::Defence;
use lodestar_core::digest::{Digest, leaf_hash, sha256_parts};
use lodestar_core::key::{KeyId, PublicKey, SecretKey};
use lodestar_core::merkle::InclusionProof;

use super::columns::StoredRow;
use super::tree;

/// Begins every message that is signed here; the NUL keeps it apart from signed notes, and the words
/// from signed statements.
const SIGNED: &[u8] = b"lodestar belief rows v1\0";
const SEAL_KEY: &[u8] = b"lodestar belief seal key v1\0";
const SEAL: &[u8] = b"lodestar belief seal v1\0";

/// Place, number, signature and root.
const FIXED_BYTES: usize = 4 + 4 + 64 + 32;

/// The keys by which rows and orders are judged, and how strictly: this installation's own, those of the
/// installations it trusts, and those of the people who may move beliefs.
pub struct Keyring {
    own: Arc<SecretKey>,
    own_id: KeyId,
    seal: [u8; 32],
    // INVARIANT: has the own key.
    installations: BTreeMap<String, PublicKey>,
    operators: Vec<PublicKey>,
    rigour: Rigour,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("own", &self.own_id)
            .field("installations", &self.installations.len())
            .field("operators", &self.operators.len())
            .finish_non_exhaustive()
    }
}

/// What a row is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A trusted installation wrote it so.
    Genuine,
    /// It names a trusted installation, which did not write it so.
    Edited,
    /// It names an installation that is not trusted here: it counts as imported.
    Foreign,
}

impl Keyring {
    /// The ring of an installation that trusts nobody else yet.
    pub fn new(own: Arc<SecretKey>) -> Self {
        let public = own.public();
        let own_id = public.key_id();
        Self {
            seal: *sha256_parts(&[SEAL_KEY, own.seed()]).as_bytes(),
            installations: BTreeMap::from([(own_id.as_str().to_owned(), public)]),
            own_id,
            own,
            operators: Vec::new(),
            rigour: Rigour::FULL,
        }
    }

    /// Trusts the rows of other installations too.
    pub fn trusting(mut self, installations: impl IntoIterator<Item = PublicKey>) -> Self {
        self.installations.extend(
            installations
                .into_iter()
                .map(|key| (key.key_id().as_str().to_owned(), key)),
        );
        self
    }

    /// Lets these people move beliefs.
    pub fn with_operators(mut self, operators: impl IntoIterator<Item = PublicKey>) -> Self {
        self.operators.extend(operators);
        self
    }

    /// For a harness that takes defences out: a firewall with this ring, and a fold by it, go without
    /// these. Without [`Defence::RowSignatures`] every row is genuine.
    #[must_use]
    pub fn without(self, defences: &[Defence]) -> Self {
        Self {
            rigour: Rigour::without(defences),
            ..self
        }
    }

    /// How strictly beliefs are judged by it.
    pub fn rigour(&self) -> Rigour {
        self.rigour
    }

    /// The keys of the people who may move beliefs.
    pub fn operators(&self) -> &[PublicKey] {
        &self.operators
    }

    /// This installation's key id.
    pub fn own_id(&self) -> &KeyId {
        &self.own_id
    }

    /// Signs rows of one event, together, and seals each.
    pub fn sign(&self, rows: &mut [StoredRow]) {
        if rows.is_empty() {
            return;
        }
        let digests: Vec<_> = rows.iter().map(StoredRow::digest).collect();
        let leaves: Vec<_> = digests.iter().map(|d| leaf_hash(d.as_bytes())).collect();
        let (root, paths) = tree::paths(&leaves);
        let size = u32::try_from(rows.len()).expect("INVARIANT: an event has few rows");
        let signature = self.own.sign(&message(size, &root));
        for (place, ((row, digest), path)) in
            (0_u32..).zip(rows.iter_mut().zip(&digests).zip(paths))
        {
            let mut bytes = Vec::with_capacity(FIXED_BYTES + 32 * path.len());
            bytes.extend_from_slice(&place.to_be_bytes());
            bytes.extend_from_slice(&size.to_be_bytes());
            bytes.extend_from_slice(&signature);
            bytes.extend_from_slice(root.as_bytes());
            path.iter()
                .for_each(|hash| bytes.extend_from_slice(hash.as_bytes()));
            row.signature = bytes;
            row.signer = self.own_id.as_str().to_owned();
            row.seal = self.seal(digest);
        }
    }

    fn seal(&self, digest: &Digest) -> [u8; 32] {
        // Key and digest have fixed lengths, so a plain prefix makes a sound keyed hash.
        *sha256_parts(&[SEAL, &self.seal, digest.as_bytes()]).as_bytes()
    }

    /// What a row is worth.
    pub fn standing(&self, row: &StoredRow) -> Standing {
        if !self.rigour.keeps(Defence::RowSignatures) {
            return Standing::Genuine;
        }
        let Some(key) = self.installations.get(&row.signer) else {
            return Standing::Foreign;
        };
        let digest = row.digest();
        let sealed = row.signer == self.own_id.as_str() && row.seal == self.seal(&digest);
        if sealed || is_signed(row, &digest, key) {
            Standing::Genuine
        } else {
            Standing::Edited
        }
    }

    /// Whether the signature itself is right, whatever the seal says: for audits.
    pub fn has_right_signature(&self, row: &StoredRow) -> bool {
        self.installations
            .get(&row.signer)
            .is_some_and(|key| is_signed(row, &row.digest(), key))
    }
}

fn message(size: u32, root: &Digest) -> Vec<u8> {
    [SIGNED, &size.to_be_bytes(), root.as_bytes()].concat()
}

fn is_signed(row: &StoredRow, digest: &Digest, key: &PublicKey) -> bool {
    let Some((fixed, path)) = row.signature.split_first_chunk::<FIXED_BYTES>() else {
        return false;
    };
    let (hashes, []) = path.as_chunks::<32>() else {
        return false;
    };
    let number =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let mut signature = [0; 64];
    signature.copy_from_slice(&fixed[8..72]);
    let mut root = [0; 32];
    root.copy_from_slice(&fixed[72..]);
    let root = Digest::from_bytes(root);
    let proof = InclusionProof {
        index: u64::from(number(0)),
        size: u64::from(number(4)),
        hashes: hashes
            .iter()
            .map(|hash| Digest::from_bytes(*hash))
            .collect(),
    };
    proof.verify(&leaf_hash(digest.as_bytes()), &root).is_ok()
        && key.verify(&message(number(4), &root), &signature).is_ok()
}
