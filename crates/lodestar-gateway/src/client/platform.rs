//! The platform's routes, over the socket in the service's folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use lodestar_core::id::{AccountId, DeviceId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::{ANSWER, GatewayError, read};
use crate::http::SOCKET;
use crate::wire;

/// How long a request may take: it is the same machine.
const WITHIN: Duration = Duration::from_secs(30);

/// A client for whoever runs the service. It has no credential: the socket is its user's alone.
#[derive(Debug, Clone)]
pub struct PlatformClient {
    socket: PathBuf,
}

impl PlatformClient {
    /// A client of the service in this folder.
    pub fn of_folder(folder: &Path) -> Self {
        Self::at(folder.join(SOCKET))
    }

    /// A client of the service at this socket.
    pub fn at(socket: PathBuf) -> Self {
        Self { socket }
    }

    async fn ask<A: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<A, GatewayError> {
        match tokio::time::timeout(WITHIN, self.exchange(method, path, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(unreached("it did not answer in time")),
        }
    }

    async fn exchange<A: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<A, GatewayError> {
        let place = self.socket.display();
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|problem| unreached(format!("`{place}`: {problem}")))?;
        let written = body.map(serde_json::to_vec).transpose();
        let written = written.map_err(unreached)?;
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(CONNECTION, "close");
        if written.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(Bytes::from(written.unwrap_or_default())))
            .map_err(unreached)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(unreached)?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(unreached)?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER).collect().await;
            let body = body.map_err(unreached)?.to_bytes();
            read(status, None, &body)
        };
        tokio::pin!(answer, connection);
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            // What it has read is still on its way to the answer.
            _ = &mut connection => {}
        }
        answer.await
    }

    /// Whether the service can decide.
    pub async fn health(&self) -> Result<wire::Health, GatewayError> {
        self.ask("GET", "/v1/health", None::<&()>).await
    }

    /// Opens an account.
    pub async fn open_account(
        &self,
        asked: &wire::OpenAccount,
    ) -> Result<wire::AccountOpened, GatewayError> {
        self.ask("POST", "/v1/platform/accounts", Some(asked)).await
    }

    /// Makes another owner's token.
    pub async fn reissue(&self, account: AccountId) -> Result<wire::TokenMade, GatewayError> {
        let path = format!("/v1/platform/accounts/{account}/tokens");
        self.ask("POST", &path, None::<&()>).await
    }

    /// Blocks a device, for good.
    pub async fn block(
        &self,
        device: DeviceId,
        reason: &str,
    ) -> Result<wire::Levelled, GatewayError> {
        let path = format!("/v1/platform/devices/{device}/block");
        let body = wire::Because {
            reason: reason.to_owned(),
        };
        self.ask("POST", &path, Some(&body)).await
    }

    /// Stops one device's signing, or lets it go on.
    pub async fn pause(
        &self,
        device: DeviceId,
        on: bool,
        reason: &str,
    ) -> Result<wire::Directives, GatewayError> {
        let path = format!("/v1/platform/devices/{device}/pause");
        let body = wire::SetPause {
            on,
            reason: reason.to_owned(),
        };
        self.ask("POST", &path, Some(&body)).await
    }

    /// Stops all signing, or lets it go on.
    pub async fn set_kill_switch(
        &self,
        on: bool,
        reason: &str,
    ) -> Result<wire::KillSwitch, GatewayError> {
        let body = wire::SetKillSwitch {
            on,
            reason: reason.to_owned(),
        };
        self.ask("POST", "/v1/platform/kill-switch", Some(&body))
            .await
    }

    /// How the kill switch stands.
    pub async fn kill_switch(&self) -> Result<wire::KillSwitch, GatewayError> {
        self.ask("GET", "/v1/platform/kill-switch", None::<&()>)
            .await
    }

    /// Holds a contest.
    pub async fn hold_battle(
        &self,
        asked: &wire::HoldBattle,
    ) -> Result<wire::BattleHeld, GatewayError> {
        self.ask("POST", "/v1/platform/battles", Some(asked)).await
    }
}

fn unreached(problem: impl ToString) -> GatewayError {
    GatewayError::Unreached(problem.to_string())
}
