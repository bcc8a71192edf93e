//! Somebody's yes does not last for ever: it is looked at again when the call takes it.

use std::sync::Arc;
use std::time::Duration;

use lodestar_core::time::Timestamp;
use lodestar_log::Clock;

use crate::governed::{CountingTool, Project, count};
use crate::people::{GRANT, Pigeon, config, open, said, send, times_out};

fn now() -> Timestamp {
    Clock::system().now()
}

#[tokio::test]
async fn a_word_is_worth_nothing_once_it_is_out_of_date() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let session = open(&project, &config(30, ""), &tool, &pigeon).await;
    times_out(&session, send()).await;
    let request = pigeon.announced(1).await;
    let mut short = request.clone();
    short.expires_at = now().checked_add(Duration::from_millis(300)).unwrap();
    pigeon.bring(request.id, said(&short, 1, GRANT));
    pigeon.heard(1).await;
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert_eq!(times_out(&session, send()).await, request.id, "still open");
    assert_eq!(tool.ran(), 0);
    pigeon.say(&request, 1, GRANT);
    pigeon.heard(2).await;
    assert!(session.call("box.send", send()).await.unwrap().ran());
    session.close("done").await.unwrap();
    let events = project.events(session.id());
    let cleared = events.iter().find(|(kind, _)| kind == "action.cleared@1");
    let grants = cleared.unwrap().1["grants"].as_array().unwrap().len();
    assert_eq!(grants, 1, "only the one that counts is spent");
    project.assert_sound(session.id());
}

#[tokio::test]
async fn a_word_is_worth_nothing_once_its_key_is_revoked() {
    let project = Project::new();
    let (tool, pigeon) = (CountingTool::new("box.send"), Arc::new(Pigeon::default()));
    let until = now().checked_add(Duration::from_secs(4)).unwrap();
    let config = config(30, "").replacen(
        "actor_id = \"person-1\"\n",
        &format!("actor_id = \"person-1\"\nrevoked_at = \"{until}\"\n"),
        1,
    );
    let session = open(&project, &config, &tool, &pigeon).await;
    times_out(&session, send()).await;
    let request = pigeon.announced(1).await;
    pigeon.say(&request, 1, GRANT);
    pigeon.heard(1).await;
    assert_eq!(
        count(&project.events(session.id()), "approval.granted"),
        1,
        "in time"
    );
    while now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(times_out(&session, send()).await, request.id);
    assert_eq!(tool.ran(), 0);
    pigeon.say(&request, 2, GRANT);
    pigeon.heard(2).await;
    assert!(session.call("box.send", send()).await.unwrap().ran());
    session.close("done").await.unwrap();
    project.assert_sound(session.id());
}
