//! `lodestar gateway serve`

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use lodestar_gateway::config::{ConfigError, GatewayConfig};
use lodestar_gateway::http::{ServeError, Server, serve};
use lodestar_gateway::service::{FolderError, StartError, Surroundings};
use serde_json::json;

use crate::cli::App;
use crate::failure::{Exit, Failure};
use crate::{commands, files, inert};

const AFTER_HELP: &str = "\
It listens at 127.0.0.1:7417 and keeps everything in `gateway/` unless it is told otherwise: the database
(SQLite, or PostgreSQL by URL), its event log, the bundles of runs, and `admin.sock`, by which `lodestar
platform` opens accounts, blocks devices and throws the kill switch. On SIGTERM it takes nothing new,
finishes what it took, and ends.

A configuration is TOML; everything in it has a default:

  data = \"/var/lib/lodestar\"
  database_env = \"LODESTAR_GATEWAY_DATABASE\"   # a variable with the database's URL
  [http]
  listen = \"127.0.0.1:7417\"
  [devices]
  heartbeat_seconds = 30

A database's URL with a password comes from the environment or from a file of mode 0600, and is no
argument.

Examples:
  lodestar gateway serve --data /var/lib/lodestar
  lodestar gateway serve --config gateway.toml --listen 127.0.0.1:8443
  lodestar gateway serve --data gateway --database-file database.url";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ServeArgs {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The folder that the service has to itself
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Where it listens
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// The database: a SQLite file, or a `postgres://` URL without a password
    #[arg(long, value_name = "FILE|URL", conflicts_with_all = ["database_file", "database_env"])]
    database: Option<String>,

    /// A file of mode 0600 with the database's URL
    #[arg(long, value_name = "FILE", conflicts_with = "database_env")]
    database_file: Option<PathBuf>,

    /// The environment variable that holds the database's URL
    #[arg(long, value_name = "VARIABLE")]
    database_env: Option<String>,
}

pub(crate) fn run(args: &ServeArgs, app: &mut App) -> Result<Exit, Failure> {
    let config = configured(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|problem| Failure::usage(format!("no threads can be started: {problem}")))?;
    let mut printed = Ok(());
    let served = runtime.block_on(async {
        let ended = commands::told_to_end()?;
        let ready = |server: &Server| printed = told(server, app);
        let served = serve(&config, Surroundings::default(), ready, ended).await;
        served.map_err(not_served)
    });
    // Whoever is still judged is not waited for; what was answered is on disk.
    runtime.shutdown_background();
    served.and(printed)?;
    app.note("the gateway ended");
    Ok(Exit::Done)
}

fn configured(args: &ServeArgs) -> Result<GatewayConfig, Failure> {
    let mut config = match &args.config {
        None => GatewayConfig::default(),
        Some(file) => {
            let text = String::from_utf8(files::read(file, files::SMALL)?).map_err(|_| {
                Failure::usage(format!("`{}` is not UTF-8 text", inert::path(file)))
            })?;
            let folder = file.parent().unwrap_or(Path::new("."));
            GatewayConfig::read(&text, folder)
                .map_err(|problem| Failure::usage(format!("`{}`: {problem}", inert::path(file))))?
        }
    };
    if let Some(data) = &args.data {
        config.data.clone_from(data);
    }
    if let Some(listen) = args.listen {
        config.http.listen = listen;
    }
    if let Some(database) = &args.database {
        if has_password(database) {
            return Err(Failure::usage(
                "the database's URL holds a password, and everybody on this machine can see an argument",
            )
            .help("put the URL into a file of mode 0600 (--database-file), or into the environment (--database-env)"));
        }
        config.database = Some(database.clone());
        config.database_env = None;
    }
    if let Some(file) = &args.database_file {
        let text = files::read_private(file)?;
        config.database = Some(text.trim().to_owned());
        config.database_env = None;
    }
    if let Some(variable) = &args.database_env {
        config.database_env = Some(variable.clone());
        config.database = None;
    }
    config
        .validate()
        .map_err(|problem| Failure::usage(problem.to_string()))?;
    Ok(config)
}

/// Whether a URL has a password before its host, or in its query.
fn has_password(database: &str) -> bool {
    let Some((_, rest)) = database.split_once("://") else {
        return false;
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let named = rest[..end]
        .rsplit_once('@')
        .is_some_and(|(user, _)| user.contains(':'));
    named || rest.contains("password=")
}

fn told(server: &Server, app: &mut App) -> Result<(), Failure> {
    let (address, socket) = (server.address(), server.socket());
    if !address.ip().is_loopback() {
        eprintln!(
            "lodestar: others than this machine can reach {address}, and what they send is not encrypted; put a proxy with TLS in front"
        );
    }
    if app.json {
        app.out.json(&json!({
            "listening": format!("http://{address}"),
            "socket": socket.to_string_lossy(),
        }))?;
    } else {
        let mark = app.out.paint.good("✓");
        writeln!(app.out, "{mark} listening at http://{address}")?;
        writeln!(app.out, "  platform  {}", inert::path(socket))?;
    }
    Ok(app.out.flush()?)
}

fn not_served(problem: ServeError) -> Failure {
    let text = problem.to_string();
    match problem {
        ServeError::Start(StartError::Folder(FolderError::Open { .. })) => {
            Failure::not_authorised(text)
        }
        ServeError::Start(StartError::Config(ConfigError::DatabaseUnset(_))) => {
            Failure::usage(text).help("set the variable, or name the database otherwise")
        }
        _ => Failure::usage(text),
    }
}

#[cfg(test)]
mod tests {
    use super::has_password;

    #[test]
    fn a_password_in_a_url_is_seen_and_a_path_is_none() {
        for with in [
            "postgres://me:secret@host/db",
            "postgres://me:@host",
            "postgres://host/db?user=me&password=secret",
            "postgresql://a:b@[::1]:5432/x",
        ] {
            assert!(has_password(with), "{with}");
        }
        for without in [
            "gateway.db",
            "/var/lib/a:b@c/gateway.db",
            "postgres://me@host:5432/db",
            "postgres://host/db",
            "postgres:///db?host=/run/a:b@c",
        ] {
            assert!(!has_password(without), "{without}");
        }
    }
}
