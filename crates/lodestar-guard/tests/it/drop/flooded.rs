//! A drop directory in which somebody does harm: floods, huge files, files that nobody may read.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use lodestar_core::id::RequestId;

use super::*;

/// Keeps a file to itself: whoever opens it without waiting is told to try again.
struct Lease(Child);

impl Lease {
    fn on(file: &Path) -> Option<Self> {
        const HOLD: &str = "import fcntl, os, signal, sys\n\
            signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
            fd = os.open(sys.argv[1], os.O_RDWR)\n\
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
            print('held', flush=True)\n\
            sys.stdin.read()";
        let started = Command::new("python3")
            .args(["-c", HOLD])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            assert!(
                std::env::var_os("LODESTAR_REQUIRE_ALL").is_none(),
                "python3 is missing"
            );
            return None;
        };
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Some(Self(child))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_keeps_no_other_waiting_and_comes_when_it_can() {
    let dropped = Dropped::new().await;
    fs::write(dropped.name(1), "[1]").unwrap();
    let Some(lease) = Lease::on(&dropped.name(1)) else {
        return;
    };
    fs::write(dropped.name(2), "[2]").unwrap();
    assert_eq!(dropped.take().await, "[2]");
    let told = timeout(SOON, dropped.drop.next())
        .await
        .expect("it is told");
    let told = told.unwrap_err().to_string();
    assert!(told.contains(&format!("{:032x}", 1)), "{told}");
    fs::write(dropped.name(3), "[3]").unwrap();
    assert_eq!(dropped.take().await, "[3]");
    drop(lease);
    assert_eq!(dropped.take().await, "[1]");
    dropped.nothing_comes().await;
}

#[tokio::test]
async fn a_request_that_cannot_be_read_hides_no_other_and_is_shown_when_it_can() {
    let (announcement, scratch) = announcement().await;
    let drop = DropDirectory::below(scratch.path());
    let mut second = announcement.clone();
    second.request.id = RequestId::from_parts(1, [1; 10]);
    second.request.card_digest = second.request.digest().unwrap();
    drop.announce(&announcement).await.unwrap();
    drop.announce(&second).await.unwrap();
    let place = folder(scratch.path(), announcement.request.session.as_str());
    let file = place.join(format!("{}.request.json", announcement.request.id));
    let Some(lease) = Lease::on(&file) else {
        return;
    };
    let mut pile = Pile::below(scratch.path()).unwrap();
    assert_eq!(pile.requests().count(), 1);
    let (id, _, why) = pile.unusable().next().unwrap();
    assert_eq!(id, announcement.request.id);
    assert!(matches!(why, Unusable::NotNow(_)), "{why}");
    assert!(pile.is_behind());
    std::mem::drop(lease);
    pile.refresh().unwrap();
    assert_eq!(pile.requests().count(), 2);
    assert!(!pile.is_behind());
}

#[tokio::test]
async fn huge_files_are_not_read_and_a_genuine_request_is_shown_beside_them() {
    let (announcement, scratch) = announcement().await;
    DropDirectory::below(scratch.path())
        .announce(&announcement)
        .await
        .unwrap();
    for session in ["s-a", "s-z"] {
        let place = folder(scratch.path(), session);
        fs::create_dir_all(&place).unwrap();
        for n in 0..400u64 {
            let id = RequestId::from_parts(n, [3; 10]);
            let file = fs::File::create(place.join(format!("{id}.request.json"))).unwrap();
            file.set_len((64 << 20) + n % 2).unwrap();
        }
    }
    let started = Instant::now();
    let mut pile = Pile::below(scratch.path()).unwrap();
    pile.refresh().unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(pile.requests().count(), 1);
    let late = pile.unusable().filter(|(.., why)| **why == Unusable::Later);
    assert!(late.count() > 300);
    let large = pile
        .unusable()
        .filter(|(.., why)| **why == Unusable::TooLarge);
    assert_eq!(large.count(), 400);
}

#[tokio::test]
async fn a_flood_of_small_files_ends_and_does_not_hide_other_sessions() {
    let (announcement, scratch) = announcement().await;
    let place = folder(scratch.path(), "a-flooded-one");
    fs::create_dir_all(&place).unwrap();
    for n in 0..30_000u64 {
        let id = RequestId::from_parts(n, [3; 10]);
        fs::write(place.join(format!("{id}.request.json")), "{}").unwrap();
    }
    DropDirectory::below(scratch.path())
        .announce(&announcement)
        .await
        .unwrap();
    let mut pile = Pile::unseen(scratch.path());
    pile.refresh().unwrap();
    assert_eq!(pile.requests().count(), 1);
    assert!(pile.is_behind());
    for _ in 0..3 {
        pile.refresh().unwrap();
    }
    assert!(!pile.is_behind(), "the rest is read in later looks");
}

#[tokio::test]
async fn a_genuine_answer_does_not_wait_behind_a_flood_of_others() {
    let dropped = Dropped::new().await;
    dropped.nothing_comes().await;
    // Named for requests that are not open, and for the one that is.
    for n in 0..6_000u64 {
        let other = RequestId::from_parts(n, [9; 10]);
        let name = format!("{other}.{n:032x}.answer.json");
        fs::write(dropped.folder().join(name), "[0]").unwrap();
    }
    for n in 10..5_010 {
        fs::write(dropped.name(n), "[0]").unwrap();
    }
    fs::write(dropped.name(1), "[1]").unwrap();
    let mut before = 0;
    while dropped.next().await.bytes != b"[1]" {
        before += 1;
    }
    assert!(before < 20, "{before} others came first");
}

#[tokio::test]
async fn what_answers_no_open_request_comes_at_a_pace() {
    let started = Instant::now();
    let dropped = Dropped::new().await;
    for n in 0..300u64 {
        let other = RequestId::from_parts(n, [9; 10]);
        let name = format!("{other}.{n:032x}.answer.json");
        fs::write(dropped.folder().join(name), "[0]").unwrap();
    }
    let mut came = 0;
    while let Ok(delivered) = timeout(NEVER, dropped.drop.next()).await {
        dropped.drop.recorded(&delivered.unwrap()).await.unwrap();
        came += 1;
    }
    let longest = 101 + started.elapsed().as_secs();
    assert!((100..=longest).contains(&came), "{came}");
    // A genuine one comes at once all the same, and the others after a while.
    fs::write(dropped.name(1), "[1]").unwrap();
    assert_eq!(dropped.take().await, "[1]");
    assert_eq!(dropped.next().await.bytes, b"[0]");
}

#[tokio::test]
async fn what_was_withdrawn_is_not_announced_again() {
    let dropped = Dropped::new().await;
    let id = dropped.announcement.request.id;
    let request = dropped.folder().join(format!("{id}.request.json"));
    dropped.drop.withdraw(id, Closing::Spent).await.unwrap();
    dropped.drop.announce(&dropped.announcement).await.unwrap();
    assert!(!request.exists());
    fs::remove_dir_all(dropped.folder()).unwrap();
    dropped.nothing_comes().await;
    assert!(!request.exists());
}
