//! The other side of the routes: for devices, owners and runs, over whatever lies between; and for whoever runs
//! the service, over its own socket.
//!
//! A client asks once and says what came of it; whether to try again is for whoever asks. What the service
//! refuses comes back with its code.

mod platform;

pub use platform::PlatformClient;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lodestar_core::id::{
    BattleId, ContenderId, DeviceId, RunId, RunnerId, SubmissionId, TermsId, TokenId,
};
use lodestar_core::name::Excerpt;
use lodestar_core::statement::Envelope;
use lodestar_kernel::native::http::Method;
use lodestar_kernel::native::http::client::{Asked, Client, ClientError, NoAnswer, ServiceUrl};
use lodestar_kernel::native::net::NetworkConfig;
use lodestar_kernel::native::net::credential::Secret;
use lodestar_kernel::native::net::resolve::SystemResolver;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::code::Code;
use crate::token::TokenText;
use crate::wire;

/// The longest answer that is read: terms of the longest kind, and some.
const ANSWER: usize = 16 << 20;

/// How long a request may take where nobody says.
const WITHIN: Duration = Duration::from_secs(30);

/// How long a bundle may take to arrive, and to be judged.
const LONG: Duration = Duration::from_secs(180);

/// Why there is no answer, or not the one that was wanted.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The client cannot be set up.
    #[error("the gateway cannot be asked: {0}")]
    Client(#[from] ClientError),
    /// Nobody answered.
    #[error("the gateway was not reached: {0}")]
    Unreached(String),
    /// The service refused.
    #[error("{message} ({code})")]
    Refused {
        /// Why.
        code: Code,
        /// Why, in the service's words.
        message: String,
        /// The field that is to blame, where it is one.
        field: Option<String>,
        /// Seconds after which it is worth another try, where the service said so.
        retry_after: Option<u64>,
    },
    /// Something answered that is no gateway of this version.
    #[error("what answered is no gateway that this version knows: status {status}, {problem}")]
    Unreadable {
        /// The status.
        status: u16,
        /// What is wrong with it, inert.
        problem: Excerpt,
    },
}

impl From<NoAnswer> for GatewayError {
    fn from(problem: NoAnswer) -> Self {
        Self::Unreached(problem.to_string())
    }
}

impl GatewayError {
    /// The code, if the service refused.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the same request may come through later, without anybody's doing anything.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreached(_) => true,
            Self::Refused { code, .. } => matches!(
                code,
                Code::RateLimited
                    | Code::Overloaded
                    | Code::TookTooLong
                    | Code::ShuttingDown
                    | Code::Unavailable
                    | Code::BodyTooSlow
                    | Code::BodyBroken
            ),
            Self::Client(_) | Self::Unreadable { .. } => false,
        }
    }
}

/// What a client is made of.
#[derive(Debug)]
pub struct GatewayAccess {
    /// The service.
    pub url: ServiceUrl,
    /// What is shown to it.
    pub token: Option<TokenText>,
    /// Root certificates in PEM, trusted beside the public ones.
    pub ca_file: Option<PathBuf>,
}

/// A client of a gateway.
#[derive(Debug)]
pub struct GatewayClient {
    client: Client,
    within: Duration,
}

/// A request without a body.
const NOTHING: Option<&()> = None;

impl GatewayClient {
    /// A client.
    pub fn new(access: GatewayAccess) -> Result<Self, GatewayError> {
        let network = NetworkConfig {
            ca_file: access.ca_file,
            ..NetworkConfig::default()
        };
        let bearer = access.token.map(|token| {
            let text = zeroize::Zeroizing::new(format!("Bearer {}", token.expose()));
            ("authorization".to_owned(), Secret::part(&text))
        });
        let headers: Vec<_> = bearer.into_iter().collect();
        let resolver = Arc::new(SystemResolver);
        let client = Client::with_headers(access.url, &headers, &network, resolver)?;
        Ok(Self {
            client,
            within: WITHIN,
        })
    }

    /// The same, for whoever waits no longer than this.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Where it asks.
    pub fn url(&self) -> &ServiceUrl {
        self.client.url()
    }

    async fn ask<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&impl Serialize>,
    ) -> Result<A, GatewayError> {
        let content = match body {
            None => None,
            Some(body) => {
                let written = serde_json::to_vec(body);
                let written = written.map_err(|e| GatewayError::Unreached(e.to_string()))?;
                Some(("application/json", written))
            }
        };
        self.send(method, path, query, content, self.within).await
    }

    async fn send<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        content: Option<(&'static str, Vec<u8>)>,
        within: Duration,
    ) -> Result<A, GatewayError> {
        let asked = Asked {
            method,
            path,
            query,
            accept: Some("application/json"),
            content,
            most: ANSWER,
            within,
        };
        let said = self.client.ask(asked).await?;
        let retry_after = said.header("retry-after").and_then(|it| it.parse().ok());
        let (said, body) = said.into_parts();
        read(said.status(), retry_after, &body)
    }

    async fn list<A: DeserializeOwned>(
        &self,
        what: &str,
        after: Option<String>,
    ) -> Result<wire::Page<A>, GatewayError> {
        let query: Vec<(&str, &str)> = after.iter().map(|it| ("after", it.as_str())).collect();
        self.ask(Method::Get, &["v1", what], &query, NOTHING).await
    }

    /// Whether the service can decide, and what time it has.
    pub async fn health(&self) -> Result<wire::Health, GatewayError> {
        self.ask(Method::Get, &["v1", "health"], &[], NOTHING).await
    }

    /// The account that the token is of.
    pub async fn account(&self) -> Result<wire::Account, GatewayError> {
        self.ask(Method::Get, &["v1", "account"], &[], NOTHING)
            .await
    }

    /// Makes a device known.
    pub async fn register_device(
        &self,
        asked: &wire::RegisterDevice,
    ) -> Result<wire::DeviceRegistered, GatewayError> {
        self.ask(Method::Post, &["v1", "devices"], &[], Some(asked))
            .await
    }

    /// The account's devices, page by page.
    pub async fn devices(
        &self,
        after: Option<DeviceId>,
    ) -> Result<wire::Page<wire::Device>, GatewayError> {
        self.list("devices", after.map(|it| it.to_string())).await
    }

    /// One device.
    pub async fn device(&self, id: DeviceId) -> Result<wire::Device, GatewayError> {
        let path = ["v1", "devices", &id.to_string()];
        self.ask(Method::Get, &path, &[], NOTHING).await
    }

    /// Gives a device its first keys.
    pub async fn set_keys(
        &self,
        id: DeviceId,
        asked: &wire::SetKeys,
    ) -> Result<wire::Challenged, GatewayError> {
        let path = ["v1", "devices", &id.to_string(), "key"];
        self.ask(Method::Put, &path, &[], Some(asked)).await
    }

    /// Asks for a new challenge.
    pub async fn challenge(&self, id: DeviceId) -> Result<wire::Challenged, GatewayError> {
        let path = ["v1", "devices", &id.to_string(), "challenge"];
        self.ask(Method::Post, &path, &[], NOTHING).await
    }

    /// Hands in a `challenge-response`.
    pub async fn answer_challenge(
        &self,
        id: DeviceId,
        envelope: &Envelope,
    ) -> Result<wire::Standing, GatewayError> {
        let path = ["v1", "devices", &id.to_string(), "challenge", "response"];
        self.state(&path, envelope).await
    }

    /// Hands in a `heartbeat`.
    pub async fn heartbeat(
        &self,
        id: DeviceId,
        envelope: &Envelope,
    ) -> Result<wire::Beaten, GatewayError> {
        let path = ["v1", "devices", &id.to_string(), "heartbeats"];
        self.state(&path, envelope).await
    }

    /// What a device has to obey.
    pub async fn directives(&self, id: DeviceId) -> Result<wire::Directives, GatewayError> {
        let path = ["v1", "devices", &id.to_string(), "directives"];
        self.ask(Method::Get, &path, &[], NOTHING).await
    }

    /// Hands in a `key-rotation`.
    pub async fn rotate(
        &self,
        id: DeviceId,
        envelope: &Envelope,
    ) -> Result<wire::Standing, GatewayError> {
        let path = ["v1", "devices", &id.to_string(), "rotation"];
        self.state(&path, envelope).await
    }

    async fn state<A: DeserializeOwned>(
        &self,
        path: &[&str],
        envelope: &Envelope,
    ) -> Result<A, GatewayError> {
        let body = wire::Stated {
            envelope: envelope.clone(),
        };
        self.ask(Method::Post, path, &[], Some(&body)).await
    }

    /// Hands in an `owner-order`, with the terms that it registers if it does.
    pub async fn order(&self, asked: &wire::HandInOrder) -> Result<wire::Ordered, GatewayError> {
        self.ask(Method::Post, &["v1", "orders"], &[], Some(asked))
            .await
    }

    /// The terms that the account registered, page by page.
    pub async fn all_terms(
        &self,
        after: Option<TermsId>,
    ) -> Result<wire::Page<wire::TermsEntry>, GatewayError> {
        self.list("terms", after.map(|it| it.to_string())).await
    }

    /// Terms, whole.
    pub async fn terms(&self, id: TermsId) -> Result<wire::TermsWhole, GatewayError> {
        let path = ["v1", "terms", &id.to_string()];
        self.ask(Method::Get, &path, &[], NOTHING).await
    }

    /// Makes an agent known.
    pub async fn register_agent(&self, asked: &wire::Named) -> Result<wire::Agent, GatewayError> {
        self.ask(Method::Post, &["v1", "agents"], &[], Some(asked))
            .await
    }

    /// The account's agents, page by page.
    pub async fn agents(
        &self,
        after: Option<ContenderId>,
    ) -> Result<wire::Page<wire::Agent>, GatewayError> {
        self.list("agents", after.map(|it| it.to_string())).await
    }

    /// Makes a runner known.
    pub async fn register_runner(&self, asked: &wire::Named) -> Result<wire::Runner, GatewayError> {
        self.ask(Method::Post, &["v1", "runners"], &[], Some(asked))
            .await
    }

    /// The account's runners, page by page.
    pub async fn runners(
        &self,
        after: Option<RunnerId>,
    ) -> Result<wire::Page<wire::Runner>, GatewayError> {
        self.list("runners", after.map(|it| it.to_string())).await
    }

    /// Makes a token.
    pub async fn make_token(
        &self,
        asked: &wire::MakeToken,
    ) -> Result<wire::TokenMade, GatewayError> {
        self.ask(Method::Post, &["v1", "tokens"], &[], Some(asked))
            .await
    }

    /// The account's tokens, page by page.
    pub async fn tokens(
        &self,
        after: Option<TokenId>,
    ) -> Result<wire::Page<wire::Token>, GatewayError> {
        self.list("tokens", after.map(|it| it.to_string())).await
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, id: TokenId) -> Result<wire::TokenRevoked, GatewayError> {
        let path = ["v1", "tokens", &id.to_string()];
        self.ask(Method::Delete, &path, &[], NOTHING).await
    }

    /// Registers a run.
    pub async fn register_run(
        &self,
        asked: &wire::RegisterRun,
    ) -> Result<wire::RunRegistered, GatewayError> {
        self.ask(Method::Post, &["v1", "runs"], &[], Some(asked))
            .await
    }

    /// The account's runs, page by page.
    pub async fn runs(&self, after: Option<RunId>) -> Result<wire::Page<wire::Run>, GatewayError> {
        self.list("runs", after.map(|it| it.to_string())).await
    }

    /// One run.
    pub async fn run(&self, id: RunId) -> Result<wire::Run, GatewayError> {
        let path = ["v1", "runs", &id.to_string()];
        self.ask(Method::Get, &path, &[], NOTHING).await
    }

    /// Sends the head of a run's log.
    pub async fn checkpoint(
        &self,
        id: RunId,
        note: &str,
    ) -> Result<wire::CheckpointReceived, GatewayError> {
        let path = ["v1", "runs", &id.to_string(), "checkpoints"];
        let body = wire::SendCheckpoint {
            note: note.to_owned(),
        };
        self.ask(Method::Post, &path, &[], Some(&body)).await
    }

    /// Sends a run's bundle, with the `run-bundle` statement that tells of it.
    pub async fn bundle(
        &self,
        id: RunId,
        statement: &Envelope,
        bundle: &[u8],
    ) -> Result<wire::BundleReceived, GatewayError> {
        let mut body = bundle_body(statement, bundle.len());
        body.extend_from_slice(bundle);
        self.bundle_with_statement(id, body).await
    }

    /// The same, for whoever wrote the bundle behind what [`bundle_body`] gave: it may be large, and is held once.
    pub async fn bundle_with_statement(
        &self,
        id: RunId,
        body: Vec<u8>,
    ) -> Result<wire::BundleReceived, GatewayError> {
        let path = ["v1", "runs", &id.to_string(), "bundle"];
        let content = Some(("application/octet-stream", body));
        self.send(Method::Put, &path, &[], content, self.within.max(LONG))
            .await
    }

    /// Hands in an attestation. It is answered when the bundle is judged.
    pub async fn attest(
        &self,
        id: RunId,
        asked: &wire::Attest,
    ) -> Result<wire::Attested, GatewayError> {
        let path = ["v1", "runs", &id.to_string(), "attestations"];
        let written = serde_json::to_vec(asked);
        let written = written.map_err(|e| GatewayError::Unreached(e.to_string()))?;
        let content = Some(("application/json", written));
        self.send(Method::Post, &path, &[], content, self.within.max(LONG))
            .await
    }

    /// Hands in a piece of work.
    pub async fn hand_in(&self, asked: &wire::HandIn) -> Result<wire::Submission, GatewayError> {
        self.ask(Method::Post, &["v1", "submissions"], &[], Some(asked))
            .await
    }

    /// Puts one more run behind a submission.
    pub async fn link_run(
        &self,
        id: SubmissionId,
        run: RunId,
    ) -> Result<wire::Submission, GatewayError> {
        let path = ["v1", "submissions", &id.to_string(), "runs"];
        let body = wire::LinkRun { run };
        self.ask(Method::Post, &path, &[], Some(&body)).await
    }

    /// The account's submissions, page by page.
    pub async fn submissions(
        &self,
        after: Option<SubmissionId>,
    ) -> Result<wire::Page<wire::Submission>, GatewayError> {
        self.list("submissions", after.map(|it| it.to_string()))
            .await
    }

    /// One submission.
    pub async fn submission(&self, id: SubmissionId) -> Result<wire::Submission, GatewayError> {
        let path = ["v1", "submissions", &id.to_string()];
        self.ask(Method::Get, &path, &[], NOTHING).await
    }

    /// Where everybody stands in a battle.
    pub async fn standings(&self, id: BattleId) -> Result<wire::Standings, GatewayError> {
        let path = ["v1", "battles", &id.to_string(), "standings"];
        self.ask(Method::Get, &path, &[], NOTHING).await
    }
}

/// The beginning of a bundle's request, with room for a bundle of so many bytes behind it.
pub fn bundle_body(statement: &Envelope, bytes: usize) -> Vec<u8> {
    let line = statement.to_json();
    let mut body = Vec::with_capacity(line.len() + 1 + bytes);
    body.extend_from_slice(&line);
    body.push(b'\n');
    body
}

/// What an answer says, or why it is none.
fn read<A: DeserializeOwned>(
    status: u16,
    retry_after: Option<u64>,
    body: &[u8],
) -> Result<A, GatewayError> {
    let unreadable = |problem: String| GatewayError::Unreadable {
        status,
        problem: Excerpt::of(&problem),
    };
    if (200..300).contains(&status) {
        return serde_json::from_slice(body).map_err(|problem| unreadable(problem.to_string()));
    }
    let failure: wire::Failure =
        serde_json::from_slice(body).map_err(|problem| unreadable(problem.to_string()))?;
    Err(GatewayError::Refused {
        code: failure.error.code,
        message: failure.error.message,
        field: failure.error.field,
        retry_after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_comes_back_with_its_code() {
        let body = br#"{"error":{"code":"nonce_reused","message":"seen before"}}"#;
        let problem = read::<wire::Health>(409, None, body).unwrap_err();
        assert_eq!(problem.code(), Some(Code::NonceReused));
        assert!(!problem.may_pass());
        let body = br#"{"error":{"code":"overloaded","message":"later"}}"#;
        let problem = read::<wire::Health>(503, Some(5), body).unwrap_err();
        assert!(problem.may_pass());
    }

    #[test]
    fn something_else_that_answers_is_named_and_inert() {
        let body = b"<html>\x1b[31mnot found</html>";
        let problem = read::<wire::Health>(404, None, body).unwrap_err();
        assert!(matches!(
            problem,
            GatewayError::Unreadable { status: 404, .. }
        ));
        let shown = problem.to_string();
        assert!(
            shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{shown}"
        );
        assert!(read::<wire::Health>(200, None, b"{}").is_err());
    }
}
