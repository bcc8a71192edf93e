//! Where a PostgreSQL store is, and how that is told without its password.

use std::net::IpAddr;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};
use thiserror::Error;

/// PostgreSQL cuts longer names off, and two of them would become one.
const MAX_SCHEMA: usize = 63;

/// A server that does not answer for so long is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A schema of a PostgreSQL database on this machine.
pub struct Place {
    /// How to get there.
    pub config: Config,
    /// The schema: a name that can stand in a statement as it is.
    pub schema: String,
    /// User, hosts, database and schema: no password.
    pub shown: String,
}

/// Why a place is refused. It has no password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}")]
pub struct BadPlace {
    /// Which.
    pub place: String,
    /// Why.
    pub problem: String,
}

impl Place {
    /// The schema of this name in the database that the address names.
    pub fn of(url: &str, schema: &str) -> Result<Self, BadPlace> {
        let schema = schema.to_owned();
        // Nothing of the text is repeated, nor the parser's error: either may have the password.
        let mut config: Config = url.parse().map_err(|_| BadPlace {
            place: "PostgreSQL".to_owned(),
            problem:
                "its address cannot be read; write `postgres://user:password@localhost/database`"
                    .to_owned(),
        })?;
        config.application_name(&format!("lodestar {schema}"));
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        let shown = shown(&config, &schema);
        let place = Self {
            config,
            schema,
            shown,
        };
        place.check()?;
        Ok(place)
    }

    fn check(&self) -> Result<(), BadPlace> {
        let first = |c: char| c.is_ascii_lowercase() || c == '_';
        let is_name = self.schema.starts_with(first)
            && self.schema.len() <= MAX_SCHEMA
            && self.schema.chars().all(|c| first(c) || c.is_ascii_digit());
        if !is_name {
            return Err(self.refused(
                "the name of the schema has to be lower-case letters, digits and `_`, at most 63",
            ));
        }
        if self.config.get_ssl_mode() == SslMode::Require || !self.is_local() {
            return Err(self.refused(
                "Lodestar connects without TLS, and so to this machine only; open a tunnel, such as `ssh -L 5432:localhost:5432 server`, and name `localhost`",
            ));
        }
        Ok(())
    }

    fn is_local(&self) -> bool {
        let by_name = self.config.get_hosts().iter().all(|host| match host {
            Host::Tcp(name) => {
                name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
            }
            Host::Unix(_) => true,
        });
        // An address overrules the name that stands beside it.
        by_name && self.config.get_hostaddrs().iter().all(IpAddr::is_loopback)
    }

    /// That it cannot be used, and why.
    pub fn refused(&self, problem: &str) -> BadPlace {
        BadPlace {
            place: self.shown.clone(),
            problem: problem.to_owned(),
        }
    }
}

fn shown(config: &Config, schema: &str) -> String {
    let hosts: Vec<_> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    format!("{user}@{}/{database}, schema {schema}", hosts.join(","))
}
