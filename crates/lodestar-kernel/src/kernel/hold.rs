//! What is measured and shown of a held action, beside what its contract asks for.

use std::collections::BTreeMap;
use std::path::Path;

use lodestar_core::chain::Action;
use lodestar_core::contract::arguments::{role, texts};
use lodestar_core::contract::{ArgumentRole, Check, Operand, Permission, Precondition};
use lodestar_core::defence::Defence;
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::NormalPath;
use lodestar_core::name::Excerpt;
use lodestar_policy::Card;
use serde_json::Value;
use thiserror::Error;

use super::{Kernel, Proposed};
use crate::measure::{Found, Measured};
use crate::native::git::{GitError, Outgoing, Repository};
use crate::record::Proposal;
use crate::registry::ToolRecord;

/// The remote whose address is measured for a held action: the one that is pushed to by default.
const REMOTE: &str = "origin";

/// Most lines of each sort on a card: more is not read, and how many are left out is said.
const MAX_LINES: usize = 20;

/// The world as it was when an action was held: what its card says.
#[derive(Debug, Clone)]
pub struct HeldWorld {
    /// What was measured, by the contract and beside it.
    pub measured: Vec<Measured>,
    /// What would have gone out.
    pub going_out: Vec<String>,
}

impl HeldWorld {
    /// The world that people were shown; none if the card is not one of this kernel's.
    pub fn shown_on(card: &Card) -> Option<Self> {
        let measured = card.measured.iter();
        let measured = measured.map(|one| serde_json::from_value(one.clone()).ok());
        Some(Self {
            measured: measured.collect::<Option<_>>()?,
            going_out: card.going_out.clone(),
        })
    }

    /// Whether a card may show this of a proposal. What was found in the world cannot be derived again;
    /// what was looked at can, and so can what follows from the call alone.
    pub fn check_of(
        &self,
        proposal: &Proposal,
        tool: &ToolRecord,
        policy: Digest,
    ) -> Result<(), NotOfProposal> {
        let beside = self.measured.strip_prefix(&proposal.preconditions[..]);
        let beside = beside.ok_or(NotOfProposal::Preconditions)?;
        let is_of = |repository| {
            let checks = checks(&proposal.paths, repository);
            checks.len() == beside.len()
                && checks.iter().zip(beside).all(|(check, measured)| {
                    measured.precondition == *check && names_what_it_looked_at(measured)
                })
        };
        if !is_of(InRepository::No) && !is_of(InRepository::Yes) {
            return Err(NotOfProposal::Measurements);
        }
        let digests = beside.iter().all(|measured| {
            let expected = match measured.precondition.check {
                Check::ToolDefinition => tool.definition,
                Check::Policy => policy,
                _ => return true,
            };
            match measured.expected_at_approval {
                Found::Digest { is } => is == expected,
                Found::Unmeasurable { .. } => true,
                _ => false,
            }
        });
        if !digests {
            return Err(NotOfProposal::Digests);
        }
        let addressed = addressed(&proposal.action, &tool.shape.roles);
        let rest = self.going_out.strip_prefix(&addressed[..]);
        let rest = rest.ok_or(NotOfProposal::GoingOut)?;
        if !rest.is_empty() && !is_push(&proposal.action) {
            return Err(NotOfProposal::GoingOut);
        }
        Ok(())
    }
}

/// What a card shows of the world that is not so of its proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotOfProposal {
    /// What the contract has measured.
    #[error("that its card shows other preconditions than were measured")]
    Preconditions,
    /// What is measured of every held action.
    #[error("that its card shows other measurements than are made of a held action")]
    Measurements,
    /// The tool's definition or the policy.
    #[error("that its card shows another definition or policy than is in force")]
    Digests,
    /// Recipients, commits, files.
    #[error("that its card shows something else going out than the arguments say")]
    GoingOut,
}

/// Whether a call's folder is a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InRepository {
    Yes,
    No,
}

/// What is measured of a held action beside what its contract asks for: where the repository stands and
/// points, what is in each file it names, and whether tool and policy are still those.
fn checks(paths: &[NormalPath], repository: InRepository) -> Vec<Precondition> {
    let mut checks = Vec::new();
    if repository == InRepository::Yes {
        let remote = Operand::Literal(REMOTE.to_owned());
        checks.extend([
            Check::GitHead,
            Check::GitClean,
            Check::GitRemoteUrl { remote },
        ]);
    }
    checks.extend(paths.iter().map(|path| Check::FileSha256 {
        path: Operand::Literal(path.as_str().to_owned()),
    }));
    checks.extend([Check::ToolDefinition, Check::Policy]);
    let twice = |check| Precondition {
        check,
        must_revalidate_at_execution: true,
    };
    checks.into_iter().map(twice).collect()
}

fn names_what_it_looked_at(measured: &Measured) -> bool {
    let named = match &measured.precondition.check {
        Check::GitRemoteUrl {
            remote: Operand::Literal(text),
        }
        | Check::FileSha256 {
            path: Operand::Literal(text),
        } => Some(text),
        _ => None,
    };
    measured.of.as_ref() == named
}

impl Kernel {
    /// The world as it is now, for a card; and to be the same when the action runs.
    pub fn look_round(&self, proposed: &Proposed) -> HeldWorld {
        HeldWorld {
            measured: {
                let mut measured = proposed.proposal.preconditions.clone();
                measured.extend(self.measure_for_hold(proposed));
                measured
            },
            going_out: self.going_out(proposed),
        }
    }

    pub(super) fn measure_for_hold(&self, proposed: &Proposed) -> Vec<Measured> {
        if self.lacks(Defence::DefaultPreconditions) {
            return Vec::new();
        }
        let subject = proposed.subject();
        let repository = match is_repository(self.world.root_of(subject)) {
            true => InRepository::Yes,
            false => InRepository::No,
        };
        checks(&proposed.proposal.paths, repository)
            .iter()
            .flat_map(|precondition| self.world.measure(precondition, subject))
            .collect()
    }

    /// What would go out, line by line: to whom, and for a push which commits and files.
    fn going_out(&self, proposed: &Proposed) -> Vec<String> {
        let root = self.world.root_of(proposed.subject());
        going_out(
            &proposed.proposal.action,
            &proposed.entry.record().shape.roles,
            root,
        )
    }
}

/// What would go out, line by line.
pub(super) fn going_out(
    action: &Action,
    roles: &BTreeMap<String, ArgumentRole>,
    root: &Path,
) -> Vec<String> {
    let mut lines = addressed(action, roles);
    if is_push(action) && is_repository(root) {
        let branch = action.arguments.get("branch").and_then(Value::as_str);
        match outgoing(root, branch) {
            Ok((base, outgoing)) => {
                lines.push(format!("base: {base}"));
                lines.extend(told(&outgoing));
            }
            Err(problem) => lines.push(format!("what would go out is not known: {problem}")),
        }
    }
    lines
}

/// To whom, as the arguments say.
fn addressed(action: &Action, roles: &BTreeMap<String, ArgumentRole>) -> Vec<String> {
    let is_address = |name: &str| {
        let role = role(name, roles);
        matches!(
            role,
            Some(ArgumentRole::Destination | ArgumentRole::Identity)
        )
    };
    let arguments = action.arguments.iter();
    arguments
        .filter(|(name, _)| is_address(name))
        .flat_map(|(name, value)| texts(value).into_iter().map(move |text| (name, text)))
        .map(|(name, text)| format!("{name}: {}", Excerpt::of(text)))
        .collect()
}

fn is_push(action: &Action) -> bool {
    action.contract.permissions.contains(&Permission::Push)
}

fn is_repository(root: &Path) -> bool {
    root.join(".git").exists()
}

/// What the remote does not have yet, as far as the repository knows: which commit goes out is certain,
/// what the remote has is only what was last fetched, or what somebody wrote there.
fn outgoing(root: &Path, branch: Option<&str>) -> Result<(String, Outgoing), GitError> {
    let repository = Repository::open(root)?;
    let to = branch.map_or("HEAD".to_owned(), |branch| format!("refs/heads/{branch}"));
    let known = branch.into_iter().chain(["main", "master"]);
    for branch in known {
        let from = format!("refs/remotes/{REMOTE}/{branch}");
        if let Ok(mut outgoing) = repository.outgoing(Some(&from), &to) {
            if outgoing.commits.is_empty() {
                // Whoever wrote that the remote has it all may be the one who wants it pushed.
                outgoing = repository.outgoing(None, &to)?;
                let from = format!("everything, since {from} says that nothing is new");
                return Ok((from, outgoing));
            }
            return Ok((format!("{from} as it stands here, not verified"), outgoing));
        }
    }
    let everything = repository.outgoing(None, &to)?;
    let nothing = "everything: no commit of the remote is known here".to_owned();
    Ok((nothing, everything))
}

fn told(outgoing: &Outgoing) -> Vec<String> {
    let Outgoing {
        commits_total,
        files_total,
        added,
        removed,
        ..
    } = outgoing;
    let mut lines = vec![format!(
        "{commits_total} commits, {files_total} files, {added} lines added, {removed} removed"
    )];
    lines.extend(outgoing.commits.iter().take(MAX_LINES).map(|commit| {
        let id = commit.id.get(..12).unwrap_or(&commit.id);
        let (subject, author) = (Excerpt::of(&commit.subject), Excerpt::of(&commit.author));
        format!("commit {id} {subject} ({author})")
    }));
    lines.extend(outgoing.files.iter().take(MAX_LINES).map(|file| {
        let path = Excerpt::of(&file.path);
        match file.lines {
            Some((added, removed)) => format!("file {path} +{added} -{removed}"),
            None => format!("file {path} (binary)"),
        }
    }));
    let commits = commits_total.saturating_sub(MAX_LINES as u64);
    let files = files_total.saturating_sub(MAX_LINES);
    if commits > 0 || files > 0 {
        lines.push(format!(
            "not listed: {commits} more commits, {files} more files"
        ));
    }
    lines
}
