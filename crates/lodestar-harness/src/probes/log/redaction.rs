//! Content can be taken back, by an operator and by nobody else, and everything else stays proven.

use std::collections::BTreeSet;
use std::fs;

use lodestar_log::{Disclosure, Trust, WriterOptions, prove_consistency, prove_inclusion, redact};
use serde_json::json;

use super::{Parts, codes, files_below, last, work, workshop};
use crate::probe::{Broken, Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;

pub(super) fn probes() -> Vec<Probe> {
    vec![probe! {
        name: "redaction-keeps-proofs",
        pack: CORE,
        section: Log,
        scenario: "A token gets into a session through the real proxy. An operator takes it back with a signed statement. \
                   Then somebody who has no operator's key takes another event away in the same manner: the head stays, \
                   and a tombstone names the operator's redaction.",
        asserts: "After the operator's redaction the token is in no file of the log, the log verifies, and proofs from before \
                  hold, also that the log only grew. The tombstone that nobody signed for is found.",
        does_not_claim: "That what was taken back is in no copy, backup or other file.",
        class: "ASI10 AML.T0048",
        defence: RedactionStatement,
        run: redaction,
    }]
}

const TOKEN: &str = "sk-live-51H8xVeryPrivateToken";

fn redaction(stage: &Stage) -> Outcome {
    let project = workshop(stage)?;
    let olga = project.operator("olga")?;
    let mut agent = project.agent()?;
    work(&mut agent)?;
    agent.call(
        "files__write",
        json!({"path": "env", "content": format!("TOKEN={TOKEN}")}),
    )?;
    agent.leave()?;
    let (log, dir, keys) = (project.log()?, last(&project)?, project.keys()?);
    let trust = Trust {
        operators: keys.operators.clone(),
        ..Trust::only(keys.log.public())
    };
    let on_disk = || -> Outcome<bool> {
        for file in files_below(log.dir())? {
            let bytes = fs::read(file)?;
            if bytes
                .windows(TOKEN.len())
                .any(|part| part == TOKEN.as_bytes())
            {
                return Ok(true);
            }
        }
        Ok(false)
    };
    settle(on_disk()?, || "the token is not in the log")?;
    let record = project.record()?;
    let with_token = record
        .events
        .iter()
        .filter(|event| event.payload.to_string().contains(TOKEN));
    let seqs: BTreeSet<u64> = with_token.map(|event| event.seq).collect();
    let first = seqs.first().copied();
    let first = first.ok_or_else(|| Broken::Failed("no event has the token".to_owned()))?;
    let before = prove_inclusion(&dir, first, Disclosure::HeadOnly, &trust)?;
    let many = record.events.len() as u64;
    let root = project.verified()?.sessions[0].root;

    let options = WriterOptions::new(keys.log.clone());
    let why = "a customer's token";
    let done = redact(&log, dir.session(), &seqs, why, &olga.key, &trust, &options)?;
    hold(!on_disk()?, || "the token is in the log still")?;
    let report = project.verified()?;
    hold(report.is_intact(), || {
        format!(
            "after a redaction the log does not verify: {:?}",
            codes(&report)
        )
    })?;
    hold(
        before.check(&trust).is_ok(),
        || "a proof from before does not hold any more",
    )?;
    let grew = prove_consistency(&dir, many, &trust)?.check(&trust)?;
    let extends = grew.extends.map(|extends| extends.root);
    hold(
        extends == Some(root),
        || "the log does not extend what it was before",
    )?;

    let events = fs::read_to_string(dir.events_path())?;
    let mut forged = String::new();
    for line in events.lines() {
        let is_meant = line.contains("\"action.judged@") && forged.find("tombstone").is_none();
        match is_meant {
            true => {
                let (head, redaction) = (Parts::of(line)?.head, done.redaction);
                forged +=
                    &format!("{{\"head\":{head},\"tombstone\":{{\"redaction\":{redaction}}}}}\n");
            }
            false => forged += &format!("{line}\n"),
        }
    }
    settle(forged != events, || "nothing was taken away")?;
    fs::write(dir.events_path(), &forged)?;
    let report = project.verified()?;
    hold(
        codes(&report).contains(&"unanswered_tombstone"),
        || "an event was taken away by nobody, and nobody sees it",
    )
}
