//! Laws of shell command lines.

use lodestar_core::ladder::Rung;
use lodestar_kernel::command::{Reading, read};

/// Whether a line is read and needs nobody's word: most seeds that are bad are held or denied.
pub fn runs_unasked(data: &[u8]) -> bool {
    str::from_utf8(data).is_ok_and(|line| read(line).rung < Rung::L4)
}

/// A line is as strict as its strictest part, says why in words that are inert, and is no laxer inside another
/// shell or beside another command.
pub fn shell_command(data: &[u8]) {
    let line = String::from_utf8_lossy(data);
    let reading = read(&line);
    let Reading {
        rung,
        reason,
        parts,
        ..
    } = &reading;
    assert!(!reason.is_empty() && reason.len() < 1000, "{reason}");
    assert!(!reason.contains(char::is_control), "{reason}");
    assert_eq!(
        parts.iter().map(|part| part.rung).max().unwrap_or(Rung::L0),
        *rung
    );
    let quoted = line.replace('\'', r"'\''");
    let nested = read(&format!("sh -c '{quoted}'")).rung;
    assert!(nested >= *rung, "{nested} in a shell, {rung} by itself");
    let beside = read(&format!("true\n{line}")).rung;
    assert!(beside >= *rung, "{beside} beside another, {rung} by itself");
}
