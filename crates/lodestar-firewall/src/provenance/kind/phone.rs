//! Telephone numbers whose form says that they are one.
//!
//! Digits alone could be anything, and a date has the digits and hyphens of a number too; so only
//! `+` or the grouping 3-3-4 makes a telephone number, and digits without either stay an id.

/// The digits of the number with its `+`, or grouped `ddd-ddd-dddd`.
pub(super) fn normal(text: &str) -> Option<String> {
    match text.strip_prefix('+') {
        Some(rest) => international(rest),
        None => grouped(text),
    }
}

/// Longest number that E.164 allows, in digits; shorter than the least nobody can be called.
const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// Groups of one digit behind the country's: `+33 1 23 45 67 89` has one. More are a disguise.
const MAX_SINGLE_DIGITS: usize = 1;

fn international(rest: &str) -> Option<String> {
    let starts = rest.starts_with(|c: char| c.is_ascii_digit());
    let ends = rest.ends_with(|c: char| c.is_ascii_digit());
    let mut previous = '0';
    for c in rest.chars() {
        let fits = match c {
            '0'..='9' => true,
            '(' => matches!(previous, '0'..='9' | ' ' | '-'),
            ')' => previous.is_ascii_digit(),
            ' ' | '-' => matches!(previous, '0'..='9' | ')'),
            '.' | '/' => previous.is_ascii_digit(),
            _ => false,
        };
        if !fits {
            return None;
        }
        previous = c;
    }
    let digits: String = rest.chars().filter(char::is_ascii_digit).collect();
    let balanced = rest.matches('(').count() == rest.matches(')').count();
    let groups = rest.split(|c: char| !c.is_ascii_digit());
    let usual = groups.skip(1).filter(|group| group.len() == 1).count() <= MAX_SINGLE_DIGITS;
    (starts && ends && balanced && usual && DIGITS.contains(&digits.len()))
        .then(|| format!("+{digits}"))
}

fn grouped(text: &str) -> Option<String> {
    let (area, rest) = match text.strip_prefix('(') {
        Some(inner) => {
            let (area, rest) = inner.split_once(')')?;
            (area, rest.strip_prefix([' ', '-']).unwrap_or(rest))
        }
        None => text.split_once([' ', '-'])?,
    };
    let (exchange, line) = rest.split_once([' ', '-'])?;
    let is = |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
    (is(area, 3) && is(exchange, 3) && is(line, 4)).then(|| format!("{area}-{exchange}-{line}"))
}
