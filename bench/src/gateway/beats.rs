//! Heartbeats: what one costs, beside what nobody gets around: a signature check, and its rows on disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lodestar_core::device::DeviceSettings;
use lodestar_core::id::{AccountId, DeviceId};
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::ActorId;
use lodestar_core::statement::{
    ChallengeResponse, DaemonVersion, Envelope, GatewayStatus, Heartbeat, Nonce, Order, OwnerOrder,
    StatementKind, pae,
};
use lodestar_gateway::http::Server;
use lodestar_gateway::service::{Report, Service, Surroundings};
use lodestar_gateway::token::TokenText;
use lodestar_gateway::wire;
use lodestar_log::Clock;
use rusqlite::Connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::runtime;
use crate::{Bound, Figure};
use lodestar_harness::world::fleet::{self, signed};

const TRIES: usize = 3;
/// Heartbeats of one try.
const BEATS: usize = 20_000;
/// Requests that wait at the same time: a gateway of ten thousand devices has that many, and it is what a
/// transaction is shared by.
const IN_FLIGHT: usize = 256;
/// Connections of the same, over HTTP.
const CONNECTIONS: usize = 128;
const FEW: usize = 100;
const MANY: usize = 10_000;
const RATE: f64 = 5_000.0;
const GROWTH: f64 = 1.5;

fn text<E: std::fmt::Display>(problem: E) -> String {
    problem.to_string()
}

/// A device that beats.
struct Beating {
    id: DeviceId,
    key: SecretKey,
    token: TokenText,
}

/// A service with devices.
struct World {
    service: Arc<Service>,
    account: AccountId,
    devices: Vec<Beating>,
    /// Behind the service, which writes there until it is gone.
    _folder: tempfile::TempDir,
}

/// A heartbeat as it comes in.
struct Beat {
    device: usize,
    body: Vec<u8>,
    envelope: Envelope,
}

impl World {
    async fn new(count: usize) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(text)?;
        let mut config = fleet::config(folder.path().join("data"));
        config.devices = DeviceSettings::default();
        config.sweep_seconds = 5;
        let surroundings = Surroundings {
            clock: Clock::system(),
            report: Report::stderr(),
        };
        let service = Arc::new(Service::open(&config, surroundings).map_err(text)?);
        let owner = fleet::fresh_key().map_err(text)?;
        let asked = wire::OpenAccount {
            name: ActorId::new("owner").map_err(text)?,
            owner_key: owner.public(),
        };
        let opened = service.open_account(asked).await.map_err(text)?;
        let owner = Arc::new((owner, TokenText::parse(&opened.token).ok_or("no token")?));
        let mut joining = tokio::task::JoinSet::new();
        let mut devices = Vec::with_capacity(count);
        for n in 0..count {
            while joining.len() >= IN_FLIGHT {
                devices.push(joined(joining.join_next().await)?);
            }
            joining.spawn(approved(Arc::clone(&service), Arc::clone(&owner), n));
        }
        while let Some(done) = joining.join_next().await {
            devices.push(joined(Some(done))?);
        }
        Ok(Self {
            _folder: folder,
            service,
            account: opened.account,
            devices,
        })
    }

    /// Heartbeats, signed beforehand, of one device after the other.
    fn beats(&self) -> Result<Vec<Beat>, String> {
        let beat = |n: usize| {
            let device = n % self.devices.len();
            let by = &self.devices[device];
            let heartbeat = Heartbeat {
                account: self.account,
                daemon_version: DaemonVersion::new("lodestar 0.1.0").map_err(text)?,
                device: by.id,
                gateway_status: GatewayStatus::connected(),
                runners: Default::default(),
            };
            let nonce = fleet::fresh_nonce().map_err(text)?;
            let envelope = signed(heartbeat, &by.key, self.service.now(), nonce).map_err(text)?;
            let stated = wire::Stated { envelope };
            let body = serde_json::to_vec(&stated).map_err(text)?;
            let envelope = stated.envelope;
            Ok(Beat {
                device,
                body,
                envelope,
            })
        };
        (0..BEATS).map(beat).collect()
    }

    /// Hands them in as fast as they are taken: read, verified, decided, on disk.
    async fn take(self: &Arc<Self>, beats: Vec<Beat>) -> Result<Duration, String> {
        let (beats, next) = (Arc::new(beats), Arc::new(AtomicUsize::new(0)));
        let started = Instant::now();
        let mut senders = tokio::task::JoinSet::new();
        for _ in 0..IN_FLIGHT {
            let (world, beats, next) = (Arc::clone(self), Arc::clone(&beats), Arc::clone(&next));
            senders.spawn(async move {
                while let Some(beat) = beats.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let stated: wire::Stated = serde_json::from_slice(&beat.body).map_err(text)?;
                    let by = &world.devices[beat.device];
                    let caller = world
                        .service
                        .identify(by.token.hash())
                        .await
                        .map_err(text)?;
                    let caller = caller.ok_or("an unknown token")?;
                    let taken = world.service.heartbeat(caller, by.id, &stated.envelope);
                    taken.await.map_err(text)?;
                }
                Ok::<_, String>(())
            });
        }
        while let Some(sent) = senders.join_next().await {
            sent.map_err(text)??;
        }
        Ok(started.elapsed())
    }

    /// The same by HTTP, over connections that stay open, from this very process.
    async fn serve(self: &Arc<Self>, beats: Vec<Beat>) -> Result<Duration, String> {
        let config = fleet::config(Path::new("unused").to_owned()).http;
        let server = Server::bind(Arc::clone(&self.service), config).await;
        let server = server.map_err(text)?;
        let address = server.address();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async {
            let _ = ended.await;
        }));
        let (beats, next) = (Arc::new(beats), Arc::new(AtomicUsize::new(0)));
        let started = Instant::now();
        let mut senders = tokio::task::JoinSet::new();
        for _ in 0..CONNECTIONS {
            let (world, beats, next) = (Arc::clone(self), Arc::clone(&beats), Arc::clone(&next));
            senders.spawn(async move {
                let mut stream = TcpStream::connect(address).await.map_err(text)?;
                stream.set_nodelay(true).map_err(text)?;
                let mut answer = vec![0; 4096];
                while let Some(beat) = beats.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let by = &world.devices[beat.device];
                    let (id, token, long) = (by.id, by.token.expose(), beat.body.len());
                    let mut request = format!(
                        "POST /v1/devices/{id}/heartbeats HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
                         content-type: application/json\r\ncontent-length: {long}\r\n\r\n"
                    )
                    .into_bytes();
                    request.extend_from_slice(&beat.body);
                    stream.write_all(&request).await.map_err(text)?;
                    let mut have = 0;
                    // An answer ends where its JSON does.
                    while have == 0 || answer[have - 1] != b'}' {
                        let read = stream.read(&mut answer[have..]).await.map_err(text)?;
                        if read == 0 {
                            return Err("the connection ended".to_owned());
                        }
                        have += read;
                    }
                    if !answer.starts_with(b"HTTP/1.1 200") {
                        return Err(String::from_utf8_lossy(&answer[..have]).into_owned());
                    }
                }
                Ok(())
            });
        }
        while let Some(sent) = senders.join_next().await {
            sent.map_err(text)??;
        }
        let took = started.elapsed();
        let _ = end.send(());
        serving.await.map_err(text)?;
        Ok(took)
    }
}

fn joined(
    done: Option<Result<Result<Beating, String>, tokio::task::JoinError>>,
) -> Result<Beating, String> {
    done.ok_or("nobody joined")?.map_err(text)?
}

/// A device that its owner approved.
async fn approved(
    service: Arc<Service>,
    owner: Arc<(SecretKey, TokenText)>,
    n: usize,
) -> Result<Beating, String> {
    let known = service.identify(owner.1.hash()).await.map_err(text)?;
    let known = known.ok_or("an unknown token")?;
    let fresh = || fleet::fresh_key().map_err(text);
    let (key, log_key) = (fresh()?, fresh()?);
    let asked = wire::RegisterDevice {
        name: ActorId::new(format!("device-{n}")).map_err(text)?,
        key: Some(key.public()),
        log_key: Some(log_key.public()),
    };
    let registered = service.register_device(known.clone(), asked).await;
    let registered = registered.map_err(text)?;
    let token = TokenText::parse(&registered.token).ok_or("no token")?;
    let itself = service.identify(token.hash()).await.map_err(text)?;
    let itself = itself.ok_or("an unknown token")?;
    let (account, device) = (registered.account, registered.device);
    let nonce = || -> Result<Nonce, String> { fleet::fresh_nonce().map_err(text) };
    let challenge = registered.challenge.ok_or("no challenge")?.nonce;
    let answer = ChallengeResponse {
        account,
        challenge,
        device,
    };
    let answer = signed(answer, &key, service.now(), nonce()?).map_err(text)?;
    let answered = service.answer_challenge(itself, device, &answer).await;
    answered.map_err(text)?;
    let order = OwnerOrder {
        account,
        order: Order::Approve {
            device,
            key: key.public(),
            log_key: log_key.public(),
        },
    };
    let envelope = signed(order, &owner.0, service.now(), nonce()?).map_err(text)?;
    let asked = wire::HandInOrder {
        envelope,
        terms: None,
    };
    service.order(known, asked).await.map_err(text)?;
    let id = device;
    Ok(Beating { id, key, token })
}

/// All the signatures, on all processors, and nothing else.
fn check(world: &World, beats: &[Beat]) -> Duration {
    let keys: Vec<PublicKey> = world.devices.iter().map(|by| by.key.public()).collect();
    let kind = StatementKind::Heartbeat.payload_type();
    let signed: Vec<_> = beats
        .iter()
        .map(|beat| {
            let message = pae(kind, beat.envelope.unverified_payload());
            let signature = beat.envelope.signatures()[0].bytes;
            (&keys[beat.device], message, signature)
        })
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for part in signed.chunks(signed.len().div_ceil(threads)) {
            scope.spawn(move || {
                for (key, message, signature) in part {
                    assert!(key.verify(message, signature).is_ok());
                }
            });
        }
    });
    started.elapsed()
}

/// The rows that a heartbeat has to leave, in transactions as large as the service's, and nothing else.
fn write(devices: usize) -> Result<Duration, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let mut rows = Connection::open(folder.path().join("rows.db")).map_err(text)?;
    rows.pragma_update(None, "journal_mode", "WAL")
        .map_err(text)?;
    rows.pragma_update(None, "synchronous", "FULL")
        .map_err(text)?;
    rows.execute_batch(
        "CREATE TABLE devices (id TEXT PRIMARY KEY, heard INTEGER, since INTEGER, status TEXT, version TEXT) WITHOUT ROWID;
         CREATE TABLE nonces (n INTEGER PRIMARY KEY, device TEXT NOT NULL, nonce TEXT NOT NULL, seen_at INTEGER NOT NULL,
             UNIQUE (device, nonce));
         CREATE INDEX nonces_by_time ON nonces (seen_at);",
    )
    .map_err(text)?;
    let id = |n: usize| format!("dev_{n:032x}");
    let filling = rows.transaction().map_err(text)?;
    for n in 0..devices {
        let text_of = "INSERT INTO devices VALUES (?1, 0, 0, '', '')";
        filling.execute(text_of, [id(n)]).map_err(text)?;
    }
    filling.commit().map_err(text)?;
    let started = Instant::now();
    let all: Vec<usize> = (0..BEATS).collect();
    for part in all.chunks(IN_FLIGHT) {
        let transaction = rows.transaction().map_err(text)?;
        {
            let mut noted = transaction
                .prepare_cached("INSERT INTO nonces (device, nonce, seen_at) VALUES (?1, ?2, ?3)")
                .map_err(text)?;
            let mut heard = transaction
                .prepare_cached("UPDATE devices SET heard = ?2, since = ?2, status = 'connected', version = 'lodestar' WHERE id = ?1")
                .map_err(text)?;
            for n in part {
                let device = id(n % devices);
                noted
                    .execute((&device, format!("{n:032x}"), *n as i64))
                    .map_err(text)?;
                heard.execute((&device, *n as i64)).map_err(text)?;
            }
        }
        transaction.commit().map_err(text)?;
    }
    Ok(started.elapsed())
}

pub(super) fn measure() -> Result<Vec<Figure>, String> {
    let runtime = runtime()?;
    let few = Arc::new(runtime.block_on(World::new(FEW))?);
    let many = Arc::new(runtime.block_on(World::new(MANY))?);
    let longest = Duration::MAX;
    let (mut of_few, mut of_many) = (longest, longest);
    let (mut by_http, mut many_by_http) = (longest, longest);
    let (mut checked, mut written) = (longest, longest);
    // In turn, so that whatever the machine does besides is done to all of them.
    for _ in 0..TRIES {
        let beats = few.beats()?;
        checked = checked.min(check(&few, &beats));
        written = written.min(write(FEW)?);
        of_few = of_few.min(runtime.block_on(few.take(beats))?);
        of_many = of_many.min(runtime.block_on(many.take(many.beats()?))?);
        by_http = by_http.min(runtime.block_on(few.serve(few.beats()?))?);
        many_by_http = many_by_http.min(runtime.block_on(many.serve(many.beats()?))?);
    }
    let each = |time: Duration| time.as_secs_f64() / BEATS as f64;
    let micros = |time: Duration| each(time) * 1e6;
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    Ok(vec![
        Figure {
            name: "heartbeats a second, service alone",
            value: 1.0 / each(of_few),
            bound: Bound::AtLeast(RATE),
            detail: format!(
                "{:.0} µs each: read, signature verified, on disk in SQLite; {IN_FLIGHT} in flight, no HTTP",
                micros(of_few)
            ),
        },
        Figure {
            name: "heartbeat ÷ its signature check alone",
            value: ratio(of_few, checked),
            bound: Bound::None,
            detail: format!("{:.0} µs a check, on all processors", micros(checked)),
        },
        Figure {
            name: "heartbeat ÷ its bare rows alone",
            value: ratio(of_few, written),
            bound: Bound::None,
            detail: format!(
                "{:.0} µs for both rows, {IN_FLIGHT} to a transaction",
                micros(written)
            ),
        },
        Figure {
            name: "heartbeat, 10,000 devices ÷ 100",
            value: ratio(of_many, of_few),
            bound: Bound::AtMost(GROWTH),
            detail: format!("{:.0} µs each of {MANY}, no HTTP", micros(of_many)),
        },
        Figure {
            name: "heartbeats a second, by HTTP",
            value: 1.0 / each(by_http),
            bound: Bound::AtLeast(RATE),
            detail: format!(
                "{:.0} µs each, {CONNECTIONS} connections, whoever sends on the same processors",
                micros(by_http)
            ),
        },
        Figure {
            name: "heartbeat by HTTP ÷ its signature check",
            value: ratio(by_http, checked),
            bound: Bound::None,
            detail: format!("{:.0} µs a check, on all processors", micros(checked)),
        },
        Figure {
            name: "heartbeat by HTTP ÷ its bare rows alone",
            value: ratio(by_http, written),
            bound: Bound::None,
            detail: format!("{:.0} µs for both rows", micros(written)),
        },
        Figure {
            name: "heartbeat by HTTP, 10,000 devices ÷ 100",
            value: ratio(many_by_http, by_http),
            bound: Bound::AtMost(GROWTH),
            detail: format!("{:.0} µs each of {MANY}", micros(many_by_http)),
        },
    ])
}
