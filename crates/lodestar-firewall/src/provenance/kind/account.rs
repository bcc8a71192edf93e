//! Account numbers with check digits: IBANs and card numbers.
//!
//! Only a number whose check digits, length and country are right is compared without its grouping.
//! Another word of letters and digits could be an id in which case and hyphens count.

/// Length of an IBAN by country, from the registry of ISO 13616.
const IBAN_LENGTHS: &str = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 \
    CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 \
    IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 \
    MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 \
    TL23 TN24 TR26 UA29 VA22 VG24 XK20";

/// Digits of a card number.
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

/// The number without grouping, letters in upper case.
pub(super) fn normal(text: &str) -> Option<String> {
    // Longest IBAN with a separator after each character; anything longer is no account.
    if !(12..=68).contains(&text.len()) {
        return None;
    }
    iban(text).or_else(|| card(text))
}

/// How long an IBAN of this country is.
pub(in super::super) fn iban_length(country: &str) -> Option<usize> {
    IBAN_LENGTHS
        .split(' ')
        .find_map(|entry| entry.strip_prefix(country).filter(|_| country.len() == 2))
        .and_then(|length| length.parse().ok())
}

fn iban(text: &str) -> Option<String> {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if !begins || !text.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    let separator = text.chars().find(|c| !c.is_ascii_alphanumeric());
    let fours = match separator {
        None => true,
        Some(c @ (' ' | '-')) => is_in_fours(text.split(c).map(str::len)),
        Some(_) => return None,
    };
    let number: String = text
        .chars()
        .filter(|c| Some(*c) != separator)
        .map(|c| c.to_ascii_uppercase())
        .collect();
    let only_code = number.bytes().all(|b| b.is_ascii_alphanumeric());
    let right_length = number.get(..2).and_then(iban_length) == Some(number.len());
    (fours && only_code && right_length && has_iban_checksum(&number)).then_some(number)
}

/// Groups of four, the last of up to four: how people write an IBAN. Other groupings are a disguise.
fn is_in_fours(lengths: impl Iterator<Item = usize>) -> bool {
    let mut previous = 4;
    for length in lengths {
        if previous != 4 || !(1..=4).contains(&length) {
            return false;
        }
        previous = length;
    }
    true
}

/// ISO 7064, modulo 97: the first four characters moved to the end, letters as 10 to 35.
fn has_iban_checksum(number: &str) -> bool {
    let (head, tail) = number.split_at(4);
    let digits = head.bytes().skip(2).all(|b| b.is_ascii_digit());
    let remainder = tail.chars().chain(head.chars()).fold(0, |sum, c| {
        let value = c.to_digit(36).unwrap_or_default();
        (sum * if value < 10 { 10 } else { 100 } + value) % 97
    });
    digits && remainder == 1
}

fn card(text: &str) -> Option<String> {
    let separator = text.chars().find(|c| !c.is_ascii_digit());
    let groups: Vec<usize> = match separator {
        None => vec![],
        Some(c @ (' ' | '-')) => text.split(c).map(str::len).collect(),
        Some(_) => return None,
    };
    let usual = matches!(
        groups[..],
        [] | [4, 4, 4, 4] | [4, 4, 4, 4, 1..=3] | [4, 6, 5] | [4, 6, 4] | [4, 4, 4, 1..=3]
    );
    let digits: String = text.chars().filter(|c| Some(*c) != separator).collect();
    let only_digits = digits.bytes().all(|b| b.is_ascii_digit());
    (usual && only_digits && CARD_DIGITS.contains(&digits.len()) && has_luhn_digit(&digits))
        .then_some(digits)
}

/// ISO/IEC 7812: every second digit from the right doubled, the sum of digits a multiple of ten.
fn has_luhn_digit(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| {
            let digit = u32::from(byte - b'0') * if at % 2 == 1 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    sum.is_multiple_of(10)
}
