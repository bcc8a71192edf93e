//! Who may see something: the levels of content, and the coarser ones that a contract declares.
//!
//! Wherever two levels meet, the stricter wins; nothing here can lower one.

use crate::name::words;

words! {
    /// How far observed content, claims and beliefs may travel.
    #[derive(PartialOrd, Ord)]
    pub enum Sensitivity: "sensitivity" {
        /// Anyone may see it.
        Public = "public",
        /// For those who work in its scope.
        Internal = "internal",
        /// For those who need it.
        Confidential = "confidential",
        /// For those who were named.
        Secret = "secret",
    }
}

words! {
    /// What data an action handles, as its contract declares.
    #[derive(PartialOrd, Ord)]
    pub enum DataSensitivity: "data sensitivity" {
        /// Nothing that is not already public.
        Public = "public",
        /// Data of the people or the project.
        Private = "private",
        /// Credentials, keys, and what is kept like them.
        Secret = "secret",
    }
}

impl Sensitivity {
    /// The stricter of two levels.
    pub fn stricter(self, other: Self) -> Self {
        self.max(other)
    }

    /// The level of content that an action under this contract returned: its own, or what the
    /// contract implies, whichever is stricter.
    pub fn under(self, contract: DataSensitivity) -> Self {
        self.stricter(contract.into())
    }
}

impl From<DataSensitivity> for Sensitivity {
    fn from(declared: DataSensitivity) -> Self {
        match declared {
            DataSensitivity::Public => Self::Public,
            DataSensitivity::Private => Self::Internal,
            DataSensitivity::Secret => Self::Secret,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_order_from_open_to_closed() {
        assert!(Sensitivity::ALL.is_sorted());
        assert!(DataSensitivity::ALL.is_sorted());
        assert_eq!(
            Sensitivity::ALL
                .iter()
                .map(|s| s.as_str())
                .collect::<Vec<_>>(),
            ["public", "internal", "confidential", "secret"]
        );
    }

    #[test]
    fn a_contract_only_raises_the_level_of_content() {
        for &content in Sensitivity::ALL {
            for &contract in DataSensitivity::ALL {
                let result = content.under(contract);
                assert!(result >= content && result >= contract.into());
                assert!(result == content || result == contract.into());
            }
        }
        assert_eq!(
            Sensitivity::Public.under(DataSensitivity::Private),
            Sensitivity::Internal
        );
        assert_eq!(
            Sensitivity::Confidential.under(DataSensitivity::Private),
            Sensitivity::Confidential
        );
        assert_eq!(
            Sensitivity::Public.under(DataSensitivity::Secret),
            Sensitivity::Secret
        );
    }

    #[test]
    fn words_read_back_and_others_are_refused() {
        for &level in Sensitivity::ALL {
            assert_eq!(level.as_str().parse::<Sensitivity>().unwrap(), level);
        }
        assert_eq!(
            "Secret".parse::<Sensitivity>().unwrap_err().to_string(),
            "unknown sensitivity `Secret`; expected one of `public`, `internal`, `confidential`, `secret`"
        );
    }
}
