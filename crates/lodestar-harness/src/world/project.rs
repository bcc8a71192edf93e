//! A scratch project: a folder, a configuration, keys outside of it, people, and servers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lodestar_core::defence::Defence;
use lodestar_core::name::{ProjectId, SessionId};
use lodestar_core::note::NoteKey;
use lodestar_core::statement::ApprovalDecision;
use lodestar_guard::channel::drop::Pile;
use lodestar_guard::installation::Installation;
use lodestar_guard::{Config, Keys, Setup};
use lodestar_log::verify::{ProjectReport, VerifyOptions, verify_project};
use lodestar_log::{Ledger, LogRoot, ProjectLog, Trust};
use lodestar_replay::SessionReplay;
use serde_json::Value;

use super::agent::Agent;
use super::people::Person;
use super::record::Record;
use super::server::ServerScript;
use crate::probe::{Broken, Outcome};
use crate::stage::Stage;

/// What every scratch project is called. A proxy with a defence taken out serves no other.
pub const PROJECT: &str = "probe";
/// The hidden command that serves a script.
pub(crate) const PROBE_SERVER: &str = "probe-server";
/// In whose name the agent acts.
pub const ACTOR: &str = "agent";

/// A scratch project.
#[derive(Debug)]
pub struct Project<'a> {
    stage: &'a Stage,
    root: PathBuf,
    /// The keys that stand before all tables of the configuration.
    head: String,
    tables: String,
    session: Option<String>,
    people: Vec<Person>,
}

impl<'a> Project<'a> {
    /// An empty one, in which calls up to L3 run unasked.
    pub fn new(stage: &'a Stage) -> Outcome<Self> {
        let root = stage.folder().canonicalize()?.join("project");
        fs::create_dir_all(&root)?;
        let project = Self {
            stage,
            root,
            head: format!("project_id = \"{PROJECT}\"\nactor_id = \"{ACTOR}\"\n"),
            tables: String::new(),
            session: None,
            people: Vec::new(),
        };
        project.installation().create_log_key()?;
        Ok(project)
    }

    /// The stage that it stands on.
    pub fn stage(&self) -> &'a Stage {
        self.stage
    }

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the servers leave marks of what they really did.
    pub fn marks(&self) -> PathBuf {
        self.stage.folder().join("marks")
    }

    /// The installation: the keys.
    pub fn installation(&self) -> Installation {
        Installation::at(self.stage.folder().join("config"))
    }

    /// Its keys.
    pub fn keys(&self) -> Outcome<Keys> {
        Ok(Keys::at(self.stage.folder().join("config"))?)
    }

    /// A line, or several, before all tables: `auto_approve_ceiling = 3`.
    pub fn set(&mut self, lines: &str) {
        self.head.push_str(lines);
        self.head.push('\n');
    }

    /// The next session is called so, and takes up no other.
    pub fn name_session(&mut self, name: &str) {
        self.session = Some(name.to_owned());
    }

    /// Tables.
    pub fn table(&mut self, text: &str) {
        self.tables.push_str(text);
        self.tables.push('\n');
    }

    /// A grade. `more` are further lines of its table.
    pub fn grade(&mut self, tool: &str, rung: &str, more: &str) {
        self.table(&grade_table(tool, rung, more));
    }

    /// A file of the project.
    pub fn write(&self, path: &str, content: &str) -> Outcome {
        let file = self.root.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(fs::write(file, content)?)
    }

    /// Somebody whose approval counts; `more` are further lines of their entry, such as roles.
    pub fn person(&mut self, name: &str, more: &str) -> Outcome<Person> {
        let person = Person::new(name)?;
        self.table(&format!(
            "[[approvals.authorized_keys]]\nactor_id = {}\npublic_key = \"{}\"\n{more}\n",
            quoted(name),
            person.key.public()
        ));
        self.people.push(person.clone());
        Ok(person)
    }

    /// An operator whose orders about beliefs count: their key is pinned in the installation.
    pub fn operator(&self, name: &str) -> Outcome<Person> {
        let person = Person::new(name)?;
        let pins = self.installation().dir().join("operators");
        fs::create_dir_all(&pins)?;
        let public = NoteKey::ed25519(name, &person.key.public())?;
        fs::write(pins.join(format!("{name}.pub")), format!("{public}\n"))?;
        Ok(person)
    }

    /// A server that does as it is scripted, as a process of its own.
    pub fn server(&mut self, script: &ServerScript) -> Outcome {
        self.server_below(script, ".")
    }

    /// The same, over the files of a folder of the project alone.
    pub fn server_below(&mut self, script: &ServerScript, folder: &str) -> Outcome {
        let served = self.root.join(folder);
        let folder = self.stage.folder().join("servers");
        fs::create_dir_all(&folder)?;
        fs::create_dir_all(self.marks())?;
        let file = folder.join(format!("{}.json", script.name));
        fs::write(&file, serde_json::to_vec_pretty(script)?)?;
        let args = [
            PROBE_SERVER.to_owned(),
            "--script".to_owned(),
            text(&file)?,
            "--root".to_owned(),
            text(&served)?,
            "--marks".to_owned(),
            text(&self.marks())?,
        ];
        self.served_by(&script.name, &args)
    }

    /// The two servers of the demonstration, over this project's files; what they push is recorded in `remote`.
    pub fn demo_servers(&mut self, remote: &Path) -> Outcome {
        let (root, remote) = (text(&self.root)?, text(remote)?);
        let server = |which: &str| ["demo-server".to_owned(), which.to_owned()];
        let served = ["--root".to_owned(), root];
        let files = [&server("files")[..], &served].concat();
        let dev = [
            &server("dev")[..],
            &served,
            &["--remote".to_owned(), remote],
        ]
        .concat();
        self.served_by("files", &files)?;
        self.served_by("dev", &dev)
    }

    /// A server that is this program itself.
    fn served_by(&mut self, name: &str, args: &[String]) -> Outcome {
        let command = text(self.stage.program())?;
        self.table(&format!(
            "[[downstream_servers]]\nname = {}\ncommand = {}\nargs = {}\nsandbox = [\"write-local\"]\nwrite = [{}]\n",
            quoted(name),
            quoted(&command),
            serde_json::to_string(args)?,
            quoted(&text(self.stage.folder())?)
        ));
        Ok(())
    }

    /// How often a tool of a scripted server really ran, by the server's own marks.
    pub fn ran(&self, server: &str, tool: &str) -> Outcome<usize> {
        Ok(self.done(server, tool)?.len())
    }

    /// The arguments of every call of a tool that really ran.
    pub fn done(&self, server: &str, tool: &str) -> Outcome<Vec<Value>> {
        let file = self.marks().join(format!("{server}.ndjson"));
        let lines = match fs::read_to_string(file) {
            Ok(lines) => lines,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(problem) => return Err(problem.into()),
        };
        // A line that has no end yet is being written.
        let whole = lines.rfind('\n').map_or("", |end| &lines[..end]);
        let calls: Vec<Value> = whole
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let of_tool = calls.into_iter().filter(|call| call["tool"] == tool);
        Ok(of_tool.map(|mut call| call["arguments"].take()).collect())
    }

    /// The configuration, as it is written.
    pub(crate) fn config_text(&self) -> String {
        let named = self.session.as_ref();
        let named = named.map_or(String::new(), |name| {
            format!("session_id = {}\n", quoted(name))
        });
        format!("{}{named}\n{}", self.head, self.tables)
    }

    /// The configuration, written to its file.
    pub fn config_file(&self) -> Outcome<PathBuf> {
        let file = self.root.join("lodestar.toml");
        fs::write(&file, self.config_text())?;
        Ok(file)
    }

    /// The configuration, read as the program reads it.
    pub fn config(&self) -> Outcome<Config> {
        Ok(Config::read(&self.config_file()?)?)
    }

    /// A session of the library, on its way: with what this run lacks taken out.
    pub fn setup(&self) -> Outcome<Setup> {
        let setup = Setup::new(self.config()?, self.keys()?);
        Ok(setup.without(self.stage.without().iter().copied()))
    }

    /// An agent behind the real proxy, as a process.
    pub fn agent(&self) -> Outcome<Agent> {
        let config = self.config_file()?;
        Agent::start(self.stage, &config, self.installation().dir())
    }

    /// The same, before the handshake.
    pub fn silent_agent(&self) -> Outcome<Agent> {
        let config = self.config_file()?;
        Agent::begin(self.stage, &config, self.installation().dir())
    }

    /// The log.
    pub fn log(&self) -> Outcome<ProjectLog> {
        Ok(LogRoot::in_folder(&self.root).project(&ProjectId::new(PROJECT)?))
    }

    /// The sessions, in the order in which the ledger says they were opened.
    pub fn sessions(&self) -> Outcome<Vec<SessionId>> {
        let log = self.log()?;
        let mut sessions = log.sessions_on_disk()?;
        if !sessions.is_empty() {
            let trust = Trust::only(self.keys()?.log.public());
            let (ledger, _) = Ledger::read(&log, &trust, &BTreeSet::new())?;
            sessions.sort_by_key(|one| ledger.session(one).map(|facts| facts.opened_seq));
        }
        Ok(sessions)
    }

    /// The last session, read back.
    pub fn record(&self) -> Outcome<Record> {
        let last = self.sessions()?.pop();
        let last = last.ok_or_else(|| Broken::Failed("no session was ever opened".to_owned()))?;
        Record::read(&self.log()?.session(&last))
    }

    /// What verification says of the whole log, without what this run lacks.
    pub fn verified(&self) -> Outcome<ProjectReport> {
        self.verify(&VerifyOptions {
            taken_out: self.stage.without().iter().copied().collect(),
            ..VerifyOptions::default()
        })
    }

    /// What verification says of the whole log.
    pub fn verify(&self, options: &VerifyOptions) -> Outcome<ProjectReport> {
        let keys = self.keys()?;
        let trust = Trust {
            operators: keys.operators.clone(),
            ..Trust::only(keys.log.public())
        };
        Ok(verify_project(&self.log()?, &trust, options, &|_| ())?)
    }

    /// What follows from the log of a session.
    pub fn replay(&self, session: &SessionId) -> Outcome<SessionReplay> {
        let keys = self.keys()?;
        let log = self.log()?;
        let replay = lodestar_replay::derive(&log, session, &keys.operators, None)?;
        Ok(match self.stage.lacks(Defence::ReplayDerivation) {
            true => replay.taken_at_its_word(),
            false => replay,
        })
    }

    /// Signs an answer to every open request and drops it where genuine ones are dropped; how many.
    pub fn answer_all(&self, person: &Person, decision: ApprovalDecision) -> Outcome<usize> {
        let pile = Pile::below(&self.root)?;
        let mut answered = 0;
        for shown in pile.requests() {
            let (envelope, nonce) = person.answer(&shown.announcement().request, decision)?;
            pile.answer(shown, &envelope, nonce)?;
            answered += 1;
        }
        Ok(answered)
    }
}

/// A grade, as a table of the configuration.
pub(crate) fn grade_table(tool: &str, rung: &str, more: &str) -> String {
    let (radius, reversibility) = match rung {
        "L4" | "L5" => ("external", "irreversible"),
        "L3" => ("project", "reversible"),
        _ => ("self", "reversible"),
    };
    let tool = quoted(tool);
    format!(
        "[tool_defaults.{tool}]\nrequired_trust_level = \"{rung}\"\nblast_radius = \"{radius}\"\n\
             reversibility = \"{reversibility}\"\ndata_sensitivity = \"private\"\n{more}\n"
    )
}

/// A text or a key of the configuration: what JSON escapes, TOML reads.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn text(path: &Path) -> Outcome<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Broken::Failed(format!("`{}` is not UTF-8", path.display())))
}
