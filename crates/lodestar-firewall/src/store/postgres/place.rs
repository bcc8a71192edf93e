//! Where a PostgreSQL store is, and how that is told without its password.

use std::net::IpAddr;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};

use crate::store::StoreError;

/// The schema, unless another is named.
const SCHEMA: &str = "lodestar";

/// PostgreSQL cuts longer names off, and two of them would become one.
const MAX_SCHEMA: usize = 63;

/// A server that does not answer for so long is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Place {
    pub(super) config: Config,
    pub(super) schema: String,
    /// User, hosts, database and schema: no password.
    pub(super) shown: String,
}

impl Place {
    pub(super) fn of(url: &str, schema: Option<&str>) -> Result<Self, StoreError> {
        let schema = schema.unwrap_or(SCHEMA).to_owned();
        // Nothing of the text is repeated, nor the parser's error: either may have the password.
        let mut config: Config = url.parse().map_err(|_| StoreError::Open {
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

    fn check(&self) -> Result<(), StoreError> {
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

    pub(super) fn refused(&self, problem: &str) -> StoreError {
        StoreError::Open {
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
