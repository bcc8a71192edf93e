//! An operator's signed order about one belief: shown, confirmed, signed, followed, or refused.

use std::io::Write as _;

use lodestar_core::chain::transition::{AxisMove, State};
use lodestar_core::chain::{Axes, Retrieval};
use lodestar_core::key::SecretKey;
use lodestar_core::name::ProjectId;
use lodestar_core::statement::{Envelope, Issued, Nonce, Promotion};
use lodestar_firewall::claim_digest;
use lodestar_firewall::event::{Change, LogPosition, Surroundings as _};
use lodestar_guard::{OperatorSession, SystemSurroundings};
use serde_json::json;

use super::one::{self, One, Wanted};
use super::text;
use crate::beliefs::{Beliefs, BeliefsArgs, local_actor};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::installation::Installation;
use crate::operator::{self, OperatorArgs};
use crate::terminal::Terminal;
use crate::{inert, words};

/// What stands in a statement whose signer gave no reason.
const NO_REASON: &str = "no reason given";

/// An order as it was given on the command line.
pub(super) struct Order<'a> {
    pub(super) belief: &'a str,
    pub(super) operator: &'a OperatorArgs,
    pub(super) reason: Option<&'a str>,
    pub(super) yes: bool,
    /// Where the belief is to go from where it stands.
    pub(super) moves: &'a dyn Fn(Axes) -> Vec<AxisMove>,
}

/// An order that was followed.
struct Followed {
    before: One,
    change: Change,
    at: LogPosition,
}

pub(super) fn give(
    order: &Order<'_>,
    beliefs: &BeliefsArgs,
    app: &mut App,
) -> Result<Exit, Failure> {
    let wanted = Wanted::parse(order.belief)?;
    let chosen = order.operator.parse()?;
    let beliefs = Beliefs::find(beliefs, app)?;
    let installation = Installation::locate()?;
    let key = chosen.sealed(&installation, "an order about a belief")?;
    let refused = "its order would be refused";
    // Before anybody is asked anything, and before anything is recorded.
    operator::pinned(&installation, &key.public(), refused)?;
    let id = wanted.find(&mut beliefs.reading(app)?)?;
    let mut signer = None;
    let followed =
        beliefs.in_session("an order about a belief", local_actor(), app, |session| {
            let before = one::look_in(session, id, "to give an order about it")?;
            one::say_recorded(&before, app);
            let moves = (order.moves)(before.belief.record.axes);
            if !order.yes {
                confirm(&before, &moves)?;
            }
            let key = operator::open(key)?;
            operator::pinned(&installation, &key.public(), refused)?;
            signer = Some(key.public().key_id());
            let reason = order.reason.unwrap_or(NO_REASON);
            let envelope = sign(&before, moves, reason, beliefs.log.project(), &key)?;
            follow(session, beliefs.log.project(), &envelope, before)
        })?;
    let signer = signer.map(|id| beliefs.operators.name_of(id.as_str()).to_owned());
    print(&followed, &signer.unwrap_or_default(), app)
}

/// A move between two positions of one axis.
pub(super) fn between(from: State, to: impl Into<State>) -> AxisMove {
    AxisMove::new(from, to.into()).expect("INVARIANT: both states are on one axis")
}

fn confirm(one: &One, moves: &[AxisMove]) -> Result<(), Failure> {
    let Some(mut terminal) = Terminal::open() else {
        return Err(
            Failure::usage("there is no terminal to ask for confirmation on")
                .help("--yes signs without asking"),
        );
    };
    let question = format!(
        "{}You sign: {}\nType `yes` to sign: ",
        about(one),
        text::moves(moves)
    );
    match terminal.ask(&question)?.as_str() {
        "yes" => Ok(()),
        _ => Err(Failure::usage("not confirmed; nothing was signed")),
    }
}

/// What an operator has to know before signing.
fn about(one: &One) -> String {
    let belief = &one.belief;
    let from = match &belief.source {
        Some(source) => format!("read with {}", text::tool(source)),
        None => format!("by {}", belief.claim.extraction_method),
    };
    format!(
        "{}\n  {}\n  {}\n  {from}, {}; observed {} UTC, recorded at {}\n",
        belief.record.id,
        inert::whole(&belief.claim.statement),
        text::axes(&belief.record),
        belief.claim.lineage.quality(),
        words::seconds(belief.record.observed_at),
        text::place(&belief.adopted)
    )
}

fn sign(
    one: &One,
    moves: Vec<AxisMove>,
    reason: &str,
    project: &ProjectId,
    key: &SecretKey,
) -> Result<Envelope, Failure> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce)
        .map_err(|e| Failure::usage(format!("the system gives no random bytes: {e}")))?;
    let issued = Issued {
        expires_at: None,
        issued_at: SystemSurroundings::default().now(),
        key_id: key.public().key_id(),
        nonce: Nonce::from_bytes(nonce),
        subject: Promotion {
            belief: one.belief.record.id,
            claim: claim_digest(&one.belief.claim),
            moves,
            project: project.to_string(),
            reason: reason.to_owned(),
            revision: one.belief.revision,
        },
    };
    Envelope::sign(&issued, key)
        .map_err(|e| Failure::usage(format!("the order cannot be signed: {e}")))
}

fn follow(
    session: &mut OperatorSession,
    project: &ProjectId,
    envelope: &Envelope,
    before: One,
) -> Result<Followed, Failure> {
    let (firewall, _, recorder) = session.parts();
    let (change, at) = firewall.follow_order(project, envelope, recorder)?;
    Ok(Followed { before, change, at })
}

fn print(followed: &Followed, signer: &str, app: &mut App) -> Result<Exit, Failure> {
    let Followed { before, change, at } = followed;
    let after = change
        .moves
        .iter()
        .fold(before.belief.record.axes, |axes, step| axes.with(step.to()));
    if app.json {
        app.out.json(&json!({
            "belief": change.belief,
            "statement": before.belief.claim.statement,
            "change": change,
            "axes": after,
            "signed_by": signer,
            "recorded": at,
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    writeln!(
        app.out,
        "{} {}  {}",
        paint.good("✓"),
        paint.strong(change.belief),
        text::moves(&change.moves)
    )?;
    let room = app.out.columns.saturating_sub(2);
    let statement = inert::line(&before.belief.claim.statement, room);
    writeln!(app.out, "  {statement}")?;
    let signer = inert::line(signer, 128);
    let recorded = format!("signed by `{signer}`, recorded at {}", text::place(at));
    writeln!(app.out, "  {}", paint.dim(recorded))?;
    let lifted = change
        .moves
        .iter()
        .any(|step| matches!(step.to(), State::Truth(_)));
    if lifted && after.retrieval != Retrieval::Normal {
        let still = format!(
            "its retrieval is `{}`, so the default context does not hold it",
            after.retrieval
        );
        writeln!(app.out, "  {}", paint.warn(still))?;
    }
    Ok(Exit::Done)
}
