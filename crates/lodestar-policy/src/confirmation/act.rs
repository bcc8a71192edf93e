//! The act that is held, as a confirmation has to name it, with its paths in normal form.

use std::collections::BTreeMap;

use lodestar_core::canonical::CanonicalError;
use lodestar_core::contract::{ArgumentRole, arguments};
use lodestar_core::fingerprint::{Fingerprint, FingerprintFields, NormalPath};
use lodestar_core::id::ActionId;
use lodestar_core::ladder::Rung;
use lodestar_core::name::SessionId;
use lodestar_core::statement::confirmation::{ConfirmationField, ConfirmedAct};
use serde_json::{Map, Value};

use crate::approval::Card;

/// An act that is held, as a confirmation has to name it.
#[derive(Debug, Clone)]
pub struct HeldAct {
    pub(super) action: ActionId,
    pub(super) fields: FingerprintFields,
    pub(super) fingerprint: Fingerprint,
    roles: BTreeMap<String, ArgumentRole>,
    pub(super) rung: Rung,
    pub(super) session: SessionId,
}

impl HeldAct {
    /// The act on a card. `roles` are those of the tool's arguments, which say what is a path.
    pub fn on_card(
        card: &Card,
        roles: &BTreeMap<String, ArgumentRole>,
        session: &SessionId,
    ) -> Result<Self, CanonicalError> {
        let fields = card.fields()?;
        Ok(Self {
            action: card.action.id,
            fingerprint: fields.fingerprint()?,
            fields,
            roles: roles.clone(),
            rung: card.action.contract.required_level,
            session: session.clone(),
        })
    }

    /// Every field in which a confirmation differs from it.
    pub(super) fn differences(
        &self,
        act: &ConfirmedAct,
        session: &SessionId,
    ) -> Vec<ConfirmationField> {
        let (theirs, has_paths) = self.normal(act);
        let mut own = self.fields.clone();
        own.arguments = normal_arguments(&own.arguments, &self.roles);
        let differs: Vec<ConfirmationField> = own
            .differences(&theirs)
            .into_iter()
            .map(ConfirmationField::from)
            .collect();
        let is_listed = |field: &ConfirmationField| match field {
            ConfirmationField::Session => *session != self.session,
            ConfirmationField::Path => !has_paths || differs.contains(field),
            field => differs.contains(field),
        };
        let all = ConfirmationField::ALL.iter().copied();
        all.filter(is_listed).collect()
    }

    /// What was confirmed, in normal form; and whether all its paths have one.
    fn normal(&self, act: &ConfirmedAct) -> (FingerprintFields, bool) {
        let mut act = act.clone();
        act.arguments = normal_arguments(&act.arguments, &self.roles);
        match act.fields() {
            Ok(fields) => (fields, true),
            Err(_) => {
                act.paths = Vec::new();
                let fields = act.fields().expect("INVARIANT: only a path is refused");
                (fields, false)
            }
        }
    }
}

/// What a confirmation of an act is found by: the fingerprint of the act with its paths in normal form,
/// so that it is found however they are spelt. Whether it matches is another question.
pub fn found_by(
    fields: &FingerprintFields,
    roles: &BTreeMap<String, ArgumentRole>,
) -> Result<Fingerprint, CanonicalError> {
    let mut normal = fields.clone();
    normal.arguments = normal_arguments(&fields.arguments, roles);
    normal.fingerprint()
}

/// The arguments with their paths in normal form; a path that has none stays as it is.
fn normal_arguments(
    from: &Map<String, Value>,
    roles: &BTreeMap<String, ArgumentRole>,
) -> Map<String, Value> {
    let normal = |(name, value): (&String, &Value)| {
        let is_path = arguments::role(name, roles) == Some(ArgumentRole::Path);
        let value = match is_path {
            true => normal_paths(value),
            false => value.clone(),
        };
        (name.clone(), value)
    };
    from.iter().map(normal).collect()
}

fn normal_paths(value: &Value) -> Value {
    match value {
        Value::String(text) => match NormalPath::new(text) {
            Ok(path) => Value::String(path.as_str().to_owned()),
            Err(_) => value.clone(),
        },
        Value::Array(items) => Value::Array(items.iter().map(normal_paths).collect()),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), normal_paths(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
