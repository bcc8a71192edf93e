//! The canary: a server of one's own, which notes whatever reaches it. What is not in its notes did not run.

use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::failure::{Exit, Failure};

/// Its name in the configuration that is tried.
pub(super) const NAME: &str = "lodestar-doctor";
/// A tool that may run unasked.
pub(super) const LOOK: &str = "look";
/// A tool that nobody graded.
pub(super) const ACT: &str = "act";

/// Speaks MCP over the standard streams until nobody is there.
pub(super) fn serve(notes: &Path) -> Result<Exit, Failure> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        let Some(result) = answer(&message, notes)? else {
            continue;
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(Exit::Done)
}

fn answer(message: &Value, notes: &Path) -> Result<Option<Value>, Failure> {
    if message["id"].is_null() {
        return Ok(None);
    }
    Ok(match message["method"].as_str().unwrap_or_default() {
        "initialize" => Some(json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": NAME, "version": env!("CARGO_PKG_VERSION")},
        })),
        "tools/list" => {
            let text = json!({"type": "string"});
            Some(json!({"tools": [
                {"name": LOOK, "description": "Looks at nothing.", "inputSchema": {"type": "object", "properties": {"path": text}}},
                {"name": ACT, "description": "Does nothing.", "inputSchema": {"type": "object", "properties": {"note": text}}},
            ]}))
        }
        "tools/call" => {
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(notes)
                .map_err(Failure::io(notes))?;
            writeln!(file, "{}", message["params"])?;
            Some(json!({"content": [{"type": "text", "text": "noted"}]}))
        }
        _ => Some(json!({})),
    })
}
