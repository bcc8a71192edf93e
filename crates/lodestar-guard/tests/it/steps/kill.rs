//! Killed at a step: nothing runs twice, nothing runs that the disk does not know, and the next
//! session says what is known.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lodestar_kernel::step::{Step, Steps};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;

use super::{Scene, arguments, session_id};
use crate::governed::count;

const PLAN: &str = "LODESTAR_TEST_PLAN";

/// The call during which the process is killed.
const FATAL: &str = "fatal";

/// When the process is killed, and what it did before.
#[derive(Debug, Clone, Copy)]
struct Plan {
    step: Step,
    /// Calls before the fatal one, in turn of L3 and L0.
    before: u64,
    /// Calls beside it.
    beside: u64,
    /// How long the other threads still run once the step is made.
    micros: u64,
}

impl Plan {
    /// The same for the same number; neighbouring numbers differ in everything but the step.
    fn of(step: Step, number: u64) -> Self {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        Self {
            step,
            before: mixed % 4,
            beside: mixed / 4 % 3,
            // Half of them at once: nothing is written behind the step's back then.
            micros: if (mixed / 16).is_multiple_of(2) {
                0
            } else {
                mixed / 32 % 4000
            },
        }
    }

    fn spelt(self) -> String {
        let at = Step::ALL.iter().position(|step| *step == self.step);
        let Self { before, beside, .. } = self;
        format!("{} {before} {beside} {}", at.unwrap(), self.micros)
    }

    fn read() -> Self {
        let text = std::env::var(PLAN).expect("started by another test");
        let numbers: Vec<u64> = text.split(' ').map(|n| n.parse().unwrap()).collect();
        Self {
            step: Step::ALL[usize::try_from(numbers[0]).unwrap()],
            before: numbers[1],
            beside: numbers[2],
            micros: numbers[3],
        }
    }
}

pub(super) fn die(after: Duration) -> ! {
    if !after.is_zero() {
        std::thread::sleep(after);
    }
    kill_process(getpid(), Signal::KILL).unwrap();
    unreachable!("nobody survives that signal")
}

#[tokio::test]
#[ignore = "is started by the tests below, in a process of its own"]
async fn a_process_that_kills_itself() {
    let (scene, plan) = (Scene::inherited(), Plan::read());
    // Whichever action makes the step first, once the fatal call and those beside it are let go.
    let armed = Arc::new(AtomicBool::new(false));
    let watching = Arc::clone(&armed);
    let steps = Steps::tell(move |step| {
        let is_armed = watching.load(Ordering::SeqCst);
        if is_armed && step == plan.step {
            die(Duration::from_micros(plan.micros));
        }
    });
    let session = scene.setup("s1").steps(steps).open().await.unwrap();
    for number in 0..plan.before {
        let tool = ["box.write", "box.read"][usize::from(number % 2 == 1)];
        let call = arguments(&format!("before-{number}"));
        assert!(session.call(tool, call).await.unwrap().ran());
    }
    let held = arguments("held");
    assert!(!session.call("box.send", held).await.unwrap().ran());
    let beside: Vec<_> = (0..plan.beside)
        .map(|number| {
            let session = session.clone();
            let call = arguments(&format!("beside-{number}"));
            tokio::spawn(async move { session.call("box.write", call).await })
        })
        .collect();
    armed.store(true, Ordering::SeqCst);
    session.call("box.write", arguments(FATAL)).await.unwrap();
    for call in beside {
        call.await.unwrap().unwrap();
    }
    // What is believed follows behind the calls.
    session.context(None, 1).await.unwrap();
    panic!("every step of an action is made, so this is not reached");
}

/// What the log says of one action.
#[derive(Debug, Default)]
struct Story {
    name: String,
    is_held: bool,
    cleared: usize,
    ended: usize,
    unknown: usize,
}

fn stories(events: &[(String, Value)]) -> BTreeMap<String, Story> {
    let mut stories: BTreeMap<String, Story> = BTreeMap::new();
    for (kind, payload) in events {
        let id = if kind == "action.proposed@1" {
            &payload["id"]
        } else {
            &payload["action"]
        };
        let Some(id) = id.as_str() else { continue };
        let story = stories.entry(id.to_owned()).or_default();
        match kind.as_str() {
            "action.proposed@1" => {
                story.name = payload["arguments"]["text"].as_str().unwrap().to_owned();
                story.is_held = payload["tool"] == "box.send";
            }
            "action.cleared@1" => story.cleared += 1,
            "action.completed@1" | "action.failed@1" => story.ended += 1,
            "action.unknown@1" => story.unknown += 1,
            _ => {}
        }
    }
    stories
}

/// Results of calls that ended, of which nothing is believed, or more than once.
fn unbelieved(events: &[(String, Value)]) -> usize {
    let of = |wanted: &'static str| events.iter().filter(move |(kind, _)| kind == wanted);
    let ended = of("action.completed@1").map(|(_, payload)| &payload["effect_observations"][0]);
    let without = ended.filter(|observation| {
        let whole = of("belief.adopted@1").filter(|(_, p)| p["observation"] == **observation);
        let mut places = events.iter();
        let place = places
            .position(|(kind, p)| kind == "observation.recorded@1" && p["id"] == **observation);
        let named = of("belief.adopted@2").flat_map(|(_, p)| p["results"].as_array().unwrap());
        let named = named.filter(|seq| seq.as_u64() == place.map(|place| place as u64));
        whole.count() + named.count() != 1
    });
    without.count()
}

/// Runs a plan to its end, and everything that has to be true then.
async fn follow(plan: Plan) {
    let scene = Scene::new();
    let test = "steps::kill::a_process_that_kills_itself";
    let status = scene.child(test).env(PLAN, plan.spelt()).status().unwrap();
    assert_eq!(status.signal(), Some(9), "{plan:?}: {status}");
    let ran = scene.ran();

    let next = scene.open("s2").await;
    next.close("done").await.unwrap();
    assert_eq!(scene.ran(), ran, "{plan:?}: nothing is run again");
    let (project, session) = (scene.project(), session_id("s1"));
    let events = project.events(&session);
    let (kind, payload) = events.last().unwrap();
    assert_eq!(kind, "session.closed@1", "{plan:?}");
    assert_eq!(payload["reason"], "interrupted", "{plan:?}");
    assert_eq!(count(&events, "session.closed"), 1);

    let stories = stories(&events);
    for story in stories.values() {
        assert!(story.cleared <= 1, "{plan:?}: {story:?}");
        let is_open = story.cleared == 1 && story.ended == 0;
        assert_eq!(story.unknown, usize::from(is_open), "{plan:?}: {story:?}");
        assert!(story.ended <= story.cleared, "{plan:?}: {story:?}");
        assert!(!story.is_held || story.cleared == 0, "{plan:?}: {story:?}");
    }
    for name in &ran {
        let times = ran.iter().filter(|other| *other == name).count();
        assert_eq!(times, 1, "{plan:?}: `{name}` ran {times} times");
        // What is only looked at may run before its clearance is on disk.
        let story = stories.values().find(|story| &story.name == name);
        let is_cleared = story.is_some_and(|story| story.cleared == 1);
        assert!(
            is_cleared || is_l0(name),
            "{plan:?}: `{name}` ran uncleared"
        );
    }
    assert_eq!(unbelieved(&events), 0, "{plan:?}: what was read is known");
    let fatal = stories.values().find(|story| story.name == FATAL);
    let fatal_ran = ran.iter().any(|name| name == FATAL);
    if plan.beside == 0 {
        // Nothing else makes a step, so the process died in the fatal call's own.
        assert_eq!(fatal_ran, plan.step >= Step::Returned, "{plan:?}");
        let cleared = fatal.map_or(0, |story| story.cleared);
        match plan.step {
            Step::Decided | Step::Proposed | Step::Judged | Step::MeasuredAgain => {
                assert_eq!(cleared, 0)
            }
            // It may be on its way.
            Step::Cleared => {}
            _ => assert_eq!(cleared, 1, "{plan:?}"),
        }
    }
    project.assert_sound(&session);
    project.assert_sound(&session_id("s2"));
}

fn is_l0(name: &str) -> bool {
    let number = name.strip_prefix("before-");
    number.is_some_and(|number| number.parse::<u64>().unwrap() % 2 == 1)
}

#[tokio::test]
async fn matrix_a_kill_between_any_two_steps_runs_nothing_twice_and_the_log_says_what_is_known() {
    let full = std::env::var("LODESTAR_MATRIX").is_ok_and(|value| value == "full");
    let repetitions = if full { 100 } else { 2 };
    for step in Step::ALL {
        for number in 0..repetitions {
            follow(Plan::of(step, number)).await;
        }
    }
    println!("{} kills", Step::ALL.len() as u64 * repetitions);
}

#[tokio::test]
async fn without_a_kill_the_same_calls_all_run_to_their_end() {
    let scene = Scene::new();
    let session = scene.open("s1").await;
    for name in ["one", "two", FATAL] {
        assert!(
            session
                .call("box.write", arguments(name))
                .await
                .unwrap()
                .ran()
        );
    }
    session.close("done").await.unwrap();
    assert_eq!(scene.ran(), ["one", "two", FATAL]);
    let events = scene.project().events(&session_id("s1"));
    for story in stories(&events).values() {
        assert_eq!((story.cleared, story.ended, story.unknown), (1, 1, 0));
    }
    scene.project().assert_sound(&session_id("s1"));
}
