//! `lodestar tools review`: what servers offer, held against what was pinned, and a person's word on it.

mod accept;
mod waiting;

use std::io::Write as _;

use clap::Args;
use serde_json::json;

use crate::cli::App;
use crate::commands::init::client::environment;
use crate::commands::init::enter_environment;
use crate::configured::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::operator::OperatorArgs;
use crate::paint::Paint;
use crate::{inert, pinned, words};

use waiting::Waiting;

const AFTER_HELP: &str = "\
Without a tool, everything is shown that waits for a person: tools that nobody looked at, tools that
changed since they were pinned, new ones, and what servers tell agents. The servers are started to be
asked what they offer now. With a tool, with a whole server (`mcp.SERVER`) or with --all, it is shown,
confirmed, and accepted under an operator's signature. What drifted is refused to agents until then.

Examples:
  lodestar tools review
  lodestar tools review mcp.files.read_file --operator alice
  lodestar tools review --all --operator alice";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReviewArgs {
    /// The tools to accept: `mcp.SERVER.TOOL`, or `mcp.SERVER` for all of a server's
    #[arg(value_name = "TOOL", conflicts_with = "all")]
    tools: Vec<String>,

    /// Accept everything that waits
    #[arg(long)]
    all: bool,

    /// Start no server: look only at what sessions left in the lock file
    #[arg(long)]
    no_start: bool,

    #[command(flatten)]
    operator: OperatorArgs,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

pub(crate) fn run(args: &ReviewArgs, app: &mut App) -> Result<Exit, Failure> {
    let chosen = args.operator.parse()?;
    let configured = args.config.find(app)?.ok_or_else(|| {
        Failure::not_found("there is no `lodestar.toml` here, so there are no servers")
            .help("`lodestar init` writes one from a client's configuration")
    })?;
    let config = &configured.config;
    if config.downstream_servers.is_empty() {
        return Err(Failure::not_found("the configuration names no servers"));
    }
    if !args.no_start {
        enter_environment(&environment(config.root(), &configured.file))?;
    }
    let pins = pinned::of(config)?;
    let all = waiting::find(config, &pins, args.no_start, app)?;
    let accepting = args.all || !args.tools.is_empty();
    let wanted: Vec<&Waiting> = match args.tools.is_empty() {
        true => all.iter().collect(),
        false => choose(&args.tools, &all, &pins)?,
    };
    if !accepting || wanted.is_empty() {
        show(&wanted, app)?;
        return Ok(Exit::Done);
    }
    let accepted = accept::accept(&wanted, config, chosen, args.yes, app)?;
    if app.json {
        app.out.json(&accepted)?;
        return Ok(Exit::Done);
    }
    let paint = app.out.paint;
    let count = words::count(wanted.len() as u64, "definition");
    writeln!(
        app.out,
        "{} {count} accepted, signed by `{}`",
        paint.good("✓"),
        inert::line(accepted["signed_by"].as_str().unwrap_or_default(), 128)
    )?;
    for one in &wanted {
        writeln!(app.out, "  {}", inert::line(&one.ledger(), 120))?;
    }
    Ok(Exit::Done)
}

fn choose<'a>(
    names: &[String],
    all: &'a [Waiting],
    pins: &lodestar_mcp::pins::Pins,
) -> Result<Vec<&'a Waiting>, Failure> {
    let mut chosen = Vec::new();
    for name in names {
        let matching: Vec<&Waiting> = all
            .iter()
            .filter(|one| one.ledger() == *name || format!("mcp.{}", one.server) == *name)
            .collect();
        if matching.is_empty() {
            let known = pins.servers.iter().any(|(server, pinned)| {
                format!("mcp.{server}") == *name
                    || pinned
                        .tools
                        .keys()
                        .any(|tool| format!("mcp.{server}.{tool}") == *name)
            });
            let shown = inert::line(name, 120);
            return Err(match known {
                true => Failure::usage(format!("nothing about `{shown}` waits for anybody"))
                    .help("`lodestar tools list` shows how each tool stands"),
                false => Failure::not_found(format!("no server offers `{shown}`"))
                    .help("`lodestar tools review` shows what waits"),
            });
        }
        chosen.extend(matching);
    }
    Ok(chosen)
}

fn show(waiting: &[&Waiting], app: &mut App) -> Result<(), Failure> {
    if app.json {
        let rows = waiting.iter().map(|one| one.json());
        return Ok(app
            .out
            .json(&json!({"waiting": rows.collect::<Vec<_>>()}))?);
    }
    let paint = app.out.paint;
    for one in waiting {
        write!(app.out, "{}", card(one, paint))?;
    }
    if waiting.is_empty() {
        writeln!(app.out, "{} nothing waits for a person", paint.good("✓"))?;
    } else {
        let count = words::count(waiting.len() as u64, "definition");
        writeln!(app.out, "{}", paint.warn(format!("{count} to look at")))?;
        app.note("`lodestar tools review TOOL… --operator NAME` accepts, and --all all of them");
    }
    Ok(())
}

/// One definition, for a person: what changed, or all of it where it is new.
fn card(one: &Waiting, paint: Paint) -> String {
    let mut text = format!(
        "{}  {}\n",
        paint.strong(inert::line(&one.ledger(), 120)),
        paint.warn(inert::line(&one.why, 300))
    );
    text.push_str(&one.difference(paint));
    text.push('\n');
    text
}
