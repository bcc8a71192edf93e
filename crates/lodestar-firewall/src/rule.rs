//! Promotion rules: the narrow way by which an operator's policy promotes what was read.

use std::time::Duration;

use lodestar_core::name::{Excerpt, PolicyId, ServerIdentity, ToolName};
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::row::StoredBelief;

/// Longest time that a rule holds: a quarter of a year, after which
/// somebody looks at it again.
pub const MAX_RULE_TERM: Duration = Duration::from_secs(90 * 86_400);

/// Stands for any run of characters in a pattern.
const WILDCARD: char = '*';

/// A rule that promotes what one tool says about some subjects, for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromotionRule {
    /// The policy that says so.
    pub id: PolicyId,
    /// Whose tool.
    pub server: ServerIdentity,
    /// Which tool.
    pub tool: ToolName,
    /// Subjects, such as `file:docs/*`; never one that starts with a wildcard.
    pub subject: String,
    /// Since when it holds.
    pub issued_at: Timestamp,
    /// From when on it holds no more.
    pub expires_at: Timestamp,
    /// Whether it also brings what it promotes into the default context.
    pub lifts_retrieval: bool,
}

/// Why a rule promotes nothing, or not this.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleRefused {
    /// Empty, or starts with a wildcard.
    #[error(
        "rule `{rule}`: the subject pattern `{pattern}` names nothing; it may not be empty or start with `*`"
    )]
    OpenPattern {
        /// The rule, inert.
        rule: Excerpt,
        /// Its pattern, inert.
        pattern: Excerpt,
    },
    /// Over.
    #[error("rule `{rule}` expired at {at}")]
    Expired {
        /// The rule, inert.
        rule: Excerpt,
        /// When.
        at: Timestamp,
    },
    /// It would hold too long.
    #[error(
        "rule `{rule}` holds until {at}; a promotion rule holds for at most {} days",
        MAX_RULE_TERM.as_secs() / 86_400
    )]
    TooLong {
        /// The rule, inert.
        rule: Excerpt,
        /// Until when.
        at: Timestamp,
    },
    /// The belief came from another tool, or from none.
    #[error("rule `{rule}` is about another tool than the one that the belief came from")]
    OtherTool {
        /// The rule, inert.
        rule: Excerpt,
    },
    /// The belief is about something else.
    #[error(
        "rule `{rule}` is about `{pattern}`, which the belief's subject `{subject}` does not match"
    )]
    OtherSubject {
        /// The rule, inert.
        rule: Excerpt,
        /// Its pattern, inert.
        pattern: Excerpt,
        /// The subject, inert.
        subject: Excerpt,
    },
}

impl PromotionRule {
    /// Whether the rule itself holds now.
    pub fn check(&self, now: Timestamp) -> Result<(), RuleRefused> {
        let rule = || self.id.shown();
        if self.subject.is_empty() || self.subject.starts_with(WILDCARD) {
            return Err(RuleRefused::OpenPattern {
                rule: rule(),
                pattern: Excerpt::of(&self.subject),
            });
        }
        if now >= self.expires_at {
            return Err(RuleRefused::Expired {
                rule: rule(),
                at: self.expires_at,
            });
        }
        let term = self.expires_at.since(self.issued_at.min(now));
        if term.is_none_or(|term| term > MAX_RULE_TERM) {
            return Err(RuleRefused::TooLong {
                rule: rule(),
                at: self.expires_at,
            });
        }
        Ok(())
    }

    /// Whether it names this belief.
    pub fn names(&self, belief: &StoredBelief) -> Result<(), RuleRefused> {
        let source = belief.source.as_ref();
        if source.is_none_or(|s| s.server != self.server || s.tool != self.tool) {
            return Err(RuleRefused::OtherTool {
                rule: self.id.shown(),
            });
        }
        let subject = &belief.claim.predicate.subject;
        if !matches(&self.subject, subject) {
            return Err(RuleRefused::OtherSubject {
                rule: self.id.shown(),
                pattern: Excerpt::of(&self.subject),
                subject: Excerpt::of(subject),
            });
        }
        Ok(())
    }
}

/// Whether the text has the pattern's pieces in their order, the first at its start and the last at
/// its end. Taking the first place of each piece in between never misses a match.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split(WILDCARD);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<_> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_stands_for_any_run() {
        for (pattern, text, expected) in [
            ("file:docs/*", "file:docs/a.md", true),
            ("file:docs/*", "file:docs", false),
            ("file:docs/*", "file:src/docs/a.md", false),
            ("file:a.md", "file:a.md", true),
            ("file:a.md", "file:a.mdx", false),
            ("file:*/x*.md", "file:a/b/xyz.md", true),
            ("file:*aa", "file:a", false),
            ("file:a*a", "file:a", false),
            ("file:**b", "file:ab", true),
            // What one piece has taken is not there for the next.
            ("file:*ab*b", "file:xab", false),
            ("file:*ab*b", "file:xabb", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
