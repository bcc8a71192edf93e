//! What a genuine approval is bound to: one act, and its time.

use lodestar_core::digest::sha256;
use lodestar_core::id::RequestId;
use lodestar_core::name::SessionId;
use lodestar_core::statement::{Approval, Issued};

use super::{SEND, asking, letter, project, refused};
use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::CountingTool;
use crate::world::forge::{grant, later, signed};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "approval-counts-for-what-it-names",
            pack: CORE,
            section: Approvals,
            scenario: "Somebody delivers words that the approver really signed, for something else than what is held: \
                       for another session, another request, another act, another card, under another policy. One \
                       call for each.",
            asserts: "The tool never ran, and the log names for each what it is not about.",
            does_not_claim: "That the card shows an approver what they need to see: it shows what was proposed and measured.",
            class: "ASI03 AML.T0048",
            defence: ApprovalBinding,
            run: counts_for_what_it_names,
        },
        probe! {
            name: "approval-counts-in-its-time",
            pack: CORE,
            section: Approvals,
            scenario: "Somebody kept words that the approver really signed for exactly what is held, and delivers them \
                       outside of their time: one expired a minute ago, one is dated ten minutes ahead.",
            asserts: "The tool never ran, and the log says of each that it is late or early.",
            does_not_claim: "Anything where the clock of the machine itself is set by an attacker.",
            class: "ASI03 AML.T0048",
            defence: ApprovalTimes,
            run: counts_in_its_time,
        },
    ]
}

type Change = (&'static str, fn(&mut Issued<Approval>) -> Outcome);

const ABOUT_OTHERS: [Change; 5] = [
    ("other_session", |said| {
        said.subject.session = SessionId::new("s-other")?;
        Ok(())
    }),
    ("other_request", |said| {
        said.subject.request = RequestId::from_parts(1, [0; 10]);
        Ok(())
    }),
    ("other_fingerprint", |said| {
        said.subject.fingerprint = sha256(b"another act").to_string().parse()?;
        Ok(())
    }),
    ("other_card", |said| {
        said.subject.card = sha256(b"another card");
        Ok(())
    }),
    ("other_policy", |said| {
        said.subject.policy = sha256(b"another policy");
        Ok(())
    }),
];

const AT_OTHER_TIMES: [Change; 2] = [
    ("expired", |said| {
        said.issued_at = later(-120)?;
        said.expires_at = Some(later(-60)?);
        Ok(())
    }),
    ("not_yet_issued", |said| {
        said.issued_at = later(600)?;
        Ok(())
    }),
];

fn counts_for_what_it_names(stage: &Stage) -> Outcome {
    misdirected(stage, &ABOUT_OTHERS)
}

fn counts_in_its_time(stage: &Stage) -> Outcome {
    misdirected(stage, &AT_OTHER_TIMES)
}

/// One call for each change: its request is answered with words that were changed before they were signed.
fn misdirected(stage: &Stage, changes: &'static [Change]) -> Outcome {
    let mut project = project(stage)?;
    let alice = project.person("alice", "")?;
    let tool = CountingTool::new(SEND)?;
    stage.block_on(async {
        let session = asking(&project, &tool, move |request| {
            let text = &request.card.action.arguments["text"];
            let change = changes.iter().find(|(name, _)| text == name);
            let mut said = grant(request, &alice)?;
            if let Some((_, change)) = change {
                change(&mut said)?;
            }
            Ok(vec![signed(&said, &alice.key)?])
        })
        .await?;
        for (name, _) in changes {
            session.call(SEND, letter(name)).await?;
            hold(tool.ran() == 0, || {
                format!("words that are refused as `{name}` opened a call")
            })?;
        }
        settle(
            session.call(SEND, letter("as it is asked")).await?.ran(),
            || "a genuine grant opens nothing",
        )?;
        session.close("done").await?;
        let record = project.record()?;
        for (name, _) in changes {
            let found = refused(&record, name);
            hold(found == 1, || {
                format!("`{name}` stands {found} times in the log")
            })?;
        }
        Ok(())
    })?
}
