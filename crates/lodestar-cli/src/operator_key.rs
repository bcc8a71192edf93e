//! An operator's private key on disk: as it is, or sealed with a passphrase.
//!
//! ```text
//! lodestar-operator-key-v1
//! public alice+9c0d24f1+AbC…
//! kdf argon2id m=65536 t=3 p=1 salt=<32 hex digits>
//! cipher xchacha20poly1305 nonce=<48 hex digits>
//! sealed <96 hex digits>
//! ```
//!
//! The last line is the 32-byte seed and its tag; everything above it is authenticated with it, so
//! that neither parameters nor name can be exchanged. An unsealed key is one `PRIVATE+KEY+…` line.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use lodestar_core::digest::{decode_hex, encode_hex};
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::note::{NoteKey, encode_secret, parse_secret};
use zeroize::Zeroizing;

use crate::failure::Failure;

const FORMAT: &str = "lodestar-operator-key-v1";
/// 64 MiB and three passes: a guess costs about a tenth of a second and memory that does not fit
/// thousands of times on one card.
const COST: Cost = Cost {
    memory_kib: 64 << 10,
    passes: 3,
    lanes: 1,
};
/// What a key file may ask of the machine that reads it.
const MOST: Cost = Cost {
    memory_kib: 1 << 20,
    passes: 32,
    lanes: 16,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// A key file, read.
pub(crate) enum OperatorKey {
    /// Anyone who can read the file can sign.
    Plain(SecretKey),
    /// The passphrase is needed too.
    Sealed(Sealed),
}

/// The text of an unsealed key file.
pub(crate) fn plain(name: &str, key: &SecretKey) -> Result<Zeroizing<String>, Failure> {
    let secret = encode_secret(name, key).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Zeroizing::new(format!("{}\n", secret.as_str())))
}

/// The text of a sealed key file.
pub(crate) fn seal(public: &NoteKey, key: &SecretKey, passphrase: &str) -> Result<String, Failure> {
    let mut random = [0; 16 + 24];
    getrandom::fill(&mut random)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    let (salt, nonce) = random.split_at(16);
    let header = format!(
        "{FORMAT}\npublic {public}\nkdf argon2id m={} t={} p={} salt={}\ncipher xchacha20poly1305 nonce={}\n",
        COST.memory_kib,
        COST.passes,
        COST.lanes,
        hex(salt),
        hex(nonce),
    );
    let sealed = cipher(passphrase, salt, COST)?
        .encrypt(
            &nonce_of(nonce),
            Payload {
                msg: key.seed(),
                aad: header.as_bytes(),
            },
        )
        .map_err(|_| Failure::usage("the key cannot be sealed"))?;
    Ok(format!("{header}sealed {}\n", hex(&sealed)))
}

impl OperatorKey {
    /// Reads the text of a key file; the reason never repeats any of it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with(FORMAT) {
            return Sealed::parse(text)
                .map(Self::Sealed)
                .ok_or_else(|| "its lines are not those of a sealed key".to_owned());
        }
        parse_secret(text.trim_end_matches('\n'))
            .map(|(_, key)| Self::Plain(key))
            .map_err(|e| e.to_string())
    }
}

impl OperatorKey {
    /// The public key, as the file says: only opening a sealed one proves it.
    pub(crate) fn public(&self) -> PublicKey {
        match self {
            Self::Plain(key) => key.public(),
            Self::Sealed(sealed) => *sealed.public.public_key(),
        }
    }
}

/// A key that a passphrase opens.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// Everything above the sealed line, as it stands.
    header: String,
    public: NoteKey,
    cost: Cost,
    salt: [u8; 16],
    nonce: [u8; 24],
    sealed: [u8; 48],
}

impl Sealed {
    /// The name in the file.
    pub(crate) fn name(&self) -> &str {
        self.public.name()
    }

    /// The key, if the passphrase is right and nothing in the file was changed.
    pub(crate) fn open(&self, passphrase: &str) -> Result<SecretKey, Failure> {
        let refused = || {
            Failure::not_authorised(format!(
                "the passphrase does not open the key of `{}`",
                self.name()
            ))
        };
        let payload = Payload {
            msg: &self.sealed,
            aad: self.header.as_bytes(),
        };
        let seed = cipher(passphrase, &self.salt, self.cost)?
            .decrypt(&nonce_of(&self.nonce), payload)
            .map_err(|_| refused())?;
        let seed = Zeroizing::new(seed);
        let seed: Zeroizing<[u8; 32]> =
            Zeroizing::new(seed.as_slice().try_into().map_err(|_| refused())?);
        let key = SecretKey::from_seed(*seed);
        match key.public() == *self.public.public_key() {
            true => Ok(key),
            false => Err(refused()),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (header, last) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let mut lines = header.split('\n');
        if lines.next()? != FORMAT {
            return None;
        }
        let public = lines.next()?.strip_prefix("public ")?.parse().ok()?;
        let mut kdf = lines.next()?.strip_prefix("kdf argon2id ")?.split(' ');
        let mut parameter = |name: &str| kdf.next()?.strip_prefix(name)?.strip_prefix('=');
        let cost = Cost {
            memory_kib: parameter("m")?.parse().ok()?,
            passes: parameter("t")?.parse().ok()?,
            lanes: parameter("p")?.parse().ok()?,
        };
        let salt = decode_hex(parameter("salt")?.as_bytes())?;
        let nonce = lines
            .next()?
            .strip_prefix("cipher xchacha20poly1305 nonce=")?;
        let within = cost.memory_kib <= MOST.memory_kib
            && cost.passes <= MOST.passes
            && cost.lanes <= MOST.lanes;
        if lines.next().is_some() || kdf.next().is_some() || !within {
            return None;
        }
        Some(Self {
            header: format!("{header}\n"),
            public,
            cost,
            salt,
            nonce: decode_hex(nonce.as_bytes())?,
            sealed: decode_hex(last.strip_prefix("sealed ")?.as_bytes())?,
        })
    }
}

fn cipher(passphrase: &str, salt: &[u8], cost: Cost) -> Result<XChaCha20Poly1305, Failure> {
    let cannot = |e: argon2::Error| Failure::usage(format!("the passphrase cannot be used: {e}"));
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(32)).map_err(cannot)?;
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, key.as_mut_slice())
        .map_err(cannot)?;
    Ok(XChaCha20Poly1305::new(&Key::from(*key)))
}

fn nonce_of(bytes: &[u8]) -> XNonce {
    XNonce::try_from(bytes).expect("a nonce has 24 bytes")
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = Vec::new();
    encode_hex(bytes, &mut hex);
    String::from_utf8(hex).expect("hexadecimal digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> (NoteKey, SecretKey) {
        let key = SecretKey::from_seed([7; 32]);
        let public = NoteKey::ed25519("alice", &key.public()).expect("a name");
        (public, key)
    }

    fn parse_sealed(text: &str) -> Sealed {
        match OperatorKey::parse(text) {
            Ok(OperatorKey::Sealed(sealed)) => sealed,
            _ => panic!("not sealed: {text}"),
        }
    }

    #[test]
    fn the_right_passphrase_opens_and_no_other() {
        let (public, key) = key();
        let text = seal(&public, &key, "correct horse").expect("sealed");
        let sealed = parse_sealed(&text);
        assert_eq!(sealed.name(), "alice");
        let opened = sealed.open("correct horse").expect("opens");
        assert_eq!(opened.public(), key.public());
        for wrong in ["", "correct hors", "correct horse ", "Correct horse"] {
            assert!(sealed.open(wrong).is_err());
        }
    }

    #[test]
    fn the_seed_is_not_in_the_file_and_two_seals_differ() {
        let (public, key) = key();
        let one = seal(&public, &key, "pass phrase").expect("sealed");
        let two = seal(&public, &key, "pass phrase").expect("sealed");
        assert_ne!(one, two);
        assert!(!one.contains(&hex(key.seed())));
    }

    /// Who has the file and not the passphrase pays for every guess.
    #[test]
    fn a_guess_takes_time_and_memory() {
        let (public, key) = key();
        let sealed = parse_sealed(&seal(&public, &key, "correct horse").expect("sealed"));
        assert!(sealed.cost.memory_kib >= 64 << 10 && sealed.cost.passes >= 3);
        let begun = std::time::Instant::now();
        for guess in ["correct", "horse", "battery", "staple"] {
            assert!(sealed.open(guess).is_err());
        }
        let each = begun.elapsed() / 4;
        assert!(each.as_millis() >= 20, "a guess took {each:?}");
    }

    #[test]
    fn an_exchanged_name_is_noticed() {
        let (public, key) = key();
        let text = seal(&public, &key, "pass phrase").expect("sealed");
        let other = NoteKey::ed25519("mallory", &key.public()).expect("a name");
        let changed = text.replace(&public.to_string(), &other.to_string());
        assert!(parse_sealed(&changed).open("pass phrase").is_err());
    }

    #[test]
    fn a_file_may_not_ask_for_more_memory_than_is_sensible() {
        let (public, key) = key();
        let text = seal(&public, &key, "pass phrase").expect("sealed");
        for changed in [
            text.replace("m=65536", "m=4194304"),
            text.replace("t=3", "t=4000000"),
            text.replace("p=1", "p=1000"),
            text.replace("-v1", "-v2"),
            text.replace("sealed ", "sealed  "),
            format!("{text}\n"),
            text.trim_end().to_owned(),
        ] {
            assert!(OperatorKey::parse(&changed).is_err(), "{changed}");
        }
    }

    #[test]
    fn an_unsealed_key_reads_back() {
        let (_, key) = key();
        let text = plain("alice", &key).expect("written");
        match OperatorKey::parse(&text) {
            Ok(OperatorKey::Plain(read)) => assert_eq!(read.public(), key.public()),
            _ => panic!("not a plain key"),
        }
    }

    #[test]
    fn reasons_never_repeat_the_file() {
        for text in ["hunter2 is my secret", "PRIVATE+KEY+hunter2", FORMAT] {
            let reason = OperatorKey::parse(text).err().expect("refused");
            assert!(!reason.contains("hunter2"), "{reason}");
        }
    }
}
