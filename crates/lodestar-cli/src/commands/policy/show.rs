//! `lodestar policy show`: the text in force, its digest, and on whose word it is.

use std::io::Write as _;

use clap::Args;
use lodestar_guard::config::Ceiling;
use lodestar_policy::{CedarSchema, Policy, SignatureState};
use serde_json::json;

use crate::cli::App;
use crate::commands::ceiling;
use crate::configured::{ConfigArgs, Tooling};
use crate::failure::{Exit, Failure};
use crate::{inert, trust};

const AFTER_HELP: &str = "\
Without a configuration it is the preset that holds where nothing is said. What is printed is Cedar,
the last lines are comments. --schema prints what policies can name: tools, arguments, context.

Examples:
  lodestar policy show
  lodestar policy show --ceiling 3
  lodestar policy show --schema --config lodestar.toml";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// The preset with this `auto_approve_ceiling`, 0 to 3
    #[arg(long, value_name = "N", value_parser = ceiling, conflicts_with = "config")]
    ceiling: Option<Ceiling>,

    /// Print the Cedar schema instead, made from the tools
    #[arg(long)]
    schema: bool,
}

pub(crate) fn run(args: &ShowArgs, app: &mut App) -> Result<Exit, Failure> {
    if args.schema {
        return schema(args, app);
    }
    let configured = match args.ceiling {
        Some(_) => None,
        None => args.config.find(app)?,
    };
    let policy = match &configured {
        Some(configured) => configured.config.policy_in_force(None)?,
        None => preset(args.ceiling.unwrap_or(Ceiling::DEFAULT))?,
    };
    let file = configured.as_ref().and_then(|configured| {
        let policy = configured.config.policy.as_ref()?;
        Some(configured.config.path(&policy.file))
    });
    if app.json {
        app.out.json(&json!({
            "config": configured.as_ref().map(|one| one.file.to_string_lossy()),
            "file": file.as_ref().map(|file| file.to_string_lossy()),
            "text": policy.source(),
            "digest": policy.digest(),
            "signature": policy.signature(),
        }))?;
        return Ok(Exit::Done);
    }
    writeln!(app.out, "{}", inert::lines(policy.source().trim_end()))?;
    writeln!(app.out)?;
    let mut facts = vec![format!("// digest     {}", policy.digest())];
    facts.push(format!("// signature  {}", signature(&policy)));
    if let Some(file) = file {
        facts.push(format!("// file       {}", inert::path(&file)));
    }
    for fact in facts {
        let fact = app.out.paint.dim(fact);
        writeln!(app.out, "{fact}")?;
    }
    if configured.is_none() && args.ceiling.is_none() {
        app.note("there is no `lodestar.toml` here; this is what holds where nothing is said");
    }
    Ok(Exit::Done)
}

fn preset(ceiling: Ceiling) -> Result<Policy, Failure> {
    Policy::preset(ceiling.get()).map_err(|problem| Failure::usage(problem.to_string()))
}

fn signature(policy: &Policy) -> String {
    match policy.signature() {
        SignatureState::Signed { key } => {
            let operators = trust::known_operators();
            let name = inert::line(operators.name_of(key.as_str()), 128);
            format!("signed by `{name}`")
        }
        SignatureState::Unsigned => "nobody signed it; the configuration allows that".to_owned(),
        SignatureState::Preset => "none needed: a preset of Lodestar's own".to_owned(),
    }
}

fn schema(args: &ShowArgs, app: &mut App) -> Result<Exit, Failure> {
    let tooling = Tooling::find(&args.config, app)?;
    let schema = CedarSchema::generate(&tooling.shapes())
        .map_err(|problem| Failure::usage(problem.to_string()))?;
    if app.json {
        app.out.json(&json!({
            "schema": schema.text(),
            "digest": schema.digest(),
            "tools": tooling.json(),
        }))?;
        return Ok(Exit::Done);
    }
    tooling.note(app);
    writeln!(app.out, "{}", inert::lines(schema.text().trim_end()))?;
    let digest = app.out.paint.dim(format!("// digest  {}", schema.digest()));
    writeln!(app.out, "\n{digest}")?;
    Ok(Exit::Done)
}
