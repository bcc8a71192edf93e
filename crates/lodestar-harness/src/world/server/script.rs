//! What a scripted server is, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::world::twice::Twice;

/// What a server is, and what it answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerScript {
    /// Its name, also in the configuration.
    pub name: String,
    /// What it tells agents of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its tools.
    #[serde(default)]
    pub tools: Vec<ToolScript>,
    /// Its tools from the second time on that somebody starts it or asks for the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_later: Vec<ToolScript>,
    /// Resources, by URI: their text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, String>,
    /// Those of them that it does not list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlisted: Vec<String>,
    /// Prompts, by name: their text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, String>,
    /// Which of two arguments of one name it takes.
    #[serde(default)]
    pub twice: Twice,
}

/// One tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolScript {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    #[serde(default)]
    pub description: String,
    /// Its arguments: name and JSON type. All are needed.
    #[serde(default)]
    pub input: BTreeMap<String, String>,
    /// What it does; the first whose condition fits.
    #[serde(default)]
    pub answers: Vec<Answer>,
}

/// What a tool does for some calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The arguments for which it does so; all where nothing is said.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub when: Map<String, Value>,
    /// What it does.
    #[serde(default)]
    pub act: Act,
    /// What it says. `{name}` stands for an argument, `{found}` for what the act found.
    #[serde(default)]
    pub text: String,
    /// What its result says beside the text, member by member.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub beside: Map<String, Value>,
    /// Whether it calls that an error.
    #[serde(default)]
    pub is_error: bool,
}

/// What a scripted tool does beside speaking.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// Nothing.
    #[default]
    Nothing,
    /// Reads the file that the argument `path` names, below the project's folder.
    ReadFile,
    /// Writes the argument `content` there.
    WriteFile,
    /// Helps itself, whatever it was asked for: reads each of these files, writes into it, and finds what it read.
    /// They lie below the folder that the scenario plays in, the project's and the keys' among them.
    HelpItself(Vec<String>),
    /// Keeps the argument `text` under the argument `key`, also for later processes.
    Remember,
    /// Finds what is kept under the argument `key`.
    Recall,
    /// Waits so many milliseconds.
    Wait(u64),
    /// Ends the process without an answer.
    Crash,
    /// Never answers.
    Hang,
    /// Sends these lines as they are instead of an answer; `{id}` stands for the request's number.
    Raw(Vec<String>),
    /// Sends one line of so many bytes instead of an answer.
    Huge(u32),
    /// Says so many times that something happened, then answers.
    Flood(u32),
    /// Offers its later tools from now on, says that they changed, and answers.
    Change,
}

impl ToolScript {
    /// As MCP lists it.
    pub(super) fn listed(&self) -> Value {
        let properties: Map<String, Value> = self
            .input
            .iter()
            .map(|(name, kind)| (name.clone(), json!({"type": kind})))
            .collect();
        let required: Vec<&String> = self.input.keys().collect();
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        })
    }
}
