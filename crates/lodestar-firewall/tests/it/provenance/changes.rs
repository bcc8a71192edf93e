//! Changes to a value of which it is known whether they keep its meaning.

use super::spelling::{Dice, Sort, base64, hex, hide, insert, look_alike, percent, recase, spread};

pub(super) fn grouped(text: &str, separator: &str) -> String {
    let groups: Vec<&[u8]> = text.as_bytes().chunks(4).collect();
    let groups: Vec<&str> = groups.iter().map(|g| str::from_utf8(g).unwrap()).collect();
    groups.join(separator)
}

/// How a document may write a value: as it is, or so that a careless reader misses it.
pub(super) fn disguise(text: &str, sort: Sort, dice: &mut Dice) -> String {
    if sort == Sort::ShortNumber {
        return text.to_owned();
    }
    match dice.below(12) {
        0 => base64(text),
        1 => spread(text, " "),
        2 => percent(text, |b| !b.is_ascii_alphanumeric()),
        3 => hide(text, dice),
        4 => recase(text, dice),
        5 => look_alike(text, dice).unwrap_or_else(|| text.to_owned()),
        _ => text.to_owned(),
    }
}

/// Another spelling that means the same to everyone.
pub(super) fn same_value(text: &str, sort: Sort, dice: &mut Dice) -> String {
    if dice.chance(3) {
        return text.to_owned();
    }
    match sort {
        Sort::Email => {
            let (local, domain) = text.split_once('@').unwrap();
            format!("{local}@{}", recase(domain, dice))
        }
        Sort::Host | Sort::Uuid => recase(text, dice),
        Sort::Url => same_url(text, dice),
        Sort::Path => match dice.below(4) {
            0 => format!("./{text}"),
            1 => text.replacen('/', "//", 1),
            2 => text.replacen('/', "/./", 1),
            _ => format!("././{text}"),
        },
        Sort::Iban => grouped(&recase(text, dice), dice.pick(&["", " ", "-"])),
        Sort::Card => grouped(text, dice.pick(&["", " ", "-"])),
        Sort::Phone => match dice.below(3) {
            0 => text.replace(' ', ""),
            1 => text.replace(' ', "-"),
            _ => text
                .replacen(' ', " (", 1)
                .replacen(" ", ") ", 2)
                .replacen(") (", " (", 1),
        },
        Sort::Id | Sort::LongNumber | Sort::ShortNumber | Sort::Name => text.to_owned(),
    }
}

fn same_url(text: &str, dice: &mut Dice) -> String {
    let rest = text.strip_prefix("https://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let scheme = dice.pick(&["https", "HTTPS", "Https"]);
    let host = if dice.chance(2) {
        recase(host, dice)
    } else {
        host.to_owned()
    };
    let port = dice.pick(&["", ":443"]);
    let path = if dice.chance(2) {
        percent(path, |b| b == b'a')
    } else {
        path.to_owned()
    };
    format!("{scheme}://{host}{port}/{path}{}", dice.pick(&["", "/"]))
}

/// A change after which the value is another one.
pub(super) fn other_value(text: &str, sort: Sort, dice: &mut Dice) -> (&'static str, String) {
    let last = text.len() - 1;
    match dice.below(14) {
        0 => (
            "given, beginning of it",
            text[..last - dice.below(last / 2)].to_owned(),
        ),
        1 => ("given, end of it", text[1 + last / 2..].to_owned()),
        2 => ("given, case", other_case(text, sort)),
        3 => (
            "given, look-alike",
            look_alike(text, dice).unwrap_or_else(|| format!("{text}а")),
        ),
        4 => ("given, invisible character", hide(text, dice)),
        5 => (
            "given, spread out",
            spread(text, dice.pick(&[" ", "-", ".", "\u{200b}"])),
        ),
        6 => ("given, base64", base64(text)),
        7 => ("given, URL-encoded", percent(text, |_| true)),
        8 => (
            "given, whitespace",
            match dice.below(3) {
                0 => format!("{text} "),
                1 => format!("\n{text}"),
                _ => format!("{text}\u{a0}"),
            },
        ),
        9 => (
            "given, something added",
            format!("{text}{}", dice.pick(&["x", "0", ".evil.example", "\0"])),
        ),
        10 => (
            "given, something before",
            format!("{}{text}", dice.pick(&["x", "0", "evil.", "/"])),
        ),
        11 => ("given, other digit or letter", replaced(text, dice)),
        12 => (
            "given, control character",
            insert(text, dice.pick(&['\0', '\n', '\u{202e}']), dice),
        ),
        _ if sort == Sort::Url => other_url(text, dice),
        _ if sort == Sort::Path => (
            "given, other path",
            match dice.below(3) {
                0 => format!("/{text}"),
                1 => format!("../{text}"),
                _ => text.replacen('/', "/x/../", 1),
            },
        ),
        _ => ("given, doubled", format!("{text}{text}")),
    }
}

/// Changes case where it counts; where nothing of the kind is left, changes the value otherwise.
fn other_case(text: &str, sort: Sort) -> String {
    let upper = text.to_uppercase();
    match sort {
        Sort::Email | Sort::Path | Sort::Id | Sort::Name if upper != text => upper,
        Sort::Url => {
            let at = text.rfind('/').unwrap();
            format!("{}{}", &text[..at], text[at..].to_uppercase())
        }
        _ => format!("{text}X"),
    }
}

fn replaced(text: &str, dice: &mut Dice) -> String {
    let spots: Vec<usize> = text
        .char_indices()
        .filter_map(|(at, c)| c.is_ascii_alphanumeric().then_some(at))
        .collect();
    let at = dice.pick(&spots);
    let old = text.as_bytes()[at];
    let new = match old {
        b'9' => '0',
        b'z' | b'Z' => 'q',
        _ => char::from(old + 1),
    };
    format!("{}{new}{}", &text[..at], &text[at + 1..])
}

fn other_url(text: &str, dice: &mut Dice) -> (&'static str, String) {
    let rest = text.strip_prefix("https://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    match dice.below(9) {
        0 => ("given URL, userinfo", format!("https://admin@{rest}")),
        1 => (
            "given URL, userinfo",
            format!("https://{host}@evil.example/{path}"),
        ),
        2 => (
            "given URL, other port",
            format!("https://{host}:8443/{path}"),
        ),
        3 => ("given URL, other port", format!("https://{host}:80/{path}")),
        4 => ("given URL, other scheme", format!("http://{rest}")),
        5 => ("given URL, other scheme", rest.to_owned()),
        6 => ("given URL, query", format!("{text}?q=1")),
        7 => ("given URL, other path", format!("https://{host}/{path}/..")),
        _ => (
            "given URL, other path",
            format!("https://{host}/{}", path.replace('/', "%2F")),
        ),
    }
}

/// A change after which a reader still sees where the value came from.
pub(super) fn small_change(text: &str, sort: Sort, dice: &mut Dice) -> (&'static str, String) {
    match dice.below(9) {
        0 => ("read, case", recase(text, dice)),
        1 => ("read, whitespace", format!(" {text}\n")),
        2 => ("read, whitespace", text.replace(['.', '-'], " ")),
        3 => (
            "read, spread out",
            spread(text, dice.pick(&[" ", "-", ".", "\n"])),
        ),
        4 => (
            "read, look-alike",
            look_alike(text, dice).unwrap_or_else(|| text.to_owned()),
        ),
        5 => ("read, invisible character", hide(text, dice)),
        6 if sort == Sort::Url => other_read_url(text, dice),
        6 if sort == Sort::Path => ("read, other path", format!("./{text}")),
        7 => (
            "read, something added",
            format!("{text}{}", dice.pick(&["!", "?x", "#1", "~"])),
        ),
        _ => ("read, quoted", format!("\"{text}\"")),
    }
}

fn other_read_url(text: &str, dice: &mut Dice) -> (&'static str, String) {
    let rest = text.strip_prefix("https://").unwrap();
    match dice.below(3) {
        0 => ("read URL, userinfo", format!("https://me@{rest}")),
        1 => (
            "read URL, other port",
            format!("https://{}", rest.replacen('/', ":81/", 1)),
        ),
        _ => ("read URL, other scheme", format!("ftp://{rest}")),
    }
}

/// Pieces of a value that are long enough to be told from chance.
pub(super) fn pieces(text: &str, dice: &mut Dice) -> Option<(&'static str, Vec<String>)> {
    const ENOUGH: usize = 9;
    let letters = |piece: &str| piece.chars().filter(|c| c.is_ascii_alphanumeric()).count();
    let middle = text.len() / 2;
    let (left, right) = text.split_at_checked(middle)?;
    if letters(left) >= ENOUGH && letters(right) >= ENOUGH && dice.chance(2) {
        return Some(("read, split", vec![left.to_owned(), right.to_owned()]));
    }
    let piece = text.get(1 + dice.below(3)..text.len() - dice.below(3))?;
    (letters(piece) >= ENOUGH).then(|| ("read, substring", vec![piece.to_owned()]))
}

/// A percent-encoding, base64 or hexadecimal spelling.
pub(super) fn encoded(text: &str, dice: &mut Dice) -> (&'static str, String) {
    match dice.below(4) {
        0 => (
            "read, URL-encoded",
            percent(text, |b| !b.is_ascii_alphanumeric()),
        ),
        1 => ("read, URL-encoded", percent(text, |_| true)),
        2 => ("read, base64", base64(text)),
        _ => ("read, hexadecimal", hex(text)),
    }
}

/// Another value that shares a part with this one, if values of this sort have parts.
pub(super) fn neighbour(text: &str, sort: Sort, dice: &mut Dice) -> Option<String> {
    let word = dice.word();
    match sort {
        Sort::Email => text
            .split_once('@')
            .map(|(local, domain)| match dice.chance(2) {
                true => format!("{word}@{domain}"),
                false => format!("{local}@{word}.example"),
            }),
        Sort::Url | Sort::Path => text
            .rsplit_once('/')
            .map(|(head, _)| format!("{head}/{word}")),
        Sort::Host => Some(format!("{word}.{text}")),
        _ => None,
    }
}
