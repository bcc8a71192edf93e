//! `http.request`: whatever was approved, to a host that the operator named.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use lodestar_core::contract::{
    ArgumentRole, BlastRadius, Contract, Permission, Preconditions, Reversibility, Sandbox,
};
use lodestar_core::ladder::Rung;
use lodestar_core::name::{Excerpt, ServerIdentity, ToolName};
use lodestar_core::scope::Scope;
use lodestar_core::sensitivity::DataSensitivity;
use serde_json::json;

use super::config::{self, Credential, CredentialFields, HttpError, Method, RequestConfig};
use super::exchange::{Cap, Outgoing, exchange};
use super::{headers, output};
use crate::native::net::arguments;
use crate::native::net::connector::Connector;
use crate::native::net::credential::Scrubber;
use crate::native::net::endpoint::{Endpoint, Location};
use crate::native::net::resolve::Resolver;
use crate::native::net::wire::Wire;
use crate::tool::{Call, Calling, Definition, NATIVE_SERVER, Output, Tool, ToolError};

/// The tool `http.request`.
#[derive(Debug)]
pub struct HttpRequest {
    definition: Definition,
    connector: Connector,
    hosts: Vec<(Endpoint, Option<Credential>)>,
    methods: Vec<Method>,
    max_request_bytes: usize,
    max_response_bytes: usize,
}

impl HttpRequest {
    /// The tool for this configuration; credentials are read now.
    pub fn new(
        config: RequestConfig,
        scope: Scope,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, HttpError> {
        if config.methods.is_empty() {
            return Err(HttpError::NoMethods);
        }
        let mut hosts: Vec<(Endpoint, Option<Credential>)> = Vec::new();
        for entry in &config.hosts {
            let endpoint = config::endpoint(&entry.host, entry.scheme)?;
            if hosts.iter().any(|(other, _)| *other == endpoint) {
                return Err(HttpError::Twice {
                    host: Excerpt::of(&entry.host),
                });
            }
            let fields = CredentialFields {
                env: entry.credential_env.as_deref(),
                file: entry.credential_file.as_deref(),
                header: entry.credential_header.as_deref(),
                prefix: &entry.credential_prefix,
            };
            let credential = config::credential(&endpoint, &fields)?;
            hosts.push((endpoint, credential));
        }
        Ok(Self {
            definition: definition(&config, scope)?,
            connector: Connector::new(&config.network, resolver)?,
            hosts,
            max_request_bytes: config::cap("max_request_bytes", config.max_request_bytes)?,
            max_response_bytes: config::cap("max_response_bytes", config.max_response_bytes)?,
            methods: config.methods,
        })
    }

    async fn run(&self, call: &Call<'_>) -> Result<Output, ToolError> {
        let arguments = call.arguments();
        arguments::only(arguments, &["method", "url", "headers", "body"])?;
        let method = self.method(call.text("method")?)?;
        let location = Location::parse(call.text("url")?)
            .map_err(|refused| ToolError::refused(refused.to_string()))?;
        let (endpoint, credential) = self.host(&location)?;
        let name = credential.map(|credential| &credential.name);
        let mut headers = headers::read(&arguments::pairs(arguments, "headers")?, name)?;
        let body = arguments::text(arguments, "body")?.unwrap_or_default();
        if !body.is_empty() && method.is_safe() {
            return Err(ToolError::invalid(format!(
                "`{}` has no body; leave out `body`",
                method.as_str()
            )));
        }
        if body.len() > self.max_request_bytes {
            return Err(ToolError::refused(format!(
                "`body` is {} bytes long; at most {} are sent",
                body.len(),
                self.max_request_bytes
            )));
        }
        if let Some(credential) = credential {
            headers.push((credential.name.clone(), credential.value.clone()));
        }
        let outgoing = Outgoing {
            method: method.as_str(),
            target: location.target(),
            headers,
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        let none = Scrubber::none();
        let scrubber = credential.map_or(&none, |credential| &credential.scrubber);
        let wire = Wire::default();
        let work = exchange(
            &self.connector,
            &wire,
            endpoint,
            outgoing,
            scrubber,
            Cap::Refused(self.max_response_bytes),
        );
        let incoming = wire.watch(call, self.connector.timeout(), work).await?;
        Ok(output(location.as_str(), &[], incoming))
    }

    fn method(&self, text: &str) -> Result<Method, ToolError> {
        self.methods
            .iter()
            .copied()
            .find(|method| method.as_str() == text)
            .ok_or_else(|| {
                let known: Vec<_> = self.methods.iter().map(|m| m.as_str()).collect();
                ToolError::refused(format!(
                    "the method `{}` is not taken; use one of `{}`",
                    Excerpt::of(text),
                    known.join("`, `")
                ))
            })
    }

    fn host(&self, location: &Location) -> Result<(&Endpoint, Option<&Credential>), ToolError> {
        self.hosts
            .iter()
            .find(|(endpoint, _)| endpoint == location.endpoint())
            .map(|(endpoint, credential)| (endpoint, credential.as_ref()))
            .ok_or_else(|| {
                ToolError::refused(format!(
                    "`{}` is not among the hosts of this tool; the operator can add it to `hosts`",
                    Excerpt::of(&location.endpoint().to_string())
                ))
            })
    }
}

impl Tool for HttpRequest {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move { self.run(&call).await })
    }
}

fn definition(config: &RequestConfig, scope: Scope) -> Result<Definition, HttpError> {
    let methods: Vec<_> = config.methods.iter().map(|m| m.as_str()).collect();
    let with_credential = config
        .hosts
        .iter()
        .any(|host| host.credential_env.is_some() || host.credential_file.is_some());
    let reversibility = if config.methods.iter().all(|method| method.is_safe()) {
        Reversibility::Reversible
    } else {
        Reversibility::Irreversible
    };
    let mut permissions = BTreeSet::from([Permission::Network]);
    if with_credential {
        permissions.insert(Permission::Credentials);
    }
    Ok(Definition {
        name: ToolName::new("http.request")?,
        server: ServerIdentity::new(NATIVE_SERVER)?,
        description: "Sends one HTTP request to a host that the operator named, and returns status, headers and body. Redirects are returned, not followed.".into(),
        input_schema: json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["method", "url"],
            "properties": {
                "method": { "type": "string", "enum": methods },
                "url": { "type": "string", "description": "Absolute, with an ASCII host, without user or fragment." },
                "headers": { "type": "object", "additionalProperties": { "type": "string" } },
                "body": { "type": "string" },
            },
        }),
        roles: BTreeMap::from([
            ("method".to_owned(), ArgumentRole::Other),
            ("url".to_owned(), ArgumentRole::Destination),
            ("headers".to_owned(), ArgumentRole::Payload),
            ("body".to_owned(), ArgumentRole::Payload),
        ]),
        declared: None,
        minimum: Contract {
            required_level: Rung::L4,
            blast_radius: BlastRadius::External,
            reversibility,
            scope,
            data_sensitivity: DataSensitivity::Private,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::ControlledNetwork,
            permissions,
        },
    })
}
