//! One request: counted, known by its token, answered or refused, and if refused, recorded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter};
use lodestar_core::event::EventType;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::body::{Allowance, Pieces, is_of_type};
use super::limits::{From, Limits};
use super::route::{Answer, Asked, Face, Listing, MOST, Route, Takes, Who};
use super::table;
use crate::code::{Code, Refusal};
use crate::config::HttpConfig;
use crate::service::{Caller, Refused, Service};
use crate::token::TokenText;
use crate::wire::{Failure, TokenKind, Why};

/// How often it is recorded, at most, that requests were too many: the log is not for a flood to fill.
pub(super) const FLOOD: Duration = Duration::from_secs(10);

/// Slack behind a request's deadline for its refusal to be recorded.
const RECORDING: Duration = Duration::from_secs(5);

/// What all requests share.
#[derive(Debug)]
pub(super) struct Shared {
    service: Arc<Service>,
    limits: Limits,
    /// How long a request may take, and how long one with a bundle may.
    deadline: Duration,
    long: Duration,
    bundle: u64,
    ending: AtomicBool,
    flood: Mutex<Flood>,
    /// Room for requests that are being answered, hung up on or not.
    room: Arc<Semaphore>,
    seats: u32,
    /// Requests that found no room, since that was last recorded.
    turned_away: AtomicU64,
}

/// Requests that were too many, since that was last recorded.
#[derive(Debug, Default)]
struct Flood {
    recorded: Option<Instant>,
    since: u64,
}

impl Shared {
    pub(super) fn new(service: Arc<Service>, limits: Limits, config: &HttpConfig) -> Self {
        // Some whose connection is gone are still answered.
        let seats = u32::try_from(config.connections.saturating_mul(4)).unwrap_or(u32::MAX);
        Self {
            service,
            limits,
            deadline: config.deadline(),
            long: config.bundle_deadline(),
            bundle: config.bundle_bytes,
            ending: AtomicBool::new(false),
            flood: Mutex::default(),
            room: Arc::new(Semaphore::new(seats as usize)),
            seats,
            turned_away: AtomicU64::new(0),
        }
    }

    /// From here on, nothing new is begun.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }

    fn allowance(&self, route: &Route) -> Allowance {
        match route.takes {
            Takes::Bytes(_) => Allowance {
                bytes: self.bundle,
                within: self.long,
            },
            _ => Allowance {
                bytes: route.limit,
                within: self.deadline,
            },
        }
    }
}

/// The routes of one face.
pub(super) fn router(shared: &Arc<Shared>, face: Face) -> Router {
    let mut paths: BTreeMap<&'static str, MethodRouter> = BTreeMap::new();
    for route in table::routes() {
        if route.face != face && !table::is_everywhere(&route) {
            continue;
        }
        let (shared, route) = (Arc::clone(shared), Arc::new(route));
        let path = route.path;
        let method = Method::from_bytes(route.method.as_bytes()).unwrap_or_default();
        let filter = MethodFilter::try_from(method).unwrap_or(MethodFilter::GET);
        let handler = move |parameters: Result<RawPathParams, _>, request: Request| {
            let (shared, route) = (Arc::clone(&shared), Arc::clone(&route));
            let parameters = parameters.ok().map(|parameters: RawPathParams| {
                let pairs = parameters.iter();
                pairs
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect()
            });
            async move { shared.handle(&route, parameters, request).await }
        };
        let before = paths.remove(path).unwrap_or_default();
        paths.insert(path, before.on(filter, handler));
    }
    let mut router = Router::new();
    for (path, methods) in paths {
        router = router.route(path, methods);
    }
    let nowhere = |code: Code| {
        let shared = Arc::clone(shared);
        move |request: Request| {
            let shared = Arc::clone(&shared);
            let from = origin(&request);
            async move { shared.nowhere(code, from).await }
        }
    };
    router
        .method_not_allowed_fallback(nowhere(Code::MethodNotAllowed))
        .fallback(nowhere(Code::NoSuchRoute))
}

fn origin(request: &Request) -> From {
    let found = request.extensions().get::<From>();
    found.copied().unwrap_or(From::Local)
}

impl Shared {
    /// A place among those that are answered, hung up on or not; none where there are too many.
    pub(super) fn seat(&self) -> Option<OwnedSemaphorePermit> {
        let seat = Arc::clone(&self.room).try_acquire_owned().ok();
        if seat.is_none() {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
        }
        seat
    }

    /// Waits until nothing is being answered.
    pub(super) async fn idle(&self) {
        let _ = self.room.acquire_many(self.seats).await;
    }

    /// Records how many requests were too many since that was last recorded, by rate or by number.
    pub(super) async fn tell_flood(&self) {
        let turned_away = self.turned_away.swap(0, Ordering::Relaxed);
        self.tell_many(Code::Overloaded, turned_away).await;
        let times = {
            let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
            if flood.since == 0 {
                return;
            }
            flood.recorded = Some(Instant::now());
            std::mem::take(&mut flood.since)
        };
        self.tell_many(Code::RateLimited, times).await;
    }

    async fn tell_many(&self, code: Code, times: u64) {
        if times == 0 {
            return;
        }
        let refused = Refused {
            kind: EventType::GATEWAY_REFUSED,
            route: "any".to_owned(),
            code,
            field: None,
            strike: None,
            local: false,
            caller: Caller::Nobody,
            named: Vec::new(),
            times,
        };
        let _ = tokio::time::timeout(RECORDING, self.service.refused(refused)).await;
    }

    /// A request to a route.
    async fn handle(
        self: Arc<Self>,
        route: &Route,
        parameters: Option<Vec<(String, String)>>,
        request: Request,
    ) -> Response {
        let from = origin(&request);
        let mut caller = Caller::Nobody;
        let named = parameters.clone().unwrap_or_default();
        let answering = self.answer(route, parameters, request, &mut caller);
        // Bodies have their own time; this is for what comes after, too.
        let after = match route.is_long {
            true => self.long,
            false => self.deadline,
        };
        let whole = self.allowance(route).within + after;
        let answered = match tokio::time::timeout(whole, answering).await {
            Ok(answered) => answered,
            Err(_) => Err(Refusal::of(Code::TookTooLong)),
        };
        match answered {
            Ok(answer) => json(answer.status, answer.body),
            Err(refusal) => {
                let about = format!("{} {}", route.method, route.path);
                self.refuse(route.refused, about, named, caller, from, refusal)
                    .await
            }
        }
    }

    /// A request to no route.
    async fn nowhere(&self, code: Code, from: From) -> Response {
        let refusal = match self.limits.from(from, Instant::now()) {
            Ok(()) => Refusal::of(code),
            Err(wait) => too_many(wait),
        };
        let (kind, caller) = (EventType::GATEWAY_REFUSED, Caller::Nobody);
        // The path is whatever somebody wrote; the log is not for that.
        self.refuse(
            kind,
            "nowhere".to_owned(),
            Vec::new(),
            caller,
            from,
            refusal,
        )
        .await
    }

    async fn answer(
        &self,
        route: &Route,
        parameters: Option<Vec<(String, String)>>,
        request: Request,
        caller: &mut Caller,
    ) -> Result<Answer, Refusal> {
        if self.ending.load(Ordering::Acquire) {
            return Err(Refusal::of(Code::ShuttingDown));
        }
        let from = origin(&request);
        if from != From::Local {
            self.limits.from(from, Instant::now()).map_err(too_many)?;
        }
        let (parts, body) = request.into_parts();
        *caller = self.caller(route, &parts.headers, from).await?;
        let Some(parameters) = parameters else {
            return Err(Refusal::of(Code::InvalidParameter));
        };
        let listing = listing(route, parts.uri.query())?;
        let wanted = match route.takes {
            Takes::Nothing => None,
            Takes::Json(_) => Some("application/json"),
            Takes::Bytes(_) => Some("application/octet-stream"),
        };
        if let Some(wanted) = wanted
            && !is_of_type(&parts.headers, wanted)
        {
            let why = format!("write `Content-Type: {wanted}`");
            return Err(Refusal::saying(Code::UnsupportedMediaType, why));
        }
        let body = Pieces::of(body, &parts.headers, self.allowance(route))?;
        let asked = Asked {
            service: Arc::clone(&self.service),
            caller: caller.clone(),
            parameters,
            listing,
        };
        route.answer(asked, body).await
    }

    /// Who asks, if they may ask this.
    async fn caller(
        &self,
        route: &Route,
        headers: &HeaderMap,
        from: From,
    ) -> Result<Caller, Refusal> {
        match route.who {
            Who::Anybody => return Ok(Caller::Nobody),
            // Whoever reached this face is its user.
            Who::Platform => return Ok(Caller::Platform),
            _ => {}
        }
        let token = bearer(headers)?;
        let identity = match token {
            Some(token) => self.service.identify(token.hash()).await?,
            None => None,
        };
        let Some(identity) = identity else {
            self.limits.guessed(from, Instant::now());
            return Err(Refusal::of(Code::TokenInvalid));
        };
        self.limits
            .by(identity.token, Instant::now())
            .map_err(too_many)?;
        let fits = matches!(
            (route.who, identity.kind),
            (
                Who::Owner | Who::OwnerOrDevice | Who::OwnerOrEnrol,
                TokenKind::Owner
            ) | (Who::OwnerOrDevice | Who::Device, TokenKind::Device)
                | (Who::OwnerOrEnrol, TokenKind::Enrol)
        );
        match fits {
            true => Ok(Caller::Known(identity)),
            false => Err(Refusal::of(Code::TokenKind)),
        }
    }

    /// Records a refusal and answers it.
    async fn refuse(
        &self,
        kind: EventType,
        route: String,
        named: Vec<(String, String)>,
        caller: Caller,
        from: From,
        refusal: Refusal,
    ) -> Response {
        let mut times = 1;
        if refusal.code == Code::RateLimited {
            let mut flood = self.flood.lock().unwrap_or_else(PoisonError::into_inner);
            flood.since += 1;
            let now = Instant::now();
            let lately = |at: Instant| now.duration_since(at) < FLOOD;
            if flood.recorded.is_some_and(lately) {
                return failure(&refusal);
            }
            times = std::mem::take(&mut flood.since);
            flood.recorded = Some(now);
        }
        let refused = Refused {
            kind,
            route,
            code: refusal.code,
            field: refusal.field,
            strike: refusal.strike,
            local: from == From::Local,
            caller,
            named,
            times,
        };
        // What cannot be recorded is refused all the same.
        let recording = self.service.refused(refused);
        let _ = tokio::time::timeout(RECORDING, recording).await;
        failure(&refusal)
    }
}

/// The token that a request shows; none where it has another form.
fn bearer(headers: &HeaderMap) -> Result<Option<TokenText>, Refusal> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(shown), None) = (shown.next(), shown.next()) else {
        return Err(Refusal::of(Code::TokenMissing));
    };
    let shown = shown.to_str().unwrap_or_default();
    let Some((scheme, token)) = shown.split_once(' ') else {
        return Err(Refusal::of(Code::TokenMissing));
    };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::of(Code::TokenMissing));
    }
    Ok(TokenText::parse(token.trim()))
}

/// What the query asks for. Routes that answer no list take none.
fn listing(route: &Route, query: Option<&str>) -> Result<Listing, Refusal> {
    let mut listing = Listing {
        after: None,
        limit: MOST,
    };
    let wrong = |why: String| Refusal::saying(Code::InvalidParameter, why);
    let mut seen = [false; 2];
    for pair in query.unwrap_or_default().split('&') {
        if pair.is_empty() {
            continue;
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let at = match (route.lists, name) {
            (true, "after") => 0,
            (true, "limit") => 1,
            (true, _) => return Err(wrong("a list takes `after` and `limit`".to_owned())),
            (false, _) => return Err(wrong("this route takes no query".to_owned())),
        };
        if std::mem::replace(&mut seen[at], true) {
            return Err(wrong(format!(
                "`{}` is there twice",
                ["after", "limit"][at]
            )));
        }
        match at {
            0 => listing.after = Some(value.to_owned()),
            _ => {
                let limit = value
                    .parse()
                    .ok()
                    .filter(|limit| (1..=MOST).contains(limit));
                let of = || wrong(format!("`limit` is a number from 1 to {MOST}")).at("limit");
                listing.limit = limit.ok_or_else(of)?;
            }
        }
    }
    Ok(listing)
}

fn too_many(wait: Duration) -> Refusal {
    let seconds = wait.as_secs_f64().ceil().max(1.0);
    let mut refusal = Refusal::saying(
        Code::RateLimited,
        format!("too many requests; try again in {seconds} s"),
    );
    refusal.retry_after = Some(seconds as u64);
    refusal
}

pub(super) fn failure(refusal: &Refusal) -> Response {
    let failure = Failure {
        error: Why {
            code: refusal.code,
            message: refusal.message.clone(),
            field: refusal.field.map(str::to_owned),
        },
    };
    let status = StatusCode::from_u16(refusal.code.status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, serde_json::to_vec(&failure).unwrap_or_default());
    let headers = response.headers_mut();
    match refusal.code {
        Code::TokenMissing | Code::TokenInvalid => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        Code::RateLimited | Code::Overloaded | Code::Unavailable | Code::ShuttingDown => {
            let later = refusal.retry_after.unwrap_or(5);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(later));
        }
        // What was not read of the body is not read as the next request.
        Code::BodyTooLarge | Code::BodyTooSlow | Code::BodyBroken => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let form = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, form);
    // Answers hold tokens and levels, which are nobody's to keep.
    let never = HeaderValue::from_static("no-store");
    headers.insert(header::CACHE_CONTROL, never);
    response
}
