use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::*;
use crate::tool::AtLinks;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root").canonicalize().unwrap()
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn take(&self, paths: &[&str]) -> Taken {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        take(&self.root(), &paths, AtLinks::Follows)
    }

    /// Each path with what stood there, in short.
    fn told(&self, paths: &[&str]) -> Vec<(String, String)> {
        let told = |image: &Image| {
            let stood = match &image.stood {
                Stood::File { bytes, .. } => format!("{bytes} bytes"),
                Stood::Nothing { missing_folders } => format!("nothing, {missing_folders} above"),
                Stood::Link { to } => format!("to {to}"),
                Stood::Folder => "folder".to_owned(),
                Stood::Unkept { because } => match because {
                    Unkept::Unreadable { .. } => "unreadable".to_owned(),
                    because => because.to_string(),
                },
            };
            (image.path.to_string(), stood)
        };
        self.take(paths).images.iter().map(told).collect()
    }
}

fn one(path: &str, stood: &str) -> (String, String) {
    (path.to_owned(), stood.to_owned())
}

#[test]
fn files_and_what_is_not_there_are_kept() {
    let place = Place::new();
    place.write("a.txt", b"one");
    place.write("sub/b.bin", b"\xff\0");
    assert_eq!(
        place.told(&[
            "a.txt",
            "./sub/../sub/b.bin",
            "no",
            "x/y/z.txt",
            "sub",
            "a.txt/below"
        ]),
        [
            one("a.txt", "3 bytes"),
            one("sub/b.bin", "2 bytes"),
            one("no", "nothing, 0 above"),
            one("x/y/z.txt", "nothing, 2 above"),
            one("sub", "folder"),
            one("a.txt/below", "nothing, 0 above"),
        ]
    );
    let taken = place.take(&["sub/b.bin"]);
    let Stood::File {
        sha256, content, ..
    } = &taken.images[0].stood
    else {
        panic!("{taken:?}");
    };
    assert_eq!(content.bytes(sha256).unwrap(), b"\xff\0");
    assert_eq!(
        content.bytes(&lodestar_core::digest::sha256(b"other")),
        None
    );
}

#[test]
fn a_path_is_named_by_where_it_really_lies() {
    let place = Place::new();
    place.write("real/file.txt", b"one");
    symlink("real", place.root().join("way")).unwrap();
    let absolute = place.root().join("way/file.txt");
    assert_eq!(
        place.told(&["way/file.txt", "way/new.txt", absolute.to_str().unwrap()]),
        [
            one("real/file.txt", "3 bytes"),
            one("real/new.txt", "nothing, 0 above"),
        ]
    );
}

#[test]
fn a_link_is_kept_with_what_it_leads_to() {
    let place = Place::new();
    place.write("real/file.txt", b"one");
    symlink("../real/second", place.root().join("real/first")).unwrap();
    symlink("file.txt", place.root().join("real/second")).unwrap();
    symlink("nowhere", place.root().join("dangling")).unwrap();
    symlink("loop", place.root().join("loop")).unwrap();
    assert_eq!(
        place.told(&["real/first", "dangling", "loop"]),
        [
            one("real/first", "to ../real/second"),
            one("real/second", "to file.txt"),
            one("real/file.txt", "3 bytes"),
            one("dangling", "to nowhere"),
            one("nowhere", "nothing, 0 above"),
            one("loop", "to loop"),
        ]
    );
}

#[test]
fn what_a_link_leads_to_is_not_kept_for_a_tool_that_never_follows_it() {
    let place = Place::new();
    symlink("/etc/hostname", place.root().join("link")).unwrap();
    let paths = [PathBuf::from("link")];
    let taken = take(&place.root(), &paths, AtLinks::Replaces);
    assert_eq!(taken.images.len(), 1);
    assert_eq!(taken.first_unkept(), None);
}

#[test]
fn what_leads_out_of_the_root_is_not_kept() {
    let place = Place::new();
    fs::write(place.folder.path().join("out.txt"), "theirs").unwrap();
    symlink("../out.txt", place.root().join("link")).unwrap();
    symlink("..", place.root().join("up")).unwrap();
    let outside = "it lies outside the root";
    for path in [
        "../out.txt",
        "/etc/hostname",
        "up/out.txt",
        "a/../../out.txt",
    ] {
        let told = place.told(&[path]);
        assert!(
            told.iter().any(|(_, stood)| stood == outside),
            "{path}: {told:?}"
        );
    }
    let told = place.told(&["link"]);
    assert_eq!(told[0], one("link", "to ../out.txt"));
    assert_eq!(told[1].1, outside);
}

#[test]
fn dots_behind_a_link_are_read_both_ways() {
    let place = Place::new();
    place.write("deep/er/x", b"");
    place.write("b.txt", b"by text");
    place.write("deep/b.txt", b"by the system");
    symlink("deep/er", place.root().join("link")).unwrap();
    assert_eq!(
        place.told(&["link/../b.txt"]),
        [one("b.txt", "7 bytes"), one("deep/b.txt", "13 bytes")]
    );
}

#[test]
fn what_is_no_file_or_too_large_or_too_much_is_not_kept() {
    let place = Place::new();
    let fifo = place.root().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for (name, bytes) in [
        ("huge", MAX_IMAGE_BYTES + 1),
        ("a", MAX_IMAGE_BYTES),
        ("b", MAX_IMAGE_BYTES),
        ("c", 1),
    ] {
        let file = fs::File::create(place.root().join(name)).unwrap();
        file.set_len(bytes).unwrap();
    }
    let told = place.told(&["fifo", "huge", "a", "b", "c"]);
    assert_eq!(told[0].1, "it is no regular file");
    assert!(told[1].1.contains("16777217 bytes"), "{told:?}");
    assert_eq!(told[2].1, "16777216 bytes");
    assert_eq!(told[3].1, "16777216 bytes");
    assert!(told[4].1.contains("more than"), "{told:?}");
}

#[test]
fn more_paths_than_are_kept_show_as_one_that_is_not() {
    let place = Place::new();
    let paths: Vec<PathBuf> = (0..1000).map(|n| PathBuf::from(format!("f{n}"))).collect();
    let taken = take(&place.root(), &paths, AtLinks::Follows);
    assert_eq!(taken.images.len(), MAX_IMAGES);
    assert_eq!(taken.first_unkept().unwrap().1, &Unkept::TooMuch);
}

#[test]
fn a_change_shows_without_reading() {
    let place = Place::new();
    place.write("a.txt", b"one");
    let taken = place.take(&["a.txt", "b.txt", "x/y.txt"]);
    assert!(taken.sight.is_unchanged());
    // As long as before, and in its place.
    let other = place.root().join("other");
    fs::write(&other, b"two").unwrap();
    fs::rename(&other, place.root().join("a.txt")).unwrap();
    assert!(!taken.sight.is_unchanged());
    let taken = place.take(&["a.txt", "b.txt", "x/y.txt"]);
    fs::create_dir(place.root().join("x")).unwrap();
    assert!(taken.sight.is_unchanged(), "nothing stands there still");
    place.write("x/y.txt", b"");
    assert!(!taken.sight.is_unchanged());
}

#[test]
fn what_stands_there_later_is_told_by_digest_and_mode() {
    let place = Place::new();
    place.write("a.txt", b"one");
    let path = place.root().join("a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    let taken = place.take(&["a.txt", "b.txt"]);
    let before = taken.images[0].stood.state().unwrap();
    let now = taken.sight.look();
    assert_eq!(now[0], before);
    assert!(
        matches!(before, State::File { mode: 0o755, .. }),
        "{before:?}"
    );
    assert!(now[1].is_like(&State::Nothing { missing_folders: 3 }));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(!taken.sight.look()[0].is_like(&before));
    fs::remove_file(&path).unwrap();
    symlink("b.txt", &path).unwrap();
    assert_eq!(
        taken.sight.look()[0],
        State::Link {
            to: Spelling::from(Path::new("b.txt"))
        }
    );
}

#[test]
fn what_nobody_saw_is_like_nothing_else() {
    let unseen = State::Unseen {
        problem: "gone".to_owned(),
    };
    assert!(!unseen.is_like(&unseen));
    assert!(!unseen.is_like(&State::Folder));
}
