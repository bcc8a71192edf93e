//! What a mistyped argument means for the policies that look at it.

use std::collections::BTreeSet;

use cedar_policy::EntityUid;
use lodestar_core::name::Excerpt;

use crate::judgement::{ErrorKind, EvaluationError};
use crate::request::Reviewed;
use crate::slice::Slice;

/// A forbid that can look at an argument which is not what it was promised could have been meant.
pub(super) fn forbids_of_broken(
    slice: &Slice,
    principal: &EntityUid,
    reviewed: &Reviewed,
    errors: &mut BTreeSet<EvaluationError>,
) {
    for name in &reviewed.mistyped {
        let concerned = slice.forbids.iter().filter(|forbid| {
            forbid.arguments.contains(name)
                && forbid
                    .principal
                    .as_ref()
                    .is_none_or(|only| only == principal)
        });
        for forbid in concerned {
            errors.insert(EvaluationError {
                kind: ErrorKind::Forbid,
                policy: Some(forbid.id.clone()),
                message: format!(
                    "the policy looks at argument `{}`, which is not of its declared type",
                    Excerpt::of(name)
                ),
            });
        }
    }
}
