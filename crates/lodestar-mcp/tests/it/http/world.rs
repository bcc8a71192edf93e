//! A project, a server of other people's making, the proxy before it, and bytes to send.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lodestar_core::key::SecretKey;
use lodestar_guard::Keys;
use lodestar_guard::config::Config;
use lodestar_mcp::{HttpFace, Settings};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequest,
    CreateMessageRequestParams, ErrorData, InputRequest, InputRequests, InputRequiredResult,
    ListRootsRequest, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, SamplingMessage,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const OTHER: &str = "fedcba9876543210fedcba9876543210";

/// A project with the proxy in front.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
}

impl World {
    /// The proxy in front of a server at this address.
    pub(crate) async fn before(url: &str, grades: &[&str], more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), url, grades, more);
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let face = HttpFace::bind(settings, here).await.unwrap();
        let address = face.url();
        let address = address
            .trim_start_matches("http://")
            .trim_end_matches("/mcp");
        let address = address.parse().unwrap();
        let (stop, stopped) = oneshot::channel();
        let until = async {
            let _ = stopped.await;
            "the test is over"
        };
        let serving = tokio::spawn(face.serve(until));
        Self {
            folder,
            address,
            stop: Some(stop),
            serving: Some(serving),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Ends the proxy; gives every line of every log.
    pub(crate) async fn log(&mut self) -> Vec<Value> {
        drop(self.stop.take());
        if let Some(serving) = self.serving.take() {
            serving.await.unwrap();
        }
        let mut lines = Vec::new();
        gather(self.folder.path(), &mut lines);
        lines
    }
}

fn gather(folder: &Path, lines: &mut Vec<Value>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, lines);
        } else if path.extension().is_some_and(|ending| ending == "ndjson") {
            let text = std::fs::read_to_string(&path).unwrap();
            lines.extend(
                text.lines()
                    .filter_map(|line| serde_json::from_str(line).ok()),
            );
        }
    }
}

pub(crate) fn settings(folder: &Path, url: &str, grades: &[&str], more: &str) -> Settings {
    let token = folder.join("token");
    std::fs::write(&token, format!("{TOKEN}\n{OTHER}\n")).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut text = format!(
        "project_id = \"web\"\nactor_id = \"agent\"\n\
         [[downstream_servers]]\nname = \"far\"\nurl = \"{url}\"\n\
         [http]\ntoken_file = \"token\"\n{more}\n"
    );
    for tool in grades {
        text += &format!(
            "[tool_defaults.\"{tool}\"]\nrequired_trust_level = \"L1\"\nblast_radius = \"project\"\n\
             reversibility = \"reversible\"\ndata_sensitivity = \"private\"\n"
        );
    }
    Settings {
        config: Config::parse(&text, folder).unwrap(),
        keys: Keys::new(SecretKey::from_seed([7; 32])),
        ceiling: None,
        task: None,
        attendant: None,
        without: Vec::new(),
    }
}

/// A server of other people's making.
#[derive(Clone, Default)]
pub(crate) struct Far {
    pub(crate) calls: Arc<AtomicUsize>,
    /// Whether it knows no handshake.
    pub(crate) is_inline: bool,
    /// How much it wants to know first.
    pub(crate) wants: usize,
    /// Whether it wants to know something more that the agent does not offer.
    pub(crate) wants_roots: bool,
}

impl ServerHandler for Far {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.is_inline {
            true => Cow::Borrowed(&[ProtocolVersion::V_2026_07_28]),
            false => Cow::Borrowed(&[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25]),
        }
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_logging();
        ServerConfig::new(capabilities.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().cloned().unwrap();
        let tools = ["echo", "steps", "sample", "need", "log", "nap", "sleep"];
        let tools = tools.map(|name| Tool::new(name, format!("does {name}"), schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if request.name == "need" && request.input_responses.is_none() {
            let asked = SamplingMessage::user_text("3+3?");
            let params = CreateMessageRequestParams::new(vec![asked], 10);
            let wanted = InputRequest::CreateMessage(CreateMessageRequest::new(params));
            let names = ["answer".to_owned()].into_iter();
            let names = names.chain((1..self.wants).map(|number| format!("answer {number}")));
            let mut wanted: InputRequests = names.map(|name| (name, wanted.clone())).collect();
            if self.wants_roots {
                let roots = InputRequest::ListRoots(ListRootsRequest::default());
                wanted.insert("roots".to_owned(), roots);
            }
            let state = Some("state of the server".to_owned());
            return Ok(InputRequiredResult::new(Some(wanted), state).into());
        }
        let said = match &*request.name {
            "need" => {
                assert_eq!(
                    request.request_state.as_deref(),
                    Some("state of the server")
                );
                json!(request.input_responses).to_string()
            }
            "echo" => json!(request.arguments).to_string(),
            "steps" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for step in 1..=3 {
                        let made = ProgressNotificationParam::new(token.clone(), f64::from(step));
                        context.peer.notify_progress(made).await.unwrap();
                    }
                }
                "three".to_owned()
            }
            "log" => {
                let said = json!(self.calls.load(Ordering::SeqCst));
                let said = LoggingMessageNotificationParam::new(LoggingLevel::Info, said);
                context.peer.notify_logging_message(said).await.unwrap();
                "said".to_owned()
            }
            "sample" => {
                let asked = SamplingMessage::user_text("2+2?");
                let params = CreateMessageRequestParams::new(vec![asked], 10);
                match context.peer.create_message(params).await {
                    Ok(answer) => json!(answer).to_string(),
                    Err(problem) => format!("no: {problem}"),
                }
            }
            "nap" => {
                tokio::time::sleep(Duration::from_millis(400)).await;
                "napped".to_owned()
            }
            _ => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                "slept".to_owned()
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}

/// Starts it on a socket; gives its address.
pub(crate) async fn far(server: Far) -> String {
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().route_service("/mcp", service);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

/// An answer, as it came over the wire.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Came {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines();
        let mut found = lines.filter_map(|line| line.split_once(": "));
        let found = found.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    }

    pub(crate) fn json(&self) -> Value {
        // As events, the answer is the last.
        let last = self.body.lines().rev().find_map(|line| {
            let data = line.strip_prefix("data: ")?;
            (!data.is_empty()).then_some(data)
        });
        serde_json::from_str(last.unwrap_or(&self.body)).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

/// A request, in bytes of one's own.
pub(crate) struct Raw {
    method: &'static str,
    headers: Vec<(String, String)>,
    body: String,
}

impl Raw {
    pub(crate) fn new(method: &'static str) -> Self {
        let accept = "application/json, text/event-stream";
        Self {
            method,
            headers: vec![("Accept".to_owned(), accept.to_owned())],
            body: String::new(),
        }
    }

    pub(crate) fn post(message: &Value) -> Self {
        let mut raw = Self::new("POST").with("Content-Type", "application/json");
        raw.body = message.to_string();
        raw
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self) -> Self {
        self.with("Authorization", &format!("Bearer {TOKEN}"))
    }

    /// Sends it; the connection is closed behind the answer.
    pub(crate) async fn send(self, to: SocketAddr) -> Came {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(self.text(to).as_bytes()).await.unwrap();
        came(stream).await
    }

    pub(crate) fn text(&self, to: SocketAddr) -> String {
        let mut text = format!("{} /mcp HTTP/1.1\r\nConnection: close\r\n", self.method);
        let has = |name: &str| self.headers.iter().any(|(other, _)| other == name);
        if !has("Host") {
            text += &format!("Host: {to}\r\n");
        }
        if !has("Content-Length") {
            text += &format!("Content-Length: {}\r\n", self.body.len());
        }
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text + "\r\n" + &self.body
    }
}

pub(crate) async fn came(mut stream: TcpStream) -> Came {
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    let _ = tokio::time::timeout(Duration::from_secs(20), reading)
        .await
        .expect("an answer in time");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Came {
        status: status.unwrap_or_default(),
        head: head.to_owned(),
        body: unchunked(head, body),
    }
}

fn unchunked(head: &str, body: &str) -> String {
    if !head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        return body.to_owned();
    }
    let mut whole = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or_default();
        if size == 0 || after.len() < size {
            break;
        }
        whole += &after[..size];
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

/// Listens to what belongs to no request: so many messages, with their ids.
pub(crate) async fn listen(
    to: SocketAddr,
    session: &str,
    last: Option<&str>,
    count: usize,
) -> Vec<(String, Value)> {
    let mut raw = Raw::new("GET").token().with("Mcp-Session-Id", session);
    if let Some(last) = last {
        raw = raw.with("Last-Event-ID", last);
    }
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(raw.text(to).as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let reading = async {
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
            let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
            let data = data.filter_map(|data| serde_json::from_str(data).ok());
            let heard: Vec<_> = ids.map(str::to_owned).zip(data).collect();
            if heard.len() >= count {
                return heard;
            }
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{text}");
        }
    };
    let within = Duration::from_secs(20);
    tokio::time::timeout(within, reading)
        .await
        .expect("in time")
}

pub(crate) fn greeting() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    }})
}

/// Greets; gives the session's id.
pub(crate) async fn greet(to: SocketAddr) -> String {
    let came = Raw::post(&greeting()).token().send(to).await;
    assert_eq!(came.status, 200, "{came:?}");
    came.header("mcp-session-id").expect("a session")
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
}
