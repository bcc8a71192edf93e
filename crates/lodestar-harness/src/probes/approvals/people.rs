//! Who has to agree: how many, which, and what one no is worth.

use lodestar_core::statement::ApprovalDecision::{Deny, Grant};
use lodestar_policy::Signed;

use super::lasting::{post, text};
use super::{SEND, asking, letter, project, refused};
use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::CountingTool;
use crate::world::forge::nonce;

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "quorum-needs-distinct-approvers",
            pack: CORE,
            section: Approvals,
            scenario: "Two people have to agree. One of them says yes three times, twice with one key and once with a \
                       second key of theirs that is registered too.",
            asserts: "The tool did not run. A call to which another person agrees as well runs once.",
            does_not_claim: "That two names in the registry are two people: the operator says so.",
            class: "ASI03 AML.T0048",
            defence: DistinctApprovers,
            run: distinct,
        },
        probe! {
            name: "role-comes-from-registry",
            pack: CORE,
            section: Approvals,
            scenario: "A release manager has to agree. A registered reviewer signs a grant and claims the role in the \
                       words that are signed; so does a release manager who is cleared up to L3 alone.",
            asserts: "The tool did not run, and the log says that one has not the role and the other not the clearance. \
                      A call to which the real release manager agrees runs.",
            does_not_claim: "That the registry is right: whoever writes the configuration says who is what.",
            class: "ASI03 AML.T0048",
            defence: RegisteredRoles,
            run: roles,
        },
        probe! {
            name: "denial-ends-it",
            pack: CORE,
            section: Approvals,
            scenario: "Two people have to agree. One agrees, one says no, and then the second and a third agree after all.",
            asserts: "The tool did not run: a genuine no ends the request, whoever agrees before or after it.",
            does_not_claim: "That the act is denied for good: it may be proposed again, and people are asked again.",
            class: "ASI09 AML.T0048",
            defence: OneDenialEnds,
            run: denial,
        },
        probe! {
            name: "approval-timeout-denies",
            pack: CORE,
            section: Approvals,
            scenario: "An agent calls a tool that waits for people, through the real proxy, and nobody answers within the \
                       time for which a call waits. Afterwards somebody grants it, and the agent does not call again.",
            asserts: "The tool did not run, by its server's own count, neither when the time was over nor by the late \
                      grant alone; the agent was told that the approval timed out.",
            does_not_claim: "That the request is closed: it stays open until it expires, for the agent to repeat the call.",
            class: "ASI02 AML.T0053",
            defence: ApprovalTimeout,
            run: timeout,
        },
    ]
}

fn distinct(stage: &Stage) -> Outcome {
    let mut project = project(stage)?;
    project.table("[approvals.default]\nquorum = 2\n");
    let (alice, again) = (project.person("alice", "")?, project.person("alice", "")?);
    let bob = project.person("bob", "")?;
    let tool = CountingTool::new(SEND)?;
    stage.block_on(async {
        let session = asking(&project, &tool, move |request| {
            let mut all = Vec::new();
            for alice in [&alice, &alice, &again] {
                all.push(alice.answer(request, Grant)?.0);
            }
            if request.card.action.arguments["text"] == "both" {
                all.push(bob.answer(request, Grant)?.0);
            }
            Ok(all)
        })
        .await?;
        session.call(SEND, letter("one")).await?;
        hold(
            tool.ran() == 0,
            || "one person who agreed several times was taken for two",
        )?;
        session.call(SEND, letter("both")).await?;
        session.close("done").await?;
        let heard = project.record()?.count("approval.granted@");
        settle(heard >= 4, || format!("{heard} answers were counted"))?;
        hold(tool.ran() == 1, || {
            format!("with two people's word the tool ran {} times", tool.ran())
        })
    })?
}

fn roles(stage: &Stage) -> Outcome {
    let mut project = project(stage)?;
    project.table("[approvals.default]\nroles = [\"release-manager\"]\n");
    let reviewer = project.person("rita", "roles = [\"reviewer\"]")?;
    let small = project.person("sam", "roles = [\"release-manager\"]\nclearance = \"L3\"")?;
    let manager = project.person("mona", "roles = [\"release-manager\"]")?;
    let tool = CountingTool::new(SEND)?;
    stage.block_on(async {
        let session = asking(&project, &tool, move |request| {
            let mut all = Vec::new();
            for person in [&reviewer, &small] {
                let signed = Signed {
                    key: &person.key,
                    at: lodestar_log::Clock::system().now(),
                    nonce: nonce()?,
                };
                let claim = "roles = [\"release-manager\"], clearance = \"L5\"";
                all.push(request.answer(&person.name, Grant, claim, signed)?);
            }
            if request.card.action.arguments["text"] == "managed" {
                all.push(manager.answer(request, Grant)?.0);
            }
            Ok(all)
        })
        .await?;
        session.call(SEND, letter("claimed")).await?;
        hold(
            tool.ran() == 0,
            || "a role that somebody gave themselves opened a call",
        )?;
        session.call(SEND, letter("managed")).await?;
        session.close("done").await?;
        hold(tool.ran() == 1, || {
            format!("with the manager's word the tool ran {} times", tool.ran())
        })?;
        let record = project.record()?;
        let (role, clearance) = (
            refused(&record, "no_role"),
            refused(&record, "no_clearance"),
        );
        hold((role, clearance) == (2, 2), || {
            format!("{role} were refused for their role, {clearance} for their clearance")
        })
    })?
}

fn denial(stage: &Stage) -> Outcome {
    let mut project = project(stage)?;
    project.table("[approvals.default]\nquorum = 2\n");
    let (alice, bob) = (project.person("alice", "")?, project.person("bob", "")?);
    let carol = project.person("carol", "")?;
    let tool = CountingTool::new(SEND)?;
    stage.block_on(async {
        let session = asking(&project, &tool, move |request| {
            Ok(vec![
                alice.answer(request, Grant)?.0,
                bob.answer(request, Deny)?.0,
                bob.answer(request, Grant)?.0,
                carol.answer(request, Grant)?.0,
            ])
        })
        .await?;
        session.call(SEND, letter("hello")).await?;
        session.close("done").await?;
        let record = project.record()?;
        settle(
            record.count("approval.denied@") == 1,
            || "nobody's no was heard",
        )?;
        hold(
            tool.ran() == 0,
            || "a call ran to which somebody had said no",
        )?;
        hold(
            refused(&record, "closed") == 2,
            || "what came after the no is not refused",
        )
    })?
}

fn timeout(stage: &Stage) -> Outcome {
    let mut project = post(stage)?;
    project.set("approval_timeout_ms = 60");
    let alice = project.person("alice", "")?;
    let mut agent = project.agent()?;
    let answer = agent.call("post__send", text("hello"))?;
    settle(project.requested()?.len() == 1, || "the call was not held")?;
    let ran = project.ran("post", "send")?;
    hold(
        ran == 0 && !answer.ran(),
        || "what nobody answered in time was run",
    )?;
    hold(answer.kind() == Some("approval_timeout"), || {
        format!("the agent was told {:?}", answer.kind())
    })?;
    let answered = project.answer_all(&alice, Grant)?;
    settle(answered == 1, || format!("{answered} requests are open"))?;
    agent.leave()?;
    let ran = project.ran("post", "send")?;
    hold(ran == 0, || "a grant ran what nobody called again")?;
    let record = project.record()?;
    hold(
        record.count("action.cleared@") == 0,
        || "the log holds a clearance",
    )
}
