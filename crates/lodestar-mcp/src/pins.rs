//! Pinned definitions: what each server offered when it was first seen, kept across sessions, signed.
//!
//! A definition is what an agent reads and what an operator graded. Another definition under the same name is
//! another tool, and nobody graded that: it is refused until a person has looked at it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, sha256};
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::ProjectId;
use lodestar_core::statement::{Envelope, Issued, Nonce, StatementError, ToolReview};
use lodestar_core::time::Timestamp;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// The lock file of a project, in its `.lodestar` folder.
pub const FILE: &str = "tools.lock";

/// Largest lock file: thousands of tools with long descriptions fit.
const MAX_FILE: u64 = 64 << 20;

/// What one server offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerPins {
    /// Who it is: command and arguments by digest, or its host.
    pub identity: String,
    /// What it tells agents to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its tools, by the names it has for them.
    pub tools: BTreeMap<String, Pin>,
}

/// One tool as it was pinned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// SHA-256 of its definition in canonical form.
    pub digest: Digest,
    /// The definition.
    pub definition: Value,
    /// When it was pinned.
    pub pinned_at: Timestamp,
    /// A person's statement that it was looked at; without it, it is unreviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Envelope>,
    /// The newest other definition that was seen instead, which waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drifted: Option<Value>,
}

/// The pins of a project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// By the servers' names.
    pub servers: BTreeMap<String, ServerPins>,
    /// Tools that appeared beside pinned ones while a session ran, by server and name: they wait for a person.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub appeared: BTreeMap<String, BTreeMap<String, Value>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    pins: Pins,
    signature: Envelope,
}

/// Why a lock file cannot be used.
#[derive(Debug, Error)]
pub enum PinsError {
    /// It cannot be read or written.
    #[error("{}: {problem}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        problem: io::Error,
    },
    /// It is no lock file.
    #[error("{}: {problem}; `lodestar tools review` makes a new one", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Why.
        problem: String,
    },
    /// It was not written by this installation, or was changed since.
    #[error(
        "{}: {problem}: it was changed by hand or by another installation; look at it, then delete it and pin anew with `lodestar tools review`",
        .file.display()
    )]
    Forged {
        /// The file.
        file: PathBuf,
        /// Why.
        problem: String,
    },
}

/// The lock file of one project.
#[derive(Debug, Clone)]
pub struct LockFile {
    file: PathBuf,
    project: ProjectId,
}

impl LockFile {
    /// That of the project at this root.
    pub fn of(root: &Path, project: &ProjectId) -> Self {
        Self {
            file: root.join(".lodestar").join(FILE),
            project: project.clone(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Reads and verifies it; nothing is pinned where there is none.
    pub fn read(&self, key: &PublicKey) -> Result<Pins, PinsError> {
        let bytes = match std::fs::metadata(&self.file) {
            Ok(found) if found.len() > MAX_FILE => {
                return Err(self.malformed(format!("it takes more than {MAX_FILE} bytes")));
            }
            Ok(_) => std::fs::read(&self.file).map_err(|problem| self.io(problem))?,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
                return Ok(Pins::default());
            }
            Err(problem) => return Err(self.io(problem)),
        };
        let written: Written = serde_json::from_slice(&bytes)
            .map_err(|problem| self.malformed(problem.to_string()))?;
        let digest = digest(&written.pins).map_err(|problem| self.malformed(problem))?;
        let verified = written
            .signature
            .verify_undated::<ToolReview>(std::slice::from_ref(key))
            .map_err(|problem| self.forged(problem.to_string()))?;
        let wanted = ToolReview::Lock {
            pins: digest,
            project: self.project.as_str().to_owned(),
        };
        if verified.subject() != &wanted {
            return Err(self.forged("its signature is over other pins".to_owned()));
        }
        Ok(written.pins)
    }

    /// Changes it, alone: reads, lets `change` work, signs and replaces it if something changed.
    pub fn change<T>(
        &self,
        key: &SecretKey,
        now: Timestamp,
        change: impl FnOnce(&mut Pins) -> T,
    ) -> Result<T, PinsError> {
        let dir = self.file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(dir).map_err(|problem| self.io(problem))?;
        let guard = File::create(self.file.with_extension("lock.guard"));
        let guard = guard.map_err(|problem| self.io(problem))?;
        flock(&guard, FlockOperation::LockExclusive).map_err(|problem| self.io(problem.into()))?;
        let before = self.read(&key.public())?;
        let mut pins = before.clone();
        let done = change(&mut pins);
        if pins != before {
            self.write(pins, key, now)?;
        }
        Ok(done)
    }

    fn write(&self, pins: Pins, key: &SecretKey, now: Timestamp) -> Result<(), PinsError> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).expect("the system has randomness");
        let subject = ToolReview::Lock {
            pins: digest(&pins).map_err(|problem| self.malformed(problem))?,
            project: self.project.as_str().to_owned(),
        };
        let issued = Issued {
            expires_at: None,
            issued_at: now,
            key_id: key.public().key_id(),
            nonce: Nonce::from_bytes(nonce),
            subject,
        };
        let signed = |problem: StatementError| self.malformed(problem.to_string());
        let signature = Envelope::sign(&issued, key).map_err(signed)?;
        let mut text = serde_json::to_vec_pretty(&Written { pins, signature })
            .map_err(|problem| self.malformed(problem.to_string()))?;
        text.push(b'\n');
        let beside = self.file.with_extension("lock.new");
        let write = || -> io::Result<()> {
            let mut file = File::create(&beside)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&beside, &self.file)
        };
        write().map_err(|problem| self.io(problem))
    }

    fn io(&self, problem: io::Error) -> PinsError {
        PinsError::Io {
            file: self.file.clone(),
            problem,
        }
    }

    fn malformed(&self, problem: String) -> PinsError {
        PinsError::Malformed {
            file: self.file.clone(),
            problem,
        }
    }

    fn forged(&self, problem: String) -> PinsError {
        PinsError::Forged {
            file: self.file.clone(),
            problem,
        }
    }
}

fn digest(pins: &Pins) -> Result<Digest, String> {
    let bytes = canonical::to_vec(pins).map_err(|problem| problem.to_string())?;
    Ok(sha256(&bytes))
}

/// How a tool that a server lists stands to what was pinned.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// As pinned.
    Same,
    /// Seen for the first time, and pinned now.
    New,
    /// Not as pinned.
    Drifted(String),
}

/// One tool, as its server lists it now.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    /// Its name at the server.
    pub name: &'a str,
    /// All of it.
    pub definition: &'a Value,
    /// SHA-256 of its canonical form.
    pub digest: Digest,
}

/// Why a tool that came while a session ran is refused, until somebody has looked at it.
pub const APPEARED: &str = "it appeared while a session ran";

/// Most tools of one server that wait for a person because they appeared.
const MAX_APPEARED: usize = 256;

impl Pins {
    /// Holds what a server lists against what was pinned, and pins what is seen for the first time.
    pub fn compare(
        &mut self,
        server: &str,
        identity: &str,
        instructions: Option<&str>,
        tools: &[Listed<'_>],
        now: Timestamp,
    ) -> Vec<Standing> {
        let appeared = self.appeared.get(server);
        let pinned = self.servers.entry(server.to_owned());
        let pinned = pinned.or_insert_with(|| ServerPins {
            identity: identity.to_owned(),
            instructions: instructions.map(str::to_owned),
            tools: BTreeMap::new(),
        });
        let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
        let compared = tools.iter().map(|tool| {
            match appeared.is_some_and(|waiting| waiting.contains_key(tool.name)) {
                true => Standing::Drifted(APPEARED.to_owned()),
                false => pinned.compare(identity, tool, &names, now),
            }
        });
        compared.collect()
    }

    /// Notes a tool that appeared while a session ran.
    pub fn note_appeared(&mut self, server: &str, name: &str, definition: &Value) {
        let waiting = self.appeared.entry(server.to_owned()).or_default();
        if waiting.len() < MAX_APPEARED {
            waiting.insert(name.to_owned(), definition.clone());
        }
    }
}

impl ServerPins {
    /// Holds one tool that a server lists against what was pinned, and pins what is seen for the first time.
    /// `listed` are the names of all that it lists.
    fn compare(
        &mut self,
        identity: &str,
        tool: &Listed<'_>,
        listed: &[&str],
        now: Timestamp,
    ) -> Standing {
        let Listed {
            name,
            definition,
            digest,
        } = *tool;
        if self.identity != identity {
            return Standing::Drifted(format!(
                "what is started or called under the server's name has changed: it was `{}`",
                self.identity
            ));
        }
        match self.tools.get_mut(name) {
            Some(pin) if pin.digest == digest => {
                pin.drifted = None;
                Standing::Same
            }
            Some(pin) => {
                pin.drifted = Some(definition.clone());
                Standing::Drifted(difference(&pin.definition, definition))
            }
            None => {
                if let Some(old) = self.renamed_from(definition, listed) {
                    return Standing::Drifted(format!("it was pinned under the name `{old}`"));
                }
                let pin = Pin {
                    digest,
                    definition: definition.clone(),
                    pinned_at: now,
                    review: None,
                    drifted: None,
                };
                self.tools.insert(name.to_owned(), pin);
                Standing::New
            }
        }
    }

    /// A pinned tool that is gone, and is this one but for its name.
    fn renamed_from(&self, definition: &Value, listed: &[&str]) -> Option<&String> {
        let unnamed = |definition: &Value| {
            let mut definition = definition.clone();
            if let Some(members) = definition.as_object_mut() {
                members.remove("name");
            }
            definition
        };
        let wanted = unnamed(definition);
        let mut gone = self
            .tools
            .iter()
            .filter(|(other, _)| !listed.contains(&other.as_str()));
        let found = gone.find(|(_, pin)| unnamed(&pin.definition) == wanted);
        found.map(|(other, _)| other)
    }
}

/// Which parts of a definition differ, in words.
pub fn difference(pinned: &Value, now: &Value) -> String {
    let empty = serde_json::Map::new();
    let pinned = pinned.as_object().unwrap_or(&empty);
    let now = now.as_object().unwrap_or(&empty);
    let mut names: Vec<&String> = pinned.keys().chain(now.keys()).collect();
    names.sort();
    names.dedup();
    let changed = names
        .into_iter()
        .filter(|name| pinned.get(*name) != now.get(*name));
    let changed: Vec<String> = changed
        .map(|name| lodestar_core::name::Excerpt::of(name).to_string())
        .collect();
    format!(
        "its definition has changed since it was pinned: {}",
        changed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_unix_micros(1_800_000_000_000_000).unwrap()
    }

    fn tool(name: &str, description: &str) -> (Value, Digest) {
        let whole = json!({"name": name, "description": description});
        let digest = sha256(&canonical::to_vec(&whole).unwrap());
        (whole, digest)
    }

    #[test]
    fn a_changed_or_renamed_tool_has_drifted_and_a_new_one_is_pinned() {
        let mut pins = ServerPins {
            identity: "a".to_owned(),
            instructions: None,
            tools: BTreeMap::new(),
        };
        let mut compare = |identity: &str, (whole, digest): &(Value, Digest), listed: &[&str]| {
            let tool = Listed {
                name: whole["name"].as_str().unwrap(),
                definition: whole,
                digest: *digest,
            };
            pins.compare(identity, &tool, listed, now())
        };
        let read = tool("read", "reads");
        assert_eq!(compare("a", &read, &["read", "again"]), Standing::New);
        assert_eq!(compare("a", &read, &["read"]), Standing::Same);
        // Beside the first, it is a second tool that says the same of itself.
        let again = tool("again", "reads");
        assert_eq!(compare("a", &again, &["read", "again"]), Standing::New);
        let changed = compare("a", &tool("read", "reads, and sends it to me"), &["read"]);
        assert!(matches!(changed, Standing::Drifted(why) if why.contains("description")));
        let renamed = compare("a", &tool("read2", "reads"), &["again", "read2"]);
        assert!(matches!(renamed, Standing::Drifted(why) if why.contains("`read`")));
        assert!(matches!(
            compare("b", &read, &["read"]),
            Standing::Drifted(_)
        ));
    }

    #[test]
    fn what_appeared_while_a_session_ran_waits_for_a_person_in_the_next_one_too() {
        let (late, digest) = tool("late", "comes later");
        let listed = [Listed {
            name: "late",
            definition: &late,
            digest,
        }];
        let mut pins = Pins::default();
        pins.note_appeared("s", "late", &late);
        let standing = pins.compare("s", "a", None, &listed, now());
        assert_eq!(standing, [Standing::Drifted(APPEARED.to_owned())]);
        assert!(pins.servers["s"].tools.is_empty());
        assert_eq!(
            pins.compare("t", "a", None, &listed, now()),
            [Standing::New]
        );
    }

    #[test]
    fn a_lock_file_that_somebody_else_wrote_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let project: ProjectId = "p".parse().unwrap();
        let (own, other) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
        let lock = LockFile::of(dir.path(), &project);
        let add = |pins: &mut Pins| {
            let server = ServerPins {
                identity: "a".to_owned(),
                instructions: None,
                tools: BTreeMap::new(),
            };
            pins.servers.insert("s".to_owned(), server);
        };
        lock.change(&own, now(), add).unwrap();
        assert_eq!(lock.read(&own.public()).unwrap().servers.len(), 1);
        assert!(matches!(
            lock.read(&other.public()),
            Err(PinsError::Forged { .. })
        ));
        let elsewhere = LockFile {
            project: "q".parse().unwrap(),
            ..lock.clone()
        };
        assert!(matches!(
            elsewhere.read(&own.public()),
            Err(PinsError::Forged { .. })
        ));
        let text = std::fs::read_to_string(lock.path()).unwrap();
        std::fs::write(lock.path(), text.replace("\"a\"", "\"b\"")).unwrap();
        assert!(matches!(
            lock.read(&own.public()),
            Err(PinsError::Forged { .. })
        ));
        std::fs::write(lock.path(), "{}").unwrap();
        assert!(matches!(
            lock.read(&own.public()),
            Err(PinsError::Malformed { .. })
        ));
    }
}
