//! Revision 2026-07-28, without a handshake, on either face.

use std::sync::atomic::Ordering;

use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Value, json};

use super::face::{Agent, ask, config, connect};
use super::world::{Far, Raw, World, far};

const REVISION: &str = "2026-07-28";

async fn discover(world: &World, agent: Agent) -> RunningService<RoleClient, Agent> {
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let transport = StreamableHttpClientTransport::from_config(config(world));
    let served = agent.serve_with_lifecycle(transport, lifecycle);
    served.await.unwrap()
}

fn inline() -> Far {
    Far {
        is_inline: true,
        ..Far::default()
    }
}

fn request(id: u64, method: &str, client: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn headed(message: &Value) -> Raw {
    let mut raw = Raw::post(message)
        .token()
        .with("MCP-Protocol-Version", REVISION)
        .with("Mcp-Method", message["method"].as_str().unwrap());
    if let Some(name) = message["params"]["name"].as_str() {
        raw = raw.with("Mcp-Name", name);
    }
    raw
}

#[tokio::test]
async fn a_client_without_a_handshake_calls_a_server_with_one() {
    let world = World::before(&far(Far::default()).await, &["mcp.far.echo"], "").await;
    let client = discover(&world, Agent::default()).await;
    let tools = client.list_all_tools().await.unwrap();
    assert!(
        tools.iter().any(|tool| tool.name == "far__echo"),
        "{tools:?}"
    );
    let result = ask(&client, "far__echo", json!({"a": 1})).await;
    assert_eq!(result["content"][0]["text"], "{\"a\":1}");
}

#[tokio::test]
async fn a_client_with_a_handshake_calls_a_server_without_one() {
    let world = World::before(&far(inline()).await, &["mcp.far.echo"], "").await;
    let client = connect(&world, Agent::default()).await;
    let result = ask(&client, "far__echo", json!({"a": 1})).await;
    assert_eq!(result["content"][0]["text"], "{\"a\":1}");
}

#[tokio::test]
async fn what_a_server_wants_to_know_first_is_an_action_of_the_server() {
    for is_new in [false, true] {
        let agent = Agent::default();
        let grades = ["mcp.far.need", "mcp.far.sampling.create"];
        let world = World::before(&far(inline()).await, &grades, "").await;
        let client = match is_new {
            false => connect(&world, agent.clone()).await,
            true => discover(&world, agent.clone()).await,
        };
        let result = ask(&client, "far__need", json!({})).await;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("four"), "{is_new}: {result}");
        assert_eq!(agent.sampled.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn an_agent_is_not_asked_everything_at_once() {
    for is_new in [false, true] {
        let agent = Agent::default();
        let grades = ["mcp.far.need", "mcp.far.sampling.create"];
        let server = Far {
            wants: 20,
            ..inline()
        };
        let world = World::before(&far(server).await, &grades, "").await;
        let client = match is_new {
            false => connect(&world, agent.clone()).await,
            true => discover(&world, agent.clone()).await,
        };
        let result = ask(&client, "far__need", json!({})).await;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(text.matches("four").count(), 20, "{is_new}: {result}");
        assert_eq!(agent.sampled.load(Ordering::SeqCst), 20);
        let busiest = agent.busiest.load(Ordering::SeqCst);
        assert!(busiest <= 8, "{is_new}: {busiest}");
    }
}

#[tokio::test]
async fn what_is_asked_beside_something_that_is_not_offered_is_stopped_and_on_record() {
    let server = Far {
        wants: 4,
        wants_roots: true,
        ..inline()
    };
    let grades = ["mcp.far.need", "mcp.far.sampling.create"];
    let mut world = World::before(&far(server).await, &grades, "").await;
    let client = connect(&world, Agent::default()).await;
    let result = ask(&client, "far__need", json!({})).await;
    assert_eq!(result["_meta"]["_lodestar"]["kind"], "execution_failed");
    assert!(result.to_string().contains("roots/list"), "{result}");
    client.cancel().await.unwrap();
    let log = world.log().await;
    // The call itself ends last.
    let of = |kind: &str| -> Vec<Value> {
        let lines = log.iter().filter(|line| line["head"]["type"] == kind);
        let actions = lines.map(|line| line["payload"]["action"].clone());
        actions.collect()
    };
    let (began, ended) = (of("action.cleared@1"), of("action.failed@1"));
    assert_eq!((began.len(), ended.len()), (5, 5), "{log:?}");
    assert_eq!(began.first(), ended.last());
}

#[tokio::test]
async fn what_a_server_wants_to_know_stays_with_whoever_grades_it() {
    let agent = Agent::default();
    let world = World::before(&far(inline()).await, &["mcp.far.need"], "").await;
    let client = connect(&world, agent.clone()).await;
    let result = ask(&client, "far__need", json!({})).await;
    assert_eq!(result["_meta"]["_lodestar"]["kind"], "execution_failed");
    assert_eq!(agent.sampled.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_question_to_a_client_without_a_handshake_is_the_answer_to_its_call() {
    let agent = Agent::default();
    let grades = ["mcp.far.sample", "mcp.far.sampling.create"];
    let world = World::before(&far(Far::default()).await, &grades, "").await;
    let client = discover(&world, agent.clone()).await;
    let result = ask(&client, "far__sample", json!({})).await;
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("four"), "{result}");
    assert_eq!(agent.sampled.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn clients_without_a_session_are_told_apart_by_what_they_say_they_are() {
    let world = World::before(&far(Far::default()).await, &["mcp.far.echo"], "").await;
    let mut sessions = Vec::new();
    // Ids of two clients may be the same.
    for client in ["one", "one", "two"] {
        let params = json!({"name": "far__echo", "arguments": {}});
        let message = request(7, "tools/call", client, params);
        let came = headed(&message).send(world.address).await;
        assert_eq!(came.status, 200, "{came:?}");
        let result = came.json()["result"].clone();
        assert_eq!(result["resultType"], "complete");
        sessions.push(result["_meta"]["_lodestar"]["session_id"].clone());
    }
    assert_eq!(sessions[0], sessions[1]);
    assert_ne!(sessions[0], sessions[2]);
}

#[tokio::test]
async fn headers_that_say_something_else_than_the_message_are_refused() {
    let world = World::before(&far(Far::default()).await, &["mcp.far.echo"], "").await;
    let params = json!({"name": "far__echo", "arguments": {}});
    let message = request(7, "tools/call", "one", params);
    let bare = || Raw::post(&message).token();
    let tries = [
        bare(),
        bare().with("MCP-Protocol-Version", REVISION),
        bare()
            .with("MCP-Protocol-Version", REVISION)
            .with("Mcp-Method", "tools/list"),
        bare()
            .with("MCP-Protocol-Version", REVISION)
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", "far__steps"),
        bare()
            .with("MCP-Protocol-Version", "2025-11-25")
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", "far__echo"),
    ];
    for raw in tries {
        let came = raw.send(world.address).await;
        assert_eq!(came.status, 400, "{came:?}");
        assert_eq!(came.json()["error"]["code"], -32020, "{came:?}");
    }
    assert_eq!(headed(&message).send(world.address).await.status, 200);
    let ping = request(8, "ping", "one", json!({}));
    assert_eq!(headed(&ping).send(world.address).await.status, 404);
}
