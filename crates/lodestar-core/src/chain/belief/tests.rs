use super::*;
use crate::chain::evidence::{EvidenceFreshness, EvidenceItem, EvidenceRelation};
use crate::chain::samples;
use crate::chain::{Lineage, NonEmpty};

fn adoption<'a>(claim: &'a Claim, evidence: &'a EvidenceSet) -> Adoption<'a> {
    Adoption {
        id: BeliefId::from_parts(9, [9; 10]),
        claim,
        evidence,
        confidence: Confidence::EXTRACTED,
        calibration_class: CalibrationClass::new("read_file/envelope").unwrap(),
        authority: BeliefAuthority::Observed,
        observed_at: samples::at(0),
        adopted_at: samples::at(1),
    }
}

fn supporting(quality: EvidenceQuality) -> EvidenceItem {
    samples::item(
        1,
        EvidenceRelation::Supports,
        quality,
        EvidenceFreshness::Fresh,
        "g",
    )
}

#[test]
fn direct_evidence_starts_normal_and_everything_else_restricted() {
    let claim = samples::claim(1, EvidenceQuality::ToolResult);
    for &quality in EvidenceQuality::ALL {
        let evidence = samples::evidence(&claim, vec![supporting(quality)]);
        let axes = Belief::adopt(adoption(&claim, &evidence)).unwrap().axes();
        let (truth, retrieval) = match quality {
            EvidenceQuality::DirectObservation
            | EvidenceQuality::ToolResult
            | EvidenceQuality::HumanAssertion => (Truth::Supported, Retrieval::Normal),
            _ => (Truth::Unverified, Retrieval::Restricted),
        };
        let expected = Axes {
            truth,
            retrieval,
            security: Security::Clean,
            freshness: Freshness::Fresh,
        };
        assert_eq!(axes, expected, "{quality}");
    }
}

#[test]
fn confidence_and_authority_do_not_enter_truth() {
    let claim = samples::claim(1, EvidenceQuality::ExternalDocument);
    let evidence = samples::evidence(&claim, vec![supporting(EvidenceQuality::ExternalDocument)]);
    for &authority in BeliefAuthority::ALL {
        let mut sure = adoption(&claim, &evidence);
        sure.confidence = Confidence::new(1.0).unwrap();
        sure.authority = authority;
        assert_eq!(Belief::adopt(sure).unwrap().axes().truth, Truth::Unverified);
    }
}

#[test]
fn evidence_of_another_claim_is_refused() {
    let (claim, other) = (
        samples::claim(1, EvidenceQuality::ToolResult),
        samples::claim(2, EvidenceQuality::ToolResult),
    );
    let evidence = samples::evidence(&other, vec![supporting(EvidenceQuality::ToolResult)]);
    assert_eq!(
        Belief::adopt(adoption(&claim, &evidence)),
        Err(AdoptionRefused::OtherClaim {
            claim: claim.id,
            about: other.id
        })
    );
}

#[test]
fn a_restatement_cannot_pass_for_more_than_its_sources() {
    let measured = samples::claim(1, EvidenceQuality::DirectObservation);
    let read = samples::claim(2, EvidenceQuality::ExternalDocument);
    let mut summary = samples::claim(3, EvidenceQuality::ToolResult);
    summary.lineage = Lineage::derived(&measured, &[&read]);
    summary.source_observations = NonEmpty::one(samples::observation_id(3));
    for source in [
        EvidenceSource::Observation(samples::observation_id(1)),
        EvidenceSource::Observation(samples::observation_id(2)),
        EvidenceSource::Claim(measured.id),
        EvidenceSource::Claim(read.id),
        EvidenceSource::Claim(summary.id),
    ] {
        let item = EvidenceItem {
            source,
            ..supporting(EvidenceQuality::ToolResult)
        };
        let evidence = samples::evidence(&summary, vec![item]);
        assert!(matches!(
            Belief::adopt(adoption(&summary, &evidence)),
            Err(AdoptionRefused::AboveLineage {
                lineage: EvidenceQuality::ExternalDocument,
                ..
            })
        ));
    }
}

#[test]
fn independent_direct_evidence_does_support_a_claim_that_was_read() {
    let read = samples::claim(2, EvidenceQuality::ExternalDocument);
    let item = EvidenceItem {
        source: EvidenceSource::Observation(samples::observation_id(7)),
        ..supporting(EvidenceQuality::DirectObservation)
    };
    let evidence = samples::evidence(&read, vec![item]);
    assert_eq!(
        Belief::adopt(adoption(&read, &evidence))
            .unwrap()
            .axes()
            .truth,
        Truth::Supported
    );
}

#[test]
fn a_record_says_what_the_belief_says_in_the_words_of_the_specification() {
    let claim = samples::claim(1, EvidenceQuality::ToolResult);
    let evidence = samples::evidence(&claim, vec![supporting(EvidenceQuality::ToolResult)]);
    let belief = Belief::adopt(adoption(&claim, &evidence)).unwrap();
    let record = BeliefRecord::from(&belief);
    let json = serde_json::to_value(&record).unwrap();
    for (member, word) in [
        ("truth", "supported"),
        ("retrieval", "normal"),
        ("security", "clean"),
        ("freshness", "fresh"),
        ("authority", "observed"),
        ("sensitivity", "internal"),
        ("scope", "project:web"),
    ] {
        assert_eq!(json[member], word);
    }
    assert_eq!(
        serde_json::from_value::<BeliefRecord>(json).unwrap(),
        record
    );
    assert_eq!(
        (record.id, record.claim, record.axes),
        (belief.id(), belief.claim(), belief.axes())
    );
}

#[test]
fn the_axes_have_240_states() {
    let states =
        Truth::ALL.len() * Retrieval::ALL.len() * Security::ALL.len() * Freshness::ALL.len();
    assert_eq!(states, 240);
}

#[test]
fn what_is_gated_starts_restricted_unless_a_harness_takes_that_out() {
    let claim = samples::claim(1, EvidenceQuality::ExternalDocument);
    let evidence = samples::evidence(&claim, vec![supporting(EvidenceQuality::ExternalDocument)]);
    for &defence in Defence::ALL {
        let rigour = Rigour::without(&[defence]);
        let axes = Belief::adopt_by(adoption(&claim, &evidence), rigour)
            .unwrap()
            .axes();
        let handed_out = matches!(
            defence,
            Defence::GatedStartsRestricted | Defence::IndirectWeighsNothing
        );
        assert_eq!(axes.retrieval == Retrieval::Normal, handed_out, "{defence}");
    }
}
