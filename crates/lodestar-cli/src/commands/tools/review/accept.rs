//! A person's word on definitions: shown, confirmed, signed, recorded, pinned.

use lodestar_core::event::EventType;
use lodestar_core::key::SecretKey;
use lodestar_core::statement::{Envelope, Issued, Nonce};
use lodestar_core::time::Timestamp;
use lodestar_guard::GuardError;
use lodestar_guard::config::Config;
use lodestar_mcp::pins::{LockFile, Pin, Pins, ServerPins};
use serde_json::{Value, json};

use super::card;
use super::waiting::Waiting;
use crate::beliefs::{Beliefs, local_actor};
use crate::cli::App;
use crate::commands::now;
use crate::failure::Failure;
use crate::installation::Installation;
use crate::operator::{self, Chosen};
use crate::pinned::{refused, subject};
use crate::terminal::Terminal;
use crate::words;

/// One definition, accepted.
struct Accepted<'a> {
    waiting: &'a Waiting,
    /// None where it is gone: there is nothing to accept any more.
    review: Option<Envelope>,
}

pub(super) fn accept(
    wanted: &[&Waiting],
    config: &Config,
    chosen: Chosen,
    yes: bool,
    app: &App,
) -> Result<Value, Failure> {
    let installation = Installation::locate()?;
    let sealed = chosen.sealed(&installation, "a review of tools")?;
    let otherwise = "its review would count for nothing";
    // Before anybody is asked anything.
    operator::pinned(&installation, &sealed.public(), otherwise)?;
    if !yes {
        confirm(wanted, app)?;
    }
    let key = operator::open(sealed)?;
    operator::pinned(&installation, &key.public(), otherwise)?;
    let log_key = installation.create_log_key()?;
    let at = now();
    let accepted: Vec<Accepted<'_>> = wanted
        .iter()
        .map(|waiting| {
            let review = review(waiting, config, &key, at)?;
            Ok(Accepted { waiting, review })
        })
        .collect::<Result<_, Failure>>()?;
    let beliefs = Beliefs::of_folder(config.root(), &config.project_id)?;
    let events = beliefs.in_session("a review of tools", local_actor(), app, |session| {
        let (_, _, recorder) = session.parts();
        let mut events = Vec::new();
        for one in &accepted {
            let payload = payload(one, config);
            let actor = recorder.actor().clone();
            let receipt = recorder
                .writer()
                .append(EventType::TOOL_REVIEWED, &actor, &[], &payload)
                .map_err(GuardError::from)?;
            events.push(receipt.seq());
        }
        // Recorded first: a pin that nobody can look up would be worth less than a record without a pin.
        LockFile::of(config.root(), &config.project_id)
            .change(&log_key, at, |pins| {
                for one in &accepted {
                    pin(pins, one, at);
                }
            })
            .map_err(refused)?;
        Ok((session.id().clone(), events))
    })?;
    let signer = key.public().key_id();
    let signer = beliefs.operators.name_of(signer.as_str()).to_owned();
    Ok(json!({
        "accepted": wanted.iter().map(|one| one.json()).collect::<Vec<_>>(),
        "signed_by": signer,
        "session": events.0,
        "events": events.1,
    }))
}

fn confirm(wanted: &[&Waiting], app: &App) -> Result<(), Failure> {
    let Some(mut terminal) = Terminal::open() else {
        return Err(
            Failure::usage("there is no terminal to ask for confirmation on")
                .help("--yes signs without asking"),
        );
    };
    let cards: String = wanted.iter().map(|one| card(one, app.out.paint)).collect();
    terminal.show(&cards)?;
    let count = words::count(wanted.len() as u64, "definition");
    let question = format!("You accept {count} as shown.\nType `yes` to sign: ");
    match terminal.ask(&question)?.as_str() {
        "yes" => Ok(()),
        _ => Err(Failure::usage("not confirmed; nothing was signed")),
    }
}

fn review(
    waiting: &Waiting,
    config: &Config,
    key: &SecretKey,
    at: Timestamp,
) -> Result<Option<Envelope>, Failure> {
    let Some(definition) = waiting.digest() else {
        return Ok(None);
    };
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    let tool = waiting.tool.as_deref();
    let issued = Issued {
        expires_at: None,
        issued_at: at,
        key_id: key.public().key_id(),
        nonce: Nonce::from_bytes(nonce),
        subject: subject(definition, &config.project_id, &waiting.identity, tool),
    };
    Envelope::sign(&issued, key)
        .map(Some)
        .map_err(|e| Failure::usage(format!("the review cannot be signed: {e}")))
}

fn payload(accepted: &Accepted<'_>, config: &Config) -> Value {
    let Accepted { waiting, review } = accepted;
    json!({
        "server": waiting.server,
        "identity": waiting.identity,
        "tool": waiting.tool,
        "definition": waiting.digest(),
        "declared": waiting.now,
        "grade": config.tool_defaults.get(&waiting.ledger()),
        "review": review,
    })
}

/// Puts what was accepted in the place of what was pinned.
fn pin(pins: &mut Pins, accepted: &Accepted<'_>, at: Timestamp) {
    let Accepted { waiting, review } = accepted;
    if let Some(appeared) = pins.appeared.get_mut(&waiting.server) {
        appeared.retain(|name, _| Some(name) != waiting.tool.as_ref());
    }
    pins.appeared.retain(|_, tools| !tools.is_empty());
    let server = pins.servers.entry(waiting.server.clone());
    let server = server.or_insert_with(|| ServerPins {
        identity: waiting.identity.clone(),
        instructions: None,
        tools: Default::default(),
    });
    // Another program under the same name: its other tools stay pinned as they were, and the word on them was
    // about the old one, so it counts no more.
    server.identity.clone_from(&waiting.identity);
    match (&waiting.tool, &waiting.now, waiting.digest()) {
        (None, now, _) => {
            server.instructions = now.as_ref().and_then(Value::as_str).map(str::to_owned);
        }
        (Some(tool), Some(definition), Some(digest)) => {
            let pin = Pin {
                digest,
                definition: definition.clone(),
                pinned_at: at,
                review: review.clone(),
                drifted: None,
            };
            server.tools.insert(tool.clone(), pin);
        }
        (Some(tool), _, _) => {
            server.tools.remove(tool);
        }
    }
}
