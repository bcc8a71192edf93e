//! Fresh values, and the ways in which a text can be spelt differently.
//!
//! Nothing here knows the code under test: what a change does to the meaning of a value is said by
//! the name of the function that makes it.

use std::fmt::Write as _;

/// A small generator (SplitMix64), so that every run makes the same cases.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.roll() % n as u64) as usize
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(super) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub(super) fn digits(&mut self, count: usize) -> String {
        let first = self.pick(b"123456789");
        let rest = (1..count).map(|_| self.pick(b"0123456789"));
        std::iter::once(first)
            .chain(rest.collect::<Vec<_>>())
            .map(char::from)
            .collect()
    }

    /// A word that no language has, of three syllables or more.
    pub(super) fn word(&mut self) -> String {
        (0..3 + self.below(2))
            .flat_map(|_| [self.pick(b"bdfgklmnprstvz"), self.pick(b"aeiou")])
            .map(char::from)
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Email,
    Url,
    Host,
    Path,
    Iban,
    Card,
    Phone,
    Uuid,
    Id,
    LongNumber,
    ShortNumber,
    Name,
}

pub(super) const SORTS: &[Sort] = &[
    Sort::Email,
    Sort::Email,
    Sort::Url,
    Sort::Url,
    Sort::Host,
    Sort::Path,
    Sort::Path,
    Sort::Iban,
    Sort::Card,
    Sort::Phone,
    Sort::Uuid,
    Sort::Id,
    Sort::LongNumber,
    Sort::ShortNumber,
    Sort::Name,
];

/// A value that nothing else has.
pub(super) fn fresh(dice: &mut Dice, sort: Sort) -> String {
    let (a, b, c) = (dice.word(), dice.word(), dice.word());
    match sort {
        Sort::Email => format!("{a}.{b}@{c}.{}", dice.pick(&["example", "test", "com"])),
        Sort::Url => format!("https://{a}.example/{b}/{c}"),
        Sort::Host => format!("{a}-{b}.{}", dice.pick(&["example", "net", "io"])),
        Sort::Path => format!("{a}/{b}/{c}.{}", dice.pick(&["txt", "rs", "md"])),
        Sort::Iban => iban(dice),
        Sort::Card => card(dice),
        Sort::Phone => format!("+49 {} {}", dice.digits(3), dice.digits(7)),
        Sort::Uuid => uuid(dice),
        Sort::Id => format!("{}-{}-{}", a.to_uppercase(), dice.digits(4), b),
        Sort::LongNumber => dice.digits(9),
        Sort::ShortNumber => dice.digits(3),
        Sort::Name => format!("{a} {b} {c}"),
    }
}

fn iban(dice: &mut Dice) -> String {
    let account = dice.digits(18);
    let check = (2..99)
        .find(|check| {
            let number = format!("{account}1314{check:02}");
            let remainder = number
                .bytes()
                .fold(0, |sum, b| (sum * 10 + u32::from(b - b'0')) % 97);
            remainder == 1
        })
        .unwrap();
    format!("DE{check:02}{account}")
}

fn card(dice: &mut Dice) -> String {
    let stem = format!("4{}", dice.digits(14));
    let valid = |number: &String| {
        let doubled = |(at, b): (usize, u8)| match (u32::from(b - b'0'), at % 2) {
            (digit, 0) => digit,
            (digit, _) if digit > 4 => 2 * digit - 9,
            (digit, _) => 2 * digit,
        };
        let sum: u32 = number.bytes().rev().enumerate().map(doubled).sum();
        sum.is_multiple_of(10)
    };
    (0..10)
        .map(|last| format!("{stem}{last}"))
        .find(valid)
        .unwrap()
}

fn uuid(dice: &mut Dice) -> String {
    let hex = format!("{:016x}{:016x}", dice.roll(), dice.roll());
    let part = |range: std::ops::Range<usize>| &hex[range];
    let parts = [
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32),
    ];
    parts.join("-")
}

pub(super) fn percent(text: &str, which: impl Fn(u8) -> bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match which(byte) {
            true => write!(out, "%{byte:02X}").unwrap(),
            false => out.push(char::from(byte)),
        }
    }
    out
}

pub(super) fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let mut bits = 0;
        for at in 0..3 {
            bits = bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0));
        }
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at > chunk.len() {
                '='
            } else {
                char::from(digit)
            });
        }
    }
    out
}

/// Letters with a separator between them.
pub(super) fn spread(text: &str, separator: &str) -> String {
    let letters: Vec<String> = text.chars().map(String::from).collect();
    letters.join(separator)
}

/// Puts a letter of another script in the place of one that looks like it.
pub(super) fn look_alike(text: &str, dice: &mut Dice) -> Option<String> {
    const PAIRS: &[(char, char)] = &[
        ('a', 'а'),
        ('e', 'е'),
        ('o', 'о'),
        ('p', 'р'),
        ('i', 'і'),
        ('0', '０'),
        ('1', '１'),
        ('4', '４'),
        ('9', '９'),
    ];
    let spots: Vec<(usize, char, char)> = text
        .char_indices()
        .filter_map(|(at, c)| {
            PAIRS
                .iter()
                .find(|(l, _)| *l == c)
                .map(|&(l, o)| (at, l, o))
        })
        .collect();
    if spots.is_empty() {
        return None;
    }
    let (at, latin, other) = dice.pick(&spots);
    Some(format!(
        "{}{other}{}",
        &text[..at],
        &text[at + latin.len_utf8()..]
    ))
}

/// Puts a character that is not seen between two that are.
pub(super) fn hide(text: &str, dice: &mut Dice) -> String {
    let hidden = dice.pick(&['\u{200b}', '\u{ad}', '\u{2060}', '\u{feff}', '\u{200d}']);
    insert(text, hidden, dice)
}

pub(super) fn insert(text: &str, c: char, dice: &mut Dice) -> String {
    let spots: Vec<usize> = text.char_indices().skip(1).map(|(at, _)| at).collect();
    let at = dice.pick(&spots);
    format!("{}{c}{}", &text[..at], &text[at..])
}

/// Some letters in the other case.
pub(super) fn recase(text: &str, dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => text.to_uppercase(),
        1 => text
            .chars()
            .map(|c| if dice.chance(2) { swap_case(c) } else { c })
            .collect(),
        _ => text.chars().map(swap_case).collect(),
    }
}

fn swap_case(c: char) -> char {
    match c.is_ascii_lowercase() {
        true => c.to_ascii_uppercase(),
        false => c.to_ascii_lowercase(),
    }
}
