//! `lodestar log verify --bundle`: do the proofs of a report hold, here, where its log is not?

use std::fs::File;
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::Path;

use lodestar_core::digest::{Digest, Hasher};
use lodestar_log::Trust;
use lodestar_report::bundle::{Checked, check};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::output::Out;
use crate::trust;
use crate::{inert, words};

pub(super) fn run(
    path: &Path,
    report: Option<&Path>,
    trust: &Trust,
    app: &mut App,
) -> Result<Exit, Failure> {
    let file = File::open(path).map_err(Failure::io(path))?;
    let checked = check(&mut BufReader::new(file), trust).map_err(Failure::io(path))?;
    let compared = match report {
        Some(file) => {
            let digest = digest(file).map_err(Failure::io(file))?;
            let form = checked.report.and_then(|forms| forms.which(digest));
            Some(InHand { file, form })
        }
        None => None,
    };
    let holds = checked.holds() && compared.as_ref().is_none_or(|one| one.form.is_some());
    if app.json {
        let form = compared.as_ref().map(|one| one.form);
        app.out
            .json(&json!({"holds": holds, "report": form, "bundle": checked}))?;
    } else {
        print(&checked, compared.as_ref(), &mut app.out)?;
    }
    Ok(match holds {
        true => Exit::Done,
        false => Exit::CheckFailed,
    })
}

/// A report that somebody holds against the bundle.
struct InHand<'a> {
    file: &'a Path,
    /// Which form of the bundle's report it is; none where it is another.
    form: Option<&'static str>,
}

fn digest(path: &Path) -> io::Result<Digest> {
    let (mut file, mut hasher) = (File::open(path)?, Hasher::new());
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&piece[..n]),
        }
    }
}

fn print(checked: &Checked, compared: Option<&InHand<'_>>, out: &mut Out) -> Result<(), Failure> {
    let paint = out.paint;
    for fault in &checked.problems {
        let mark = paint.bad("✗");
        writeln!(out, "{mark} line {}: {}", fault.line, fault.problem)?;
    }
    let is_of_it = compared.is_none_or(|one| one.form.is_some());
    if let Some(InHand { file, form }) = compared {
        let file = inert::path(file);
        let (mark, is) = match form {
            Some(_) => (paint.dim("·"), "is"),
            None => (paint.bad("✗"), "is not"),
        };
        writeln!(
            out,
            "{mark} `{file}` {is} the report that the bundle was made with"
        )?;
    } else if let Some(forms) = &checked.report {
        writeln!(
            out,
            "{} made with the report of SHA-256 {} (md), {} (html), {} (json); --report FILE compares",
            paint.dim("·"),
            words::short(&forms.md),
            words::short(&forms.html),
            words::short(&forms.json),
        )?;
    }
    if !checked.withheld.is_empty() {
        let some: Vec<String> = checked
            .withheld
            .iter()
            .take(20)
            .map(|(seq, level)| format!("#{seq} ({level})"))
            .collect();
        let rest = match checked.withheld.len().saturating_sub(some.len()) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let line = format!(
            "withheld as above the ceiling, their heads are proven: {}{rest}",
            some.join(", ")
        );
        writeln!(out, "{} {line}", paint.dim("·"))?;
    }
    if !checked.redacted.is_empty() {
        let seqs: Vec<String> = checked
            .redacted
            .iter()
            .map(|seq| format!("#{seq}"))
            .collect();
        writeln!(
            out,
            "{} redacted in the log: {}",
            paint.dim("·"),
            seqs.join(", ")
        )?;
    }
    for remark in &checked.remarks {
        writeln!(out, "{} {}", paint.dim("·"), inert::whole(remark))?;
    }
    let of = match (&checked.project, &checked.session) {
        (Some(project), Some(session)) => format!("session {session} of project {project}"),
        _ => "a session".to_owned(),
    };
    let events = words::count(checked.events, "event");
    let line = match (checked.holds() && is_of_it, checked.size, checked.closed_at) {
        (true, Some(size), closed) => {
            let closed = closed.map(|at| format!(", closed {}", words::seconds(at)));
            paint.good(format!(
                "✓ {of}: {events} that its report cites, proven under the signed checkpoint of {}{}",
                words::number(size),
                closed.unwrap_or_default()
            ))
        }
        _ => paint.bad(format!(
            "✗ {of}: {}",
            words::count(
                checked.problems.len() as u64 + u64::from(!is_of_it),
                "problem"
            )
        )),
    };
    writeln!(out, "{line}")?;
    let mut problems = checked.problems.iter();
    if problems.any(|fault| trust::is_unknown_key(&fault.problem)) {
        writeln!(out, "{} {}", paint.dim("help:"), trust::GIVE_KEY)?;
    }
    Ok(())
}
