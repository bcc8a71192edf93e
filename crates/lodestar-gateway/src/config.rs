//! How a gateway is set up: one TOML document, in which everything has a default.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lodestar_core::device::DeviceSettings;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Where a gateway listens unless it is told otherwise: on this machine only.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7417);

/// The database unless another is named, in the service's folder.
pub const DATABASE: &str = "gateway.db";

/// Why a configuration is none.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It is no TOML, or has what is not known.
    #[error("the gateway's configuration is not one: {0}")]
    Form(#[from] Box<toml::de::Error>),
    /// A number that nothing could come of.
    #[error("`{name}` is {value}; it has to be from {least} to {most}")]
    OutOfRange {
        /// Which.
        name: &'static str,
        /// What it is.
        value: u64,
        /// The least that makes sense.
        least: u64,
        /// The most.
        most: u64,
    },
    /// The database is named twice.
    #[error("`database` and `database_env` name the database; write one of them")]
    DatabaseTwice,
    /// The environment does not name the database.
    #[error("`database_env` names `{0}`, which is not set")]
    DatabaseUnset(String),
}

/// A gateway's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayConfig {
    /// The folder that the service has to itself: database, event log, bundles, key, socket. Relative to the
    /// configuration's own.
    pub data: PathBuf,
    /// A `postgres://` address without a password, or the path of a SQLite file; in the service's folder
    /// where nothing is said.
    pub database: Option<String>,
    /// The environment variable that holds the database's address, for those with a password.
    pub database_env: Option<String>,
    /// Seconds between looks at what is due for devices without their asking.
    pub sweep_seconds: u64,
    /// How it is reached.
    pub http: HttpConfig,
    /// What devices are held to.
    pub devices: DeviceSettings,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::from("gateway"),
            database: None,
            database_env: None,
            // A tenth of what a minute of lateness would be: levels are also looked at on every request.
            sweep_seconds: 5,
            http: HttpConfig::default(),
            devices: DeviceSettings::default(),
        }
    }
}

/// How a gateway is reached, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Connections at the same time.
    pub connections: usize,
    /// Requests under one token each second, in the long run.
    pub token_per_second: u32,
    /// Requests under one token at once.
    pub token_burst: u32,
    /// Requests from one address each second, in the long run.
    pub address_per_second: u32,
    /// Requests from one address at once.
    pub address_burst: u32,
    /// Most bytes of a run's bundle.
    pub bundle_bytes: u64,
    /// Seconds that the head of a request may take, and that a connection may be kept without one.
    pub head_seconds: u64,
    /// Seconds that a request may take.
    pub deadline_seconds: u64,
    /// Seconds that a bundle may take on its way.
    pub bundle_deadline_seconds: u64,
    /// Seconds that requests have to finish when the service ends.
    pub closing_seconds: u64,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: LISTEN,
            connections: 1024,
            // A device asks twice a minute, and a run a few times each second.
            token_per_second: 50,
            token_burst: 200,
            // A network of a few hundred machines behind one address.
            address_per_second: 500,
            address_burst: 2000,
            bundle_bytes: 64 << 20,
            head_seconds: 15,
            deadline_seconds: 30,
            bundle_deadline_seconds: 120,
            closing_seconds: 20,
        }
    }
}

/// An hour: nobody waits longer for anything here.
const LONGEST: u64 = 3600;

impl HttpConfig {
    pub(crate) fn head(&self) -> Duration {
        Duration::from_secs(self.head_seconds)
    }

    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline_seconds)
    }

    pub(crate) fn bundle_deadline(&self) -> Duration {
        Duration::from_secs(self.bundle_deadline_seconds)
    }

    pub(crate) fn closing(&self) -> Duration {
        Duration::from_secs(self.closing_seconds)
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let ranges = [
            ("http.connections", self.connections as u64, 1, 1 << 20),
            (
                "http.token_per_second",
                self.token_per_second.into(),
                1,
                1 << 20,
            ),
            ("http.token_burst", self.token_burst.into(), 1, 1 << 20),
            (
                "http.address_per_second",
                self.address_per_second.into(),
                1,
                1 << 20,
            ),
            ("http.address_burst", self.address_burst.into(), 1, 1 << 20),
            ("http.bundle_bytes", self.bundle_bytes, 1 << 10, 1 << 32),
            ("http.head_seconds", self.head_seconds, 1, LONGEST),
            ("http.deadline_seconds", self.deadline_seconds, 1, LONGEST),
            (
                "http.bundle_deadline_seconds",
                self.bundle_deadline_seconds,
                1,
                LONGEST,
            ),
            ("http.closing_seconds", self.closing_seconds, 1, LONGEST),
        ];
        ranges.into_iter().try_for_each(in_range)
    }
}

fn in_range((name, value, least, most): (&'static str, u64, u64, u64)) -> Result<(), ConfigError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(ConfigError::OutOfRange {
            name,
            value,
            least,
            most,
        }),
    }
}

impl GatewayConfig {
    /// Reads a configuration; its paths are relative to `folder`.
    pub fn read(text: &str, folder: &Path) -> Result<Self, ConfigError> {
        let mut config: Self = toml::from_str(text).map_err(Box::new)?;
        config.validate()?;
        config.data = folder.join(&config.data);
        Ok(config)
    }

    /// Whether everything is in range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.database.is_some() && self.database_env.is_some() {
            return Err(ConfigError::DatabaseTwice);
        }
        in_range(("sweep_seconds", self.sweep_seconds, 1, LONGEST))?;
        self.http.validate()
    }

    /// The database's address or path.
    pub fn database(&self) -> Result<String, ConfigError> {
        if let Some(variable) = &self.database_env {
            let unset = |_| ConfigError::DatabaseUnset(variable.clone());
            return std::env::var(variable).map_err(unset);
        }
        let default = || self.data.join(DATABASE).to_string_lossy().into_owned();
        Ok(self.database.clone().unwrap_or_else(default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_this_machine_and_sqlite() {
        let config = GatewayConfig::read("", Path::new("/etc/lodestar")).unwrap();
        assert!(config.http.listen.ip().is_loopback());
        assert_eq!(
            config.database().unwrap(),
            "/etc/lodestar/gateway/gateway.db"
        );
        assert_eq!(config.devices, DeviceSettings::default());
    }

    #[test]
    fn what_is_said_is_checked() {
        let read = |text| GatewayConfig::read(text, Path::new("/x"));
        let config = read("[http]\nlisten = \"0.0.0.0:80\"\n[devices]\nheartbeat_seconds = 10\n");
        let config = config.unwrap();
        assert_eq!(config.http.listen.port(), 80);
        assert_eq!(config.devices.heartbeat, Duration::from_secs(10));
        for wrong in [
            "liste = 1",
            "[http]\nconnections = 0",
            "[http]\nhead_seconds = 100000",
            "sweep_seconds = 0",
            "database = \"a\"\ndatabase_env = \"B\"",
            "[devices]\nheartbeat_seconds = 0",
            "[devices]\nheart = 0",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
