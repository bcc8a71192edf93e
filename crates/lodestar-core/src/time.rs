//! Moments in UTC with microsecond precision, and their one text form.
//!
//! The text is RFC 3339 in a fixed width of 27 bytes, `2026-11-15T21:50:00.123456Z`: comparing two
//! texts byte by byte compares the moments. Core has no clock; the caller passes the time in.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Length of the text form in bytes.
pub const TEXT_LEN: usize = 27;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A moment between the years 1970 and 9999, in whole microseconds since the Unix epoch.
///
/// Leap seconds do not exist here: `23:59:60` is refused, as Unix time cannot express it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Why a value is not a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// Outside the years 1970 to 9999.
    #[error("the time lies outside the years 1970 to 9999")]
    OutOfRange,
    /// Not of the form `YYYY-MM-DDThh:mm:ss.ffffffZ`.
    #[error("a time is written as `YYYY-MM-DDThh:mm:ss.ffffffZ`")]
    Form,
    /// Of the right form, but no such day or time of day exists.
    #[error("the calendar has no such day or the day no such time")]
    NotInCalendar,
}

impl Timestamp {
    /// `1970-01-01T00:00:00.000000Z`
    pub const MIN: Self = Self(0);
    /// `9999-12-31T23:59:59.999999Z`
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// The moment so many microseconds after the Unix epoch.
    pub const fn from_unix_micros(micros: i64) -> Result<Self, TimeError> {
        if micros < Self::MIN.0 || micros > Self::MAX.0 {
            return Err(TimeError::OutOfRange);
        }
        Ok(Self(micros))
    }

    /// Microseconds since the Unix epoch.
    pub const fn unix_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch.
    pub const fn unix_seconds(self) -> u64 {
        // INVARIANT: never negative, the constructors refuse it.
        (self.0 / MICROS_PER_SECOND) as u64
    }

    /// The moment `duration` later, with the duration cut to microseconds; `None` beyond [`Self::MAX`].
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let micros = i64::try_from(duration.as_micros()).ok()?;
        Self::from_unix_micros(self.0.checked_add(micros)?).ok()
    }

    /// The time from `earlier` to `self`; `None` if `earlier` is the later one.
    pub fn since(self, earlier: Self) -> Option<Duration> {
        u64::try_from(self.0 - earlier.0)
            .ok()
            .map(Duration::from_micros)
    }

    /// Reads the text form; no other spelling of the same moment is accepted.
    pub fn parse(text: &[u8]) -> Result<Self, TimeError> {
        let text: &[u8; TEXT_LEN] = text.try_into().map_err(|_| TimeError::Form)?;
        let separators = [
            text[4], text[7], text[10], text[13], text[16], text[19], text[26],
        ];
        if separators != *b"--T::.Z" {
            return Err(TimeError::Form);
        }
        let mut digits = Digits { all_digits: true };
        let year = digits.read(&text[..4]);
        let month = digits.read(&text[5..7]);
        let day = digits.read(&text[8..10]);
        let hour = digits.read(&text[11..13]);
        let minute = digits.read(&text[14..16]);
        let second = digits.read(&text[17..19]);
        let micros = digits.read(&text[20..26]);
        if !digits.all_digits {
            return Err(TimeError::Form);
        }
        if year < 1970 {
            return Err(TimeError::OutOfRange);
        }
        let in_calendar = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !in_calendar {
            return Err(TimeError::NotInCalendar);
        }
        let seconds =
            days_from_date(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
        Ok(Self(seconds * MICROS_PER_SECOND + micros))
    }

    /// Appends the text form to `out`.
    pub fn write_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_text());
    }

    fn to_text(self) -> [u8; TEXT_LEN] {
        let (seconds, micros) = (self.0 / MICROS_PER_SECOND, self.0 % MICROS_PER_SECOND);
        let (days, second_of_day) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
        let (year, month, day) = date_from_days(days);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        put_pair(&mut text, 0, year / 100);
        put_pair(&mut text, 2, year % 100);
        put_pair(&mut text, 5, month);
        put_pair(&mut text, 8, day);
        put_pair(&mut text, 11, second_of_day / 3600);
        put_pair(&mut text, 14, second_of_day / 60 % 60);
        put_pair(&mut text, 17, second_of_day % 60);
        put_pair(&mut text, 20, micros / 10_000);
        put_pair(&mut text, 22, micros / 100 % 100);
        put_pair(&mut text, 24, micros % 100);
        text
    }
}

/// Reads runs of digits and remembers whether anything else was among them, to be asked once.
struct Digits {
    all_digits: bool,
}

impl Digits {
    fn read(&mut self, text: &[u8]) -> i64 {
        let mut value = 0;
        for &byte in text {
            let digit = byte.wrapping_sub(b'0');
            self.all_digits &= digit < 10;
            value = value * 10 + i64::from(digit);
        }
        value
    }
}

fn put_pair(text: &mut [u8; TEXT_LEN], at: usize, value: i64) {
    // INVARIANT: every caller passes a value below 100.
    let value = value as u8;
    text[at] = b'0' + value / 10;
    text[at + 1] = b'0' + value % 10;
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

// Both directions count in years that start on 1 March: the leap day is then the last day of its
// year, and the months before it follow a fixed pattern of 153 days per five months.

const DAYS_PER_4_YEARS: i64 = 1461;
const DAYS_PER_400_YEARS: i64 = 146_097;
/// From 1 March of the year 0 to the Unix epoch.
const EPOCH_DAY: i64 = 719_468;

fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month_from_march) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let whole_years = 365 * year + year / 4 - year / 100 + year / 400;
    whole_years + (153 * month_from_march + 2) / 5 + day - 1 - EPOCH_DAY
}

fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAY;
    // Counting in quarter days makes the century and then the year fall out of one division each.
    let quarters = 4 * days + 3;
    let century = quarters / DAYS_PER_400_YEARS;
    let quarters_of_century = (quarters % DAYS_PER_400_YEARS) / 4 * 4 + 3;
    let year_of_century = quarters_of_century / DAYS_PER_4_YEARS;
    let day_of_year = quarters_of_century % DAYS_PER_4_YEARS / 4;
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let year = 100 * century + year_of_century;
    if month_from_march < 10 {
        (year, month_from_march + 3, day)
    } else {
        (year + 1, month_from_march - 9, day)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(ascii(&self.to_text()))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        Self::parse(text.as_bytes())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(ascii(&self.to_text()))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time of the form `YYYY-MM-DDThh:mm:ss.ffffffZ`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}

fn ascii(text: &[u8; TEXT_LEN]) -> &str {
    str::from_utf8(text).expect("digits and separators are ASCII")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn jiff_text(micros: i64) -> String {
        let moment = jiff::Timestamp::from_microsecond(micros).unwrap();
        format!("{moment:.6}")
    }

    #[test]
    fn the_limits_have_their_text() {
        assert_eq!(Timestamp::MIN.to_string(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999999Z");
        for out in [-1, i64::MIN, Timestamp::MAX.0 + 1, i64::MAX] {
            assert_eq!(Timestamp::from_unix_micros(out), Err(TimeError::OutOfRange));
        }
    }

    #[test]
    fn every_day_of_the_range_agrees_with_jiff() {
        let mut date = jiff::civil::date(1970, 1, 1);
        let last = Timestamp::MAX.0 / MICROS_PER_SECOND / SECONDS_PER_DAY;
        for days in 0..=last {
            let expected = (
                i64::from(date.year()),
                i64::from(date.month()),
                i64::from(date.day()),
            );
            assert_eq!(date_from_days(days), expected);
            assert_eq!(days_from_date(expected.0, expected.1, expected.2), days);
            if days < last {
                date = date.tomorrow().unwrap();
            }
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in [
            "",
            "2026-11-15",
            "2026-11-15T21:50:00Z",
            "2026-11-15T21:50:00.123Z",
            "2026-11-15T21:50:00.1234567Z",
            "2026-11-15t21:50:00.123456Z",
            "2026-11-15 21:50:00.123456Z",
            "2026-11-15T21:50:00.123456z",
            "2026-11-15T21:50:00,123456Z",
            "2026-11-15T21:50:00.123456+",
            "+026-11-15T21:50:00.123456Z",
            "2026-1 -15T21:50:00.123456Z",
            "2026-11-15T21:50:00.12345 Z",
            "２26-11-15T21:50:00.123456Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimeError::Form), "{text}");
        }
    }

    #[test]
    fn days_and_times_that_do_not_exist_are_refused() {
        for text in [
            "2026-00-15T21:50:00.123456Z",
            "2026-13-15T21:50:00.123456Z",
            "2026-11-00T21:50:00.123456Z",
            "2026-11-31T21:50:00.123456Z",
            "2026-02-29T21:50:00.123456Z",
            "2100-02-29T21:50:00.123456Z",
            "2026-11-15T24:00:00.000000Z",
            "2026-11-15T21:60:00.123456Z",
            "2016-12-31T23:59:60.000000Z",
        ] {
            assert_eq!(
                text.parse::<Timestamp>(),
                Err(TimeError::NotInCalendar),
                "{text}"
            );
        }
        assert_eq!(
            "1969-12-31T23:59:59.999999Z".parse::<Timestamp>(),
            Err(TimeError::OutOfRange)
        );
        assert!("2024-02-29T00:00:00.000000Z".parse::<Timestamp>().is_ok());
        assert!("2000-02-29T00:00:00.000000Z".parse::<Timestamp>().is_ok());
    }

    #[test]
    fn adding_stops_at_the_end_of_the_range() {
        let second = Duration::from_secs(1);
        let start = Timestamp::from_unix_micros(1).unwrap();
        assert_eq!(
            start.checked_add(second),
            Timestamp::from_unix_micros(1_000_001).ok()
        );
        assert_eq!(start.checked_add(Duration::from_nanos(999)), Some(start));
        assert_eq!(Timestamp::MAX.checked_add(Duration::from_micros(1)), None);
        assert_eq!(start.checked_add(Duration::MAX), None);
        assert_eq!(start.since(Timestamp::MIN), Some(Duration::from_micros(1)));
        assert_eq!(Timestamp::MIN.since(start), None);
    }

    proptest! {
        #[test]
        fn text_agrees_with_jiff_and_reads_back(micros in 0..=Timestamp::MAX.0) {
            let time = Timestamp::from_unix_micros(micros).unwrap();
            let text = time.to_string();
            prop_assert_eq!(text.len(), TEXT_LEN);
            prop_assert_eq!(&text, &jiff_text(micros));
            prop_assert_eq!(text.parse::<Timestamp>(), Ok(time));
            let mut out = vec![b'>'];
            time.write_to(&mut out);
            prop_assert_eq!(&out[1..], text.as_bytes());
            let json = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
        }

        #[test]
        fn texts_sort_like_moments(a in 0..=Timestamp::MAX.0, b in 0..=Timestamp::MAX.0) {
            let (a, b) = (Timestamp(a), Timestamp(b));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }

        #[test]
        fn what_parses_is_a_spelling_jiff_reads_alike(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-5][0-9]\\.[0-9]{6}Z"
        ) {
            let ours = text.parse::<Timestamp>().ok().map(Timestamp::unix_micros);
            let theirs = text
                .parse::<jiff::Timestamp>()
                .ok()
                .map(jiff::Timestamp::as_microsecond)
                .filter(|&micros| micros >= 0);
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn parsing_never_panics(bytes: Vec<u8>, exact: [u8; TEXT_LEN]) {
            let _ = Timestamp::parse(&bytes);
            let _ = Timestamp::parse(&exact);
        }
    }
}
