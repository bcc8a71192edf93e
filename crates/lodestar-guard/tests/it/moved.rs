//! The world moves between somebody's yes and the call: the rejection spends the grant, and nothing else has
//! to be written for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lodestar_guard::channel::Channel;
use lodestar_guard::{Holds, Session};
use lodestar_kernel::record::Rejection;
use lodestar_kernel::step::{Step, Steps};
use serde_json::{Value, json};

use crate::governed::{CountingTool, Project, count};
use crate::people::{GRANT, Pigeon, config, gone, times_out};
use crate::replay::edit;

fn letter() -> Value {
    json!({"to": "anna@corp.example", "path": "letter.md", "text": "hello"})
}

struct Granted {
    project: Project,
    tool: CountingTool,
    pigeon: Arc<Pigeon>,
    session: Session,
    /// Whether the process stops right after the rejection.
    stops: Arc<AtomicBool>,
}

async fn open(
    project: &Project,
    tool: &CountingTool,
    pigeon: &Arc<Pigeon>,
    stops: &Arc<AtomicBool>,
) -> Session {
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let (channel, stops): (Arc<dyn Channel>, _) = (pigeon.clone(), Arc::clone(stops));
    let setup = project
        .setup(&config(30, ""), &others)
        .tool(tool.clone())
        .steps(Steps::tell(move |made| {
            if made == Step::Rejected && stops.load(Ordering::SeqCst) {
                std::panic::resume_unwind(Box::new("gone"));
            }
        }));
    let setup = setup.holds(Holds::Tell(vec![channel]));
    setup.open().await.unwrap()
}

/// Somebody has agreed, and the letter is another by now.
async fn granted_and_moved() -> Granted {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let stops = Arc::new(AtomicBool::new(false));
    std::fs::write(project.root.join("letter.md"), "dear Anna").unwrap();
    let session = open(&project, &tool, &pigeon, &stops).await;
    times_out(&session, letter()).await;
    let request = pigeon.announced(1).await;
    pigeon.say(&request, 1, GRANT);
    pigeon.heard(1).await;
    std::fs::write(project.root.join("letter.md"), "dear Eve").unwrap();
    Granted {
        project,
        tool,
        pigeon,
        session,
        stops,
    }
}

impl Granted {
    /// A call that is rejected, and whose process stops before it has said more.
    async fn stops_at_the_rejection(&self) {
        self.stops.store(true, Ordering::SeqCst);
        let session = self.session.clone();
        let calling = tokio::spawn(async move { session.call("box.send", letter()).await });
        assert!(calling.await.unwrap_err().is_panic());
        self.stops.store(false, Ordering::SeqCst);
    }

    /// The world is as it was shown once more.
    fn moves_back(&self) {
        std::fs::write(self.project.root.join("letter.md"), "dear Anna").unwrap();
    }
}

#[tokio::test]
async fn a_rejection_because_the_world_moved_spends_the_grant_and_closes_the_request() {
    let granted = granted_and_moved().await;
    let reply = granted.session.call("box.send", letter()).await.unwrap();
    let why = reply.refusal();
    assert!(
        matches!(why, Some(Rejection::PreconditionFailed { .. })),
        "{why:?}"
    );
    granted.moves_back();
    times_out(&granted.session, letter()).await;
    assert_eq!(granted.tool.ran(), 0);
    granted.session.close("done").await.unwrap();
    let events = granted.project.events(granted.session.id());
    assert_eq!(count(&events, "approval.consumed"), 1);
    granted.project.assert_sound(granted.session.id());
}

#[tokio::test]
async fn a_grant_is_spent_by_the_rejection_alone_in_the_same_session() {
    let granted = granted_and_moved().await;
    let request = granted.pigeon.requests()[0].id;
    granted.stops_at_the_rejection().await;
    granted.moves_back();
    assert_ne!(times_out(&granted.session, letter()).await, request);
    assert_eq!(granted.tool.ran(), 0);
    granted.session.close("done").await.unwrap();
    granted.project.assert_sound(granted.session.id());
}

#[tokio::test]
async fn a_grant_is_spent_by_the_rejection_alone_also_for_whoever_takes_the_session_up() {
    let granted = granted_and_moved().await;
    // A request that is open still lets the session go on.
    let other = json!({"to": "ben@corp.example", "text": "hello"});
    times_out(&granted.session, other).await;
    granted.stops_at_the_rejection().await;
    granted.moves_back();
    let Granted {
        project,
        tool,
        pigeon,
        session,
        stops,
    } = granted;
    let (id, request) = (session.id().clone(), pigeon.requests()[0].id);
    gone(&project, session).await;
    let again = open(&project, &tool, &pigeon, &stops).await;
    assert_eq!(*again.id(), id);
    assert_ne!(times_out(&again, letter()).await, request, "spent");
    assert_eq!(tool.ran(), 0);
    again.close("done").await.unwrap();
    let events = project.events(&id);
    assert_eq!(count(&events, "approval.consumed"), 0, "nobody said more");
    project.assert_sound(&id);
}

#[tokio::test]
async fn a_log_in_which_a_rejection_spends_nothing_or_a_request_ends_by_itself_is_found() {
    let granted = granted_and_moved().await;
    let (project, session) = (&granted.project, &granted.session);
    session.call("box.send", letter()).await.unwrap();
    session.close("done").await.unwrap();
    let id = session.id().clone();
    let path = project.log().session(&id).events_path();
    let honest = std::fs::read_to_string(&path).unwrap();
    let rejections = honest.matches("action.rejected@1").count();
    let found = |seq: u64| {
        let differences = project.replay(&id).differences;
        assert!(
            differences.iter().any(|one| one.seq == seq),
            "{differences:?}"
        );
    };
    let last = rejections - 1;
    found(edit(project, &id, "action.rejected@1", last, |rejected| {
        rejected.as_object_mut().unwrap().remove("granted");
    }));
    std::fs::write(&path, &honest).unwrap();
    // As if the caller had only been stopped, and the request closed all the same.
    let request = granted.pigeon.requests()[0].id;
    edit(project, &id, "action.rejected@1", last, |rejected| {
        rejected["kind"] = json!("stopped");
        rejected.as_object_mut().unwrap().remove("moved");
    });
    found(edit(project, &id, "approval.consumed@1", 0, |closed| {
        closed["request"] = json!(request);
    }));
}
