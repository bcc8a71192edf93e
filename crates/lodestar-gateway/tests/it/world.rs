//! A gateway as it is served: a real server on a loopback port, a clock that a test sets, real keys, both
//! databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use lodestar_core::device::DeviceSettings;
use lodestar_core::id::{AccountId, ContenderId, DeviceId, RunId, RunnerId, TermsId};
use lodestar_core::key::{PublicKey, SecretKey};
use lodestar_core::name::ActorId;
use lodestar_core::statement::{
    Attestation, ChallengeResponse, DaemonVersion, Envelope, GatewayStatus, Heartbeat, Issued,
    KeyRotation, Nonce, Order, OwnerOrder, RunBundle, RunPredicate, Statement,
};
use lodestar_core::time::Timestamp;
use lodestar_gateway::client::{GatewayAccess, GatewayClient, PlatformClient};
use lodestar_gateway::code::Code;
use lodestar_gateway::config::GatewayConfig;
use lodestar_gateway::http::Server;
use lodestar_gateway::service::{Folder, PROJECT, Report, Service, Surroundings};
use lodestar_gateway::token::TokenText;
use lodestar_gateway::wire;
use lodestar_kernel::native::http::client::{InTheClear, ServiceUrl};
use lodestar_kernel::opening::RunTicket;
use lodestar_log::{Clock, LogRoot, Reader};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::ran::Ran;
use crate::store::place::Place;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

pub(crate) fn nonce() -> Nonce {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap();
    Nonce::from_bytes(bytes)
}

pub(crate) fn name(text: &str) -> ActorId {
    ActorId::new(text).unwrap()
}

/// A clock that is as far from the system's as a test wants it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hands(Arc<AtomicI64>);

impl Hands {
    pub(crate) fn clock(&self) -> Clock {
        let offset = Arc::clone(&self.0);
        let system = Clock::system();
        Clock::new(move || {
            let micros = system.now().unix_micros() + offset.load(Ordering::Acquire);
            Timestamp::from_unix_micros(micros).unwrap()
        })
    }

    pub(crate) fn forward(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap();
        self.0.fetch_add(by, Ordering::AcqRel);
    }
}

/// What must not be made, used or dropped on a thread that runs futures: PostgreSQL's client waits in its own way.
pub(crate) struct Apart<T: Send>(Option<T>);

impl<T: Send> Apart<T> {
    pub(crate) fn make(make: impl FnOnce() -> T + Send) -> Self {
        Self(Some(apart(make)))
    }

    pub(crate) fn with<R: Send>(&self, work: impl FnOnce(&T) -> R + Send) -> R
    where
        T: Sync,
    {
        apart(|| work(self.0.as_ref().unwrap()))
    }
}

impl<T: Send> Drop for Apart<T> {
    fn drop(&mut self) {
        let held = self.0.take();
        apart(move || drop(held));
    }
}

fn apart<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// A gateway that is served, until it is dropped.
pub(crate) struct World {
    pub(crate) place: Apart<Place>,
    _folder: tempfile::TempDir,
    pub(crate) hands: Hands,
    pub(crate) clock: Clock,
    pub(crate) url: String,
    pub(crate) config: GatewayConfig,
    service: Option<Arc<Service>>,
    end: Option<oneshot::Sender<()>>,
    serving: Option<tokio::task::JoinHandle<()>>,
    /// What the service said to whoever runs it.
    pub(crate) said: Arc<std::sync::Mutex<Vec<String>>>,
}

impl World {
    pub(crate) async fn on(place: Apart<Place>) -> Self {
        Self::with(place, |_| {}).await
    }

    pub(crate) async fn with(place: Apart<Place>, change: impl FnOnce(&mut GatewayConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hands = Hands::default();
        let mut config = GatewayConfig {
            data: folder.path().join("data"),
            sweep_seconds: 3600,
            ..GatewayConfig::default()
        };
        config.http.listen = "127.0.0.1:0".parse().unwrap();
        config.http.token_per_second = 1 << 20;
        config.http.token_burst = 1 << 20;
        config.http.address_per_second = 1 << 20;
        config.http.address_burst = 1 << 20;
        change(&mut config);
        let mut world = Self {
            place,
            _folder: folder,
            clock: hands.clock(),
            hands,
            url: String::new(),
            config,
            service: None,
            end: None,
            serving: None,
            said: Arc::default(),
        };
        world.start().await;
        world
    }

    pub(crate) async fn start(&mut self) {
        let said = Arc::clone(&self.said);
        let surroundings = Surroundings {
            clock: self.clock.clone(),
            report: Report::to(move |line| said.lock().unwrap().push(line.to_owned())),
        };
        let config = &self.config;
        let service = self.place.with(|place| {
            let folder = Folder::open(&config.data).unwrap();
            Service::over(config, folder, place.open(), surroundings).unwrap()
        });
        let service = Arc::new(service);
        let server = Server::bind(Arc::clone(&service), self.config.http.clone())
            .await
            .unwrap();
        // Where it was reached once, it is reached again.
        self.config.http.listen = server.address();
        self.url = format!("http://{}", server.address());
        let (end, ended) = oneshot::channel();
        let until = async {
            let _ = ended.await;
        };
        self.serving = Some(tokio::spawn(server.serve(until)));
        self.end = Some(end);
        self.service = Some(service);
    }

    /// Ends the service as a signal does, and waits until it has.
    pub(crate) async fn stop(&mut self) {
        drop(self.end.take());
        if let Some(serving) = self.serving.take() {
            serving.await.unwrap();
        }
        if let Some(service) = self.service.take() {
            tokio::task::spawn_blocking(move || service.close())
                .await
                .unwrap();
        }
    }

    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.start().await;
    }

    pub(crate) fn service(&self) -> &Service {
        self.service.as_ref().unwrap()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn settings(&self) -> DeviceSettings {
        self.config.devices
    }

    pub(crate) fn client(&self, token: Option<&str>) -> GatewayClient {
        GatewayClient::new(GatewayAccess {
            url: ServiceUrl::parse(&self.url, InTheClear::OnLoopback).unwrap(),
            token: token.map(|token| TokenText::parse(token).unwrap()),
            ca_file: None,
        })
        .unwrap()
    }

    pub(crate) fn platform(&self) -> PlatformClient {
        PlatformClient::of_folder(&self.config.data)
    }

    /// An account with its owner.
    pub(crate) async fn owner(&self, called: &str, seed: u8) -> Owner {
        let owner_key = key(seed);
        let opened = self
            .platform()
            .open_account(&wire::OpenAccount {
                name: name(called),
                owner_key: owner_key.public(),
            })
            .await
            .unwrap();
        Owner {
            account: opened.account,
            client: self.client(Some(&opened.token)),
            token: opened.token,
            key: owner_key,
            clock: self.clock.clone(),
        }
    }

    /// Any request, as anybody could make it: status, headers, body.
    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        form: Option<&str>,
        body: impl Into<Bytes>,
    ) -> Answered {
        let address = self.url.strip_prefix("http://").unwrap();
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("host", address);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(form) = form {
            request = request.header("content-type", form);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Answered {
            status,
            headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        }
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &Value) -> Answered {
        let form = Some("application/json");
        self.raw("POST", path, Some(token), form, body.to_string())
            .await
    }

    /// What the service's log says, once the service has ended; and that it verifies.
    pub(crate) async fn events(&mut self) -> Vec<(String, Value)> {
        let key = self.service().log_key();
        self.stop().await;
        logged(&self.config.data.join("log"), key)
    }
}

/// Every event of every session of a service's log, in their order; and that the log verifies.
pub(crate) fn logged(folder: &std::path::Path, key: PublicKey) -> Vec<(String, Value)> {
    let project = lodestar_core::name::ProjectId::new(PROJECT).unwrap();
    let log = LogRoot::at(folder).project(&project);
    let trust = lodestar_log::Trust::only(key);
    let options = lodestar_log::verify::VerifyOptions::default();
    let report = lodestar_log::verify::verify_project(&log, &trust, &options, &|_| {}).unwrap();
    assert!(report.is_intact(), "{report:?}");
    let (ledger, _) =
        lodestar_log::Ledger::read(&log, &trust, &std::collections::BTreeSet::new()).unwrap();
    let mut events = Vec::new();
    for (session, _) in ledger.sessions() {
        let dir = log.session(session);
        let mut reader = Reader::open(&dir).unwrap();
        while let Some(event) = reader.next_event().unwrap() {
            let payload = event.whole(&dir).unwrap().unwrap();
            events.push((event.kind, payload));
        }
    }
    events
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) body: Value,
}

impl Answered {
    /// The code of a refusal; that its status is the code's, too.
    pub(crate) fn code(&self) -> Option<Code> {
        let code: Code = self.body["error"]["code"].as_str()?.parse().unwrap();
        assert_eq!(code.status(), self.status, "{self:?}");
        Some(code)
    }
}

/// Whoever owns an account.
pub(crate) struct Owner {
    pub(crate) account: AccountId,
    pub(crate) token: String,
    pub(crate) key: SecretKey,
    pub(crate) client: GatewayClient,
    pub(crate) clock: Clock,
}

/// A statement that somebody issues now.
pub(crate) fn issued<T: Statement>(subject: T, key: &SecretKey, at: Timestamp) -> Issued<T> {
    Issued {
        expires_at: None,
        issued_at: at,
        key_id: key.public().key_id(),
        nonce: nonce(),
        subject,
    }
}

pub(crate) fn signed<T: Statement>(subject: T, key: &SecretKey, at: Timestamp) -> Envelope {
    Envelope::sign(&issued(subject, key, at), key).unwrap()
}

impl Owner {
    pub(crate) fn signed(&self, order: Order) -> Envelope {
        let order = OwnerOrder {
            account: self.account,
            order,
        };
        signed(order, &self.key, self.clock.now())
    }

    pub(crate) async fn order(&self, order: Order) -> Result<wire::Ordered, Option<Code>> {
        let asked = wire::HandInOrder {
            envelope: self.signed(order),
            terms: None,
        };
        let done = self.client.order(&asked).await;
        done.map_err(|problem| problem.code())
    }

    /// A device with keys of its own, pending.
    pub(crate) async fn device(&self, world: &World, called: &str, seed: u8) -> Machine {
        let (own, log) = (key(seed), key(seed + 1));
        let registered = self
            .client
            .register_device(&wire::RegisterDevice {
                name: name(called),
                key: Some(own.public()),
                log_key: Some(log.public()),
            })
            .await
            .unwrap();
        Machine {
            account: self.account,
            id: registered.device,
            client: world.client(Some(&registered.token)),
            token: registered.token,
            key: own,
            log_key: log,
            challenge: registered.challenge.map(|it| it.nonce),
            clock: self.clock.clone(),
        }
    }

    pub(crate) async fn approve(&self, machine: &Machine) -> Result<wire::Ordered, Option<Code>> {
        self.order(Order::Approve {
            device: machine.id,
            key: machine.key.public(),
            log_key: machine.log_key.public(),
        })
        .await
    }

    /// A device that answered its challenge and was approved.
    pub(crate) async fn approved(&self, world: &World, called: &str, seed: u8) -> Machine {
        let machine = self.device(world, called, seed).await;
        machine.answer().await.unwrap();
        self.approve(&machine).await.unwrap();
        machine
    }

    pub(crate) async fn runner(&self, called: &str) -> RunnerId {
        let asked = wire::Named { name: name(called) };
        self.client.register_runner(&asked).await.unwrap().id
    }

    pub(crate) async fn agent(&self, called: &str) -> ContenderId {
        let asked = wire::Named { name: name(called) };
        self.client.register_agent(&asked).await.unwrap().id
    }

    pub(crate) async fn register_terms(&self, ran: &Ran) -> TermsId {
        let digest = ran.terms.digest().unwrap();
        let document = ran.terms.document().unwrap();
        let asked = wire::HandInOrder {
            envelope: self.signed(Order::RegisterTerms { terms: digest }),
            terms: Some(serde_json::from_slice(&document).unwrap()),
        };
        self.client.order(&asked).await.unwrap().terms.unwrap()
    }
}

/// A device, as it is on its machine.
pub(crate) struct Machine {
    pub(crate) account: AccountId,
    pub(crate) id: DeviceId,
    pub(crate) token: String,
    pub(crate) key: SecretKey,
    pub(crate) log_key: SecretKey,
    pub(crate) challenge: Option<Nonce>,
    pub(crate) client: GatewayClient,
    pub(crate) clock: Clock,
}

impl Machine {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn answering(&self, challenge: Nonce) -> ChallengeResponse {
        ChallengeResponse {
            account: self.account,
            challenge,
            device: self.id,
        }
    }

    pub(crate) async fn answer(&self) -> Result<wire::Standing, Option<Code>> {
        let subject = self.answering(self.challenge.unwrap());
        let envelope = signed(subject, &self.key, self.now());
        let answered = self.client.answer_challenge(self.id, &envelope).await;
        answered.map_err(|problem| problem.code())
    }

    pub(crate) fn beating(&self, runners: &[RunnerId]) -> Heartbeat {
        Heartbeat {
            account: self.account,
            daemon_version: DaemonVersion::new("test").unwrap(),
            device: self.id,
            gateway_status: GatewayStatus::connected(),
            runners: runners.iter().copied().collect(),
        }
    }

    pub(crate) fn beat(&self, runners: &[RunnerId]) -> Envelope {
        signed(self.beating(runners), &self.key, self.now())
    }

    pub(crate) async fn heartbeat(
        &self,
        runners: &[RunnerId],
    ) -> Result<wire::Beaten, Option<Code>> {
        let beaten = self.client.heartbeat(self.id, &self.beat(runners)).await;
        beaten.map_err(|problem| problem.code())
    }

    pub(crate) fn bundle(&self, run: RunId, ran: &Ran) -> (Envelope, Vec<u8>) {
        let (bytes, packed) = ran.packed();
        let subject = RunBundle {
            account: self.account,
            bundle: packed.bundle,
            bytes: packed.bytes,
            device: self.id,
            root: packed.root,
            run,
            size: packed.size,
        };
        (signed(subject, &self.key, self.now()), bytes)
    }

    /// What it says of a run.
    pub(crate) fn attesting(&self, run: &wire::Run, ran: &Ran) -> Attestation {
        let (_, packed) = ran.packed();
        Attestation {
            session: ran.session().clone(),
            root: packed.root,
            predicate: RunPredicate {
                account: self.account,
                agent: run.agent,
                bundle: packed.bundle,
                device: self.id,
                issued_at: self.now(),
                key_id: self.key.public().key_id(),
                lens_hash: run.lens_hash,
                nonce: nonce(),
                policy: run.policy,
                run: run.id,
                run_nonce: run.nonce,
                runner: run.runner,
                size: packed.size,
                workflow_hash: run.workflow_hash,
            },
        }
    }

    pub(crate) async fn attest(
        &self,
        run: &wire::Run,
        ran: &Ran,
    ) -> Result<wire::Attested, Option<Code>> {
        let said = self.attesting(run, ran);
        let envelope = Envelope::attest(&said, &self.key).unwrap();
        let asked = attest(envelope);
        let done = self.client.attest(run.id, &asked).await;
        done.map_err(|problem| problem.code())
    }

    /// Everything between a run's registration and its attestation, as an honest device does it.
    pub(crate) async fn ship(&self, run: RunId, ran: &Ran) {
        let (statement, bytes) = self.bundle(run, ran);
        let size = usize::try_from(ran.packed().1.size).unwrap();
        for part in [size / 2, size] {
            let note = ran.note_at(part);
            self.client.checkpoint(run, &note).await.unwrap();
        }
        self.client.bundle(run, &statement, &bytes).await.unwrap();
    }

    pub(crate) fn rotating(&self, new: &SecretKey, new_log: &SecretKey) -> KeyRotation {
        KeyRotation {
            account: self.account,
            device: self.id,
            new_key: new.public(),
            new_log_key: new_log.public(),
            old_key: self.key.public(),
        }
    }
}

pub(crate) fn attest(envelope: Envelope) -> wire::Attest {
    wire::Attest {
        envelope,
        device_trusted: None,
        gateway_verified: None,
        policy_passed: None,
    }
}

pub(crate) fn ticket_of(run: &wire::RunRegistered) -> RunTicket {
    RunTicket {
        id: run.run,
        nonce: run.nonce,
    }
}

pub(crate) fn stated(envelope: &Envelope) -> Value {
    json!({"envelope": envelope})
}

/// Runs on SQLite, and on PostgreSQL where it is there.
pub(crate) async fn on_both<F: Future<Output = ()>>(test: impl Fn(Apart<Place>) -> F) {
    test(sqlite()).await;
    if let Some(place) = apart(Place::postgres) {
        test(Apart(Some(place))).await;
    }
}

pub(crate) fn sqlite() -> Apart<Place> {
    Apart::make(Place::sqlite)
}
