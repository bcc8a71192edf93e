//! `git status --porcelain`, versions 1 and 2, line by line.

use super::status::{Status, unquote};

/// Reads version 2; `None` if no line is of it.
pub(super) fn read_v2<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Status> {
    let mut status = Status::default();
    let mut recognised = false;
    for line in lines {
        recognised |= header_v2(&mut status, line) || entry_v2(&mut status, line).is_some();
    }
    recognised.then_some(status)
}

fn header_v2(status: &mut Status, line: &str) -> bool {
    let Some((name, value)) = line
        .strip_prefix("# branch.")
        .and_then(|header| header.split_once(' '))
    else {
        return false;
    };
    match name {
        "head" => {
            status.detached = value == "(detached)";
            if !status.detached {
                status.head = Some(value.to_owned());
            }
        }
        // The commit is what a detached head is at, and it comes before the line that says so.
        "oid" => status.head = Some(value.to_owned()),
        "upstream" => status.upstream = Some(value.to_owned()),
        "ab" => {
            status.distance = value.split_once(' ').and_then(|(ahead, behind)| {
                let ahead = ahead.strip_prefix('+')?.parse().ok()?;
                Some((ahead, behind.strip_prefix('-')?.parse().ok()?))
            });
        }
        _ => {}
    }
    true
}

fn entry_v2(status: &mut Status, line: &str) -> Option<()> {
    let (kind, rest) = line.split_once(' ')?;
    // How many words stand before the path.
    let words = match kind {
        "1" => 7,
        "2" => 8,
        "u" => 9,
        "?" => {
            status.untracked.add(&unquote(rest));
            return Some(());
        }
        "!" => return Some(()),
        _ => return None,
    };
    let letters = two_letters(rest, |letter| b".MTADRCU".contains(&letter))?;
    let path = rest.splitn(words + 1, ' ').nth(words)?;
    let path = path.split_once('\t').map_or(path, |(new, _)| new);
    if kind == "u" {
        status.unmerged.add(&unquote(path));
    } else {
        status.change(letters, &unquote(path));
    }
    Some(())
}

/// Reads version 1; `None` if a line is not of it, or if there is none: an empty text may be a clean
/// tree, or anything.
pub(super) fn read_v1<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Status> {
    let mut status = Status::default();
    let mut recognised = false;
    for line in lines.filter(|line| !line.is_empty()) {
        match line.strip_prefix("## ") {
            Some(header) => header_v1(&mut status, header),
            None => entry_v1(&mut status, line)?,
        }
        recognised = true;
    }
    recognised.then_some(status)
}

fn header_v1(status: &mut Status, header: &str) {
    if header.starts_with("HEAD (no branch)") {
        status.detached = true;
        status.head = Some("HEAD".to_owned());
        return;
    }
    let header = header.strip_prefix("No commits yet on ").unwrap_or(header);
    let (names, distance) = match header.split_once(" [") {
        Some((names, rest)) => (names, rest.strip_suffix(']')),
        None => (header, None),
    };
    match names.split_once("...") {
        Some((head, upstream)) => {
            status.head = Some(head.to_owned());
            status.upstream = Some(upstream.to_owned());
            status.distance = Some((0, 0));
        }
        None => status.head = Some(names.to_owned()),
    }
    let Some(distance) = distance else { return };
    if distance == "gone" {
        status.distance = None;
        return;
    }
    let count = |word: &str| {
        distance
            .split(", ")
            .find_map(|part| part.strip_prefix(word)?.trim_start().parse().ok())
            .unwrap_or(0)
    };
    status.distance = Some((count("ahead"), count("behind")));
}

fn entry_v1(status: &mut Status, line: &str) -> Option<()> {
    let letters = two_letters(line, |letter| b" MTADRCU?!".contains(&letter))?;
    let path = line.get(3..).filter(|path| !path.is_empty())?;
    match &letters {
        b"??" => status.untracked.add(&unquote(path)),
        b"!!" => {}
        b"  " => return None,
        &letters => {
            // Of a rename the new path counts; a quoted old path may hold an arrow of its own.
            let renamed = letters.iter().any(|letter| b"RC".contains(letter));
            let path = match path.rsplit_once(" -> ") {
                Some((_, new)) if renamed => new,
                _ => path,
            };
            status.change(letters, &unquote(path));
        }
    }
    Some(())
}

/// The two letters before a space, if both are known.
fn two_letters(text: &str, known: impl Fn(u8) -> bool) -> Option<[u8; 2]> {
    match text.as_bytes() {
        &[x, y, b' ', ..] if known(x) && known(y) => Some([x, y]),
        _ => None,
    }
}
