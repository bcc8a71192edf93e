//! What a server offers: its hello, and its lists.

use lodestar_core::canonical;
use lodestar_core::digest::{Digest, sha256};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::conversation::{Era, METHOD_NOT_FOUND};
use crate::inline;
use crate::members::Members;
use crate::peer::{Answered, Peer};
use crate::pins::Listed;
use crate::server::Introduction;

/// Revisions with a handshake that are spoken here, newest first.
pub(crate) const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Most entries of one list: more is no list that anybody looks at.
pub(crate) const MAX_ENTRIES: usize = 4096;

/// How long a server that refused the handshake may take to say that it knows none: others may be silent on
/// what they do not know.
const DISCOVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// How long a server may take that is asked what it can before it is greeted: it may just be starting, and
/// some that know only the handshake are silent on everything before it.
const FIRST_DISCOVERY: std::time::Duration = std::time::Duration::from_secs(8);

/// Most pages of one list.
const MAX_PAGES: usize = 256;

/// What a server said in the handshake.
#[derive(Debug, Clone)]
pub(crate) struct Hello {
    /// The revision that is spoken with it.
    pub(crate) revision: String,
    /// What it can.
    pub(crate) capabilities: Value,
    /// What it tells agents to do.
    pub(crate) instructions: Option<String>,
}

/// One tool, as its server declares it.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    /// Its name at the server.
    pub(crate) name: String,
    /// All of it.
    pub(crate) whole: Value,
    /// SHA-256 of its canonical form: name, description, schemas, annotations and whatever else.
    pub(crate) digest: Digest,
}

impl Declared {
    /// As pins are held against it.
    pub(crate) fn listed(&self) -> Listed<'_> {
        Listed {
            name: &self.name,
            definition: &self.whole,
            digest: self.digest,
        }
    }
}

/// What a server lists.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    pub(crate) tools: Vec<Declared>,
    /// Names of prompts.
    pub(crate) prompts: Vec<String>,
    /// URIs of resources.
    pub(crate) resources: Vec<String>,
    /// Templates of URIs.
    pub(crate) templates: Vec<String>,
}

impl Hello {
    /// Whether it has a capability, such as `tools`.
    pub(crate) fn can(&self, capability: &str) -> bool {
        self.capabilities
            .get(capability)
            .is_some_and(|one| !one.is_null())
    }

    /// Whether a list of its may change, by its own word.
    pub(crate) fn may_change(&self, capability: &str) -> bool {
        self.capabilities[capability]["listChanged"] == json!(true)
    }
}

/// Greets a server: what the agent said of itself, as far as the server may know it. One that knows no
/// handshake is asked what it can, and first so where that is how the agent came.
pub(crate) async fn greet(
    peer: &Peer,
    introduction: &Introduction,
    first: Era,
) -> Result<Hello, String> {
    let Introduction {
        capabilities,
        client,
        ..
    } = introduction;
    if first == Era::Inline {
        let found = discover(peer, capabilities, client);
        return match tokio::time::timeout(FIRST_DISCOVERY, found).await {
            Ok(Ok(hello)) => Ok(hello),
            Ok(Err(_)) | Err(_) => shake_hands(peer, capabilities, client).await,
        };
    }
    match shake_hands(peer, capabilities, client).await {
        Ok(hello) => Ok(hello),
        Err(why) => {
            let found = discover(peer, capabilities, client);
            match tokio::time::timeout(DISCOVERY, found).await {
                Ok(Ok(hello)) => Ok(hello),
                Ok(Err(_)) | Err(_) => Err(why),
            }
        }
    }
}

/// A server without a handshake; every request says who asks.
async fn discover(peer: &Peer, capabilities: &Value, client: &Value) -> Result<Hello, String> {
    let meta = inline::meta(capabilities, client);
    let params = inline::with_meta(None, &meta);
    let result = ask_raw(peer, "server/discover", &params).await?;
    let found: Value = serde_json::from_str(result.get()).map_err(|problem| problem.to_string())?;
    let spoken = found["supportedVersions"].as_array();
    if !spoken.is_some_and(|spoken| spoken.iter().any(|one| one == inline::INLINE)) {
        return Err("it speaks no revision that is spoken here".to_owned());
    }
    peer.speaks_for_itself(meta);
    let hello = Hello {
        revision: inline::INLINE.to_owned(),
        capabilities: found["capabilities"].clone(),
        instructions: found["instructions"].as_str().map(str::to_owned),
    };
    listen(peer, &hello).await;
    Ok(hello)
}

/// Without a handshake, who wants to hear what changes has to ask; the question stays open.
async fn listen(peer: &Peer, hello: &Hello) {
    let mut wanted = json!({});
    for (capability, name) in [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ] {
        if hello.may_change(capability) {
            wanted[name] = json!(true);
        }
    }
    if wanted == json!({}) {
        return;
    }
    let params = json!({"notifications": wanted}).to_string();
    let Ok(params) = RawValue::from_string(params) else {
        return;
    };
    if let Ok(mut asked) = peer.ask("subscriptions/listen", Some(&params), None).await {
        // It ends with the connection.
        tokio::spawn(async move { asked.answer().await });
    }
}

async fn shake_hands(peer: &Peer, capabilities: &Value, client: &Value) -> Result<Hello, String> {
    let params = json!({
        "protocolVersion": REVISIONS[0],
        "capabilities": capabilities,
        "clientInfo": client,
    });
    let result = ask(peer, "initialize", &params).await?;
    let members = Members::of(&result).map_err(|problem| format!("its hello: {problem}"))?;
    let revision = members
        .text("protocolVersion")
        .unwrap_or_default()
        .into_owned();
    if !REVISIONS.contains(&revision.as_str()) {
        let shown = lodestar_core::name::Excerpt::of(&revision);
        return Err(format!(
            "it speaks revision `{shown}`, which is not spoken here"
        ));
    }
    let capabilities = members.get("capabilities").map(RawValue::get);
    let capabilities = serde_json::from_str(capabilities.unwrap_or("{}"))
        .map_err(|problem| format!("its capabilities cannot be read: {problem}"))?;
    let instructions = members.text("instructions").map(|text| text.into_owned());
    peer.tell("notifications/initialized", None).await;
    Ok(Hello {
        revision,
        capabilities,
        instructions,
    })
}

/// Asks for everything that the server can list.
pub(crate) async fn lists(peer: &Peer, hello: &Hello) -> Result<Lists, String> {
    let mut lists = Lists::default();
    if hello.can("tools") {
        // What has no name or no one spelling cannot be pinned, called or shown: it is not offered.
        let listed = pages(peer, "tools/list", "tools").await?;
        lists.tools = listed.into_iter().filter_map(declared).collect();
    }
    let texts = |entries: Vec<Value>, member: &str| -> Vec<String> {
        let texts = entries.iter().filter_map(|entry| entry[member].as_str());
        texts.map(str::to_owned).collect()
    };
    // It says that it has some, and does not know how to list them: there are none.
    let none_if_unknown = |listed: Result<Vec<Value>, NotTold>| match listed {
        Err(NotTold::Unknown(_)) => Ok(Vec::new()),
        listed => listed,
    };
    if hello.can("prompts") {
        let prompts = pages(peer, "prompts/list", "prompts").await;
        lists.prompts = texts(none_if_unknown(prompts)?, "name");
    }
    if hello.can("resources") {
        let resources = pages(peer, "resources/list", "resources").await;
        lists.resources = texts(none_if_unknown(resources)?, "uri");
        // Servers without templates often do not know the method.
        let templates = pages(peer, "resources/templates/list", "resourceTemplates").await;
        lists.templates = texts(templates.unwrap_or_default(), "uriTemplate");
    }
    Ok(lists)
}

fn declared(whole: Value) -> Option<Declared> {
    let name = whole["name"]
        .as_str()
        .filter(|name| is_name(name))?
        .to_owned();
    let canonical = canonical::to_vec(&whole).ok()?;
    Some(Declared {
        name,
        digest: sha256(&canonical),
        whole,
    })
}

/// Names that every client takes: what MCP allows, and no more than fits behind a server's.
fn is_name(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    (1..=128).contains(&name.len()) && name.chars().all(known)
}

/// All entries of a list, page by page.
pub(crate) async fn pages(peer: &Peer, method: &str, member: &str) -> Result<Vec<Value>, NotTold> {
    let mut entries = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let params = cursor
            .as_ref()
            .map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let result = ask(peer, method, &params).await?;
        let mut page: Value = serde_json::from_str(result.get()).map_err(|problem| {
            NotTold::because(format!(
                "its answer to `{method}` cannot be read: {problem}"
            ))
        })?;
        match page[member].take() {
            Value::Array(more) => entries.extend(more),
            _ => {
                let why = format!("its answer to `{method}` has no list `{member}`");
                return Err(NotTold::Otherwise(why));
            }
        }
        if entries.len() > MAX_ENTRIES {
            let why = format!("its `{method}` has more than {MAX_ENTRIES} entries");
            return Err(NotTold::Otherwise(why));
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(entries),
        }
    }
    let why = format!("its `{method}` has more than {MAX_PAGES} pages");
    Err(NotTold::Otherwise(why))
}

/// Why a server does not tell what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTold {
    /// It does not know the method.
    #[error("it does not know `{0}`")]
    Unknown(String),
    /// Anything else.
    #[error("{0}")]
    Otherwise(String),
}

impl From<NotTold> for String {
    fn from(why: NotTold) -> Self {
        why.to_string()
    }
}

impl NotTold {
    fn because(problem: impl std::fmt::Display) -> Self {
        Self::Otherwise(problem.to_string())
    }
}

async fn ask(peer: &Peer, method: &str, params: &Value) -> Result<Box<RawValue>, NotTold> {
    let params = RawValue::from_string(params.to_string()).map_err(NotTold::because)?;
    ask_raw(peer, method, &params).await
}

async fn ask_raw(peer: &Peer, method: &str, params: &RawValue) -> Result<Box<RawValue>, NotTold> {
    let asked = peer.ask(method, Some(params), None).await;
    let mut asked = asked.map_err(NotTold::because)?;
    match asked.answer().await.map_err(NotTold::because)? {
        Answered::Result(result) => Ok(result),
        Answered::Error(error) => {
            let code = Members::of(&error).ok().and_then(|error| error.get("code"));
            if code.is_some_and(|code| code.get() == METHOD_NOT_FOUND.to_string()) {
                return Err(NotTold::Unknown(method.to_owned()));
            }
            let shown = lodestar_core::name::Excerpt::of(error.get());
            Err(NotTold::Otherwise(format!(
                "it answers `{method}` with an error: {shown}"
            )))
        }
    }
}
