//! The Cedar schema that policies are validated against, generated from the reviewed tools.
//!
//! One action per tool and question, so that the arguments of each tool are typed and a misspelt one
//! is found when the policy is loaded. The same tools always give the same text.

mod argument;

pub(crate) use argument::{ArgumentType, Arguments, RecordType};

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use cedar_policy::{EntityId, EntityTypeName, EntityUid};
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::name::{Excerpt, ToolName};
use thiserror::Error;

use crate::facts::ToolShape;

/// Why no schema can be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// Two tools have one name.
    #[error("two tools are called `{tool}`; policies could not tell them apart, rename one")]
    DuplicateTool {
        /// The name, inert.
        tool: Excerpt,
    },
    /// Cedar does not take the generated text.
    #[error("no schema can be made of the reviewed tools: {problem}")]
    Refused {
        /// What Cedar says, inert.
        problem: String,
    },
}

/// What policies may ask about.
#[derive(Debug, Clone)]
pub struct CedarSchema {
    text: String,
    digest: Digest,
    parsed: cedar_policy::Schema,
    arguments: BTreeMap<ToolName, Arguments>,
}

impl CedarSchema {
    /// Generates the schema of these tools, in whatever order they come.
    pub fn generate(tools: &[ToolShape]) -> Result<Self, SchemaError> {
        let mut arguments = BTreeMap::new();
        for tool in tools {
            let of_tool = Arguments::of(&tool.input_schema);
            if arguments.insert(tool.name.clone(), of_tool).is_some() {
                return Err(SchemaError::DuplicateTool {
                    tool: tool.name.shown(),
                });
            }
        }
        let text = write_schema(&arguments);
        let (parsed, _) = cedar_policy::Schema::from_cedarschema_str(&text).map_err(|error| {
            SchemaError::Refused {
                problem: crate::text::inert(&error.to_string()),
            }
        })?;
        Ok(Self {
            digest: sha256(text.as_bytes()),
            text,
            parsed,
            arguments,
        })
    }

    /// The schema in Cedar's own syntax.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn parsed(&self) -> &cedar_policy::Schema {
        &self.parsed
    }

    pub(crate) fn arguments(&self, tool: &ToolName) -> Option<&Arguments> {
        self.arguments.get(tool)
    }
}

/// One of the two questions that policies are asked about every action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    /// May it run unasked?
    Run,
    /// May one ask for it?
    Ask,
}

impl Question {
    pub(crate) const BOTH: [Self; 2] = [Self::Run, Self::Ask];

    /// The name of the action group.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Ask => "ask",
        }
    }

    /// The name of the action that asks it about one tool.
    pub(crate) fn action(self, tool: &ToolName) -> String {
        format!("{}:{}", self.as_str(), tool.as_str())
    }
}

/// The types of entities there are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Action,
    Agent,
    Tool,
    Group,
    Server,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Action,
        Self::Agent,
        Self::Tool,
        Self::Group,
        Self::Server,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Action => "Action",
            Self::Agent => "Agent",
            Self::Tool => "Tool",
            Self::Group => "Group",
            Self::Server => "Server",
        }
    }

    pub(crate) fn type_name(self) -> EntityTypeName {
        // Reading a type name takes a parser's time, and every judgement needs some.
        static NAMES: LazyLock<[EntityTypeName; 5]> = LazyLock::new(|| {
            Kind::ALL.map(|kind| {
                let name = kind.as_str().parse();
                name.expect("the kinds of entities are identifiers")
            })
        });
        NAMES[self as usize].clone()
    }

    pub(crate) fn named(self, id: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.type_name(), EntityId::new(id))
    }
}

const HEAD: &str = "\
entity Agent { device_trust: String, execution: String };
entity Group;
entity Server;
entity Tool in [Group, Server] { server: String, name: String };

// A value that has no Cedar type, or not the declared one: policies see only its JSON type.
type Opaque = { opaque: String };
type Place = { level: String, identifier: String };
type Beliefs = {
  count: Long,
  truth: Set<String>,
  retrieval: Set<String>,
  security: Set<String>,
  freshness: Set<String>
};

action \"run\", \"ask\";
";

fn write_schema(tools: &BTreeMap<ToolName, Arguments>) -> String {
    let mut text = HEAD.to_owned();
    for (at, (tool, arguments)) in tools.iter().enumerate() {
        let _ = write!(text, "\ntype Call{at} = ");
        write_context(&mut text, arguments);
        text.push_str(";\n");
        for question in Question::BOTH {
            let action = quoted(&question.action(tool));
            let _ = writeln!(
                text,
                "action {action} in [\"{}\"] appliesTo {{ principal: Agent, resource: Tool, context: Call{at} }};",
                question.as_str()
            );
        }
    }
    text
}

fn write_context(text: &mut String, arguments: &Arguments) {
    text.push_str(
        "{
  level: Long,
  blast_radius: String,
  reversibility: String,
  sensitivity: String,
  scope: Place,
  paths: Set<String>,
  untrusted_args: Set<String>,
  undeclared_args: Set<String>,
  mistyped_args: Set<String>,
  beliefs: Beliefs,
  provenance: {",
    );
    let record = arguments.declared();
    let names = record.into_iter().flat_map(|r| r.attributes.keys());
    for (at, name) in names.enumerate() {
        let separator = if at > 0 { ", " } else { " " };
        let _ = write!(text, "{separator}{}?: String", quoted(name));
    }
    text.push_str(" },\n  args: ");
    match record {
        Some(record) => write_record(text, record),
        None => text.push_str("Opaque"),
    }
    text.push_str("\n}");
}

fn write_record(text: &mut String, record: &RecordType) {
    text.push('{');
    for (at, (name, attribute)) in record.attributes.iter().enumerate() {
        let separator = if at > 0 { ", " } else { " " };
        let mark = if attribute.is_certain() { "" } else { "?" };
        let _ = write!(text, "{separator}{}{mark}: ", quoted(name));
        write_type(text, &attribute.of);
    }
    text.push_str(" }");
}

fn write_type(text: &mut String, of: &ArgumentType) {
    match of {
        ArgumentType::Text => text.push_str("String"),
        ArgumentType::Long => text.push_str("Long"),
        ArgumentType::Bool => text.push_str("Bool"),
        ArgumentType::Decimal => text.push_str("decimal"),
        ArgumentType::Opaque => text.push_str("Opaque"),
        ArgumentType::Record(record) => write_record(text, record),
        ArgumentType::Set(of) => {
            text.push_str("Set<");
            write_type(text, of);
            text.push('>');
        }
    }
}

/// A string literal of Cedar; the escapes are those of Rust.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}
