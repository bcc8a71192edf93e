//! The attempts. Everything is there twice, under 1 and 2 for the accounts that it belongs to; devices 10 and 20 are
//! pending and have a key.

use super::{Attempt, DOUBLE, FIXED, NOT_OWN, UNFIT, Words, rule};

const ORDER: &str = "INSERT INTO orders (digest, account, kind, nonce, received_at)
     VALUES ({digest new order}, {account 1}, 'test', {nonce 9001}, {at 70})";
const ORDER_OF_2: &str = "INSERT INTO orders (digest, account, kind, nonce, received_at)
     VALUES ({digest their order}, {account 2}, 'test', {nonce 9002}, {at 70})";
const CHALLENGE: &str = "INSERT INTO challenges (device, key, nonce, issued_at, expires_at)
     VALUES ({device 10}, {key 10}, {nonce 10}, {at 70}, {at 80})";
const PASS: &str =
    "UPDATE challenges SET passed_at = {at 75} WHERE device = {device 10} AND nonce = {nonce 10}";
const APPROVE: &str = "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
     VALUES ({device 10}, 'pending', 'approved', 'approve', 'owner', {at 76}, 'test', {digest new order})";
const BLOCK: &str =
    "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
     VALUES ({device 10}, 'pending', 'blocked', 'block', 'platform', {at 71}, 'test')";
const DEMOTE: &str =
    "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
     VALUES ({device 1}, 'trusted', 'approved', 'demote', 'server', {at 71}, 'test')";
const PROMOTE: &str =
    "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
     VALUES ({device 1}, 'approved', 'trusted', 'promote', 'server', {at 72}, 'test')";
const UNBIND: &str = "UPDATE bindings SET unbound_at = {at 71} WHERE device = {device 1}";
const BEAT: &str = "UPDATE devices SET last_heartbeat = {at 77}, continuous_since = {at 77} WHERE id = {device 10}";
const RUN_3: &str = "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
     VALUES ({run 3}, {account 1}, {device 1}, {runner 1}, {agent 1}, {terms 1}, {digest policy}, {nonce 9003}, {at 70})";
const RUN_4_OF_2: &str = "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
     VALUES ({run 4}, {account 2}, {device 2}, {runner 2}, {agent 2}, {terms 2}, {digest policy}, {nonce 9004}, {at 70})";
const SUBMISSION_3: &str = "INSERT INTO submissions (id, account, content, created_at)
     VALUES ({submission 3}, {account 1}, 'more', {at 70})";
/// Rows number themselves.
const NUMBERED: Words = Words(
    "rows number themselves",
    "cannot insert a non-DEFAULT value",
);

pub(super) fn all() -> Vec<Attempt> {
    let mut all = Vec::new();
    all.extend(levels());
    all.extend(keys());
    all.extend(own());
    all.extend(runs());
    all.extend(attestations());
    all.extend(evaluations());
    all.extend(effects());
    all.extend(once());
    all
}

fn levels() -> Vec<Attempt> {
    vec![
        Attempt {
            what: "raise a level",
            before: &[],
            unlawful: "UPDATE devices SET level = 'trusted' WHERE id = {device 10}",
            because: super::Words("moves with a transition", "permission denied"),
            lawful: BLOCK,
        },
        Attempt {
            what: "raise a level and say since when",
            before: &[DEMOTE],
            unlawful: "UPDATE devices SET level = 'trusted', level_since = {at 71} WHERE id = {device 1}",
            because: super::Words("moves with a transition", "permission denied"),
            lawful: PROMOTE,
        },
        Attempt {
            what: "move a level back in time",
            before: &[],
            unlawful: "UPDATE devices SET level_since = {at 0} WHERE id = {device 1}",
            because: super::Words("moves with a transition", "permission denied"),
            lawful: "UPDATE devices SET paused = 1 WHERE id = {device 1}",
        },
        Attempt {
            what: "record a move that the table does not have",
            before: &[],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 10}, 'pending', 'trusted', 'promote', 'server', {at 71}, 'test')",
            because: rule("the table of moves has no such row"),
            lawful: BLOCK,
        },
        Attempt {
            what: "record a move in somebody else's name",
            before: &[],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 10}, 'pending', 'blocked', 'block', 'server', {at 71}, 'test')",
            because: rule("the table of moves has no such row"),
            lawful: BLOCK,
        },
        Attempt {
            what: "leave a level that the device does not stand on",
            before: &[],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 10}, 'approved', 'blocked', 'block', 'platform', {at 71}, 'test')",
            because: rule("leaves the level that it stands on"),
            lawful: BLOCK,
        },
        Attempt {
            what: "register a device twice",
            before: &[],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 10}, NULL, 'pending', 'register', 'owner', {at 71}, 'test')",
            because: rule("leaves the level that it stands on"),
            lawful: "INSERT INTO devices (id, account, name, level_since, registered_at)
                 VALUES ({device 30}, {account 1}, 'new', {at 70}, {at 70})",
        },
        Attempt {
            what: "leave what is for good",
            before: &[ORDER, CHALLENGE, PASS, BLOCK],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
                 VALUES ({device 10}, 'blocked', 'approved', 'approve', 'owner', {at 76}, 'test', {digest new order})",
            because: rule("the table of moves has no such row"),
            lawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 20}, 'pending', 'blocked', 'block', 'platform', {at 71}, 'test')",
        },
        Attempt {
            what: "take a block off",
            before: &[BLOCK],
            unlawful: "UPDATE devices SET level = 'pending', level_since = {at 71} WHERE id = {device 10}",
            because: super::Words("moves with a transition", "permission denied"),
            lawful: "UPDATE devices SET paused = 1 WHERE id = {device 10}",
        },
        Attempt {
            what: "approve without a passed challenge",
            before: &[ORDER, CHALLENGE],
            unlawful: APPROVE,
            because: rule("approval needs a key that passed its challenge"),
            lawful: PASS,
        },
        Attempt {
            what: "approve without a key",
            before: &[
                ORDER,
                CHALLENGE,
                PASS,
                "INSERT INTO devices (id, account, name, level_since, registered_at)
                 VALUES ({device 30}, {account 1}, 'new', {at 70}, {at 70})",
            ],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
                 VALUES ({device 30}, 'pending', 'approved', 'approve', 'owner', {at 76}, 'test', {digest new order})",
            because: rule("approval needs a key that passed its challenge"),
            lawful: APPROVE,
        },
        Attempt {
            what: "approve without an order",
            before: &[ORDER, CHALLENGE, PASS],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 10}, 'pending', 'approved', 'approve', 'owner', {at 76}, 'test')",
            because: rule("the owner acts by an order"),
            lawful: APPROVE,
        },
        Attempt {
            what: "approve by another account's order",
            before: &[ORDER, ORDER_OF_2, CHALLENGE, PASS],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
                 VALUES ({device 10}, 'pending', 'approved', 'approve', 'owner', {at 76}, 'test', {digest their order})",
            because: rule("the owner acts by an order"),
            lawful: APPROVE,
        },
        Attempt {
            what: "obey an order twice",
            before: &[ORDER, CHALLENGE, PASS, APPROVE],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
                 VALUES ({device 10}, 'approved', 'revoked', 'revoke', 'owner', {at 77}, 'test', {digest new order})",
            because: DOUBLE,
            lawful: "INSERT INTO orders (digest, account, kind, nonce, received_at)
                 VALUES ({digest next order}, {account 1}, 'test', {nonce 9009}, {at 70})",
        },
        Attempt {
            what: "trust without an attestation that counted",
            before: &[ORDER, CHALLENGE, PASS, APPROVE, BEAT, DEMOTE],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 10}, 'approved', 'trusted', 'promote', 'server', {at 78}, 'test')",
            because: rule("trust comes out of approval"),
            lawful: PROMOTE,
        },
        Attempt {
            what: "trust without continuity",
            before: &[DEMOTE, "UPDATE devices SET continuous_since = NULL WHERE id = {device 1}"],
            unlawful: PROMOTE,
            because: rule("trust comes out of approval"),
            lawful: "UPDATE devices SET continuous_since = {at 70} WHERE id = {device 1}",
        },
        Attempt {
            what: "trust out of offline",
            before: &["INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 1}, 'trusted', 'offline', 'go_offline', 'server', {at 71}, 'test')"],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 1}, 'offline', 'trusted', 'promote', 'server', {at 72}, 'test')",
            because: rule("the table of moves has no such row"),
            lawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 1}, 'offline', 'approved', 'return', 'server', {at 72}, 'test')",
        },
        Attempt {
            what: "register a device that is approved",
            before: &[],
            unlawful: "INSERT INTO devices (id, account, name, level, level_since, registered_at)
                 VALUES ({device 30}, {account 1}, 'new', 'offline', {at 70}, {at 70})",
            because: rule("a device begins pending"),
            lawful: "INSERT INTO devices (id, account, name, level, level_since, registered_at)
                 VALUES ({device 30}, {account 1}, 'new', 'pending', {at 70}, {at 70})",
        },
        Attempt {
            what: "call a device compromised that is not revoked",
            before: &[],
            unlawful: "UPDATE devices SET compromised_since = {at 5} WHERE id = {device 1}",
            because: UNFIT,
            lawful: "UPDATE devices SET daemon_version = '2' WHERE id = {device 1}",
        },
    ]
}

fn keys() -> Vec<Attempt> {
    vec![
        Attempt {
            what: "change a key",
            before: &[ORDER],
            unlawful: "UPDATE devices SET key = {key 66}, log_key = {key 67} WHERE id = {device 1}",
            because: super::Words("the last that were given", "permission denied"),
            lawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 1}, {key 66}, {key 67}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "rotate a key without an order",
            before: &[ORDER],
            unlawful: "INSERT INTO device_keys (device, key, log_key, at)
                 VALUES ({device 1}, {key 66}, {key 67}, {at 72})",
            because: rule("a pending device gets its first keys"),
            lawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 1}, {key 66}, {key 67}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "rotate a key by another account's order",
            before: &[ORDER, ORDER_OF_2],
            unlawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 1}, {key 66}, {key 67}, {at 72}, {digest their order})",
            because: rule("a pending device gets its first keys"),
            lawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 1}, {key 66}, {key 67}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "go back to a key",
            before: &[ORDER],
            unlawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 1}, {key 1}, {key 67}, {at 72}, {digest new order})",
            because: DOUBLE,
            lawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 1}, {key 66}, {key 67}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "give a key to a device that is gone for good",
            before: &[ORDER, BLOCK],
            unlawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 10}, {key 66}, {key 67}, {at 72}, {digest new order})",
            because: rule("a pending device gets its first keys"),
            lawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 1}, {key 66}, {key 67}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "record a rotation without keys",
            before: &[ORDER],
            unlawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
                 VALUES ({device 1}, 'trusted', 'approved', 'rotate_key', 'owner', {at 72}, 'test', {digest new order})",
            because: rule("a rotation has its keys"),
            lawful: "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 1}, {key 66}, {key 67}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "say that a challenge was passed",
            before: &[CHALLENGE],
            unlawful: "UPDATE devices SET challenge_passed_at = {at 75} WHERE id = {device 10}",
            because: super::Words("a challenge is passed where it stands", "permission denied"),
            lawful: PASS,
        },
        Attempt {
            what: "keep a passed challenge for another key",
            before: &[
                ORDER,
                CHALLENGE,
                PASS,
                "INSERT INTO device_keys (device, key, log_key, at, order_digest)
                 VALUES ({device 10}, {key 66}, {key 67}, {at 76}, {digest new order})",
            ],
            unlawful: "UPDATE devices SET challenge_passed_at = {at 75} WHERE id = {device 10}",
            because: super::Words("a challenge is passed where it stands", "permission denied"),
            lawful: "INSERT INTO challenges (device, key, nonce, issued_at, expires_at)
                 VALUES ({device 10}, {key 66}, {nonce 12}, {at 77}, {at 90})",
        },
        Attempt {
            what: "pass a challenge that expired",
            before: &[CHALLENGE],
            unlawful: "UPDATE challenges SET passed_at = {at 80} WHERE nonce = {nonce 10}",
            because: UNFIT,
            lawful: "UPDATE challenges SET passed_at = {at 79} WHERE nonce = {nonce 10}",
        },
        Attempt {
            what: "pass a challenge before it was made",
            before: &[CHALLENGE],
            unlawful: "UPDATE challenges SET passed_at = {at 69} WHERE nonce = {nonce 10}",
            because: UNFIT,
            lawful: "UPDATE challenges SET passed_at = {at 70} WHERE nonce = {nonce 10}",
        },
        Attempt {
            what: "pass a challenge that another replaced",
            before: &[
                CHALLENGE,
                "INSERT INTO challenges (device, key, nonce, issued_at, expires_at)
                 VALUES ({device 10}, {key 10}, {nonce 11}, {at 71}, {at 81})",
            ],
            unlawful: PASS,
            because: rule("only the last challenge can be passed"),
            lawful: "UPDATE challenges SET passed_at = {at 75} WHERE nonce = {nonce 11}",
        },
        Attempt {
            what: "make a challenge that is passed",
            before: &[],
            unlawful: "INSERT INTO challenges (device, key, nonce, issued_at, expires_at, passed_at)
                 VALUES ({device 10}, {key 10}, {nonce 10}, {at 70}, {at 80}, {at 75})",
            because: rule("a challenge is open at first"),
            lawful: CHALLENGE,
        },
        Attempt {
            what: "make a challenge for a key that the device does not have",
            before: &[],
            unlawful: "INSERT INTO challenges (device, key, nonce, issued_at, expires_at)
                 VALUES ({device 10}, {key 66}, {nonce 10}, {at 70}, {at 80})",
            because: rule("for the key that the device has"),
            lawful: CHALLENGE,
        },
        Attempt {
            what: "say that a device attested",
            before: &[],
            unlawful: "UPDATE devices SET last_attested = {at 70} WHERE id = {device 1}",
            because: super::Words("attested when an attestation came", "permission denied"),
            lawful: "UPDATE devices SET last_heartbeat = {at 70} WHERE id = {device 1}",
        },
    ]
}

/// Nothing of one account hangs on another's.
fn own() -> Vec<Attempt> {
    vec![
        Attempt {
            what: "bind a device to another account's runner",
            before: &[ORDER, UNBIND],
            unlawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 1}, {runner 2}, {at 72}, {digest new order})",
            because: NOT_OWN,
            lawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 1}, {runner 1}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "bind another account's device",
            before: &[ORDER, UNBIND],
            unlawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 2}, {runner 1}, {at 72}, {digest new order})",
            because: NOT_OWN,
            lawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 10}, {runner 1}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "bind by another account's order",
            before: &[ORDER, ORDER_OF_2, UNBIND],
            unlawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 1}, {runner 1}, {at 72}, {digest their order})",
            because: NOT_OWN,
            lawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 1}, {runner 1}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "bind twice at a time",
            before: &[ORDER],
            unlawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 1}, {runner 1}, {at 72}, {digest new order})",
            because: DOUBLE,
            lawful: UNBIND,
        },
        Attempt {
            what: "bind a device that is gone for good",
            before: &[ORDER, BLOCK, UNBIND],
            unlawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 10}, {runner 1}, {at 72}, {digest new order})",
            because: rule("on a device that is not gone for good"),
            lawful: "INSERT INTO bindings (account, device, runner, bound_at, order_digest)
                 VALUES ({account 1}, {device 1}, {runner 1}, {at 72}, {digest new order})",
        },
        Attempt {
            what: "make a token for another account's device",
            before: &[],
            unlawful: "INSERT INTO tokens (id, account, kind, device, hash, created_at)
                 VALUES ({token 30}, {account 1}, 'device', {device 2}, {digest new token}, {at 70})",
            because: NOT_OWN,
            lawful: "INSERT INTO tokens (id, account, kind, device, hash, created_at)
                 VALUES ({token 30}, {account 1}, 'device', {device 1}, {digest new token}, {at 70})",
        },
        Attempt {
            what: "make a device's token that is for none",
            before: &[],
            unlawful: "INSERT INTO tokens (id, account, kind, hash, created_at)
                 VALUES ({token 30}, {account 1}, 'device', {digest new token}, {at 70})",
            because: UNFIT,
            lawful: "INSERT INTO tokens (id, account, kind, hash, created_at)
                 VALUES ({token 30}, {account 1}, 'owner', {digest new token}, {at 70})",
        },
        Attempt {
            what: "register terms by another account's order",
            before: &[ORDER, ORDER_OF_2],
            unlawful: "INSERT INTO terms (id, account, digest, document, registered_at, order_digest)
                 VALUES ({terms 3}, {account 1}, {digest more}, '', {at 70}, {digest their order})",
            because: NOT_OWN,
            lawful: "INSERT INTO terms (id, account, digest, document, registered_at, order_digest)
                 VALUES ({terms 3}, {account 1}, {digest more}, '', {at 70}, {digest new order})",
        },
        Attempt {
            what: "take part with another account's agent",
            before: &["INSERT INTO battles (id, name, created_at) VALUES ({battle 2}, 'next', {at 70})"],
            unlawful: "INSERT INTO participations (battle, account, agent, at)
                 VALUES ({battle 2}, {account 1}, {agent 2}, {at 71})",
            because: NOT_OWN,
            lawful: "INSERT INTO participations (battle, account, agent, at)
                 VALUES ({battle 2}, {account 1}, {agent 1}, {at 71})",
        },
        Attempt {
            what: "let one run earn behind two submissions",
            before: &[RUN_3, SUBMISSION_3],
            unlawful: "INSERT INTO submission_runs (submission, run, account)
                 VALUES ({submission 3}, {run 1}, {account 1})",
            because: DOUBLE,
            lawful: "INSERT INTO submission_runs (submission, run, account)
                 VALUES ({submission 3}, {run 3}, {account 1})",
        },
        Attempt {
            what: "have the last word on a run for good",
            before: &[],
            unlawful: "INSERT INTO evaluations (n, id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES (9223372036854775807, {evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4095, 'fully_trusted',
                 NULL, 'test', {at 70})",
            because: NUMBERED,
            lawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4095, 'fully_trusted', NULL, 'test', {at 70})",
        },
        Attempt {
            what: "move a device as the last move for good",
            before: &[],
            unlawful: "INSERT INTO device_transitions (n, device, from_level, to_level, event, actor, at, cause)
                 VALUES (9223372036854775807, {device 1}, 'trusted', 'approved', 'demote', 'server', {at 71}, 'test')",
            because: NUMBERED,
            lawful: DEMOTE,
        },
        Attempt {
            what: "hand in another account's run",
            before: &[RUN_3, RUN_4_OF_2],
            unlawful: "INSERT INTO submission_runs (submission, run, account)
                 VALUES ({submission 1}, {run 4}, {account 1})",
            because: NOT_OWN,
            lawful: "INSERT INTO submission_runs (submission, run, account)
                 VALUES ({submission 1}, {run 3}, {account 1})",
        },
        Attempt {
            what: "add to another account's submission",
            before: &[RUN_3],
            unlawful: "INSERT INTO submission_runs (submission, run, account)
                 VALUES ({submission 2}, {run 3}, {account 1})",
            because: NOT_OWN,
            lawful: "INSERT INTO submission_runs (submission, run, account)
                 VALUES ({submission 1}, {run 3}, {account 1})",
        },
        Attempt {
            what: "change whose a device is",
            before: &[],
            unlawful: "UPDATE devices SET account = {account 2} WHERE id = {device 10}",
            because: FIXED,
            lawful: "UPDATE devices SET gateway_status = 'connected' WHERE id = {device 10}",
        },
    ]
}

fn runs() -> Vec<Attempt> {
    vec![
        Attempt {
            what: "register a run of another account's device",
            before: &[],
            unlawful: "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 3}, {account 1}, {device 2}, {runner 1}, {agent 1}, {terms 1}, {digest p}, {nonce 9003}, {at 70})",
            because: NOT_OWN,
            lawful: RUN_3,
        },
        Attempt {
            what: "register a run of another account's runner",
            before: &[],
            unlawful: "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 3}, {account 1}, {device 1}, {runner 2}, {agent 1}, {terms 1}, {digest p}, {nonce 9003}, {at 70})",
            because: NOT_OWN,
            lawful: RUN_3,
        },
        Attempt {
            what: "register a run of another account's agent",
            before: &[],
            unlawful: "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 3}, {account 1}, {device 1}, {runner 1}, {agent 2}, {terms 1}, {digest p}, {nonce 9003}, {at 70})",
            because: NOT_OWN,
            lawful: RUN_3,
        },
        Attempt {
            what: "register a run under another account's terms",
            before: &[],
            unlawful: "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 3}, {account 1}, {device 1}, {runner 1}, {agent 1}, {terms 2}, {digest p}, {nonce 9003}, {at 70})",
            because: NOT_OWN,
            lawful: RUN_3,
        },
        Attempt {
            what: "register a run under terms that came later",
            before: &[],
            unlawful: "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 3}, {account 1}, {device 1}, {runner 1}, {agent 1}, {terms 1}, {digest p}, {nonce 9003}, {at 6})",
            because: rule("terms are registered before a run"),
            lawful: "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 3}, {account 1}, {device 1}, {runner 1}, {agent 1}, {terms 1}, {digest p}, {nonce 9003}, {at 7})",
        },
        Attempt {
            what: "register a run of a device that is gone for good",
            before: &[BLOCK],
            unlawful: "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 3}, {account 1}, {device 10}, {runner 1}, {agent 1}, {terms 1}, {digest p}, {nonce 9003}, {at 72})",
            because: rule("gone for good makes no run"),
            lawful: RUN_3,
        },
        Attempt {
            what: "use a run's nonce again",
            before: &[],
            unlawful: "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 3}, {account 1}, {device 1}, {runner 1}, {agent 1}, {terms 1}, {digest p}, {nonce 1002}, {at 70})",
            because: DOUBLE,
            lawful: RUN_3,
        },
        Attempt {
            what: "edit a run",
            before: &[],
            unlawful: "UPDATE runs SET workflow_hash = {digest other} WHERE id = {run 1}",
            because: FIXED,
            lawful: RUN_3,
        },
        Attempt {
            what: "keep a checkpoint from before the run",
            before: &[],
            unlawful: "INSERT INTO run_checkpoints (run, size, root, note, received_at)
                 VALUES ({run 1}, 5, {digest r}, 'note', {at 19})",
            because: rule("nothing comes of a run before it is registered"),
            lawful: "INSERT INTO run_checkpoints (run, size, root, note, received_at)
                 VALUES ({run 1}, 5, {digest r}, 'note', {at 20})",
        },
        Attempt {
            what: "keep a checkpoint of a run whose session nobody knows",
            before: &[RUN_3],
            unlawful: "INSERT INTO run_checkpoints (run, size, root, note, received_at)
                 VALUES ({run 3}, 5, {digest r}, 'note', {at 70})",
            because: rule("a run's session is known before its checkpoints"),
            lawful: "INSERT INTO run_checkpoints (run, size, root, note, received_at)
                 VALUES ({run 1}, 5, {digest r}, 'note', {at 70})",
        },
        Attempt {
            what: "make a session a second run's",
            before: &[RUN_3],
            unlawful: "INSERT INTO run_sessions (run, account, session, since)
                 VALUES ({run 3}, {account 1}, 'session-1', {at 70})",
            because: DOUBLE,
            lawful: "INSERT INTO run_sessions (run, account, session, since)
                 VALUES ({run 3}, {account 1}, 'session-2', {at 70})",
        },
        Attempt {
            what: "make a run another session",
            before: &[],
            unlawful: "UPDATE run_sessions SET session = 'session-9' WHERE run = {run 1}",
            because: FIXED,
            lawful: RUN_3,
        },
        Attempt {
            what: "name the session of another account's run",
            before: &[RUN_3],
            unlawful: "INSERT INTO run_sessions (run, account, session, since)
                 VALUES ({run 3}, {account 2}, 'session-9', {at 70})",
            because: NOT_OWN,
            lawful: "INSERT INTO run_sessions (run, account, session, since)
                 VALUES ({run 3}, {account 1}, 'session-9', {at 70})",
        },
        Attempt {
            what: "keep two checkpoints of one size",
            before: &[],
            unlawful: "INSERT INTO run_checkpoints (run, size, root, note, received_at)
                 VALUES ({run 1}, 3, {digest fork}, 'note', {at 26})",
            because: DOUBLE,
            lawful: "INSERT INTO run_checkpoints (run, size, root, note, received_at)
                 VALUES ({run 1}, 4, {digest fork}, 'note', {at 26})",
        },
    ]
}

mod statement {
    //! Insertions into `attestations`, one per difference.

    macro_rules! attestation {
        ($account:literal, $run:literal, $device:literal, $level:literal, $verified:literal, $passed:literal,
         $bound:literal, $root:literal, $statement:literal, $nonce:literal, $at:literal) => {
            concat!(
                "INSERT INTO attestations (id, account, run, device, statement, nonce, root, size, device_level, valid,
                 signature_ok, gateway_verified, policy_passed, runner_bound, runner_fresh, envelope, received_at)
                 VALUES ({attestation 9}, {account ", $account, "}, {run ", $run, "}, {device ", $device,
                "}, {digest ", $statement, "}, {nonce ", $nonce, "}, {digest ", $root, "}, 9, '", $level, "', 1, 1, ",
                $verified, ", ", $passed, ", ", $bound, ", 1, '', {at ", $at, "})"
            )
        };
    }

    pub(super) const LAWFUL: &str = attestation!(
        "1", "1", "1", "trusted", "1", "1", "1", "root", "new", "9004", "70"
    );
    pub(super) const OTHER_RUN: &str = attestation!(
        "1", "2", "1", "trusted", "1", "1", "1", "root", "new", "9004", "70"
    );
    pub(super) const OTHER_DEVICE: &str = attestation!(
        "1", "1", "2", "trusted", "1", "1", "1", "root", "new", "9004", "70"
    );
    pub(super) const OTHER_ACCOUNT: &str = attestation!(
        "2", "1", "1", "trusted", "1", "1", "1", "root", "new", "9004", "70"
    );
    pub(super) const OWN_OTHER_DEVICE: &str = attestation!(
        "1", "1", "10", "trusted", "1", "1", "1", "root", "new", "9004", "70"
    );
    pub(super) const OTHER_LEVEL: &str = attestation!(
        "1", "1", "1", "approved", "1", "1", "1", "root", "new", "9004", "70"
    );
    pub(super) const UNHEALTHY: &str = attestation!(
        "1",
        "1",
        "1",
        "unhealthy",
        "1",
        "1",
        "1",
        "root",
        "new",
        "9004",
        "72"
    );
    pub(super) const OTHER_ROOT: &str = attestation!(
        "1",
        "1",
        "1",
        "trusted",
        "1",
        "1",
        "1",
        "another root",
        "new",
        "9004",
        "70"
    );
    pub(super) const OTHER_ROOT_UNVERIFIED: &str = attestation!(
        "1",
        "1",
        "1",
        "trusted",
        "0",
        "0",
        "1",
        "another root",
        "new",
        "9004",
        "70"
    );
    pub(super) const UNVERIFIED: &str = attestation!(
        "1", "1", "1", "trusted", "0", "1", "1", "root", "new", "9004", "70"
    );
    pub(super) const UNBOUND: &str = attestation!(
        "1", "1", "1", "trusted", "1", "1", "0", "root", "new", "9004", "72"
    );
    pub(super) const SAME_STATEMENT: &str = attestation!(
        "1",
        "1",
        "1",
        "trusted",
        "1",
        "1",
        "1",
        "root",
        "statement 1",
        "9004",
        "70"
    );
    pub(super) const SAME_NONCE: &str = attestation!(
        "1", "1", "1", "trusted", "1", "1", "1", "root", "new", "2001", "70"
    );
    pub(super) const EARLY: &str = attestation!(
        "1", "1", "1", "trusted", "1", "1", "1", "root", "new", "9004", "19"
    );
}

fn attestations() -> Vec<Attempt> {
    let attempt = |what, before, unlawful, because| Attempt {
        what,
        before,
        unlawful,
        because,
        lawful: statement::LAWFUL,
    };
    vec![
        attempt("attest another account's run", &[], statement::OTHER_RUN, NOT_OWN),
        attempt("attest as another account's device", &[], statement::OTHER_DEVICE, NOT_OWN),
        attempt("attest for another account", &[], statement::OTHER_ACCOUNT, NOT_OWN),
        Attempt {
            what: "attest as another device of the account",
            before: &[],
            // The level says no before the key does.
            unlawful: statement::OWN_OTHER_DEVICE,
            because: rule("one from which attestations are taken"),
            lawful: statement::LAWFUL,
        },
        attempt(
            "attest with a level that the device does not have",
            &[],
            statement::OTHER_LEVEL,
            rule("the level is the device's"),
        ),
        Attempt {
            what: "attest while unhealthy",
            before: &["INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 1}, 'trusted', 'unhealthy', 'go_unhealthy', 'server', {at 71}, 'test')"],
            unlawful: statement::UNHEALTHY,
            because: rule("one from which attestations are taken"),
            lawful: "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause)
                 VALUES ({device 1}, 'unhealthy', 'approved', 'recover', 'server', {at 72}, 'test')",
        },
        Attempt {
            what: "verify a log that was not sent",
            before: &[],
            unlawful: statement::OTHER_ROOT,
            because: rule("a log that was verified came as a bundle"),
            lawful: statement::OTHER_ROOT_UNVERIFIED,
        },
        attempt("pass a policy without a verified log", &[], statement::UNVERIFIED, UNFIT),
        Attempt {
            what: "be bound without a binding",
            before: &[UNBIND],
            unlawful: statement::LAWFUL,
            because: rule("a runner that is bound has an active binding"),
            lawful: statement::UNBOUND,
        },
        attempt("attest by the same statement again", &[], statement::SAME_STATEMENT, DOUBLE),
        attempt("attest with the same nonce again", &[], statement::SAME_NONCE, DOUBLE),
        attempt(
            "attest a run before it is registered",
            &[],
            statement::EARLY,
            rule("nothing comes of a run before it is registered"),
        ),
        attempt(
            "edit an attestation",
            &[],
            "UPDATE attestations SET policy_passed = 0 WHERE id = {attestation 1}",
            FIXED,
        ),
    ]
}

fn evaluations() -> Vec<Attempt> {
    // 4095 is every fact there is, 4093 all but the second, 4063 all but the sixth.
    vec![
        Attempt {
            what: "give a level that the facts do not add up to",
            before: &[],
            unlawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4093, 'fully_trusted', NULL, 'test', {at 70})",
            because: super::Words("", ""),
            lawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4095, 'fully_trusted', NULL, 'test', {at 70})",
        },
        Attempt {
            what: "say that something else stopped it",
            before: &[],
            unlawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4093, 'unverified', 'runner_bound', 'test', {at 70})",
            because: rule("what stopped it, follow from the facts"),
            lawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4093, 'unverified', 'account_owns_run', 'test', {at 70})",
        },
        Attempt {
            what: "claim facts of an attestation without one",
            before: &[],
            unlawful: "INSERT INTO evaluations (id, run, account, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, 4095, 'fully_trusted', NULL, 'test', {at 70})",
            because: rule("holds of the one that is named"),
            lawful: "INSERT INTO evaluations (id, run, account, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, 6, 'unverified', 'attestation_present', 'test', {at 70})",
        },
        Attempt {
            what: "claim trust that the device did not have then",
            before: &[],
            unlawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 101}, 4095, 'fully_trusted', NULL, 'test', {at 70})",
            because: rule("holds of the one that is named"),
            lawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4095, 'fully_trusted', NULL, 'test', {at 70})",
        },
        Attempt {
            what: "claim trust in what was attested when the device was somebody else's",
            before: &[
                ORDER,
                "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
                 VALUES ({device 1}, 'trusted', 'revoked', 'revoke', 'owner', {at 71}, 'test', {digest new order})",
                "UPDATE devices SET compromised_since = {at 40} WHERE id = {device 1}",
            ],
            unlawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4095, 'fully_trusted', NULL, 'test', {at 72})",
            because: rule("holds of the one that is named"),
            lawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4079, 'agent_verified', 'device_trusted', 'test', {at 72})",
        },
        Attempt {
            what: "claim a hash that is not recorded",
            before: &[RUN_3],
            unlawful: "INSERT INTO evaluations (id, run, account, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 3}, {account 1}, 1024, 'unverified', 'attestation_present', 'test', {at 71})",
            because: rule("a hash that is recorded stands in the run"),
            lawful: "INSERT INTO evaluations (id, run, account, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, 1024, 'unverified', 'attestation_present', 'test', {at 71})",
        },
        Attempt {
            what: "evaluate another account's run",
            before: &[],
            unlawful: "INSERT INTO evaluations (id, run, account, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 2}, {account 1}, 2, 'unverified', 'attestation_present', 'test', {at 70})",
            because: NOT_OWN,
            lawful: "INSERT INTO evaluations (id, run, account, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, 2, 'unverified', 'attestation_present', 'test', {at 70})",
        },
        Attempt {
            what: "let an attestation count for another run",
            before: &[RUN_3],
            unlawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 3}, {account 1}, {attestation 1}, 7, 'agent_verified', 'attestation_valid', 'test', {at 71})",
            because: NOT_OWN,
            lawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 7, 'agent_verified', 'attestation_valid', 'test', {at 71})",
        },
        Attempt {
            what: "add a row to what adds up to what",
            before: &[],
            unlawful: "INSERT INTO execution_levels (facts, level, stopped_by) VALUES (4096, 'fully_trusted', NULL)",
            because: super::Words("comes with the program", "permission denied"),
            lawful: "INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 4095, 'fully_trusted', NULL, 'test', {at 70})",
        },
    ]
}

fn effects() -> Vec<Attempt> {
    const GRANT: &str = "INSERT INTO effects (submission, effect, evaluation, at)
         VALUES ({submission 1}, 'LEADERBOARD_TIE_BREAK', {evaluation 1}, {at 71})";
    vec![
        Attempt {
            what: "earn more than the level earns",
            before: &["INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 31, 'device_verified', 'runner_bound', 'test', {at 70})"],
            unlawful: "INSERT INTO effects (submission, effect, evaluation, at)
                 VALUES ({submission 1}, 'LEADERBOARD_TIE_BREAK', {evaluation 9}, {at 71})",
            because: rule("an effect is earned"),
            lawful: "INSERT INTO effects (submission, effect, evaluation, at)
                 VALUES ({submission 1}, 'VERIFIED_DEVICE_BADGE', {evaluation 9}, {at 71})",
        },
        Attempt {
            what: "earn by what no longer holds",
            before: &["INSERT INTO evaluations (id, run, account, attestation, facts, level, stopped_by, cause, at)
                 VALUES ({evaluation 9}, {run 1}, {account 1}, {attestation 1}, 31, 'device_verified', 'runner_bound', 'test', {at 70})"],
            unlawful: GRANT,
            because: rule("an effect is earned"),
            lawful: "INSERT INTO effects (submission, effect, evaluation, at)
                 VALUES ({submission 1}, 'BATTLE_SUBMISSION_COMPLETED', {evaluation 9}, {at 71})",
        },
        Attempt {
            what: "earn by another account's run",
            before: &[],
            unlawful: "INSERT INTO effects (submission, effect, evaluation, at)
                 VALUES ({submission 1}, 'LEADERBOARD_TIE_BREAK', {evaluation 2}, {at 71})",
            because: rule("an effect is earned"),
            lawful: GRANT,
        },
        Attempt {
            what: "earn by a run of the account that is not the submission's",
            before: &[
                RUN_3,
                "INSERT INTO submissions (id, account, content, created_at)
                 VALUES ({submission 3}, {account 1}, 'more', {at 70})",
                "INSERT INTO submission_runs (submission, run, account) VALUES ({submission 3}, {run 3}, {account 1})",
            ],
            unlawful: "INSERT INTO effects (submission, effect, evaluation, at)
                 VALUES ({submission 3}, 'LEADERBOARD_TIE_BREAK', {evaluation 1}, {at 71})",
            because: rule("an effect is earned"),
            lawful: GRANT,
        },
        Attempt {
            what: "earn without an evaluation",
            before: &[],
            unlawful: "INSERT INTO effects (submission, effect, at)
                 VALUES ({submission 1}, 'VERIFIED_DEVICE_BADGE', {at 71})",
            because: rule("an effect is earned"),
            lawful: "INSERT INTO effects (submission, effect, at)
                 VALUES ({submission 1}, 'BATTLE_SUBMISSION_COMPLETED', {at 71})",
        },
        Attempt {
            what: "earn twice",
            before: &[GRANT],
            unlawful: GRANT,
            because: DOUBLE,
            lawful: "INSERT INTO effects (submission, effect, evaluation, at)
                 VALUES ({submission 1}, 'VERIFIED_DEVICE_BADGE', {evaluation 1}, {at 71})",
        },
        Attempt {
            what: "hand in for a contest without taking part",
            before: &["INSERT INTO battles (id, name, created_at) VALUES ({battle 2}, 'next', {at 70})"],
            unlawful: "INSERT INTO submissions (id, account, battle, content, created_at)
                 VALUES ({submission 3}, {account 1}, {battle 2}, 'work', {at 71})",
            because: rule("handed in by an account that takes part"),
            lawful: "INSERT INTO submissions (id, account, battle, content, created_at)
                 VALUES ({submission 3}, {account 1}, {battle 1}, 'work', {at 71})",
        },
        Attempt {
            what: "hand in a run of an agent that does not take part",
            before: &[
                RUN_3,
                "INSERT INTO agents (id, account, name, created_at) VALUES ({agent 3}, {account 1}, 'other', {at 70})",
                "INSERT INTO runs (id, account, device, runner, agent, terms, policy, nonce, registered_at)
                 VALUES ({run 4}, {account 1}, {device 1}, {runner 1}, {agent 3}, {terms 1}, {digest p}, {nonce 9005}, {at 70})",
            ],
            unlawful: "INSERT INTO submission_runs (submission, run, account)
                 VALUES ({submission 1}, {run 4}, {account 1})",
            because: rule("one of an agent that takes part"),
            lawful: "INSERT INTO submission_runs (submission, run, account)
                 VALUES ({submission 1}, {run 3}, {account 1})",
        },
    ]
}

fn once() -> Vec<Attempt> {
    vec![
        Attempt {
            what: "use a nonce again",
            before: &[],
            unlawful: "INSERT INTO nonces (device, nonce, seen_at) VALUES ({device 1}, {nonce 1}, {at 70})",
            because: super::Words("UNIQUE constraint failed", "duplicate key"),
            lawful: "INSERT INTO nonces (device, nonce, seen_at) VALUES ({device 10}, {nonce 1}, {at 70})",
        },
        Attempt {
            what: "use an order's nonce again",
            before: &[ORDER],
            unlawful: "INSERT INTO orders (digest, account, kind, nonce, received_at)
                 VALUES ({digest next order}, {account 1}, 'test', {nonce 9001}, {at 70})",
            because: DOUBLE,
            lawful: "INSERT INTO orders (digest, account, kind, nonce, received_at)
                 VALUES ({digest next order}, {account 2}, 'test', {nonce 9001}, {at 70})",
        },
        Attempt {
            what: "have two tokens of one hash",
            before: &[],
            unlawful: "INSERT INTO tokens (id, account, kind, hash, created_at)
                 VALUES ({token 30}, {account 1}, 'owner', {digest token 2}, {at 70})",
            because: DOUBLE,
            lawful: "INSERT INTO tokens (id, account, kind, hash, created_at)
                 VALUES ({token 30}, {account 1}, 'owner', {digest token 30}, {at 70})",
        },
        Attempt {
            what: "take the revocation of a token back",
            before: &["UPDATE tokens SET revoked_at = {at 70} WHERE id = {token 1}"],
            unlawful: "UPDATE tokens SET revoked_at = NULL WHERE id = {token 1}",
            because: rule("what was set once stays"),
            lawful: "UPDATE tokens SET revoked_at = {at 70} WHERE id = {token 2}",
        },
        Attempt {
            what: "use a token again",
            before: &["UPDATE tokens SET used_at = {at 70} WHERE id = {token 10}"],
            unlawful: "UPDATE tokens SET used_at = {at 71} WHERE id = {token 10}",
            because: rule("what was set once stays"),
            lawful: "UPDATE tokens SET used_at = {at 71} WHERE id = {token 20}",
        },
        Attempt {
            what: "make more of a token",
            before: &[],
            unlawful: "UPDATE tokens SET kind = 'owner', device = NULL WHERE id = {token 1}",
            because: FIXED,
            lawful: "UPDATE tokens SET revoked_at = {at 70} WHERE id = {token 1}",
        },
        Attempt {
            what: "take up a binding again",
            before: &[UNBIND],
            unlawful: "UPDATE bindings SET unbound_at = NULL WHERE device = {device 1}",
            because: rule("what was set once stays"),
            lawful: "UPDATE bindings SET unbound_at = {at 71} WHERE device = {device 2}",
        },
        Attempt {
            what: "take a device's compromise back",
            before: &[
                ORDER,
                "INSERT INTO device_transitions (device, from_level, to_level, event, actor, at, cause, order_digest)
                 VALUES ({device 1}, 'trusted', 'revoked', 'revoke', 'owner', {at 71}, 'test', {digest new order})",
                "UPDATE devices SET compromised_since = {at 40} WHERE id = {device 1}",
            ],
            unlawful: "UPDATE devices SET compromised_since = NULL WHERE id = {device 1}",
            because: rule("what was set once stays"),
            lawful: "UPDATE devices SET compromised_since = {at 40} WHERE id = {device 1}",
        },
        Attempt {
            what: "have a second kill switch",
            before: &[],
            unlawful: "INSERT INTO control (one, kill_switch, since, reason) VALUES (2, 0, NULL, '')",
            because: super::Words("CHECK constraint failed", "permission denied"),
            lawful: "UPDATE control SET kill_switch = 1, since = {at 70}, reason = 'test'",
        },
    ]
}
