//! What a genuine confirmation is worth: nothing while it is only reported, and otherwise one act.

use lodestar_core::statement::confirmation::ConfirmedAct;
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Envelope, Issued,
};
use lodestar_guard::confirmations::{DropFolder, file_name};
use lodestar_guard::{Holds, Session};
use lodestar_log::Clock;
use lodestar_policy::ApprovalRequest;

use super::lasting::{post, text};
use super::{SEND, letter, open, project};
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::forge::{later, nonce, signed};
use crate::world::{CountingTool, Person, Project};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "confirmation-consumed-once",
            pack: CORE,
            section: Approvals,
            scenario: "A host confirms one act beforehand, and the call runs through the real proxy. Then the proxy is \
                       killed, another process takes up its session, and copies of the same confirmation are dropped \
                       for the same call, several at once and again later.",
            asserts: "The tool ran exactly once, by its server's own count, and the log says of every copy that it was \
                      spent before.",
            does_not_claim: "Anything about sessions that share no ledger: a confirmation names its session.",
            class: "ASI03 AML.T0048",
            defence: ConfirmationOnce,
            run: consumed_once,
        },
        probe! {
            name: "report-only-grants-nothing",
            pack: CORE,
            section: Approvals,
            scenario: "Confirmations are only reported, as in a new installation. A host confirms exactly the act that is \
                       held, in time, with a trusted key.",
            asserts: "The tool did not run; the log says that the confirmation would have matched, and nothing was spent \
                      or granted.",
            does_not_claim: "That the host really asked somebody.",
            class: "ASI09 AML.T0048",
            defence: ConfirmationReportOnly,
            run: report_only,
        },
    ]
}

/// A project in which a host may confirm in the name of somebody who may also approve.
pub(super) fn hosted(project: &mut Project<'_>, mode: &str) -> Outcome<Person> {
    project.person("alice", "")?;
    let host = Person::new("host")?;
    project.table(&format!(
        "[confirmations]\nmode = \"{mode}\"\n[[confirmations.keys]]\npublic_key = \"{}\"\n\
         origins = [\"runtime-ui-confirm\"]\noperators = [\"alice\"]\n",
        host.key.public()
    ));
    Ok(host)
}

/// A call that is held, in a session that asks nobody.
pub(super) struct Held<'a> {
    pub(super) project: Project<'a>,
    pub(super) host: Person,
    pub(super) tool: CountingTool,
    pub(super) session: Session,
    pub(super) request: ApprovalRequest,
}

impl<'a> Held<'a> {
    pub(super) async fn call(stage: &'a Stage, mode: &str) -> Outcome<Self> {
        let mut project = project(stage)?;
        let host = hosted(&mut project, mode)?;
        let tool = CountingTool::new(SEND)?;
        let session = open(&project, &tool, Holds::Leave).await?;
        session.call(SEND, letter("hello")).await?;
        let request = asked(&project)?;
        Ok(Self {
            project,
            host,
            tool,
            session,
            request,
        })
    }

    /// The same call once more, with whatever was dropped for it.
    pub(super) async fn again(&self) -> Outcome {
        self.session.call(SEND, letter("hello")).await?;
        Ok(())
    }

    /// What the host says of the act that is held.
    pub(super) fn word(&self) -> Outcome<Issued<Confirmation>> {
        word(&self.request, &self.host)
    }

    /// Drops something for the act that is held.
    pub(super) fn drop(&self, bytes: &[u8]) -> Outcome {
        drop_confirmation(&self.project, &self.request, bytes)
    }

    pub(super) fn drop_signed(&self, said: &Issued<Confirmation>) -> Outcome {
        self.drop(&signed(said, &self.host.key)?.to_json())
    }

    /// How often the log refuses a confirmation for this reason.
    pub(super) fn refused(&self, reason: &str) -> Outcome<usize> {
        refused(&self.project, reason)
    }
}

fn refused(project: &Project<'_>, reason: &str) -> Outcome<usize> {
    let record = project.record()?;
    let of_reason = record.of("confirmation.refused@").filter(|event| {
        let said = &event.payload["reason"];
        said["distrust"] == reason || said["unmatched"] == reason
    });
    Ok(of_reason.count())
}

/// The request that was opened last.
fn asked(project: &Project<'_>) -> Outcome<ApprovalRequest> {
    let last = project.requested()?.pop();
    last.ok_or_else(|| Broken::Failed("nothing was held".to_owned()))
}

fn word(request: &ApprovalRequest, host: &Person) -> Outcome<Issued<Confirmation>> {
    Ok(Issued {
        expires_at: Some(later(30)?),
        issued_at: Clock::system().now(),
        key_id: host.key.public().key_id(),
        nonce: nonce()?,
        subject: Confirmation {
            act: ConfirmedAct::from(&request.card.fields()?),
            decision: ConfirmationDecision::Confirm,
            id: ConfirmationId::from_bytes(*nonce()?.as_bytes()),
            operator: "alice".parse()?,
            origin: ConfirmationOrigin::RuntimeUiConfirm,
            session: request.session.clone(),
        },
    })
}

fn drop_confirmation(project: &Project<'_>, request: &ApprovalRequest, bytes: &[u8]) -> Outcome {
    let folder = DropFolder::of(&project.config()?).path();
    std::fs::create_dir_all(&folder)?;
    let id = ConfirmationId::from_bytes(*nonce()?.as_bytes());
    let name = file_name(request.card.action.fingerprint, id);
    let half = folder.join(format!("{id}.new"));
    std::fs::write(&half, bytes)?;
    Ok(std::fs::rename(half, folder.join(name))?)
}

fn consumed_once(stage: &Stage) -> Outcome {
    let mut project = post(stage)?;
    let host = hosted(&mut project, "enforce")?;
    let mut first = project.agent()?;
    first.call("post__send", text("once"))?;
    let request = asked(&project)?;
    let envelope: Envelope = signed(&word(&request, &host)?, &host.key)?;
    let copy = || drop_confirmation(&project, &request, &envelope.to_json());
    copy()?;
    let confirmed = first.call("post__send", text("once"))?;
    settle(confirmed.ran() && project.ran("post", "send")? == 1, || {
        format!("the confirmed call came back as {:?}", confirmed.kind())
    })?;
    // What is open is what the next process takes the session up for.
    first.call("post__send", text("something else"))?;
    first.kill()?;

    let mut second = project.agent()?;
    for _ in 0..2 {
        copy()?;
        copy()?;
        second.call("post__send", text("once"))?;
        let ran = project.ran("post", "send")?;
        hold(ran == 1, || {
            format!("one confirmation ran the call {ran} times, over two processes")
        })?;
    }
    second.leave()?;
    let sessions = project.sessions()?.len();
    settle(sessions == 1, || {
        format!("two processes wrote {sessions} sessions")
    })?;
    let spent = refused(&project, "consumed")?;
    hold(spent == 4, || {
        format!("the log says of {spent} copies, and not of 4, that they were spent before")
    })
}

fn report_only(stage: &Stage) -> Outcome {
    stage.block_on(async {
        let held = Held::call(stage, "report-only").await?;
        held.drop_signed(&held.word()?)?;
        held.again().await?;
        held.session.close("done").await?;
        hold(
            held.tool.ran() == 0,
            || "a confirmation that is only to be reported ran a call",
        )?;
        let record = held.project.record()?;
        let of = |kind: &str| record.count(kind);
        hold(
            of("confirmation.matched@") == 1,
            || "the log does not say that it would have matched",
        )?;
        hold(
            of("confirmation.consumed@") + of("approval.granted@") == 0,
            || "something was spent or granted",
        )
    })?
}
