//! Values on their way into a statement and out of a row.
//!
//! What comes out is parsed: a row that does not read as what it should be is an error, never a default.

use std::borrow::Cow;
use std::fmt;

use lodestar_core::device::{DeviceActor, DeviceEvent, DeviceLevel, StrikeKind};
use lodestar_core::digest::Digest;
use lodestar_core::execution::{Effect, ExecutionFact, ExecutionLevel, FactSet};
use lodestar_core::id::{
    AccountId, AttestationId, BattleId, ContenderId, DeviceId, EvaluationId, RunId, RunnerId,
    SubmissionId, TermsId, TokenId,
};
use lodestar_core::key::PublicKey;
use lodestar_core::name::SessionId;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;

use super::StoreError;
use super::tokens::TokenKind;

/// A value as both databases have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A number, a time in microseconds since 1970, or 0 and 1 for no and yes.
    Int(i64),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Blob(Cow<'a, [u8]>),
}

impl Value<'_> {
    fn what(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Int(_) => "a number",
            Self::Text(_) => "text",
            Self::Blob(_) => "bytes",
        }
    }
}

/// A row that came out of a database, read column by column in its order.
#[derive(Debug)]
pub struct Row {
    values: std::vec::IntoIter<Value<'static>>,
    read: usize,
}

impl Row {
    pub(super) fn new(values: Vec<Value<'static>>) -> Self {
        Self {
            values: values.into_iter(),
            read: 0,
        }
    }

    /// The next column.
    pub fn read<T: FromValue>(&mut self) -> Result<T, StoreError> {
        self.read += 1;
        let column = self.read;
        let unreadable = |problem| StoreError::Unreadable { column, problem };
        let value = self
            .values
            .next()
            .ok_or_else(|| unreadable("there is none".to_owned()))?;
        T::from_value(value).map_err(unreadable)
    }
}

/// What can be read out of a column. The error says what is wrong, and not what stands there.
pub trait FromValue: Sized {
    /// Parses a value.
    fn from_value(value: Value<'static>) -> Result<Self, String>;
}

fn wrong(expected: &str, found: &Value<'_>) -> String {
    format!("expected {expected}, found {}", found.what())
}

impl FromValue for i64 {
    fn from_value(value: Value<'static>) -> Result<Self, String> {
        match value {
            Value::Int(number) => Ok(number),
            other => Err(wrong("a number", &other)),
        }
    }
}

impl FromValue for u64 {
    fn from_value(value: Value<'static>) -> Result<Self, String> {
        Self::try_from(i64::from_value(value)?).map_err(|_| "the number is below 0".to_owned())
    }
}

impl FromValue for bool {
    fn from_value(value: Value<'static>) -> Result<Self, String> {
        match i64::from_value(value)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("expected 0 or 1".to_owned()),
        }
    }
}

impl FromValue for String {
    fn from_value(value: Value<'static>) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(text.into_owned()),
            other => Err(wrong("text", &other)),
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value<'static>) -> Result<Self, String> {
        match value {
            Value::Blob(bytes) => Ok(bytes.into_owned()),
            other => Err(wrong("bytes", &other)),
        }
    }
}

impl FromValue for Timestamp {
    fn from_value(value: Value<'static>) -> Result<Self, String> {
        Self::from_unix_micros(i64::from_value(value)?).map_err(|error| error.to_string())
    }
}

impl FromValue for FactSet {
    fn from_value(value: Value<'static>) -> Result<Self, String> {
        let bits = u64::from_value(value)?;
        let bits = u16::try_from(bits).map_err(|error| error.to_string())?;
        Self::from_bits(bits).map_err(|error| error.to_string())
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value<'static>) -> Result<Self, String> {
        match value {
            Value::Null => Ok(None),
            other => T::from_value(other).map(Some),
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(yes: bool) -> Self {
        Self::Int(yes.into())
    }
}

impl From<u64> for Value<'_> {
    /// Sizes of logs and of files. One that does not fit is beyond any disk, and a check in the database on top.
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(time: Timestamp) -> Self {
        Self::Int(time.unix_micros())
    }
}

impl From<FactSet> for Value<'_> {
    fn from(facts: FactSet) -> Self {
        Self::Int(facts.bits().into())
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

fn parsed<T: std::str::FromStr<Err: fmt::Display>>(value: Value<'static>) -> Result<T, String> {
    match value {
        Value::Text(text) => text.parse().map_err(|error: T::Err| error.to_string()),
        other => Err(wrong("text", &other)),
    }
}

/// Types that are kept in their one text form.
macro_rules! by_text {
    ($($name:ty),+ $(,)?) => {$(
        impl FromValue for $name {
            fn from_value(value: Value<'static>) -> Result<Self, String> {
                parsed(value)
            }
        }

        impl From<$name> for Value<'_> {
            fn from(value: $name) -> Self {
                Self::Text(Cow::Owned(value.to_string()))
            }
        }
    )+};
}

by_text! {
    AccountId, AttestationId, BattleId, ContenderId, DeviceId, EvaluationId, RunId, RunnerId,
    SubmissionId, TermsId, TokenId, Digest, PublicKey, Nonce, SessionId,
}

/// Words of closed vocabularies.
macro_rules! by_word {
    ($($name:ty),+ $(,)?) => {$(
        impl FromValue for $name {
            fn from_value(value: Value<'static>) -> Result<Self, String> {
                parsed(value)
            }
        }

        impl From<$name> for Value<'_> {
            fn from(value: $name) -> Self {
                Self::Text(Cow::Borrowed(value.as_str()))
            }
        }
    )+};
}

by_word! {
    DeviceLevel, DeviceEvent, DeviceActor, StrikeKind, ExecutionFact, ExecutionLevel, Effect, TokenKind,
}

/// Parameters of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::Value::from($value)),*] };
}

pub(super) use values;
