//! The defences, each by a name, so that a harness can take one out and see that it is missed.
//!
//! A session that is opened without one of them says so in its first event (`defences_off`), and nothing
//! of it ever counts elsewhere. No configuration and no option of an ordinary command takes one out.

use crate::name::words;

words! {
    /// Something that stands between what was read and what is done.
    #[derive(PartialOrd, Ord)]
    pub enum Defence: "defence" {
        // --- What is read, and what is believed ---

        /// What a result says is kept apart from that it was returned.
        ContentSplit = "content-split",
        /// What was read or inferred weighs nothing for a claim.
        IndirectWeighsNothing = "indirect-weighs-nothing",
        /// What was read weighs nothing against what was observed directly.
        NoVetoByReading = "no-veto-by-reading",
        /// Evidence of one origin counts once.
        IndependentOrigins = "independent-origins",
        /// What is derived is no better than the weakest of its sources.
        Lineage = "lineage",
        /// A newer direct observation takes the place of an older one.
        Supersession = "supersession",
        /// What is not supported is not handed out normally.
        GatedStartsRestricted = "gated-starts-restricted",
        /// An axis moves as the table permits, by whom it permits.
        TransitionTable = "transition-table",
        /// A context hands out what is supported and nothing else.
        ContextTruth = "context-truth",
        /// A context hands out nothing that is suspicious or worse.
        ContextSecurity = "context-security",
        /// A context hands out nothing above its ceiling.
        ContextSensitivity = "context-sensitivity",
        /// What speaks against a belief is told apart from what is believed.
        ContradictionChannel = "contradiction-channel",
        /// Memories of other systems come in as something that was read.
        ImportsAreReadings = "imports-are-readings",
        /// A decision that rested on what is contradicted now is flagged.
        ReflectionFlags = "reflection-flags",
        /// A row of the store counts if the installation signed it.
        RowSignatures = "row-signatures",

        // --- What may run ---

        /// The policy is asked, and its answer counts.
        Gate = "gate",
        /// L4 waits for a human and L5 does not run, whatever the policy says.
        LadderFloor = "ladder-floor",
        /// A forbid at L4 is a no, and not a question to somebody.
        ForbidsStand = "forbids-stand",
        /// What no policy speaks of does not run.
        DefaultDeny = "default-deny",
        /// A tool that nobody graded waits for a human.
        UngradedIsHeld = "ungraded-is-held",
        /// A policy loads if a pinned key signed it.
        PolicySignature = "policy-signature",
        /// A grade is never laxer than the tool's own minimum.
        ContractFloor = "contract-floor",
        /// What is held runs when enough people agreed, and not before.
        HoldsWait = "holds-wait",
        /// The world is measured again before anything runs.
        Revalidation = "revalidation",
        /// Where a path leads is looked at again before anything runs.
        SecondLook = "second-look",
        /// What is held is bound to the state of repository and files.
        DefaultPreconditions = "default-preconditions",
        /// No tool reaches Lodestar's own files.
        SelfProtection = "self-protection",
        /// A program that Lodestar starts reaches what it is granted, and nothing else.
        Containment = "containment",
        /// Nothing that an arbiter says makes a verdict milder.
        ArbitersOnlyTighten = "arbiters-only-tighten",
        /// Sentinels look at a proposal before the gate answers.
        Sentinels = "sentinels",
        /// A flagged class of beliefs tightens what rests on it.
        CalibrationFlags = "calibration-flags",
        /// A policy that breaks tightens the answer.
        EvaluationErrors = "evaluation-errors",
        /// What was parsed and hashed is what runs.
        ParsedOnce = "parsed-once",
        /// From L3 on nothing runs before the leave for it is on disk.
        DurableClearance = "durable-clearance",
        /// A session that somebody halted clears nothing further.
        Halt = "halt",

        // --- People's word ---

        /// An approval counts if the approver's key signed it.
        ApprovalSignatures = "approval-signatures",
        /// An approval counts for the act, card, session and policy that it names.
        ApprovalBinding = "approval-binding",
        /// An approval counts from when it was issued until it expires.
        ApprovalTimes = "approval-times",
        /// A statement counts for what its kind is for.
        StatementKinds = "statement-kinds",
        /// What is refused changes nothing: a genuine answer still counts.
        RefusedChangesNothing = "refused-changes-nothing",
        /// One denial ends it, however many agreed.
        OneDenialEnds = "one-denial-ends",
        /// An approval is spent by the act that it opened.
        ApprovalOnce = "approval-once",
        /// What nobody answers in time does not run.
        ApprovalTimeout = "approval-timeout",
        /// A quorum is of different people.
        DistinctApprovers = "distinct-approvers",
        /// Roles come from the operator's registry.
        RegisteredRoles = "registered-roles",
        /// A confirmation is a signed statement, never text.
        ConfirmationEvidence = "confirmation-evidence",
        /// A confirmation is spent once, in a ledger that outlives the process.
        ConfirmationOnce = "confirmation-once",
        /// A confirmation matches in every field, or not at all.
        ConfirmationFields = "confirmation-fields",
        /// A confirmation counts within its time.
        ConfirmationTimes = "confirmation-times",
        /// In report-only mode a confirmation grants nothing.
        ConfirmationReportOnly = "confirmation-report-only",

        // --- Between an agent and its servers ---

        /// A refusal is an ordinary result that says why.
        RefusalsAreResults = "refusals-are-results",
        /// No server speaks in Lodestar's name.
        MetaStripped = "meta-stripped",
        /// A tool is the one that was seen first, or it does not run.
        DefinitionPins = "definition-pins",
        /// Resources and prompts go through the gate as tools do.
        OtherMethodsGated = "other-methods-gated",
        /// What others wrote is shown with its tricks made visible.
        InertRendering = "inert-rendering",
        /// A server that misbehaves holds up no other.
        ServersApart = "servers-apart",
        /// What nobody saw the end of is not run again.
        UnknownStaysUnknown = "unknown-stays-unknown",
        /// A value is trusted if it was given or measured, and not otherwise.
        PositiveTrust = "positive-trust",

        // --- The record ---

        /// A log is taken for what it is only if chain, signatures and ledger agree.
        LogVerification = "log-verification",
        /// An event commits to its payload and to the event before it.
        HashChain = "hash-chain",
        /// A signed checkpoint says how much there was.
        Checkpoints = "checkpoints",
        /// The ledger knows every session.
        LedgerRecords = "ledger-records",
        /// A session has one writer.
        WriterLock = "writer-lock",
        /// A torn line is set aside, and the log goes on.
        TornTailRecovery = "torn-tail-recovery",
        /// A tombstone needs an operator's signed word.
        RedactionStatement = "redaction-statement",
        /// Every verdict is derived again and compared.
        ReplayDerivation = "replay-derivation",
        /// A report says what the verified log says.
        ReportFromLog = "report-from-log",

        // --- Devices and executions ---

        /// A challenge is passed by a signature of the device's own key.
        ChallengeSignatures = "challenge-signatures",
        /// What a device signed is taken once.
        NoncesOnce = "nonces-once",
        /// Facts are what the gateway found, and not what a client says.
        DerivedFacts = "derived-facts",
        /// A run is attested by the device that registered it, of the same account.
        OwnDevices = "own-devices",
        /// An attestation counts for the run that it names, and says what was registered.
        AttestationFields = "attestation-fields",
        /// Attestations are taken from devices that stand well, and from no others.
        AttestingLevels = "attesting-levels",
        /// A level needs the facts of every level below it.
        CumulativeLadder = "cumulative-ladder",
        /// A runner counts on the device that its owner bound it to.
        RunnerBindings = "runner-bindings",
        /// A device moves as the table of moves says.
        DeviceMoves = "device-moves",
        /// A run is graded by the best word on it.
        BestAttestation = "best-attestation",
        /// A run is derived again, under what its owner registered before.
        RunJudgement = "run-judgement",
    }
}
