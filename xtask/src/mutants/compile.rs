//! Puts the mutants into the copy and compiles it: once for all of them.
//!
//! A mutant that does not compile is found by the place of its error, taken out, and not counted.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::modules::{MODULES, PACKAGES};
use super::points::{self, Mutant};
use super::rewrite::{Around, Id, innermost, nearby, switch};
use super::tree::Tree;
use crate::shell::{self, Failure, because, cargo};

/// A mutant with its place in the workspace.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) module: &'static str,
    pub(super) file: String,
    pub(super) mutant: Mutant,
}

/// A program of tests.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) package: PathBuf,
    pub(super) executable: PathBuf,
    /// `lodestar-core lib`, for people.
    pub(super) name: String,
}

impl Program {
    /// Another one after each time that it was linked.
    pub(super) fn stamp(&self) -> String {
        let file = std::fs::metadata(&self.executable);
        let linked = file.and_then(|file| Ok((file.len(), file.modified()?)));
        format!("{} {linked:?}", self.executable.display())
    }
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) mutants: Vec<Placed>,
    pub(super) not_viable: BTreeSet<Id>,
    pub(super) programs: Vec<Program>,
}

/// The sources with mutants in them.
struct Sources {
    files: Vec<(&'static str, String, String)>,
    /// As they stand in the copy.
    texts: BTreeMap<String, String>,
    mutants: Vec<Placed>,
}

/// Compiles the tests with the mutants of all modules.
pub(super) fn compile(all: &[String], tree: &Tree) -> Result<Compiled, Failure> {
    let mut sources = Sources::read(all)?;
    sources.find(&BTreeSet::new())?;
    let known = tree.notes.join(NOT_VIABLE);
    let mut dropped = sources.dropped_before(&known);
    let marks = sources.marks();
    loop {
        sources.put_in(tree, &dropped)?;
        eprintln!(
            "compiling {} mutants, {} left out",
            sources.mutants.len() - dropped.len(),
            dropped.len()
        );
        match build(tree)? {
            Built::Programs(programs) => {
                sources.note_dropped(&known, marks, &dropped)?;
                return Ok(Compiled {
                    mutants: sources.mutants,
                    not_viable: dropped,
                    programs,
                });
            }
            Built::Errors(errors) => {
                let before = dropped.len();
                for error in &errors {
                    dropped.extend(sources.causes(error));
                }
                if dropped.len() == before {
                    let said: Vec<_> = errors.iter().filter_map(rendered).collect();
                    return Err(because(format!(
                        "the copy with mutants does not compile, and no mutant is at fault:\n{}",
                        said.join("\n")
                    )));
                }
            }
        }
    }
}

/// The mutants that did not compile, by file.
const NOT_VIABLE: &str = "not-viable.json";

/// What was dropped of a file: its mark, and the numbers counted from the file's first mutant.
type Dropped = BTreeMap<String, (u64, Vec<Id>)>;

impl Sources {
    /// For each file, what changes when the file or the way of changing it does, and its first mutant.
    fn marks(&self) -> BTreeMap<String, (u64, Id)> {
        let mut marks = BTreeMap::new();
        for (_, file, source) in &self.files {
            let mut hasher = DefaultHasher::new();
            source.hash(&mut hasher);
            let of_file = self.mutants.iter().filter(|placed| placed.file == *file);
            let first = of_file.clone().next().map_or(0, |placed| placed.mutant.id);
            for placed in of_file {
                placed.mutant.change.hash(&mut hasher);
            }
            marks.insert(file.clone(), (hasher.finish(), first));
        }
        marks
    }

    /// What an earlier run dropped from files that are the same still.
    fn dropped_before(&self, known: &Path) -> BTreeSet<Id> {
        let noted = std::fs::read(known).unwrap_or_default();
        let noted: Dropped = serde_json::from_slice(&noted).unwrap_or_default();
        let marks = self.marks();
        let same = noted.into_iter().filter_map(|(file, (mark, ids))| {
            let (now, first) = marks.get(&file)?;
            (mark == *now).then_some((*first, ids))
        });
        same.flat_map(|(first, ids)| ids.into_iter().map(move |id| first + id))
            .collect()
    }

    fn note_dropped(
        &self,
        known: &Path,
        marks: BTreeMap<String, (u64, Id)>,
        dropped: &BTreeSet<Id>,
    ) -> Result<(), Failure> {
        let of_file = |(file, (mark, first)): (String, (u64, Id))| {
            let mutants = self.mutants.iter().filter(|placed| placed.file == file);
            let ids = mutants.map(|placed| placed.mutant.id);
            let ids = ids.filter(|id| dropped.contains(id)).map(|id| id - first);
            let ids: Vec<Id> = ids.collect();
            (file, (mark, ids))
        };
        let noted: Dropped = marks.into_iter().map(of_file).collect();
        let bytes = serde_json::to_vec(&noted).expect("numbers and names are JSON");
        std::fs::write(known, bytes)
            .map_err(|e| because(format!("cannot write `{}`: {e}", known.display())))
    }

    fn read(all: &[String]) -> Result<Self, Failure> {
        let mut files = Vec::new();
        for module in MODULES {
            for file in module.files(all)? {
                let source = std::fs::read_to_string(shell::workspace().join(file))
                    .map_err(|e| because(format!("cannot read `{file}`: {e}")))?;
                files.push((module.name, file.to_owned(), source));
            }
        }
        Ok(Self {
            files,
            texts: BTreeMap::new(),
            mutants: Vec::new(),
        })
    }

    /// Finds all mutants and puts those into the texts that are not dropped.
    fn find(&mut self, dropped: &BTreeSet<Id>) -> Result<(), Failure> {
        self.mutants.clear();
        let mut first = 1;
        for (module, file, source) in &self.files {
            let rewritten = points::rewrite(source, first, dropped)
                .map_err(|e| because(format!("`{file}` does not parse: {e}")))?;
            first += Id::try_from(rewritten.mutants.len()).expect("mutants are few");
            self.mutants
                .extend(rewritten.mutants.into_iter().map(|mutant| Placed {
                    module,
                    file: file.clone(),
                    mutant,
                }));
            self.texts.insert(file.clone(), rewritten.text);
        }
        Ok(())
    }

    /// Writes the sources with their mutants, and the switch of each crate.
    fn put_in(&mut self, tree: &Tree, dropped: &BTreeSet<Id>) -> Result<(), Failure> {
        self.find(dropped)?;
        for package in PACKAGES {
            let file = format!("crates/{package}/src/lib.rs");
            let source = std::fs::read_to_string(shell::workspace().join(&file))
                .map_err(|e| because(format!("cannot read `{file}`: {e}")))?;
            let allowed = "#![allow(arithmetic_overflow, unconditional_panic, warnings)]\n";
            // One size for every selection of modules, so that a switch is compiled once.
            let text = format!("{allowed}{source}{}", switch(self.mutants.len().max(9_999)));
            self.texts.insert(file, text);
        }
        for (file, text) in &self.texts {
            tree.write(file, text.as_bytes())
                .map_err(|e| because(format!("cannot write `{file}` of the copy: {e}")))?;
        }
        Ok(())
    }

    /// The mutants that an error comes from.
    fn causes(&self, error: &Value) -> Vec<Id> {
        let spans: Vec<_> = spans(error)
            .into_iter()
            .filter_map(|span| Some((self.texts.get(span.file)?, span)))
            .collect();
        let inside = |primary: bool| {
            let mut of_kind = spans
                .iter()
                .filter(move |(_, span)| span.primary == primary);
            of_kind.find_map(|(text, span)| innermost(text, &span.range))
        };
        let causes = match inside(true).or_else(|| inside(false)) {
            Some(cause) => vec![cause],
            None => spans
                .iter()
                .filter(|(_, span)| span.primary)
                .flat_map(|(text, span)| nearby(text, &span.range))
                .collect(),
        };
        causes
            .into_iter()
            .flat_map(|cause| self.at(cause))
            .collect()
    }

    fn at(&self, around: Around) -> Vec<Id> {
        match around {
            Around::Alternative(id) => vec![id],
            Around::Point(point) => {
                let mutants = self.mutants.iter().map(|placed| &placed.mutant);
                let of_point = mutants.filter(|mutant| mutant.point == point);
                of_point.map(|mutant| mutant.id).collect()
            }
        }
    }
}

struct ErrorSpan<'a> {
    file: &'a str,
    range: std::ops::Range<usize>,
    primary: bool,
}

fn spans(error: &Value) -> Vec<ErrorSpan<'_>> {
    let spans = error["spans"].as_array().into_iter().flatten();
    let of = |span: &'_ Value| {
        let start = usize::try_from(span["byte_start"].as_u64()?).ok()?;
        let end = usize::try_from(span["byte_end"].as_u64()?).ok()?;
        Some((start..end, span["is_primary"].as_bool()?))
    };
    spans
        .filter_map(|span| {
            let (range, primary) = of(span)?;
            Some(ErrorSpan {
                file: span["file_name"].as_str()?,
                range,
                primary,
            })
        })
        .collect()
}

fn rendered(error: &Value) -> Option<&str> {
    error["rendered"].as_str()
}

enum Built {
    Programs(Vec<Program>),
    /// The compiler's messages.
    Errors(Vec<Value>),
}

fn build(tree: &Tree) -> Result<Built, Failure> {
    let mut command = cargo(&["build", "--tests", "--keep-going", "--message-format=json"]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    command
        .current_dir(&tree.root)
        .env("CARGO_TARGET_DIR", &tree.build);
    let output = command
        .output()
        .map_err(|e| because(format!("cannot run `{}`: {e}", shell::text(&command))))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if output.status.success() {
        return Ok(Built::Programs(
            messages.iter().filter_map(program).collect(),
        ));
    }
    let errors: Vec<Value> = messages
        .into_iter()
        .filter(|message| message["reason"] == "compiler-message")
        .map(|mut message| message["message"].take())
        .filter(|message| message["level"] == "error")
        .collect();
    match errors.is_empty() {
        false => Ok(Built::Errors(errors)),
        true => Err(because(format!(
            "`{}` failed: {}",
            shell::text(&command),
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

fn program(message: &Value) -> Option<Program> {
    if message["profile"]["test"] != true {
        return None;
    }
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    let folder = package.file_name()?.to_string_lossy();
    let kind = message["target"]["kind"][0].as_str()?;
    Some(Program {
        executable: message["executable"].as_str()?.into(),
        name: format!("{folder} {kind}"),
        package: package.to_owned(),
    })
}
