//! The entries of the catalogue, in the order of their names; lookup relies on that order.

use super::{EventSpec, EventType, Writer};

/// Turns each entry into a row of [`CATALOGUE`] and a constant of [`EventType`] with the row's index.
macro_rules! catalogue {
    ($($konst:ident = $name:literal @ $version:literal by $writer:ident: $carries:literal;)+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Row { $($konst),+ }

        /// Every event type there is, sorted by name.
        pub static CATALOGUE: &[EventSpec] = &[$(EventSpec {
            id: concat!($name, "@", $version),
            name: $name,
            version: $version,
            writer: Writer::$writer,
            carries: $carries,
        }),+];

        impl EventType {
            $(
                #[doc = concat!("`", $name, "@", $version, "`: ", $carries, ".")]
                pub const $konst: Self = Self(Row::$konst as u16);
            )+
        }

        /// Each constant beside what it must resolve to.
        #[cfg(test)]
        pub(super) const CONSTANTS: &[(EventType, &str)] =
            &[$((EventType::$konst, concat!($name, "@", $version))),+];
    };
}

catalogue! {
    ACTION_CLEARED = "action.cleared" @ 1 by Kernel: "preconditions measured again, and as second parent the verdict it stands on; for a held action also the grant it consumed";
    ACTION_COMPLETED = "action.completed" @ 1 by Kernel: "outcome, duration, observation; what stood at the imaged paths then?";
    ACTION_FAILED = "action.failed" @ 1 by Kernel: "outcome, duration, what failed; what stood at the imaged paths then?";
    ACTION_IMAGED = "action.imaged" @ 1 by Kernel: "before-image: what stood at each path that an act of L3 or above is about to write (content, mode, link, or that nothing did), clearance, root; where nothing could be kept, why";
    ACTION_JUDGED = "action.judged" @ 1 by Policy: "verdict, deciding policy ids, evaluation errors, floor, arbiters; the policy is the opening's";
    ACTION_NOTIFIED = "action.notified" @ 1 by Kernel: "the L3 action of which the client and watchers were told";
    ACTION_PROPOSED = "action.proposed" @ 1 by Kernel: "action id, declared decision, tool, arguments (or blob), fingerprint, measured preconditions, provenance, what the decision rests on; the contract where it is not the tool's own";
    ACTION_REJECTED = "action.rejected" @ 1 by Kernel: "kind and reason; for a precondition that moved, what was expected and what was measured; the granted request whose leave it had?";
    ACTION_UNKNOWN = "action.unknown" @ 1 by Kernel: "the action whose call was started and whose result nobody saw";
    AGENT_NOTE = "agent.note" @ 1 by Agent: "whatever the agent says about itself, verbatim; trusted for nothing";
    APPROVAL_CONSUMED = "approval.consumed" @ 1 by Policy: "the request whose grants were spent although the world had moved";
    APPROVAL_DENIED = "approval.denied" @ 1 by Policy: "the signed statement that ended the request";
    APPROVAL_EXPIRED = "approval.expired" @ 1 by Policy: "the request that nobody resolved in time";
    APPROVAL_GRANTED = "approval.granted" @ 1 by Policy: "a signed statement that verified, and how many the quorum still lacks";
    APPROVAL_REFUSED = "approval.refused" @ 1 by Policy: "the statement that did not verify, or whatever came instead, whole, and the first check that failed";
    APPROVAL_REQUESTED = "approval.requested" @ 1 by Policy: "request with card: fingerprint, contract, provenance; project, session, roles, quorum, expiry, and the digest of all of it";
    ATTESTATION_ACCEPTED = "attestation.accepted" @ 1 by Gateway: "digest of the signed statement, run, device and its level when the statement arrived";
    ATTESTATION_OVERWRITTEN = "attestation.overwritten" @ 1 by Gateway: "facts that the client sent although only the server derives them, and what the server put in their place";
    ATTESTATION_REFUSED = "attestation.refused" @ 1 by Gateway: "run, device, refusal code, field that differed";
    BELIEF_ADOPTED = "belief.adopted" @ 1 by Firewall: "claims, evidence, beliefs of one observation together, and what followed for older beliefs: superseded, promoted by direct evidence, contradicted";
    RESULTS_ADOPTED = "belief.adopted" @ 2 by Firewall: "moment, and the observations of calls whose beliefs were adopted then and say nothing beyond themselves: what is believed follows from observation, proposal, end of the call and opening";
    BELIEF_MOVED = "belief.moved" @ 1 by Firewall: "for each belief: axis, from, to, authority, cause";
    BELIEF_PROMOTED = "belief.promoted" @ 1 by Firewall: "belief and what promoted it: a signed statement, or a rule id with its evidence";
    BELIEF_READ_PRIVILEGED = "belief.read_privileged" @ 1 by Firewall: "who read past the context policy, and the query";
    CALIBRATION_COMPUTED = "calibration.computed" @ 1 by Harness: "calibration report: for each class samples, errors, gap, flag and bins; sessions that counted and did not";
    CONFIRMATION_CONSUMED = "confirmation.consumed" @ 1 by Policy: "the evidence that was spent and the action it was spent on";
    CONFIRMATION_MATCHED = "confirmation.matched" @ 1 by Policy: "evidence that would have matched; report-only, grants nothing";
    CONFIRMATION_RECORDED = "confirmation.recorded" @ 1 by Policy: "evidence as it arrived, confirmed or declined";
    CONFIRMATION_REFUSED = "confirmation.refused" @ 1 by Policy: "evidence and reason, with every field that differed";
    DECISION_MADE = "decision.made" @ 1 by Guard: "a decision that somebody declared; one that is synthesised stands in the proposal";
    DEVICE_APPROVED = "device.approved" @ 1 by Gateway: "pending to approved: digest of the owner's statement, the keys it names";
    DEVICE_BLOCKED = "device.blocked" @ 1 by Gateway: "to blocked, for good: platform actor and reason";
    DEVICE_BOUND = "device.bound" @ 1 by Gateway: "device, runner, digest of the owner's statement";
    DEVICE_CHALLENGE_PASSED = "device.challenge_passed" @ 1 by Gateway: "digest of the signed answer that verified against the device's key";
    DEVICE_CHALLENGE_REFUSED = "device.challenge_refused" @ 1 by Gateway: "refusal code of an answer that did not verify; the device stays where it is";
    DEVICE_CHALLENGED = "device.challenged" @ 1 by Gateway: "challenge issued or issued again, and until when it holds";
    DEVICE_DEMOTED = "device.demoted" @ 1 by Gateway: "trusted to approved: the condition that no longer holds";
    DEVICE_HEARTBEAT_REFUSED = "device.heartbeat_refused" @ 1 by Gateway: "device and refusal code";
    DEVICE_KEY_ROTATED = "device.key_rotated" @ 1 by Gateway: "old and new key, digest of the statement that owner, old and new key signed, level before and after";
    DEVICE_KEYED = "device.keyed" @ 1 by Gateway: "the key of a pending device that had none";
    DEVICE_PAUSED = "device.paused" @ 1 by Gateway: "one device: signing stops; digest of the owner's statement, reason";
    DEVICE_RECOVERED = "device.recovered" @ 1 by Gateway: "unhealthy to approved: health check that passed after the cooldown";
    DEVICE_REFUSED = "device.refused" @ 1 by Gateway: "any other request about a device, its actor and refusal code";
    DEVICE_REGISTERED = "device.registered" @ 1 by Gateway: "nothing to pending: owner, key if there is one";
    DEVICE_RESUMED = "device.resumed" @ 1 by Gateway: "one device: signing may go on; digest of the owner's statement";
    DEVICE_RETURNED = "device.returned" @ 1 by Gateway: "offline to approved: the heartbeat that came back";
    DEVICE_REVOKED = "device.revoked" @ 1 by Gateway: "to revoked, for good: digest of the owner's statement, compromised since when if known";
    DEVICE_TRUSTED = "device.trusted" @ 1 by Gateway: "approved to trusted: heartbeat continuity and the attestation that counted";
    DEVICE_UNBOUND = "device.unbound" @ 1 by Gateway: "device, runner, digest of the owner's statement";
    DEVICE_WENT_OFFLINE = "device.went_offline" @ 1 by Gateway: "to offline: time of the last heartbeat";
    DEVICE_WENT_UNHEALTHY = "device.went_unhealthy" @ 1 by Gateway: "to unhealthy: the limit that was passed and its counts";
    GATEWAY_ACCOUNT_OPENED = "gateway.account_opened" @ 1 by Gateway: "account, name, owner's key; by the platform";
    GATEWAY_KILL_SWITCH_LIFTED = "gateway.kill_switch_lifted" @ 1 by Gateway: "every device may sign again; by the platform";
    GATEWAY_KILL_SWITCH_SET = "gateway.kill_switch_set" @ 1 by Gateway: "every device stops signing; by the platform, reason";
    GATEWAY_REFUSED = "gateway.refused" @ 1 by Gateway: "request that is about no device, run or submission, its actor and refusal code";
    GATEWAY_STARTED = "gateway.started" @ 1 by Gateway: "version, settings in force, what the outbox still held";
    GATEWAY_STOPPED = "gateway.stopped" @ 1 by Gateway: "that every request was answered before it stopped";
    GATEWAY_TOKEN_ISSUED = "gateway.token_issued" @ 1 by Gateway: "token id, account, kind, device if it is for one, until when it holds; never the token";
    GATEWAY_TOKEN_REVOKED = "gateway.token_revoked" @ 1 by Gateway: "token id, account, who took it back";
    LEDGER_SESSION_CLOSED = "ledger.session_closed" @ 1 by Log: "closing checkpoint of a session; written again after a redaction";
    LEDGER_SESSION_OPENED = "ledger.session_opened" @ 1 by Log: "opening record of a session: format, project, session, log key, time";
    LEDGER_SESSION_REOPENED = "ledger.session_reopened" @ 1 by Log: "size and root at which a session was taken up again";
    LOG_ANCHORED = "log.anchored" @ 1 by Log: "checkpoint and the co-signature over it";
    LOG_RECOVERED = "log.recovered" @ 1 by Log: "what was cut, where, and why";
    LOG_REDACTED = "log.redacted" @ 1 by Log: "signed redaction: which content went, digests of what stood there";
    OBSERVATION_RECORDED = "observation.recorded" @ 1 by Guard: "observation, content verbatim (or blob); of a call its action and tool";
    REFLECTION_COMPLETED = "reflection.completed" @ 1 by Firewall: "window and proposals";
    REVISION_MADE = "revision.made" @ 1 by Firewall: "what changed on which link, why, triggered by what";
    RUN_AGENT_REGISTERED = "run.agent_registered" @ 1 by Gateway: "agent, account, name";
    RUN_BUNDLE_RECEIVED = "run.bundle_received" @ 1 by Gateway: "run, digest and length of the bundle, root and size that it claims, the server's time";
    RUN_CHECKPOINTED = "run.checkpointed" @ 1 by Gateway: "checkpoint of a run's log, stamped with the server's time";
    RUN_GRADED = "run.graded" @ 1 by Gateway: "execution level, its factors, what caused the evaluation";
    RUN_REFUSED = "run.refused" @ 1 by Gateway: "request about a run, its actor and refusal code";
    RUN_REGISTERED = "run.registered" @ 1 by Gateway: "run, requester, contender, runner, device, run nonce";
    RUN_RUNNER_REGISTERED = "run.runner_registered" @ 1 by Gateway: "runner, account, name";
    RUN_TERMS_REGISTERED = "run.terms_registered" @ 1 by Gateway: "digest of the terms, policy, policy keys, approver keys and tool grades, by which an owner's later runs are judged, and of the owner's statement";
    SENTINEL_ALERTED = "sentinel.alerted" @ 1 by Harness: "alert: action, sentinel, severity, whether it only observes, what it saw; before the verdict on the action, which names it";
    SERVER_FAILED = "server.failed" @ 1 by Mcp: "server, how its child ended, whether it is started again";
    SERVER_OUTPUT = "server.output" @ 1 by Mcp: "server, bounded stderr";
    SERVER_STARTED = "server.started" @ 1 by Mcp: "server, identity, containment in force";
    SESSION_CLOSED = "session.closed" @ 1 by Guard: "reason, counts, last checkpoint";
    SESSION_HALTED = "session.halted" @ 1 by Guard: "who halted it and why; nothing clears after it";
    SESSION_OPENED = "session.opened" @ 1 by Guard: "configuration digest, policy text, digest and signature state, Cedar schema digest, grades, pins, approver registry, arbiters, calibration flags?, versions, run nonce?, defences_off?";
    SUBMISSION_BATTLE_OPENED = "submission.battle_opened" @ 1 by Gateway: "battle, name; by the platform";
    SUBMISSION_JOINED = "submission.joined" @ 1 by Gateway: "battle, account, agent that takes part";
    SUBMISSION_LINKED = "submission.linked" @ 1 by Gateway: "submission and the run it rests on";
    SUBMISSION_RECEIVED = "submission.received" @ 1 by Gateway: "submission, submitter, battle";
    SUBMISSION_REFUSED = "submission.refused" @ 1 by Gateway: "request about a submission, its actor and refusal code";
    SUBMISSION_REWARDED = "submission.rewarded" @ 1 by Gateway: "execution level and the effects earned, once";
    TASK_STATED = "task.stated" @ 1 by Guard: "operator's statement, signed or not";
    TOOL_DRIFTED = "tool.drifted" @ 1 by Mcp: "server identity, pinned and new definition digest, new definition verbatim";
    TOOL_REVIEWED = "tool.reviewed" @ 1 by Operator: "server identity, definition digest, grade, signed review";
    TOOL_SEEN = "tool.seen" @ 1 by Mcp: "server identity, definition digest, original definition";
}
