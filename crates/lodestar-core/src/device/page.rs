//! The device ladder as a page of the reference, in Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use super::table::RULES;
use super::{DeviceLevel, DeviceSettings, RefusalReason, levels, rows};

/// The device ladder as a page of the reference, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Device ladder\n\n\
         How far a device is trusted, what moves it, and who may. This page is generated from the table that \
         the gateway looks moves up in; a move that it does not have is refused. Times are the server's.\n\n\
         ## Levels\n\n\
         | level | meaning | set by | heartbeats | attestations | permanent |\n|---|---|---|---|---|---|\n",
    );
    let taken = |taken| if taken { "taken" } else { "refused" };
    for spec in levels() {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            spec.level,
            spec.meaning,
            spec.set_by,
            taken(spec.heartbeats),
            taken(spec.attests),
            if spec.permanent { "yes" } else { "no" },
        );
    }
    page.push_str("\n## Moves\n\n| event | by | from | to | when |\n|---|---|---|---|---|\n");
    for rule in &RULES {
        for &to in DeviceLevel::ALL {
            let from: Vec<_> = rows()
                .filter(|row| row.event == rule.event && row.to == to)
                .map(|row| row.from.map_or("nothing", DeviceLevel::as_str))
                .collect();
            if !from.is_empty() {
                let _ = writeln!(
                    page,
                    "| {} | {} | {} | {to} | {} |",
                    rule.event,
                    rule.actor,
                    from.join(", "),
                    rule.when
                );
            }
        }
    }
    page.push_str(
        "\nThe device itself moves nothing: its token heartbeats, registers runs and attests.\n\n\
         ## Refusals\n\n| code | meaning |\n|---|---|\n",
    );
    for &reason in RefusalReason::ALL {
        let _ = writeln!(page, "| `{reason}` | {} |", reason.phrase());
    }
    let settings = DeviceSettings::default();
    page.push_str("\n## Limits\n\n| setting | default |\n|---|---|\n");
    let mut lines: Vec<_> = settings
        .times()
        .map(|(name, time)| (name, in_words(time)))
        .chain(
            settings
                .counts()
                .map(|(name, count)| (name, count.to_string())),
        )
        .collect();
    lines.sort();
    for (name, value) in lines {
        let _ = writeln!(page, "| `{name}` | {value} |");
    }
    page
}

/// Seconds, and what they are in a larger unit.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    match units.iter().find(|(unit, _)| seconds.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{seconds} ({} {name})", seconds / unit),
        None => seconds.to_string(),
    }
}
