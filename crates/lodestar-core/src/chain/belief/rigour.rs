//! How strictly beliefs are judged: by every rule, unless a harness takes one out.

use crate::defence::Defence;

/// Which rules are kept: all of them, everywhere but in a harness.
///
/// What is laxer is had by naming the defence that is missing, and in no other way: it cannot be written
/// down, and no file and no configuration is read as one.
///
/// ```compile_fail,E0451
/// use lodestar_core::chain::Rigour;
///
/// let lax = Rigour { missing: u128::MAX };
/// ```
/// ```compile_fail,E0277
/// use lodestar_core::chain::Rigour;
///
/// fn configured(json: &str) -> Rigour {
///     serde_json::from_str(json).unwrap()
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rigour {
    /// One bit for each defence.
    missing: u128,
}

const _: () = assert!(Defence::ALL.len() <= 128, "every defence has its bit");

impl Rigour {
    /// Every rule is kept.
    pub const FULL: Self = Self { missing: 0 };

    /// For a harness: without these.
    pub fn without(defences: &[Defence]) -> Self {
        let bits = defences.iter().map(|defence| bit(*defence));
        Self {
            missing: bits.fold(0, |all, one| all | one),
        }
    }

    /// Whether this rule is kept.
    pub const fn keeps(self, defence: Defence) -> bool {
        self.missing & bit(defence) == 0
    }

    /// What is taken out; nothing, but in a harness.
    pub fn missing(self) -> impl Iterator<Item = Defence> {
        let all = Defence::ALL.iter().copied();
        all.filter(move |defence| !self.keeps(*defence))
    }
}

const fn bit(defence: Defence) -> u128 {
    1 << defence as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_missing_and_nothing_else() {
        assert!(
            Defence::ALL
                .iter()
                .all(|defence| Rigour::FULL.keeps(*defence))
        );
        assert_eq!(Rigour::FULL, Rigour::default());
        for &defence in Defence::ALL {
            let lax = Rigour::without(&[defence]);
            assert_eq!(lax.missing().collect::<Vec<_>>(), [defence]);
            // However often it is named.
            assert_eq!(Rigour::without(&[defence, defence]), lax);
        }
    }
}
