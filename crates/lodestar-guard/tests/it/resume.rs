//! Requests outlive the calls that wait for them, and the processes too: an answer opens exactly one
//! call of exactly this act, whenever that is made again in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_core::statement::ApprovalDecision;
use lodestar_guard::channel::drop::DropDirectory;
use lodestar_guard::channel::{Announcement, Channel, Closing, Delivered, Doing, Notice};
use lodestar_guard::{CallOptions, Holds};
use lodestar_kernel::record::Rejection;
use lodestar_kernel::step::{Step, Steps};
use lodestar_kernel::stop::Stop;
use lodestar_log::ProjectLog;
use serde_json::json;
use tokio::sync::Notify;

use crate::governed::{CountingTool, Project, count};
use crate::people::{GRANT, Pigeon, config, gone, open, said, send, times_out};

#[tokio::test]
async fn a_grant_that_comes_after_the_caller_left_opens_the_same_call_once() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(30, ""), &tool, &pigeon).await;
    let request = times_out(&session, send()).await;
    assert_eq!(
        times_out(&session, send()).await,
        request,
        "one request for one act"
    );
    assert_eq!(pigeon.requests().len(), 1);
    pigeon.say(&pigeon.requests()[0], 1, GRANT);
    pigeon.heard(1).await;
    assert_eq!(tool.ran(), 0, "nothing runs it but the call itself");
    let other = json!({"to": "anna@corp.example", "text": "hello!"});
    assert_ne!(times_out(&session, other).await, request);
    assert!(session.call("box.send", send()).await.unwrap().ran());
    assert_ne!(times_out(&session, send()).await, request, "spent");
    assert_eq!(tool.ran(), 1);
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_waiting_call_runs_as_soon_as_the_grant_comes() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(20_000, ""), &tool, &pigeon).await;
    let call = tokio::spawn({
        let session = session.clone();
        async move { session.call("box.send", send()).await.unwrap() }
    });
    let request = pigeon.announced(1).await;
    pigeon.say(&request, 1, GRANT);
    assert!(call.await.unwrap().ran());
    let withdrawn = pigeon.withdrawn.lock().unwrap().clone();
    assert_eq!(withdrawn, [(request.id, Closing::Spent)]);
    session.close("done").await.unwrap();
}

#[tokio::test]
async fn of_two_calls_that_wait_for_one_grant_exactly_one_runs() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(1_500, ""), &tool, &pigeon).await;
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.call("box.send", send()).await.unwrap().ran() })
        })
        .collect();
    let request = pigeon.announced(1).await;
    pigeon.say(&request, 1, GRANT);
    let mut ran = 0;
    for call in calls {
        ran += u32::from(call.await.unwrap());
    }
    assert_eq!((ran, tool.ran()), (1, 1));
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert!(count(&events, "approval.requested") <= 2);
}

#[tokio::test]
async fn a_session_that_was_closed_or_crashed_is_taken_up_again_with_its_requests() {
    for crash in [false, true] {
        let project = Project::new();
        let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
        let config = config(30, "");
        let first = open(&project, &config, &tool, &pigeon).await;
        let request = times_out(&first, send()).await;
        let id = first.id().clone();
        if !crash {
            first.close("client went away").await.unwrap();
        }
        gone(&project, first).await;
        pigeon.say(&pigeon.requests()[0], 1, GRANT);
        let again = open(&project, &config, &tool, &pigeon).await;
        assert_eq!(*again.id(), id, "crash: {crash}");
        pigeon.heard(1).await;
        assert!(again.call("box.send", send()).await.unwrap().ran());
        assert_eq!(tool.ran(), 1);
        assert_ne!(times_out(&again, send()).await, request);
        again.close("done").await.unwrap();
        project.assert_sound(&id);
    }
}

#[tokio::test]
async fn a_grant_that_was_heard_before_a_crash_is_not_lost_and_a_spent_one_stays_spent() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let config = config(30, "");
    let session = open(&project, &config, &tool, &pigeon).await;
    times_out(&session, send()).await;
    pigeon.say(&pigeon.requests()[0], 1, GRANT);
    pigeon.heard(1).await;
    let id = session.id().clone();
    gone(&project, session).await;
    let session = open(&project, &config, &tool, &pigeon).await;
    assert_eq!(*session.id(), id);
    assert!(session.call("box.send", send()).await.unwrap().ran());
    let open_still = json!({"to": "anna@corp.example", "text": "another"});
    times_out(&session, open_still).await;
    gone(&project, session).await;
    let session = open(&project, &config, &tool, &pigeon).await;
    assert_eq!(*session.id(), id);
    times_out(&session, send()).await;
    assert_eq!(tool.ran(), 1);
    session.close("done").await.unwrap();
    project.assert_sound(&id);
}

#[tokio::test]
async fn under_another_configuration_the_requests_are_closed_and_it_is_said() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let first = open(&project, &config(30, ""), &tool, &pigeon).await;
    let request = times_out(&first, send()).await;
    let id = first.id().clone();
    first.close("client went away").await.unwrap();
    gone(&project, first).await;
    pigeon.say(&pigeon.requests()[0], 1, GRANT);
    let more = "[approvals.default]\nquorum = 2\n";
    let other = open(&project, &config(30, more), &tool, &pigeon).await;
    assert_ne!(*other.id(), id);
    let [abandoned] = other.abandoned() else {
        panic!("{:?}", other.abandoned())
    };
    assert_eq!((&abandoned.session, abandoned.requests), (&id, 1));
    let cleared = pigeon.cleared.lock().unwrap().clone();
    assert_eq!(cleared, [(id.clone(), request, Closing::Abandoned)]);
    pigeon.heard(1).await;
    assert_ne!(times_out(&other, send()).await, request);
    assert_eq!(tool.ran(), 0);
    other.close("done").await.unwrap();
    assert_eq!(count(&project.events(&id), "approval.expired"), 1);
    let refused = project.events(other.id());
    let refused = refused
        .iter()
        .find(|(kind, _)| kind == "approval.refused@1");
    assert_eq!(refused.unwrap().1["reason"]["refused"], "unknown_request");
}

#[tokio::test]
async fn what_is_no_statement_is_recorded_and_a_genuine_one_still_works() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(30, ""), &tool, &pigeon).await;
    times_out(&session, send()).await;
    let request = pigeon.requests().pop().unwrap();
    let long = vec![b'['; 60_000];
    let sent: [&[u8]; 5] = [
        b"",
        b"decision=match",
        b"{\"granted\":true}",
        &[0xff, 0xfe],
        &long,
    ];
    for bytes in sent {
        pigeon.bring(request.id, bytes.to_vec());
    }
    pigeon.say(&request, 9, GRANT);
    pigeon.heard(6).await;
    times_out(&session, send()).await;
    pigeon.say(&request, 1, GRANT);
    pigeon.heard(7).await;
    assert!(session.call("box.send", send()).await.unwrap().ran());
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert_eq!(count(&events, "approval.refused"), 6);
    assert_eq!(count(&events, "approval.granted"), 1);
    project.assert_sound(session.id());
}

#[tokio::test]
async fn whoever_says_no_before_a_full_quorum_is_spent_ends_it() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let more = "[approvals.default]\nquorum = 2\n";
    let session = open(&project, &config(30, more), &tool, &pigeon).await;
    times_out(&session, send()).await;
    let request = pigeon.requests().pop().unwrap();
    pigeon.say(&request, 1, GRANT);
    pigeon.say(&request, 1, GRANT);
    pigeon.heard(2).await;
    times_out(&session, send()).await;
    assert_eq!(tool.ran(), 0, "one person is no quorum of two");
    pigeon.say(&request, 2, GRANT);
    pigeon.say(&request, 2, ApprovalDecision::Deny);
    pigeon.heard(4).await;
    // The next call is told, and only the one after it asks anew.
    let reply = session.call("box.send", send()).await.unwrap();
    let denied = reply.refusal();
    assert!(
        matches!(denied, Some(Rejection::ApprovalDenied { request: id, .. }) if *id == request.id),
        "{denied:?}"
    );
    assert_ne!(times_out(&session, send()).await, request.id);
    assert_eq!(tool.ran(), 0);
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn when_the_world_moves_the_grant_is_spent_in_vain() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(30, ""), &tool, &pigeon).await;
    std::fs::write(project.root.join("letter.md"), "as it was").unwrap();
    let arguments = json!({"to": "anna@corp.example", "path": "letter.md"});
    let request = times_out(&session, arguments.clone()).await;
    pigeon.say(&pigeon.requests()[0], 1, GRANT);
    pigeon.heard(1).await;
    std::fs::write(project.root.join("letter.md"), "as it is now").unwrap();
    let reply = session.call("box.send", arguments.clone()).await.unwrap();
    let moved = reply.refusal();
    assert!(
        matches!(moved, Some(Rejection::PreconditionFailed { .. })),
        "{moved:?}"
    );
    std::fs::write(project.root.join("letter.md"), "as it was").unwrap();
    assert_ne!(times_out(&session, arguments).await, request);
    assert_eq!(tool.ran(), 0);
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert_eq!(count(&events, "approval.consumed"), 1);
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_request_that_nobody_answers_in_time_is_over() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let more = "[approvals.default]\nexpires = \"1s\"\n";
    let session = open(&project, &config(30, more), &tool, &pigeon).await;
    let request = times_out(&session, send()).await;
    let late = said(&pigeon.requests()[0], 1, GRANT);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    pigeon.bring(request, late);
    pigeon.heard(1).await;
    assert_ne!(times_out(&session, send()).await, request);
    assert_eq!(tool.ran(), 0);
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    assert_eq!(count(&events, "approval.expired"), 1);
    project.assert_sound(session.id());
}

#[tokio::test]
async fn people_are_told_of_what_ran_without_them() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(30, ""), &tool, &pigeon).await;
    let write = json!({"path": "a.md", "text": "hello"});
    assert!(session.call("box.write", write).await.unwrap().ran());
    session.close("done").await.unwrap();
    let notices = pigeon.notices.lock().unwrap();
    assert_eq!(notices[0].what, "box.write a.md");
}

/// A channel that looks, when it is told to let go of a grant, whether the log has it on disk.
struct Doubting {
    pigeon: Arc<Pigeon>,
    project: ProjectLog,
    /// Grants that it was told to let go of too early.
    early: AtomicUsize,
}

impl Doubting {
    fn grants_on_disk(&self) -> usize {
        let sessions = self.project.sessions_on_disk().unwrap();
        let texts = sessions.iter().map(|session| {
            let path = self.project.session(session).events_path();
            std::fs::read_to_string(path).unwrap()
        });
        let count = |text: String| {
            let lines = text.lines();
            lines
                .filter(|line| line.contains("\"approval.granted@1\""))
                .count()
        };
        texts.map(count).sum()
    }
}

impl Channel for Doubting {
    fn announce<'a>(&'a self, announcement: &'a Announcement) -> Doing<'a, ()> {
        self.pigeon.announce(announcement)
    }

    fn withdraw<'a>(&'a self, request: RequestId, closing: Closing) -> Doing<'a, ()> {
        self.pigeon.withdraw(request, closing)
    }

    fn clear_away<'a>(
        &'a self,
        session: &'a SessionId,
        request: RequestId,
        closing: Closing,
    ) -> Doing<'a, ()> {
        self.pigeon.clear_away(session, request, closing)
    }

    fn notify<'a>(&'a self, notice: &'a Notice) -> Doing<'a, ()> {
        self.pigeon.notify(notice)
    }

    fn next(&self) -> Doing<'_, Delivered> {
        self.pigeon.next()
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn recorded<'a>(&'a self, delivered: &'a Delivered) -> Doing<'a, ()> {
        let let_go = self.pigeon.recorded.lock().unwrap().len();
        if self.grants_on_disk() <= let_go {
            self.early.fetch_add(1, Ordering::SeqCst);
        }
        self.pigeon.recorded(delivered)
    }
}

#[tokio::test]
async fn a_channel_lets_go_of_a_grant_only_when_the_log_has_it_on_disk() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let channel = Arc::new(Doubting {
        pigeon: Arc::clone(&pigeon),
        project: project.log(),
        early: AtomicUsize::new(0),
    });
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let setup = project.setup(&config(30, ""), &others).tool(tool);
    let told: Arc<dyn Channel> = channel.clone();
    let session = setup.holds(Holds::Tell(vec![told])).open().await.unwrap();
    for number in 1..=20 {
        let arguments = json!({"to": "anna@corp.example", "text": format!("letter {number}")});
        let request = times_out(&session, arguments).await;
        let mut asked = pigeon.requests().into_iter();
        let asked = asked.find(|asked| asked.id == request).unwrap();
        pigeon.say(&asked, 1, GRANT);
        pigeon.heard(number).await;
    }
    assert_eq!(channel.early.load(Ordering::SeqCst), 0);
    session.close("done").await.unwrap();
}

/// Tells the log first and takes its time.
struct Slow {
    pigeon: Arc<Pigeon>,
    has_heard: Notify,
}

impl Channel for Slow {
    fn announce<'a>(&'a self, announcement: &'a Announcement) -> Doing<'a, ()> {
        self.pigeon.announce(announcement)
    }

    fn withdraw<'a>(&'a self, request: RequestId, closing: Closing) -> Doing<'a, ()> {
        self.pigeon.withdraw(request, closing)
    }

    fn clear_away<'a>(
        &'a self,
        session: &'a SessionId,
        request: RequestId,
        closing: Closing,
    ) -> Doing<'a, ()> {
        self.pigeon.clear_away(session, request, closing)
    }

    fn notify<'a>(&'a self, notice: &'a Notice) -> Doing<'a, ()> {
        self.pigeon.notify(notice)
    }

    fn next(&self) -> Doing<'_, Delivered> {
        self.pigeon.next()
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn recorded<'a>(&'a self, delivered: &'a Delivered) -> Doing<'a, ()> {
        Box::pin(async move {
            self.has_heard.notify_one();
            tokio::time::sleep(Duration::from_millis(200)).await;
            self.pigeon.recorded(delivered).await
        })
    }
}

#[tokio::test]
async fn people_are_told_of_a_denial_although_the_session_is_closed_meanwhile() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let channel = Arc::new(Slow {
        pigeon: Arc::clone(&pigeon),
        has_heard: Notify::new(),
    });
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let setup = project.setup(&config(30, ""), &others).tool(tool);
    let told: Arc<dyn Channel> = channel.clone();
    let session = setup.holds(Holds::Tell(vec![told])).open().await.unwrap();
    let request = times_out(&session, send()).await;
    pigeon.say(&pigeon.requests()[0], 1, ApprovalDecision::Deny);
    channel.has_heard.notified().await;
    session.close("done").await.unwrap();
    let withdrawn = pigeon.withdrawn.lock().unwrap().clone();
    assert_eq!(withdrawn, [(request, Closing::Denied)]);
}

#[tokio::test]
async fn people_are_told_of_what_expired_when_the_session_is_closed() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let more = "[approvals.default]\nexpires = \"1s\"\n";
    let session = open(&project, &config(30, more), &tool, &pigeon).await;
    let request = times_out(&session, send()).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    session.close("done").await.unwrap();
    let withdrawn = pigeon.withdrawn.lock().unwrap().clone();
    assert_eq!(withdrawn, [(request, Closing::Expired)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_grant_that_one_call_took_and_gave_back_opens_the_call_that_waited_beside_it() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let (stop, waits) = (Stop::new(), Arc::new(AtomicUsize::new(0)));
    let (takes, other_waits) = (AtomicUsize::new(0), Arc::clone(&waits));
    let stopped = stop.clone();
    let taken = Arc::new(Notify::new());
    let has_taken = Arc::clone(&taken);
    // Between taking the grant and clearing by it, the other call comes, and this one is stopped.
    let steps = Steps::tell(move |step| match step {
        Step::Permitted if takes.fetch_add(1, Ordering::SeqCst) == 0 => {
            has_taken.notify_one();
            while other_waits.load(Ordering::SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(100));
            stopped.stop();
        }
        Step::Judged if takes.load(Ordering::SeqCst) > 0 => {
            other_waits.store(1, Ordering::SeqCst);
        }
        _ => {}
    });
    let told: Arc<dyn Channel> = pigeon.clone();
    let setup = project
        .setup(&config(5_000, ""), &others)
        .tool(tool.clone());
    let setup = setup.holds(Holds::Tell(vec![told])).steps(steps);
    let session = setup.open().await.unwrap();
    let first = tokio::spawn({
        let (session, stop) = (session.clone(), stop.clone());
        let options = CallOptions {
            stop,
            ..CallOptions::default()
        };
        async move {
            session
                .call_with("box.send", send(), options)
                .await
                .unwrap()
        }
    });
    let request = pigeon.announced(1).await;
    pigeon.say(&request, 1, GRANT);
    taken.notified().await;
    let second = session.call("box.send", send()).await.unwrap();
    assert!(!first.await.unwrap().ran());
    assert!(second.ran(), "{second:?}");
    assert_eq!((tool.ran(), pigeon.requests().len()), (1, 1));
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_request_that_cannot_be_answered_any_more_does_not_lie_in_the_drop_directory() {
    let project = Project::new();
    let tool = CountingTool::new("box.send");
    let open = async |more: &str| {
        let others = ["box.read", "box.write"].map(CountingTool::new);
        let setup = project.setup(&config(30, more), &others).tool(tool.clone());
        let told: Arc<dyn Channel> = Arc::new(DropDirectory::below(&project.root));
        setup.holds(Holds::Tell(vec![told])).open().await.unwrap()
    };
    let session = open("").await;
    let request = times_out(&session, send()).await;
    let folder = DropDirectory::path_below(&project.root).join(session.id().as_str());
    let file = folder.join(format!("{request}.request.json"));
    assert!(file.exists());
    session.close("client went away").await.unwrap();
    assert!(file.exists(), "it can be answered still");
    gone(&project, session).await;
    let other = open("[approvals.default]\nquorum = 2\n").await;
    assert!(!file.exists());
    other.close("done").await.unwrap();
}

/// A yes and a no lie there before anybody listens, and in whatever order they are found.
#[tokio::test]
async fn a_no_that_lies_beside_a_yes_ends_the_request_whichever_is_found_first() {
    for at in 0..8 {
        let project = Project::new();
        let tool = CountingTool::new("box.send");
        let open = async || {
            let others = ["box.read", "box.write"].map(CountingTool::new);
            let setup = project.setup(&config(0, ""), &others).tool(tool.clone());
            let told: Arc<dyn Channel> = Arc::new(DropDirectory::below(&project.root));
            setup.holds(Holds::Tell(vec![told])).open().await.unwrap()
        };
        let session = open().await;
        let request = times_out(&session, send()).await;
        let folder = DropDirectory::path_below(&project.root).join(session.id().as_str());
        let announced = std::fs::read(folder.join(format!("{request}.request.json"))).unwrap();
        let announced: Announcement = serde_json::from_slice(&announced).unwrap();
        session.close("client went away").await.unwrap();
        gone(&project, session).await;
        let words = [(1, GRANT), (2, ApprovalDecision::Deny)];
        for (who, word) in words {
            let nonce = if at % 2 == 0 { who } else { 9 - who };
            let name = format!("{request}.{nonce:032x}.answer.json");
            std::fs::write(folder.join(name), said(&announced.request, who, word)).unwrap();
        }
        let again = open().await;
        let reply = again.call("box.send", send()).await.unwrap();
        assert!(!reply.ran(), "{reply:?}");
        assert_eq!(tool.ran(), 0);
        again.close("done").await.unwrap();
        project.assert_sound(again.id());
        let events = project.events(again.id());
        assert_eq!(count(&events, "approval.denied"), 1);
    }
}

/// With nobody waiting at all, the first call that is made again finds the answer.
#[tokio::test]
async fn a_grant_that_lay_there_before_the_session_was_taken_up_opens_the_first_call() {
    for _ in 0..8 {
        let project = Project::new();
        let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
        let config = config(0, "");
        let session = open(&project, &config, &tool, &pigeon).await;
        times_out(&session, send()).await;
        session.close("client went away").await.unwrap();
        gone(&project, session).await;
        pigeon.say(&pigeon.requests()[0], 1, GRANT);
        let again = open(&project, &config, &tool, &pigeon).await;
        assert!(again.call("box.send", send()).await.unwrap().ran());
        again.close("done").await.unwrap();
    }
}

#[tokio::test]
async fn very_many_open_requests_are_taken_up_again_too() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let config = config(0, "");
    let session = open(&project, &config, &tool, &pigeon).await;
    for number in 0..1_700 {
        let arguments = json!({"to": "anna@corp.example", "text": format!("letter {number}")});
        times_out(&session, arguments).await;
    }
    let id = session.id().clone();
    session.close("client went away").await.unwrap();
    gone(&project, session).await;
    pigeon.say(&pigeon.requests()[0], 1, GRANT);
    let again = open(&project, &config, &tool, &pigeon).await;
    assert_eq!(*again.id(), id);
    let arguments = json!({"to": "anna@corp.example", "text": "letter 0"});
    assert!(again.call("box.send", arguments).await.unwrap().ran());
    again.close("done").await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_halted_while_it_waits_says_so() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(20_000, ""), &tool, &pigeon).await;
    let call = tokio::spawn({
        let session = session.clone();
        async move { session.call("box.send", send()).await.unwrap() }
    });
    pigeon.announced(1).await;
    session.halt("enough").unwrap();
    let reply = call.await.unwrap();
    assert!(
        matches!(reply.refusal(), Some(Rejection::Halted)),
        "{reply:?}"
    );
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}
