//! Source text with every mutant in it, each behind a question that is answered when it runs.
//!
//! A point is one place; its mutants are the alternatives there. The text around a point, and each
//! alternative, stands between comments, so that a compiler's error finds its mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use syn::spanned::Spanned;

/// A mutant's number.
pub(super) type Id = u32;

/// What asks whether a mutant is the one to run.
const ON: &str = "crate::mutant_switch::on";

/// Text to put in, and text to take out.
#[derive(Debug, Default)]
pub(super) struct Edits {
    opens: BTreeMap<usize, Vec<String>>,
    closes: BTreeMap<usize, Vec<String>>,
    cuts: BTreeMap<usize, (usize, String)>,
}

impl Edits {
    /// Puts text before and after a range; ranges around others come first.
    pub(super) fn around(&mut self, range: &Range<usize>, before: String, after: String) {
        self.opens.entry(range.start).or_default().push(before);
        self.closes.entry(range.end).or_default().insert(0, after);
    }

    /// Puts text at a place.
    pub(super) fn at(&mut self, place: usize, text: String) {
        self.opens.entry(place).or_default().push(text);
    }

    /// Puts text right behind what ends here, inside of what ends with it.
    pub(super) fn behind(&mut self, place: usize, text: String) {
        self.closes.entry(place).or_default().insert(0, text);
    }

    /// Puts text in the place of a range.
    pub(super) fn replace(&mut self, range: &Range<usize>, text: String) {
        self.cuts.insert(range.start, (range.end, text));
    }

    /// The text with all of it.
    pub(super) fn apply(&self, source: &str) -> String {
        let mut places: BTreeSet<usize> = self.opens.keys().copied().collect();
        places.extend(self.closes.keys());
        places.extend(self.cuts.keys());
        let mut text = String::with_capacity(source.len() * 2);
        let mut done = 0;
        for place in places {
            if place > done {
                text.push_str(&source[done..place]);
                done = place;
            }
            for piece in self.closes.get(&place).into_iter().flatten() {
                text.push_str(piece);
            }
            for piece in self.opens.get(&place).into_iter().flatten() {
                text.push_str(piece);
            }
            if let Some((end, piece)) = self.cuts.get(&place) {
                text.push_str(piece);
                done = *end;
            }
        }
        text.push_str(&source[done..]);
        text
    }
}

/// The question about one mutant.
pub(super) fn on(id: Id) -> String {
    format!("{ON}({id})")
}

/// The comments around a point, named after the first of its mutants.
pub(super) fn point(id: Id) -> (String, String) {
    (format!("/*p{id}*/"), format!("/*.p{id}*/"))
}

/// An alternative in its comments.
pub(super) fn alternative(id: Id, text: &str) -> String {
    format!("/*a{id}*/{text}/*.a{id}*/")
}

/// `if on(1) { … } else if on(2) { … } else { base }`
pub(super) fn choice(alternatives: &[(Id, String)], base: &str) -> String {
    let mut text = String::new();
    for (id, alternative_text) in alternatives {
        let _ = write!(
            text,
            "if {} {{ {} }} else ",
            on(*id),
            alternative(*id, alternative_text)
        );
    }
    format!("{text}{{ {base} }}")
}

/// What stands around a place of a rewritten text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// One alternative.
    Alternative(Id),
    /// A point, with the first of its mutants.
    Point(Id),
}

/// The innermost mark around a range of a rewritten text.
pub(super) fn innermost(text: &str, range: &Range<usize>) -> Option<Around> {
    marks(text)
        .into_iter()
        .filter(|(around, _)| around.start <= range.start && range.end <= around.end)
        .min_by_key(|(around, _)| around.len())
        .map(|(_, mark)| mark)
}

/// The marks that lie on the lines of a range: what may have caused an error beside them.
pub(super) fn nearby(text: &str, range: &Range<usize>) -> Vec<Around> {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..]
        .find('\n')
        .map_or(text.len(), |at| range.end + at);
    marks(text)
        .into_iter()
        .filter(|(around, _)| around.start < end && start < around.end)
        .map(|(_, mark)| mark)
        .collect()
}

/// Every mark with the range between its comments.
fn marks(text: &str) -> Vec<(Range<usize>, Around)> {
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("/*").map(|at| from + at) {
        from = at + 2;
        let Some(end) = text[from..].find("*/").map(|end| from + end) else {
            break;
        };
        let name = &text[from..end];
        if name.starts_with('.') {
            while let Some((start, opened)) = open.pop() {
                if opened == &name[1..] {
                    found.extend(mark(opened).map(|mark| (start..at, mark)));
                    break;
                }
            }
        } else if mark(name).is_some() {
            open.push((end + 2, name));
        }
    }
    found
}

fn mark(name: &str) -> Option<Around> {
    let id = name.get(1..)?.parse().ok()?;
    match name.as_bytes().first()? {
        b'a' => Some(Around::Alternative(id)),
        b'p' => Some(Around::Point(id)),
        _ => None,
    }
}

/// Syntax as it stands in its source, on one line.
pub(super) fn shown(syntax: &impl Spanned) -> String {
    let text = syntax.span().source_text().unwrap_or_default();
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

/// The switch that the rewritten crates ask. It looks at the environment once; with a file for
/// coverage it notes every mutant that is reached, once.
pub(super) fn switch(mutants: usize) -> String {
    let size = mutants + 1;
    format!(
        r#"
/// Put in by `cargo xtask mutants`.
mod mutant_switch {{
    use std::io::Write as _;
    use std::sync::atomic::{{AtomicBool, Ordering}};
    use std::sync::OnceLock;

    struct Switch {{
        active: u32,
        reached: Option<std::fs::File>,
    }}

    static SWITCH: OnceLock<Switch> = OnceLock::new();
    static SEEN: [AtomicBool; {size}] = [const {{ AtomicBool::new(false) }}; {size}];

    fn switch() -> Switch {{
        let active = std::env::var("{ACTIVE}").ok();
        let reached = std::env::var_os("{REACHED}").map(|path| {{
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.expect("the file for coverage opens")
        }});
        Switch {{
            active: active.and_then(|id| id.parse().ok()).unwrap_or(0),
            reached,
        }}
    }}

    pub(crate) fn on(id: u32) -> bool {{
        let switch = SWITCH.get_or_init(switch);
        if let Some(mut file) = switch.reached.as_ref()
            && !SEEN[id as usize].swap(true, Ordering::Relaxed)
        {{
            let _ = file.write_all(format!("{{id}}\n").as_bytes());
        }}
        switch.active == id
    }}
}}
"#
    )
}

/// Names the mutant that runs.
pub(super) const ACTIVE: &str = "LODESTAR_MUTANT";

/// Names the file for the mutants that are reached.
pub(super) const REACHED: &str = "LODESTAR_MUTANTS_REACHED";
