//! Numbers, sizes and counts as people read them.

/// `1,234,567`
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 event`, `2 events`
pub fn count(n: u64, one: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {one}{plural}", number(n))
}

/// `512 B`, `4.2 KiB`
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut size = n as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// The first digits of a hash, enough to compare by eye.
pub fn short(hash: &impl std::fmt::Display) -> String {
    let mut text = hash.to_string();
    text.truncate(12);
    text.push('…');
    text
}

/// Enough of a chain link's id to name it: prefix, moment, and 26 bits of chance.
pub fn short_id(id: &impl std::fmt::Display) -> String {
    const UUID: usize = 23;
    let text = id.to_string();
    let end = text.find('_').map_or(UUID, |at| at + 1 + UUID);
    text.get(..end).unwrap_or(&text).to_owned()
}

/// `2026-01-02 03:04:05`
pub fn seconds(time: lodestar_core::time::Timestamp) -> String {
    let text = time.to_string();
    text[..19].replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(number(n), text);
        }
    }

    #[test]
    fn sizes_carry_to_the_next_unit_instead_of_rounding_to_1024() {
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }
}
