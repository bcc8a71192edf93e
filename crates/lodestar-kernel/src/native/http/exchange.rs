//! One request and its answer, on one connection.
//!
//! The connection lives inside this future: dropping it closes the socket. What comes back is held
//! to its caps and refused beyond them; it is cut only for whoever says so. Nothing is decompressed.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming as IncomingBody};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderName,
    HeaderValue, TRANSFER_ENCODING, USER_AGENT,
};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use crate::native::net::connector::Connector;
use crate::native::net::credential::Scrubber;
use crate::native::net::endpoint::Endpoint;
use crate::native::net::wire::Wire;
use crate::tool::ToolError;

/// Most header lines of an answer, and the most bytes they take together.
const MAX_RESPONSE_HEADERS: usize = 100;
const MAX_RESPONSE_HEAD_BYTES: usize = 64 << 10;

/// Who asks.
const AGENT: &str = "lodestar";

/// What goes out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: &'static str,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

/// What came back, credentials removed.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// How often a credential was removed.
    pub(crate) scrubbed: usize,
    /// Whether there was more than the cap takes.
    pub(crate) cut: bool,
}

/// Most bytes of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cap {
    /// A longer one is refused.
    Refused(usize),
    /// The rest of a longer one is not read.
    Cut(usize),
}

impl Incoming {
    /// The first value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Sends a request and takes the answer, as much of its body as the cap takes.
pub(crate) async fn exchange(
    connector: &Connector,
    wire: &Wire,
    endpoint: &Endpoint,
    outgoing: Outgoing,
    scrubber: &Scrubber,
    cap: Cap,
) -> Result<Incoming, ToolError> {
    let request = request(endpoint, outgoing)?;
    let stream = connector.connect(endpoint).await.map_err(|e| ToolError {
        // An earlier hop of the same call may have had one.
        effect: wire.effect(),
        ..e
    })?;
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(MAX_RESPONSE_HEADERS)
        .max_buf_size(MAX_RESPONSE_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|e| wire.failed(format!("no connection to `{endpoint}`: {e}")))?;
    let answer = async {
        wire.sending();
        let response = sender
            .send_request(request)
            .await
            .map_err(|e| broken(wire, endpoint, &e))?;
        let head = head(wire, endpoint, &response, scrubber)?;
        let (body, cut) = body(wire, endpoint, response.into_body(), cap).await?;
        Ok(finish(Incoming { cut, ..head }, body, scrubber))
    };
    tokio::pin!(answer, connection);
    tokio::select! {
        biased;
        result = &mut answer => return result,
        // What it has read is still on its way to the answer.
        _ = &mut connection => {}
    }
    answer.await
}

fn request(endpoint: &Endpoint, outgoing: Outgoing) -> Result<Request<Full<Bytes>>, ToolError> {
    let mut request = Request::builder()
        .method(outgoing.method)
        .uri(&outgoing.target)
        .header(HOST, endpoint.authority())
        .body(Full::new(outgoing.body))
        .map_err(|e| ToolError::invalid(format!("the url cannot be sent: {e}")))?;
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    for (name, value) in outgoing.headers {
        headers.insert(name, value);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// The status and headers of an answer that can be read at all.
fn head(
    wire: &Wire,
    endpoint: &Endpoint,
    response: &Response<IncomingBody>,
    scrubber: &Scrubber,
) -> Result<Incoming, ToolError> {
    let headers = response.headers();
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(wire.refused(format!(
            "`{endpoint}` switched to another protocol, unasked"
        )));
    }
    if headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH) {
        return Err(wire.refused(format!(
            "`{endpoint}` says two things about where its answer ends; it is not read"
        )));
    }
    // A credential inside could not be seen.
    if is_encoded(headers) && scrubber.is_armed() {
        return Err(wire.refused(format!(
            "`{endpoint}` encoded its answer, unasked; it is not read, since it may repeat the credential"
        )));
    }
    let mut scrubbed = 0;
    let mut shown = |bytes: &[u8]| {
        let (text, count) = scrubber.scrub_text(&String::from_utf8_lossy(bytes));
        scrubbed += count;
        text
    };
    let headers = headers
        .iter()
        .map(|(name, value)| (shown(name.as_str().as_bytes()), shown(value.as_bytes())))
        .collect();
    Ok(Incoming {
        status: response.status().as_u16(),
        headers,
        body: Vec::new(),
        scrubbed,
        cut: false,
    })
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The body, and whether there is more of it.
async fn body(
    wire: &Wire,
    endpoint: &Endpoint,
    mut body: IncomingBody,
    cap: Cap,
) -> Result<(Vec<u8>, bool), ToolError> {
    let too_large = |max_bytes: usize| {
        wire.refused(format!(
            "the answer of `{endpoint}` is larger than {max_bytes} bytes; ask for less, or raise `max_response_bytes`"
        ))
    };
    if let Cap::Refused(max_bytes) = cap
        && body.size_hint().lower() > max_bytes as u64
    {
        return Err(too_large(max_bytes));
    }
    let (Cap::Refused(max_bytes) | Cap::Cut(max_bytes)) = cap;
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| broken(wire, endpoint, &e))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        let room = max_bytes - read.len();
        match cap {
            Cap::Refused(_) if data.len() > room => return Err(too_large(max_bytes)),
            Cap::Cut(_) if data.len() > room => {
                read.extend_from_slice(&data[..room]);
                return Ok((read, true));
            }
            _ => read.extend_from_slice(data),
        }
    }
    Ok((read, false))
}

fn finish(mut head: Incoming, body: Vec<u8>, scrubber: &Scrubber) -> Incoming {
    let (body, count) = scrubber.scrub(body);
    head.body = body;
    head.scrubbed += count;
    head
}

/// hyper's own words, with their cause; they never hold what was sent or received.
fn broken(wire: &Wire, endpoint: &Endpoint, error: &hyper::Error) -> ToolError {
    let cause = std::error::Error::source(error).map_or_else(String::new, |e| format!(": {e}"));
    wire.failed(format!(
        "the exchange with `{endpoint}` failed: {error}{cause}"
    ))
}
