//! One belief, by its id or the beginning of it. Where the context policy would not hand it out,
//! looking at it is a privileged reading, and is recorded before anything is shown.

use lodestar_core::chain::{Retrieval, Security, Truth};
use lodestar_core::id::BeliefId;
use lodestar_core::sensitivity::Sensitivity;
use lodestar_core::time::Timestamp;
use lodestar_firewall::event::{
    FirewallEvent, LogPosition, ReadPrivileged, Recorder, Surroundings,
};
use lodestar_firewall::row::keys::Standing;
use lodestar_firewall::row::{EXPIRED_AFTER, StoredBelief};
use lodestar_firewall::store::HistoryRow;
use lodestar_firewall::{Dispute, Firewall};
use lodestar_guard::{OperatorSession, SystemSurroundings};
use serde_json::json;

use super::text;
use crate::beliefs::{Beliefs, local_actor};
use crate::cli::App;
use crate::failure::Failure;
use crate::inert;

/// Candidates that an error names.
const MOST_NAMED: usize = 10;
/// Beliefs that speak against one and are named.
const MOST_DISPUTES: usize = 20;

/// A belief as it was named on the command line: parsed before any store is opened.
#[derive(Debug)]
pub(crate) struct Wanted(String);

impl Wanted {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let rest = text
            .strip_prefix(BeliefId::PREFIX)
            .and_then(|rest| rest.strip_prefix('_'))
            .unwrap_or(text);
        let of_uuid = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        if rest.is_empty() || rest.len() > 36 || !rest.bytes().all(of_uuid) {
            return Err(Failure::usage(format!(
                "`{}` is neither the id of a belief nor the beginning of one",
                inert::line(text, 60)
            ))
            .help("ids look like `blf_019a8f3c-1234-7abc-89ab-0123456789ab`; `lodestar belief list` shows them"));
        }
        Ok(Self(format!("{}_{rest}", BeliefId::PREFIX)))
    }

    /// The one belief whose id starts so.
    pub(crate) fn find(&self, firewall: &mut Firewall) -> Result<BeliefId, Failure> {
        let found = firewall.find(&self.0, MOST_NAMED + 1)?;
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(
                Failure::not_found(format!("there is no belief `{}`", self.0))
                    .help("`lodestar belief list` shows what is believed, with --all everything"),
            ),
            several => {
                let more = if several.len() > MOST_NAMED {
                    ", …"
                } else {
                    ""
                };
                let named = several.iter().take(MOST_NAMED);
                let named: Vec<_> = named.map(ToString::to_string).collect();
                Err(
                    Failure::usage(format!("`{}` could be any of several beliefs", self.0))
                        .help(format!("give more of the id: {}{more}", named.join(", "))),
                )
            }
        }
    }
}

/// What is known of one belief.
pub(crate) struct One {
    pub(crate) belief: StoredBelief,
    pub(crate) standing: Standing,
    pub(crate) history: Vec<HistoryRow>,
    pub(crate) disputes: Option<Dispute>,
    /// The event that says that somebody looked past the context policy.
    pub(crate) recorded: Option<LogPosition>,
}

/// Looks at one belief; `reason` goes on record where that is due.
pub(crate) fn look(
    beliefs: &Beliefs,
    wanted: &Wanted,
    reason: &str,
    app: &App,
) -> Result<One, Failure> {
    let mut firewall = beliefs.reading(app)?;
    let id = wanted.find(&mut firewall)?;
    let one = gather(&mut firewall, id)?;
    if is_in_context(&one, SystemSurroundings::default().now()) {
        return Ok(one);
    }
    drop(firewall);
    let one = beliefs.in_session("a privileged reading", local_actor(), app, |session| {
        look_in(session, id, reason)
    })?;
    say_recorded(&one, app);
    Ok(one)
}

/// Looks at one belief from a session that is open anyway.
pub(crate) fn look_in(
    session: &mut OperatorSession,
    id: BeliefId,
    reason: &str,
) -> Result<One, Failure> {
    let (firewall, _, recorder) = session.parts();
    let mut one = gather(firewall, id)?;
    if !is_in_context(&one, SystemSurroundings::default().now()) {
        let event = FirewallEvent::ReadPrivileged(ReadPrivileged {
            reason: reason.to_owned(),
            query: json!({"belief": id}),
            found: 1,
        });
        let at = recorder
            .record(&event)
            .map_err(|error| Failure::usage(error.to_string()))?;
        one.recorded = Some(at);
    }
    Ok(one)
}

pub(crate) fn say_recorded(one: &One, app: &App) {
    if let Some(at) = &one.recorded {
        app.note(format!(
            "the default context does not hold this belief; that it was looked at is on record at {}",
            text::place(at)
        ));
    }
}

fn gather(firewall: &mut Firewall, id: BeliefId) -> Result<One, Failure> {
    let Some((belief, standing)) = firewall.look_up(id)? else {
        return Err(Failure::not_found(format!("there is no belief `{id}`")));
    };
    Ok(One {
        belief,
        standing,
        history: firewall.history(id)?,
        disputes: firewall.disputes(id, MOST_DISPUTES)?,
        recorded: None,
    })
}

/// Whether the default context could hold it.
fn is_in_context(one: &One, now: Timestamp) -> bool {
    let record = &one.belief.record;
    let axes = record.axes;
    let age = now.since(record.observed_at).unwrap_or_default();
    one.standing == Standing::Genuine
        && axes.truth == Truth::Supported
        && axes.retrieval == Retrieval::Normal
        && axes.security == Security::Clean
        && record.sensitivity <= Sensitivity::Internal
        && age <= EXPIRED_AFTER
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn a_belief_is_named_by_an_id_or_its_beginning() {
        for (text, expected) in [
            ("blf_019a", "blf_019a"),
            ("019a8f3c-12", "blf_019a8f3c-12"),
            (
                "blf_019a8f3c-1234-7abc-89ab-0123456789ab",
                "blf_019a8f3c-1234-7abc-89ab-0123456789ab",
            ),
        ] {
            assert_eq!(Wanted::parse(text).expect("named").0, expected);
        }
        for bad in [
            "",
            "blf_",
            "obs_019a",
            "BLF_019A",
            "%",
            "blf_%",
            "\x1b[2J",
            "blf_019a8f3c-1234-7abc-89ab-0123456789abc",
        ] {
            assert!(Wanted::parse(bad).is_err(), "{bad:?}");
        }
    }
}
