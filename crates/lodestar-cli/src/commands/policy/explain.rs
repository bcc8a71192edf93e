//! `lodestar policy explain`: the verdict of one action, in words, from the log.

mod story;

use std::io::Write as _;

use clap::Args;
use lodestar_log::{SessionDir, Trust};
use lodestar_policy::{Policy, explain};
use serde_json::{Value, json};

use crate::cli::App;
use crate::commands::replay;
use crate::failure::{Exit, Failure};
use crate::place::SessionName;
use crate::trust::{self, LogKeys};
use crate::{inert, json as form};
use story::{Story, Wanted};

const AFTER_HELP: &str = "\
An action is named by its id, the beginning of it, or the number of any event about it. Said is what
stands in the log: `lodestar log verify` says whether it is intact, `lodestar replay` whether the
verdict follows.

Examples:
  lodestar policy explain latest '#12'
  lodestar policy explain latest act_019a8f3c
  lodestar policy explain s-0197 12 --json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ExplainArgs {
    /// The session: its id, the beginning of it, or `latest`
    session: String,

    /// The action: its id, the beginning of it, or an event as `#SEQ`
    #[arg(value_name = "ACTION|#SEQ")]
    action: String,

    /// Look only at this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    #[command(flatten)]
    keys: LogKeys,
}

/// A log that was edited explains nothing.
fn intact(dir: &SessionDir, args: &ExplainArgs, app: &App) -> Result<(), Failure> {
    let (operators, witnesses) = trust::pinned()?;
    let trust = Trust {
        log_keys: args.keys.resolve()?,
        operators: operators.keys(),
        witnesses,
    };
    let report = replay::verify(dir, &trust, app)?;
    match report.all_problems().next() {
        None => Ok(()),
        Some(problem) => Err(Failure::check(format!(
            "session `{}` is not intact, so nothing in it is explained: {problem}",
            dir.session()
        ))
        .help("`lodestar log verify` names every problem")),
    }
}

pub(crate) fn run(args: &ExplainArgs, app: &mut App) -> Result<Exit, Failure> {
    let name = SessionName::parse(&args.session)?;
    let wanted = Wanted::parse(&args.action)?;
    let dir = app
        .place(args.project.as_deref())?
        .readable_session(&name)?;
    intact(&dir, args, app)?;
    let story = Story::find(&dir, &wanted)?;
    let policies = policies(&story);
    if app.json {
        let told = story
            .judged
            .as_ref()
            .map(|(_, judgement)| explain(judgement));
        app.out.json(&json!({
            "project": dir.project(),
            "session": dir.session(),
            "action": story.action,
            "proposed": story.proposed.as_ref().map(|(seq, proposal)| json!({
                "seq": seq,
                "tool": proposal.action.tool,
                "arguments": proposal.action.arguments,
                "level": proposal.action.contract.required_level,
                "reaches": proposal.reaches,
            })),
            "judged": story.judged.as_ref().map(|(seq, judgement)| json!({
                "seq": seq,
                "judgement": judgement,
            })),
            "policies": policies.iter().map(Decided::json).collect::<Vec<_>>(),
            "rejected": story.rejected.as_ref().map(|(seq, rejected)| json!({
                "seq": seq,
                "kind": rejected.why.kind(),
                "reason": rejected.why.to_string(),
            })),
            "events": story.events.iter()
                .map(|(seq, kind)| json!({"seq": seq, "type": kind}))
                .collect::<Vec<_>>(),
            "words": told,
        }))?;
        return Ok(Exit::Done);
    }
    print_proposed(&story, app)?;
    print_verdict(&story, app)?;
    print_policies(&policies, app)?;
    print_events(&story, app)?;
    Ok(Exit::Done)
}

/// A policy that decided, as it stood in the session's policy.
struct Decided {
    id: String,
    /// The line it starts on, and its text; none where the log does not carry it.
    place: Option<(usize, String)>,
}

impl Decided {
    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "line": self.place.as_ref().map(|(line, _)| line),
            "text": self.place.as_ref().map(|(_, text)| text),
        })
    }
}

fn policies(story: &Story) -> Vec<Decided> {
    let Some((_, judgement)) = &story.judged else {
        return Vec::new();
    };
    let policy = story
        .policy
        .as_ref()
        .and_then(|record| Policy::recorded(&record.text, record.signature.clone()).ok());
    let ids = judgement.policies.iter();
    let decided = ids.map(|id| Decided {
        id: id.as_str().to_owned(),
        place: policy.as_ref().and_then(|policy| {
            let (line, text) = policy.rule(id)?;
            Some((line, text.to_owned()))
        }),
    });
    decided.collect()
}

fn print_proposed(story: &Story, app: &mut App) -> Result<(), Failure> {
    let paint = app.out.paint;
    let room = app.out.columns.saturating_sub(4);
    let Some((seq, proposal)) = &story.proposed else {
        writeln!(
            app.out,
            "{}",
            paint.strong("a call that did not become an action")
        )?;
        return Ok(());
    };
    let action = &proposal.action;
    let contract = &action.contract;
    writeln!(
        app.out,
        "{}  {} ({}, {}, {})  proposed at #{seq}",
        paint.strong(action.id),
        paint.accent(inert::whole(action.tool.as_str())),
        contract.required_level,
        contract.blast_radius,
        contract.reversibility,
    )?;
    let arguments = form::compact(&action.arguments);
    writeln!(app.out, "  {}", inert::line(&arguments, room))?;
    if let Some(reach) = &proposal.reaches {
        let line = format!(
            "the argument `{}` leads to `{}`, which no tool may reach: that makes it L5",
            inert::line(&reach.argument, 80),
            inert::line(&reach.to.to_string(), 200)
        );
        writeln!(app.out, "  {}", paint.warn(line))?;
    }
    Ok(())
}

fn print_verdict(story: &Story, app: &mut App) -> Result<(), Failure> {
    match (&story.judged, &story.rejected) {
        (Some((seq, judgement)), _) => {
            let heading = format!("{} at #{seq}", judgement.verdict);
            let heading = app.out.paint.strong(heading);
            writeln!(app.out, "{heading}")?;
            for line in explain(judgement).lines() {
                writeln!(app.out, "  {}", inert::whole(line))?;
            }
        }
        (None, Some(_)) => writeln!(app.out, "The gate was not asked.")?,
        (None, None) => writeln!(app.out, "There is no verdict in the log.")?,
    }
    if let Some((seq, rejected)) = &story.rejected {
        let kind = rejected.why.kind();
        writeln!(app.out, "rejected at #{seq} ({kind})")?;
        // A denial's reason is the verdict, which stands above.
        if kind != "policy_denied" {
            let room = app.out.columns.saturating_sub(4);
            let reason = rejected.why.to_string().replace('\n', " ");
            writeln!(app.out, "  {}", inert::line(&reason, room))?;
        }
    }
    Ok(())
}

fn print_policies(policies: &[Decided], app: &mut App) -> Result<(), Failure> {
    for policy in policies {
        let id = inert::line(&policy.id, 80);
        match &policy.place {
            Some((line, text)) => {
                writeln!(
                    app.out,
                    "policy `{id}`, line {line} of the session's policy"
                )?;
                for (text, number) in text.lines().zip(*line..) {
                    let text = inert::line(text, 160);
                    let line = app.out.paint.dim(format!("{number:>5} |"));
                    writeln!(app.out, "{line} {text}")?;
                }
            }
            None => writeln!(app.out, "policy `{id}`, whose text the log does not carry")?,
        }
    }
    Ok(())
}

fn print_events(story: &Story, app: &mut App) -> Result<(), Failure> {
    let events = story.events.iter();
    let events: Vec<String> = events.map(|(seq, kind)| format!("#{seq} {kind}")).collect();
    let line = app.out.paint.dim(format!("events: {}", events.join(", ")));
    Ok(writeln!(app.out, "{line}")?)
}
