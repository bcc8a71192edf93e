//! The types that arguments have for policies, read out of a tool's JSON Schema.
//!
//! A schema comes from a server that nobody has to trust: it may be cyclic, deep or huge. Whatever
//! has no Cedar type, or goes beyond a bound, is opaque; policies then see only which JSON type the
//! value has.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// How deep records and sets may lie in each other: real tools stay below five.
const MAX_DEPTH: usize = 8;

/// How many types one tool's schema may come to once references are resolved.
const MAX_TYPES: usize = 2_000;

/// How many arguments one tool may declare.
const MAX_ARGUMENTS: usize = 256;

/// Longest name of an argument or member, in bytes.
const MAX_ATTRIBUTE_LEN: usize = 256;

/// How many references may be followed one after the other before something else comes.
const MAX_REFERENCES: usize = 16;

/// What policies may expect of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgumentType {
    /// A string.
    Text,
    /// An integer of 64 bits.
    Long,
    /// `true` or `false`.
    Bool,
    /// A number with at most four decimals.
    Decimal,
    /// An array whose elements have one type.
    Set(Box<ArgumentType>),
    /// An object with named members.
    Record(RecordType),
    /// Anything: policies see the marker.
    Opaque,
}

/// An object's members.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RecordType {
    /// By name.
    pub(crate) attributes: BTreeMap<String, Attribute>,
    /// Whether other members than these are refused.
    pub(crate) closed: bool,
}

/// A member of a record, or an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attribute {
    /// What it is.
    pub(crate) of: ArgumentType,
    /// Whether it has to be there.
    pub(crate) required: bool,
    /// Whether `null` stands for its absence.
    pub(crate) nullable: bool,
}

impl Attribute {
    /// Whether policies may rely on it.
    pub(crate) fn is_certain(&self) -> bool {
        self.required && !self.nullable
    }
}

/// What policies may expect of a tool's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// They are declared by name.
    Declared(RecordType),
    /// The schema says nothing usable: policies see the marker.
    Opaque,
}

impl Arguments {
    /// Reads a tool's JSON Schema.
    pub(crate) fn of(schema: &Value) -> Self {
        let mut reader = Reader {
            root: schema,
            types: 0,
        };
        match reader.read(schema, 0) {
            Some(Read {
                of: ArgumentType::Record(record),
                nullable: false,
            }) if record.attributes.len() <= MAX_ARGUMENTS => Self::Declared(record),
            // An object of which nothing is said has no declared argument, but is one.
            Some(_) if says_only_object(schema) => Self::Declared(RecordType {
                closed: schema.as_object().is_some_and(forbids_others),
                ..RecordType::default()
            }),
            _ => Self::Opaque,
        }
    }

    /// The declared arguments; none where they are opaque.
    pub(crate) fn declared(&self) -> Option<&RecordType> {
        match self {
            Self::Declared(record) => Some(record),
            Self::Opaque => None,
        }
    }
}

fn says_only_object(schema: &Value) -> bool {
    match schema {
        Value::Bool(open) => *open,
        Value::Object(members) => {
            let of_object = members.get("type").is_none_or(|t| t == "object");
            of_object && !members.keys().any(|key| COMBINING.contains(&key.as_str()))
        }
        _ => false,
    }
}

/// Keywords by which a schema says more than that it is of objects.
const COMBINING: [&str; 8] = [
    "properties",
    "$ref",
    "$dynamicRef",
    "anyOf",
    "oneOf",
    "allOf",
    "enum",
    "const",
];

/// A type, and whether `null` is taken beside it.
struct Read {
    of: ArgumentType,
    nullable: bool,
}

impl Read {
    fn plain(of: ArgumentType) -> Option<Self> {
        Some(Self {
            of,
            nullable: false,
        })
    }

    fn opaque() -> Option<Self> {
        Self::plain(ArgumentType::Opaque)
    }
}

struct Reader<'a> {
    root: &'a Value,
    types: usize,
}

impl<'a> Reader<'a> {
    /// `None` once the schema comes to more types than are taken.
    fn read(&mut self, schema: &'a Value, depth: usize) -> Option<Read> {
        self.types += 1;
        if self.types > MAX_TYPES {
            return None;
        }
        let Some(members) = self.resolve(schema) else {
            return Read::opaque();
        };
        if depth > MAX_DEPTH {
            return Read::opaque();
        }
        match members.get("type") {
            Some(Value::String(name)) => self.named(name, members, depth),
            Some(Value::Array(names)) => match nullable(names, |name| name == "null") {
                Some((Value::String(name), nullable)) => {
                    let read = self.named(name, members, depth)?;
                    Some(Read { nullable, ..read })
                }
                _ => Read::opaque(),
            },
            Some(_) => Read::opaque(),
            None => self.untyped(members, depth),
        }
    }

    /// The schema that a chain of local references ends at.
    fn resolve(&self, mut schema: &'a Value) -> Option<&'a Map<String, Value>> {
        for _ in 0..MAX_REFERENCES {
            let members = schema.as_object()?;
            let Some(reference) = members.get("$ref") else {
                return Some(members);
            };
            let pointer = reference.as_str()?.strip_prefix('#')?;
            schema = self.root.pointer(pointer)?;
        }
        None
    }

    fn named(&mut self, name: &str, members: &'a Map<String, Value>, depth: usize) -> Option<Read> {
        Read::plain(match name {
            "string" => ArgumentType::Text,
            "integer" => ArgumentType::Long,
            "boolean" => ArgumentType::Bool,
            "number" => ArgumentType::Decimal,
            "array" => return self.array(members, depth),
            "object" => return self.object(members, depth),
            _ => ArgumentType::Opaque,
        })
    }

    fn untyped(&mut self, members: &'a Map<String, Value>, depth: usize) -> Option<Read> {
        if members.contains_key("properties") {
            return self.object(members, depth);
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            let all_text = !values.is_empty() && values.iter().all(Value::is_string);
            return Read::plain(if all_text {
                ArgumentType::Text
            } else {
                ArgumentType::Opaque
            });
        }
        if let Some(Value::String(_)) = members.get("const") {
            return Read::plain(ArgumentType::Text);
        }
        let choice = members.get("anyOf").or_else(|| members.get("oneOf"));
        if let Some(Value::Array(choices)) = choice
            && let Some((schema, null)) = nullable(choices, |choice| {
                choice.get("type").is_some_and(|name| name == "null")
            })
        {
            let read = self.read(schema, depth + 1)?;
            return Some(Read {
                nullable: null || read.nullable,
                ..read
            });
        }
        Read::opaque()
    }

    fn array(&mut self, members: &'a Map<String, Value>, depth: usize) -> Option<Read> {
        let of = match members.get("items") {
            Some(items) if !members.contains_key("prefixItems") => {
                match self.read(items, depth + 1)? {
                    Read {
                        nullable: false,
                        of,
                    } => ArgumentType::Set(Box::new(of)),
                    // Cedar has nothing that could stand for `null` among others.
                    Read { nullable: true, .. } => ArgumentType::Opaque,
                }
            }
            _ => ArgumentType::Opaque,
        };
        Read::plain(of)
    }

    fn object(&mut self, members: &'a Map<String, Value>, depth: usize) -> Option<Read> {
        let Some(Value::Object(properties)) = members.get("properties") else {
            return Read::opaque();
        };
        let required: BTreeSet<&str> = members
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut attributes = BTreeMap::new();
        for (name, schema) in properties {
            if name.len() > MAX_ATTRIBUTE_LEN {
                return Read::opaque();
            }
            let Read { of, nullable } = self.read(schema, depth + 1)?;
            let required = required.contains(name.as_str());
            let attribute = Attribute {
                of,
                required,
                nullable,
            };
            attributes.insert(name.clone(), attribute);
        }
        let closed = forbids_others(members);
        Read::plain(ArgumentType::Record(RecordType { attributes, closed }))
    }
}

fn forbids_others(members: &Map<String, Value>) -> bool {
    members.get("additionalProperties") == Some(&Value::Bool(false))
        && !members.contains_key("patternProperties")
}

/// The one choice beside `null`, and whether `null` is among the choices.
fn nullable(choices: &[Value], is_null: impl Fn(&Value) -> bool) -> Option<(&Value, bool)> {
    match choices {
        [one] if !is_null(one) => Some((one, false)),
        [null, one] | [one, null] if is_null(null) && !is_null(one) => Some((one, true)),
        _ => None,
    }
}
