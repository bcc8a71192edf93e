//! The entries, by what programs work on.

mod builds;
mod compares;
mod contents;
mod destroys;
mod files;
mod interpreters;
mod names;
mod outside;
mod searches;
mod shell;
mod subcommands;
mod text;
mod wrappers;

use super::{Program, Wrapper};

const NO_OPTIONS: Wrapper = Wrapper {
    valued: &[],
    plain: &[],
    operands: 0,
    text: false,
};

static TABLE: &[&[Program]] = &[
    text::TEXT,
    names::NAMES,
    contents::CONTENTS,
    compares::COMPARES,
    searches::SEARCHES,
    shell::SHELL,
    wrappers::WRAPPERS,
    interpreters::INTERPRETERS,
    files::FILES,
    builds::BUILDS,
    destroys::DESTROYS,
    outside::OUTSIDE,
];

/// Every graded program.
pub(in crate::command) fn programs() -> impl Iterator<Item = &'static Program> {
    TABLE.iter().flat_map(|part| part.iter())
}
