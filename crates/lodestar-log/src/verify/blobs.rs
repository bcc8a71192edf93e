//! Blobs are checked on the threads that scan the lines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use lodestar_core::digest::Digest;

use crate::blob::{self, BlobError, BlobRef};
use crate::chain::Link;
use crate::layout::SessionDir;
use crate::line::Line;
use crate::problem::ProblemKind;

/// Checks blobs on the worker threads, each blob once.
pub(super) struct BlobCheck<'a> {
    dir: &'a SessionDir,
    path: PathBuf,
    proven: u64,
    /// What a blob's raw bytes were found to be; nothing where it is damaged.
    seen: Mutex<BTreeMap<Digest, Option<(Digest, u64)>>>,
}

impl<'a> BlobCheck<'a> {
    pub(super) fn new(dir: &'a SessionDir, proven: u64) -> Self {
        Self {
            dir,
            path: dir.blobs_dir(),
            proven,
            seen: Mutex::new(BTreeMap::new()),
        }
    }

    pub(super) fn inspect(&self, line: &Line<'_>) -> Link {
        let mut link = Link::new(
            line,
            self.dir.project().as_str(),
            self.dir.session().as_str(),
        );
        link.check_unproven(line, self.proven);
        if let Some(payload) = line.payload()
            && blob::mentions_blobs(payload)
            && link.is_sound()
        {
            self.inspect_blobs(&mut link, payload);
        }
        link
    }

    fn inspect_blobs(&self, link: &mut Link, payload: &[u8]) {
        let refs = match blob::list(payload) {
            Ok(refs) => refs.unwrap_or_default(),
            Err(reason) => return link.fault(ProblemKind::BadBlobList { reason }),
        };
        link.blobs = refs.iter().map(|blob| blob.sha256).collect();
        for blob in refs {
            if let Some(kind) = self.look_at(&blob) {
                link.fault(kind);
            }
        }
    }

    /// Each blob is unpacked once, whatever is claimed of it and how often.
    fn look_at(&self, blob: &BlobRef) -> Option<ProblemKind> {
        let name = blob.sha256;
        let damaged = |error: &BlobError| ProblemKind::BlobDamaged {
            name,
            reason: error.to_string(),
        };
        let known = self.seen.lock().ok()?.get(&name).copied();
        if let Some(found) = known {
            let as_claimed = found == Some((blob.raw_sha256, blob.raw_bytes));
            return (!as_claimed).then(|| damaged(&BlobError::RawHash));
        }
        let checked = blob::check(&self.path, blob, |_| ());
        let found = checked.is_ok().then_some((blob.raw_sha256, blob.raw_bytes));
        self.seen.lock().ok()?.insert(name, found);
        match checked {
            Ok(()) => None,
            Err(BlobError::Missing) => Some(ProblemKind::BlobMissing { name }),
            Err(error) => Some(damaged(&error)),
        }
    }
}
