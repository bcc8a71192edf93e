//! Argument values as Cedar expressions.
//!
//! They are built type by type, never through Cedar's own JSON, in which an object such as
//! `{"__entity": …}` would become something else than the object it is.

use cedar_policy::RestrictedExpression;
use lodestar_core::name::Excerpt;
use serde_json::{Number, Value};

use crate::schema::{ArgumentType, RecordType};

/// The name of the one member of the marker that stands for what Cedar cannot see.
pub(crate) const OPAQUE: &str = "opaque";

/// Cedar's decimals have four places.
const DECIMAL_PLACES: usize = 4;

/// Why a value is not of its declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Another JSON type.
    Type {
        expected: &'static str,
        found: &'static str,
    },
    /// An integer beyond 64 bits, or a number with more than four decimals or beyond the range.
    Number,
    /// A member is missing.
    Missing(String),
    /// A member that the schema refuses.
    Undeclared(String),
}

impl Misfit {
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Type { expected, found } => format!("{expected} was declared, this is {found}"),
            Self::Number => "the number has no exact form in Cedar".to_owned(),
            Self::Missing(name) => format!("the member `{}` is missing", Excerpt::of(name)),
            Self::Undeclared(name) => format!("the member `{}` is not declared", Excerpt::of(name)),
        }
    }
}

/// The name of a value's JSON type.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn declared_name(of: &ArgumentType) -> &'static str {
    match of {
        ArgumentType::Text => "a string",
        ArgumentType::Long => "an integer",
        ArgumentType::Bool => "a boolean",
        ArgumentType::Decimal => "a number",
        ArgumentType::Set(_) => "an array",
        ArgumentType::Record(_) => "an object",
        ArgumentType::Opaque => "anything",
    }
}

/// Whether a value is of its declared type. Names of undeclared members go to `undeclared`.
///
/// Goes no deeper than the type does, which has a bound.
pub(crate) fn conforms(
    of: &ArgumentType,
    value: &Value,
    path: &str,
    undeclared: &mut Vec<String>,
) -> Result<(), Misfit> {
    match (of, value) {
        (ArgumentType::Opaque, _)
        | (ArgumentType::Text, Value::String(_))
        | (ArgumentType::Bool, Value::Bool(_)) => Ok(()),
        (ArgumentType::Long, Value::Number(number)) => match number.as_i64() {
            Some(_) => Ok(()),
            None => Err(Misfit::Number),
        },
        (ArgumentType::Decimal, Value::Number(number)) => match decimal(number) {
            Some(_) => Ok(()),
            None => Err(Misfit::Number),
        },
        (ArgumentType::Set(of), Value::Array(items)) => items
            .iter()
            .try_for_each(|item| conforms(of, item, path, undeclared)),
        (ArgumentType::Record(record), Value::Object(members)) => {
            for (name, attribute) in &record.attributes {
                match members.get(name) {
                    None if attribute.required => return Err(Misfit::Missing(name.clone())),
                    None => {}
                    Some(Value::Null) if attribute.nullable => {}
                    Some(value) => {
                        conforms(&attribute.of, value, &format!("{path}/{name}"), undeclared)?;
                    }
                }
            }
            for name in members.keys() {
                if !record.attributes.contains_key(name) {
                    if record.closed {
                        return Err(Misfit::Undeclared(name.clone()));
                    }
                    undeclared.push(format!("{path}/{name}"));
                }
            }
            Ok(())
        }
        _ => Err(Misfit::Type {
            expected: declared_name(of),
            found: json_type(value),
        }),
    }
}

/// The expression of a value that [`conforms`]; the marker wherever it does not.
pub(crate) fn express(of: &ArgumentType, value: &Value) -> RestrictedExpression {
    match (of, value) {
        (ArgumentType::Text, Value::String(text)) => RestrictedExpression::new_string(text.clone()),
        (ArgumentType::Bool, Value::Bool(truth)) => RestrictedExpression::new_bool(*truth),
        (ArgumentType::Long, Value::Number(number)) => match number.as_i64() {
            Some(long) => RestrictedExpression::new_long(long),
            None => marker(value),
        },
        (ArgumentType::Decimal, Value::Number(number)) => match decimal(number) {
            Some(text) => RestrictedExpression::new_decimal(text),
            None => marker(value),
        },
        (ArgumentType::Set(of), Value::Array(items)) => {
            RestrictedExpression::new_set(items.iter().map(|item| express(of, item)))
        }
        (ArgumentType::Record(of), Value::Object(_)) => express_record(of, value),
        _ => marker(value),
    }
}

fn express_record(of: &RecordType, value: &Value) -> RestrictedExpression {
    let members = of
        .attributes
        .iter()
        .filter_map(|(name, attribute)| match value.get(name)? {
            Value::Null if attribute.nullable => None,
            value => Some((name.clone(), express(&attribute.of, value))),
        });
    record(members)
}

/// What stands for a value that policies cannot look into.
pub(crate) fn marker(value: &Value) -> RestrictedExpression {
    record([(
        OPAQUE.to_owned(),
        RestrictedExpression::new_string(json_type(value).to_owned()),
    )])
}

pub(crate) fn record(
    members: impl IntoIterator<Item = (String, RestrictedExpression)>,
) -> RestrictedExpression {
    RestrictedExpression::new_record(members).expect("no member has the name of another")
}

pub(crate) fn text_set<'a>(texts: impl IntoIterator<Item = &'a str>) -> RestrictedExpression {
    let texts = texts.into_iter();
    RestrictedExpression::new_set(texts.map(|t| RestrictedExpression::new_string(t.to_owned())))
}

/// The number as Cedar writes it, if it has at most four decimals and is in range.
fn decimal(number: &Number) -> Option<String> {
    // Rust writes the shortest text that reads back as the same double, without exponent.
    let text = match number.as_i64() {
        Some(integer) => integer.to_string(),
        None if number.is_f64() => number.as_f64()?.to_string(),
        None => return None,
    };
    let (whole, places) = text.split_once('.').unwrap_or((&text, "0"));
    if places.len() > DECIMAL_PLACES {
        return None;
    }
    let scaled: i128 = format!("{whole}{places:0<DECIMAL_PLACES$}").parse().ok()?;
    i64::try_from(scaled).ok()?;
    Some(format!("{whole}.{places}"))
}
