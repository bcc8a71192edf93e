//! The drop directory: files that people and others put there, heard of without looking again and again.

mod crowded;
mod flooded;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use lodestar_core::key::SecretKey;
use lodestar_core::name::{ActorId, ProjectId};
use lodestar_core::statement::{ApprovalDecision, Nonce};
use lodestar_guard::channel::drop::{DropDirectory, Pile, Shown, Unusable, Watching};
use lodestar_guard::channel::{Announcement, Channel, Closing, Delivered, MAX_DELIVERED, Notice};
use lodestar_guard::{Holds, Session};
use lodestar_kernel::record::Rejection;
use lodestar_log::Clock;
use lodestar_policy::{ApprovalRequest, Signed};
use serde_json::json;
use tokio::time::timeout;

use crate::governed::{CountingTool, GRADES, Project, count};

const SOON: Duration = Duration::from_secs(5);
const NEVER: Duration = Duration::from_millis(150);

fn anna() -> SecretKey {
    SecretKey::from_seed([1; 32])
}

fn config() -> String {
    let key = anna().public();
    format!(
        "approval_timeout_ms = 8000\n{GRADES}\n[[approvals.authorized_keys]]\nactor_id = \"anna\"\npublic_key = \"{key}\"\n"
    )
}

async fn open(project: &Project, tool: &CountingTool) -> Session {
    open_with(project, tool, &config()).await
}

async fn open_with(project: &Project, tool: &CountingTool, config: &str) -> Session {
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let channel: Arc<dyn Channel> = Arc::new(DropDirectory::below(&project.root));
    let setup = project.setup(config, &others).tool(tool.clone());
    setup
        .holds(Holds::Tell(vec![channel]))
        .open()
        .await
        .unwrap()
}

fn send(text: &str) -> serde_json::Value {
    json!({"to": "anna@corp.example", "text": text})
}

static NONCE: AtomicU8 = AtomicU8::new(0);

fn answer(pile: &Pile, shown: &Shown, decision: ApprovalDecision) {
    let nonce = Nonce::from_bytes([NONCE.fetch_add(1, Ordering::SeqCst); 16]);
    let key = anna();
    let signed = Signed {
        key: &key,
        at: Clock::system().now(),
        nonce,
    };
    let request = &shown.announcement().request;
    let name = ActorId::new("anna").unwrap();
    let said = request.answer(&name, decision, "looked", signed).unwrap();
    pile.answer(shown, &said, nonce).unwrap();
}

/// Waits for the first request as a person's terminal does.
async fn first(root: &Path) -> (Pile, Shown) {
    let mut watching = Watching::below(root).unwrap();
    let mut pile = Pile::below(root).unwrap();
    let waiting = async {
        loop {
            if let Some(shown) = pile.requests().next().cloned() {
                return shown;
            }
            watching.changed().await.unwrap();
            pile.refresh().unwrap();
        }
    };
    let shown = timeout(SOON, waiting).await.expect("it is announced");
    (pile, shown)
}

#[tokio::test]
async fn a_grant_in_the_drop_directory_lets_the_waiting_call_run() {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let session = open(&project, &tool).await;
    let asking = async {
        let (mut pile, shown) = first(&project.root).await;
        assert_eq!(shown.announcement().missing, 1);
        answer(&pile, &shown, ApprovalDecision::Grant);
        pile.refresh().unwrap();
        pile
    };
    let (reply, mut pile) = tokio::join!(session.call("box.send", send("hello")), asking);
    assert!(reply.unwrap().ran());
    assert_eq!(tool.ran(), 1);
    session
        .call("box.write", json!({"path": "a.txt", "text": "x"}))
        .await
        .unwrap();
    session.close("done").await.unwrap();
    assert_eq!(count(&project.events(session.id()), "approval.granted"), 1);
    pile.refresh().unwrap();
    assert_eq!(
        answers(&folder(&project.root, session.id().as_str())),
        0,
        "recorded ones are removed"
    );
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_no_that_was_said_while_no_call_waited_is_told_once_and_then_people_are_asked_again() {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let config = config().replace("= 8000", "= 0");
    let session = open_with(&project, &tool, &config).await;
    let call = || session.call("box.send", send("hello"));
    let reply = call().await.unwrap();
    assert!(matches!(
        reply.refusal(),
        Some(Rejection::ApprovalRequired { .. })
    ));
    let (mut pile, shown) = first(&project.root).await;
    let asked = shown.announcement().request.id;
    answer(&pile, &shown, ApprovalDecision::Deny);
    // The session hears it, and nobody is there to be told.
    let mut watching = Watching::below(&project.root).unwrap();
    pile.refresh().unwrap();
    while pile.requests().next().is_some() {
        timeout(SOON, watching.changed()).await.unwrap().unwrap();
        pile.refresh().unwrap();
    }
    let reply = call().await.unwrap();
    let Some(Rejection::ApprovalDenied { request, reason }) = reply.refusal() else {
        panic!("{reply:?}");
    };
    assert_eq!((*request, reason.as_str()), (asked, "looked"));
    let reply = call().await.unwrap();
    let Some(Rejection::ApprovalRequired { request }) = reply.refusal() else {
        panic!("{reply:?}");
    };
    assert_ne!(*request, asked);
    // What was asked is exactly what was denied: another text is another act.
    let reply = session.call("box.send", send("bye")).await.unwrap();
    assert!(matches!(
        reply.refusal(),
        Some(Rejection::ApprovalRequired { .. })
    ));
    assert_eq!(tool.ran(), 0);
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert_eq!(count(&events, "approval.requested"), 3);
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_deny_in_the_drop_directory_ends_it_and_the_request_goes() {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let session = open(&project, &tool).await;
    let asking = async {
        let (pile, shown) = first(&project.root).await;
        answer(&pile, &shown, ApprovalDecision::Deny);
        pile
    };
    let (reply, mut pile) = tokio::join!(session.call("box.send", send("hello")), asking);
    assert!(!reply.unwrap().ran());
    let mut watching = Watching::below(&project.root).unwrap();
    pile.refresh().unwrap();
    while pile.requests().next().is_some() {
        timeout(SOON, watching.changed()).await.unwrap().unwrap();
        pile.refresh().unwrap();
    }
    assert_eq!(tool.ran(), 0);
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

/// An announcement of a real session, and a folder of its own to drop it into.
async fn announcement() -> (Announcement, tempfile::TempDir) {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let setup = project.setup(&config(), &others).tool(tool.clone());
    let session = setup.holds(Holds::Leave).open().await.unwrap();
    session.call("box.send", send("hello")).await.unwrap();
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    let asked = events
        .iter()
        .find(|(kind, _)| kind == "approval.requested@1");
    let request: ApprovalRequest = serde_json::from_value(asked.unwrap().1.clone()).unwrap();
    let announcement = Announcement {
        project: ProjectId::new("notes").unwrap(),
        request,
        granted_by: Vec::new(),
        missing: 1,
    };
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join(".lodestar")).unwrap();
    (announcement, scratch)
}

pub(crate) fn folder(root: &Path, session: &str) -> PathBuf {
    root.join(".lodestar/approvals").join(session)
}

pub(crate) fn answers(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap().flatten();
    names
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .ends_with(".answer.json")
        })
        .count()
}

struct Dropped {
    announcement: Announcement,
    scratch: tempfile::TempDir,
    drop: DropDirectory,
}

impl Dropped {
    async fn new() -> Self {
        let (announcement, scratch) = announcement().await;
        let drop = DropDirectory::below(scratch.path());
        drop.announce(&announcement).await.unwrap();
        Self {
            announcement,
            scratch,
            drop,
        }
    }

    fn folder(&self) -> PathBuf {
        folder(
            self.scratch.path(),
            self.announcement.request.session.as_str(),
        )
    }

    fn name(&self, n: u32) -> PathBuf {
        let id = self.announcement.request.id;
        self.folder().join(format!("{id}.{n:032x}.answer.json"))
    }

    async fn next(&self) -> Delivered {
        let next = timeout(SOON, self.drop.next()).await;
        next.expect("something is delivered").unwrap()
    }

    async fn take(&self) -> String {
        let delivered = self.next().await;
        self.drop.recorded(&delivered).await.unwrap();
        assert_eq!(delivered.request, self.announcement.request.id);
        String::from_utf8(delivered.bytes).unwrap()
    }

    async fn nothing_comes(&self) {
        let next = timeout(NEVER, self.drop.next()).await;
        assert!(next.is_err(), "{:?}", next.unwrap());
    }
}

#[tokio::test]
async fn what_came_while_nobody_listened_is_delivered_and_so_is_what_comes() {
    let dropped = Dropped::new().await;
    fs::write(dropped.name(1), "{}").unwrap();
    assert_eq!(dropped.take().await, "{}");
    dropped.nothing_comes().await;
    fs::write(dropped.name(2), "[2]").unwrap();
    assert_eq!(dropped.take().await, "[2]");
    assert_eq!(answers(&dropped.folder()), 0);
    dropped.nothing_comes().await;
}

#[tokio::test]
async fn what_was_delivered_is_not_delivered_again_before_it_is_recorded() {
    let dropped = Dropped::new().await;
    fs::write(dropped.name(1), "[1]").unwrap();
    let delivered = dropped.next().await;
    dropped.nothing_comes().await;
    dropped.drop.recorded(&delivered).await.unwrap();
    // Another one that listens afterwards, as after a crash, sees nothing of it.
    let again = DropDirectory::below(dropped.scratch.path());
    again.announce(&dropped.announcement).await.unwrap();
    assert!(timeout(NEVER, again.next()).await.is_err());
    // What was not recorded is delivered to it.
    fs::write(dropped.name(2), "[2]").unwrap();
    dropped.next().await;
    assert_eq!(
        timeout(SOON, again.next()).await.unwrap().unwrap().bytes,
        b"[2]"
    );
}

#[tokio::test]
async fn hostile_files_are_neither_followed_nor_waited_for_and_the_genuine_one_still_comes() {
    let dropped = Dropped::new().await;
    let folder = dropped.folder();
    let secret = dropped.scratch.path().join("secret");
    fs::write(&secret, "{\"secret\":1}").unwrap();
    let hostile = || {
        symlink(&secret, dropped.name(1)).unwrap();
        fs::hard_link(&secret, dropped.name(2)).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(dropped.name(3))
            .status();
        assert!(made.unwrap().success());
        fs::create_dir(dropped.name(4)).unwrap();
        symlink("/dev/zero", dropped.name(5)).unwrap();
        for name in [
            "\u{202e}x.answer.json",
            "x.answer.json",
            ".answer.json",
            "a\nb.answer.json",
        ] {
            fs::write(folder.join(name), "{}").unwrap();
        }
    };
    hostile();
    dropped.nothing_comes().await;
    for n in 1..=5 {
        let name = dropped.name(n);
        let _ = fs::remove_file(&name).or_else(|_| fs::remove_dir(&name));
    }
    hostile();
    fs::write(dropped.name(9), "[9]").unwrap();
    assert_eq!(dropped.take().await, "[9]");
    dropped.nothing_comes().await;
    assert_eq!(fs::read_to_string(&secret).unwrap(), "{\"secret\":1}");
}

#[tokio::test]
async fn a_huge_file_is_cut_and_removed() {
    let dropped = Dropped::new().await;
    let file = fs::File::create(dropped.name(1)).unwrap();
    file.set_len(8 << 30).unwrap();
    drop(file);
    let delivered = dropped.next().await;
    assert_eq!(delivered.bytes.len(), MAX_DELIVERED);
    dropped.drop.recorded(&delivered).await.unwrap();
    assert!(!dropped.name(1).exists());
}

#[tokio::test]
async fn a_file_that_is_being_written_is_delivered_when_it_is_whole() {
    use std::io::Write as _;
    let dropped = Dropped::new().await;
    let mut file = fs::File::create(dropped.name(1)).unwrap();
    file.write_all(b"{\"half\":").unwrap();
    dropped.nothing_comes().await;
    file.write_all(b"1}").unwrap();
    drop(file);
    assert_eq!(dropped.take().await, "{\"half\":1}");
    // One that was left half-written by a writer that is gone comes as it is, once.
    fs::write(dropped.name(2), "{\"half\":").unwrap();
    let again = DropDirectory::below(dropped.scratch.path());
    again.announce(&dropped.announcement).await.unwrap();
    let delivered = timeout(SOON, again.next()).await.unwrap().unwrap();
    assert_eq!(delivered.bytes, b"{\"half\":");
}

#[tokio::test]
async fn a_folder_that_is_removed_or_moved_is_made_again_with_what_is_open() {
    let dropped = Dropped::new().await;
    let approvals = dropped.scratch.path().join(".lodestar/approvals");
    let request = dropped
        .folder()
        .join(format!("{}.request.json", dropped.announcement.request.id));
    dropped.nothing_comes().await;
    let ends: [&dyn Fn(); 3] = [
        &|| fs::remove_dir_all(dropped.folder()).unwrap(),
        &|| fs::remove_dir_all(&approvals).unwrap(),
        &|| fs::rename(&approvals, approvals.with_extension("away")).unwrap(),
    ];
    for (n, end) in (1..).zip(ends) {
        end();
        dropped.nothing_comes().await;
        assert!(request.exists(), "{n}");
        fs::write(dropped.name(n), format!("[{n}]")).unwrap();
        assert_eq!(dropped.take().await, format!("[{n}]"));
    }
    for path in [&approvals, &dropped.folder()] {
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }
    assert_eq!(
        fs::metadata(&request).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn a_link_in_place_of_the_folder_is_an_error_and_nothing_is_written_through_it() {
    let (announcement, scratch) = announcement().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let approvals = scratch.path().join(".lodestar/approvals");
    symlink(elsewhere.path(), &approvals).unwrap();
    let drop = DropDirectory::below(scratch.path());
    let problem = drop.announce(&announcement).await.unwrap_err().to_string();
    assert!(problem.contains("links are not followed"), "{problem}");
    assert!(timeout(SOON, drop.next()).await.unwrap().is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    fs::remove_file(&approvals).unwrap();
    drop.announce(&announcement).await.unwrap();
    assert!(timeout(NEVER, drop.next()).await.is_err());
}

#[tokio::test]
async fn more_notifications_than_the_system_remembers_lose_no_answer() {
    let dropped = Dropped::new().await;
    dropped.nothing_comes().await;
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: u32 = limit.trim().parse().unwrap();
    if limit > 100_000 {
        return;
    }
    let (mut from, mut to) = (dropped.folder().join("a"), dropped.folder().join("b"));
    fs::write(&from, "").unwrap();
    for _ in 0..limit + 100 {
        fs::rename(&from, &to).unwrap();
        std::mem::swap(&mut from, &mut to);
    }
    fs::write(dropped.name(1), "[1]").unwrap();
    assert_eq!(dropped.take().await, "[1]");
    dropped.nothing_comes().await;
}

#[tokio::test]
async fn ten_thousand_answers_at_once_come_once_each() {
    let dropped = Dropped::new().await;
    dropped.nothing_comes().await;
    for n in 0..10_000 {
        fs::write(dropped.name(n), format!("[{n}]")).unwrap();
    }
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..10_000 {
        assert!(seen.insert(dropped.take().await));
    }
    dropped.nothing_comes().await;
    assert_eq!(answers(&dropped.folder()), 0);
}

#[tokio::test]
async fn a_request_is_rewritten_when_more_agree_and_goes_when_it_is_over() {
    let dropped = Dropped::new().await;
    let mut pile = Pile::below(dropped.scratch.path()).unwrap();
    let mut watching = Watching::below(dropped.scratch.path()).unwrap();
    let mut more = dropped.announcement.clone();
    more.granted_by = vec![ActorId::new("anna").unwrap()];
    more.missing = 0;
    dropped.drop.announce(&more).await.unwrap();
    timeout(SOON, watching.changed()).await.unwrap().unwrap();
    pile.refresh().unwrap();
    assert_eq!(pile.requests().next().unwrap().announcement(), &more);
    let id = more.request.id;
    dropped.drop.withdraw(id, Closing::Expired).await.unwrap();
    timeout(SOON, watching.changed()).await.unwrap().unwrap();
    pile.refresh().unwrap();
    assert!(pile.requests().next().is_none());
}

#[tokio::test]
async fn notices_are_bounded_and_stay_readable() {
    let dropped = Dropped::new().await;
    let notice = |n: usize| Notice {
        session: dropped.announcement.request.session.clone(),
        at: Clock::system().now(),
        what: format!("{n} {}", "é".repeat(2000)),
    };
    for n in 0..400 {
        dropped.drop.notify(&notice(n)).await.unwrap();
    }
    let file = dropped.folder().join("notices.ndjson");
    assert!(fs::metadata(&file).unwrap().len() < 256 << 10);
    let pile = Pile::below(dropped.scratch.path()).unwrap();
    let notices = pile.notices();
    let last = notices.last().unwrap();
    assert!(last.what.starts_with("399 é"), "{}", last.what);
    assert!(last.what.ends_with(" bytes)"), "{}", last.what);
    // A link in its place is replaced, not followed.
    let secret = dropped.scratch.path().join("secret");
    fs::write(&secret, "s").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&secret, &file).unwrap();
    dropped.drop.notify(&notice(400)).await.unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "s");
    assert!(
        !fs::symlink_metadata(&file)
            .unwrap()
            .file_type()
            .is_symlink()
    );
}

#[tokio::test]
async fn an_approver_is_not_shown_a_card_that_is_not_the_one_they_would_sign() {
    let (genuine, scratch) = announcement().await;
    let id = genuine.request.id;
    let session = genuine.request.session.clone();
    let place = folder(scratch.path(), session.as_str());
    fs::create_dir_all(&place).unwrap();
    let file = place.join(format!("{id}.request.json"));
    let found = |announcement: &Announcement| {
        fs::write(&file, serde_json::to_vec(announcement).unwrap()).unwrap();
        let pile = Pile::below(scratch.path()).unwrap();
        let unusable = pile.unusable().next().map(|(_, _, why)| why.clone());
        (pile.requests().count(), unusable)
    };
    assert_eq!(found(&genuine), (1, None));
    let mut other = genuine.clone();
    other.request.card.action.arguments["to"] = json!("eve@evil.example");
    assert_eq!(found(&other), (0, Some(Unusable::OtherCard)));
    // With a digest that fits, the act is still another than the fingerprint says.
    other.request.card_digest = other.request.digest().unwrap();
    assert_eq!(found(&other), (0, Some(Unusable::OtherFingerprint)));
    let mut other = genuine.clone();
    other.request.card.why = "harmless".to_owned();
    assert_eq!(found(&other), (0, Some(Unusable::OtherCard)));
    let mut other = genuine.clone();
    other.request.session = lodestar_core::name::SessionId::new("other").unwrap();
    assert_eq!(found(&other), (0, Some(Unusable::OtherSession)));
    let mut other = genuine.clone();
    other.request.id = lodestar_core::id::RequestId::from_parts(1, [0; 10]);
    assert_eq!(found(&other), (0, Some(Unusable::OtherRequest)));
    fs::write(&file, "{").unwrap();
    let pile = Pile::below(scratch.path()).unwrap();
    assert!(matches!(
        pile.unusable().next(),
        Some((_, _, Unusable::Unreadable(_)))
    ));
}

/// Nanoseconds that this thread, and with it the whole runtime of the test, was on a processor.
fn on_processor() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
#[ignore = "measures for more than ten seconds, and prints what it finds"]
async fn what_a_thousand_open_requests_cost_and_how_fast_an_answer_is_heard() {
    let dropped = Dropped::new().await;
    for n in 0..1000 {
        let mut more = dropped.announcement.clone();
        let millis = more.request.id.unix_millis() + n;
        more.request.id = lodestar_core::id::RequestId::from_parts(millis, [7; 10]);
        dropped.drop.announce(&more).await.unwrap();
    }
    assert!(timeout(NEVER, dropped.drop.next()).await.is_err());
    let before = on_processor();
    let waited = timeout(Duration::from_secs(10), dropped.drop.next()).await;
    assert!(waited.is_err());
    let cost = on_processor() - before;
    let mut heard = Vec::new();
    for n in 0..200 {
        let name = dropped.name(n);
        let temporary = name.with_extension("new");
        let writing = tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_millis(5));
            fs::write(&temporary, "{}").unwrap();
            let at = std::time::Instant::now();
            fs::rename(&temporary, &name).unwrap();
            at
        });
        let delivered = dropped.next().await;
        let now = std::time::Instant::now();
        heard.push(now.duration_since(writing.await.unwrap()));
        dropped.drop.recorded(&delivered).await.unwrap();
    }
    heard.sort();
    println!(
        "1,001 open requests: {:.3} ms of CPU in 10 s of waiting (limit 20); an answer is delivered after {:.3} ms (median of 200, limit 50), {:.3} ms at most",
        cost as f64 / 1e6,
        heard[100].as_secs_f64() * 1e3,
        heard[199].as_secs_f64() * 1e3,
    );
}
