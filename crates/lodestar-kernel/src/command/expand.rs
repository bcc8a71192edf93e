//! From words to arguments: braces, quotes and what is known of expansions before anything runs.

use super::paths::MARK;
use super::syntax::{Expansion, Unit, Word};

/// Most words that braces may make of one.
const MAX_BRACED: usize = 64;

/// How well an argument is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sure {
    /// It is its text.
    Fixed,
    /// A number, a date, an open stream: a value that names no file and no option.
    Value,
    /// Names of files in the project, none of which governs the agent.
    Names,
    /// Names of any files in the project.
    Wide,
    /// Anything.
    Unknown,
}

/// One argument of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arg {
    /// The text, with a mark for what is not known.
    pub(super) text: String,
    pub(super) sure: Sure,
    /// Whether it can become several arguments.
    pub(super) splits: bool,
    /// Whether it is a pattern for names of files.
    pub(super) pattern: bool,
}

impl Arg {
    pub(super) fn fixed(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            sure: Sure::Fixed,
            splits: false,
            pattern: false,
        }
    }

    pub(super) fn unsure(sure: Sure) -> Self {
        Self {
            text: MARK.to_string(),
            sure,
            splits: true,
            pattern: false,
        }
    }

    /// The text, if nothing else can come of it.
    pub(super) fn literal(&self) -> Option<&str> {
        (self.sure == Sure::Fixed && !self.pattern).then_some(self.text.as_str())
    }

    pub(super) fn is_known(&self) -> bool {
        self.sure != Sure::Unknown
    }

    pub(super) fn is_option(&self) -> bool {
        self.text.starts_with('-') && self.text.len() > 1
    }
}

/// The arguments of a word; none where braces make too many.
pub(super) fn expand(
    word: &Word,
    resolve: &mut dyn FnMut(&Expansion) -> (String, Sure),
) -> Option<Vec<Arg>> {
    if word.is_empty() {
        return Some(Vec::new());
    }
    let mut args = Vec::new();
    for units in braces(&word.units)? {
        let mut arg = Arg::fixed("");
        let mut bare_only = !word.quoted;
        let mut bracket = false;
        for unit in units {
            match unit {
                Unit::Bare(c) => {
                    bracket |= c == '[';
                    arg.pattern |= matches!(c, '*' | '?') || (bracket && c == ']');
                    arg.text.push(c);
                    bare_only = false;
                }
                Unit::Quoted(c) => {
                    arg.text.push(c);
                    bare_only = false;
                }
                Unit::Expansion(index, quoted) => {
                    let (text, sure) = resolve(&word.expansions[index]);
                    arg.text.push_str(&text);
                    arg.splits |= !quoted && sure != Sure::Fixed && sure != Sure::Value;
                    arg.sure = arg.sure.max(sure);
                    bare_only &= text.is_empty();
                }
            }
        }
        // An expansion that comes to nothing leaves no word behind.
        if bare_only && arg.text.is_empty() {
            continue;
        }
        args.push(arg);
    }
    Some(args)
}

fn braces(units: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    let opening = units
        .iter()
        .filter(|unit| **unit == Unit::Bare('{'))
        .count();
    match opening {
        0 => Some(vec![units.to_vec()]),
        1..=16 => braced(units),
        _ => None,
    }
}

fn braced(units: &[Unit]) -> Option<Vec<Vec<Unit>>> {
    for (start, unit) in units.iter().enumerate() {
        if *unit != Unit::Bare('{') {
            continue;
        }
        let Some((end, commas)) = closing(units, start) else {
            continue;
        };
        let inside = &units[start + 1..end];
        let alternatives = match commas.is_empty() {
            false => {
                let mut all = Vec::new();
                let mut from = start + 1;
                for to in commas.into_iter().chain([end]) {
                    all.extend(braced(&units[from..to])?);
                    from = to + 1;
                }
                all
            }
            true => match range(inside) {
                Some(range) => range?,
                None => continue,
            },
        };
        let rests = braced(&units[end + 1..])?;
        let mut all = Vec::new();
        for alternative in &alternatives {
            for rest in &rests {
                let mut whole = units[..start].to_vec();
                whole.extend(alternative);
                whole.extend(rest);
                all.push(whole);
                if all.len() > MAX_BRACED {
                    return None;
                }
            }
        }
        return Some(all);
    }
    Some(vec![units.to_vec()])
}

/// The brace that closes the one at `start`, and the commas between them.
fn closing(units: &[Unit], start: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0usize;
    let mut commas = Vec::new();
    for (at, unit) in units.iter().enumerate().skip(start) {
        match unit {
            Unit::Bare('{') => depth += 1,
            Unit::Bare('}') => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, commas));
                }
            }
            Unit::Bare(',') if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    None
}

/// `{1..5}` and `{a..e}`: none where it is no range, none inside where it has too many members.
fn range(inside: &[Unit]) -> Option<Option<Vec<Vec<Unit>>>> {
    let text: Option<String> = inside
        .iter()
        .map(|unit| match unit {
            Unit::Bare(c) => Some(*c),
            _ => None,
        })
        .collect();
    let text = text?;
    let mut ends = text.split("..");
    let (from, to) = (ends.next()?, ends.next()?);
    let units = |text: String| text.chars().map(Unit::Bare).collect::<Vec<_>>();
    let step = ends.next();
    if step.is_some() && ends.next().is_some() {
        return None;
    }
    if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
        let (low, high) = (from.min(to), from.max(to));
        // Of many numbers, the first and the last stand for the rest.
        let numbers: Vec<i64> = match high.saturating_sub(low) < 48 {
            true => (low..=high).collect(),
            false => vec![low, high],
        };
        return Some(Some(numbers.iter().map(|n| units(n.to_string())).collect()));
    }
    let one = |text: &str| {
        let mut chars = text.chars();
        chars.next().filter(|_| chars.next().is_none())
    };
    let (from, to) = (one(from)?, one(to)?);
    let (low, high) = (from.min(to), from.max(to));
    let all: Vec<_> = (low..=high).take(MAX_BRACED + 1).collect();
    match all.len() > MAX_BRACED {
        true => Some(None),
        false => Some(Some(all.iter().map(|c| units(c.to_string())).collect())),
    }
}
