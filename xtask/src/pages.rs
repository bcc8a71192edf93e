//! Pages of the reference that come from the code: written here, checked in, and checked to be
//! up to date, so that they can be read without building anything.

use std::fs;

use lodestar_core::{chain, contract, device, event, execution};

use crate::shell::{Failure, because, workspace};

struct Page {
    path: &'static str,
    text: fn() -> String,
}

const PAGES: &[Page] = &[
    Page {
        path: "docs/reference/device-ladder.md",
        text: device::reference_page,
    },
    Page {
        path: "docs/reference/events.md",
        text: event::reference_page,
    },
    Page {
        path: "docs/reference/execution-ladder.md",
        text: execution::reference_page,
    },
    Page {
        path: "docs/reference/ladder.md",
        text: contract::reference_page,
    },
    Page {
        path: "docs/reference/transitions.md",
        text: chain::transition::reference_page,
    },
];

/// `cargo xtask docs`
pub(crate) fn write() -> Result<(), Failure> {
    for Page { path, text } in PAGES {
        fs::write(workspace().join(path), text())
            .map_err(|e| because(format!("cannot write `{path}`: {e}")))?;
        eprintln!("wrote {path}");
    }
    Ok(())
}

/// `cargo xtask docs --check`
pub(crate) fn check() -> Result<(), Failure> {
    for Page { path, text } in PAGES {
        let there = fs::read_to_string(workspace().join(path)).unwrap_or_default();
        let fresh = text();
        if there == fresh {
            continue;
        }
        let line = there
            .lines()
            .zip(fresh.lines())
            .take_while(|(a, b)| a == b)
            .count()
            + 1;
        return Err(because(format!(
            "`{path}` is out of date from line {line} on; run `cargo xtask docs`"
        )));
    }
    eprintln!("\nthe generated pages are up to date");
    Ok(())
}
