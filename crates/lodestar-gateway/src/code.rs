//! Why a request is refused: one closed list of codes, for answers, the event log, clients and the reference.
//!
//! A code never changes its meaning. What a code says to a person may; what a program does, it does by the
//! code.

use std::fmt;
use std::str::FromStr;

use lodestar_core::id::DeviceId;
use lodestar_core::name::Excerpt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

macro_rules! codes {
    ($($(#[$group:meta])* $variant:ident = $word:literal, $status:literal: $meaning:literal;)+) => {
        /// Why a request is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(
                #[doc = concat!("`", $word, "`: ", $meaning, ".")]
                $variant,
            )+
        }

        impl Code {
            /// Every code, in the order of the reference.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as it is written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The status of an answer with this code.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$variant => $status,)+
                }
            }

            /// What it means, where nothing more exact is to be said.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }
        }
    };
}

codes! {
    // What is no request at all.
    NoSuchRoute = "no_such_route", 404: "there is nothing at this path";
    MethodNotAllowed = "method_not_allowed", 405: "this path is asked by another method; see `Allow`";
    InvalidParameter = "invalid_parameter", 400: "a part of the path or the query is not of its form";
    UnsupportedMediaType = "unsupported_media_type", 415: "the body is of another type than this route takes; see `Content-Type`";
    BodyTooLarge = "body_too_large", 413: "the body is larger than this route takes";
    BodyTooSlow = "body_too_slow", 408: "the body took longer than requests may take";
    BodyBroken = "body_broken", 400: "the body broke off";
    MalformedJson = "malformed_json", 400: "the body is no JSON, is nested too deeply, or has an object with a name twice";
    InvalidBody = "invalid_body", 400: "the body has a field too many, one too few, or one of another form";

    // Whether it is answered now.
    RateLimited = "rate_limited", 429: "too many requests by this token or from this address; wait as long as `Retry-After` says";
    Overloaded = "overloaded", 503: "more is asked than can be answered; try again later";
    TookTooLong = "took_too_long", 503: "the request was not answered in time; whether it took effect can be read";
    ShuttingDown = "shutting_down", 503: "the service is ending; try again when it is back";
    Unavailable = "unavailable", 503: "the database or the event log cannot be written; nothing took effect";
    Internal = "internal", 500: "the service failed; nothing took effect";

    // Who asks.
    TokenMissing = "token_missing", 401: "no bearer token is shown; write `Authorization: Bearer …`";
    TokenInvalid = "token_invalid", 401: "the token is unknown, revoked, used up or too old";
    TokenKind = "token_kind", 403: "a token of this kind may not ask for this";
    OtherDevice = "other_device", 403: "a device's token speaks for that device only";

    // Signed statements.
    EnvelopeMalformed = "envelope_malformed", 400: "the envelope is not one, or its payload not that of its kind";
    StatementKind = "statement_kind", 400: "a statement of another kind is wanted here";
    SignatureInvalid = "signature_invalid", 403: "the statement is not signed by the key that has to sign it";
    ClockSkew = "clock_skew", 403: "the statement was not issued within the window around the service's time; set the clock";
    StatementExpired = "statement_expired", 403: "the statement has expired";
    NonceReused = "nonce_reused", 409: "the statement's nonce was seen before; sign a new statement";
    StatementMismatch = "statement_mismatch", 409: "the statement says something else than the service knows; see `field`";

    // Accounts and tokens.
    AccountUnknown = "account_unknown", 404: "there is no such account";
    AccountNameTaken = "account_name_taken", 409: "another account has this name";
    TokenUnknown = "token_unknown", 404: "the account has no such token";
    TooMany = "too_many", 409: "the account has as many of these as it may have";

    // Devices.
    DeviceUnknown = "device_unknown", 404: "the account has no such device";
    DeviceNameTaken = "device_name_taken", 409: "another device of the account has this name";
    KeyInUse = "key_in_use", 409: "this key is, or was, another's or serves another purpose; make a new one";
    DeviceWithoutKey = "device_without_key", 409: "the device has no key yet";
    DeviceHasKey = "device_has_key", 409: "the device has a key; replace it by a rotation";
    DeviceNotPending = "device_not_pending", 409: "this is for devices that wait for approval";
    DeviceNotApproved = "device_not_approved", 403: "the device is not approved yet";
    DeviceUnhealthy = "device_unhealthy", 403: "the device is unhealthy; it has to be well for as long as the cooldown takes";
    DeviceRevoked = "device_revoked", 403: "the device's owner revoked it, for good";
    DeviceBlocked = "device_blocked", 403: "the platform blocked the device, for good";
    DevicePaused = "device_paused", 403: "the device is paused";
    KillSwitch = "kill_switch", 503: "the platform stopped all signing";
    NoChallenge = "no_challenge", 409: "no challenge waits for an answer; ask for one";
    ChallengeExpired = "challenge_expired", 403: "the challenge is too old; ask for a new one";
    ChallengeWrong = "challenge_wrong", 403: "the answer is to another challenge than the one that waits";
    ChallengeNotPassed = "challenge_not_passed", 409: "the device has not answered its challenge with this key";
    NotAllowedNow = "not_allowed_now", 409: "the device's level does not allow this";

    // What runs are made of.
    AgentUnknown = "agent_unknown", 404: "the account has no such agent";
    RunnerUnknown = "runner_unknown", 404: "the account has no such runner";
    NameTaken = "name_taken", 409: "another of the account's has this name";
    AlreadyBound = "already_bound", 409: "the device is bound to this runner";
    NotBound = "not_bound", 409: "the device is not bound to this runner";
    TermsUnknown = "terms_unknown", 404: "the account has registered no such terms";
    TermsMalformed = "terms_malformed", 400: "the terms are not ones";
    TermsMissing = "terms_missing", 400: "the order registers terms, which have to come with it";
    TermsRegistered = "terms_registered", 409: "the account has registered these terms";
    PolicyUnsigned = "policy_unsigned", 403: "the terms rest on a policy that nobody signed and that is none of Lodestar's own";

    // Runs.
    RunUnknown = "run_unknown", 404: "the account has no such run";
    CheckpointInvalid = "checkpoint_invalid", 403: "the checkpoint is none, or not one by the device's log key";
    CheckpointBehind = "checkpoint_behind", 409: "the checkpoint is not later than those before it, or of another session";
    CheckpointAfterBundle = "checkpoint_after_bundle", 409: "the run's bundle is here; checkpoints come before it";
    SessionTaken = "session_taken", 409: "another run of the account is a session of this name; every run is a session of its own";
    CheckpointMissing = "checkpoint_missing", 409: "no checkpoint of the run was received before its bundle";
    BundleMismatch = "bundle_mismatch", 409: "the bytes are not those that the statement tells of";
    BundleExists = "bundle_exists", 409: "the run has a bundle, and keeps it";
    BundleMissing = "bundle_missing", 409: "the run's bundle has to be there first";
    BeingJudged = "being_judged", 409: "the run is being judged by a word that came before; ask again when that is over";
    AttestationReused = "attestation_reused", 409: "the attestation was handed in before";

    // Submissions.
    SubmissionUnknown = "submission_unknown", 404: "the account has no such submission";
    RunSubmitted = "run_submitted", 409: "the run stands behind another submission";
    BattleUnknown = "battle_unknown", 404: "there is no such battle";
    NotInBattle = "not_in_battle", 403: "the account takes no part in this battle";
    AlreadyInBattle = "already_in_battle", 409: "the account takes part in this battle, or has handed in for it";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A code that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no code that this version knows")]
pub struct UnknownCode(pub Excerpt);

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        let found = Self::ALL.iter().find(|code| code.as_str() == text);
        found.copied().ok_or_else(|| UnknownCode(Excerpt::of(text)))
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<_> = Self::ALL.iter().map(|code| code.as_str()).collect();
        json_schema!({
            "type": "string",
            "enum": words,
            "description": "Why the request is refused; the list is closed, and a code never changes its meaning.",
        })
    }
}

/// A request that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Refusal {
    /// Why.
    pub code: Code,
    /// Why, in words for whoever asked. They may repeat what was asked, so they go into no log.
    pub message: String,
    /// The field that is to blame, where it is one.
    pub field: Option<&'static str>,
    /// Seconds after which it is worth another try, where that is known.
    pub(crate) retry_after: Option<u64>,
    /// The device that it counts against, where a signature in its name was bad.
    pub(crate) strike: Option<DeviceId>,
}

impl Refusal {
    /// In the code's own words.
    pub fn of(code: Code) -> Self {
        Self::saying(code, code.meaning())
    }

    /// In more exact words.
    pub fn saying(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            retry_after: None,
            strike: None,
        }
    }

    /// A field of a statement that differs from what the service knows.
    pub fn differs(field: &'static str) -> Self {
        Self {
            field: Some(field),
            ..Self::saying(
                Code::StatementMismatch,
                format!("`{field}` is not what the service knows"),
            )
        }
    }

    /// The same, with the field that is to blame.
    #[must_use]
    pub fn at(self, field: &'static str) -> Self {
        Self {
            field: Some(field),
            ..self
        }
    }
}

impl From<Code> for Refusal {
    fn from(code: Code) -> Self {
        Self::of(code)
    }
}

/// The codes as a page of the reference, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Error codes of the gateway\n\n\
         Every refusal is answered as `{\"error\": {\"code\": …, \"message\": …}}`, with `field` where one field \
         is to blame, and stands in the service's event log under its code. This page is generated from the one \
         list of codes; a code never changes its meaning.\n\n\
         | code | status | meaning |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        page.push_str(&format!(
            "| `{}` | {} | {} |\n",
            code.as_str(),
            code.status(),
            code.meaning()
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_words_of_their_own_and_read_back() {
        let words: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            let word = code.as_str();
            let plain = word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(plain, "{word}");
            assert_eq!(word.parse(), Ok(*code));
            assert!((400..600).contains(&code.status()), "{word}");
            assert!(!code.meaning().ends_with('.'), "{word}");
        }
        assert!("no_such_code".parse::<Code>().is_err());
    }

    #[test]
    fn the_page_has_every_code() {
        let page = reference_page();
        for code in Code::ALL {
            assert!(page.contains(&format!("| `{code}` | {} |", code.status())));
        }
    }
}
