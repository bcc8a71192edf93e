//! What a run was to do, as digests: the workflow that it follows, and the task and prompts that it was given.
//!
//! Both are over content alone: where a file lies, what it is called and how its lines end is not part of it. So
//! that the same files give the same digests on every machine:
//!
//! - the canonical form of a text is its UTF-8 bytes without a byte order mark, with every line ended by one `\n`
//!   (`\r\n` and `\r` are line ends too) and no empty lines at its end; a text of nothing but line ends is empty;
//! - a workflow that reads as one JSON value is canonical JSON (RFC 8785); every other is a text;
//! - `workflow_hash` is SHA-256 of the workflow's canonical form;
//! - `lens_hash` is SHA-256 of the canonical JSON
//!   `{"format":"lodestar.lens/1","prompts":[H,…],"task":H}`, where each `H` is SHA-256 of a text's canonical form,
//!   the prompts stand in the order in which they are configured, and `task` is `null` where there is none.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, sha256};
use serde_json::json;
use thiserror::Error;

use crate::config::Run;

/// What the digest of task and prompts is over.
const LENS_FORMAT: &str = "lodestar.lens/1";

/// The longest of these files, in bytes: people write them.
const MAX_FILE: u64 = 16 << 20;

/// The digests of what a run was to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recipe {
    /// Of the workflow; none where none is configured.
    pub workflow_hash: Option<Digest>,
    /// Of task and prompts; none where neither is configured.
    pub lens_hash: Option<Digest>,
}

/// Why there is no digest.
#[derive(Debug, Error)]
pub enum RecipeError {
    /// The file cannot be read.
    #[error("{}: {problem}", .file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// The file is no text.
    #[error("{}: it is not UTF-8; workflows, tasks and prompts are text", .0.display())]
    NotText(PathBuf),
    /// The file is longer than anybody writes one.
    #[error("{}: it is longer than {MAX_FILE} bytes", .0.display())]
    TooLong(PathBuf),
}

/// Bytes that are no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it is not UTF-8")]
pub struct NotText;

impl Run {
    /// Reads the files that are configured, as they are now.
    pub fn recipe(&self) -> Result<Recipe, RecipeError> {
        let hashed = |file: &PathBuf, hash: fn(&[u8]) -> Result<Digest, NotText>| {
            hash(&read(file)?).map_err(|NotText| RecipeError::NotText(file.clone()))
        };
        let workflow = self.workflow_file.as_ref();
        let task = self.task_file.as_ref();
        let task = task.map(|file| hashed(file, text_hash)).transpose()?;
        let prompts = self.prompt_files.iter();
        let prompts = prompts.map(|file| hashed(file, text_hash));
        let prompts: Vec<Digest> = prompts.collect::<Result<_, RecipeError>>()?;
        let is_given = task.is_some() || !prompts.is_empty();
        Ok(Recipe {
            workflow_hash: workflow
                .map(|file| hashed(file, workflow_hash))
                .transpose()?,
            lens_hash: is_given.then(|| lens_of(task, &prompts)),
        })
    }
}

fn read(file: &Path) -> Result<Vec<u8>, RecipeError> {
    let failed = |problem| RecipeError::Read {
        file: file.to_owned(),
        problem,
    };
    let mut bytes = Vec::new();
    // Whatever is no file may never end, or never begin.
    if !std::fs::metadata(file).map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::other("it is no regular file")));
    }
    let open = File::open(file).map_err(failed)?;
    let read = open.take(MAX_FILE + 1).read_to_end(&mut bytes);
    match read.map_err(failed)? as u64 > MAX_FILE {
        true => Err(RecipeError::TooLong(file.to_owned())),
        false => Ok(bytes),
    }
}

/// The digest of a workflow file.
pub fn workflow_hash(file: &[u8]) -> Result<Digest, NotText> {
    let text = without_mark(file)?;
    match canonical::canonicalize(text.as_bytes()) {
        Ok(json) => Ok(sha256(&json)),
        Err(_) => text_hash(file),
    }
}

/// The digest of what an agent was given: task and prompts.
pub fn lens_hash(task: Option<&[u8]>, prompts: &[&[u8]]) -> Result<Digest, NotText> {
    let prompts = prompts.iter().map(|text| text_hash(text));
    let prompts: Vec<Digest> = prompts.collect::<Result<_, NotText>>()?;
    Ok(lens_of(task.map(text_hash).transpose()?, &prompts))
}

fn lens_of(task: Option<Digest>, prompts: &[Digest]) -> Digest {
    let lens = json!({"format": LENS_FORMAT, "prompts": prompts, "task": task});
    let lens = canonical::to_vec(&lens).expect("INVARIANT: digests have a canonical form");
    sha256(&lens)
}

fn text_hash(file: &[u8]) -> Result<Digest, NotText> {
    Ok(sha256(canonical_text(file)?.as_bytes()))
}

fn without_mark(bytes: &[u8]) -> Result<&str, NotText> {
    let text = str::from_utf8(bytes).map_err(|_| NotText)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn canonical_text(bytes: &[u8]) -> Result<String, NotText> {
    let text = without_mark(bytes)?;
    let mut text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.truncate(text.trim_end_matches('\n').len());
    if !text.is_empty() {
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_text_is_stored_is_no_part_of_it() {
        let wanted = sha256(b"name: flow\n\nsteps: []\n");
        for same in [
            &b"name: flow\n\nsteps: []\n"[..],
            b"name: flow\n\nsteps: []",
            b"name: flow\r\n\r\nsteps: []\r\n",
            b"name: flow\r\rsteps: []\r",
            b"\xef\xbb\xbfname: flow\n\nsteps: []\n\n\n",
        ] {
            assert_eq!(workflow_hash(same), Ok(wanted));
        }
        for other in [
            &b"name: flow\nsteps: []\n"[..],
            b"name: flow \n\nsteps: []\n",
            b" name: flow\n\nsteps: []\n",
            b"",
        ] {
            assert_ne!(workflow_hash(other), Ok(wanted));
        }
        assert_eq!(workflow_hash(b"\xff\xfe"), Err(NotText));
    }

    #[test]
    fn a_workflow_in_json_is_what_it_says_however_it_is_spelt() {
        let wanted = sha256(br#"{"a":[1,2],"b":"x"}"#);
        for same in [
            &br#"{"a":[1,2],"b":"x"}"#[..],
            b"\xef\xbb\xbf{ \"b\": \"\\u0078\",\r\n  \"a\": [1.0, 2]\n}\n",
        ] {
            assert_eq!(workflow_hash(same), Ok(wanted));
        }
        // What has two meanings is no JSON value, but a text.
        let twice = br#"{"a":1,"a":2}"#;
        assert_eq!(workflow_hash(twice), Ok(sha256(b"{\"a\":1,\"a\":2}\n")));
    }

    #[test]
    fn a_lens_is_its_task_and_its_prompts_in_their_order() {
        let (task, one, two) = (&b"do it\n"[..], &b"be kind\n"[..], &b"be brief\n"[..]);
        let whole = lens_hash(Some(task), &[one, two]).unwrap();
        let spelt = format!(
            r#"{{"format":"lodestar.lens/1","prompts":["{}","{}"],"task":"{}"}}"#,
            sha256(one),
            sha256(two),
            sha256(task)
        );
        assert_eq!(whole, sha256(spelt.as_bytes()));
        assert_eq!(
            lens_hash(Some(b"do it\r\n"), &[b"be kind", two]),
            Ok(whole),
            "line ends are no part of it"
        );
        for other in [
            lens_hash(Some(task), &[two, one]),
            lens_hash(Some(task), &[one]),
            lens_hash(None, &[one, two]),
            lens_hash(None, &[task, one, two]),
        ] {
            assert_ne!(other, Ok(whole));
        }
    }
}
