//! What lies inside of what is granted and is not: hidden or fixed by mounts that only the child sees.
//!
//! Worked out before the fork, since nothing can be allocated between fork and exec. A folder above a covered
//! place is bound onto itself, so that it cannot be moved away together with the cover.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::MountFlags;

/// One mount.
#[derive(Debug)]
pub(super) enum Mount {
    /// A folder that stays where it is.
    Pinned { place: CString },
    /// A place that is read and not written.
    Fixed { place: CString, flags: MountFlags },
    /// A folder that cannot be opened.
    HiddenFolder { place: CString },
    /// A file that cannot be opened.
    HiddenFile { place: CString, flags: MountFlags },
}

/// All mounts of a child, outermost first.
#[derive(Debug, Default)]
pub(super) struct Cover {
    pub(super) mounts: Vec<Mount>,
    /// What they cover.
    pub(super) covered: Vec<Covered>,
}

/// A place that is covered. Its mount falls when somebody else puts another file there.
#[derive(Debug, Clone)]
pub(super) enum Covered {
    /// Read and not written.
    Fixed(PathBuf),
    /// Not even opened.
    Hidden(PathBuf),
}

impl Covered {
    pub(super) fn place(&self) -> &Path {
        let (Self::Fixed(place) | Self::Hidden(place)) = self;
        place
    }

    /// What covers it.
    pub(super) fn mount(&self) -> io::Result<Mount> {
        Ok(match self {
            Self::Fixed(place) => Mount::Fixed {
                place: text(place)?,
                flags: kept(place)?,
            },
            Self::Hidden(place) if place.is_dir() => Mount::HiddenFolder {
                place: text(place)?,
            },
            Self::Hidden(place) => Mount::HiddenFile {
                place: text(place)?,
                flags: kept(Path::new("/dev/null"))?,
            },
        })
    }
}

impl Cover {
    /// What is not granted anyway needs no cover; what is `fixed` needs one where it could be written.
    pub(super) fn of(
        hidden: &[PathBuf],
        fixed: &[PathBuf],
        granted: &[PathBuf],
        writes: &[PathBuf],
    ) -> io::Result<Self> {
        let lie_in = |places: &[PathBuf], grants: &[PathBuf]| -> Vec<PathBuf> {
            let granted = |place: &&PathBuf| grants.iter().any(|grant| place.starts_with(grant));
            places.iter().filter(granted).cloned().collect()
        };
        let hidden = outermost(&lie_in(hidden, granted));
        let fixed = lie_in(fixed, writes);
        let in_hidden = |place: &&PathBuf| !hidden.iter().any(|outer| place.starts_with(outer));
        let fixed: Vec<PathBuf> = outermost(&fixed)
            .iter()
            .filter(in_hidden)
            .cloned()
            .collect();
        let mut pinned = BTreeSet::new();
        for place in hidden.iter().chain(&fixed) {
            for grant in writes.iter().filter(|grant| place.starts_with(grant)) {
                let above = place.ancestors().skip(1);
                pinned.extend(
                    above
                        .take_while(|above| *above != grant)
                        .map(Path::to_owned),
                );
            }
        }
        let mut mounts = Vec::new();
        // A path sorts before everything below it.
        for place in &pinned {
            mounts.push(Mount::Pinned {
                place: text(place)?,
            });
        }
        let covered: Vec<Covered> = fixed
            .into_iter()
            .map(Covered::Fixed)
            .chain(hidden.into_iter().map(Covered::Hidden))
            .collect();
        for one in &covered {
            mounts.push(one.mount()?);
        }
        Ok(Self { mounts, covered })
    }
}

/// Those that do not lie in another.
fn outermost(places: &[PathBuf]) -> Vec<PathBuf> {
    let is_inner = |place: &PathBuf| {
        places
            .iter()
            .any(|other| other != place && place.starts_with(other))
    };
    places
        .iter()
        .filter(|place| !is_inner(place))
        .cloned()
        .collect()
}

pub(super) fn text(place: &Path) -> io::Result<CString> {
    CString::new(place.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// The flags of the mount that a place is on, which must not get fewer when it is mounted again.
fn kept(place: &Path) -> io::Result<MountFlags> {
    let found = statvfs(place)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = pairs.into_iter().filter(|(has, _)| found.contains(*has));
    Ok(kept.fold(MountFlags::empty(), |flags, (_, flag)| flags | flag))
}
