//! A gateway that is served on a loopback port, with accounts, devices and runs around it: real HTTP, real
//! signatures, and logs that the guard wrote. What it is asked by hand is in the hand of whoever plays.
//!
//! The gateway's own tests and its bench play in the same world.

mod account;
mod forge;
mod machine;
mod work;

pub use account::Account;
pub use account::Made;
pub use forge::{Line, of_kind};
pub use machine::{Claims, Job, Machine, signed};
pub use work::{Ran, SCRIPT, Work, Workplace};

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_core::device::DeviceSettings;
use lodestar_core::id::RunnerId;
use lodestar_core::key::SecretKey;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;
use lodestar_gateway::client::{GatewayAccess, GatewayClient, PlatformClient};
use lodestar_gateway::config::{GatewayConfig, HttpConfig};
use lodestar_gateway::http::Server;
use lodestar_gateway::service::{Folder, PROJECT, Report, Service, Surroundings};
use lodestar_gateway::store::Sql;
use lodestar_gateway::token::TokenText;
use lodestar_kernel::native::http::client::{InTheClear, ServiceUrl};
use lodestar_log::{Clock, Ledger, LogRoot, Reader, Trust};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Something that everything else rests on did not work.
#[derive(Debug)]
pub struct Trouble(String);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Trouble {}

impl Trouble {
    /// Of which there is this to say.
    pub fn new(problem: impl fmt::Display) -> Self {
        Self(problem.to_string())
    }
}

/// What came of preparing something.
pub type Prepared<T> = Result<T, Trouble>;

/// Says what was being done when it did not work.
pub(crate) trait While<T> {
    fn while_(self, doing: &str) -> Prepared<T>;
}

impl<T, E: fmt::Display> While<T> for Result<T, E> {
    fn while_(self, doing: &str) -> Prepared<T> {
        self.map_err(|problem| Trouble(format!("{doing}: {problem}")))
    }
}

/// The system's clock, and as much as somebody set it forward or back.
#[derive(Debug, Clone, Default)]
pub struct Hands(Arc<AtomicI64>);

impl Hands {
    /// Sets it forward.
    pub fn forward(&self, by: Duration) {
        self.0.fetch_add(micros(by), Ordering::SeqCst);
    }

    /// Sets it back.
    pub fn back(&self, by: Duration) {
        self.0.fetch_sub(micros(by), Ordering::SeqCst);
    }

    /// The clock that it moves.
    pub fn clock(&self) -> Clock {
        let (hands, system) = (self.clone(), Clock::system());
        Clock::new(move || {
            let shown = system.now().unix_micros() + hands.0.load(Ordering::SeqCst);
            Timestamp::from_unix_micros(shown).unwrap_or(Timestamp::MAX)
        })
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// How long heartbeats have to come before a device of a fleet is trusted: long enough for a gap to fit in.
pub const CONTINUITY: Duration = Duration::from_secs(3600);

/// A fleet's settings: those that devices are held to everywhere, but for an hour of continuity in the place of a day.
pub fn settings() -> DeviceSettings {
    DeviceSettings {
        continuity: CONTINUITY,
        ..DeviceSettings::default()
    }
}

/// How a gateway is set up that serves a fleet out of this folder.
pub fn config(data: PathBuf) -> GatewayConfig {
    GatewayConfig {
        data,
        // Levels are looked at on every request; what nobody asks about is not played here.
        sweep_seconds: 3600,
        http: HttpConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token_per_second: 1 << 20,
            token_burst: 1 << 20,
            address_per_second: 1 << 20,
            address_burst: 1 << 20,
            ..HttpConfig::default()
        },
        devices: settings(),
        ..GatewayConfig::default()
    }
}

/// A gateway that is served, and whoever it serves.
#[derive(Debug)]
pub struct Fleet {
    /// Its clock, to be set.
    pub hands: Hands,
    /// Where governed work is done.
    pub workplace: Arc<Workplace>,
    service: Arc<Service>,
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

impl Fleet {
    /// Serves a gateway that lacks these defences, out of a folder of its own below this one. Its clock is late by as
    /// long as devices take to be trusted, so that the logs that they write are of its time when they are.
    pub async fn open(folder: &Path, without: &[Defence]) -> Prepared<Self> {
        let hands = Hands::default();
        hands.back(CONTINUITY);
        let config = config(folder.join("gateway"));
        let service = Service::lacking(&config, surroundings(&hands), without);
        let service = service.while_("opening a gateway")?;
        Self::serve(service, &config, hands, folder).await
    }

    /// The same over a store that somebody opens, with every defence and these settings. PostgreSQL's client waits in
    /// its own way, so that all of this is off the threads that serve.
    pub async fn over(
        folder: &Path,
        devices: DeviceSettings,
        open: impl FnOnce() -> Box<dyn Sql> + Send + 'static,
    ) -> Prepared<Self> {
        let hands = Hands::default();
        hands.back(CONTINUITY);
        let config = GatewayConfig {
            devices,
            ..config(folder.join("gateway"))
        };
        let (set, clock) = (config.clone(), surroundings(&hands));
        let opening = tokio::task::spawn_blocking(move || {
            let data = Folder::open(&set.data).while_("making a gateway's folder")?;
            Service::over(&set, data, open(), clock).while_("opening a gateway")
        });
        let service = opening.await.while_("opening a gateway")??;
        Self::serve(service, &config, hands, folder).await
    }

    /// Serves a gateway that is open.
    async fn serve(
        service: Service,
        config: &GatewayConfig,
        hands: Hands,
        folder: &Path,
    ) -> Prepared<Self> {
        let service = Arc::new(service);
        let server = Server::bind(Arc::clone(&service), config.http.clone()).await;
        let server = server.while_("binding a port")?;
        let address = server.address();
        let (end, ended) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async {
            let _ = ended.await;
        }));
        let place = folder.join("workplace");
        std::fs::create_dir_all(&place).while_("making a workplace")?;
        Ok(Self {
            hands,
            workplace: Arc::new(Workplace::new(place)),
            service,
            address,
            end: Some(end),
            serving: Some(serving),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A client of whoever runs it.
    pub fn platform(&self) -> PlatformClient {
        PlatformClient::of_folder(self.service.folder())
    }

    /// An account whose owner has a fresh key.
    pub async fn account(&self, name: &str) -> Prepared<Account> {
        let place = (&self.platform(), self.address);
        Account::open(place, &self.hands, &self.workplace, name).await
    }

    /// Lets this much time pass, in which these machines beat together, each with its runner.
    pub async fn beat_for(
        &self,
        time: Duration,
        machines: &[(&Machine, RunnerId)],
    ) -> Prepared<()> {
        for step in std::iter::once(Duration::ZERO).chain(machine::steps(time)) {
            self.hands.forward(step);
            for (machine, runner) in machines {
                machine.beat(&[*runner]).await.while_("beating")?;
            }
        }
        Ok(())
    }

    /// Ends it, and gives what its log holds: of each event the type and the payload, in their order.
    pub async fn close(mut self) -> Prepared<Vec<(String, Map<String, Value>)>> {
        let folder = self.service.folder().to_owned();
        let key = self.service.log_key();
        self.end().await;
        drop(self);
        events(&folder, Trust::only(key))
    }

    async fn end(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(serving) = self.serving.take() {
            let _ = serving.await;
        }
        let service = Arc::clone(&self.service);
        let _ = tokio::task::spawn_blocking(move || service.close()).await;
    }
}

fn surroundings(hands: &Hands) -> Surroundings {
    Surroundings {
        clock: hands.clock(),
        report: Report::to(|_| {}),
    }
}

/// A client of a gateway that listens there.
pub fn client(address: SocketAddr, token: Option<&str>) -> Prepared<GatewayClient> {
    let url = ServiceUrl::parse(&format!("http://{address}"), InTheClear::OnLoopback);
    let token = token.map(|text| TokenText::parse(text).ok_or_else(|| Trouble::new("no token")));
    let access = GatewayAccess {
        url: url.while_("reading an address")?,
        token: token.transpose()?,
        ca_file: None,
    };
    GatewayClient::new(access).while_("making a client")
}

/// What the log of the gateway in this folder holds.
pub fn events(folder: &Path, trust: Trust) -> Prepared<Vec<(String, Map<String, Value>)>> {
    let project = lodestar_core::name::ProjectId::new(PROJECT).while_("a project's name")?;
    let log = LogRoot::at(folder.join("log")).project(&project);
    let (ledger, problems) =
        Ledger::read(&log, &trust, &Default::default()).while_("reading a gateway's ledger")?;
    if let Some(problem) = problems.first() {
        return Err(Trouble::new(format!("a gateway's ledger: {problem}")));
    }
    let mut found = Vec::new();
    for (session, _) in ledger.sessions() {
        let dir = log.session(session);
        let mut reader = Reader::open(&dir).while_("reading a gateway's log")?;
        while let Some(event) = reader.next_event().while_("reading a gateway's log")? {
            let payload = event.whole(&dir).while_("reading an event")?;
            let payload = payload.and_then(|payload| match payload {
                Value::Object(members) => Some(members),
                _ => None,
            });
            found.push((event.kind.clone(), payload.unwrap_or_default()));
        }
    }
    Ok(found)
}

/// A key that nobody else has.
pub fn fresh_key() -> Prepared<SecretKey> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).while_("making a key")?;
    Ok(SecretKey::from_seed(seed))
}

/// A number that was never used.
pub fn fresh_nonce() -> Prepared<Nonce> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).while_("making a nonce")?;
    Ok(Nonce::from_bytes(bytes))
}
