//! The executable threat model: probes, each with a contrast run that shows it can fail.
#![deny(missing_docs)]
