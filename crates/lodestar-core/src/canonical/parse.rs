//! The strict reader. Written by hand because the checks need the text of a number and the position
//! of every fault, and because a key is a duplicate only after its escapes are decoded.

use serde_json::map::{Entry, Map};
use serde_json::{Number, Value};

use super::number::FIRST_WITH_EXPONENT;
use super::string::clean_prefix;
use super::{CanonicalError, MAX_DEPTH, MAX_INTEGER, ParseProblem};

type Result<T> = std::result::Result<T, CanonicalError>;

pub(super) fn parse(bytes: &[u8]) -> Result<Value> {
    let text =
        str::from_utf8(bytes).map_err(|error| fault(error.valid_up_to(), ParseProblem::NotUtf8))?;
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    parser.skip_space();
    let value = parser.value()?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(parser.fault(ParseProblem::TrailingData));
    }
    Ok(value)
}

fn fault(offset: usize, problem: ParseProblem) -> CanonicalError {
    CanonicalError::Parse { offset, problem }
}

struct Parser<'t> {
    text: &'t str,
    /// INVARIANT: a character boundary of `text`, at most its length.
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn fault(&self, problem: ParseProblem) -> CanonicalError {
        fault(self.at, problem)
    }

    fn expected(&self, what: &'static str) -> CanonicalError {
        self.fault(if self.at == self.text.len() {
            ParseProblem::UnexpectedEnd
        } else {
            ParseProblem::Expected(what)
        })
    }

    fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.fault(ParseProblem::Expected("a value")));
        }
        self.at += word.len();
        Ok(value)
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value>) -> Result<Value> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(ParseProblem::TooDeep));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_space();
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// After the opening bracket.
    fn array(&mut self) -> Result<Value> {
        let mut elements = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(elements));
        }
        loop {
            elements.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(elements));
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `]`"));
            }
            self.skip_space();
        }
    }

    /// After the opening brace.
    fn object(&mut self) -> Result<Value> {
        let mut object = Map::new();
        if self.take(b'}') {
            return Ok(Value::Object(object));
        }
        loop {
            let key_at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in quotes"));
            }
            let entry = match object.entry(self.string()?) {
                Entry::Vacant(entry) => entry,
                Entry::Occupied(entry) => {
                    let key = entry.key().clone();
                    return Err(fault(key_at, ParseProblem::DuplicateKey(key)));
                }
            };
            self.skip_space();
            if !self.take(b':') {
                return Err(self.expected("`:`"));
            }
            self.skip_space();
            entry.insert(self.value()?);
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(object));
            }
            if !self.take(b',') {
                return Err(self.expected("`,` or `}`"));
            }
            self.skip_space();
        }
    }

    /// At the opening quote.
    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut decoded = String::new();
        loop {
            let clean = clean_prefix(self.rest());
            decoded.push_str(&self.text[self.at..self.at + clean]);
            self.at += clean;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => decoded.push(self.escape()?),
                Some(_) => return Err(self.fault(ParseProblem::ControlCharacter)),
                None => return Err(self.fault(ParseProblem::UnexpectedEnd)),
            }
        }
    }

    /// At the backslash.
    fn escape(&mut self) -> Result<char> {
        let short = match self.rest().get(1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            Some(_) => return Err(self.fault(ParseProblem::UnknownEscape)),
            None => return Err(fault(self.text.len(), ParseProblem::UnexpectedEnd)),
        };
        self.at += 2;
        Ok(short)
    }

    /// At the backslash of `\uXXXX`, which may be the first half of a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char> {
        let start = self.at;
        let first = self.code_unit()?;
        let is_high = (0xd800..0xdc00).contains(&first);
        let units = if is_high && self.rest().starts_with(b"\\u") {
            [first, self.code_unit()?]
        } else {
            // A zero unit is never half of a pair, so a lone high surrogate stays a fault.
            [first, 0]
        };
        char::decode_utf16(units)
            .next()
            .and_then(|decoded| decoded.ok())
            .ok_or(fault(start, ParseProblem::LoneSurrogate))
    }

    fn code_unit(&mut self) -> Result<u16> {
        let digits = self.rest().get(2..6).unwrap_or_default();
        let all_hex = digits.len() == 4 && digits.iter().all(u8::is_ascii_hexdigit);
        let unit = str::from_utf8(digits)
            .ok()
            .filter(|_| all_hex)
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .ok_or(self.fault(ParseProblem::UnknownEscape))?;
        self.at += 6;
        Ok(unit)
    }

    /// At the sign or the first digit.
    fn number(&mut self) -> Result<Number> {
        let start = self.at;
        self.take(b'-');
        let whole_start = self.at;
        self.digits(start)?;
        if self.at - whole_start > 1 && self.text.as_bytes()[whole_start] == b'0' {
            return Err(fault(start, ParseProblem::MalformedNumber));
        }
        let whole_end = self.at;
        if self.take(b'.') {
            self.digits(start)?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits(start)?;
        }
        let literal = &self.text[start..self.at];
        if self.at == whole_end {
            integer(literal)
        } else {
            double(literal)
        }
        .map_err(|problem| fault(start, problem))
    }

    fn digits(&mut self, number_start: usize) -> Result<()> {
        let count = self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count == 0 {
            return Err(fault(number_start, ParseProblem::MalformedNumber));
        }
        self.at += count;
        Ok(())
    }
}

fn integer(literal: &str) -> std::result::Result<Number, ParseProblem> {
    literal
        .parse::<i64>()
        .ok()
        .filter(|value| value.unsigned_abs() <= MAX_INTEGER)
        .map(Number::from)
        .ok_or(ParseProblem::UnsafeInteger)
}

fn double(literal: &str) -> std::result::Result<Number, ParseProblem> {
    let value: f64 = literal.parse().map_err(|_| ParseProblem::MalformedNumber)?;
    if value.abs() <= MAX_INTEGER as f64 && value.fract() == 0.0 {
        return Ok(Number::from(value as i64));
    }
    if value.abs() > MAX_INTEGER as f64 && value.abs() < FIRST_WITH_EXPONENT {
        return Err(ParseProblem::UnsafeInteger);
    }
    Number::from_f64(value).ok_or(ParseProblem::NumberTooLarge)
}
