//! What holds for every result, whoever wrote it.

pub(super) mod fixture;
