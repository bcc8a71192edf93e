//! Typed ids of chain links: a prefix that names the type, `_`, and a UUIDv7.
//!
//! An id of one type never reads as another, in code or in a log. Clock and randomness come in as
//! parameters. There is one spelling of each id, so equal ids are equal bytes: lower case, hyphenated.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use uuid::{Builder, Uuid, Variant};

use crate::name::{Excerpt, deserialize_str};

/// The last millisecond that a UUIDv7 has room for, in the year 10889.
const MAX_MILLIS: u64 = (1 << 48) - 1;

/// Why text is not an id of the expected type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// The prefix is missing or that of another type.
    #[error("expected an id that starts with `{expected}_`, found `{found}`")]
    WrongPrefix {
        /// The expected prefix.
        expected: &'static str,
        /// What stands in its place, inert.
        found: Excerpt,
    },
    /// Letters are in upper case; one id has one spelling.
    #[error("the id `{shown}` has upper-case letters; ids are written in lower case")]
    UpperCase {
        /// The refused input, inert.
        shown: Excerpt,
    },
    /// What follows the prefix is not a hyphenated UUID.
    #[error(
        "the id `{shown}` does not end in a UUID of the form `xxxxxxxx-xxxx-7xxx-xxxx-xxxxxxxxxxxx`"
    )]
    NotUuid {
        /// The refused input, inert.
        shown: Excerpt,
    },
    /// A UUID of another version or variant.
    #[error(
        "the id `{shown}` holds a UUID of version {version}; ids are UUIDs of version 7, RFC 9562 variant"
    )]
    NotVersion7 {
        /// The version it states.
        version: usize,
        /// The refused input, inert.
        shown: Excerpt,
    },
}

fn parse(text: &str, expected: &'static str) -> Result<Uuid, IdError> {
    let Some(rest) = text
        .strip_prefix(expected)
        .and_then(|rest| rest.strip_prefix('_'))
    else {
        let found = text.split_once('_').map_or(text, |(prefix, _)| prefix);
        return Err(IdError::WrongPrefix {
            expected,
            found: Excerpt::of(found),
        });
    };
    let shown = || Excerpt::of(text);
    if rest.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(IdError::UpperCase { shown: shown() });
    }
    // The uuid crate also reads braces, URNs and plain hex; only one of the forms has this length
    // and hyphens.
    let uuid = match Uuid::try_parse(rest) {
        Ok(uuid) if rest.len() == 36 => uuid,
        _ => return Err(IdError::NotUuid { shown: shown() }),
    };
    if uuid.get_version_num() != 7 || uuid.get_variant() != Variant::RFC4122 {
        return Err(IdError::NotVersion7 {
            version: uuid.get_version_num(),
            shown: shown(),
        });
    }
    Ok(uuid)
}

/// The length of a spelled id: prefixes have three letters, as a test says.
const SPELLED: usize = 3 + 1 + uuid::fmt::Hyphenated::LENGTH;

fn spelled<'a>(buffer: &'a mut [u8; SPELLED], prefix: &str, uuid: Uuid) -> &'a str {
    let (before, rest) = buffer.split_at_mut(4);
    before[..3].copy_from_slice(prefix.as_bytes());
    before[3] = b'_';
    uuid.hyphenated().encode_lower(rest);
    std::str::from_utf8(buffer).expect("INVARIANT: a prefix and a UUID are ASCII")
}

fn unix_millis(uuid: Uuid) -> u64 {
    (uuid.as_u128() >> 80) as u64
}

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)+) => {
        $(
            $(#[$doc])*
            #[doc = concat!("\nWritten `", $prefix, "_` and a UUIDv7. Ids order by the millisecond they were made in.")]
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(Uuid);

            impl $name {
                /// What the id starts with, before the `_`.
                pub const PREFIX: &'static str = $prefix;

                /// Makes an id out of a time and random bytes.
                ///
                /// A UUIDv7 has room for 48 bits of milliseconds; a later time counts as the last
                /// it can hold. Six of the random bits give way to version and variant.
                pub fn from_parts(unix_millis: u64, random: [u8; 10]) -> Self {
                    let millis = unix_millis.min(MAX_MILLIS);
                    Self(Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
                }

                /// The id of this type that belongs to an action: the same UUID under another prefix, so
                /// that who knows the one knows the other.
                pub fn of_action(action: ActionId) -> Self {
                    Self(action.0)
                }

                /// The time the id was made with, in milliseconds since 1970.
                pub fn unix_millis(self) -> u64 {
                    unix_millis(self.0)
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, concat!($prefix, "_{}"), self.0.hyphenated())
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Display::fmt(self, f)
                }
            }

            impl FromStr for $name {
                type Err = IdError;

                fn from_str(text: &str) -> Result<Self, IdError> {
                    parse(text, $prefix).map(Self)
                }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(spelled(&mut [0; SPELLED], $prefix, self.0))
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserialize_str(deserializer)
                }
            }
        )+

        #[cfg(test)]
        const PREFIXES: &[&str] = &[$($prefix),+];
    };
}

id_types! {
    /// An [`Observation`](crate::chain::Observation).
    ObservationId = "obs";
    /// A [`Claim`](crate::chain::Claim).
    ClaimId = "clm";
    /// An [`EvidenceSet`](crate::chain::EvidenceSet).
    EvidenceSetId = "evs";
    /// An [`EvidenceItem`](crate::chain::EvidenceItem).
    EvidenceId = "evd";
    /// A [`Belief`](crate::chain::Belief).
    BeliefId = "blf";
    /// A [`Decision`](crate::chain::Decision).
    DecisionId = "dec";
    /// An [`Action`](crate::chain::Action).
    ActionId = "act";
    /// An [`Outcome`](crate::chain::Outcome).
    OutcomeId = "out";
    /// A [`Revision`](crate::chain::Revision).
    RevisionId = "rev";
    /// A request for approval.
    RequestId = "req";
    /// A clearance that the gate minted.
    ClearanceId = "clr";
    /// One invocation of a tool.
    InvocationId = "inv";
    /// An account of a gateway: whoever owns devices, agents and runs.
    AccountId = "acc";
    /// A machine with a key of its own.
    DeviceId = "dev";
    /// A program on a device that makes runs.
    RunnerId = "rnr";
    /// An agent of an account, in whose name a run is made.
    ContenderId = "agt";
    /// One governed session that is to be attested.
    RunId = "run";
    /// A device's word on a run.
    AttestationId = "att";
    /// What a gateway made of a run.
    EvaluationId = "evl";
    /// What an owner registered runs to be judged by.
    TermsId = "trm";
    /// What somebody may show to a gateway.
    TokenId = "tok";
    /// A piece of work that was handed in.
    SubmissionId = "sub";
    /// A contest that work is handed in for.
    BattleId = "btl";
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "obs_01890a5d-ac96-774b-bcce-b302099a8057";

    #[test]
    fn prefixes_are_unique_and_none_starts_another() {
        for (i, a) in PREFIXES.iter().enumerate() {
            for (j, b) in PREFIXES.iter().enumerate() {
                assert!(i == j || !a.starts_with(b), "{a} {b}");
            }
        }
    }

    #[test]
    fn the_example_of_the_standard_reads_back() {
        // Time and UUID of RFC 9562, appendix A.6.
        let id: ActionId = "act_017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        assert_eq!(id.unix_millis(), 0x017F_22E2_79B0);
        assert_eq!(id.to_string(), "act_017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    }

    #[test]
    fn an_id_of_one_type_is_not_one_of_another() {
        let error = GOOD.parse::<ClaimId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected an id that starts with `clm_`, found `obs`"
        );
        let accepted = [
            GOOD.parse::<ObservationId>().is_ok(),
            GOOD.parse::<EvidenceSetId>().is_ok(),
            GOOD.parse::<EvidenceId>().is_ok(),
            GOOD.parse::<BeliefId>().is_ok(),
            GOOD.parse::<DecisionId>().is_ok(),
            GOOD.parse::<ActionId>().is_ok(),
            GOOD.parse::<OutcomeId>().is_ok(),
            GOOD.parse::<RevisionId>().is_ok(),
            GOOD.parse::<RequestId>().is_ok(),
            GOOD.parse::<ClearanceId>().is_ok(),
            GOOD.parse::<InvocationId>().is_ok(),
        ];
        assert_eq!(accepted.iter().filter(|&&ok| ok).count(), 1);
    }

    #[test]
    fn every_refusal_names_its_reason() {
        let error = |text: &str| text.parse::<ObservationId>().unwrap_err();
        assert!(matches!(error(""), IdError::WrongPrefix { .. }));
        assert!(matches!(
            error("OBS_01890a5d-ac96-774b-bcce-b302099a8057"),
            IdError::WrongPrefix { .. }
        ));
        assert!(matches!(
            error("01890a5d-ac96-774b-bcce-b302099a8057"),
            IdError::WrongPrefix { .. }
        ));
        assert!(matches!(
            error("obs_01890A5D-AC96-774B-BCCE-B302099A8057"),
            IdError::UpperCase { .. }
        ));
        for not_uuid in [
            "obs_",
            "obs_01890a5dac96774bbcceb302099a8057",
            "obs_{01890a5d-ac96-774b-bcce-b302099a8057}",
            "obs_urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057",
            "obs_01890a5d-ac96-774b-bcce-b302099a8057 ",
            "obs_01890a5d-ac96-774b-bcce-b302099a805g",
            "obs_01890a5da-c96-774b-bcce-b302099a8057",
            "obs__01890a5d-ac96-774b-bcce-b302099a805",
        ] {
            assert!(
                matches!(error(not_uuid), IdError::NotUuid { .. }),
                "{not_uuid}"
            );
        }
        assert!(matches!(
            error("obs_01890a5d-ac96-474b-bcce-b302099a8057"),
            IdError::NotVersion7 { version: 4, .. }
        ));
        assert!(matches!(
            error("obs_01890a5d-ac96-774b-0cce-b302099a8057"),
            IdError::NotVersion7 { version: 7, .. }
        ));
    }

    #[test]
    fn hostile_ids_render_inert_and_short() {
        let huge = format!("obs_{}", "\u{1b}".repeat(1 << 16));
        let message = huge.parse::<ObservationId>().unwrap_err().to_string();
        assert!(
            message.len() < 300 && message.bytes().all(|b| (b' '..=b'~').contains(&b)),
            "{message}"
        );
    }

    #[test]
    fn a_time_beyond_the_format_counts_as_the_last_it_can_hold() {
        assert_eq!(
            BeliefId::from_parts(u64::MAX, [0; 10]).unix_millis(),
            MAX_MILLIS
        );
    }

    proptest! {
        #[test]
        fn ids_read_back_and_keep_their_time(millis in 0..=MAX_MILLIS, random: [u8; 10]) {
            let id = BeliefId::from_parts(millis, random);
            prop_assert_eq!(id.unix_millis(), millis);
            prop_assert_eq!(id.to_string().parse::<BeliefId>().unwrap(), id);
            let json = serde_json::to_string(&id).unwrap();
            prop_assert_eq!(serde_json::from_str::<BeliefId>(&json).unwrap(), id);
        }

        #[test]
        fn ids_order_as_their_text_does(a in 0..=MAX_MILLIS, b in 0..=MAX_MILLIS, x: [u8; 10], y: [u8; 10]) {
            let (a, b) = (BeliefId::from_parts(a, x), BeliefId::from_parts(b, y));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }
    }
}
