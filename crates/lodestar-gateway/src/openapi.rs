//! The API as a document: OpenAPI 3.1, made of the routes and of the types that they read and write.

mod page;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::http::{Face, Route, Takes, Who, routes};
use crate::schema::{As, Spelled};
use crate::wire::Failure;

use lodestar_core::id::{AccountId, BattleId, DeviceId, RunId, SubmissionId, TermsId, TokenId};

/// The document of the public face.
pub fn document() -> Value {
    of(&routes(), Face::Public)
}

/// The document of the platform's, which is served on the service's own socket.
pub fn platform_document() -> Value {
    of(&routes(), Face::Platform)
}

/// Both as a page of the reference, in Markdown.
pub fn reference_page() -> String {
    page::page(&document(), &platform_document())
}

fn of(routes: &[Route], face: Face) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes.iter().filter(|route| route.face == face) {
        let path = paths.entry(route.path.to_owned()).or_insert(json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route, &mut schemas);
    }
    let failure = schemas.subschema_for::<Failure>();
    let components = schemas.take_definitions(true);
    let refused = |words: &str| {
        json!({
            "description": words,
            "content": {"application/json": {"schema": failure}},
        })
    };
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lodestar gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Devices that earn trust, runs that are proved. Every refusal has a code of one closed list.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {
                "Refused": refused("The request is refused; `error.code` says why."),
                "Unavailable": refused("The service cannot answer now; nothing took effect unless the code says so."),
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An owner's, a device's, or one to enrol a device."},
            },
        },
    })
}

fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = route
        .parameters()
        .map(|name| {
            json!({
                "name": name,
                "in": "path",
                "required": true,
                "schema": parameter(name, schemas),
            })
        })
        .collect();
    if route.lists {
        let limit = crate::http::MOST;
        parameters.push(json!({
            "name": "after", "in": "query", "required": false,
            "description": "Where the page begins: what the one before gave as `next`.",
            "schema": {"type": "string", "minLength": 1},
        }));
        parameters.push(json!({
            "name": "limit", "in": "query", "required": false,
            "description": "How many there are on it at most.",
            "schema": {"type": "integer", "minimum": 1, "maximum": limit, "default": limit},
        }));
    }
    let answer = (route.answers)(schemas);
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.does,
        "tags": [tag(route)],
        "parameters": parameters,
        "responses": {
            route.status.to_string(): {
                "description": "Done.",
                "content": {"application/json": {"schema": answer}},
            },
            "4XX": {"$ref": "#/components/responses/Refused"},
            "5XX": {"$ref": "#/components/responses/Unavailable"},
        },
    });
    let token = match route.who {
        Who::Anybody | Who::Platform => None,
        Who::Owner => Some("An owner's token."),
        Who::OwnerOrDevice => Some("An owner's token, or the device's."),
        Who::OwnerOrEnrol => Some("An owner's token, or one to enrol a device."),
        Who::Device => Some("The device's token."),
    };
    if let Some(token) = token {
        operation["security"] = json!([{"token": []}]);
        operation["description"] = token.into();
    }
    match route.takes {
        Takes::Nothing => {}
        Takes::Json(schema) => {
            operation["requestBody"] = json!({
                "required": true,
                "content": {"application/json": {"schema": schema(schemas)}},
            });
        }
        Takes::Bytes(what) => {
            operation["requestBody"] = json!({
                "required": true,
                "description": what,
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            });
        }
    }
    operation
}

/// What stands in a path at a name.
fn parameter(name: &str, schemas: &mut SchemaGenerator) -> schemars::Schema {
    fn of<T: Spelled>(schemas: &mut SchemaGenerator) -> schemars::Schema {
        schemas.subschema_for::<As<T>>()
    }
    match name {
        "account" => of::<AccountId>(schemas),
        "battle" => of::<BattleId>(schemas),
        "device" => of::<DeviceId>(schemas),
        "run" => of::<RunId>(schemas),
        "submission" => of::<SubmissionId>(schemas),
        "terms" => of::<TermsId>(schemas),
        "token" => of::<TokenId>(schemas),
        _ => schemars::json_schema!({"type": "string"}),
    }
}

/// A name that is the route's own: the method and the words of the path.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.to_ascii_lowercase();
    for part in route.path.split('/').skip(2) {
        let part = part.trim_matches(['{', '}']).replace(['.', '-'], "_");
        id.push('_');
        id.push_str(&part);
    }
    id
}

fn tag(route: &Route) -> &'static str {
    let part = route.path.split('/').nth(2).unwrap_or_default();
    match part {
        "devices" => "devices",
        "runs" => "runs",
        "submissions" | "battles" => "submissions",
        "platform" => "platform",
        "health" | "openapi.json" => "service",
        _ => "account",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_there_once_with_a_name_of_its_own() {
        let routes = routes();
        let mut names = BTreeSet::new();
        for (face, document) in [
            (Face::Public, document()),
            (Face::Platform, platform_document()),
        ] {
            for route in routes.iter().filter(|route| route.face == face) {
                let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
                assert_eq!(operation["summary"], route.does, "{route:?}");
                assert!(names.insert(operation_id(route)), "{route:?}");
            }
            let paths = document["paths"].as_object().unwrap();
            let written: usize = paths
                .values()
                .map(|path| path.as_object().unwrap().len())
                .sum();
            let meant = routes.iter().filter(|route| route.face == face).count();
            assert_eq!(written, meant);
        }
    }

    #[test]
    fn everything_that_is_referred_to_is_there() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        if let ("$ref", Value::String(to)) = (name.as_str(), value) {
                            found.push(to.clone());
                        }
                        references(value, found);
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        for document in [document(), platform_document()] {
            let mut found = Vec::new();
            references(&document, &mut found);
            assert!(!found.is_empty());
            for reference in found {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
        }
    }

    #[test]
    fn the_platform_has_no_route_where_others_can_reach_it() {
        let document = document().to_string();
        assert!(!document.contains("/v1/platform"));
    }

    #[test]
    fn what_is_asked_has_no_unknown_fields() {
        let document = document();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for name in [
            "RegisterDevice",
            "Stated",
            "HandInOrder",
            "RegisterRun",
            "Attest",
            "HandIn",
        ] {
            assert_eq!(schemas[name]["additionalProperties"], false, "{name}");
        }
    }
}
