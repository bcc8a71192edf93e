//! Revision 2026-07-28: no handshake, every request says itself who asks and what they can.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::members::Members;
use crate::offer::REVISIONS;

/// Its name.
pub(crate) const INLINE: &str = "2026-07-28";

/// Where a request names the revision it is written in.
pub(crate) const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
/// Where it says who asks.
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// Where it says what they can.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Where an answer says who answers.
pub(crate) const SERVER: &str = "io.modelcontextprotocol/serverInfo";
/// To which request a notification belongs.
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// JSON-RPC's words, of this revision, for what is wrong with a request.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
pub(crate) const UNKNOWN_REVISION: i64 = -32022;

/// Methods whose results say how long they hold.
const CACHED: [&str; 5] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// What a request says of itself.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) client: Value,
    pub(crate) capabilities: Value,
}

/// How a request may be wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadSender {
    /// It says nothing, or not all that it has to.
    Missing(&'static str),
    /// It is written in a revision that is not spoken here.
    Revision(String),
}

/// Whether a request says itself in which revision it is written.
pub(crate) fn names_itself(params: Option<&RawValue>) -> bool {
    // Looked for before anything is taken apart: most requests have nothing of it.
    let raw = params.map_or("", RawValue::get);
    memchr::memmem::find(raw.as_bytes(), REVISION.as_bytes()).is_some()
        && Members::of_some(params).is_ok_and(|members| {
            let meta = Members::of_some(members.get("_meta")).unwrap_or_default();
            meta.get(REVISION).is_some()
        })
}

impl Sender {
    /// What a request says of itself.
    pub(crate) fn of(params: Option<&RawValue>) -> Result<Self, BadSender> {
        let members = Members::of_some(params).unwrap_or_default();
        let meta = Members::of_some(members.get("_meta")).unwrap_or_default();
        let value =
            |name: &str| -> Option<Value> { serde_json::from_str(meta.get(name)?.get()).ok() };
        let revision = meta.text(REVISION).ok_or(BadSender::Missing(REVISION))?;
        if revision != INLINE {
            return Err(BadSender::Revision(revision.into_owned()));
        }
        let capabilities = value(CAPABILITIES).filter(Value::is_object);
        Ok(Self {
            client: value(CLIENT).unwrap_or_default(),
            capabilities: capabilities.ok_or(BadSender::Missing(CAPABILITIES))?,
        })
    }
}

impl BadSender {
    /// The error that says so.
    pub(crate) fn error(&self) -> (i64, Value) {
        match self {
            Self::Missing(name) => {
                let message = format!("`_meta` has no `{name}`");
                (
                    super::conversation::INVALID_PARAMS,
                    json!({"code": super::conversation::INVALID_PARAMS, "message": message}),
                )
            }
            Self::Revision(named) => {
                let shown = lodestar_core::name::Excerpt::of(named);
                let message = format!("revision `{shown}` is not spoken without a handshake here");
                let error = json!({
                    "code": UNKNOWN_REVISION,
                    "message": message,
                    "data": {"supported": [INLINE], "requested": shown.to_string()},
                });
                (UNKNOWN_REVISION, error)
            }
        }
    }
}

/// Everything that is spoken here, newest first.
pub(crate) fn supported() -> Vec<&'static str> {
    std::iter::once(INLINE).chain(REVISIONS).collect()
}

/// What every request to a server says of itself.
pub(crate) fn meta(capabilities: &Value, client: &Value) -> Box<str> {
    let client = match client.is_object() {
        true => client.clone(),
        false => json!({"name": "lodestar", "version": env!("CARGO_PKG_VERSION")}),
    };
    let meta = json!({REVISION: INLINE, CLIENT: client, CAPABILITIES: capabilities});
    meta.to_string().into()
}

/// Parameters that say of themselves what `meta` says.
pub(crate) fn with_meta(params: Option<&RawValue>, meta: &str) -> Box<RawValue> {
    let members = Members::of_some(params).unwrap_or_default();
    let own = Members::of_some(members.get("_meta")).unwrap_or_default();
    let more: &RawValue = serde_json::from_str(meta).expect("INVARIANT: written by `meta`");
    let more = Members::of(more).unwrap_or_default();
    let more: Vec<(&str, &str)> = more.iter().map(|(name, raw)| (name, raw.get())).collect();
    let meta = own.write_with(&more);
    let params = members.write_with(&[("_meta", &meta)]);
    RawValue::from_string(params).expect("INVARIANT: an object is written")
}

/// Where a request says how much it wants to be told meanwhile.
pub(crate) const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Parameters that say how much the agent wants to be told meanwhile.
pub(crate) fn with_level(params: &RawValue, level: &str) -> Box<RawValue> {
    let members = Members::of(params).unwrap_or_default();
    let meta = Members::of_some(members.get("_meta")).unwrap_or_default();
    let meta = meta.write_with(&[(LEVEL, &format!("\"{level}\""))]);
    let params = members.write_with(&[("_meta", &meta)]);
    RawValue::from_string(params).expect("INVARIANT: an object is written")
}

/// Who answers.
pub(crate) fn server() -> Value {
    json!({"name": "lodestar", "title": "Lodestar", "version": env!("CARGO_PKG_VERSION")})
}

/// A result with what this revision wants to read in it.
pub(crate) fn complete(method: &str, result: &str) -> String {
    let raw: Result<&RawValue, _> = serde_json::from_str(result);
    let Some(members) = raw.ok().and_then(|raw| Members::of(raw).ok()) else {
        return result.to_owned();
    };
    let mut more: Vec<(&str, &str)> = Vec::new();
    let meta = Members::of_some(members.get("_meta")).unwrap_or_default();
    let meta = meta.get(SERVER).is_none().then(|| {
        let own = server().to_string();
        meta.write_with(&[(SERVER, &own)])
    });
    if let Some(meta) = &meta {
        more.push(("_meta", meta));
    }
    if members.get("resultType").is_none() {
        more.push(("resultType", "\"complete\""));
    }
    if CACHED.contains(&method) {
        if members.get("ttlMs").is_none() {
            more.push(("ttlMs", "0"));
        }
        if members.get("cacheScope").is_none() {
            more.push(("cacheScope", "\"private\""));
        }
    }
    members.write_with(&more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn a_request_says_who_asks_or_is_told_what_is_missing() {
        let whole = raw(&json!({"name": "a", "_meta": {REVISION: INLINE, CAPABILITIES: {}}}));
        assert!(names_itself(Some(&whole)));
        assert_eq!(Sender::of(Some(&whole)).unwrap().client, Value::Null);
        let half = raw(&json!({"_meta": {REVISION: INLINE}}));
        let problem = Sender::of(Some(&half)).unwrap_err();
        assert_eq!(problem, BadSender::Missing(CAPABILITIES));
        let other = raw(&json!({"_meta": {REVISION: "2031-01-01"}}));
        let problem = Sender::of(Some(&other)).unwrap_err();
        assert_eq!(problem.error().0, UNKNOWN_REVISION);
        assert!(!names_itself(Some(&raw(&json!({"text": REVISION})))));
        assert!(!names_itself(None));
    }

    #[test]
    fn what_goes_out_keeps_its_own_words() {
        let params = raw(&json!({"name": "a", "_meta": {"progressToken": 4}}));
        let params = with_meta(Some(&params), &meta(&json!({}), &Value::Null));
        let params: Value = serde_json::from_str(params.get()).unwrap();
        assert_eq!(params["_meta"]["progressToken"], 4);
        assert_eq!(params["_meta"][REVISION], INLINE);
        assert_eq!(params["name"], "a");
    }

    #[test]
    fn a_result_is_complete_unless_it_says_otherwise() {
        let list: Value = serde_json::from_str(&complete("tools/list", "{\"tools\":[]}")).unwrap();
        assert_eq!(list["resultType"], "complete");
        assert_eq!(list["ttlMs"], 0);
        assert_eq!(list["_meta"][SERVER]["name"], "lodestar");
        let result = format!(
            "{{\"resultType\":\"input_required\",\"_meta\":{{\"{SERVER}\":{{\"name\":\"other\"}}}}}}"
        );
        assert_eq!(complete("tools/call", &result), result);
    }
}
