//! Servers that misbehave, and processes that die.

use lodestar_core::statement::ApprovalDecision;
use serde_json::json;

use super::{says, server, tool};
use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::{Act, Answer, Project};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "hostile-downstream-cannot-stop-others",
            pack: CORE,
            section: Proxy,
            scenario: "One server never answers; another answers with lines that are no messages, with the \
                       wrong number, twice, with a message beyond the limit, after a flood of notifications, \
                       and by dying. Meanwhile the agent calls a third.",
            asserts: "Every call of the third server is answered, and before the one that hangs is given up; the \
                      proxy lives to the end of the session, and the log verifies.",
            does_not_claim: "That the hostile server's own calls succeed, or that the machine has memory and \
                             processor to spare.",
            class: "ASI08 AML.T0029",
            defence: ServersApart,
            run: hostile_downstream,
        },
        probe! {
            name: "crash-never-runs-twice",
            pack: CORE,
            section: Proxy,
            scenario: "A server is killed in the middle of a call. Then the proxy itself is killed in the middle \
                       of a call that a person had approved, started again, and the agent makes the same call.",
            asserts: "Each call reached its server once, by the server's own marks; the agent is told that \
                      nobody saw the end of it; the log says so too; the approval that was spent opens nothing \
                      again: the second call waits for a person anew.",
            does_not_claim: "That the effect took place, or did not: nobody knows, and nobody claims to.",
            class: "ASI08",
            defence: UnknownStaysUnknown,
            run: crashes,
        },
    ]
}

fn acts(act: Act) -> Answer {
    Answer {
        act,
        ..says("done")
    }
}

fn hostile_downstream(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    project.table("[limits]\nmessage_bytes = 1048576\ncall_deadline_ms = 4000\n");
    project.server(&server("mute", vec![tool("hang", &[], acts(Act::Hang))]))?;
    let lines = |lines: &[&str]| {
        let lines = lines.iter().map(|line| (*line).to_owned());
        acts(Act::Raw(lines.collect()))
    };
    let answer = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[]}}"#;
    let bad = [
        (
            "garbage",
            lines(&["no json", "{\"half\":", "[]", "\u{0}\u{1}", answer]),
        ),
        (
            "wrong",
            lines(&[r#"{"jsonrpc":"2.0","id":424242,"result":{}}"#, answer]),
        ),
        ("twice", lines(&[answer, answer, answer])),
        ("huge", acts(Act::Huge(2 << 20))),
        ("flood", acts(Act::Flood(2000))),
        ("crash", acts(Act::Crash)),
    ];
    let tools = bad
        .iter()
        .map(|(name, answer)| tool(name, &[], answer.clone()));
    project.server(&server("bad", tools.collect()))?;
    project.server(&server(
        "good",
        vec![tool("echo", &["text"], says("{text}"))],
    ))?;
    let names = bad.iter().map(|(name, _)| format!("mcp.bad.{name}"));
    let others = ["mcp.mute.hang", "mcp.good.echo"].map(str::to_owned);
    for name in names.chain(others) {
        project.grade(&name, "L1", "");
    }

    let mut agent = project.agent()?;
    let hung = agent.begin_call("mute__hang", json!({}))?;
    project.await_ran("mute", "hang", 1)?;
    let good = agent.call("good__echo", json!({"text": "meanwhile"}))?;
    // Which of the two is answered first says whether one waits for the other.
    let was_late = agent.is_answered(hung)?;
    hold(
        !was_late && good.text() == "meanwhile",
        || "a server that does not answer held up another",
    )?;
    for (name, _) in &bad {
        let called = agent.begin_call(&format!("bad__{name}"), json!({}))?;
        let good = agent.call("good__echo", json!({"text": *name}))?;
        hold(good.text() == *name, || {
            format!("`{name}` held up another server: {}", good.0)
        })?;
        agent.called(called)?;
    }
    let last = agent.call("good__echo", json!({"text": "after"}))?;
    hold(
        last.text() == "after",
        || "the proxy does not serve any more",
    )?;
    agent.leave()?;
    let done = project.ran("good", "echo")?;
    hold(done == bad.len() + 2, || {
        format!("the good server was called {done} times")
    })?;
    let report = project.verify(&Default::default())?;
    hold(report.is_intact(), || "the log does not verify")
}

fn crashes(stage: &Stage) -> Outcome {
    let mut project = Project::new(stage)?;
    project.set("auto_approve_ceiling = 3");
    let alice = project.person("alice", "")?;
    // Neither comes to an end before it is killed; started again, both would be done at once.
    for (name, takes) in [("pay", "charge"), ("bank", "wire")] {
        let mut script = server(name, vec![tool(takes, &["order"], acts(Act::Hang))]);
        script.tools_later = vec![tool(takes, &["order"], acts(Act::Nothing))];
        project.server(&script)?;
    }
    project.grade("mcp.pay.charge", "L3", "");
    project.grade("mcp.bank.wire", "L4", "");

    let mut agent = project.agent()?;
    let charge = agent.begin_call("pay__charge", json!({"order": "o-1"}))?;
    project.await_ran("pay", "charge", 1)?;
    project.kill_server("pay")?;
    let lost = agent.called(charge)?;
    agent.leave()?;
    let ran = project.ran("pay", "charge")?;
    hold(ran == 1, || {
        format!("the call whose server was killed ran {ran} times")
    })?;
    hold(lost.kind() == Some("execution_failed"), || {
        format!("the lost call came back as {:?}", lost.kind())
    })?;
    let record = project.record()?;
    let unknown = record.of("action.").filter(|one| {
        one.kind.starts_with("action.unknown@") || one.payload["error"]["effect"] == "unknown"
    });
    hold(
        unknown.count() == 1,
        || "the log does not say that nobody saw the end",
    )?;

    let mut agent = project.agent()?;
    let order = json!({"order": "o-2"});
    let held = agent.call("bank__wire", order.clone())?;
    settle(held.kind() == Some("approval_required"), || {
        format!("the call was not held: {}", held.0)
    })?;
    settle(
        project.answer_all(&alice, ApprovalDecision::Grant)? == 1,
        || "there was nothing to approve",
    )?;
    agent.begin_call("bank__wire", order.clone())?;
    project.await_ran("bank", "wire", 1)?;
    agent.kill()?;

    let mut agent = project.agent()?;
    let again = agent.call("bank__wire", order)?;
    agent.leave()?;
    let ran = project.ran("bank", "wire")?;
    hold(ran == 1, || {
        format!("what a person approved once ran {ran} times")
    })?;
    hold(again.kind() == Some("approval_required"), || {
        format!("a spent approval was good again: {:?}", again.kind())
    })?;
    let mut unknown = 0;
    for session in project.sessions()? {
        let record = crate::world::Record::read(&project.log()?.session(&session))?;
        unknown += record.count("action.unknown@");
    }
    hold(
        unknown >= 1,
        || "no log says that the killed proxy's call has no known end",
    )
}
