//! Attribute names: those of the semantic conventions, and Lodestar's own.
//!
//! The GenAI and MCP conventions are in development. Pinned is the last release of the conventions that
//! contains both; later ones moved them into a repository of their own, which has no release yet. A test
//! compares the names with the official crate.

/// The release of the semantic conventions that spans follow.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

/// The instrumentation scope of every span.
pub const SCOPE: &str = "lodestar";

macro_rules! names {
    ($($(#[$doc:meta])* $konst:ident = $name:literal;)+) => {
        $($(#[$doc])* pub const $konst: &str = $name;)+

        /// Every name of this table.
        #[cfg(test)]
        pub(super) const ALL: &[&str] = &[$($name),+];
    };
}

names! {
    /// `lodestar`.
    SERVICE_NAME = "service.name";
    /// `invoke_agent` or `execute_tool`.
    GEN_AI_OPERATION_NAME = "gen_ai.operation.name";
    /// Who acts.
    GEN_AI_AGENT_NAME = "gen_ai.agent.name";
    /// The session.
    GEN_AI_CONVERSATION_ID = "gen_ai.conversation.id";
    /// The tool, as the session names it.
    GEN_AI_TOOL_NAME = "gen_ai.tool.name";
    /// `function`: whoever governs the agent calls the tool.
    GEN_AI_TOOL_TYPE = "gen_ai.tool.type";
    /// The action.
    GEN_AI_TOOL_CALL_ID = "gen_ai.tool.call.id";
    /// The arguments, as far as they may leave.
    GEN_AI_TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments";
    /// What came back, as far as it may leave.
    GEN_AI_TOOL_CALL_RESULT = "gen_ai.tool.call.result";
    /// `tools/call`, where the tool is an MCP server's.
    MCP_METHOD_NAME = "mcp.method.name";
    /// The revision that the server speaks.
    MCP_PROTOCOL_VERSION = "mcp.protocol.version";
    /// `pipe` or `tcp`, to the server.
    NETWORK_TRANSPORT = "network.transport";
    /// `http`, where the server is reached so.
    NETWORK_PROTOCOL_NAME = "network.protocol.name";
    /// Why a call went wrong, in one word.
    ERROR_TYPE = "error.type";

    /// The project.
    PROJECT = "lodestar.project";
    /// The session.
    SESSION = "lodestar.session";
    /// `closed`, `open` or `live`.
    SESSION_STATE = "lodestar.session.state";
    /// What the session is for.
    SESSION_PURPOSE = "lodestar.session.purpose";
    /// How many events the session has.
    EVENTS = "lodestar.events";
    /// How many of them a signed checkpoint covers: those that are exported.
    EVENTS_PROVEN = "lodestar.events.proven";
    /// The Merkle root over all events.
    ROOT_HASH = "lodestar.root_hash";
    /// The most sensitive content that left.
    CEILING = "lodestar.ceiling";
    /// Where in the log something stands.
    SEQ = "lodestar.seq";
    /// Its leaf hash.
    LEAF_HASH = "lodestar.leaf_hash";
    /// The `log.redacted@1` event that took its payload.
    REDACTED_BY = "lodestar.redacted_by";
    /// The policy, by digest.
    POLICY_DIGEST = "lodestar.policy.digest";
    /// The configuration, by digest.
    CONFIGURATION_DIGEST = "lodestar.configuration.digest";
    /// How far the device is trusted.
    DEVICE_TRUST = "lodestar.device_trust";
    /// How it came to run.
    EXECUTION = "lodestar.execution";
    /// Whose tool.
    SERVER = "lodestar.server";
    /// The rung that the action stands on.
    RUNG = "lodestar.rung";
    /// What exactly would be approved.
    FINGERPRINT = "lodestar.fingerprint";
    /// How sensitive the call's content is.
    SENSITIVITY = "lodestar.sensitivity";
    /// `allow`, `hold` or `deny`.
    VERDICT = "lodestar.verdict";
    /// The policies that decided.
    POLICIES = "lodestar.policies";
    /// What tightened the policies' answer.
    TIGHTENED_BY = "lodestar.tightened_by";
    /// What arbiters and sentinels saw, by their names.
    SIGNALS = "lodestar.signals";
    /// What became of the action.
    OUTCOME = "lodestar.outcome";
    /// Why it did not run, in one word.
    REJECTION = "lodestar.rejection";
    /// In words, as far as they may leave.
    REASON = "lodestar.reason";
    /// How long the tool took, in microseconds.
    DURATION = "lodestar.duration_us";
    /// The request for approval.
    REQUEST = "lodestar.request";
    /// Who answered.
    APPROVER = "lodestar.approver";
    /// With which key.
    APPROVER_KEY = "lodestar.approver.key";
    /// Which check an answer failed.
    REFUSAL = "lodestar.refusal";
    /// How many people are missing still.
    MISSING = "lodestar.approvals.missing";
    /// How many people have to agree.
    QUORUM = "lodestar.approvals.quorum";
    /// How a request for approval ended.
    CLOSING = "lodestar.request.closing";
    /// How many bytes the arguments have.
    ARGUMENTS_BYTES = "lodestar.arguments.bytes";
    /// `whole`, `cut` or `withheld`.
    ARGUMENTS_FORM = "lodestar.arguments.form";
    /// How many bytes the result has.
    RESULT_BYTES = "lodestar.result.bytes";
    /// `whole`, `cut` or `withheld`.
    RESULT_FORM = "lodestar.result.form";
    /// Which beliefs an event is about.
    BELIEFS = "lodestar.beliefs";
    /// Where each of them stands, or how each was moved.
    BELIEFS_AXES = "lodestar.beliefs.axes";
    /// On whose authority they were moved.
    AUTHORITY = "lodestar.authority";
    /// Which sentinel.
    SENTINEL = "lodestar.sentinel";
    /// How grave.
    SEVERITY = "lodestar.severity";
    /// Whether a sentinel had a say in the verdict: `arbitrate`, or `observe`.
    SENTINEL_MODE = "lodestar.sentinel.mode";
    /// How many actions there are.
    ACTIONS = "lodestar.actions";
    /// How many of them waited for people.
    ACTIONS_HELD = "lodestar.actions.held";
    /// How many did not run.
    ACTIONS_REJECTED = "lodestar.actions.rejected";
    /// How many failed.
    ACTIONS_FAILED = "lodestar.actions.failed";
    /// How many ran and nobody saw the end of.
    ACTIONS_UNKNOWN = "lodestar.actions.unknown";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The crate calls the GenAI and MCP names deprecated since they moved to another repository.
    #[test]
    #[allow(deprecated)]
    fn the_conventions_names_are_those_of_the_official_crate() {
        use opentelemetry_semantic_conventions::attribute as official;
        let pairs = [
            (SERVICE_NAME, official::SERVICE_NAME),
            (GEN_AI_OPERATION_NAME, official::GEN_AI_OPERATION_NAME),
            (GEN_AI_AGENT_NAME, official::GEN_AI_AGENT_NAME),
            (GEN_AI_CONVERSATION_ID, official::GEN_AI_CONVERSATION_ID),
            (GEN_AI_TOOL_NAME, official::GEN_AI_TOOL_NAME),
            (GEN_AI_TOOL_TYPE, official::GEN_AI_TOOL_TYPE),
            (GEN_AI_TOOL_CALL_ID, official::GEN_AI_TOOL_CALL_ID),
            (
                GEN_AI_TOOL_CALL_ARGUMENTS,
                official::GEN_AI_TOOL_CALL_ARGUMENTS,
            ),
            (GEN_AI_TOOL_CALL_RESULT, official::GEN_AI_TOOL_CALL_RESULT),
            (MCP_METHOD_NAME, official::MCP_METHOD_NAME),
            (MCP_PROTOCOL_VERSION, official::MCP_PROTOCOL_VERSION),
            (NETWORK_TRANSPORT, official::NETWORK_TRANSPORT),
            (NETWORK_PROTOCOL_NAME, official::NETWORK_PROTOCOL_NAME),
            (ERROR_TYPE, official::ERROR_TYPE),
        ];
        for (ours, theirs) in pairs {
            assert_eq!(ours, theirs);
        }
        let others = ALL.iter().filter(|name| !name.starts_with("lodestar."));
        assert_eq!(others.count(), pairs.len(), "each is compared");
    }

    #[test]
    fn no_name_stands_for_two_things() {
        assert_eq!(ALL.iter().collect::<BTreeSet<_>>().len(), ALL.len());
    }

    /// The reference names every attribute, and none that there is not.
    #[test]
    fn the_reference_lists_every_name() {
        let page = include_str!("../../../../docs/reference/opentelemetry.md");
        for name in ALL {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
        let words = page.split('`').skip(1).step_by(2);
        let is_name = |word: &&str| word.starts_with("lodestar.") && !word.contains(' ');
        for word in words.filter(is_name).filter(|word| *word != "lodestar.") {
            let is_event = super::super::root::EVENT_NAMES.contains(&word);
            assert!(is_event || ALL.contains(&word), "{word}");
        }
    }
}
