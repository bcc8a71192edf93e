//! Whose pack it is: the author's signature over every file, and the authors who count here.

use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::statement::{Envelope, Issued, Nonce, PackPublished, StatementError};
use lodestar_core::time::Timestamp;
use thiserror::Error;

use super::OutsidePack;

/// Why a pack is not taken for its author's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unsealed {
    /// Nobody signed it.
    #[error("nobody signed it: there is no pack.sig")]
    Unsigned,
    /// What lies there is no signature.
    #[error("pack.sig is no signature: {0}")]
    Malformed(StatementError),
    /// The author's key is not pinned here.
    #[error("its author `{author}` is not known here: no key is pinned under that name")]
    Unknown {
        /// Who it says that it is from.
        author: String,
    },
    /// The signature is not the author's.
    #[error("the signature is not that of `{author}`: {problem}")]
    NotTheirs {
        /// Who it says that it is from.
        author: String,
        /// Why.
        problem: StatementError,
    },
    /// A file was changed since.
    #[error("`{0}` is not as it was signed")]
    Changed(String),
    /// A file is missing.
    #[error("`{0}` was signed, and is not there")]
    Missing(String),
    /// A file was added.
    #[error("`{0}` is there, and was not signed")]
    Extra(String),
    /// Name, version or author are others.
    #[error("the signature is for `{0}`, which is another pack, version or author")]
    Another(String),
}

impl OutsidePack {
    /// The author's word on exactly these files.
    pub fn seal(
        &self,
        key: &SecretKey,
        nonce: Nonce,
        issued_at: Timestamp,
    ) -> Result<Envelope, StatementError> {
        let issued = Issued {
            expires_at: None,
            issued_at,
            key_id: key.public().key_id(),
            nonce,
            subject: self.published(),
        };
        Envelope::sign(&issued, key)
    }

    fn published(&self) -> PackPublished {
        PackPublished {
            author: self.about.author.clone(),
            files: self.files.listed(),
            name: self.about.name.clone(),
            version: self.about.version.clone(),
        }
    }

    /// Whether it is as its author signed it. A key counts for the author under whose name it is pinned, and
    /// for nobody else.
    pub fn verify(&self, authors: &[(String, PublicKey)]) -> Result<PublicKey, Unsealed> {
        let author = &self.about.author;
        let signature = self.files.signature.as_deref().ok_or(Unsealed::Unsigned)?;
        let signature = Envelope::from_json(signature).map_err(Unsealed::Malformed)?;
        let pinned = authors.iter().find(|(name, _)| name == author);
        let (_, key) = pinned.ok_or_else(|| Unsealed::Unknown {
            author: author.clone(),
        })?;
        let verified = signature
            .verify_undated::<PackPublished>(std::slice::from_ref(key))
            .map_err(|problem| Unsealed::NotTheirs {
                author: author.clone(),
                problem,
            })?;
        self.compare(verified.subject())?;
        Ok(*key)
    }

    fn compare(&self, signed: &PackPublished) -> Result<(), Unsealed> {
        let here = self.published();
        for file in &signed.files {
            match here.files.iter().find(|one| one.name == file.name) {
                None => return Err(Unsealed::Missing(file.name.clone())),
                Some(one) if one != file => return Err(Unsealed::Changed(file.name.clone())),
                Some(_) => {}
            }
        }
        let is_signed = |name: &str| signed.files.iter().any(|one| one.name == name);
        if let Some(extra) = here.files.iter().find(|one| !is_signed(&one.name)) {
            return Err(Unsealed::Extra(extra.name.clone()));
        }
        match here == *signed {
            true => Ok(()),
            false => Err(Unsealed::Another(format!(
                "{} {} of {}",
                signed.name, signed.version, signed.author
            ))),
        }
    }
}
