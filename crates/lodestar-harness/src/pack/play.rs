//! Plays a scenario of an outside pack: the real proxy, scripted servers, and an agent that follows the steps.
//!
//! Its servers serve a folder below the project's, so that nothing a scenario writes is ever read as a
//! configuration.

use std::collections::BTreeMap;

use lodestar_core::name::Excerpt;
use lodestar_log::verify::VerifyOptions;
use serde_json::{Map, Value, json};

use super::scenario::{Act, Came, End, KNOWN, POLICY, Restart, Scenario, Setting, Step};
use crate::probe::{Broken, Outcome, hold, settle};
use crate::stage::Stage;
use crate::world::{Agent, Person, Project, Record};

/// The folder that scripted servers serve, below the project's.
const SERVED: &str = "served";
/// What an instruction begins with that an obeying agent follows: a tool and its arguments come behind it.
const INSTRUCTION: &str = "CALL ";

pub(super) fn play(scenario: &Scenario, stage: &Stage) -> Outcome {
    let (project, people) = set_up(&scenario.setting, stage)?;
    let mut play = Play {
        agent: Some(project.agent()?),
        project,
        people,
        last: String::new(),
    };
    for (at, step) in scenario.steps.iter().enumerate() {
        play.step(step).map_err(|broken| in_step(at + 1, broken))?;
    }
    if let Some(agent) = play.agent.take() {
        agent.leave()?;
    }
    let found = Found::of(&play.project)?;
    for need in &scenario.needs {
        let (is_so, what) = found.look(need)?;
        settle(is_so, || what)?;
    }
    for expected in &scenario.expects {
        let (is_so, what) = found.look(expected)?;
        hold(is_so, || what)?;
    }
    Ok(())
}

fn in_step(at: usize, broken: Broken) -> Broken {
    let say = |why: String| format!("step {at}: {why}");
    match broken {
        Broken::Breached(how) => Broken::Breached(say(how)),
        Broken::Failed(why) => Broken::Failed(say(why)),
        Broken::Skipped(why) => Broken::Skipped(why),
    }
}

type People = BTreeMap<String, Person>;

fn set_up<'a>(setting: &Setting, stage: &'a Stage) -> Outcome<(Project<'a>, People)> {
    let mut project = Project::new(stage)?;
    project.set(&setting.head());
    project.table(&setting.tables());
    if let Some(policy) = &setting.policy {
        project.write(POLICY, policy)?;
    }
    if !setting.known_values.is_empty() {
        project.write(KNOWN, &setting.known_values.join("\n"))?;
    }
    project.write(&format!("{SERVED}/.keep"), "")?;
    for (path, text) in &setting.files {
        project.write(&format!("{SERVED}/{path}"), text)?;
    }
    let mut people = People::new();
    for name in &setting.people {
        people.insert(name.clone(), project.person(name, "")?);
    }
    for server in &setting.servers {
        project.server_below(server, SERVED)?;
    }
    for (tool, (rung, roles)) in &setting.grades {
        project.grade(tool, &rung.to_string(), &Setting::roles(roles));
    }
    // Whatever a pack says, its project has these servers and nothing else that runs.
    setting
        .confines(&project.config_text())
        .map_err(Broken::Failed)?;
    Ok((project, people))
}

struct Play<'a> {
    project: Project<'a>,
    people: People,
    agent: Option<Agent>,
    /// What was answered last, as text.
    last: String,
}

impl Play<'_> {
    fn step(&mut self, step: &Step) -> Outcome {
        match &step.act {
            Act::Call { tool, arguments } => self.call(step, tool, arguments.clone()),
            Act::Read(uri) => {
                let answer = self.agent()?.ask("resources/read", json!({"uri": uri}))?;
                self.answered(step, uri, &answer)
            }
            Act::Prompt { name, arguments } => {
                let params = json!({"name": name, "arguments": arguments});
                let answer = self.agent()?.ask("prompts/get", params)?;
                self.answered(step, name, &answer)
            }
            Act::Obey(times) => {
                let demanded = instructions(&self.last);
                settle(demanded.len() == *times, || {
                    format!("the last answer demands {} calls", demanded.len())
                })?;
                for (tool, arguments) in demanded {
                    self.call(step, &tool, arguments)?;
                }
                Ok(())
            }
            Act::Answer { person, decision } => {
                let person = &self.people[person];
                let answered = self.project.answer_all(person, *decision)?;
                settle(answered > 0, || "nothing waits that could be answered")
            }
            Act::Restart(how) => {
                if let Some(agent) = self.agent.take() {
                    match how {
                        Restart::Leave => agent.leave()?,
                        Restart::Kill => agent.kill()?,
                    }
                }
                self.agent = Some(self.project.agent()?);
                Ok(())
            }
        }
    }

    fn agent(&mut self) -> Outcome<&mut Agent> {
        let agent = self.agent.as_mut();
        agent.ok_or_else(|| Broken::Failed("there is no agent".to_owned()))
    }

    fn call(&mut self, step: &Step, tool: &str, arguments: Map<String, Value>) -> Outcome {
        let answer = self.agent()?.call(tool, Value::Object(arguments))?;
        self.answered(step, tool, &answer.0)
    }

    fn answered(&mut self, step: &Step, what: &str, answer: &Value) -> Outcome {
        let came = Outcame::of(answer);
        self.last = texts(answer);
        let what = Excerpt::of(what);
        if let Some(wanted) = step.needs {
            settle(came.is(wanted), || format!("`{what}` came back as {came}"))?;
        }
        if let Some(text) = &step.needs_text {
            settle(self.last.contains(text), || {
                let found = Excerpt::of(&self.last).to_string();
                format!("`{what}` does not say what it is to: {found}")
            })?;
        }
        if let Some(wanted) = step.expect {
            hold(came.is(wanted), || format!("`{what}` came back as {came}"))?;
        }
        if let Some(text) = &step.never_says {
            let message = answer.to_string();
            hold(!message.contains(text) && !self.last.contains(text), || {
                format!("`{what}` says what it never should")
            })?;
        }
        Ok(())
    }
}

/// What came back: a result, a refusal of some kind, or an error.
struct Outcame<'a> {
    kind: Option<&'a str>,
    is_error: bool,
}

impl<'a> Outcame<'a> {
    fn of(answer: &'a Value) -> Self {
        let of_result = answer["result"]["_meta"]["_lodestar"]["kind"].as_str();
        let of_error = answer["error"]["data"]["_lodestar"]["kind"].as_str();
        Self {
            kind: of_result.or(of_error),
            is_error: answer.get("error").is_some(),
        }
    }

    fn is(&self, wanted: Came) -> bool {
        let kind = match wanted {
            Came::Ran => return self.kind.is_none() && !self.is_error,
            Came::Refused => return self.kind.is_some(),
            Came::Error => return self.kind.is_none() && self.is_error,
            Came::PolicyDenied => "policy_denied",
            Came::ApprovalRequired => "approval_required",
            Came::ApprovalDenied => "approval_denied",
            Came::ApprovalTimeout => "approval_timeout",
            Came::PreconditionFailed => "precondition_failed",
            Came::ExecutionFailed => "execution_failed",
            Came::DefinitionDrift => "definition_drift",
            Came::ToolNotAdvertised => "tool_not_advertised",
            Came::Halted => "halted",
            Came::ProxyNotReady => "proxy_not_ready",
        };
        self.kind == Some(kind)
    }
}

impl std::fmt::Display for Outcame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.kind, self.is_error) {
            (Some(kind), _) => f.write_str(kind),
            (None, true) => f.write_str("an error"),
            (None, false) => f.write_str("a result"),
        }
    }
}

/// Every text of an answer, line by line: of a tool, a resource, or a prompt.
fn texts(answer: &Value) -> String {
    let result = &answer["result"];
    let blocks = ["content", "contents", "messages"].map(|member| result[member].as_array());
    let blocks = blocks.into_iter().flatten().flatten();
    let texts = blocks.filter_map(|block| {
        let text = block["text"].as_str();
        text.or_else(|| block["content"]["text"].as_str())
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The calls that a text demands, one a line: `CALL server__tool {"name": "value"}`.
fn instructions(text: &str) -> Vec<(String, Map<String, Value>)> {
    let lines = text.lines().filter_map(|line| {
        let demanded = line.trim().strip_prefix(INSTRUCTION)?;
        let (tool, arguments) = demanded.split_once(' ').unwrap_or((demanded, "{}"));
        let arguments = serde_json::from_str(arguments).ok()?;
        Some((tool.to_owned(), arguments))
    });
    lines.collect()
}

/// What there is to look at in the end.
struct Found<'a> {
    project: &'a Project<'a>,
    records: Vec<Record>,
}

impl<'a> Found<'a> {
    fn of(project: &'a Project<'a>) -> Outcome<Self> {
        let log = project.log()?;
        let sessions = project.sessions()?;
        let records = sessions.iter().map(|one| Record::read(&log.session(one)));
        Ok(Self {
            project,
            records: records.collect::<Outcome<_>>()?,
        })
    }

    /// Whether something is so; and what is, otherwise.
    fn look(&self, end: &End) -> Outcome<(bool, String)> {
        Ok(match end {
            End::Ran {
                server,
                tool,
                with,
                times,
            } => {
                let done = self.project.done(server, tool)?;
                let fits = |arguments: &&Value| {
                    with.iter()
                        .all(|(name, value)| arguments.get(name) == Some(value))
                };
                let ran = done.iter().filter(fits).count();
                (ran == *times, format!("`{server}.{tool}` ran {ran} times"))
            }
            End::Believes { words, truth } => {
                let readings = |record: &Record| record.readings(words).len();
                let all: usize = self.records.iter().map(readings).sum();
                let so = |record: &Record| record.readings_at(words, *truth);
                let so: usize = self.records.iter().map(so).sum();
                let words = Excerpt::of(words);
                let what = format!("of {all} beliefs about what says `{words}`, {so} are {truth}");
                (all > 0 && so == all, what)
            }
            End::Events { kind, times } => {
                let found: usize = self.records.iter().map(|one| one.count(kind)).sum();
                (found == *times, format!("there are {found} events {kind}"))
            }
            End::LogIntact => self.is_intact()?,
        })
    }

    fn is_intact(&self) -> Outcome<(bool, String)> {
        let report = self.project.verify(&VerifyOptions::default())?;
        if let Some(problem) = report.all_problems().next() {
            return Ok((false, format!("the log does not verify: {problem:?}")));
        }
        for session in self.project.sessions()? {
            let replay = self.project.replay(&session)?;
            if let Some(difference) = replay.differences.first() {
                return Ok((false, format!("replay differs: {difference}")));
            }
        }
        Ok((true, "the logs are intact".to_owned()))
    }
}
