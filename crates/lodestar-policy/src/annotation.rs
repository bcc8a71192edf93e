//! What the annotations of an `ask` policy say about the approval it needs.

use std::collections::BTreeSet;

use lodestar_core::name::Excerpt;
use thiserror::Error;

use crate::judgement::Requirement;

/// The name of the annotation that gives a policy its id.
pub(crate) const ID: &str = "id";

/// Longest name of a role, in bytes.
const MAX_ROLE_LEN: usize = 64;

/// Why an annotation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum AnnotationError {
    #[error("`{found}` is not a list of roles")]
    Roles { found: Excerpt },
    #[error("`{found}` is not a number of approvers")]
    Quorum { found: Excerpt },
    #[error("`{found}` is not a duration")]
    Expires { found: Excerpt },
}

impl AnnotationError {
    pub(crate) const fn help(&self) -> &'static str {
        match self {
            Self::Roles { .. } => {
                "write names of `A-Z a-z 0-9 . _ -`, separated by commas: @approvers(\"release-manager,security\")"
            }
            Self::Quorum { .. } => "write a whole number from 1 on: @quorum(\"2\")",
            Self::Expires { .. } => {
                "write a whole number from 1 on and one of `s`, `m`, `h`: @expires(\"15m\")"
            }
        }
    }
}

/// An annotation about approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalAnnotation {
    Approvers,
    Quorum,
    Expires,
}

impl ApprovalAnnotation {
    pub(crate) const ALL: [Self; 3] = [Self::Approvers, Self::Quorum, Self::Expires];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Approvers => "approvers",
            Self::Quorum => "quorum",
            Self::Expires => "expires",
        }
    }
}

/// What one policy says about the approval it needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    roles: BTreeSet<String>,
    quorum: Option<u32>,
    expires_seconds: Option<u64>,
}

impl Asked {
    /// Reads one annotation's value.
    pub(crate) fn read(
        &mut self,
        annotation: ApprovalAnnotation,
        value: &str,
    ) -> Result<(), AnnotationError> {
        let found = || Excerpt::of(value);
        match annotation {
            ApprovalAnnotation::Approvers => {
                let roles =
                    roles(value).ok_or_else(|| AnnotationError::Roles { found: found() })?;
                self.roles.extend(roles);
            }
            ApprovalAnnotation::Quorum => {
                let quorum = whole(value).and_then(|quorum| u32::try_from(quorum).ok());
                self.quorum =
                    Some(quorum.ok_or_else(|| AnnotationError::Quorum { found: found() })?);
            }
            ApprovalAnnotation::Expires => {
                let seconds = seconds(value);
                self.expires_seconds =
                    Some(seconds.ok_or_else(|| AnnotationError::Expires { found: found() })?);
            }
        }
        Ok(())
    }

    /// Both heard: all roles, the largest quorum, the shortest time.
    pub(crate) fn join(&mut self, other: &Self) {
        self.roles.extend(other.roles.iter().cloned());
        self.quorum = self.quorum.max(other.quorum);
        self.expires_seconds = match (self.expires_seconds, other.expires_seconds) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
    }

    /// What is needed, with the default for whatever was not named.
    pub(crate) fn or(self, default: &Requirement) -> Requirement {
        Requirement {
            roles: if self.roles.is_empty() {
                default.roles.clone()
            } else {
                self.roles
            },
            quorum: self.quorum.unwrap_or(default.quorum),
            expires_seconds: self.expires_seconds.unwrap_or(default.expires_seconds),
        }
    }
}

fn roles(text: &str) -> Option<BTreeSet<String>> {
    let is_role = |role: &str| {
        (1..=MAX_ROLE_LEN).contains(&role.len())
            && role
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    let roles = text.split(',').map(str::trim);
    roles
        .map(|role| is_role(role).then(|| role.to_owned()))
        .collect()
}

/// A whole number from 1 on, in plain digits.
fn whole(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}

pub(crate) fn seconds(text: &str) -> Option<u64> {
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let (number, unit) = units
        .iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))?;
    whole(number)?.checked_mul(*unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_an_end() {
        assert_eq!(seconds("90s"), Some(90));
        assert_eq!(seconds("15m"), Some(900));
        assert_eq!(seconds("2h"), Some(7200));
        for bad in [
            "",
            "15",
            "m",
            "0m",
            "015m",
            "-1m",
            "1.5h",
            "15x",
            "1 m",
            "18446744073709551615h",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn roles_are_plain_words() {
        assert_eq!(roles("a, b-c").unwrap().len(), 2);
        for bad in ["", ",", "a,,b", "a b", "r\u{f6}le"] {
            assert_eq!(roles(bad), None, "{bad}");
        }
    }
}
