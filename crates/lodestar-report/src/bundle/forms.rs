//! A report by its digests, so that whoever has one in hand can tell whether a bundle is of it.

use std::io::{self, Write};

use lodestar_core::digest::{Digest, Hasher};
use serde::{Deserialize, Serialize};

use crate::model::Report;
use crate::{html, json, markdown};

/// The SHA-256 of a report in each of its forms, byte for byte as `lodestar report` writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    /// Of the HTML page.
    pub html: Digest,
    /// Of the JSON.
    pub json: Digest,
    /// Of the Markdown.
    pub md: Digest,
}

impl Forms {
    /// Of this report.
    pub(super) fn of(report: &Report) -> io::Result<Self> {
        Ok(Self {
            html: digest(|out| html::report_in(report, out))?,
            json: digest(|out| writeln!(out, "{}", json::pretty(report)))?,
            md: digest(|out| markdown::report_in(report, out))?,
        })
    }

    /// Which form has this digest, by its name.
    pub fn which(&self, digest: Digest) -> Option<&'static str> {
        let forms = [(self.html, "html"), (self.json, "json"), (self.md, "md")];
        let found = forms.into_iter().find(|(form, _)| *form == digest);
        found.map(|(_, name)| name)
    }
}

fn digest(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Digest> {
    let mut hashing = Hashing(Hasher::new());
    write(&mut hashing)?;
    Ok(hashing.0.finish())
}

struct Hashing(Hasher);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
