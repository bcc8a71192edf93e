//! Of a log that was edited nothing is told but what is wrong.

use lodestar_core::defence::Defence;
use lodestar_guard::Holds;
use lodestar_log::LogRoot;
use lodestar_report::{Because, Projection, html, markdown};

use crate::governed::Project;
use crate::told::{open, poisoned, project_of, report_of};

/// Words of the session that no refusal may repeat.
const STORY: [&str; 5] = [
    "evil.example",
    "corp.example",
    "box.send",
    "looked at it",
    "b.md",
];

fn is_refused(projection: &Projection, because: Because) {
    let Projection::Refused(refused) = projection else {
        panic!("it was told");
    };
    assert_eq!(refused.refused.because, because);
    assert!(!refused.refused.problems.is_empty());
    let (mut page, mut text) = (Vec::new(), Vec::new());
    html::write(projection, &mut page).unwrap();
    markdown::write(projection, &mut text).unwrap();
    let json = serde_json::to_string(projection).unwrap();
    for form in [
        String::from_utf8(page).unwrap(),
        String::from_utf8(text).unwrap(),
        json,
    ] {
        for word in STORY {
            assert!(!form.contains(word), "{word}: {form}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bit_that_is_flipped_anywhere_ends_the_report() {
    let (project, session) = poisoned().await;
    project.will_be_edited();
    let dir = project.log().session(&session);
    let log = LogRoot::in_folder(&project.root);
    let ledger = log.project(dir.project());
    let files = [
        dir.events_path(),
        dir.checkpoint_path(),
        ledger.ledger_path(),
        ledger.ledger_checkpoint_path(),
    ];
    for file in files {
        let whole = std::fs::read(&file).unwrap();
        for place in 0..23 {
            let at = (place * whole.len() / 23 + place * 7) % whole.len();
            let mut edited = whole.clone();
            edited[at] ^= 1 << (place % 7);
            std::fs::write(&file, &edited).unwrap();
            is_refused(&project_of(&project, &session), Because::NotIntact);
        }
        for cut in [1, whole.len() / 2] {
            std::fs::write(&file, &whole[..whole.len() - cut]).unwrap();
            is_refused(&project_of(&project, &session), Because::NotIntact);
        }
        std::fs::write(&file, &whole).unwrap();
    }
    report_of(&project, &session);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_world_without_a_defence_is_not_told() {
    let project = Project::new();
    let setup = project.setup(&crate::told::config(), &crate::told::tools());
    let session = setup
        .holds(Holds::Leave)
        .without([Defence::LadderFloor])
        .open()
        .await
        .unwrap();
    session.close("done").await.unwrap();
    is_refused(&project_of(&project, session.id()), Because::DefencesOff);
    project.will_be_edited();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_sessions_trouble_is_in_the_ledger_and_ends_the_report_too() {
    let project = Project::new();
    let first = open(&project, |_| Vec::new()).await;
    first.close("done").await.unwrap();
    let second = open(&project, |_| Vec::new()).await;
    second.close("done").await.unwrap();
    project.will_be_edited();
    report_of(&project, second.id());
    std::fs::remove_dir_all(project.log().session(first.id()).dir()).unwrap();
    is_refused(&project_of(&project, second.id()), Because::NotIntact);
}

#[test]
fn a_persons_session_without_a_defence_is_neither_told_nor_exported() {
    use lodestar_firewall::store::MemoryStore;
    use lodestar_guard::{Operator, OperatorSession};
    use lodestar_log::verify::{VerifyOptions, verify_project};
    use lodestar_report::otel::{NotAdmitted, admit};

    let world = crate::world::World::new();
    let session = OperatorSession::open(Operator {
        log: world.log.clone(),
        key: crate::world::key(),
        trust: world.trust(),
        keyring: world.keyring().without(&[Defence::Supersession]),
        store: Box::new(MemoryStore::new()),
        actor: "tester".parse().unwrap(),
        purpose: "a test",
    });
    let session = session.unwrap();
    let id = session.id().clone();
    session.close("done").unwrap();
    let (dir, trust) = (world.log.session(&id), world.trust());
    let examination = lodestar_report::Examination {
        dir: &dir,
        trust: &trust,
        ceiling: lodestar_core::sensitivity::Sensitivity::Internal,
    };
    is_refused(&examination.run(&|_| ()).unwrap(), Because::DefencesOff);
    let options = VerifyOptions::default();
    let verified = verify_project(&world.log, &trust, &options, &|_| ()).unwrap();
    let replay = lodestar_replay::derive(&world.log, &id, &[], None).unwrap();
    let refused = admit(&dir, &verified, &replay).unwrap_err();
    assert!(
        matches!(refused, NotAdmitted::DefencesOff { .. }),
        "{refused}"
    );
}
