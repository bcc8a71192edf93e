//! A model that follows a script: a server on loopback that answers each request with the next step, in the words
//! of whichever vendor is asked for.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What the model does when it is its turn.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Uses a tool with arguments.
    Use(&'static str, Value),
    /// Uses a tool that takes a text.
    UseWithText(&'static str, String),
    /// Says something, and is done.
    Say(&'static str),
}

/// Where the server is, and what it was asked.
pub(super) struct Model {
    pub(super) url: String,
    turns: Arc<Mutex<Turns>>,
}

struct Turns {
    steps: Vec<Step>,
    next: usize,
    asked: Vec<Value>,
}

impl Model {
    pub(super) fn following(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let turns = Arc::new(Mutex::new(Turns {
            steps,
            next: 0,
            asked: Vec::new(),
        }));
        let shared = Arc::clone(&turns);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let turns = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &turns));
            }
        });
        Self {
            url: format!("http://127.0.0.1:{port}"),
            turns,
        }
    }

    /// What it was asked in its turns, each with the whole conversation.
    pub(super) fn asked(&self) -> Vec<Value> {
        self.turns.lock().expect("not poisoned").asked.clone()
    }
}

fn serve(stream: TcpStream, turns: &Mutex<Turns>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut len = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            len = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (kind, text) = answer(&path, &body, turns);
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
    .ok()
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

fn answer(path: &str, body: &Value, turns: &Mutex<Turns>) -> (&'static str, String) {
    if path.to_ascii_lowercase().contains("count") {
        let counted = json!({"input_tokens": 1, "totalTokens": 1});
        return (JSON, counted.to_string());
    }
    // Requests without tools are the client's own: titles, summaries, which model to take.
    let step = |turns: &Mutex<Turns>| match body["tools"].as_array() {
        Some(tools) if !tools.is_empty() => {
            let mut turns = turns.lock().expect("not poisoned");
            turns.asked.push(body.clone());
            turns.next += 1;
            let at = turns.next;
            (at, turns.steps.get(at - 1).cloned())
        }
        _ => (0, None),
    };
    if path.contains("/v1/messages") {
        let (at, step) = step(turns);
        (EVENTS, anthropic(at, &step.unwrap_or(Step::Say("done"))))
    } else if path.contains("enerateContent") {
        let (_, step) = step(turns);
        let answer = gemini(&step.unwrap_or(Step::Say("{}")));
        match path.contains("stream") {
            true => (EVENTS, format!("data: {answer}\n\n")),
            false => (JSON, answer.to_string()),
        }
    } else if path.ends_with("/responses") {
        let (at, step) = step(turns);
        (EVENTS, openai(at, &step.unwrap_or(Step::Say("done"))))
    } else {
        (JSON, "{}".to_owned())
    }
}

fn events(events: &[Value]) -> String {
    let one = |event: &Value| {
        let name = event["type"].as_str().expect("every event has one");
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(one).collect()
}

fn anthropic(at: usize, step: &Step) -> String {
    let (block, delta, stop) = match step {
        Step::Use(name, input) => (
            json!({"type": "tool_use", "id": format!("toolu_{at:04}"), "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
        Step::UseWithText(..) => panic!("tools of this model take arguments"),
        Step::Say(text) => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
    };
    events(&[
        json!({"type": "message_start", "message": {
            "id": format!("msg_{at}"), "type": "message", "role": "assistant", "model": "scripted",
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "usage": {"output_tokens": 1},
            "delta": {"stop_reason": stop, "stop_sequence": null}}),
        json!({"type": "message_stop"}),
    ])
}

fn gemini(step: &Step) -> Value {
    let part = match step {
        Step::Use(name, args) => json!({"functionCall": {"name": name, "args": args}}),
        Step::UseWithText(..) => panic!("tools of this model take arguments"),
        Step::Say(text) => json!({"text": text}),
    };
    json!({
        "candidates": [{"index": 0, "finishReason": "STOP",
            "content": {"role": "model", "parts": [part]}}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    })
}

fn openai(at: usize, step: &Step) -> String {
    let item = match step {
        Step::Use(name, args) => json!({"type": "function_call", "id": format!("fc_{at}"),
            "call_id": format!("call_{at}"), "name": name, "arguments": args.to_string(),
            "status": "completed"}),
        Step::UseWithText(name, text) => {
            json!({"type": "custom_tool_call", "id": format!("ct_{at}"),
            "call_id": format!("call_{at}"), "name": name, "input": text, "status": "completed"})
        }
        Step::Say(text) => {
            json!({"type": "message", "id": format!("msg_{at}"), "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
        }
    };
    let response = |status: &str, output: Value| {
        json!({"id": format!("resp_{at}"), "object": "response", "status": status, "output": output,
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}})
    };
    events(&[
        json!({"type": "response.created", "response": response("in_progress", json!([]))}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response("completed", json!([item]))}),
    ])
}
