//! Reading a script: TOML, or JSON with one step on each line.

use std::path::Path;

use lodestar_core::canonical;
use lodestar_core::name::Excerpt;
use lodestar_policy::json_of_toml;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::{Act, Ending, Expected, MAX_SCRIPT_LEN, Script, ScriptError, Step};

/// Longest piece of a parser's words that is passed on.
const MAX_WORDS: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScript {
    #[serde(default)]
    step: Vec<Spanned<Written<toml::Table>>>,
}

/// A step as it is written; `A` is a table of the format it is written in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<A> {
    call: Option<String>,
    args: Option<A>,
    observe: Option<Seen>,
    expect: Option<Ending>,
    expect_kind: Option<String>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    source: String,
    text: String,
}

impl Script {
    /// Reads a file: JSON lines where its name ends in `.jsonl`, `.ndjson` or `.json`, else TOML.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let bytes = std::fs::read(path).map_err(|problem| ScriptError::Read {
            path: path.to_owned(),
            problem,
        })?;
        if bytes.len() > MAX_SCRIPT_LEN {
            return Err(ScriptError::TooLong(bytes.len()));
        }
        let text = str::from_utf8(&bytes).map_err(|error| {
            let good = &bytes[..error.valid_up_to()];
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            ScriptError::NotUtf8 { line }
        })?;
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending {
            Some("jsonl" | "ndjson" | "json") => Self::parse_json_lines(text),
            _ => Self::parse_toml(text),
        }
    }

    /// Takes TOML.
    pub fn parse_toml(text: &str) -> Result<Self, ScriptError> {
        let line_of = |offset: usize| text[..offset].matches('\n').count() + 1;
        let written: WrittenScript = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start.min(text.len()));
            at(line_of(offset))(error.message().to_owned())
        })?;
        let steps = written.step.into_iter().map(|step| {
            let line = line_of(step.span().start);
            step.into_inner()
                .step(line, of_table)
                .map_err(|problem| at(line)(problem))
        });
        Self::of(steps.collect::<Result<_, _>>()?)
    }

    /// Takes JSON, one step on each line; empty lines are passed over.
    pub fn parse_json_lines(text: &str) -> Result<Self, ScriptError> {
        let lines = text.lines().zip(1..);
        let lines = lines.filter(|(line, _)| !line.trim().is_empty());
        let steps = lines.map(|(json, line)| {
            // Reads what has one meaning only: no member twice.
            let value = canonical::parse(json.as_bytes());
            let value = value.map_err(|problem| at(line)(problem.to_string()))?;
            let written: Written<Map<String, Value>> =
                serde_json::from_value(value).map_err(|problem| at(line)(problem.to_string()))?;
            written.step(line, Ok).map_err(|problem| at(line)(problem))
        });
        Self::of(steps.collect::<Result<_, _>>()?)
    }

    fn of(steps: Vec<Step>) -> Result<Self, ScriptError> {
        if steps.is_empty() {
            return Err(ScriptError::Empty);
        }
        Ok(Self { steps })
    }
}

fn at(line: usize) -> impl Fn(String) -> ScriptError {
    move |mut problem| {
        if let Some((cut, _)) = problem.char_indices().nth(MAX_WORDS) {
            problem.truncate(cut);
            problem.push('…');
        }
        ScriptError::Step { line, problem }
    }
}

fn of_table(table: toml::Table) -> Result<Map<String, Value>, String> {
    let members = table.into_iter().map(|(name, value)| {
        let json = json_of_toml(&value).map_err(|what| {
            let name = Excerpt::of(&name);
            format!("argument `{name}` is {what}, which JSON does not have; write it as text")
        })?;
        Ok((name, json))
    });
    members.collect()
}

impl<A> Written<A> {
    fn step(
        self,
        line: usize,
        read: impl FnOnce(A) -> Result<Map<String, Value>, String>,
    ) -> Result<Step, String> {
        let act = match (self.call, self.observe) {
            (Some(tool), None) => Act::Call {
                tool,
                args: self.args.map_or(Ok(Map::new()), read)?,
                expect: expected(self.expect, self.expect_kind)?,
            },
            (None, Some(Seen { source, text })) => {
                if self.args.is_some() || self.expect.is_some() || self.expect_kind.is_some() {
                    return Err(
                        "`args`, `expect` and `expect_kind` belong to a `call`; take them out"
                            .to_owned(),
                    );
                }
                Act::Observe { source, text }
            }
            (Some(_), Some(_)) => {
                return Err("a step has a `call` or an `observe`, not both; make two".to_owned());
            }
            (None, None) => {
                return Err("a step does nothing without a `call` or an `observe`".to_owned());
            }
        };
        Ok(Step {
            line,
            note: self.note,
            act,
        })
    }
}

fn expected(ending: Option<Ending>, kind: Option<String>) -> Result<Option<Expected>, String> {
    let Some(ending) = ending else {
        return match kind {
            Some(_) => {
                Err("`expect_kind` needs `expect`: write `expect = \"refused\"` too".to_owned())
            }
            None => Ok(None),
        };
    };
    if let Some(kind) = &kind
        && !ending.kinds().contains(&kind.as_str())
    {
        let kind = Excerpt::of(kind);
        return Err(match ending.kinds() {
            [] => format!("what returned has no kind; take `expect_kind = \"{kind}\"` out"),
            kinds => format!(
                "`{kind}` is no kind of what is `{ending}`; write one of: {}",
                kinds.join(", ")
            ),
        });
    }
    Ok(Some(Expected { ending, kind }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> String {
        Script::parse_toml(text).unwrap_err().to_string()
    }

    #[test]
    fn toml_and_json_lines_say_the_same() {
        let toml = Script::parse_toml(
            "[[step]]\nnote = \"n\"\ncall = \"fs.read\"\nargs = { path = \"a\", deep = [1, 2.5, true] }\n\
             expect = \"refused\"\nexpect_kind = \"policy_denied\"\n\n\
             [[step]]\nobserve = { source = \"mail\", text = \"hello\" }\n",
        )
        .unwrap();
        let json = Script::parse_json_lines(
            "{\"note\":\"n\",\"call\":\"fs.read\",\"args\":{\"path\":\"a\",\"deep\":[1,2.5,true]},\
             \"expect\":\"refused\",\"expect_kind\":\"policy_denied\"}\n\n\
             {\"observe\":{\"source\":\"mail\",\"text\":\"hello\"}}\n",
        )
        .unwrap();
        let lines = |script: &Script| script.steps.iter().map(|s| s.line).collect::<Vec<_>>();
        assert_eq!(lines(&toml), [1, 8]);
        assert_eq!(lines(&json), [1, 3]);
        let acts = |script: Script| script.steps.into_iter().map(|s| s.act).collect::<Vec<_>>();
        let (toml, json) = (acts(toml), acts(json));
        assert_eq!(toml, json);
        let Act::Call { args, .. } = &toml[0] else {
            panic!("a call")
        };
        assert_eq!(json!(args), json!({"path": "a", "deep": [1, 2.5, true]}));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, expected) in [
            ("", "no step"),
            ("[[step]]\n", "line 1: a step does nothing"),
            ("\n[[step]]\ncall = 1\n", "line 3"),
            ("[[step]]\ncall = \"a\"\nargz = {}\n", "line 3"),
            ("[[step]]\ncall = \"a\"\ncall = \"b\"\n", "line 3"),
            (
                "\n\n[[step]]\ncall = \"a\"\nobserve = { source = \"b\", text = \"c\" }\n",
                "line 3: a step has a `call` or an `observe`, not both",
            ),
            (
                "[[step]]\nobserve = { source = \"b\", text = \"c\" }\nexpect = \"returned\"\n",
                "line 1: `args`, `expect`",
            ),
            ("[[step]]\ncall = \"a\"\nexpect = \"ran\"\n", "line 3"),
            (
                "[[step]]\ncall = \"a\"\nexpect_kind = \"halted\"\n",
                "needs `expect`",
            ),
            (
                "[[step]]\ncall = \"a\"\nexpect = \"refused\"\nexpect_kind = \"no\"\n",
                "`no` is no kind of what is `refused`; write one of: policy_denied, ",
            ),
            (
                "[[step]]\ncall = \"a\"\nexpect = \"returned\"\nexpect_kind = \"no\"\n",
                "has no kind",
            ),
            (
                "[[step]]\ncall = \"a\"\nargs = { x = inf }\n",
                "`x` is not a finite number",
            ),
            (
                "[[step]]\ncall = \"a\"\nargs = { x = 2026-01-02 }\n",
                "`x` is a date",
            ),
        ] {
            let problem = refused(text);
            assert!(problem.contains(expected), "{text:?}: {problem}");
        }
    }

    #[test]
    fn a_json_step_has_one_meaning() {
        for (text, expected) in [
            (
                "{\"call\":\"a\"}\n{\"call\":\"a\",\"call\":\"b\"}\n",
                "line 2",
            ),
            ("[1]\n", "line 1"),
            ("{\"call\":\"a\"\n", "line 1"),
            ("{\"call\":\"a\",\"args\":[]}\n", "line 1"),
        ] {
            let problem = Script::parse_json_lines(text).unwrap_err().to_string();
            assert!(problem.contains(expected), "{text:?}: {problem}");
        }
    }

    #[test]
    fn a_file_that_is_not_text_is_refused_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("script.toml");
        std::fs::write(&path, b"[[step]]\ncall = \"\xff\"\n").unwrap();
        let problem = Script::read(&path).unwrap_err();
        assert!(
            matches!(problem, ScriptError::NotUtf8 { line: 2 }),
            "{problem}"
        );
        let missing = Script::read(&dir.path().join("none")).unwrap_err();
        assert!(matches!(missing, ScriptError::Read { .. }));
    }
}
