//! Changes to a JSON text that leave everything else in it as it is.

use std::ops::Range;

use serde_json::{Map, Value};

use super::Fault;
use super::tree::{Node, Tree};

/// A text that is being changed.
pub(super) struct Edited(String);

impl Edited {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn now(&self) -> &str {
        &self.0
    }

    pub(super) fn text(self) -> String {
        self.0
    }

    /// Puts a value at the end of the list that is found by these keys; what is missing on the way is made.
    pub(super) fn append(&mut self, way: &[&str], value: &Value) -> Result<(), Fault> {
        let tree = Tree::of(&self.0)?;
        let mut node = tree.root();
        for (depth, key) in way.iter().enumerate() {
            if node.members().is_none() {
                let what = depth.checked_sub(1).map_or("the file", |above| way[above]);
                return Err(tree.fault(node, what, "an object"));
            }
            match node.member(key) {
                Some(next) => node = next,
                None => {
                    let rest = way[depth + 1..].iter().rev();
                    let list = Value::Array(vec![value.clone()]);
                    let made = rest.fold(list, |inner, key| {
                        Value::Object(Map::from_iter([((*key).to_owned(), inner)]))
                    });
                    let unit = unit(&self.0);
                    let place = node.place.start;
                    let key = Value::from(*key);
                    let text = format!("{key}: {}", pretty(&made, &unit));
                    let after = end_of(node);
                    self.put(place, after, &text, &unit);
                    return Ok(());
                }
            }
        }
        if node.items().is_none() {
            let what = way.last().copied().unwrap_or_default();
            return Err(tree.fault(node, what, "a list"));
        }
        let unit = unit(&self.0);
        let place = node.place.start;
        let after = end_of(node);
        self.put(place, after, &pretty(value, &unit), &unit);
        Ok(())
    }

    /// Takes an item out of an event's list, or out of the hooks of one of its entries; a list and an object that
    /// are empty then go too.
    pub(super) fn remove_item(&mut self, event: &str, at: &[usize]) -> Result<(), Fault> {
        let tree = Tree::of(&self.0)?;
        let root = tree.root();
        let way = || {
            let hooks = root.member("hooks")?;
            let list = hooks.member(event)?;
            let (first, inner) = at.split_first()?;
            match inner.first() {
                Some(inner) => {
                    let shared = list.items()?.get(*first)?.member("hooks")?;
                    Some(cut(&self.0, shared, *inner))
                }
                None if list.items()?.len() > 1 => Some(cut(&self.0, list, *first)),
                None => {
                    let events = hooks.members()?;
                    let event = events.iter().position(|one| one.key == event)?;
                    match events.len() {
                        1 => {
                            let all = root.members()?;
                            let hooks = all.iter().position(|one| one.key == "hooks")?;
                            Some(cut(&self.0, root, hooks))
                        }
                        _ => Some(cut(&self.0, hooks, event)),
                    }
                }
            }
        };
        let place = way().expect("INVARIANT: the place was found in this very text");
        self.0.replace_range(place, "");
        Ok(())
    }

    /// Puts a text into the list or object that begins at `start`, behind its last part, which ends at `after`.
    fn put(&mut self, start: usize, after: Option<usize>, text: &str, unit: &str) {
        let outer = indent_at(&self.0, start).to_owned();
        let inner = format!("{outer}{unit}");
        let text = text.replace('\n', &format!("\n{inner}"));
        match after {
            Some(after) => {
                // Beside its neighbours, if they have lines of their own.
                let has_lines = self.0[start..after].contains('\n');
                let gap = match has_lines {
                    true => format!(",\n{}", indent_at(&self.0, after)),
                    false => ", ".to_owned(),
                };
                let gap = match has_lines && indent_at(&self.0, after).len() <= outer.len() {
                    true => format!(",\n{inner}"),
                    false => gap,
                };
                self.0.insert_str(after, &format!("{gap}{text}"));
            }
            None => {
                // Between brackets with nothing but space in between.
                let end = self.0[start + 1..].find(['}', ']']);
                let end = end.map_or(start + 1, |end| start + 1 + end);
                self.0
                    .replace_range(start + 1..end, &format!("\n{inner}{text}\n{outer}"));
            }
        }
    }
}

/// Where the last part of a list or object ends.
fn end_of(node: &Node) -> Option<usize> {
    node.parts().last().map(|part| part.end)
}

/// The place of a part together with the comma and the space that go with it.
fn cut(text: &str, node: &Node, at: usize) -> Range<usize> {
    let parts = node.parts();
    let part = parts[at].clone();
    if at > 0 {
        return parts[at - 1].end..part.end;
    }
    match parts.get(1) {
        Some(next) => part.start..next.start,
        None => {
            let inside = node.place.start + 1..node.place.end - 1;
            debug_assert!(text.is_char_boundary(inside.start));
            inside
        }
    }
}

/// With what the line of this place begins.
fn indent_at(text: &str, place: usize) -> &str {
    let line = text[..place].rfind('\n').map_or(0, |at| at + 1);
    let rest = &text[line..];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

/// How the text is indented, by its first line that is.
fn unit(text: &str) -> String {
    let indents = text.lines().map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        (&line[..line.len() - rest.len()], rest)
    });
    let first = indents.filter(|(indent, rest)| !indent.is_empty() && !rest.is_empty());
    first
        .map(|(indent, _)| indent)
        .next()
        .unwrap_or("  ")
        .to_owned()
}

fn pretty(value: &Value, unit: &str) -> String {
    let pretty = format!("{value:#}");
    let lines = pretty.lines().map(|line| {
        let rest = line.trim_start_matches(' ');
        format!("{}{rest}", unit.repeat((line.len() - rest.len()) / 2))
    });
    lines.collect::<Vec<_>>().join("\n")
}
