//! OTLP over HTTP with protobuf bodies, through OpenTelemetry's exporter and over Lodestar's own client.
//!
//! The exporter encodes, and tries again what a receiver asks to be sent again; what comes back is read here,
//! since an answer of 200 may still say that spans were rejected, and may be no answer of a receiver at all.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use lodestar_core::name::Excerpt;
use lodestar_kernel::native::http::Method;
use lodestar_kernel::native::http::client::{Asked, Client, ClientError, ServiceUrl};
use lodestar_kernel::native::net::NetworkConfig;
use lodestar_kernel::native::net::credential::Secret;
use lodestar_kernel::native::net::resolve::SystemResolver;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use thiserror::Error;

use super::answer::{Answer, MAX_ANSWER, PROTOBUF};
use super::resource;

/// How long one batch may take, with all tries.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long one try may take.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Why spans did not arrive.
#[derive(Debug, Error)]
pub enum SendError {
    /// The client cannot be set up.
    #[error("the endpoint cannot be used: {0}")]
    Client(#[from] ClientError),
    /// The exporter cannot be set up.
    #[error("the exporter cannot be set up: {0}")]
    Setup(String),
    /// Nobody answered.
    #[error("`{url}` was not reached: {problem}")]
    Unreached {
        /// Where.
        url: String,
        /// Why.
        problem: String,
    },
    /// The receiver takes no credentials, or not these.
    #[error("`{url}` refuses the credentials (status {status})")]
    NotAuthorised {
        /// Where.
        url: String,
        /// The status.
        status: u16,
    },
    /// Nothing takes spans there.
    #[error("`{url}` takes no spans (status {status})")]
    NotThere {
        /// Where.
        url: String,
        /// The status.
        status: u16,
    },
    /// It redirects.
    #[error("`{url}` redirects to `{to}`, and redirects are not followed; name where it really is")]
    Redirected {
        /// Where.
        url: String,
        /// Where to, inert.
        to: Excerpt,
    },
    /// It has too much to do, and had until the time was over.
    #[error("`{url}` cannot take spans now (status {status}){}", after(.again))]
    Busy {
        /// Where.
        url: String,
        /// The status.
        status: u16,
        /// When it wants to be asked again, inert.
        again: Option<Excerpt>,
    },
    /// It will not have them.
    #[error("`{url}` refuses the spans (status {status})")]
    Refused {
        /// Where.
        url: String,
        /// The status.
        status: u16,
    },
    /// It took some of them.
    #[error("`{url}` rejected {rejected} of {sent} spans: {why}")]
    Rejected {
        /// Where.
        url: String,
        /// How many.
        rejected: i64,
        /// Of how many.
        sent: usize,
        /// Why, inert.
        why: Excerpt,
    },
    /// It answered something else.
    #[error(
        "`{url}` answered with something that no OTLP receiver says (`{kind}`), so nobody knows whether it kept the spans"
    )]
    NoReceiver {
        /// Where.
        url: String,
        /// The type of what it said, inert.
        kind: Excerpt,
    },
}

fn after(again: &Option<Excerpt>) -> String {
    let again = again.as_ref();
    again.map_or_else(String::new, |again| format!("; it asks to wait: `{again}`"))
}

/// What came of the last try.
#[derive(Debug, Default)]
enum Heard {
    #[default]
    Nothing,
    NoAnswer(String),
    Answer {
        status: u16,
        kind: Option<String>,
        again: Option<String>,
        location: Option<String>,
        body: Vec<u8>,
    },
}

/// Sends spans to one receiver, batch by batch.
#[derive(Debug)]
pub struct Sender {
    url: String,
    exporter: SpanExporter,
    heard: Arc<Mutex<Heard>>,
    runtime: tokio::runtime::Runtime,
    remarks: Vec<Excerpt>,
}

impl Sender {
    /// A sender to this URL, with these headers. Nothing is sent yet.
    pub fn new(
        url: ServiceUrl,
        headers: &[(String, Secret)],
        network: &NetworkConfig,
        timeout: Duration,
    ) -> Result<Self, SendError> {
        let setup = |problem: String| SendError::Setup(problem);
        let shown = url.to_string();
        let client = Client::with_headers(url, headers, network, Arc::new(SystemResolver))?;
        let heard = Arc::default();
        let carrier = Carrier {
            client,
            within: timeout.min(ATTEMPT),
            heard: Arc::clone(&heard),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(carrier)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&shown)
            .with_timeout(timeout)
            .build();
        let mut exporter = exporter.map_err(|e| setup(e.to_string()))?;
        exporter.set_resource(&resource());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| setup(e.to_string()))?;
        Ok(Self {
            url: shown,
            exporter,
            heard,
            runtime,
            remarks: Vec::new(),
        })
    }

    /// Sends a batch, and reads what the receiver makes of it.
    pub fn send(&mut self, batch: Vec<SpanData>) -> Result<(), SendError> {
        if batch.is_empty() {
            return Ok(());
        }
        let sent = batch.len();
        *lock(&self.heard) = Heard::Nothing;
        let exported = self.runtime.block_on(self.exporter.export(batch));
        let heard = std::mem::take(&mut *lock(&self.heard));
        let url = self.url.clone();
        match (exported, heard) {
            (_, Heard::NoAnswer(problem)) => Err(SendError::Unreached { url, problem }),
            (Err(problem), Heard::Nothing) => Err(SendError::Setup(problem.to_string())),
            (Ok(()), Heard::Nothing) => Err(SendError::Setup("nothing was sent".to_owned())),
            (
                _,
                Heard::Answer {
                    status,
                    kind,
                    again,
                    location,
                    body,
                },
            ) => match status {
                200..=299 => self.read(sent, kind.as_deref().unwrap_or_default(), &body),
                300..=399 => Err(SendError::Redirected {
                    url,
                    to: Excerpt::of(location.as_deref().unwrap_or_default()),
                }),
                401 | 403 | 407 => Err(SendError::NotAuthorised { url, status }),
                404 | 405 | 410 => Err(SendError::NotThere { url, status }),
                429 | 500..=599 => Err(SendError::Busy {
                    url,
                    status,
                    again: again.as_deref().map(Excerpt::of),
                }),
                status => Err(SendError::Refused { url, status }),
            },
        }
    }

    /// What the receiver said beside taking everything, inert.
    pub fn remarks(&self) -> &[Excerpt] {
        &self.remarks
    }

    fn read(&mut self, sent: usize, kind: &str, body: &[u8]) -> Result<(), SendError> {
        let url = self.url.clone();
        let Some(answer) = Answer::read(kind, body) else {
            let kind = Excerpt::of(kind);
            return Err(SendError::NoReceiver { url, kind });
        };
        match (answer.rejected, answer.remark) {
            (0, None) => Ok(()),
            (0, Some(remark)) => {
                if !self.remarks.contains(&remark) && self.remarks.len() < MOST_REMARKS {
                    self.remarks.push(remark);
                }
                Ok(())
            }
            (rejected, why) => Err(SendError::Rejected {
                url,
                rejected,
                sent,
                why: why.unwrap_or_else(|| Excerpt::of("it does not say why")),
            }),
        }
    }
}

/// Most remarks of a receiver that are kept.
const MOST_REMARKS: usize = 16;

fn lock(heard: &Mutex<Heard>) -> std::sync::MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lodestar's own client, as the exporter uses one. Of the exporter's request only the body is taken: where
/// it goes and with which headers is the client's to know.
#[derive(Debug)]
struct Carrier {
    client: Client,
    within: Duration,
    heard: Arc<Mutex<Heard>>,
}

#[async_trait::async_trait]
impl HttpClient for Carrier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let asked = Asked {
            method: Method::Post,
            path: &[],
            query: &[],
            accept: Some(PROTOBUF),
            content: Some((PROTOBUF, request.into_body().to_vec())),
            most: MAX_ANSWER + 1,
            within: self.within,
        };
        match self.client.ask(asked).await {
            Ok(said) => {
                let header = |name: &str| said.header(name).map(str::to_owned);
                let (kind, again) = (header("content-type"), header("retry-after"));
                let location = header("location");
                let status = said.status();
                let mut response = Response::builder().status(status);
                if let Some(again) = &again {
                    response = response.header("retry-after", again);
                }
                let (_, body) = said.into_parts();
                let passed_on = Bytes::from(body.clone());
                *lock(&self.heard) = Heard::Answer {
                    status,
                    kind,
                    again,
                    location,
                    body,
                };
                Ok(response.body(passed_on)?)
            }
            Err(problem) => {
                *lock(&self.heard) = Heard::NoAnswer(problem.to_string());
                Err(problem.into())
            }
        }
    }
}
