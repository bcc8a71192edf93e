//! Decision: what was chosen, among what, and on which beliefs it rests.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::non_empty::NonEmpty;
use crate::id::{BeliefId, DecisionId};
use crate::name::{ActorId, Excerpt, PolicyId, words};
use crate::time::Timestamp;

words! {
    /// Who wrote the decision down.
    pub enum DecisionOrigin: "decision origin" {
        /// The agent declared it.
        Declared = "declared",
        /// The proxy made it for an opaque agent, from the provenance of the call's arguments.
        Synthesised = "synthesised",
    }
}

/// A choice, and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Its id.
    pub id: DecisionId,
    /// What was to be decided.
    pub question: String,
    /// The options and the one chosen; in JSON, two members of the decision.
    #[serde(flatten)]
    pub choice: Choice,
    /// The beliefs it rests on.
    pub belief_dependencies: Vec<BeliefId>,
    /// The policies it rests on.
    pub policy_dependencies: Vec<PolicyId>,
    /// Who decided.
    pub made_by: ActorId,
    /// When.
    pub made_at: Timestamp,
    /// Who wrote it down.
    pub origin: DecisionOrigin,
}

/// Some options, and one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Choice {
    options: NonEmpty<String>,
    // INVARIANT: one of the options; every way in goes through `new`.
    chosen: String,
}

/// The chosen option is none of the options.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the chosen option `{chosen}` is none of the {count} options")]
pub struct ChoiceError {
    /// What was to be chosen, inert.
    pub chosen: Excerpt,
    /// How many options there were.
    pub count: usize,
}

impl Choice {
    /// Chooses one of the options.
    pub fn new(options: NonEmpty<String>, chosen: String) -> Result<Self, ChoiceError> {
        if options.iter().any(|option| *option == chosen) {
            Ok(Self { options, chosen })
        } else {
            Err(ChoiceError {
                chosen: Excerpt::of(&chosen),
                count: options.as_slice().len(),
            })
        }
    }

    /// All options.
    pub fn options(&self) -> &NonEmpty<String> {
        &self.options
    }

    /// The option that was chosen.
    pub fn chosen(&self) -> &str {
        &self.chosen
    }
}

#[derive(Deserialize)]
struct Written {
    options: NonEmpty<String>,
    chosen: String,
}

impl TryFrom<Written> for Choice {
    type Error = ChoiceError;

    fn try_from(written: Written) -> Result<Self, ChoiceError> {
        Self::new(written.options, written.chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn decision() -> Decision {
        let options = NonEmpty::try_from(vec!["push".to_owned(), "wait".to_owned()]).unwrap();
        Decision {
            id: DecisionId::from_parts(1, [1; 10]),
            question: "publish the fix?".into(),
            choice: Choice::new(options, "wait".into()).unwrap(),
            belief_dependencies: vec![BeliefId::from_parts(1, [2; 10])],
            policy_dependencies: vec![PolicyId::new("policy0").unwrap()],
            made_by: ActorId::new("agent").unwrap(),
            made_at: samples::at(0),
            origin: DecisionOrigin::Synthesised,
        }
    }

    #[test]
    fn decisions_read_back() {
        let json = serde_json::to_value(decision()).unwrap();
        assert_eq!(
            (&json["chosen"], &json["origin"]),
            (&"wait".into(), &"synthesised".into())
        );
        assert_eq!(
            serde_json::from_value::<Decision>(json).unwrap(),
            decision()
        );
    }

    #[test]
    fn what_is_chosen_is_one_of_the_options() {
        let mut json = serde_json::to_value(decision()).unwrap();
        json["chosen"] = "deploy".into();
        let error = serde_json::from_value::<Decision>(json)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the chosen option `deploy` is none of the 2 options"),
            "{error}"
        );
    }
}
