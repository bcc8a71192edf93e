//! A route: where it is asked, by whom, with what, and what it answers. The router is made of these and so is
//! the API's document, from the same types; neither can say what the other does not do.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use axum::http::StatusCode;
use lodestar_core::event::EventType;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::body::{self, Pieces};
use crate::code::{Code, Refusal};
use crate::service::{Caller, Service};

/// Bodies that are small statements.
const SMALL: u64 = 32 << 10;

/// Bodies that take long to read.
const LARGE: usize = 64 << 10;

/// Where a route is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// To whoever reaches the service.
    Public,
    /// On the socket in the service's own folder only.
    Platform,
}

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Anybody, without a token.
    Anybody,
    /// The account's owner.
    Owner,
    /// The account's owner, or a device.
    OwnerOrDevice,
    /// The account's owner, or whoever has a token to enrol one device.
    OwnerOrEnrol,
    /// A device.
    Device,
    /// Whoever runs the service, by being the same user of the same machine.
    Platform,
}

/// What a route takes.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// JSON that looks like this.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Bytes, as they come.
    Bytes(&'static str),
}

/// How many are asked for, and from where on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

/// Most that one page has.
pub(crate) const MOST: usize = 100;

/// A request, as far as it is the same for all routes.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) service: Arc<Service>,
    pub(crate) caller: Caller,
    /// The names in the path and what stands in their places.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) listing: Listing,
}

impl Asked {
    /// What stands in the path at this name.
    pub(crate) fn parameter<T: FromStr<Err: fmt::Display>>(
        &self,
        name: &'static str,
    ) -> Result<T, Refusal> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        let text = found.map_or("", |(_, text)| text.as_str());
        parse(text, name)
    }

    /// Where the list goes on.
    pub(crate) fn after<T: FromStr<Err: fmt::Display>>(&self) -> Result<Option<T>, Refusal> {
        let after = self.listing.after.as_deref();
        after.map(|text| parse(text, "after")).transpose()
    }
}

fn parse<T: FromStr<Err: fmt::Display>>(text: &str, name: &'static str) -> Result<T, Refusal> {
    text.parse().map_err(|problem: T::Err| {
        Refusal::saying(Code::InvalidParameter, problem.to_string()).at(name)
    })
}

/// What is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + Send>>;

type Handler = Box<dyn Fn(Asked, Pieces) -> Answering + Send + Sync>;

/// A route.
pub struct Route {
    /// The method, in capital letters.
    pub method: &'static str,
    /// The path, with `{name}` for what differs.
    pub path: &'static str,
    /// Where it is served.
    pub face: Face,
    /// Who may ask.
    pub who: Who,
    /// What it does, in a sentence.
    pub does: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// How many bytes of it.
    pub limit: u64,
    /// Whether it answers a list, page by page.
    pub lists: bool,
    /// Whether it may take long.
    pub is_long: bool,
    /// The status of an answer that is no refusal.
    pub status: u16,
    /// What that answer looks like.
    pub answers: fn(&mut SchemaGenerator) -> Schema,
    /// As what a refusal is recorded.
    pub refused: EventType,
    handler: Handler,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Route({} {})", self.method, self.path)
    }
}

impl Route {
    /// A route that is asked for something.
    pub(crate) fn get(path: &'static str, who: Who, does: &'static str) -> Unanswered {
        Unanswered::new("GET", path, who, does, 200)
    }

    /// A route that is told something.
    pub(crate) fn post(path: &'static str, who: Who, does: &'static str) -> Unanswered {
        Unanswered::new("POST", path, who, does, 200)
    }

    /// A route that puts something in its place.
    pub(crate) fn put(path: &'static str, who: Who, does: &'static str) -> Unanswered {
        Unanswered::new("PUT", path, who, does, 200)
    }

    /// A route that takes something away.
    pub(crate) fn delete(path: &'static str, who: Who, does: &'static str) -> Unanswered {
        Unanswered::new("DELETE", path, who, does, 200)
    }

    /// The names in the path.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Answers a request whose asker may ask.
    pub(crate) fn answer(&self, asked: Asked, body: Pieces) -> Answering {
        (self.handler)(asked, body)
    }
}

/// A route of which everything is known but what it does.
pub(crate) struct Unanswered {
    method: &'static str,
    path: &'static str,
    face: Face,
    who: Who,
    does: &'static str,
    limit: u64,
    lists: bool,
    is_long: bool,
    status: u16,
    refused: EventType,
}

impl Unanswered {
    fn new(
        method: &'static str,
        path: &'static str,
        who: Who,
        does: &'static str,
        status: u16,
    ) -> Self {
        let face = match who {
            Who::Platform => Face::Platform,
            _ => Face::Public,
        };
        Self {
            method,
            path,
            face,
            who,
            does,
            limit: SMALL,
            lists: false,
            is_long: false,
            status,
            refused: EventType::GATEWAY_REFUSED,
        }
    }

    /// It makes something that was not there.
    pub(crate) fn makes(self) -> Self {
        Self {
            status: 201,
            ..self
        }
    }

    /// A refusal is recorded as this.
    pub(crate) fn refused_as(self, refused: EventType) -> Self {
        Self { refused, ..self }
    }

    /// It takes this much.
    pub(crate) fn up_to(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// It may take long.
    pub(crate) fn takes_long(self) -> Self {
        Self {
            is_long: true,
            ..self
        }
    }

    /// It answers a list.
    pub(crate) fn lists(self) -> Self {
        Self {
            lists: true,
            ..self
        }
    }

    /// Answers without a body.
    pub(crate) fn by<A, W>(self, work: impl Fn(Asked) -> W + Send + Sync + 'static) -> Route
    where
        A: Serialize + JsonSchema + 'static,
        W: Future<Output = Result<A, Refusal>> + Send + 'static,
    {
        let status = self.status;
        let handler: Handler = Box::new(move |asked, body| {
            let work = work(asked);
            Box::pin(async move {
                body.whole().await?;
                answer(status, &work.await?)
            })
        });
        self.finish::<A>(Takes::Nothing, handler)
    }

    /// Answers a body of JSON.
    pub(crate) fn taking<B, A, W>(
        self,
        work: impl Fn(Asked, B) -> W + Send + Sync + 'static,
    ) -> Route
    where
        B: DeserializeOwned + JsonSchema + Send + 'static,
        A: Serialize + JsonSchema + 'static,
        W: Future<Output = Result<A, Refusal>> + Send + 'static,
    {
        let status = self.status;
        let work = Arc::new(work);
        let handler: Handler = Box::new(move |asked, body| {
            let work = Arc::clone(&work);
            Box::pin(async move {
                let body = body.whole().await?;
                let body: B = match body.len() > LARGE {
                    false => body::read(&body)?,
                    // Others are answered meanwhile.
                    true => {
                        let reading = tokio::task::spawn_blocking(move || body::read(&body));
                        reading.await.map_err(|_| Refusal::of(Code::Internal))??
                    }
                };
                answer(status, &work(asked, body).await?)
            })
        });
        self.finish::<A>(Takes::Json(|schemas| schemas.subschema_for::<B>()), handler)
    }

    /// Answers a body of bytes.
    pub(crate) fn streaming<A, W>(
        self,
        what: &'static str,
        work: impl Fn(Asked, Pieces) -> W + Send + Sync + 'static,
    ) -> Route
    where
        A: Serialize + JsonSchema + 'static,
        W: Future<Output = Result<A, Refusal>> + Send + 'static,
    {
        let status = self.status;
        let handler: Handler = Box::new(move |asked, body| {
            let work = work(asked, body);
            Box::pin(async move { answer(status, &work.await?) })
        });
        self.finish::<A>(Takes::Bytes(what), handler)
    }

    fn finish<A: JsonSchema>(self, takes: Takes, handler: Handler) -> Route {
        let Self {
            method,
            path,
            face,
            who,
            does,
            limit,
            lists,
            is_long,
            status,
            refused,
        } = self;
        Route {
            method,
            path,
            face,
            who,
            does,
            limit: match takes {
                Takes::Nothing => 0,
                _ => limit,
            },
            takes,
            lists,
            is_long,
            status,
            answers: |schemas| schemas.subschema_for::<A>(),
            refused,
            handler,
        }
    }
}

fn answer(status: u16, body: &impl Serialize) -> Result<Answer, Refusal> {
    let failed = |_| Refusal::of(Code::Internal);
    Ok(Answer {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::OK),
        body: serde_json::to_vec(body).map_err(failed)?,
    })
}
