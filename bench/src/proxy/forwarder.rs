//! The bare pass-through of the comparison: rmcp as it comes, no gate, no log.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext, RoleClient, RoleServer};
use rmcp::transport::{TokioChildProcess, stdio};
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};

struct Forwarder(Peer<RoleClient>);

fn failed(problem: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(problem.to_string(), None)
}

impl ServerHandler for Forwarder {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list_tools(request).await.map_err(failed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.call_tool_once(request).await.map_err(failed)
    }
}

/// Serves an agent on the standard streams, with one server behind it.
pub(crate) fn serve(command: &str, args: &[String]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|problem| problem.to_string())?;
    runtime.block_on(async {
        let mut child = tokio::process::Command::new(command);
        child.args(args);
        let child = TokioChildProcess::new(child).map_err(|problem| problem.to_string())?;
        let behind = ().serve(child).await.map_err(|problem| problem.to_string())?;
        let forwarder = Forwarder(behind.peer().clone());
        let serving = forwarder
            .serve(stdio())
            .await
            .map_err(|problem| problem.to_string())?;
        serving
            .waiting()
            .await
            .map_err(|problem| problem.to_string())?;
        Ok(())
    })
}
