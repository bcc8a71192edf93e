//! The tables.
//!
//! Types are SQLite's: `INTEGER`, `TEXT`. Times are microseconds since 1970, yes and no are 1 and 0. What is an
//! account's names it beside every other row that it hangs on, so that a foreign key alone keeps accounts apart.

use super::{Owner, Table};

const APPEND_ONLY: Table = Table {
    name: "",
    columns: "",
    changing: &[],
    following: &[],
    forgets: false,
    owner: Owner::Nobody,
};

/// All tables, each behind those that it refers to.
pub(in crate::store) const TABLES: &[Table] = &[
    // What core's tables say; see `reference`.
    Table {
        name: "device_levels",
        columns: "
    level TEXT NOT NULL PRIMARY KEY,
    attests INTEGER NOT NULL,
    permanent INTEGER NOT NULL",
        ..APPEND_ONLY
    },
    Table {
        name: "legal_transitions",
        columns: "
    from_level TEXT NOT NULL,
    to_level TEXT NOT NULL,
    event TEXT NOT NULL,
    actor TEXT NOT NULL,
    PRIMARY KEY (from_level, to_level, event, actor)",
        ..APPEND_ONLY
    },
    Table {
        name: "execution_levels",
        columns: "
    facts INTEGER NOT NULL PRIMARY KEY,
    level TEXT NOT NULL,
    stopped_by TEXT,
    UNIQUE (facts, level)",
        ..APPEND_ONLY
    },
    Table {
        name: "effect_levels",
        columns: "
    effect TEXT NOT NULL,
    level TEXT NOT NULL,
    PRIMARY KEY (effect, level)",
        ..APPEND_ONLY
    },
    Table {
        name: "accounts",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    owner_key TEXT NOT NULL,
    created_at INTEGER NOT NULL",
        owner: Owner::Account("id"),
        ..APPEND_ONLY
    },
    Table {
        name: "orders",
        columns: "
    digest TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    kind TEXT NOT NULL,
    nonce TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    UNIQUE (account, nonce),
    UNIQUE (account, digest)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "devices",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    key TEXT,
    log_key TEXT,
    level TEXT NOT NULL DEFAULT 'pending' REFERENCES device_levels (level),
    level_since INTEGER NOT NULL,
    registered_at INTEGER NOT NULL,
    challenge_passed_at INTEGER,
    last_heartbeat INTEGER,
    continuous_since INTEGER,
    last_attested INTEGER,
    compromised_since INTEGER,
    paused INTEGER NOT NULL DEFAULT 0,
    gateway_status TEXT NOT NULL DEFAULT 'disconnected',
    daemon_version TEXT NOT NULL DEFAULT '',
    UNIQUE (account, name),
    UNIQUE (account, id),
    CHECK ((key IS NULL) = (log_key IS NULL)),
    CHECK (level NOT IN ('approved', 'trusted') OR (key IS NOT NULL AND challenge_passed_at IS NOT NULL)),
    CHECK (compromised_since IS NULL OR level = 'revoked'),
    CHECK (paused IN (0, 1))",
        changing: &[
            "last_heartbeat",
            "continuous_since",
            "compromised_since",
            "paused",
            "gateway_status",
            "daemon_version",
        ],
        following: &[
            "key",
            "log_key",
            "level",
            "level_since",
            "challenge_passed_at",
            "last_attested",
        ],
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "device_transitions",
        columns: "
    n INTEGER PRIMARY KEY CHECK (n > 0),
    device TEXT NOT NULL REFERENCES devices (id),
    from_level TEXT,
    to_level TEXT NOT NULL,
    event TEXT NOT NULL,
    actor TEXT NOT NULL,
    at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    order_digest TEXT UNIQUE REFERENCES orders (digest),
    UNIQUE (device, n)",
        owner: Owner::Through("device", "devices"),
        ..APPEND_ONLY
    },
    Table {
        name: "device_keys",
        columns: "
    n INTEGER PRIMARY KEY CHECK (n > 0),
    device TEXT NOT NULL REFERENCES devices (id),
    key TEXT NOT NULL,
    log_key TEXT NOT NULL,
    at INTEGER NOT NULL,
    order_digest TEXT UNIQUE REFERENCES orders (digest),
    UNIQUE (device, key),
    UNIQUE (device, n)",
        owner: Owner::Through("device", "devices"),
        ..APPEND_ONLY
    },
    Table {
        name: "challenges",
        columns: "
    n INTEGER PRIMARY KEY CHECK (n > 0),
    device TEXT NOT NULL REFERENCES devices (id),
    key TEXT NOT NULL,
    nonce TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    passed_at INTEGER,
    UNIQUE (device, nonce),
    UNIQUE (device, n),
    CHECK (passed_at IS NULL OR (passed_at >= issued_at AND passed_at < expires_at))",
        changing: &["passed_at"],
        owner: Owner::Through("device", "devices"),
        ..APPEND_ONLY
    },
    Table {
        name: "tokens",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    kind TEXT NOT NULL,
    device TEXT,
    hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    used_at INTEGER,
    revoked_at INTEGER,
    UNIQUE (account, id),
    CHECK (kind IN ('owner', 'enrol', 'device')),
    CHECK ((kind = 'device') = (device IS NOT NULL)),
    FOREIGN KEY (account, device) REFERENCES devices (account, id)",
        changing: &["used_at", "revoked_at"],
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "nonces",
        columns: "
    n INTEGER PRIMARY KEY,
    device TEXT NOT NULL REFERENCES devices (id),
    nonce TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    UNIQUE (device, nonce)",
        forgets: true,
        owner: Owner::Through("device", "devices"),
        ..APPEND_ONLY
    },
    Table {
        name: "strikes",
        columns: "
    n INTEGER PRIMARY KEY,
    device TEXT NOT NULL REFERENCES devices (id),
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    CHECK (kind IN ('bad_signature', 'gap', 'violation'))",
        forgets: true,
        owner: Owner::Through("device", "devices"),
        ..APPEND_ONLY
    },
    Table {
        name: "agents",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (account, name),
    UNIQUE (account, id)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "runners",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_heartbeat INTEGER,
    UNIQUE (account, name),
    UNIQUE (account, id)",
        changing: &["last_heartbeat"],
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "bindings",
        columns: "
    n INTEGER PRIMARY KEY CHECK (n > 0),
    account TEXT NOT NULL REFERENCES accounts (id),
    device TEXT NOT NULL,
    runner TEXT NOT NULL,
    bound_at INTEGER NOT NULL,
    unbound_at INTEGER,
    order_digest TEXT NOT NULL UNIQUE,
    CHECK (unbound_at IS NULL OR unbound_at >= bound_at),
    FOREIGN KEY (account, device) REFERENCES devices (account, id),
    FOREIGN KEY (account, runner) REFERENCES runners (account, id),
    FOREIGN KEY (account, order_digest) REFERENCES orders (account, digest)",
        changing: &["unbound_at"],
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "terms",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    digest TEXT NOT NULL,
    document TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    order_digest TEXT NOT NULL UNIQUE,
    UNIQUE (account, digest),
    UNIQUE (account, id),
    FOREIGN KEY (account, order_digest) REFERENCES orders (account, digest)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "runs",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    device TEXT NOT NULL,
    runner TEXT NOT NULL,
    agent TEXT NOT NULL,
    terms TEXT NOT NULL,
    policy TEXT NOT NULL,
    nonce TEXT NOT NULL UNIQUE,
    workflow_hash TEXT,
    lens_hash TEXT,
    registered_at INTEGER NOT NULL,
    UNIQUE (account, id),
    UNIQUE (account, device, id),
    FOREIGN KEY (account, device) REFERENCES devices (account, id),
    FOREIGN KEY (account, runner) REFERENCES runners (account, id),
    FOREIGN KEY (account, agent) REFERENCES agents (account, id),
    FOREIGN KEY (account, terms) REFERENCES terms (account, id)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    // Which session a run is. One of a name is one run's: what people approved in it serves no other.
    Table {
        name: "run_sessions",
        columns: "
    run TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    session TEXT NOT NULL,
    since INTEGER NOT NULL,
    UNIQUE (account, session),
    FOREIGN KEY (account, run) REFERENCES runs (account, id)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "run_checkpoints",
        columns: "
    run TEXT NOT NULL REFERENCES runs (id),
    size INTEGER NOT NULL CHECK (size >= 0),
    root TEXT NOT NULL,
    note TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (run, size)",
        owner: Owner::Through("run", "runs"),
        ..APPEND_ONLY
    },
    Table {
        name: "bundles",
        columns: "
    run TEXT NOT NULL REFERENCES runs (id),
    digest TEXT NOT NULL,
    bytes INTEGER NOT NULL CHECK (bytes >= 0),
    root TEXT NOT NULL,
    size INTEGER NOT NULL CHECK (size >= 0),
    received_at INTEGER NOT NULL,
    PRIMARY KEY (run, digest)",
        owner: Owner::Through("run", "runs"),
        ..APPEND_ONLY
    },
    Table {
        name: "attestations",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    run TEXT NOT NULL,
    device TEXT NOT NULL,
    statement TEXT NOT NULL UNIQUE,
    nonce TEXT NOT NULL,
    root TEXT NOT NULL,
    size INTEGER NOT NULL CHECK (size >= 0),
    device_level TEXT NOT NULL,
    valid INTEGER NOT NULL CHECK (valid IN (0, 1)),
    signature_ok INTEGER NOT NULL CHECK (signature_ok IN (0, 1)),
    gateway_verified INTEGER NOT NULL CHECK (gateway_verified IN (0, 1)),
    policy_passed INTEGER NOT NULL CHECK (policy_passed IN (0, 1)),
    runner_bound INTEGER NOT NULL CHECK (runner_bound IN (0, 1)),
    runner_fresh INTEGER NOT NULL CHECK (runner_fresh IN (0, 1)),
    envelope TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    UNIQUE (device, nonce),
    UNIQUE (account, run, id),
    CHECK (policy_passed = 0 OR gateway_verified = 1),
    FOREIGN KEY (account, device, run) REFERENCES runs (account, device, id)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "evaluations",
        columns: "
    n INTEGER PRIMARY KEY CHECK (n > 0),
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    account TEXT NOT NULL REFERENCES accounts (id),
    attestation TEXT,
    facts INTEGER NOT NULL,
    level TEXT NOT NULL,
    stopped_by TEXT,
    cause TEXT NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (run, n),
    FOREIGN KEY (account, run) REFERENCES runs (account, id),
    FOREIGN KEY (account, run, attestation) REFERENCES attestations (account, run, id),
    FOREIGN KEY (facts, level) REFERENCES execution_levels (facts, level)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "battles",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL",
        ..APPEND_ONLY
    },
    Table {
        name: "participations",
        columns: "
    battle TEXT NOT NULL REFERENCES battles (id),
    account TEXT NOT NULL REFERENCES accounts (id),
    agent TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (battle, account, agent),
    FOREIGN KEY (account, agent) REFERENCES agents (account, id)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "submissions",
        columns: "
    id TEXT NOT NULL PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    battle TEXT REFERENCES battles (id),
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (account, id)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "submission_runs",
        columns: "
    submission TEXT NOT NULL,
    run TEXT NOT NULL,
    account TEXT NOT NULL REFERENCES accounts (id),
    PRIMARY KEY (submission, run),
    UNIQUE (run),
    FOREIGN KEY (account, submission) REFERENCES submissions (account, id),
    FOREIGN KEY (account, run) REFERENCES runs (account, id)",
        owner: Owner::Account("account"),
        ..APPEND_ONLY
    },
    Table {
        name: "effects",
        columns: "
    submission TEXT NOT NULL REFERENCES submissions (id),
    effect TEXT NOT NULL,
    evaluation TEXT REFERENCES evaluations (id),
    at INTEGER NOT NULL,
    PRIMARY KEY (submission, effect)",
        owner: Owner::Through("submission", "submissions"),
        ..APPEND_ONLY
    },
    Table {
        name: "control",
        columns: "
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    kill_switch INTEGER NOT NULL CHECK (kill_switch IN (0, 1)),
    since INTEGER,
    reason TEXT NOT NULL",
        changing: &["kill_switch", "since", "reason"],
        ..APPEND_ONLY
    },
    Table {
        name: "outbox",
        columns: "
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    at INTEGER NOT NULL",
        forgets: true,
        ..APPEND_ONLY
    },
];

/// What is looked for beyond keys.
///
/// The first is also a rule: a device and a runner are bound once at a time.
pub(in crate::store) const INDEXES: &[&str] = &[
    "CREATE UNIQUE INDEX bindings_active ON bindings (device, runner) WHERE unbound_at IS NULL",
    "CREATE INDEX devices_by_level ON devices (level, id)",
    "CREATE INDEX tokens_by_device ON tokens (device) WHERE device IS NOT NULL",
    "CREATE INDEX nonces_by_time ON nonces (seen_at)",
    "CREATE INDEX strikes_by_device ON strikes (device, at)",
    "CREATE INDEX strikes_by_time ON strikes (at)",
    "CREATE INDEX bundles_by_digest ON bundles (digest)",
    "CREATE INDEX attestations_by_run ON attestations (run, received_at)",
    "CREATE INDEX attestations_by_device ON attestations (device, received_at)",
    "CREATE INDEX submissions_by_battle ON submissions (battle) WHERE battle IS NOT NULL",
];
