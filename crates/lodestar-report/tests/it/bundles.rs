//! Proof bundles: written here, checked as if elsewhere, and found out when anything of them is changed.

use lodestar_core::key::SecretKey;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_log::Trust;
use lodestar_report::bundle::{self, Checked, Written};
use lodestar_report::{Examination, Projection};

use crate::governed::Project;
use crate::told::{poisoned, trust};

fn bundle_of(
    project: &Project,
    session: &lodestar_core::name::SessionId,
    ceiling: Sensitivity,
) -> (Vec<u8>, Written) {
    let dir = project.log().session(session);
    let trust = trust();
    let examination = Examination {
        dir: &dir,
        trust: &trust,
        ceiling,
    };
    let Projection::Report(report) = examination.run(&|_| ()).unwrap() else {
        panic!("refused");
    };
    let mut bytes = Vec::new();
    let written = bundle::write(&report, &dir, &trust, &mut bytes).unwrap();
    assert_eq!(written.events, report.cited().len() as u64);
    (bytes, written)
}

fn check(bytes: &[u8], trust: &Trust) -> Checked {
    bundle::check(&mut &*bytes, trust).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_holds_elsewhere_with_the_key_and_without_it_does_not() {
    let (project, session) = poisoned().await;
    let (bytes, written) = bundle_of(&project, &session, Sensitivity::Internal);
    drop(project);
    let checked = check(&bytes, &trust());
    assert!(checked.holds(), "{:?}", checked.problems);
    assert_eq!(
        (checked.events, checked.withheld.len()),
        (written.events, 0)
    );
    assert!(checked.closed_at.is_some());
    assert_eq!(checked.session, Some(session));
    let stranger = Trust::only(SecretKey::from_seed([8; 32]).public());
    assert!(!check(&bytes, &stranger).holds());
    assert!(!check(&bytes, &Trust::default()).holds());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_above_the_ceiling_stays_out_and_its_heads_are_proven() {
    let (project, session) = poisoned().await;
    let (bytes, written) = bundle_of(&project, &session, Sensitivity::Public);
    assert!(written.withheld > 0);
    let checked = check(&bytes, &trust());
    assert!(checked.holds(), "{:?}", checked.problems);
    assert_eq!(checked.withheld.len() as u64, written.withheld);
    let text = String::from_utf8(bytes).unwrap();
    for hidden in ["evil.example", "corp.example", "Notes."] {
        assert!(!text.contains(hidden), "{hidden}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_session_of_which_nothing_is_signed_yet_there_is_no_bundle() {
    let (project, session) = poisoned().await;
    project.will_be_edited();
    let report = crate::told::report_of(&project, &session);
    let dir = project.log().session(&session);
    let checkpoint = lodestar_core::note::Checkpoint {
        origin: dir.origin(),
        size: 0,
        root: lodestar_core::digest::sha256(b""),
    };
    let note = checkpoint.sign(&crate::governed::log_key());
    std::fs::write(dir.checkpoint_path(), note.to_string()).unwrap();
    let mut bytes = Vec::new();
    let problem = bundle::write(&report, &dir, &trust(), &mut bytes).unwrap_err();
    assert!(
        problem.to_string().contains("nothing is proven yet"),
        "{problem}"
    );
    assert!(bytes.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_of_a_bundle_that_is_flipped_is_found() {
    let (project, session) = poisoned().await;
    let (bytes, _) = bundle_of(&project, &session, Sensitivity::Internal);
    let step = (bytes.len() / 400).max(1);
    for at in (0..bytes.len())
        .step_by(step)
        .chain(bytes.len() - 200..bytes.len())
    {
        let mut edited = bytes.clone();
        edited[at] ^= 1 << (at % 8);
        assert!(!check(&edited, &trust()).holds(), "byte {at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_missing_repeated_moved_or_added_are_found() {
    let (project, session) = poisoned().await;
    let (bytes, _) = bundle_of(&project, &session, Sensitivity::Internal);
    let text = String::from_utf8(bytes).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let broken = |lines: Vec<&str>| {
        let text = lines.join("\n") + "\n";
        assert!(!check(text.as_bytes(), &trust()).holds(), "{}", lines.len());
    };
    for at in 0..lines.len() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        broken(fewer);
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        broken(twice);
    }
    let mut swapped = lines.clone();
    swapped.swap(5, 6);
    broken(swapped);
    let mut more = lines.clone();
    more.push("{}");
    broken(more);
    assert!(!check(b"", &trust()).holds());
    assert!(!check(&text.as_bytes()[..text.len() - 1], &trust()).holds());
}

/// Somebody who mends the digest at the end still cannot change what the log says.
#[tokio::test(flavor = "multi_thread")]
async fn a_forger_who_mends_the_digest_is_found_by_the_signature() {
    let (project, session) = poisoned().await;
    let (bytes, _) = bundle_of(&project, &session, Sensitivity::Internal);
    let text = String::from_utf8(bytes).unwrap();
    let forged = text.replacen("eve@evil.example", "bob@corp.example", 1);
    assert_ne!(forged, text);
    let (body, end) = forged.trim_end().rsplit_once('\n').unwrap();
    let body = format!("{body}\n");
    let mut end: serde_json::Value = serde_json::from_str(end).unwrap();
    end["end"]["sha256"] = lodestar_core::digest::sha256(body.as_bytes())
        .to_string()
        .into();
    let end = String::from_utf8(lodestar_core::canonical::to_vec(&end).unwrap()).unwrap();
    let checked = check(format!("{body}{end}\n").as_bytes(), &trust());
    let said: Vec<&str> = checked
        .problems
        .iter()
        .map(|one| one.problem.as_str())
        .collect();
    assert!(
        said.iter()
            .any(|one| one.contains("payload is not the one")),
        "{said:?}"
    );
    assert!(
        !said.iter().any(|one| one.contains("before the end")),
        "{said:?}"
    );
}
