//! Grading: what the operator says a tool may reach, above what the tool promises itself.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Precondition, Preconditions, Reversibility,
    Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use serde::{Deserialize, Serialize};

/// What the operator says of one tool. What it leaves out, the tool's own minimum says; where there
/// is none, the strictest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grade {
    /// The rung.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_trust_level: Option<Rung>,
    /// How far its effects go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blast_radius: Option<BlastRadius>,
    /// Whether they can be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversibility: Option<Reversibility>,
    /// What data it handles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sensitivity: Option<DataSensitivity>,
    /// What it is given to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<BTreeSet<Permission>>,
    /// In what confinement it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// What has to hold in the world.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<Precondition>,
    /// What its arguments are to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arg_roles: BTreeMap<String, ArgumentRole>,
    /// Groups that policies can name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub groups: BTreeSet<String>,
}

impl Grade {
    /// The contract under this grade: never laxer than the minimum, in any field.
    pub fn contract(&self, minimum: &Contract) -> Contract {
        self.over(minimum).floor(minimum)
    }

    /// What the grade says, and where it says nothing, the minimum: no floor yet.
    pub(crate) fn over(&self, minimum: &Contract) -> Contract {
        let permissions = self
            .permissions
            .clone()
            .unwrap_or_else(|| minimum.permissions.clone());
        let preconditions: Preconditions = self.preconditions.iter().cloned().collect();
        Contract {
            required_level: self.required_trust_level.unwrap_or(minimum.required_level),
            blast_radius: self.blast_radius.unwrap_or(minimum.blast_radius),
            reversibility: self.reversibility.unwrap_or(minimum.reversibility),
            scope: minimum.scope.clone(),
            data_sensitivity: self.data_sensitivity.unwrap_or(minimum.data_sensitivity),
            preconditions,
            sandbox: self.sandbox.unwrap_or(minimum.sandbox),
            permissions,
        }
    }

    /// The contract of somebody else's tool, which promises nothing itself: what the grade leaves
    /// out is the strictest there is.
    pub fn contract_of_foreign(&self, scope: &Scope) -> Contract {
        let strictest = Contract::ungraded(scope.clone());
        let permissions = self.permissions.clone().unwrap_or_default();
        Contract {
            required_level: self
                .required_trust_level
                .unwrap_or(strictest.required_level),
            blast_radius: self.blast_radius.unwrap_or(strictest.blast_radius),
            reversibility: self.reversibility.unwrap_or(strictest.reversibility),
            scope: strictest.scope,
            data_sensitivity: self.data_sensitivity.unwrap_or(strictest.data_sensitivity),
            preconditions: self.preconditions.iter().cloned().collect(),
            sandbox: self.sandbox.unwrap_or(strictest.sandbox),
            permissions,
        }
    }
}

#[cfg(test)]
mod tests {
    use lodestar_core::contract::Check;

    use super::*;

    fn minimum() -> Contract {
        Contract {
            required_level: Rung::L3,
            blast_radius: BlastRadius::Project,
            reversibility: Reversibility::Compensable,
            scope: Scope::global(),
            data_sensitivity: DataSensitivity::Private,
            preconditions: [Precondition {
                check: Check::GitHead,
                must_revalidate_at_execution: true,
            }]
            .into_iter()
            .collect(),
            sandbox: Sandbox::WriteLocal,
            permissions: [Permission::ReadFiles, Permission::WriteFiles].into(),
        }
    }

    #[test]
    fn a_grade_cannot_go_below_the_minimum_in_any_field() {
        let lax = Grade {
            required_trust_level: Some(Rung::L0),
            blast_radius: Some(BlastRadius::SelfOnly),
            reversibility: Some(Reversibility::Reversible),
            data_sensitivity: Some(DataSensitivity::Public),
            permissions: Some(Permission::ALL.iter().copied().collect()),
            sandbox: Some(Sandbox::ControlledNetwork),
            ..Grade::default()
        };
        assert_eq!(lax.contract(&minimum()), minimum());
    }

    #[test]
    fn a_grade_can_be_stricter_in_every_field() {
        let strict = Grade {
            required_trust_level: Some(Rung::L4),
            blast_radius: Some(BlastRadius::External),
            reversibility: Some(Reversibility::Irreversible),
            data_sensitivity: Some(DataSensitivity::Secret),
            permissions: Some([Permission::ReadFiles].into()),
            sandbox: Some(Sandbox::Read),
            preconditions: vec![Precondition {
                check: Check::GitClean,
                must_revalidate_at_execution: true,
            }],
            ..Grade::default()
        };
        let contract = strict.contract(&minimum());
        assert!(contract.is_as_strict_as(&minimum()));
        assert_eq!(contract.required_level, Rung::L4);
        assert_eq!(contract.blast_radius, BlastRadius::External);
        assert_eq!(contract.reversibility, Reversibility::Irreversible);
        assert_eq!(contract.data_sensitivity, DataSensitivity::Secret);
        assert_eq!(contract.permissions, [Permission::ReadFiles].into());
        assert_eq!(contract.sandbox, Sandbox::Read);
        assert_eq!(contract.preconditions.iter().len(), 2);
    }

    #[test]
    fn what_a_grade_of_somebody_elses_tool_leaves_out_is_the_strictest() {
        let half = Grade {
            data_sensitivity: Some(DataSensitivity::Public),
            permissions: Some([Permission::Network].into()),
            ..Grade::default()
        };
        let contract = half.contract_of_foreign(&Scope::global());
        assert_eq!(contract.required_level, Rung::L4);
        assert_eq!(contract.reversibility, Reversibility::Irreversible);
        assert_eq!(contract.data_sensitivity, DataSensitivity::Public);
    }

    #[test]
    fn a_grade_that_only_names_groups_changes_nothing_else() {
        let grade = Grade {
            groups: ["reading".to_owned()].into(),
            ..Grade::default()
        };
        assert_eq!(grade.contract(&minimum()), minimum());
    }
}
