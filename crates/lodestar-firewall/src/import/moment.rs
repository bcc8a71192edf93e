//! Times as the three systems write them.
//!
//! Python and Go between them write RFC 3339 with or without a fraction of any length, with a blank in
//! the place of the `T`, with an offset with or without its colon, or with none at all.

use lodestar_core::time::Timestamp;
use serde_json::Value;

/// The time in a field, if it is one. A number counts seconds since the epoch, as OpenMemory does; one
/// in milliseconds lies beyond the year 9999 and is nothing, rather than a guess.
pub(super) fn moment(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(seconds) => {
            let micros = seconds.as_i64()?.checked_mul(1_000_000)?;
            Timestamp::from_unix_micros(micros).ok()
        }
        _ => None,
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    let (date, rest) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
        return None;
    }
    let (time, rest) = (rest.get(..8)?, rest.get(8..)?);
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            rest.split_at(digits)
        }
        None => ("", rest),
    };
    let offset = offset_seconds(zone)?;
    let micros = fraction.get(..6).unwrap_or(fraction);
    let here: Timestamp = format!("{date}T{time}.{micros:0<6}Z").parse().ok()?;
    Timestamp::from_unix_micros(here.unix_micros() - offset * 1_000_000).ok()
}

/// Seconds east of Greenwich. No zone is UTC: that is what all three keep in their databases.
fn offset_seconds(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = zone.get(1..)?;
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits
            .split_once(':')
            .filter(|(hours, _)| hours.len() == 2)?,
        _ => return None,
    };
    let number = |text: &str| {
        let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| all_digits)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Option<String> {
        moment(&json!(text)).map(|time| time.to_string())
    }

    #[test]
    fn every_spelling_of_the_three_systems_is_read() {
        let noon = Some("2024-07-20T12:00:00.000000Z".to_owned());
        for text in [
            "2024-07-20T12:00:00Z",
            "2024-07-20t12:00:00z",
            "2024-07-20T12:00:00",
            "2024-07-20 12:00:00",
            "2024-07-20 12:00:00+00:00",
            "2024-07-20T12:00:00.000Z",
            "2024-07-20T12:00:00.000000999Z",
            "2024-07-20T05:00:00-07:00",
            "2024-07-20T17:30:00+0530",
            "2024-07-20T13:00:00+01",
        ] {
            assert_eq!(read(text), noon, "{text}");
        }
        assert_eq!(
            read("2024-07-20T01:30:36.275141-07:00").as_deref(),
            Some("2024-07-20T08:30:36.275141Z")
        );
        assert_eq!(
            moment(&json!(1_721_476_800)).map(|time| time.to_string()),
            noon
        );
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "yesterday",
            "2024-07-20",
            "2024-07-20T12:00",
            "2024-02-30T12:00:00Z",
            "2024-07-20T12:00:00.Z",
            "2024-07-20T12:00:00+24:00",
            "2024-07-20T12:00:00+1:000",
            "2024-07-20T12:00:00+a0:00",
            "2024-07-20T12:00:00 UTC",
            "0001-01-01T00:00:00Z",
            "1970-01-01T00:00:00+01:00",
            "２０24-07-20T12:00:00Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        for value in [
            json!(1_721_476_800_000_i64),
            json!(-1),
            json!(i64::MAX),
            json!(1.5),
            json!(null),
            json!([]),
        ] {
            assert_eq!(moment(&value), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", almost in "[0-9T :.+Z-]{0,40}") {
            let _ = (read(&text), read(&almost));
        }
    }
}
