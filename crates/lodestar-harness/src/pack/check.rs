//! Checks a scenario before anything of it runs: names, limits, and that it stays in its scratch folder.

mod steps;

use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::time::Duration;

use lodestar_core::name::Excerpt;
use lodestar_core::time::Timestamp;
use lodestar_guard::Config;
use lodestar_mcp::graded_methods;
use lodestar_policy::{Policy, Unsigned};
use serde_json::{Map, Value};
use toml::Spanned;

use super::files::is_name;
use super::problem::{Problem, read};
use super::scenario::{Scenario, Setting, Step};
use super::written::{GradeTable, Written};
use crate::probes;
use crate::stage::DEADLINE_S;
use crate::world::{Act as ServerAct, PROBE_SERVER, PROJECT, ServerScript, grade_table, quoted};

/// Longest run that a scenario may ask for, in seconds.
const MAX_DEADLINE_S: u64 = 60;
/// Limits on what is in a scenario; real ones need a fraction.
const MAX_SERVERS: usize = 8;
const MAX_TOOLS: usize = 32;
const MAX_TOOL_NAME: usize = 64;
const MAX_FILES: usize = 64;
const MAX_STEPS: usize = 100;
const MAX_ENDS: usize = 100;
const MAX_PEOPLE: usize = 8;
const MAX_PROSE: usize = 4000;
/// Longest wait of a server, in milliseconds; largest line; longest flood.
const MAX_WAIT_MS: u64 = 5000;
const MAX_HUGE: u32 = 16 << 20;
const MAX_FLOOD: u32 = 10_000;
/// How deep arguments nest.
const MAX_DEPTH: usize = 16;

impl Scenario {
    /// Reads and checks a scenario's file.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let written: Written = read(file, text).map_err(|problem| vec![problem])?;
        let mut check = Check {
            file,
            text,
            problems: Vec::new(),
        };
        let scenario = check.scenario(written);
        match check.problems.is_empty() {
            true => Ok(scenario),
            false => Err(check.problems),
        }
    }
}

struct Check<'a> {
    file: &'a str,
    text: &'a str,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn wrong(&mut self, offset: usize, problem: impl Into<String>) {
        let problem = Problem::at(self.file, self.text, offset, problem);
        self.problems.push(problem);
    }

    fn most(&mut self, what: &str, found: usize, most: usize) {
        if found > most {
            self.wrong(0, format!("there are {found} {what}; the limit is {most}"));
        }
    }

    fn scenario(&mut self, written: Written) -> Scenario {
        let stem = Path::new(self.file)
            .file_stem()
            .and_then(|stem| stem.to_str());
        let (name, at) = (written.name.get_ref().clone(), written.name.span().start);
        if probes::all().iter().any(|one| one.header.name == name) {
            self.wrong(at, "a probe that comes with the program is called so");
        }
        if !is_name(&name) || stem != Some(name.as_str()) {
            self.wrong(
                at,
                "the name of a scenario is that of its file, in small letters, digits and hyphens",
            );
        }
        for prose in [&written.scenario, &written.asserts, &written.does_not_claim] {
            let length = prose.get_ref().trim().chars().count();
            if !(20..=MAX_PROSE).contains(&length) {
                let problem = format!(
                    "this takes 20 to {MAX_PROSE} characters: say it so that somebody can judge it"
                );
                self.wrong(prose.span().start, problem);
            }
        }
        let deadline = written.deadline_s.as_ref();
        if let Some(wrong) = deadline.filter(|one| !(1..=MAX_DEADLINE_S).contains(one.get_ref())) {
            self.wrong(
                wrong.span().start,
                format!("a run takes 1 to {MAX_DEADLINE_S} s"),
            );
        }
        let seconds = deadline.map_or(DEADLINE_S, |one| *one.get_ref());
        let Written {
            step, need, expect, ..
        } = &written;
        self.most("steps", step.len(), MAX_STEPS);
        self.most("expectations", need.len() + expect.len(), MAX_ENDS);
        let setting = self.setting(&written);
        let steps: Vec<Step> = written
            .step
            .iter()
            .filter_map(|one| self.step(one, &setting))
            .collect();
        let needs = self.ends(&written.need, &setting);
        let expects = self.ends(&written.expect, &setting);
        let asserts_something = !expects.is_empty()
            || steps
                .iter()
                .any(|step| step.expect.is_some() || step.never_says.is_some());
        if !asserts_something && self.problems.is_empty() {
            self.wrong(
                0,
                "nothing is expected: a scenario that cannot fail shows nothing",
            );
        }
        Scenario {
            name,
            scenario: written.scenario.into_inner(),
            asserts: written.asserts.into_inner(),
            does_not_claim: written.does_not_claim.into_inner(),
            class: written.class,
            defence: written.defence,
            deadline: Duration::from_secs(seconds),
            setting,
            steps,
            needs,
            expects,
        }
    }

    fn setting(&mut self, written: &Written) -> Setting {
        let project = &written.project;
        if let (Some(ceiling), true) = (&project.ceiling, project.policy.is_some()) {
            self.wrong(
                ceiling.span().start,
                "either a ceiling or a policy says what runs unasked",
            );
        }
        if let Some(wrong) = project.ceiling.as_ref().filter(|one| *one.get_ref() > 3) {
            self.wrong(wrong.span().start, "a ceiling is 0 to 3");
        }
        if let Some(policy) = &project.policy {
            let bytes = policy.get_ref().as_bytes();
            let loaded = Policy::load(bytes, None, &[], Unsigned::Allowed, Timestamp::MIN);
            if let Err(problem) = loaded {
                self.wrong(
                    policy.span().start,
                    format!("the policy does not load: {problem}"),
                );
            }
        }
        let texts = project.task.iter().chain(&project.known_values);
        for text in texts.chain(&project.people) {
            if text.get_ref().chars().any(|c| c.is_control() && c != '\n') {
                self.wrong(text.span().start, "a control character stands in it");
            }
        }
        for name in &project.people {
            if !is_name(name.get_ref()) {
                self.wrong(
                    name.span().start,
                    "a person's name has small letters, digits and hyphens",
                );
            }
        }
        self.most("people", project.people.len(), MAX_PEOPLE);
        self.most("files", written.files.len(), MAX_FILES);
        for path in written.files.keys() {
            if !stays_inside(path.get_ref()) {
                let shown = Excerpt::of(path.get_ref());
                self.wrong(
                    path.span().start,
                    format!("`{shown}` does not stay in the scratch folder"),
                );
            }
        }
        self.servers(&written.server);
        for (tool, grade) in &written.grade {
            self.grade(tool, grade, &written.server);
        }
        let inner = |all: &[Spanned<String>]| all.iter().map(|one| one.get_ref().clone()).collect();
        let grades = written.grade.iter().map(|(tool, grade)| {
            let GradeTable { level, roles } = grade.clone();
            (tool.get_ref().clone(), (level, roles))
        });
        let files = written.files.iter();
        let setting = Setting {
            task: project.task.as_ref().map(|task| task.get_ref().clone()),
            ceiling: project.ceiling.as_ref().map(|ceiling| *ceiling.get_ref()),
            policy: project
                .policy
                .as_ref()
                .map(|policy| policy.get_ref().clone()),
            sentinels: project.sentinels.clone(),
            people: inner(&project.people),
            known_values: inner(&project.known_values),
            files: files
                .map(|(path, text)| (path.get_ref().clone(), text.clone()))
                .collect(),
            grades: grades.collect(),
            servers: written
                .server
                .iter()
                .map(|one| one.get_ref().clone())
                .collect(),
        };
        self.configured(&setting);
        setting
    }

    /// Whether the product would take the configuration that this comes to.
    fn configured(&mut self, setting: &Setting) {
        if !self.problems.is_empty() {
            return;
        }
        let mut config = format!(
            "project_id = \"{PROJECT}\"\nactor_id = \"agent\"\n{}{}",
            setting.head(),
            setting.tables()
        );
        for server in &setting.servers {
            let name = quoted(&server.name);
            config.push_str(&format!(
                "[[downstream_servers]]\nname = {name}\ncommand = \"scripted\"\nargs = [\"{PROBE_SERVER}\"]\n"
            ));
        }
        for (tool, (rung, roles)) in &setting.grades {
            config.push_str(&grade_table(
                tool,
                &rung.to_string(),
                &Setting::roles(roles),
            ));
        }
        if let Err(problem) = setting.confines(&config) {
            self.wrong(0, problem);
        }
        if let Err(problem) = Config::parse(&config, "scratch") {
            self.wrong(0, format!("the project cannot be set up so: {problem}"));
        }
    }

    fn servers(&mut self, servers: &[Spanned<ServerScript>]) {
        self.most("servers", servers.len(), MAX_SERVERS);
        if servers.is_empty() {
            self.wrong(0, "there is no server: the agent has nothing to call");
        }
        for server in servers {
            let (at, server) = (server.span().start, server.get_ref());
            if !is_name(&server.name) {
                self.wrong(at, "a server's name has small letters, digits and hyphens");
            }
            let tools = server.tools.iter().chain(&server.tools_later);
            if !tools.clone().all(|tool| is_tool_name(&tool.name)) {
                let problem = format!(
                    "a tool's name has 1 to {MAX_TOOL_NAME} letters, digits, hyphens, underscores and dots"
                );
                self.wrong(at, problem);
            }
            self.most("tools of one server", tools.clone().count(), MAX_TOOLS);
            for answer in tools.flat_map(|tool| &tool.answers) {
                let is_within = match answer.act {
                    ServerAct::Wait(ms) => ms <= MAX_WAIT_MS,
                    ServerAct::Huge(bytes) => bytes <= MAX_HUGE,
                    ServerAct::Flood(times) => times <= MAX_FLOOD,
                    _ => true,
                };
                if !is_within {
                    let problem = format!(
                        "a server waits {MAX_WAIT_MS} ms, sends {MAX_HUGE} bytes and floods with {MAX_FLOOD} messages at most"
                    );
                    self.wrong(at, problem);
                }
                self.values(at, &answer.when);
                self.values(at, &answer.beside);
            }
        }
    }

    fn grade(
        &mut self,
        tool: &Spanned<String>,
        grade: &GradeTable,
        servers: &[Spanned<ServerScript>],
    ) {
        let (at, name) = (tool.span().start, tool.get_ref());
        let mut parts = name.splitn(3, '.');
        let (Some("mcp"), Some(server), Some(tool)) = (parts.next(), parts.next(), parts.next())
        else {
            return self.wrong(at, "a grade is of `mcp.SERVER.TOOL`");
        };
        let server = servers.iter().find(|one| one.get_ref().name == server);
        let Some(server) = server else {
            return self.wrong(at, "this server is not in the scenario");
        };
        let is_method = graded_methods().any(|method| method == tool);
        let tools = &server.get_ref().tools;
        match tools.iter().find(|one| one.name == tool) {
            None if !is_method => self.wrong(at, "its server has no such tool"),
            None => {}
            Some(tool) => {
                if let Some(role) = grade
                    .roles
                    .keys()
                    .find(|name| !tool.input.contains_key(*name))
                {
                    let shown = Excerpt::of(role);
                    self.wrong(at, format!("the tool has no argument `{shown}`"));
                }
            }
        }
    }

    /// JSON has no dates, and nothing nests without end.
    fn values(&mut self, at: usize, values: &Map<String, Value>) {
        fn is_fine(value: &Value, depth: usize) -> bool {
            match value {
                Value::Object(members) => {
                    depth < MAX_DEPTH
                        && members.iter().all(|(name, value)| {
                            !name.starts_with("$__toml") && is_fine(value, depth + 1)
                        })
                }
                Value::Array(items) => {
                    depth < MAX_DEPTH && items.iter().all(|item| is_fine(item, depth + 1))
                }
                _ => true,
            }
        }
        if !values.values().all(|value| is_fine(value, 0)) {
            self.wrong(
                at,
                format!("a value is a date, or nests more than {MAX_DEPTH} levels"),
            );
        }
    }
}

/// Whether something can be the name of a tool, which MCP leaves open.
fn is_tool_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (1..=MAX_TOOL_NAME).contains(&name.len()) && name.chars().all(is_plain)
}

/// Whether a path stays below the folder that it starts from, and says so plainly.
fn stays_inside(path: &str) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let parts: BTreeSet<_> = Path::new(path).components().map(is_plain).collect();
    !path.is_empty() && path.len() <= 255 && !path.contains(['\0', '\\']) && !parts.contains(&false)
}
