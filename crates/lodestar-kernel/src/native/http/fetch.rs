//! `http.fetch`: reading from a few places whose paths and queries are pinned.
//!
//! A URL is also a message to whoever serves it. What keeps this tool on a low rung is that the
//! operator says what such a message can be: the host, the path up to a folder, each parameter and
//! the pattern of its value. Outside of that it does not exist.

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

use super::config::{self, Credential, CredentialFields, FetchConfig, HttpError};
use super::exchange::{Cap, Incoming, Outgoing, exchange};
use super::output;
use crate::native::net::arguments;
use crate::native::net::connector::Connector;
use crate::native::net::credential::Scrubber;
use crate::native::net::endpoint::{Endpoint, Location, Scheme};
use crate::native::net::resolve::Resolver;
use crate::native::net::wire::Wire;
use crate::tool::{Call, Calling, Definition, NATIVE_SERVER, Output, Tool, ToolError};

/// Most redirects of one call.
pub const MAX_HOPS: usize = 5;

/// Parts of a path that a server may read differently from us: encoded dots, slashes, backslashes,
/// percents and zeros.
const AMBIGUOUS: &[&str] = &["%2e", "%2f", "%5c", "%25", "%00", "//", ";"];

/// Stands for any run of characters in a pattern.
const WILDCARD: char = '*';

/// The tool `http.fetch`.
#[derive(Debug)]
pub struct HttpFetch {
    definition: Definition,
    connector: Connector,
    places: Vec<Place>,
    max_response_bytes: usize,
}

#[derive(Debug)]
struct Place {
    endpoint: Endpoint,
    prefix: String,
    query: BTreeMap<String, String>,
    credential: Option<Credential>,
}

impl HttpFetch {
    /// The tool for this configuration; credentials are read now.
    pub fn new(
        config: FetchConfig,
        scope: Scope,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, HttpError> {
        let definition = definition(&config, scope)?;
        let connector = Connector::new(&config.network, resolver)?;
        let max_response_bytes = config::cap("max_response_bytes", config.max_response_bytes)?;
        let mut places: Vec<Place> = Vec::new();
        for entry in config.fetch_allow {
            let endpoint = config::endpoint(&entry.host, entry.scheme)?;
            let host = || Excerpt::of(&entry.host);
            if places
                .iter()
                .any(|p| p.endpoint == endpoint && p.prefix == entry.path_prefix)
            {
                return Err(HttpError::Twice { host: host() });
            }
            if !is_plain_prefix(&entry.path_prefix) {
                return Err(HttpError::PathPrefix {
                    host: host(),
                    prefix: Excerpt::of(&entry.path_prefix),
                });
            }
            let fields = CredentialFields {
                env: entry.credential_env.as_deref(),
                file: entry.credential_file.as_deref(),
                header: entry.credential_header.as_deref(),
                prefix: &entry.credential_prefix,
            };
            places.push(Place {
                credential: config::credential(&endpoint, &fields)?,
                endpoint,
                prefix: entry.path_prefix,
                query: entry.query,
            });
        }
        Ok(Self {
            definition,
            connector,
            places,
            max_response_bytes,
        })
    }

    async fn run(&self, call: &Call<'_>) -> Result<Output, ToolError> {
        let arguments = call.arguments();
        arguments::only(arguments, &["url", "query"])?;
        let mut location = Location::parse(call.text("url")?)
            .map_err(|refused| ToolError::refused(refused.to_string()))?;
        let query = arguments::pairs(arguments, "query")?;
        if !query.is_empty() {
            location.add_query(query.into_iter());
        }
        let place = self.place(&location).map_err(ToolError::refused)?;
        let wire = Wire::default();
        let work = self.follow(&wire, location, place);
        wire.watch(call, self.connector.timeout(), work).await
    }

    async fn follow<'a>(
        &'a self,
        wire: &Wire,
        mut location: Location,
        mut place: &'a Place,
    ) -> Result<Output, ToolError> {
        let mut hops = Vec::new();
        loop {
            let incoming = self.get(wire, &location, place).await?;
            let Some(target) = redirect(&incoming) else {
                return Ok(output(location.as_str(), &hops, incoming));
            };
            if hops.len() == MAX_HOPS {
                return Err(wire.refused(format!(
                    "the redirects do not end: {MAX_HOPS} were followed; fetch the last place itself"
                )));
            }
            let next = location
                .join(target)
                .map_err(|refused| wire.refused(format!("redirected: {refused}")))?;
            if location.endpoint().scheme() == Scheme::Https
                && next.endpoint().scheme() != Scheme::Https
            {
                return Err(wire.refused(format!(
                    "`{}` redirects from https to `{}`, which is not encrypted",
                    Excerpt::of(&location.endpoint().to_string()),
                    Excerpt::of(&next.endpoint().to_string())
                )));
            }
            place = self
                .place(&next)
                .map_err(|refused| wire.refused(format!("redirected: {refused}")))?;
            hops.push(location.as_str().to_owned());
            location = next;
        }
    }

    async fn get(
        &self,
        wire: &Wire,
        location: &Location,
        place: &Place,
    ) -> Result<Incoming, ToolError> {
        let none = Scrubber::none();
        let credential = place.credential.as_ref();
        let outgoing = Outgoing {
            method: "GET",
            target: location.target(),
            headers: credential
                .map(|credential| (credential.name.clone(), credential.value.clone()))
                .into_iter()
                .collect(),
            body: Bytes::new(),
        };
        exchange(
            &self.connector,
            wire,
            &place.endpoint,
            outgoing,
            credential.map_or(&none, |credential| &credential.scrubber),
            Cap::Refused(self.max_response_bytes),
        )
        .await
    }

    /// The place that the URL is in; the one with the longest prefix.
    fn place(&self, location: &Location) -> Result<&Place, String> {
        let shown = || Excerpt::of(location.as_str());
        let path = location.path();
        let lower = path.to_ascii_lowercase();
        if let Some(part) = AMBIGUOUS.iter().find(|part| lower.contains(**part)) {
            return Err(format!(
                "the path of `{}` has `{part}`, which servers read in different ways; write it plainly",
                shown()
            ));
        }
        let place = self
            .places
            .iter()
            .filter(|place| place.endpoint == *location.endpoint() && is_below(&place.prefix, path))
            .max_by_key(|place| place.prefix.len())
            .ok_or_else(|| {
                format!(
                    "`{}` is not among the places of this tool; the operator can add it to `fetch_allow`, or `http.request` can be asked for",
                    shown()
                )
            })?;
        // Some servers split a query at semicolons too.
        if location.target().contains(';') {
            return Err(format!(
                "the query of `{}` has `;`, which servers read in different ways; write `%3B`",
                shown()
            ));
        }
        let mut seen = BTreeSet::new();
        for (name, value) in location.query_pairs() {
            let fits = place
                .query
                .get(&name)
                .is_some_and(|pattern| matches(pattern, &value));
            if !fits || !seen.insert(name.clone()) {
                return Err(format!(
                    "the query parameter `{}` is not open with this value, or is there twice; the operator can add it to `query`",
                    Excerpt::of(&name)
                ));
            }
        }
        Ok(place)
    }
}

/// Where an answer sends us, if it does.
fn redirect(incoming: &Incoming) -> Option<&str> {
    matches!(incoming.status, 301 | 302 | 303 | 307 | 308)
        .then(|| incoming.header("location"))
        .flatten()
}

fn is_plain_prefix(prefix: &str) -> bool {
    prefix.starts_with('/')
        && prefix
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"/._~-+@:,=!$&'()*".contains(&b))
        && !prefix.contains("//")
        && !prefix.split('/').any(|part| part == "." || part == "..")
}

/// Whether the path is the prefix, or lies in the folder that it names.
fn is_below(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

/// Whether the text has the pattern's pieces in their order, the first at its start and the last at
/// its end.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces: Vec<_> = pattern.split(WILDCARD).collect();
    let Some(last) = pieces.pop().filter(|_| !pieces.is_empty()) else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(pieces[0]) else {
        return false;
    };
    for piece in &pieces[1..] {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl Tool for HttpFetch {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, call: Call<'a>) -> Calling<'a> {
        Box::pin(async move { self.run(&call).await })
    }
}

fn definition(config: &FetchConfig, scope: Scope) -> Result<Definition, HttpError> {
    let with_credential = config
        .fetch_allow
        .iter()
        .any(|place| place.credential_env.is_some() || place.credential_file.is_some());
    let (permissions, data_sensitivity) = if with_credential {
        (
            BTreeSet::from([Permission::Network, Permission::Credentials]),
            DataSensitivity::Private,
        )
    } else {
        (
            BTreeSet::from([Permission::Network]),
            DataSensitivity::Public,
        )
    };
    Ok(Definition {
        name: ToolName::new("http.fetch")?,
        server: ServerIdentity::new(NATIVE_SERVER)?,
        description: "Reads a page from a place that the operator opened, and returns status, headers and body. Redirects are followed within those places.".into(),
        input_schema: json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["url"],
            "properties": {
                "url": { "type": "string", "description": "Absolute, with an ASCII host, without user or fragment." },
                "query": { "type": "object", "additionalProperties": { "type": "string" } },
            },
        }),
        roles: BTreeMap::from([
            ("url".to_owned(), ArgumentRole::Destination),
            ("query".to_owned(), ArgumentRole::Payload),
        ]),
        declared: None,
        minimum: Contract {
            required_level: Rung::L1,
            blast_radius: BlastRadius::External,
            reversibility: Reversibility::Reversible,
            scope,
            data_sensitivity,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::ControlledNetwork,
            permissions,
        },
    })
}
