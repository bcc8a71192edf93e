//! The defences, each by a name, so that a harness can take one out and see that it is missed.
//!
//! A session that is opened without one of them says so in its first event (`defences_off`), and nothing
//! of it ever counts elsewhere. No configuration and no option of an ordinary command takes one out.

use crate::name::words;

words! {
    /// Something that stands between what was read and what is done.
    #[derive(PartialOrd, Ord)]
    pub enum Defence: "defence" {
        /// What a result says is kept apart from that it was returned.
        ContentSplit = "content-split",
        /// The policy is asked, and its answer counts.
        Gate = "gate",
        /// L4 waits for a human and L5 does not run, whatever the policy says.
        LadderFloor = "ladder-floor",
        /// An approval counts if the approver's key signed it.
        ApprovalSignatures = "approval-signatures",
        /// No tool reaches Lodestar's own files.
        SelfProtection = "self-protection",
        /// A log is taken for what it is only if chain, signatures and ledger agree.
        LogVerification = "log-verification",
    }
}
