//! A policy of the operator's, signed with a key that the configuration pins.

use std::fs;

use lodestar_core::key::SecretKey;
use lodestar_log::Clock;
use lodestar_policy::{sign, signature_path};

use super::people::{Person, nonce};
use super::project::Project;
use crate::probe::Outcome;

/// The policy's file in a scratch project.
const FILE: &str = "policy.cedar";

impl Project<'_> {
    /// Puts this Cedar text in the place of the preset, signed by somebody whose key is pinned.
    pub fn policy(&mut self, text: &str) -> Outcome<Person> {
        let person = Person::new("policy")?;
        self.table(&format!(
            "[policy]\nfile = \"{FILE}\"\nkeys = [\"{}\"]\n",
            person.key.public()
        ));
        self.rewrite_policy(text)?;
        self.sign_policy(&person.key)?;
        Ok(person)
    }

    /// Writes another text over the policy. Its signature stays as it was.
    pub fn rewrite_policy(&self, text: &str) -> Outcome {
        self.write(FILE, text)
    }

    /// Signs the policy as it lies there.
    pub fn sign_policy(&self, key: &SecretKey) -> Outcome {
        let file = self.root().join(FILE);
        let signature = sign(
            &fs::read(&file)?,
            key,
            nonce()?,
            Clock::system().now(),
            None,
        )?;
        Ok(fs::write(signature_path(&file), signature.to_json())?)
    }

    /// Takes the signature away.
    pub fn unsign_policy(&self) -> Outcome {
        Ok(fs::remove_file(signature_path(&self.root().join(FILE)))?)
    }
}
