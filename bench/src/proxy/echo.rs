//! The server of the comparison: answers every call with a kilobyte of text, and does nothing else.

use std::io::{self, BufRead as _, Write as _};

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Called {
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    n: u64,
}

const HELLO: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"gives a text back","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]}"#;

/// Serves until its input ends.
pub(crate) fn serve() -> io::Result<()> {
    let filler = "All work and no play makes a very dull benchmark. ".repeat(21);
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Ok(asked) = serde_json::from_str::<Asked<'_>>(&line) else {
            continue;
        };
        let Some(id) = asked.id else { continue };
        let id = id.get();
        let answer = match asked.method {
            "initialize" => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{HELLO}}}\n"),
            "tools/list" => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{TOOLS}}}\n"),
            "tools/call" => {
                let params = asked.params.map_or("{}", RawValue::get);
                let n =
                    serde_json::from_str::<Called>(params).map_or(0, |called| called.arguments.n);
                let text = &filler[..1016];
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{n:08}{text}\"}}],\"isError\":false}}}}\n"
                )
            }
            _ => format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32601,\"message\":\"no\"}}}}\n"
            ),
        };
        output.write_all(answer.as_bytes())?;
        output.flush()?;
    }
}
