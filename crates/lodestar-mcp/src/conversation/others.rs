//! MCP's other methods: lists are gathered, what has content goes through the session.

use std::sync::Arc;
use std::time::Duration;

use lodestar_core::defence::Defence;
use lodestar_guard::Reply;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::token;
use super::{Conversation, INVALID_PARAMS, REFUSED, Request};
use crate::answer::{self, ForAgent};
use crate::catalogue::ledger_name;
use crate::members::Members;
use crate::offer;
use crate::peer::Answered;
use crate::server::{Server, Up};

/// How long a server may take for what is asked of all: the others' answers wait for it.
const TOGETHER: Duration = Duration::from_secs(10);

impl Conversation {
    pub(super) async fn list_tools(&self, request: &Request) {
        match self.ready().await {
            Ok(opened) => request.answer(&opened.catalogue.listing).await,
            Err(why) => request.fail(REFUSED, &why).await,
        }
    }

    /// The lists of all servers, one behind the other. A server that does not answer is left out.
    pub(super) async fn list(&self, request: &Request) {
        let opened = match self.ready().await {
            Ok(opened) => opened,
            Err(why) => return request.fail(REFUSED, &why).await,
        };
        let (member, capability) = match &*request.method {
            "resources/list" => ("resources", "resources"),
            "resources/templates/list" => ("resourceTemplates", "resources"),
            _ => ("prompts", "prompts"),
        };
        let mut entries = Vec::new();
        for (server, up) in self.up_with(capability) {
            let Some(listed) = listed(&up, &request.method, member).await else {
                continue;
            };
            entries.extend(listed.into_iter().map(|mut entry| {
                if member == "prompts"
                    && let Some(name) = entry["name"].as_str()
                {
                    entry["name"] = opened.catalogue.shown_name(&server, name).into();
                }
                entry
            }));
        }
        let mut result = json!({member: entries});
        answer::strip(&mut result);
        request.answer(&result.to_string()).await;
    }

    /// Reading or subscribing: what a server lists is graded otherwise than what it makes of a template.
    pub(super) async fn resource(self: &Arc<Self>, request: Request) {
        let params = match arguments(&request) {
            Ok(params) => params,
            Err(why) => return request.fail(INVALID_PARAMS, &why).await,
        };
        let Some(uri) = params["uri"].as_str().map(str::to_owned) else {
            return request
                .fail(INVALID_PARAMS, "`uri` is missing or no text")
                .await;
        };
        let Some((server, is_listed)) = self.holder(&uri).await else {
            let error = json!({"code": -32002, "message": "no server here has this resource", "data": {"uri": uri}});
            return request.error(&error.to_string()).await;
        };
        let name = match (&*request.method, is_listed) {
            ("resources/read", true) => "resources.read",
            ("resources/read", false) => "resources.templates.read",
            (_, true) => "resources.subscribe",
            (_, false) => "resources.templates.subscribe",
        };
        self.through(&request, &server, name, params).await;
    }

    pub(super) async fn unsubscribe(&self, request: &Request) {
        let members = Members::of_some(request.params.as_deref()).unwrap_or_default();
        let uri = members.text("uri").unwrap_or_default();
        if let Some((server, _)) = self.holder(&uri).await
            && let Ok(up) = server.up()
        {
            let _ = answered(&up, request).await;
        }
        request.answer("{}").await;
    }

    pub(super) async fn prompt(self: &Arc<Self>, request: Request) {
        let mut params = match arguments(&request) {
            Ok(params) => params,
            Err(why) => return request.fail(INVALID_PARAMS, &why).await,
        };
        let opened = match self.ready().await {
            Ok(opened) => opened,
            Err(why) => return request.fail(REFUSED, &why).await,
        };
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        for (server, up) in self.up_with("prompts") {
            let Some(own) = opened.catalogue.own_name(&server, &name) else {
                continue;
            };
            if up.lists.prompts.iter().any(|prompt| prompt == own) || self.servers.len() == 1 {
                params["name"] = own.into();
                return self.through(&request, &server, "prompts.get", params).await;
            }
        }
        let why = "no server here has this prompt";
        request.fail(INVALID_PARAMS, why).await;
    }

    pub(super) async fn complete(self: &Arc<Self>, request: Request) {
        let mut params = match arguments(&request) {
            Ok(params) => params,
            Err(why) => return request.fail(INVALID_PARAMS, &why).await,
        };
        let opened = match self.ready().await {
            Ok(opened) => opened,
            Err(why) => return request.fail(REFUSED, &why).await,
        };
        let reference = params["ref"].clone();
        let found = match (reference["name"].as_str(), reference["uri"].as_str()) {
            (Some(name), _) => self.up_with("completions").find_map(|(server, up)| {
                let own = opened.catalogue.own_name(&server, name)?;
                let has = up.lists.prompts.iter().any(|prompt| prompt == own);
                (has || self.servers.len() == 1).then(|| (server, Some(own.to_owned())))
            }),
            (None, Some(uri)) => self.holder(uri).await.map(|(server, _)| (server, None)),
            (None, None) => None,
        };
        let Some((server, own)) = found else {
            let why = "no server here has what `ref` names";
            return request.fail(INVALID_PARAMS, why).await;
        };
        if let Some(own) = own {
            params["ref"]["name"] = own.into();
        }
        self.through(&request, &server, "completion.complete", params)
            .await;
    }

    /// How much servers are to tell of themselves; each that can is asked.
    pub(super) async fn set_level(&self, request: &Request) {
        let mut failed = None;
        for (_, up) in self.up_with("logging") {
            if let Some(Answered::Error(error)) = answered(&up, request).await {
                failed = Some(error);
            }
        }
        match failed {
            Some(error) => request.error(error.get()).await,
            None => request.answer("{}").await,
        }
    }

    fn up_with(&self, capability: &str) -> impl Iterator<Item = (Arc<Server>, Arc<Up>)> {
        let up = self
            .servers
            .iter()
            .filter_map(|server| Some((Arc::clone(server), server.up().ok()?)));
        up.filter(move |(_, up)| up.hello.can(capability))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The server that has a resource, and whether it lists it: the first that lists it, or else the first
    /// with a template that fits, or else the only one there is, or else the first that lists it by now.
    async fn holder(&self, uri: &str) -> Option<(Arc<Server>, bool)> {
        let _ = self.ready().await;
        let with: Vec<_> = self.up_with("resources").collect();
        let first = with
            .iter()
            .find(|(_, up)| up.lists.resources.iter().any(|one| one == uri));
        if let Some((server, _)) = first {
            return Some((Arc::clone(server), true));
        }
        let fits = |template: &String| {
            let start = template.split('{').next().unwrap_or_default();
            !start.is_empty() && uri.starts_with(start)
        };
        let fitting = with
            .iter()
            .find(|(_, up)| up.lists.templates.iter().any(fits));
        let only = || (with.len() == 1).then(|| &with[0]);
        if let Some((server, _)) = fitting.or_else(only) {
            return Some((Arc::clone(server), false));
        }
        // What came while the session ran is graded like what nobody lists.
        for (server, up) in &with {
            let now = listed(up, "resources/list", "resources").await;
            if now.iter().flatten().any(|one| one["uri"] == uri) {
                return Some((Arc::clone(server), false));
            }
        }
        None
    }

    /// Lets the session decide, and gives the agent what came of it.
    async fn through(&self, request: &Request, server: &Server, name: &str, params: Value) {
        if self.lacks(Defence::OtherMethodsGated) {
            return ungated(request, server, &params).await;
        }
        let opened = match self.ready().await {
            Ok(opened) => opened,
            Err(why) => return request.fail(REFUSED, &why).await,
        };
        let Ok(_room) = self.room.acquire().await else {
            return;
        };
        let members = Members::of_some(request.params.as_deref()).unwrap_or_default();
        let options = request.options(token(&members));
        let tool = ledger_name(server, name);
        let replied = opened.session.call_with(&tool, params, options).await;
        if request.stop.is_stopped() {
            return;
        }
        let returned = replied.as_ref().is_ok_and(Reply::ran);
        let given = match replied {
            Ok(reply) => answer::for_agent(opened.session.id(), &tool, reply, self.forged()).await,
            Err(problem) => Err(problem),
        };
        let (given, forged) = match given {
            Ok(given) => given,
            Err(problem) => return request.fail(REFUSED, &problem.to_string()).await,
        };
        if forged > 0 {
            self.note_forgery(opened, &tool, forged);
        }
        match given {
            ForAgent::Result(result) if returned => request.answer(&result).await,
            ForAgent::Result(refusal) => request.error(&refused(&refusal)).await,
            ForAgent::Error(error) => request.error(&error).await,
        }
    }
}

/// For a harness that takes [`Defence::OtherMethodsGated`] out: the server is asked, and nobody else.
async fn ungated(request: &Request, server: &Server, params: &Value) {
    let asked = async {
        let up = server.up().ok()?;
        let params = RawValue::from_string(params.to_string()).ok()?;
        let asked = up.peer.ask(&request.method, Some(&params), None).await;
        asked.ok()?.answer().await.ok()
    };
    match asked.await {
        Some(Answered::Result(result)) => request.answer(result.get()).await,
        Some(Answered::Error(error)) => request.error(error.get()).await,
        None => request.fail(REFUSED, "the server does not answer").await,
    }
}

/// Other methods have no results that say they failed: a refusal is an error, with the same particulars.
pub(super) fn refused(refusal: &str) -> String {
    let refusal: Value = serde_json::from_str(refusal).unwrap_or_default();
    let error = json!({
        "code": REFUSED,
        "message": refusal["content"][0]["text"],
        "data": refusal["_meta"],
    });
    error.to_string()
}

/// All entries of a server's list; none where it does not give them in time.
async fn listed(up: &Up, method: &str, member: &str) -> Option<Vec<Value>> {
    let pages = offer::pages(&up.peer, method, member);
    tokio::time::timeout(TOGETHER, pages).await.ok()?.ok()
}

/// What a server says to a request that is not the session's business; none where it does not in time.
async fn answered(up: &Up, request: &Request) -> Option<Answered> {
    let params = request.params.as_deref();
    let answered = async {
        let mut asked = up.peer.ask(&request.method, params, None).await.ok()?;
        asked.answer().await.ok()
    };
    tokio::time::timeout(TOGETHER, answered).await.ok()?
}

/// The parameters of a method, without what is the protocol's own.
fn arguments(request: &Request) -> Result<Value, String> {
    let raw = request.params.as_deref().map_or("{}", RawValue::get);
    let mut params: Value = serde_json::from_str(raw).map_err(|problem| problem.to_string())?;
    match params.as_object_mut() {
        Some(members) => {
            members.remove("_meta");
            Ok(params)
        }
        None => Err("the parameters are no object".to_owned()),
    }
}
