//! `lodestar demo-server`: the two MCP servers of the demonstration, over standard streams.
//!
//! They are ordinary servers that know nothing of Lodestar: what they are asked to do, they do.

mod dev;
mod files;

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lodestar_mcp::wire::{self, Message};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::dev::Dev;
use self::files::Files;
use crate::failure::{Exit, Failure};

/// Longest message: nothing in the demonstration comes near it.
const LONGEST: u64 = 1 << 20;
const METHOD_NOT_FOUND: i64 = -32601;

#[derive(Debug, Args)]
pub(crate) struct DemoServerArgs {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Files: read, write and list them
    Files {
        /// The folder that is served
        #[arg(long, value_name = "DIR")]
        root: PathBuf,
    },
    /// Developers' tools: test, commit and push
    Dev {
        /// The folder that is worked on
        #[arg(long, value_name = "DIR")]
        root: PathBuf,
        /// The folder that stands for a repository elsewhere, and where every commit and push is recorded
        #[arg(long, value_name = "DIR")]
        remote: PathBuf,
    },
}

/// What a server offers.
trait Serves {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its tools, as MCP lists them.
    fn tools(&self) -> Value;
    /// Runs one: what it says, or what went wrong. None where there is no such tool.
    fn call(&self, tool: &str, arguments: &Value) -> Option<Result<String, String>>;
}

pub(crate) fn run(args: DemoServerArgs) -> Result<Exit, Failure> {
    let server: Box<dyn Serves> = match args.which {
        Which::Files { root } => Box::new(Files::new(root)),
        Which::Dev { root, remote } => Box::new(Dev::new(root, remote)),
    };
    serve(server.as_ref())?;
    Ok(Exit::Done)
}

fn serve(server: &dyn Serves) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut input).take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Ok(Message::Request { id, method, params }) = Message::read(&line) {
            let mut message = Vec::new();
            match answer(server, &method, params) {
                Ok(result) => wire::answer(&mut message, id.text(), &result.to_string()),
                Err(why) => {
                    wire::failure(&mut message, Some(id.text()), METHOD_NOT_FOUND, &why);
                }
            }
            message.push(b'\n');
            output.write_all(&message)?;
            output.flush()?;
        }
    }
}

fn answer(server: &dyn Serves, method: &str, params: Option<&RawValue>) -> Result<Value, String> {
    let params: Value = params.map_or(Value::Null, |params| {
        serde_json::from_str(params.get()).unwrap_or_default()
    });
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": server.name(), "version": env!("CARGO_PKG_VERSION")},
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": server.tools()})),
        "tools/call" => {
            let tool = params["name"].as_str().unwrap_or_default();
            let done = server.call(tool, &params["arguments"]);
            let (text, is_error) = match done.ok_or_else(|| format!("there is no tool `{tool}`"))? {
                Ok(text) => (text, false),
                Err(text) => (text, true),
            };
            Ok(json!({"content": [{"type": "text", "text": text}], "isError": is_error}))
        }
        other => Err(format!("`{other}` is not offered here")),
    }
}

/// How many pushes ran, by the server's own record.
pub(crate) fn pushes(remote: &Path) -> io::Result<usize> {
    match std::fs::read_to_string(remote.join(dev::PUSHES)) {
        Ok(lines) => Ok(lines.lines().count()),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(problem) => Err(problem),
    }
}

/// A tool, as MCP lists it: all its arguments are texts, and all are needed.
fn tool(name: &str, description: &str, arguments: &[(&str, &str)]) -> Value {
    let properties: serde_json::Map<String, Value> = arguments
        .iter()
        .map(|(name, what)| {
            (
                (*name).to_owned(),
                json!({"type": "string", "description": what}),
            )
        })
        .collect();
    let required: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
    })
}

/// The text of an argument.
fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, String> {
    arguments[name]
        .as_str()
        .ok_or_else(|| format!("`{name}` is missing or no text"))
}
