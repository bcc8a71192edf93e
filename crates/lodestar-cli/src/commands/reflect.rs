//! `lodestar reflect`: a look back on a session, which proposes; applying is a step of its own.

use std::io::Write as _;

use clap::Args;
use lodestar_core::chain::Decision;
use lodestar_core::event::EventType;
use lodestar_core::id::BeliefId;
use lodestar_firewall::Firewall;
use lodestar_firewall::event::{Adopted, FirewallEvent, LogName, Proposal, Reflected};
use lodestar_firewall::fold;
use lodestar_firewall::reflect::{self, Applied, Window};
use lodestar_log::{Event, Reader, SessionDir};
use lodestar_replay::{Recorded, Results};
use serde_json::json;

use super::belief::text;
use super::log::event::unreadable;
use crate::beliefs::{Beliefs, BeliefsArgs, local_actor};
use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::place::SessionName;
use crate::{inert, words};

const AFTER_HELP: &str = "\
It proposes to look again at decisions that rest on a belief that was contradicted since, and to let
the newer of two supported beliefs about one thing take the place of the older. The same log and
store give the same proposals. Nothing changes without --apply; with it, what still holds is done
under reflection's own authority, which brings nothing into the default context.

Examples:
  lodestar reflect latest
  lodestar reflect 0197 --apply";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReflectArgs {
    #[command(flatten)]
    beliefs: BeliefsArgs,

    /// The session: its id, the beginning of it, or `latest`
    session: String,

    /// Do what is proposed and still holds
    #[arg(long)]
    apply: bool,
}

pub(crate) fn run(args: &ReflectArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let place = app.place(args.beliefs.project.as_deref())?;
    let dir = place.readable_session(&name)?;
    let beliefs = Beliefs::of_project(&args.beliefs, dir.project(), app)?;
    beliefs.check_session(&dir)?;
    let window = window(&dir)?;
    let log = LogName {
        project: dir.project().clone(),
        session: dir.session().clone(),
    };
    if !args.apply {
        let mut firewall = beliefs.reading(app)?;
        let reflected = reflect::propose(&mut firewall, &log, &window)?;
        let lines = in_words(&reflected.proposals, &window, &mut firewall)?;
        return print_proposed(&reflected, &lines, app);
    }
    let (reflected, applied, lines) =
        beliefs.in_session("a reflection", local_actor(), app, |session| {
            let (firewall, seats, recorder) = session.parts();
            let reflected = reflect::propose(firewall, &log, &window)?;
            let lines = in_words(&reflected.proposals, &window, firewall)?;
            let applied = reflect::apply(firewall, &seats.reflection, &reflected, recorder)?;
            Ok((reflected, applied, lines))
        })?;
    print_applied(&reflected, &applied, &lines, app)
}

/// What happened in a session to decisions and beliefs.
fn window(dir: &SessionDir) -> Result<Window, Failure> {
    let mut reader = Reader::open(dir).map_err(Failure::io(dir.events_path()))?;
    let mut window = Window::default();
    let mut results = Results::new(dir);
    while let Some(event) = reader.next_event().map_err(|e| unreadable(dir, &e))? {
        window.until = event.seq + 1;
        note(&event, dir, &mut results, &mut window)?;
    }
    Ok(window)
}

fn note(
    event: &Event,
    dir: &SessionDir,
    results: &mut Results,
    window: &mut Window,
) -> Result<(), Failure> {
    let failed = |problem: String| {
        let place = format!("{}#{}", dir.session(), event.seq);
        Failure::check(format!("{place} cannot be read: {problem}"))
            .help("`lodestar log verify` says what is wrong with the session")
    };
    let synthesised = results.synthesised(event);
    if let Some(decision) = synthesised.map_err(|e| failed(e.to_string()))? {
        window.decisions.push((event.seq, decision));
    }
    if EventType::parse(event.kind.as_bytes()) == Some(EventType::DECISION_MADE) {
        let payload = results.whole(event).map_err(|e| failed(e.to_string()))?;
        if let Some(payload) = payload {
            let decision: Decision =
                serde_json::from_value(payload).map_err(|e| failed(e.to_string()))?;
            window.decisions.push((event.seq, decision));
        }
    }
    let recorded = results.follow(event).map_err(|e| failed(e.to_string()))?;
    let touched: Vec<BeliefId> = match &recorded {
        Recorded::Other | Recorded::Redacted => Vec::new(),
        Recorded::Results(adoption) => {
            let adopted = adoption.results.iter();
            adopted
                .flat_map(|(_, plain)| ids(plain.adopted()))
                .collect()
        }
        Recorded::Event(recorded) => {
            let changed = fold::changes(recorded).iter().map(|change| change.belief);
            match recorded.as_ref() {
                FirewallEvent::Adopted(adopted) => ids(adopted).chain(changed).collect(),
                _ => changed.collect(),
            }
        }
    };
    let touched = touched.into_iter().map(|id| (event.seq, id));
    window.beliefs.extend(touched);
    Ok(())
}

fn ids(adopted: &Adopted) -> impl Iterator<Item = BeliefId> {
    adopted.beliefs.iter().map(|belief| belief.id)
}

/// Each proposal for people: what, and of what.
fn in_words(
    proposals: &[Proposal],
    window: &Window,
    firewall: &mut Firewall,
) -> Result<Vec<Vec<String>>, Failure> {
    proposals
        .iter()
        .map(|proposal| match proposal {
            Proposal::FlagDecision {
                decision,
                made_at,
                belief,
            } => {
                let made = window.decisions.iter().find(|(seq, _)| seq == made_at);
                let question = made.map_or("", |(_, decision)| decision.question.as_str());
                Ok(vec![
                    format!("look again at decision {decision} (#{made_at})"),
                    format!("asked  {}", inert::line(question, 100)),
                    format!("rests on  {}", said(firewall, *belief)?),
                ])
            }
            Proposal::Supersede { older, newer } => Ok(vec![
                format!("supersede {older}"),
                format!("older  {}", said(firewall, *older)?),
                format!("newer  {}", said(firewall, *newer)?),
            ]),
        })
        .collect()
}

fn said(firewall: &mut Firewall, id: BeliefId) -> Result<String, Failure> {
    let Some((belief, _)) = firewall.look_up(id)? else {
        return Ok(id.to_string());
    };
    Ok(format!(
        "{} at {}, truth={}: {}",
        words::short_id(&id),
        text::place(&belief.adopted),
        belief.record.axes.truth,
        inert::line(&belief.claim.statement, 100)
    ))
}

fn print_proposed(
    reflected: &Reflected,
    lines: &[Vec<String>],
    app: &mut App,
) -> Result<Exit, Failure> {
    if app.json {
        app.out.json(&json!({"reflected": reflected}))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    for proposal in lines {
        print_one(&paint.warn("?"), proposal, app)?;
    }
    let count = words::count(lines.len() as u64, "proposal");
    let end = match lines.is_empty() {
        true => format!(
            "nothing to propose for {}, #{} to #{}",
            reflected.log.session,
            reflected.from,
            reflected.until.saturating_sub(1)
        ),
        false => format!("{count}; --apply does what still holds"),
    };
    writeln!(app.out, "{}", paint.dim(end))?;
    Ok(Exit::Done)
}

fn print_one(mark: &str, lines: &[String], app: &mut App) -> Result<(), Failure> {
    let (first, others) = lines.split_first().expect("INVARIANT: made above");
    writeln!(app.out, "{mark} {first}")?;
    for line in others {
        writeln!(app.out, "    {line}")?;
    }
    Ok(())
}

fn print_applied(
    reflected: &Reflected,
    applied: &Applied,
    lines: &[Vec<String>],
    app: &mut App,
) -> Result<Exit, Failure> {
    if app.json {
        let done = applied.done.iter();
        let done = done.map(|(proposal, at)| json!({"proposal": proposal, "at": at}));
        let left = applied.left.iter();
        let left = left.map(|(proposal, reason)| json!({"proposal": proposal, "reason": reason}));
        app.out.json(&json!({
            "reflected": reflected,
            "done": done.collect::<Vec<_>>(),
            "left": left.collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    for (proposal, lines) in reflected.proposals.iter().zip(lines) {
        let done = applied.done.iter().find(|(done, _)| done == proposal);
        let left = applied.left.iter().find(|(left, _)| left == proposal);
        match (done, left) {
            (Some((_, at)), _) => {
                print_one(&paint.good("✓"), lines, app)?;
                let recorded = format!("recorded at {}", text::place(at));
                writeln!(app.out, "    {}", paint.dim(recorded))?;
            }
            (None, Some((_, reason))) => {
                print_one(&paint.warn("–"), lines, app)?;
                let left = format!("left as it is: {}", inert::whole(reason));
                writeln!(app.out, "    {}", paint.warn(left))?;
            }
            (None, None) => print_one(&paint.dim("·"), lines, app)?,
        }
    }
    let end = format!("{} done, {} left", applied.done.len(), applied.left.len());
    writeln!(app.out, "{}", paint.dim(end))?;
    Ok(Exit::Done)
}
