//! Numbers as ECMAScript writes them (RFC 8785, section 3.2.2.3).

use super::{CanonicalError, MAX_INTEGER};

/// From here on ECMAScript writes an exponent, so that the text is no integer literal any more.
pub(super) const FIRST_WITH_EXPONENT: f64 = 1e21;

pub(super) fn write_u64(out: &mut Vec<u8>, value: u64) -> Result<(), CanonicalError> {
    if value > MAX_INTEGER {
        return Err(CanonicalError::UnsafeInteger);
    }
    write_digits(out, value);
    Ok(())
}

pub(super) fn write_i64(out: &mut Vec<u8>, value: i64) -> Result<(), CanonicalError> {
    if value.unsigned_abs() > MAX_INTEGER {
        return Err(CanonicalError::UnsafeInteger);
    }
    if value < 0 {
        out.push(b'-');
    }
    write_digits(out, value.unsigned_abs());
    Ok(())
}

pub(super) fn write_f64(out: &mut Vec<u8>, value: f64) -> Result<(), CanonicalError> {
    if !value.is_finite() {
        return Err(CanonicalError::NotFinite);
    }
    if value.abs() > MAX_INTEGER as f64 && value.abs() < FIRST_WITH_EXPONENT {
        return Err(CanonicalError::UnsafeInteger);
    }
    out.extend_from_slice(ecmascript(&mut ryu_js::Buffer::new(), value).as_bytes());
    Ok(())
}

/// ECMAScript's text of a finite double, also of those refused above.
pub(super) fn ecmascript(buffer: &mut ryu_js::Buffer, value: f64) -> &str {
    buffer.format_finite(value)
}

fn write_digits(out: &mut Vec<u8>, mut value: u64) {
    // u64::MAX has 20 digits.
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}
