//! Putting a policy into force with a signature, kept beside the policy's file.

use std::path::{Path, PathBuf};

use lodestar_core::digest::sha256;
use lodestar_core::key::SecretKey;
use lodestar_core::statement::{Envelope, Issued, Nonce, PolicyInForce, StatementError};
use lodestar_core::time::Timestamp;

/// What is appended to a policy's file name to name its signature's.
pub const SIGNATURE_SUFFIX: &str = ".sig";

/// Where the signature of a policy's file is kept: a DSSE envelope as JSON.
pub fn signature_path(policy: &Path) -> PathBuf {
    let mut path = policy.as_os_str().to_owned();
    path.push(SIGNATURE_SUFFIX);
    path.into()
}

/// Signs these bytes, and no others, as the policy.
pub fn sign(
    bytes: &[u8],
    key: &SecretKey,
    nonce: Nonce,
    issued_at: Timestamp,
    expires_at: Option<Timestamp>,
) -> Result<Envelope, StatementError> {
    let issued = Issued {
        expires_at,
        issued_at,
        key_id: key.public().key_id(),
        nonce,
        subject: PolicyInForce {
            policy: sha256(bytes),
        },
    };
    Envelope::sign(&issued, key)
}
