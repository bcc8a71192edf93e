//! `shell.run`: a program from a fixed list, without a shell.
//!
//! The operator names programs by absolute path; the agent names one of them and its words. Rules
//! on words cannot contain a program that runs code; the operating system does, by the profile
//! `controlled-shell` ([`contain`](crate::contain)). Beside that no other program is started here,
//! nothing of the proxy's environment reaches it, it starts in a directory below the root, and
//! nothing of it outlives the call as far as [`strays`] can see. It stays in the proxy's session,
//! so a controlling terminal, where there is one, is within its reach.

mod config;
pub(crate) mod executable;
pub(crate) mod process;
pub(crate) mod strays;
#[cfg(test)]
mod tests;

pub use config::{
    DEFAULT_HOME, DEFAULT_LANG, DEFAULT_MAX_OUTPUT_BYTES, DEFAULT_PATH, DEFAULT_TIMEOUT_MS,
    ProgramConfig, ShellConfig, ShellError, WordPattern,
};
pub use executable::ExecutableError;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestar_core::chain::ContentBlock;
use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use serde_json::{Value, json};

use config::Program;
use process::{Clients, Confines, End, Ended, Run, Stream};

use super::fs::{Below, Reins, Root, block_of, blocking, explain, only};
use crate::contain::{OutOfReach, Plan};
use crate::tool::{Call, Calling, Definition, Effect, NATIVE_SERVER, Output, Tool, ToolError};

/// Longest word: Linux takes no longer one.
const MAX_WORD_BYTES: usize = 128 * 1024 - 1;

/// Most bytes of all words together: half of what Linux takes by default, environment included.
const MAX_WORDS_BYTES: usize = 1024 * 1024;

/// Most words.
const MAX_WORDS: usize = 4096;

/// `shell.run`.
#[derive(Debug)]
pub struct ShellRun {
    shell: Arc<Shell>,
    definition: Definition,
}

#[derive(Debug)]
struct Shell {
    root: Root,
    programs: BTreeMap<String, Program>,
    environment: BTreeMap<OsString, OsString>,
    timeout: Duration,
    max_output: usize,
}

/// One call, checked.
#[derive(Debug)]
struct Order {
    program: String,
    words: Vec<String>,
    directory: Below,
    timeout: Duration,
}

impl ShellRun {
    /// The tool for a list of programs.
    pub fn new(config: ShellConfig, scope: Scope) -> Result<Self, ShellError> {
        let shell = Shell::of(&config)?;
        Ok(Self {
            definition: definition(&shell, scope),
            shell: Arc::new(shell),
        })
    }
}

impl ShellConfig {
    /// What a program of the list may reach when it runs, for whoever wants to try that.
    pub fn plan(&self, program: &Path, out_of_reach: &OutOfReach) -> Plan {
        confines(&self.root).plan(program, out_of_reach)
    }
}

/// What every program of the list may reach.
fn confines(root: &Path) -> Confines {
    Confines {
        profile: Sandbox::ControlledShell,
        project: root.to_owned(),
        reads: Vec::new(),
        writes: Vec::new(),
        clients: Clients::Hidden,
    }
}

impl Tool for ShellRun {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn root(&self) -> Option<&Path> {
        Some(self.shell.root.path())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move {
            only(&call, &self.definition)?;
            let order = self.shell.order(&call)?;
            let shell = Arc::clone(&self.shell);
            blocking(&call, move |reins| shell.run(&order, reins)).await
        })
    }
}

impl Shell {
    fn of(config: &ShellConfig) -> Result<Self, ShellError> {
        Ok(Self {
            root: Root::open(&config.root, super::fs::Links::Refuse)?,
            programs: config.pinned_programs()?,
            environment: config.environment()?,
            timeout: Duration::from_millis(config.timeout_ms),
            max_output: config.max_output_bytes,
        })
    }

    fn order(&self, call: &Call<'_>) -> Result<Order, ToolError> {
        let name = call.text("program")?;
        let program = self.programs.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.programs.keys().map(String::as_str).collect();
            ToolError::refused(format!(
                "the program `{}` is not on the list; there are: {}",
                Excerpt::of(name),
                known.join(", ")
            ))
        })?;
        let words = words(call.arguments().get("args"))?;
        program.check_words(name, &words)?;
        let directory = match call.arguments().get("cwd") {
            None => self.root.top(),
            Some(_) => {
                let below = self.root.below(call.text("cwd")?);
                below.map_err(|refused| ToolError::refused(refused.to_string()))?
            }
        };
        Ok(Order {
            program: name.to_owned(),
            words,
            directory,
            timeout: self.timeout(call)?,
        })
    }

    fn timeout(&self, call: &Call<'_>) -> Result<Duration, ToolError> {
        match call.arguments().get("timeout_ms") {
            None => Ok(self.timeout),
            Some(value) => match value.as_u64() {
                Some(ms @ 1..) => Ok(self.timeout.min(Duration::from_millis(ms))),
                _ => Err(ToolError::invalid(
                    "`timeout_ms` must be a whole number above zero",
                )),
            },
        }
    }

    fn run(&self, order: &Order, reins: &Reins) -> Result<Output, ToolError> {
        let program = &self.programs[&order.program];
        program
            .executable
            .check()
            .map_err(|error| ToolError::refused(error.to_string()))?;
        let directory = self
            .root
            .open_directory(&order.directory)
            .map_err(|errno| explain(&order.directory, errno))?;
        let run = Run {
            executable: &program.executable,
            arguments: order.words.iter().map(OsString::from).collect(),
            environment: self.environment.clone(),
            directory: &directory,
            input: None,
            max_output: self.max_output,
            confines: confines(self.root.path()),
        };
        reins.check()?;
        let reins = reins.by(Instant::now() + order.timeout);
        let ended = process::run(&run, &reins).map_err(|error| {
            ToolError::failed(
                Effect::None,
                format!("`{}` cannot be started: {error}", order.program),
            )
        })?;
        match ended.end {
            End::Early(early) => Err(early.error(Effect::Unknown)),
            End::Own | End::Flooded(_) => Ok(self.output(&order.program, ended)),
        }
    }

    fn output(&self, program: &str, ended: Ended) -> Output {
        let flooded = match ended.end {
            End::Flooded(stream) => Some(stream),
            End::Own | End::Early(_) => None,
        };
        let mut summary = json!({
            "program": program,
            "exit_code": ended.status.code(),
            "signal": ended.status.signal(),
            "ended": if flooded.is_some() { "killed: too much output" } else { "by itself" },
            "stdout_bytes": ended.stdout.len(),
            "stderr_bytes": ended.stderr.len(),
            "killed_leftovers": ended.strays,
            "output_held_open": ended.held_open,
            "containment": ended.containment.state,
        });
        let planted: Vec<String> = ended.planted.iter().map(ToString::to_string).collect();
        if !planted.is_empty() {
            summary["set_aside"] = json!(planted);
        }
        let mut content = vec![ContentBlock::Structured { value: summary }];
        for (stream, bytes) in [
            (Stream::Stdout, ended.stdout),
            (Stream::Stderr, ended.stderr),
        ] {
            if !bytes.is_empty() {
                content.push(stream_block(stream, bytes));
            }
        }
        if let Some(stream) = flooded {
            content.push(ContentBlock::Text {
                text: format!(
                    "[{} went past {} bytes: the program was killed, and the rest was not read]",
                    stream.as_str(),
                    self.max_output
                ),
                rest: super::fs::members(json!({ "_meta": { "stream": "marker" } })),
            });
        }
        Output {
            content,
            is_error: flooded.is_some() || !planted.is_empty() || !ended.status.success(),
            ..Output::default()
        }
    }
}

fn stream_block(stream: Stream, bytes: Vec<u8>) -> ContentBlock {
    let mut block = block_of(bytes, || format!("lodestar:{}", stream.as_str()));
    if let ContentBlock::Text { rest, .. } | ContentBlock::Resource { rest, .. } = &mut block {
        rest.insert("_meta".to_owned(), json!({ "stream": stream.as_str() }));
    }
    block
}

/// The words of a command, each one that the system can pass on as it is.
fn words(value: Option<&Value>) -> Result<Vec<String>, ToolError> {
    let values = match value {
        None => return Ok(Vec::new()),
        Some(Value::Array(values)) => values,
        Some(_) => return Err(ToolError::invalid("`args` must be a list of strings")),
    };
    if values.len() > MAX_WORDS {
        return Err(ToolError::invalid(format!(
            "`args` has {} words; {MAX_WORDS} are the most",
            values.len()
        )));
    }
    let mut total = 0;
    let mut words = Vec::with_capacity(values.len());
    for (at, value) in values.iter().enumerate() {
        let Value::String(word) = value else {
            return Err(ToolError::invalid(format!("`args[{at}]` must be a string")));
        };
        let problem = if word.is_empty() {
            "is empty; leave it out"
        } else if word.contains('\0') {
            "has a NUL byte in it, which no program can be given"
        } else if word.len() > MAX_WORD_BYTES {
            "is longer than 131071 bytes, which no program can be given"
        } else {
            total += word.len() + 1;
            words.push(word.clone());
            continue;
        };
        return Err(ToolError::invalid(format!("`args[{at}]` {problem}")));
    }
    if total > MAX_WORDS_BYTES {
        return Err(ToolError::invalid(format!(
            "`args` has {total} bytes in all; {MAX_WORDS_BYTES} are the most"
        )));
    }
    Ok(words)
}

fn definition(shell: &Shell, scope: Scope) -> Definition {
    let programs: Vec<&str> = shell.programs.keys().map(String::as_str).collect();
    Definition {
        name: ToolName::new("shell.run").expect("a literal name is valid"),
        server: ServerIdentity::new(NATIVE_SERVER).expect("a literal name is valid"),
        description: format!(
            "Runs one of these programs with the given words, without a shell: {}. At most {} ms \
             and {} bytes per stream of output; whatever it started ends with it.",
            programs.join(", "),
            shell.timeout.as_millis(),
            shell.max_output
        ),
        input_schema: json!({
            "type": "object",
            "properties": {
                "program": { "type": "string", "enum": programs },
                "args": {
                    "type": "array",
                    "items": { "type": "string", "minLength": 1 },
                    "maxItems": MAX_WORDS,
                    "description": "The words after the program's name, each passed on as it is.",
                },
                "cwd": {
                    "type": "string",
                    "minLength": 1,
                    "description": "Where it runs, relative to the root of the project.",
                },
                "timeout_ms": { "type": "integer", "minimum": 1 },
            },
            "required": ["program"],
            "additionalProperties": false,
        }),
        roles: BTreeMap::from([
            ("program".to_owned(), ArgumentRole::Argv),
            ("args".to_owned(), ArgumentRole::Argv),
            ("cwd".to_owned(), ArgumentRole::Path),
            ("timeout_ms".to_owned(), ArgumentRole::Other),
        ]),
        declared: None,
        minimum: Contract {
            required_level: Rung::L3,
            blast_radius: BlastRadius::Project,
            reversibility: Reversibility::Compensable,
            scope,
            data_sensitivity: DataSensitivity::Private,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::ControlledShell,
            permissions: BTreeSet::from([
                Permission::ReadFiles,
                Permission::WriteFiles,
                Permission::RunPrograms,
            ]),
        },
    }
}
