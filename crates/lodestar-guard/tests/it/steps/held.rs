//! Killed on the way from a hold over a grant to its execution: whatever step it was, one grant runs at
//! most one call, the log says which, and a grant that was heard and not spent is not lost.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lodestar_guard::channel::Channel;
use lodestar_guard::channel::drop::{DropDirectory, Pile};
use lodestar_guard::{Holds, Session, Setup};
use lodestar_kernel::step::{Step, Steps};
use lodestar_kernel::tool::Output;
use lodestar_policy::ApprovalRequest;
use serde_json::{Value, json};

use super::kill::die;
use super::{Scene, tracing};
use crate::beforehand::{YES, confirming, left, put, word};
use crate::drop::{answers, folder};
use crate::governed::{CountingTool, Project, count};
use crate::people::{GRANT, random, said};

const PLAN: &str = "LODESTAR_TEST_PLAN";

/// How the word comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// In the drop directory, after the caller went away.
    AnswerLater,
    /// In the drop directory, while the call waits.
    AnswerMeanwhile,
    /// As a confirmation, before the call is made again.
    Confirmation,
}

impl Word {
    const ALL: [Self; 3] = [Self::AnswerLater, Self::AnswerMeanwhile, Self::Confirmation];
}

/// When the process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The step is made for so many times.
    Step(Step, u64),
    /// The tool was called, and has done nothing.
    Called,
    /// The tool has done it, and has not returned.
    Done,
}

/// Everything that happens, in its order.
fn moments(word: Word) -> Vec<Moment> {
    use Step::*;
    let first = [Decided, Proposed, Judged, Asked, Announced].map(|step| Moment::Step(step, 1));
    let again = [Decided, Proposed, Judged].map(|step| Moment::Step(step, 2));
    let confirmed = [Found, Spent, Consumed, Heard].map(|step| Moment::Step(step, 1));
    let cleared = [Permitted, MeasuredAgain, Cleared, Durable].map(|step| Moment::Step(step, 1));
    let ended = [Returned, Observed, Believed, Finished].map(|step| Moment::Step(step, 1));
    let mut all = first.to_vec();
    match word {
        Word::AnswerLater => {
            // The second time when the answer is put away and people are told how it stands.
            all.extend([Moment::Step(Heard, 1), Moment::Step(Announced, 2)]);
            all.extend(again);
        }
        Word::AnswerMeanwhile => all.push(Moment::Step(Heard, 1)),
        Word::Confirmation => {
            all.extend(again);
            all.extend(confirmed);
            all.push(Moment::Step(Announced, 2));
        }
    }
    all.extend(cleared);
    all.extend([Moment::Called, Moment::Done]);
    all.extend(ended);
    all
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    word: Word,
    moment: Moment,
    /// How long the other threads still run.
    micros: u64,
}

impl Plan {
    /// By places in the lists of words and moments.
    fn spelt(self) -> String {
        let word = Word::ALL.iter().position(|word| *word == self.word);
        let moment = moments(self.word)
            .iter()
            .position(|one| *one == self.moment);
        format!("{} {} {}", word.unwrap(), moment.unwrap(), self.micros)
    }

    fn read() -> Self {
        let text = std::env::var(PLAN).expect("started by another test");
        let numbers: Vec<usize> = text.split(' ').map(|n| n.parse().unwrap()).collect();
        let word = Word::ALL[numbers[0]];
        Self {
            word,
            moment: moments(word)[numbers[1]],
            micros: numbers[2] as u64,
        }
    }
}

fn call() -> Value {
    json!({"to": "anna@corp.example", "text": "sent"})
}

/// The project, while a session of it may be open.
fn project(scene: &Scene) -> Project {
    let project = scene.project();
    project.will_be_edited();
    project
}

fn setup(scene: &Scene, word: Word, tool: CountingTool) -> Setup {
    let timeout = if word == Word::AnswerMeanwhile {
        1_000
    } else {
        0
    };
    let config = confirming(timeout, "enforce", "");
    let others = ["box.read", "box.write"].map(CountingTool::new);
    let project = project(scene);
    let channel: Arc<dyn Channel> = Arc::new(DropDirectory::below(&project.root));
    let setup = project.setup(&config, &others).tool(tool);
    setup.holds(Holds::Tell(vec![channel]))
}

/// What people are asked for, and the folder in which they answer.
fn asked(scene: &Scene) -> Option<(ApprovalRequest, PathBuf)> {
    let root = project(scene).root.clone();
    let pile = Pile::below(&root).unwrap();
    let request = pile.requests().last()?.announcement().request.clone();
    let folder = folder(&root, request.session.as_str());
    Some((request, folder))
}

fn answer(request: &ApprovalRequest, folder: &std::path::Path) {
    let nonce: String = random().iter().map(|byte| format!("{byte:02x}")).collect();
    let temporary = folder.join(format!("{nonce}.new"));
    std::fs::write(&temporary, said(request, 1, GRANT)).unwrap();
    let name = format!("{}.{nonce}.answer.json", request.id);
    std::fs::rename(temporary, folder.join(name)).unwrap();
}

/// Somebody answers the one request that there is.
fn grant(scene: &Scene) -> PathBuf {
    let (request, folder) = asked(scene).expect("it is announced");
    answer(&request, &folder);
    folder
}

async fn heard(folder: &std::path::Path) {
    for _ in 0..10_000 {
        if !folder.exists() || answers(folder) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("what was dropped was not heard");
}

fn confirm(scene: &Scene) {
    let (request, _) = asked(scene).expect("it is announced");
    let evidence = word(&request, 1, YES).details().to_json();
    let id = lodestar_core::statement::ConfirmationId::from_bytes(random());
    put(&project(scene), &request, id, &evidence);
}

/// The tool that leaves a trace, and dies before or after.
fn deadly(scene: &Scene, plan: Plan) -> CountingTool {
    let traces = scene.traces();
    CountingTool::answering("box.send", move |call| {
        let after = Duration::from_micros(plan.micros);
        if plan.moment == Moment::Called {
            die(after);
        }
        super::leave_trace(&traces, call.text("text").unwrap());
        if plan.moment == Moment::Done {
            die(after);
        }
        Output::text("sent")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is started by the tests below, in a process of its own"]
async fn a_process_that_kills_itself() {
    let (scene, plan) = (Scene::inherited(), Plan::read());
    let made = AtomicU64::new(0);
    let steps = Steps::tell(move |step| {
        if let Moment::Step(fatal, times) = plan.moment
            && step == fatal
            && made.fetch_add(1, Ordering::SeqCst) + 1 == times
        {
            die(Duration::from_micros(plan.micros));
        }
    });
    let setup = setup(&scene, plan.word, deadly(&scene, plan)).steps(steps);
    let session = setup.open().await.unwrap();
    match plan.word {
        Word::AnswerLater => {
            assert!(!session.call("box.send", call()).await.unwrap().ran());
            heard(&grant(&scene)).await;
        }
        Word::AnswerMeanwhile => {
            let scene = Scene::inherited();
            tokio::spawn(async move {
                while asked(&scene).is_none() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                grant(&scene);
            });
        }
        Word::Confirmation => {
            assert!(!session.call("box.send", call()).await.unwrap().ran());
            confirm(&scene);
        }
    }
    let reply = session.call("box.send", call()).await.unwrap();
    panic!(
        "every moment comes, so this is not reached: {:?}",
        reply.outcome
    );
}

/// What the logs of the project say of the held act.
#[derive(Debug, Default, PartialEq, Eq)]
struct Story {
    granted: usize,
    cleared: usize,
    completed: usize,
    unknown: usize,
}

fn story(scene: &Scene) -> Story {
    let (project, mut story) = (project(scene), Story::default());
    for session in project.log().sessions_on_disk().unwrap() {
        let events = project.events(&session);
        story.granted += count(&events, "approval.granted");
        story.cleared += count(&events, "action.cleared");
        story.completed += count(&events, "action.completed");
        story.unknown += count(&events, "action.unknown");
    }
    story
}

async fn open_again(scene: &Scene, plan: Plan) -> Session {
    let setup = setup(scene, plan.word, tracing("box.send", &scene.traces()));
    setup.open().await.unwrap()
}

async fn follow(plan: Plan) -> Story {
    let scene = Scene::new();
    let test = "steps::held::a_process_that_kills_itself";
    let status = scene.child(test).env(PLAN, plan.spelt()).status().unwrap();
    assert_eq!(status.signal(), Some(9), "{plan:?}: {status}");
    let (ran, open) = (scene.ran().len(), asked(&scene));
    let waits = open.as_ref().is_some_and(|(_, folder)| answers(folder) > 0);
    let is_confirmed = left(&project(&scene)) > 0;

    let session = open_again(&scene, plan).await;
    assert_eq!(scene.ran().len(), ran, "{plan:?}: nothing runs by itself");
    // A session that is over for good hears nothing any more, and shows nothing to anybody.
    if let Some((request, folder)) = &open {
        let goes_on = request.session == *session.id();
        match goes_on {
            true => heard(folder).await,
            false => assert!(asked(&scene).is_none(), "{plan:?}: nobody waits"),
        }
    }
    let before = story(&scene);
    assert!(
        before.cleared <= 1 && before.granted <= 1,
        "{plan:?}: {before:?}"
    );
    assert!(
        ran <= before.cleared,
        "{plan:?}: it ran uncleared: {before:?}"
    );
    let is_open = before.cleared > before.completed;
    assert_eq!(before.unknown, usize::from(is_open), "{plan:?}: {before:?}");
    assert!(
        !waits || before.granted == 1,
        "{plan:?}: what lay there was heard"
    );
    // A word that was heard and not spent opens the call; one that was spent does not.
    let again = session.call("box.send", call()).await.unwrap().ran();
    // A confirmation is spent before the log says so: if the log never does, its word is lost.
    let spent = [Step::Spent, Step::Consumed, Step::Heard];
    let is_spent = spent.map(|step| Moment::Step(step, 1));
    let is_unread = is_confirmed && before.granted == 0 && !is_spent.contains(&plan.moment);
    let is_unspent = before.granted > before.cleared;
    assert_eq!(again, is_unspent || is_unread, "{plan:?}: {before:?}");
    let now = scene.ran().len();
    assert_eq!(now, ran + usize::from(again), "{plan:?}");
    assert!(now <= 1, "{plan:?}: one grant ran {now} calls");

    // And whoever asks again gets an answer that counts, once.
    if again {
        assert!(!session.call("box.send", call()).await.unwrap().ran());
    }
    heard(&grant(&scene)).await;
    assert!(
        session.call("box.send", call()).await.unwrap().ran(),
        "{plan:?}"
    );
    assert_eq!(scene.ran().len(), now + 1, "{plan:?}");
    session.close("done").await.unwrap();
    let after = story(&scene);
    assert!(scene.ran().len() <= after.granted, "{plan:?}: {after:?}");
    assert_eq!(after.cleared, after.completed + after.unknown, "{plan:?}");
    for session in project(&scene).log().sessions_on_disk().unwrap() {
        project(&scene).assert_sound(&session);
    }
    before
}

#[tokio::test]
async fn matrix_a_kill_between_any_two_steps_of_a_grant_runs_it_at_most_once() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let repetitions = if full { 25 } else { 1 };
    let mut kills = 0;
    for word in Word::ALL {
        let mut told = std::collections::BTreeMap::new();
        for moment in moments(word) {
            for number in 0..repetitions {
                let micros = if number % 2 == 0 {
                    0
                } else {
                    number * 977 % 4000
                };
                let before = follow(Plan {
                    word,
                    moment,
                    micros,
                })
                .await;
                let says = match before {
                    Story { completed: 1, .. } => "executed",
                    Story { unknown: 1, .. } => "unknown",
                    Story { granted: 1, .. } => "granted, not run",
                    _ => "not granted, not run",
                };
                *told.entry(says).or_insert(0) += 1;
                kills += 1;
            }
        }
        println!(
            "{word:?}: killed at {} moments; the log told {told:?}",
            moments(word).len()
        );
    }
    println!(
        "{kills} kills on the way from a hold to its execution: one call for one grant at most"
    );
}
