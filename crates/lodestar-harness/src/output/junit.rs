//! JUnit's XML, as continuous integration reads it.

use std::fmt::Write as _;

use crate::header::Pack;
use crate::runner::{RunReport, Status};

/// One suite for each pack, one case for each probe.
pub fn junit(report: &RunReport) -> String {
    let mut packs: Vec<&Pack> = report.probes.iter().map(|one| &one.header.pack).collect();
    packs.sort();
    packs.dedup();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"lodestar harness\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
        report.probes.len(),
        report.failed,
        report.errors,
        report.skipped
    );
    for pack in packs {
        suite(&mut out, report, pack);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(out: &mut String, report: &RunReport, pack: &Pack) {
    let of_pack: Vec<_> = report
        .probes
        .iter()
        .filter(|one| one.header.pack == *pack)
        .collect();
    let count = |status| of_pack.iter().filter(|one| one.status == status).count();
    let ms: u64 = of_pack.iter().map(|one| one.ms).sum();
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">",
        escaped(pack.as_str()),
        of_pack.len(),
        count(Status::Fail),
        count(Status::Error),
        count(Status::Skip),
        seconds(ms)
    );
    for result in of_pack {
        let _ = write!(
            out,
            "    <testcase classname=\"{}.{}\" name=\"{}\" time=\"{}\"",
            escaped(pack.as_str()),
            result.header.section,
            escaped(&result.header.name),
            seconds(result.ms)
        );
        let reason = escaped(result.reason.as_deref().unwrap_or_default());
        let _ = match result.status {
            Status::Pass => writeln!(out, "/>"),
            Status::Fail => writeln!(out, "><failure message=\"{reason}\"/></testcase>"),
            Status::Error => writeln!(out, "><error message=\"{reason}\"/></testcase>"),
            Status::Skip => writeln!(out, "><skipped message=\"{reason}\"/></testcase>"),
        };
    }
    out.push_str("  </testsuite>\n");
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// A text as an attribute. XML has no way to write most control characters at all: they become marks.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_in_a_reason_ends_its_attribute() {
        let hostile = "\" x=\"<&>\u{0}\u{1b}[31m\n";
        let text = escaped(hostile);
        assert!(
            !text.contains(['"', '<', '\u{0}', '\u{1b}', '\n']),
            "{text}"
        );
        assert!(text.ends_with("&#10;"), "{text}");
    }
}
