//! Bodies: messages that come, whole and in time; answers that go, as JSON or as events.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;

/// How often a silent stream shows that it is there; what lies between closes silent ones after a minute.
const ALIVE: Duration = Duration::from_secs(15);

/// Why a message was not read.
#[derive(Debug)]
pub(super) enum Unread {
    TooLarge,
    TooSlow,
    Broken,
}

/// A message, whole.
pub(super) async fn read(
    mut body: Body,
    headers: &HeaderMap,
    limit: usize,
    within: Duration,
) -> Result<Bytes, Unread> {
    let said = headers.get(header::CONTENT_LENGTH);
    let said = said.and_then(|said| said.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|said| said > limit as u64) {
        return Err(Unread::TooLarge);
    }
    let reading = async {
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unread::Broken)?;
            let Some(data) = frame.data_ref() else {
                continue;
            };
            if read.len() + data.len() > limit {
                return Err(Unread::TooLarge);
            }
            read.extend_from_slice(data);
        }
        Ok(Bytes::from(read))
    };
    match tokio::time::timeout(within, reading).await {
        Ok(read) => read,
        Err(_) => Err(Unread::TooSlow),
    }
}

/// Whether a request says that it is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let form = headers.get(header::CONTENT_TYPE);
    let form = form.and_then(|form| form.to_str().ok()).unwrap_or_default();
    let form = form.split(';').next().unwrap_or_default().trim();
    form.eq_ignore_ascii_case("application/json")
}

/// Whether whoever asks takes events.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|accepted| accepted.to_str().ok());
    accepted.any(|accepted| {
        accepted.split(',').any(|one| {
            let one = one.split(';').next().unwrap_or_default().trim();
            ["text/event-stream", "text/*", "*/*"]
                .iter()
                .any(|fitting| one.eq_ignore_ascii_case(fitting))
        })
    })
}

/// Words for whoever looks at the exchange.
pub(super) fn plain(status: StatusCode, why: String) -> Response {
    respond(status, "text/plain; charset=utf-8", Body::from(why))
}

/// A message.
pub(super) fn json(status: StatusCode, message: Vec<u8>) -> Response {
    respond(status, "application/json", Body::from(message))
}

/// Which event of which stream: by what a client says what it heard last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

/// The stream of what belongs to no request.
pub(super) const UNASKED: u64 = 0;

impl EventId {
    /// An id as it is written.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        Some(Self {
            stream: stream.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

/// Something to be written to a stream of events.
#[derive(Debug)]
pub(super) enum Written {
    /// The stream's name, before it says anything.
    Named(EventId),
    /// A message.
    Message {
        /// By what it is taken up again, where it can be.
        id: Option<EventId>,
        message: Bytes,
    },
}

/// How long a client is asked to wait before it takes a stream up again.
const AGAIN: Duration = Duration::from_millis(500);

/// A stream of events, until nobody has more.
pub(super) fn events(from: mpsc::Receiver<Written>) -> Response {
    let bytes = stream::unfold(from, |mut from| async move {
        let bytes = match tokio::time::timeout(ALIVE, from.recv()).await {
            Ok(Some(written)) => event(&written),
            Ok(None) => return None,
            Err(_) => b": alive\n\n".to_vec(),
        };
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(bytes)), from))
    });
    let body = Body::from_stream(bytes);
    let mut response = respond(StatusCode::OK, "text/event-stream", body);
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, never);
    response
}

/// Between tokens of JSON, a space means what a line's end means.
fn event(written: &Written) -> Vec<u8> {
    let (id, message) = match written {
        Written::Named(id) => {
            let retry = AGAIN.as_millis();
            return format!("id: {id}\nretry: {retry}\ndata: \n\n").into_bytes();
        }
        Written::Message { id, message } => (id, message),
    };
    let mut out = Vec::with_capacity(message.len() + 60);
    if let Some(id) = id {
        out.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    out.extend_from_slice(b"event: message\ndata: ");
    let spaced = message.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        byte => *byte,
    });
    out.extend(spaced);
    out.extend_from_slice(b"\n\n");
    out
}

fn respond(status: StatusCode, form: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let form = HeaderValue::from_static(form);
    response.headers_mut().insert(header::CONTENT_TYPE, form);
    response
}
