//! Shell command lines, read and graded: what a line comes to is what the strictest of its parts comes to.
//!
//! A line is parsed into its parts (`parse`, `word`), whatever stands around them: pipes, branches,
//! substitutions, here-documents, shells in shells. Each part is graded by the table of known programs
//! (`programs`), by what its options and paths say (`rules`, `paths`), and by what it redirects. What is not
//! known is held for a human: a program that nobody graded, a name that is only made when the line runs, a text
//! that cannot be parsed. Nothing is run, looked at or expanded here; where links lead is for
//! [`crate::protect`], and what a program does once it runs is for the operating system to contain.

mod arithmetic;
mod characters;
mod expand;
mod grade;
#[cfg(test)]
mod laws;
mod page;
mod parse;
mod paths;
mod programs;
mod rules;
mod simple;
mod syntax;
#[cfg(test)]
mod tests;
mod variables;
mod word;

use lodestar_core::ladder::Rung;
use lodestar_core::name::Excerpt;

use grade::Grader;
pub use page::reference_page;

/// Longest line that is read, in bytes: nobody looks through a longer one.
pub const MAX_LEN: usize = 64 * 1024;

/// Deepest nesting that is read, of syntax and of shells that run shells.
pub const MAX_DEPTH: usize = 40;

/// How a part that is only known when the line runs is shown in [`Part::words`].
pub const DYNAMIC: &str = "${…}";

/// What a command line comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The strictest rung of its parts.
    pub rung: Rung,
    /// Which part it is and why, in one sentence.
    pub reason: String,
    /// The commands in it, also those inside others.
    pub parts: Vec<Part>,
    /// Files that it writes by redirection or by programs that are known to write them, as spelt, where that
    /// is known beforehand.
    pub writes: Vec<String>,
    /// Files that it reads, likewise.
    pub reads: Vec<String>,
}

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The program and its arguments without their quotes; [`DYNAMIC`] stands for what is only known when the
    /// line runs.
    pub words: Vec<String>,
    /// Its rung.
    pub rung: Rung,
    /// Why.
    pub reason: String,
}

/// Reads a line. A path counts as outside the project if it is absolute, begins at a home, or climbs.
pub fn read(line: &str) -> Reading {
    read_below(line, None)
}

/// Reads a line that runs in a project: absolute paths below its root are inside it.
pub fn read_in(line: &str, root: &str) -> Reading {
    read_below(line, Some(root))
}

/// Reads a line that runs in a folder of a project, or in one of several where nobody can tell in which: what is
/// named from there is inside only if it is inside from each of them. Root and folders are absolute.
pub fn read_from(line: &str, root: &str, folders: &[&str]) -> Reading {
    let mut grader = Grader::new(Some(root));
    if let Some((first, others)) = folders.split_first() {
        grader.places.current = vec![(*first).to_owned()];
        for folder in others {
            grader.enter(folder);
        }
    }
    read_with(grader, line)
}

/// How much a tool that is no shell reads of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The file.
    File,
    /// Whatever lies below.
    Below,
}

/// How a path is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelt {
    /// As it is.
    Exactly,
    /// As a pattern, which counts as whatever it could match.
    AsPattern,
}

/// What reading a path comes to, and why, by the measure that the commands of a line are held against: a file
/// with credentials in it is one whoever reads it. Nothing is followed.
pub fn judge_path(path: &str, root: &str, reach: Reach, spelt: Spelt) -> (Rung, String) {
    let to = match reach {
        Reach::File => paths::Use::Reads,
        Reach::Below => paths::Use::ReadsBelow,
    };
    let mut grade = grade::Grade::new(Rung::L0, "it is not known to hold anything secret");
    let places = Grader::new(Some(root)).places;
    places.judge(path, to, spelt == Spelt::AsPattern, &mut grade);
    (grade.rung, grade.reason)
}

fn read_below(line: &str, root: Option<&str>) -> Reading {
    read_with(Grader::new(root), line)
}

fn read_with(mut grader: Grader, line: &str) -> Reading {
    if let Some((c, what)) = line.chars().find_map(|c| Some((c, characters::hidden(c)?))) {
        let shown = Excerpt::of(c.encode_utf8(&mut [0; 4]));
        grader.hold(format!("the line holds {what}, `{shown}`"));
    }
    grader.line(line);
    grader.finish()
}
