//! Large contents, kept beside the events: `blobs/<sha256 of the stored bytes>`, zstd.
//!
//! A payload that is too large for a line has its large values lifted out; `null` stands in their
//! place, and the payload's top-level `blobs` list says what belongs where. That key is the
//! writer's alone, so content that merely looks like a reference is never taken for one. The list
//! is part of the payload and not of the head, so that a redaction takes the content's hash too.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::sync::LazyLock;

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, Hasher, sha256};
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::disk;
use crate::error::AppendError;
use crate::line::MAX_PAYLOAD_BYTES;

/// Values larger than this do not stay in the line.
pub const SPILL_BYTES: usize = 16 << 10;
/// A line that is still larger than this after its long strings went gives up whole fields.
const CROWDED_BYTES: usize = 64 << 10;
/// The largest raw content: a bound for readers, who must not trust a size they read.
pub const MAX_BLOB_BYTES: u64 = 4 << 30;
/// The most that is put back into one payload in memory; what is larger can be checked, and read
/// from its files.
pub const MAX_RESTORED_BYTES: u64 = 64 << 20;
/// zstd's own default: text shrinks to a third at several hundred MB/s.
const COMPRESSION: i32 = 3;
/// The payload key under which the writer lists blobs.
pub(crate) const BLOBS_KEY: &str = "blobs";

/// One value that was lifted out of a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// JSON pointer (RFC 6901) to the `null` it belongs at.
    pub at: String,
    /// What the raw bytes are.
    pub encoding: BlobEncoding,
    /// Length of the raw bytes.
    pub raw_bytes: u64,
    /// SHA-256 of the raw bytes.
    pub raw_sha256: Digest,
    /// SHA-256 of the stored bytes: the file's name.
    pub sha256: Digest,
}

/// What a blob's raw bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlobEncoding {
    /// The UTF-8 bytes of a string.
    Text,
    /// Canonical JSON of a value.
    Json,
}

/// Serialises a payload; if it is too large for a line, stores its large values in `dir`.
pub(crate) fn prepare<P: Serialize + ?Sized>(
    dir: &Path,
    payload: &P,
) -> Result<Vec<u8>, AppendError> {
    let bytes = canonical::to_vec(payload)?;
    if bytes.first() != Some(&b'{') {
        return Err(AppendError::NotAnObject);
    }
    if has_blobs_key(&bytes) {
        return Err(AppendError::ReservedKey);
    }
    if bytes.len() <= SPILL_BYTES {
        return Ok(bytes);
    }
    let Value::Object(mut fields) = canonical::parse(&bytes)? else {
        return Err(AppendError::NotAnObject);
    };
    let mut store = Spill {
        dir,
        refs: Vec::new(),
    };
    for (key, value) in &mut fields {
        store.long_strings(&mut format!("/{}", escape(key)), value)?;
    }
    let size = |fields: &serde_json::Map<String, Value>| canonical::to_vec(fields).map(|b| b.len());
    if size(&fields)? > CROWDED_BYTES {
        for (key, value) in &mut fields {
            let json = canonical::to_vec(value)?;
            if json.len() > SPILL_BYTES {
                store.whole_field(&format!("/{}", escape(key)), value, &json)?;
            }
        }
    }
    if !store.refs.is_empty() {
        disk::sync_dir(dir).map_err(AppendError::blob)?;
        let list = canonical::to_vec(&store.refs)?;
        fields.insert(BLOBS_KEY.to_owned(), canonical::parse(&list)?);
    }
    let payload = canonical::to_vec(&fields)?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(AppendError::PayloadTooLarge {
            bytes: payload.len(),
        });
    }
    Ok(payload)
}

struct Spill<'a> {
    dir: &'a Path,
    refs: Vec<BlobRef>,
}

impl Spill<'_> {
    fn long_strings(&mut self, at: &mut String, value: &mut Value) -> Result<(), AppendError> {
        let here = at.len();
        match value {
            Value::String(text) if text.len() > SPILL_BYTES => {
                let blob = store(self.dir, at, BlobEncoding::Text, text.as_bytes())?;
                self.refs.push(blob);
                *value = Value::Null;
            }
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    at.push_str(&format!("/{i}"));
                    self.long_strings(at, item)?;
                    at.truncate(here);
                }
            }
            Value::Object(fields) => {
                for (key, item) in fields {
                    at.push('/');
                    at.push_str(&escape(key));
                    self.long_strings(at, item)?;
                    at.truncate(here);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A field may already have lost strings; then those references point inside the new blob,
    /// and restoring outer before inner puts them back. The list is kept in that order.
    fn whole_field(&mut self, at: &str, value: &mut Value, json: &[u8]) -> Result<(), AppendError> {
        let blob = store(self.dir, at, BlobEncoding::Json, json)?;
        self.refs.insert(0, blob);
        *value = Value::Null;
        Ok(())
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn store(dir: &Path, at: &str, encoding: BlobEncoding, raw: &[u8]) -> Result<BlobRef, AppendError> {
    let stored = zstd::bulk::compress(raw, COMPRESSION).map_err(AppendError::blob)?;
    let name = sha256(&stored);
    write_once(dir, &name, &stored).map_err(AppendError::blob)?;
    Ok(BlobRef {
        at: at.to_owned(),
        encoding,
        raw_bytes: raw.len() as u64,
        raw_sha256: sha256(raw),
        sha256: name,
    })
}

/// The content decides the name, so a file of that name with those bytes is already the blob.
fn write_once(dir: &Path, name: &Digest, stored: &[u8]) -> io::Result<()> {
    let path = dir.join(name.to_string());
    let existing = disk::read_small(&path, stored.len() as u64);
    if existing.is_ok_and(|bytes| bytes.as_deref() == Some(stored)) {
        return Ok(());
    }
    disk::create_dirs(dir)?;
    // Two threads may store the same content: each writes its own temporary file.
    let mut unique = [0u8; 8];
    getrandom::fill(&mut unique).map_err(io::Error::other)?;
    let temporary = dir.join(format!("{name}.{:016x}.tmp", u64::from_le_bytes(unique)));
    let written = disk::create_new(&temporary)
        .and_then(|mut file| {
            file.write_all(stored)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        // What could not be written whole is of no use to anyone.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Whether the payload object has the writer's own key at its top level.
fn has_blobs_key(payload: &[u8]) -> bool {
    mentions_blobs(payload) && !matches!(raw_list(payload), Ok(None))
}

/// Cheap, and true for every payload that lists blobs: the word stands in it.
pub(crate) fn mentions_blobs(payload: &[u8]) -> bool {
    // Every line is asked, and preparing the search costs more than searching.
    static WORD: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(b"\"blobs\":"));
    WORD.find(payload).is_some()
}

/// The payload's list of blobs; `Ok(None)` where it has none.
pub(crate) fn list(payload: &[u8]) -> Result<Option<Vec<BlobRef>>, String> {
    match raw_list(payload)? {
        Some(raw) => serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|e| e.to_string()),
        None => Ok(None),
    }
}

fn raw_list(payload: &[u8]) -> Result<Option<&RawValue>, String> {
    let top: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_slice(payload).map_err(|e| e.to_string())?;
    Ok(top.get(BLOBS_KEY).copied())
}

/// Why a blob cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is no such file.
    #[error("the blob is missing")]
    Missing,
    /// The stored bytes are not the ones that were named.
    #[error("the stored bytes do not have the hash in the name")]
    StoredHash,
    /// The content is not the one the event names.
    #[error("the raw bytes are not the ones the event names")]
    RawHash,
    /// It does not decompress, or the file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads a blob through both hash checks, giving the raw bytes to `sink` piece by piece.
pub(crate) fn check(dir: &Path, blob: &BlobRef, sink: impl FnMut(&[u8])) -> Result<(), BlobError> {
    let file = match disk::open_read(&dir.join(blob.sha256.to_string())) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(BlobError::Missing),
        file => file?,
    };
    let mut stored = Hashing::new(file, |_: &[u8]| ());
    let decoder = zstd::stream::read::Decoder::new(&mut stored)?;
    // One byte more than claimed is enough to know that the claim is wrong; a bomb goes no further.
    let limit = blob.raw_bytes.min(MAX_BLOB_BYTES).saturating_add(1);
    let mut raw = Hashing::new(decoder.single_frame().take(limit), sink);
    io::copy(&mut raw, &mut io::sink())?;
    let (raw_hash, raw_bytes) = raw.finish();
    // Bytes behind the frame are part of the file and so of its hash.
    io::copy(&mut stored, &mut io::sink())?;
    if stored.finish().0 != blob.sha256 {
        return Err(BlobError::StoredHash);
    }
    if raw_hash != blob.raw_sha256 || raw_bytes != blob.raw_bytes {
        return Err(BlobError::RawHash);
    }
    Ok(())
}

/// Puts the lifted values back where they belong.
pub(crate) fn restore(dir: &Path, payload: &[u8]) -> Result<Value, RestoreError> {
    let mut value = canonical::parse(payload).map_err(|e| RestoreError::Payload(e.to_string()))?;
    if !mentions_blobs(payload) {
        return Ok(value);
    }
    let refs = list(payload)
        .map_err(RestoreError::Payload)?
        .unwrap_or_default();
    let total = refs
        .iter()
        .map(|blob| blob.raw_bytes)
        .fold(0, u64::saturating_add);
    if total > MAX_RESTORED_BYTES {
        return Err(RestoreError::TooLarge { bytes: total });
    }
    for blob in refs {
        let mut raw = Vec::new();
        check(dir, &blob, |piece| raw.extend_from_slice(piece)).map_err(|error| {
            RestoreError::Blob {
                name: blob.sha256,
                error,
            }
        })?;
        let lifted = match blob.encoding {
            BlobEncoding::Text => String::from_utf8(raw)
                .map(Value::String)
                .map_err(|e| e.to_string()),
            BlobEncoding::Json => canonical::parse(&raw).map_err(|e| e.to_string()),
        }
        .map_err(RestoreError::Payload)?;
        match value.pointer_mut(&blob.at) {
            Some(place) => *place = lifted,
            None => return Err(RestoreError::Payload(format!("no place `{}`", blob.at))),
        }
    }
    if let Value::Object(fields) = &mut value {
        fields.remove(BLOBS_KEY);
    }
    Ok(value)
}

/// Why a payload cannot be put together again.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The payload itself cannot be read.
    #[error("the payload cannot be read: {0}")]
    Payload(String),
    /// Its blobs are too large to be held in memory.
    #[error(
        "its blobs have {bytes} bytes, more than the {MAX_RESTORED_BYTES} that are put together in memory"
    )]
    TooLarge {
        /// What they claim.
        bytes: u64,
    },
    /// One of its blobs cannot.
    #[error("blob `{name}`: {error}")]
    Blob {
        /// Which.
        name: Digest,
        /// Why.
        #[source]
        error: BlobError,
    },
}

/// A reader that hashes what passes through.
struct Hashing<R, F> {
    inner: R,
    hash: Hasher,
    bytes: u64,
    sink: F,
}

impl<R, F> Hashing<R, F> {
    fn new(inner: R, sink: F) -> Self {
        Self {
            inner,
            hash: Hasher::new(),
            bytes: 0,
            sink,
        }
    }

    fn finish(self) -> (Digest, u64) {
        (self.hash.finish(), self.bytes)
    }
}

impl<R: Read, F: FnMut(&[u8])> Read for Hashing<R, F> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.hash.update(&buf[..n]);
        self.bytes += n as u64;
        (self.sink)(&buf[..n]);
        Ok(n)
    }
}
