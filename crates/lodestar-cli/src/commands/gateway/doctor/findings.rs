//! What the doctor found, and how it says so.

use std::io::Write as _;

use serde::Serialize;
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::inert;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Attention,
    Broken,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    code: &'static str,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    fn add(
        &mut self,
        check: &'static str,
        verdict: Verdict,
        code: &'static str,
        what: impl Into<String>,
    ) -> &mut Finding {
        self.0.push(Finding {
            check,
            verdict,
            code,
            what: what.into(),
            remedy: None,
        });
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    pub(super) fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.add(check, Verdict::Ok, "ok", what);
    }

    pub(super) fn broken(
        &mut self,
        check: &'static str,
        code: &'static str,
        what: impl Into<String>,
        remedy: &'static str,
    ) {
        self.add(check, Verdict::Broken, code, what).remedy = Some(remedy);
    }

    pub(super) fn attention(
        &mut self,
        check: &'static str,
        code: &'static str,
        what: impl Into<String>,
        remedy: &'static str,
    ) {
        self.add(check, Verdict::Attention, code, what).remedy = Some(remedy);
    }

    /// Says it, and whether something is broken.
    pub(super) fn print(&self, app: &mut App) -> Result<Exit, Failure> {
        let has = |verdict| self.0.iter().any(|it| it.verdict == verdict);
        let exit = match has(Verdict::Broken) {
            true => Exit::CheckFailed,
            false => Exit::Done,
        };
        if app.json {
            app.out
                .json(&json!({"findings": self.0, "ok": exit == Exit::Done}))?;
            return Ok(exit);
        }
        let paint = app.out.paint;
        for one in &self.0 {
            let mark = match one.verdict {
                Verdict::Ok => paint.good("✓"),
                Verdict::Attention => paint.warn("!"),
                Verdict::Broken => paint.bad("✗"),
            };
            let code = match one.verdict {
                Verdict::Ok => String::new(),
                _ => format!(" ({})", one.code),
            };
            writeln!(
                app.out,
                "{mark} {:<8} {}{code}",
                one.check,
                inert::whole(&one.what)
            )?;
            if let Some(remedy) = one.remedy {
                writeln!(app.out, "    {}", paint.dim(remedy))?;
            }
        }
        Ok(exit)
    }
}
