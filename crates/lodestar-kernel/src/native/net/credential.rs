//! Secrets: where they come from, and that they do not come back out.
//!
//! A secret is read once, when its tool is made; it is never part of a configuration, an argument,
//! an error or an output. A server that echoes it gets a marker in its place.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use lodestar_core::name::Excerpt;
use memchr::memmem;
use thiserror::Error;
use zeroize::Zeroizing;

/// Stands where a credential was.
pub const SCRUBBED: &str = "[credential removed]";

/// Shorter secrets would be found all over ordinary text, and guessed besides.
pub const MIN_SECRET_LEN: usize = 8;

/// Longest secret in bytes: what servers take as one header.
pub const MAX_SECRET_LEN: usize = 4096;

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An environment variable.
    Env(String),
    /// A file that nobody else reads.
    File(PathBuf),
}

/// Why there is no secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CredentialError {
    /// Both an environment variable and a file.
    #[error("a credential has one source; name an environment variable or a file, not both")]
    TwoSources,
    /// The variable is not set, or not text.
    #[error("the environment variable `{name}` is not set to text; set it, or name a file")]
    NotSet {
        /// Its name, inert.
        name: Excerpt,
    },
    /// The file cannot be read.
    #[error("the credential file `{path}` cannot be read: {reason}")]
    Unreadable {
        /// The file, inert.
        path: Excerpt,
        /// What the system says.
        reason: String,
    },
    /// Others can read or change the file.
    #[error(
        "the credential file `{path}` is open to others (mode {mode:04o}); run `chmod 600` on it"
    )]
    OpenToOthers {
        /// The file, inert.
        path: Excerpt,
        /// Its permission bits.
        mode: u32,
    },
    /// The file belongs to somebody else.
    #[error("the credential file `{path}` belongs to another user; own it yourself")]
    OtherOwner {
        /// The file, inert.
        path: Excerpt,
    },
    /// Not a value that fits in one line.
    #[error(
        "the credential from {source_of} is not {MIN_SECRET_LEN} to {MAX_SECRET_LEN} visible ASCII characters on one line"
    )]
    Unfit {
        /// Where it came from.
        source_of: String,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the environment variable `{}`", Excerpt::of(name)),
            Self::File(path) => write!(f, "the file `{}`", shown(path)),
        }
    }
}

fn shown(path: &Path) -> Excerpt {
    Excerpt::of(&path.to_string_lossy())
}

impl Source {
    /// The source that a configuration names, if it names one.
    pub fn of(env: Option<&str>, file: Option<&Path>) -> Result<Option<Self>, CredentialError> {
        match (env, file) {
            (Some(_), Some(_)) => Err(CredentialError::TwoSources),
            (Some(name), None) => Ok(Some(Self::Env(name.to_owned()))),
            (None, Some(path)) => Ok(Some(Self::File(path.to_owned()))),
            (None, None) => Ok(None),
        }
    }

    /// Reads the secret; blanks and line ends around it are no part of it.
    pub fn read(&self) -> Result<Secret, CredentialError> {
        let text =
            match self {
                Self::Env(name) => std::env::var(name).map(Zeroizing::new).map_err(|_| {
                    CredentialError::NotSet {
                        name: Excerpt::of(name),
                    }
                })?,
                Self::File(path) => read_private(path)?,
            };
        let text = text.trim();
        let fits = (MIN_SECRET_LEN..=MAX_SECRET_LEN).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if !fits {
            return Err(CredentialError::Unfit {
                source_of: self.to_string(),
            });
        }
        Ok(Secret(Zeroizing::new(text.to_owned())))
    }
}

/// Reads a file that only its owner, who is us, may read or write. The open file is what is looked
/// at, so it cannot be exchanged in between.
fn read_private(path: &Path) -> Result<Zeroizing<String>, CredentialError> {
    let unreadable = |reason: String| CredentialError::Unreadable {
        path: shown(path),
        reason,
    };
    // A pipe would otherwise hold us here until somebody writes to it.
    let before = std::fs::metadata(path).map_err(|e| unreadable(e.to_string()))?;
    if !before.is_file() {
        return Err(unreadable("it is not a regular file".into()));
    }
    let file = File::open(path).map_err(|e| unreadable(e.to_string()))?;
    let found = file.metadata().map_err(|e| unreadable(e.to_string()))?;
    if found.mode() & 0o077 != 0 {
        return Err(CredentialError::OpenToOthers {
            path: shown(path),
            mode: found.mode() & 0o7777,
        });
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(CredentialError::OtherOwner { path: shown(path) });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(2 * MAX_SECRET_LEN as u64)
        .read_to_string(&mut text)
        .map_err(|e| unreadable(e.to_string()))?;
    Ok(text)
}

/// A secret: wiped when dropped, never shown.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A secret that was part of another, such as one of several headers in one variable.
    pub fn part(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The secret itself, for the one place that sends or uses it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Finds a secret in what comes back: as it is, and as servers commonly write it in echoes.
///
/// Case does not count, since headers lose theirs. A server that wants to hide it well can; this is
/// against echoes, not against a thief who has it already.
pub(crate) struct Scrubber {
    forms: Vec<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrubber(..)")
    }
}

impl Scrubber {
    /// One that finds nothing.
    pub(crate) fn none() -> Self {
        Self { forms: Vec::new() }
    }

    /// One that finds this secret.
    pub(crate) fn of(secret: &Secret) -> Self {
        Self::of_all(std::iter::once(secret))
    }

    /// One that finds each of these secrets.
    pub(crate) fn of_all<'a>(secrets: impl Iterator<Item = &'a Secret>) -> Self {
        let mut forms: Vec<_> = secrets.flat_map(every_form_of).collect();
        for form in &mut forms {
            form.make_ascii_lowercase();
        }
        // The longest first, so that no part is left of a form that contains another.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        Self { forms }
    }
    /// Whether there is anything to find.
    pub(crate) fn is_armed(&self) -> bool {
        !self.forms.is_empty()
    }

    /// The bytes with markers for secrets, and how many there were.
    pub(crate) fn scrub(&self, bytes: Vec<u8>) -> (Vec<u8>, usize) {
        let mut bytes = bytes;
        let mut count = 0;
        for form in &self.forms {
            let lower = bytes.to_ascii_lowercase();
            let found: Vec<usize> = memmem::find_iter(&lower, form.as_slice()).collect();
            if found.is_empty() {
                continue;
            }
            count += found.len();
            let mut kept = Vec::with_capacity(bytes.len());
            let mut from = 0;
            for at in found {
                kept.extend_from_slice(&bytes[from..at]);
                kept.extend_from_slice(SCRUBBED.as_bytes());
                from = at + form.len();
            }
            kept.extend_from_slice(&bytes[from..]);
            bytes = kept;
        }
        (bytes, count)
    }

    /// The same for text.
    pub(crate) fn scrub_text(&self, text: &str) -> (String, usize) {
        let (bytes, count) = self.scrub(text.as_bytes().to_vec());
        (String::from_utf8_lossy(&bytes).into_owned(), count)
    }
}

/// How a server may write a secret, or what is inside it.
fn every_form_of(secret: &Secret) -> Vec<Zeroizing<Vec<u8>>> {
    let raw = secret.expose();
    let mut texts = forms_of(raw.as_bytes());
    // `Basic` credentials: what matters is inside.
    for word in raw.split(' ') {
        let decoded = STANDARD.decode(word).map(Zeroizing::new);
        if let Ok(decoded) = decoded
            && decoded.len() >= MIN_SECRET_LEN
        {
            texts.extend(forms_of(&decoded));
            if let Some(at) = decoded.iter().position(|&b| b == b':')
                && decoded.len() - at > MIN_SECRET_LEN
            {
                texts.extend(forms_of(&decoded[at + 1..]));
            }
        }
        if word.len() >= MIN_SECRET_LEN && word.len() < raw.len() {
            texts.extend(forms_of(word.as_bytes()));
        }
    }
    texts
}

/// How a server may write a secret.
fn forms_of(secret: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let hex: String = secret.iter().map(|b| format!("{b:02x}")).collect();
    let percent: String = url::form_urlencoded::byte_serialize(secret).collect();
    let mut forms = vec![
        secret.to_vec(),
        STANDARD.encode(secret).into_bytes(),
        STANDARD_NO_PAD.encode(secret).into_bytes(),
        URL_SAFE.encode(secret).into_bytes(),
        URL_SAFE_NO_PAD.encode(secret).into_bytes(),
        hex.into_bytes(),
        percent.replace('+', "%20").into_bytes(),
        percent.into_bytes(),
    ];
    if let Ok(text) = std::str::from_utf8(secret)
        && let Ok(json) = serde_json::to_string(text)
    {
        forms.push(json.trim_matches('"').as_bytes().to_vec());
        forms.push(json.trim_matches('"').replace('/', "\\/").into_bytes());
        forms.push(
            text.replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
                .into_bytes(),
        );
    }
    forms.into_iter().map(Zeroizing::new).collect()
}
