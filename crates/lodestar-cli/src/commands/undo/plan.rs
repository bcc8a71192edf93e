//! What was kept, held against what stands there now.

use std::path::Path;

use lodestar_core::digest::Digest;
use lodestar_kernel::image::{Content, Image, Imaged, Spelling, State, Stood, Unkept, look};
use lodestar_kernel::native::fs::Restoration;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::find::{Act, Kept};

/// Files beyond this are not compared line by line: that takes longer than anybody waits.
const MAX_COMPARED: u64 = 1 << 20;

/// What is to be done, path by path.
pub(super) struct Plan {
    pub(super) paths: Vec<Planned>,
}

/// One path.
pub(super) struct Planned {
    pub(super) path: Spelling,
    /// What stood there; none where it was not kept.
    pub(super) stood: Option<State>,
    /// How long it was.
    pub(super) bytes: Option<u64>,
    pub(super) now: State,
    pub(super) standing: Standing,
    pub(super) lines: Option<Lines>,
    content: Option<Vec<u8>>,
}

/// How a path stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// As before the act.
    AsBefore,
    /// As the act left it.
    AsLeft,
    /// Other than before, and nobody saw what the act left.
    NobodySaw,
    /// Changed since the act.
    Changed,
    /// What stands there now is not replaced.
    Taken,
    /// What stood there cannot be put back.
    Lost(Unkept),
    /// What was kept is not what its digest says.
    Corrupt,
}

impl Standing {
    /// Whether it is put back.
    pub(super) fn is_put_back(&self, force: bool) -> bool {
        match self {
            Self::AsLeft => true,
            // What stands there may be a person's work as well as the act's.
            Self::Changed | Self::NobodySaw => force,
            Self::AsBefore | Self::Taken | Self::Lost(_) | Self::Corrupt => false,
        }
    }

    /// Whether it is as it is to be, or will be.
    pub(super) fn is_well(&self, force: bool) -> bool {
        *self == Self::AsBefore || self.is_put_back(force)
    }

    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::AsBefore => "as_before",
            Self::AsLeft => "as_left",
            Self::NobodySaw => "nobody_saw",
            Self::Changed => "changed",
            Self::Taken => "taken",
            Self::Lost(_) => "lost",
            Self::Corrupt => "corrupt",
        }
    }
}

/// How many lines putting it back adds and takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Lines {
    pub(super) added: u64,
    pub(super) removed: u64,
}

impl Plan {
    pub(super) fn of(kept: &Kept) -> Self {
        let Kept { imaged, left } = kept;
        let paths = imaged.images.iter().enumerate().map(|(at, image)| {
            let left = left.as_ref().and_then(|left| left.get(at));
            Planned::of(imaged, image, left)
        });
        Self {
            paths: paths.collect(),
        }
    }

    /// Whether something is to be put back, and nothing stands against it.
    pub(super) fn is_to_be_done(&self, force: bool) -> bool {
        let some = self.paths.iter().any(|one| one.standing.is_put_back(force));
        some && (force || self.is_well(force))
    }

    /// Whether everything is as it is to be, or will be.
    pub(super) fn is_well(&self, force: bool) -> bool {
        self.paths.iter().all(|one| one.standing.is_well(force))
    }

    fn put_back(&self, force: bool) -> impl Iterator<Item = &Planned> {
        let paths = self.paths.iter();
        paths.filter(move |one| one.standing.is_put_back(force))
    }

    /// The contents that the tool needs.
    pub(super) fn contents(&self) -> impl Iterator<Item = Vec<u8>> {
        self.paths.iter().filter_map(|one| one.content.clone())
    }

    /// What the tool is asked for.
    pub(super) fn restoration(&self, act: &Act, force: bool) -> Restoration {
        let mut asked = Restoration {
            action: act.id,
            session: act.dir().session().clone(),
            paths: Vec::new(),
            to: Vec::new(),
            from: Vec::new(),
        };
        for one in self.put_back(force) {
            if let Some(stood) = &one.stood {
                asked.paths.push(one.path.clone());
                asked.to.push(stood.clone());
                asked.from.push(one.now.clone());
            }
        }
        asked
    }
}

impl Planned {
    fn of(imaged: &Imaged, image: &Image, left: Option<&State>) -> Self {
        let root = imaged.root.as_path();
        let now = look(root, &image.path);
        let stood = image.stood.state();
        let (bytes, content) = match &image.stood {
            Stood::File {
                bytes,
                sha256,
                content,
                ..
            } => (Some(*bytes), held(content, sha256, *bytes)),
            _ => (None, None),
        };
        let is_file = matches!(image.stood, Stood::File { .. });
        let standing = match (&image.stood, &stood) {
            (Stood::Unkept { because }, _) => Standing::Lost(because.clone()),
            (_, Some(stood)) if stood.is_like(&now) => Standing::AsBefore,
            (Stood::Folder, _) => Standing::Taken,
            _ if is_file && content.is_none() => Standing::Corrupt,
            _ if matches!(now, State::Folder | State::Unseen { .. }) => Standing::Taken,
            _ => match left {
                Some(State::Unseen { .. }) | None => Standing::NobodySaw,
                Some(left) if left.is_like(&now) => Standing::AsLeft,
                Some(_) => Standing::Changed,
            },
        };
        let lines = match standing {
            Standing::AsBefore => None,
            _ => lines(root, &image.path, content.as_deref(), &now),
        };
        Self {
            path: image.path.clone(),
            stood,
            bytes,
            now,
            standing,
            lines,
            content,
        }
    }
}

fn held(content: &Content, sha256: &Digest, bytes: u64) -> Option<Vec<u8>> {
    let held = content.bytes(sha256)?;
    (held.len() as u64 == bytes).then_some(held)
}

/// Only for people: what is put back is decided by digests.
fn lines(root: &Path, path: &Spelling, before: Option<&[u8]>, now: &State) -> Option<Lines> {
    let State::File { .. } = now else {
        return None;
    };
    let at = root.join(path.as_path());
    let seen = at.symlink_metadata().ok()?;
    if !seen.is_file() || seen.len() > MAX_COMPARED {
        return None;
    }
    let now = std::fs::read_to_string(&at).ok()?;
    let before = std::str::from_utf8(before.unwrap_or_default()).ok()?;
    if before.len() as u64 > MAX_COMPARED {
        return None;
    }
    let diff = TextDiff::from_lines(now.as_str(), before);
    let count = |tag| {
        diff.iter_all_changes()
            .filter(|one| one.tag() == tag)
            .count() as u64
    };
    Some(Lines {
        added: count(ChangeTag::Insert),
        removed: count(ChangeTag::Delete),
    })
}
