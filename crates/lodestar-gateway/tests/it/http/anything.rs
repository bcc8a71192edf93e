//! Whatever the document allows, and what it does not: thousands of requests made out of it, with every kind of
//! token, and none that the service fails at. What is answered is what the document says.

use std::collections::BTreeMap;

use lodestar_core::digest::sha256;
use lodestar_gateway::code::Code;
use lodestar_gateway::{openapi, wire};
use serde_json::{Map, Value, json};

use crate::lab::Lab;
use crate::world::on_both;

/// Numbers that only look like chance: a failure comes again.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn of<'a, T: ?Sized>(&mut self, some: &[&'a T]) -> &'a T {
        some[self.below(some.len())]
    }

    fn hex(&mut self, digits: usize) -> String {
        (0..digits)
            .map(|_| format!("{:x}", self.below(16)))
            .collect()
    }
}

/// What nobody would send in earnest.
fn odd(chance: &mut Chance) -> Value {
    let texts = [
        "",
        "'; DROP TABLE devices; --",
        "\u{0}",
        "\u{202e}\u{1b}[31m",
        "../../etc/passwd",
        "1 OR 1=1",
        "${jndi:ldap://x}",
        "\u{fffd}\u{10ffff}",
    ];
    match chance.below(9) {
        0 => Value::Null,
        1 => json!(chance.next()),
        2 => json!(-1.5e300),
        3 => json!(true),
        4 => json!([[], {}, [null]]),
        5 => json!({"a": {"b": {"c": []}}}),
        6 => json!("x".repeat(chance.below(5000))),
        _ => json!(chance.of(&texts)),
    }
}

struct Made<'a> {
    document: &'a Value,
    /// Ids that there are, by what they start with.
    there: &'a BTreeMap<&'static str, String>,
}

impl<'a> Made<'a> {
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            None => schema,
            Some(to) => self.resolve(self.document.pointer(to.trim_start_matches('#')).unwrap()),
        }
    }

    /// Something that fits a schema; or mostly.
    fn value(&self, schema: &'a Value, chance: &mut Chance, wild: bool) -> Value {
        if wild && chance.one_in(12) {
            return odd(chance);
        }
        let schema = self.resolve(schema);
        for alternatives in ["anyOf", "oneOf"] {
            if let Some(list) = schema[alternatives].as_array() {
                let at = chance.below(list.len());
                return self.value(&list[at], chance, wild);
            }
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(words) = schema["enum"].as_array() {
            return words[chance.below(words.len())].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[chance.below(kinds.len())].as_str(),
            kind => kind.as_str(),
        };
        match kind {
            Some("object") => {
                let mut made = Map::new();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    let required = schema["required"].as_array();
                    let needed = required.is_some_and(|all| all.contains(&json!(name)));
                    if (needed && !(wild && chance.one_in(20))) || chance.one_in(2) {
                        made.insert(name.clone(), self.value(property, chance, wild));
                    }
                }
                if wild && chance.one_in(20) {
                    made.insert("more".to_owned(), odd(chance));
                }
                Value::Object(made)
            }
            Some("array") => {
                let count = chance.below(3);
                let items = (0..count).map(|_| self.value(&schema["items"], chance, wild));
                Value::Array(items.collect())
            }
            Some("boolean") => json!(chance.one_in(2)),
            Some("integer") => json!(chance.below(1000)),
            Some("null") => Value::Null,
            _ => json!(self.text(schema, chance)),
        }
    }

    fn text(&self, schema: &Value, chance: &mut Chance) -> String {
        let pattern = schema["pattern"].as_str().unwrap_or_default();
        if let Some(rest) = pattern.strip_prefix('^')
            && let Some((prefix, _)) = rest.split_once("_[0-9a-f]{8}")
        {
            return match self.there.get(prefix) {
                Some(known) if !chance.one_in(3) => known.clone(),
                _ => format!(
                    "{prefix}_{}-{}-7{}-8{}-{}",
                    chance.hex(8),
                    chance.hex(4),
                    chance.hex(3),
                    chance.hex(3),
                    chance.hex(12)
                ),
            };
        }
        match pattern {
            "^[0-9a-f]{64}$" => chance.hex(64),
            "^[0-9a-f]{32}$" => chance.hex(32),
            "^ed25519:[0-9a-f]{64}$" => format!("ed25519:{}", chance.hex(64)),
            "" if schema["contentEncoding"] == "base64" => "e30=".to_owned(),
            "" => chance
                .of(&["", "a", "text with blanks", "\u{1f980}"])
                .to_owned(),
            _ => format!("n{}", chance.hex(6)),
        }
    }
}

/// Whether an answer is what the document says.
fn fits(value: &Value, schema: &Value, document: &Value, at: &str) -> Result<(), String> {
    if let Some(to) = schema["$ref"].as_str() {
        let known = document.pointer(to.trim_start_matches('#'));
        return fits(value, known.ok_or("a reference to nothing")?, document, at);
    }
    for alternatives in ["anyOf", "oneOf"] {
        if let Some(list) = schema[alternatives].as_array() {
            let fitting = list
                .iter()
                .any(|one| fits(value, one, document, at).is_ok());
            return fitting
                .then_some(())
                .ok_or_else(|| format!("{at}: none of them"));
        }
    }
    if let Some(only) = schema.get("const") {
        return (value == only)
            .then_some(())
            .ok_or_else(|| format!("{at}: {value}"));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words
            .contains(value)
            .then_some(())
            .ok_or_else(|| format!("{at}: {value}"));
    }
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        _ => true,
    };
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        Value::String(kind) => vec![kind.as_str()],
        _ => return Ok(()),
    };
    if !kinds.iter().any(|kind| is(kind)) {
        return Err(format!("{at}: {value} is none of {kinds:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if value.is_object() && value.get(name).is_none() {
            return Err(format!("{at}: `{name}` is missing"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(known) => fits(member, known, document, &format!("{at}.{name}"))?,
            None if schema["properties"].is_object() => {
                return Err(format!("{at}: `{name}` is not in the document"));
            }
            None => {}
        }
    }
    for item in value.as_array().into_iter().flatten() {
        fits(item, &schema["items"], document, &format!("{at}[]"))?;
    }
    Ok(())
}

#[tokio::test]
async fn nothing_that_is_made_out_of_the_document_makes_the_service_fail() {
    on_both(|place| async move {
        let lab = Lab::approved(place).await;
        let made = lab.make(true).await;
        lab.machine.ship(made.run.id, &made.ran).await;
        let submission = lab
            .owner
            .client
            .hand_in(&wire::HandIn {
                content: sha256(b"work"),
                run: None,
                battle: None,
            })
            .await
            .unwrap();
        let enrol = wire::MakeToken {
            kind: wire::TokenKind::Enrol,
            device: None,
        };
        let enrol = lab.owner.client.make_token(&enrol).await.unwrap();
        let there = BTreeMap::from([
            ("acc", lab.owner.account.to_string()),
            ("dev", lab.machine.id.to_string()),
            ("run", made.run.id.to_string()),
            ("agt", lab.agent.to_string()),
            ("rnr", lab.runner.to_string()),
            ("trm", lab.terms.to_string()),
            ("sub", submission.id.to_string()),
        ]);
        let document = openapi::document();
        let maker = Made {
            document: &document,
            there: &there,
        };
        let mut chance = Chance(0x5eed_1234_5678_9abc);
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        let tokens = [
            Some(lab.owner.token.as_str()),
            Some(lab.owner.token.as_str()),
            Some(lab.machine.token.as_str()),
            Some(lab.machine.token.as_str()),
            Some(enrol.token.as_str()),
            Some("lsgw_0"),
            None,
        ];
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                for round in 0..30 {
                    let wild = round % 3 > 0;
                    // An owner's own tokens are not for chance to take back.
                    if method == "delete" && !wild {
                        continue;
                    }
                    let mut target = path.clone();
                    for parameter in operation["parameters"].as_array().unwrap() {
                        let name = parameter["name"].as_str().unwrap();
                        let value = maker.value(&parameter["schema"], &mut chance, wild);
                        let text = match value {
                            Value::String(text) => text,
                            other => other.to_string(),
                        };
                        let text: String = text
                            .bytes()
                            .map(|byte| match byte {
                                b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => {
                                    (byte as char).to_string()
                                }
                                byte => format!("%{byte:02X}"),
                            })
                            .collect();
                        match parameter["in"].as_str() {
                            Some("path") => target = target.replace(&format!("{{{name}}}"), &text),
                            _ if chance.one_in(3) => {
                                let mark = if target.contains('?') { '&' } else { '?' };
                                target.push_str(&format!("{mark}{name}={text}"));
                            }
                            _ => {}
                        }
                    }
                    let content = operation["requestBody"]["content"].as_object();
                    let content = content.and_then(|content| content.iter().next());
                    let (form, body) = match content {
                        None => (None, Vec::new()),
                        Some((form, of)) if form == "application/json" => {
                            let body = maker.value(&of["schema"], &mut chance, wild);
                            (Some(form.as_str()), body.to_string().into_bytes())
                        }
                        Some((form, _)) => {
                            let bytes = (0..chance.below(200)).map(|_| chance.next() as u8);
                            (Some(form.as_str()), bytes.collect())
                        }
                    };
                    let token = tokens[chance.below(tokens.len())];
                    let verb = method.to_uppercase();
                    let answer = lab.world.raw(&verb, &target, token, form, body).await;
                    let shown = || format!("{verb} {target}: {answer:?}");
                    assert!(answer.status < 500, "{}", shown());
                    let known = &operation["responses"][answer.status.to_string()];
                    match answer.code() {
                        Some(code) => *counts.entry(code.to_string()).or_default() += 1,
                        None => {
                            let schema = &known["content"]["application/json"]["schema"];
                            assert!(!schema.is_null(), "{}", shown());
                            let fit = fits(&answer.body, schema, &document, "");
                            assert_eq!(fit, Ok(()), "{}", shown());
                            *counts.entry(answer.status.to_string()).or_default() += 1;
                        }
                    }
                }
            }
        }
        let all: u32 = counts.values().sum();
        println!("{all} requests made out of the document: {counts:?}");
        assert!(counts.len() > 10, "they came to many things: {counts:?}");
        for code in [Code::InvalidBody, Code::InvalidParameter, Code::TokenKind] {
            assert!(counts.contains_key(code.as_str()), "{code}: {counts:?}");
        }
        assert_eq!(*lab.world.said.lock().unwrap(), Vec::<String>::new());
        assert!(lab.owner.client.account().await.is_ok());
    })
    .await;
}
