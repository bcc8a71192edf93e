//! Which defences the searcher can miss, and why it cannot miss the others.

use lodestar_core::defence::Defence;

/// What the searcher can say about a defence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Testable {
    /// Without it, the searcher gets what it wants.
    Yes,
    /// It is not its to test; a probe does.
    No(&'static str),
}

/// Whether the searcher is the one to miss a defence.
pub fn testable(defence: Defence) -> Testable {
    use Defence as D;
    match defence {
        D::ContentSplit
        | D::Gate
        | D::LadderFloor
        | D::UngradedIsHeld
        | D::HoldsWait
        | D::SelfProtection
        | D::Sentinels
        | D::ApprovalSignatures
        | D::ApprovalBinding
        | D::PositiveTrust => Testable::Yes,
        D::IndirectWeighsNothing
        | D::NoVetoByReading
        | D::IndependentOrigins
        | D::Lineage
        | D::Supersession
        | D::GatedStartsRestricted
        | D::TransitionTable
        | D::ContextTruth
        | D::ContextSecurity
        | D::ContextSensitivity
        | D::ContradictionChannel
        | D::ImportsAreReadings
        | D::ReflectionFlags
        | D::RowSignatures => Testable::No(
            "a second line: content is split off before it, so that an agent that only calls tools does not get this far",
        ),
        D::DefaultDeny
        | D::ForbidsStand
        | D::PolicySignature
        | D::ContractFloor
        | D::EvaluationErrors
        | D::ArbitersOnlyTighten
        | D::CalibrationFlags => Testable::No(
            "it guards against operators' mistakes and edited files, not against what an agent calls",
        ),
        D::Containment => Testable::No(
            "the servers of the searcher do what they are asked, and nothing of their own",
        ),
        D::Revalidation | D::SecondLook | D::DefaultPreconditions => Testable::No(
            "the world of the searcher does not move between a proposal and its execution",
        ),
        D::DurableClearance | D::Halt => {
            Testable::No("nobody pulls the plug or halts a session in the world of the searcher")
        }
        D::StatementKinds | D::RefusedChangesNothing | D::OneDenialEnds => Testable::No(
            "nobody in the world of the searcher signs a statement of another kind or changes their mind",
        ),
        D::ApprovalTimes | D::ApprovalOnce | D::ApprovalTimeout => Testable::No(
            "an old or spent word is about a request that is closed, which binding refuses first",
        ),
        D::DistinctApprovers | D::RegisteredRoles => {
            Testable::No("one person approves in the world of the searcher, without roles")
        }
        D::ConfirmationEvidence
        | D::ConfirmationOnce
        | D::ConfirmationFields
        | D::ConfirmationTimes
        | D::ConfirmationReportOnly => Testable::No(
            "confirmations are given outside of the session, where the searcher is not",
        ),
        D::ParsedOnce
        | D::RefusalsAreResults
        | D::MetaStripped
        | D::DefinitionPins
        | D::OtherMethodsGated
        | D::InertRendering
        | D::ServersApart
        | D::UnknownStaysUnknown => Testable::No(
            "the servers behind the searcher's proxy only do as they are told: none lies, changes its tools, offers anything else, or crashes",
        ),
        D::LogVerification
        | D::HashChain
        | D::Checkpoints
        | D::LedgerRecords
        | D::WriterLock
        | D::TornTailRecovery
        | D::RedactionStatement
        | D::ReplayDerivation
        | D::ReportFromLog => {
            Testable::No("it shows afterwards what was done to a log, and stops no call")
        }
        D::ChallengeSignatures
        | D::NoncesOnce
        | D::DerivedFacts
        | D::OwnDevices
        | D::AttestationFields
        | D::AttestingLevels
        | D::CumulativeLadder
        | D::RunnerBindings
        | D::DeviceMoves
        | D::BestAttestation
        | D::RunJudgement => Testable::No(
            "it is a gateway's, which judges runs when they are over: the searcher is in the middle of one",
        ),
    }
}
