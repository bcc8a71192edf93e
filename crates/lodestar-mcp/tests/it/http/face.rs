//! Agents over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, CreateMessageRequestParams,
    CreateMessageResult, ErrorData, Implementation, ProgressNotificationParam, SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient, RunningService, ServiceExt};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use super::world::{Far, Raw, TOKEN, World, call, far, greet, listen};

/// An agent of other people's making.
#[derive(Clone, Default)]
pub(crate) struct Agent {
    pub(crate) steps: Arc<AtomicUsize>,
    pub(crate) sampled: Arc<AtomicUsize>,
    /// What it is busy with, and the most that it ever was.
    busy: Arc<AtomicUsize>,
    pub(crate) busiest: Arc<AtomicUsize>,
}

impl ClientHandler for Agent {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_sampling().build();
        ClientConfig::new(capabilities, Implementation::new("agent", "1"))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.sampled.fetch_add(1, Ordering::SeqCst);
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.busiest.fetch_max(busy, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.busy.fetch_sub(1, Ordering::SeqCst);
        let four = SamplingMessage::assistant_text("four");
        Ok(CreateMessageResult::new(four, "model".to_owned()))
    }

    async fn on_progress(&self, _: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.steps.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn config(world: &World) -> StreamableHttpClientTransportConfig {
    StreamableHttpClientTransportConfig::with_uri(world.url()).auth_header(TOKEN)
}

pub(crate) async fn connect(world: &World, agent: Agent) -> RunningService<RoleClient, Agent> {
    let transport = StreamableHttpClientTransport::from_config(config(world));
    agent.serve(transport).await.unwrap()
}

pub(crate) async fn ask(
    client: &RunningService<RoleClient, Agent>,
    tool: &'static str,
    arguments: Value,
) -> Value {
    let mut params = CallToolRequestParams::new(tool);
    params.arguments = arguments.as_object().cloned();
    let called = client.call_tool(params);
    let result = tokio::time::timeout(Duration::from_secs(20), called).await;
    serde_json::to_value(result.expect("in time").unwrap()).unwrap()
}

#[tokio::test]
async fn a_typed_client_calls_a_server_elsewhere_through_the_gate() {
    let server = Far::default();
    let mut world = World::before(&far(server.clone()).await, &["mcp.far.echo"], "").await;
    let client = connect(&world, Agent::default()).await;
    let tools = client.list_all_tools().await.unwrap();
    assert!(
        tools.iter().any(|tool| tool.name == "far__echo"),
        "{tools:?}"
    );
    let result = ask(&client, "far__echo", json!({"a": 1})).await;
    assert_eq!(result["content"][0]["text"], "{\"a\":1}");
    assert!(
        result["_meta"]["_lodestar"]["action_id"].is_string(),
        "{result}"
    );
    // Nobody graded it.
    let refused = ask(&client, "far__steps", json!({})).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(refused["_meta"]["_lodestar"]["kind"], "approval_required");
    assert_eq!(server.calls.load(Ordering::SeqCst), 1);
    client.cancel().await.unwrap();
    let log = world.log().await;
    let says = |word: &str| log.iter().any(|line| line.to_string().contains(word));
    assert!(says("server.started") && says("mcp.far.echo") && says("session.closed"));
}

#[tokio::test]
async fn progress_comes_with_the_answer_it_belongs_to() {
    let world = World::before(&far(Far::default()).await, &["mcp.far.steps"], "").await;
    let session = greet(world.address).await;
    let mut message = call(7, "far__steps", json!({}));
    message["params"]["_meta"] = json!({"progressToken": "mine"});
    let raw = Raw::post(&message).token().with("Mcp-Session-Id", &session);
    let came = raw.send(world.address).await;
    assert_eq!(
        came.header("content-type").as_deref(),
        Some("text/event-stream")
    );
    let events: Vec<Value> = came
        .body
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    assert_eq!(events.len(), 4, "{came:?}");
    assert_eq!(events[0]["params"]["progressToken"], "mine");
    assert_eq!(events[3]["id"], 7);
    // Nobody asked for progress: the answer is all there is.
    let plain = Raw::post(&call(8, "far__steps", json!({})));
    let came = plain
        .token()
        .with("Mcp-Session-Id", &session)
        .send(world.address)
        .await;
    assert_eq!(came.json()["id"], 8);
    assert_eq!(came.body.matches("event: message").count(), 1, "{came:?}");
}

#[tokio::test]
async fn each_client_has_a_session_and_a_log_of_its_own() {
    let mut world = World::before(&far(Far::default()).await, &["mcp.far.echo"], "").await;
    let (one, two) = (
        connect(&world, Agent::default()).await,
        connect(&world, Agent::default()).await,
    );
    let own = |result: &Value| result["_meta"]["_lodestar"]["session_id"].clone();
    let first = own(&ask(&one, "far__echo", json!({})).await);
    let second = own(&ask(&two, "far__echo", json!({})).await);
    assert_ne!(first, second);
    assert_eq!(own(&ask(&one, "far__echo", json!({})).await), first);
    drop((one, two));
    world.log().await;
}

#[tokio::test]
async fn what_a_server_asks_of_the_agent_is_off_unless_somebody_grades_it() {
    let agent = Agent::default();
    let world = World::before(&far(Far::default()).await, &["mcp.far.sample"], "").await;
    let client = connect(&world, agent.clone()).await;
    let result = ask(&client, "far__sample", json!({})).await;
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("no: "), "{text}");
    assert_eq!(agent.sampled.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_a_server_asks_of_the_agent_is_an_action_of_the_server() {
    let agent = Agent::default();
    let grades = ["mcp.far.sample", "mcp.far.sampling.create"];
    let mut world = World::before(&far(Far::default()).await, &grades, "").await;
    let client = connect(&world, agent.clone()).await;
    let result = ask(&client, "far__sample", json!({})).await;
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("four"), "{text}");
    assert_eq!(agent.sampled.load(Ordering::SeqCst), 1);
    client.cancel().await.unwrap();
    let log = world.log().await;
    let of_the_server = log
        .iter()
        .filter(|line| line.to_string().contains("mcp.far.sampling.create"));
    assert!(of_the_server.count() > 1);
    assert!(log.iter().any(|line| line.to_string().contains("\"four\"")));
}

#[tokio::test]
async fn what_belongs_to_no_request_is_heard_again_by_whoever_comes_back() {
    let world = World::before(&far(Far::default()).await, &["mcp.far.log"], "").await;
    let session = greet(world.address).await;
    for id in 2..5 {
        let raw = Raw::post(&call(id, "far__log", json!({})));
        let raw = raw.token().with("Mcp-Session-Id", &session);
        assert_eq!(raw.send(world.address).await.status, 200);
    }
    let all = listen(world.address, &session, Some("0-0"), 3).await;
    let said: Vec<_> = all
        .iter()
        .map(|(_, one)| one["params"]["data"].clone())
        .collect();
    assert_eq!(said, [json!(1), json!(2), json!(3)]);
    let again = listen(world.address, &session, Some(&all[1].0), 1).await;
    assert_eq!(again[0], all[2]);
}
