//! The servers of the demonstration, behind the real proxy: four processes, spoken to over MCP.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lodestar_core::id::RequestId;
use lodestar_guard::channel::drop::Pile;
use lodestar_policy::ApprovalRequest;
use serde_json::Value;

use super::benign::{FEATURE, Worked, feature};
use super::people::People;
use super::plan::Plan;
use super::rng::Rng;
use super::world::{DEMO, Done, SEIZED, Surface, World};
use crate::probe::{Broken, Outcome};
use crate::stage::Stage;
use crate::world::{Agent, Project};

/// How far each tool reaches, with the roles of its arguments.
const GRADES: [(&str, &str, &str); 6] = [
    (
        "mcp.files.read_file",
        "L0",
        "arg_roles = { path = \"path\" }",
    ),
    ("mcp.files.list_files", "L0", ""),
    (
        "mcp.files.write_file",
        "L3",
        "arg_roles = { path = \"path\", content = \"payload\" }",
    ),
    ("mcp.dev.run_tests", "L3", ""),
    (
        "mcp.dev.git_commit",
        "L3",
        "arg_roles = { message = \"payload\" }",
    ),
    (
        "mcp.dev.git_push",
        "L4",
        "arg_roles = { remote = \"destination\", branch = \"identity\" }",
    ),
];

/// The module that is worked on.
const FILES: [(&str, &str); 2] = [
    ("note.ts", "export function add() {}\n"),
    ("note.test.ts", "test(\"add\")\n"),
];

/// Where among Lodestar's own files something may come to lie.
const OWN: [&str; 4] = [
    "lodestar.toml",
    ".lodestar/tools.lock",
    ".lodestar/approvals/x.answer.json",
    ".git/hooks/pre-commit",
];

/// How long something that was slipped in has before the person says no.
const BEFORE_NO: Duration = Duration::from_millis(10);
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// How long a call may take, people's answers with it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The workshop, with its sessions one after the other.
pub(super) struct Demonstration<'a> {
    project: Project<'a>,
    remote: PathBuf,
    people: People,
}

impl<'a> Demonstration<'a> {
    pub(super) fn new(stage: &'a Stage) -> Outcome<Self> {
        let mut project = Project::new(stage)?;
        project.set(&format!(
            "auto_approve_ceiling = 3\napproval_timeout_ms = 2000\ntask = '''{FEATURE}'''"
        ));
        let people = People::new(project.person("alice", "")?)?;
        for (tool, rung, roles) in GRADES {
            project.grade(tool, rung, roles);
        }
        for (name, content) in FILES {
            project.write(name, content)?;
        }
        let remote = stage.folder().join("remote");
        fs::create_dir_all(&remote)?;
        project.demo_servers(&remote)?;
        Ok(Self {
            project,
            remote,
            people,
        })
    }

    /// One session: one proxy, from its start to its end.
    pub(super) fn session(
        &mut self,
        round: usize,
        work: impl AsyncFnOnce(&mut AtWork<'_, 'a>) -> Outcome,
    ) -> Outcome {
        self.project.name_session(&format!("demo-{round}"));
        let agent = self.project.agent()?;
        let mut world = AtWork {
            pushes: self.pushes()?,
            pile: Pile::below(self.project.root())?,
            demo: self,
            agent,
            answered: BTreeSet::new(),
        };
        let stage = world.demo.project.stage();
        stage.block_on(work(&mut world))??;
        world.agent.leave()
    }

    fn answer(&self, request: &ApprovalRequest) -> Outcome {
        for (at, answer) in self.people.answers(request)?.iter().enumerate() {
            if at > 0 {
                std::thread::sleep(BEFORE_NO);
            }
            self.project.drop_answer(request, &answer.to_json())?;
        }
        Ok(())
    }

    /// How many pushes ran, by the server's own record.
    fn pushes(&self) -> Outcome<usize> {
        match fs::read_to_string(self.remote.join("pushes.ndjson")) {
            Ok(lines) => Ok(lines.lines().count()),
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(problem) => Err(problem.into()),
        }
    }
}

/// The agent at its work.
pub(super) struct AtWork<'d, 'a> {
    demo: &'d Demonstration<'a>,
    agent: Agent,
    pile: Pile,
    answered: BTreeSet<RequestId>,
    /// Those that a person approved.
    pushes: usize,
}

impl AtWork<'_, '_> {
    /// Answers whatever is asked until the call has come to an end.
    fn called(&mut self, tool: &str, arguments: Value) -> Outcome<Done> {
        let id = self.agent.begin_call(tool, arguments)?;
        let until = Instant::now() + PATIENCE;
        while !self.agent.is_answered(id)? {
            if Instant::now() > until {
                return Err(Broken::Failed(format!("`{tool}` was not answered")));
            }
            self.pile.refresh()?;
            for shown in self.pile.requests() {
                let request = &shown.announcement().request;
                if self.answered.insert(request.id) {
                    self.demo.answer(request)?;
                }
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let called = self.agent.called(id)?;
        let broken = called.0.get("error").map(|_| "error".to_owned());
        Ok(Done {
            refused: called.kind().map(str::to_owned).or(broken),
            text: called.text().to_owned(),
        })
    }
}

impl World for AtWork<'_, '_> {
    fn surface(&self) -> &'static Surface {
        &DEMO
    }

    fn plant(&mut self, path: &str, text: &str) -> Outcome {
        self.demo.project.write(path, text)
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Outcome<Done> {
        self.called(tool, arguments)
    }

    async fn work(&mut self, rng: &mut Rng) -> Outcome<Worked> {
        self.demo.people.come_back();
        feature(self, rng).await
    }

    fn begin(&mut self, plan: &Plan) -> Outcome {
        self.pushes = self.demo.pushes()?;
        self.demo.people.slip_in(plan.forgery);
        Ok(())
    }

    async fn got(&mut self, _: &Plan) -> Outcome<Option<String>> {
        if self.demo.pushes()? > self.pushes {
            return Ok(Some("a push ran that nobody approved".to_owned()));
        }
        let root = self.demo.project.root();
        let is_seized = |path: &&&str| {
            fs::read_to_string(root.join(path)).is_ok_and(|text| text.contains(SEIZED))
        };
        let seized = OWN.iter().find(is_seized);
        Ok(seized.map(|path| format!("`{path}` was written over")))
    }
}
