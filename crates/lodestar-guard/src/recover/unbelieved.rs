//! What a session read and had not taken in yet when it stopped: it is taken in now, into its own log.

use std::sync::Arc;

use lodestar_firewall::Firewall;
use lodestar_firewall::store::{MemoryStore, Store};
use lodestar_kernel::opening::Opening;
use lodestar_log::{LogWriter, Reader};
use lodestar_replay::{Results, Returned, catch_up, extractors};

use super::past::unreadable;
use crate::error::GuardError;
use crate::keys::Keys;
use crate::recorder::SessionRecorder;
use crate::session::{Taken, outside, take_in};
use crate::surroundings::SystemSurroundings;

/// Results in one transaction.
const BATCH: usize = 64;

/// Takes in what the session had not come to, so that its log has it before it is closed or goes on.
pub(super) fn take_in_rest(
    writer: &LogWriter,
    keys: &Keys,
    opening: &Opening,
    open_store: &dyn Fn() -> Result<Box<dyn Store>, GuardError>,
) -> Result<(), GuardError> {
    let dir = writer.dir();
    let mut results = Results::new(dir);
    for event in Reader::open(dir).map_err(unreadable)? {
        results.pass(&event.map_err(unreadable)?);
    }
    let left = results.left().into_iter();
    let taken: Vec<_> = left.filter_map(|one| taken(one, opening)).collect();
    if taken.is_empty() {
        return Ok(());
    }
    // What the log has already comes first.
    writer
        .hand_over()
        .map_err(lodestar_log::AppendError::from)?;
    // What a session without all defences believed is for nobody else.
    let missing = opening.missing();
    let mut store: Box<dyn Store> = match missing.is_empty() {
        true => open_store()?,
        false => Box::new(MemoryStore::new()),
    };
    let log = dir.project_log();
    catch_up(store.as_mut(), &keys.keyring(), &log, &keys.trust())?;
    let surroundings = Box::new(SystemSurroundings::default());
    let keyring = keys.keyring().without(&missing);
    let (mut firewall, _seats) = Firewall::open(store, keyring, extractors(opening), surroundings);
    let mut recorder = SessionRecorder::new(writer.clone(), super::actor());
    for batch in taken.chunks(BATCH) {
        take_in(&mut firewall, &mut recorder, batch)?;
    }
    Ok(())
}

fn taken(returned: Returned, opening: &Opening) -> Option<Taken> {
    let observation = Arc::new(returned.observation);
    let Some(call) = returned.call else {
        return outside(observation, &opening.scope);
    };
    Some(Taken {
        observation,
        server: call.server,
        arguments: call.arguments,
        definition: call.definition,
        reviewed: call.reviewed,
        is_error: call.is_error,
        scope: opening.scope.clone(),
        recorded: Some(returned.seq),
    })
}
