//! A gateway whose clock is a file, for tests that want real processes and other times:
//! `gateway_at <config.toml> <clock>`. The product has nothing like it.
//!
//! The file holds a moment, `2026-11-15T21:50:00.000000Z`, at which time stands still; or a number of seconds,
//! `-3600` or `86400`, by which it differs from the system's. It is read whenever somebody asks for the time.

use std::error::Error;
use std::path::{Path, PathBuf};

use lodestar_core::time::Timestamp;
use lodestar_gateway::config::GatewayConfig;
use lodestar_gateway::http::serve;
use lodestar_gateway::service::Surroundings;
use lodestar_log::Clock;
use tokio::signal::unix::{SignalKind, signal};

fn clock(file: PathBuf) -> Clock {
    let system = Clock::system();
    Clock::new(move || {
        let now = system.now();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let text = text.trim();
        if let Ok(moment) = text.parse() {
            return moment;
        }
        let seconds: i64 = text.parse().unwrap_or_default();
        let micros = now.unix_micros() + seconds * 1_000_000;
        Timestamp::from_unix_micros(micros).unwrap_or(now)
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: gateway_at <config.toml> <clock>";
    let config = PathBuf::from(arguments.next().ok_or(usage)?);
    let file = PathBuf::from(arguments.next().ok_or(usage)?);
    let folder = config.parent().unwrap_or(Path::new("."));
    let config = GatewayConfig::read(&std::fs::read_to_string(&config)?, folder)?;
    let surroundings = Surroundings {
        clock: clock(file),
        ..Surroundings::default()
    };
    let mut end = signal(SignalKind::terminate())?;
    let until = async move {
        end.recv().await;
    };
    let ready = |server: &lodestar_gateway::http::Server| {
        println!("listening at http://{}", server.address());
    };
    serve(&config, surroundings, ready, until).await?;
    Ok(())
}
