//! The gateway under load: heartbeats of many devices, and one large run.

mod beats;
mod bundle;

use crate::Figure;

pub(crate) fn measure() -> Result<Vec<Figure>, String> {
    let mut figures = beats::measure()?;
    figures.extend(bundle::measure()?);
    Ok(figures)
}

/// A runtime as a service has it: a thread for each processor.
fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().map_err(|e| e.to_string())
}
