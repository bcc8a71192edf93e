//! Blobs are checked on the threads that scan the lines.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use lodestar_core::digest::Digest;

use crate::blob::{self, BlobError};
use crate::chain::Link;
use crate::layout::SessionDir;
use crate::line::Line;
use crate::problem::ProblemKind;

/// Checks blobs on the worker threads, each blob once.
pub(super) struct BlobCheck<'a> {
    dir: &'a SessionDir,
    path: PathBuf,
    seen: Mutex<BTreeSet<(Digest, Digest)>>,
}

impl<'a> BlobCheck<'a> {
    pub(super) fn new(dir: &'a SessionDir) -> Self {
        Self {
            dir,
            path: dir.blobs_dir(),
            seen: Mutex::new(BTreeSet::new()),
        }
    }

    pub(super) fn inspect(&self, line: &Line<'_>) -> Link {
        let mut link = Link::new(
            line,
            self.dir.project().as_str(),
            self.dir.session().as_str(),
        );
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
        for blob in refs {
            let first = self
                .seen
                .lock()
                .is_ok_and(|mut seen| seen.insert((blob.sha256, blob.raw_sha256)));
            if !first {
                continue;
            }
            match blob::check(&self.path, &blob, |_| ()) {
                Ok(()) => {}
                Err(BlobError::Missing) => {
                    link.fault(ProblemKind::BlobMissing { name: blob.sha256 });
                }
                Err(error) => link.fault(ProblemKind::BlobDamaged {
                    name: blob.sha256,
                    reason: error.to_string(),
                }),
            }
        }
    }
}
