//! The OpenAPI document, made of the routes; and the shapes of their answers.

use oxiray_observe::Resource;
use serde_json::{Map, Value, json};

use crate::routes::{self, Answer, Kind, Parameter, Place, Route};

/// The document.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for (path, route, resource) in routes::all().iter().flat_map(written_out) {
        let method = if route.is_change { "post" } else { "get" };
        let mut methods = json!({ method: operation(route, resource) });
        if route.path.ends_with("/{id}") && resource == Some(Resource::Jobs) {
            // Ray's path, in `jobs`.
            methods["delete"] = operation(route, resource);
            methods["delete"]["summary"] = json!("Forgets a job that was handed in and has ended.");
        }
        paths.insert(path, methods);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Oxiray dashboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What runs in a session or a cluster. Every request needs the token that \
                            `oxiray dashboard` prints. Times are in milliseconds since 1970, ids in \
                            lower-case hexadecimal.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{ "token": [] }],
    })
}

/// A route about several resources is a path for each: their columns differ.
fn written_out(route: &Route) -> Vec<(String, &Route, Option<Resource>)> {
    let names = route.parameters.iter().find_map(|parameter| match parameter.kind {
        Kind::OneOf(names) if parameter.name == "resource" => Some(names),
        _ => None,
    });
    let Some(names) = names else {
        return vec![(route.path.to_owned(), route, None)];
    };
    let path = |name: &str| route.path.replace("{resource}", name);
    names.iter().map(|name| (path(name), route, name.parse().ok())).collect()
}

fn operation(route: &Route, resource: Option<Resource>) -> Value {
    let (media, schema) = match route.answer {
        Answer::Json(schema) => ("application/json", schema()),
        Answer::Other(media) => (media, json!({ "type": "string" })),
    };
    let parameters = route.parameters.iter().filter(|parameter| parameter.name != "resource");
    let parameters: Vec<Value> =
        parameters.map(|parameter| describe(parameter, resource)).collect();
    json!({
        "summary": route.about,
        "parameters": parameters,
        "responses": {
            "200": { "description": "The answer.", "content": { media: { "schema": schema } } },
            "default": {
                "description": "Why there is none, in a sentence: 400 what was given makes no \
                                sense, 401 the token is missing or wrong, 403 the request comes \
                                from elsewhere, 404 it is not there, 409 more \
                                of the id is needed, 429 too many at a time, 501 \
                                something is to be installed, 503 the session does not answer.",
                "content": { "application/json": { "schema": error() } },
            },
        },
    })
}

fn describe(parameter: &Parameter, resource: Option<Resource>) -> Value {
    let columns: Vec<&str> = resource.into_iter().flat_map(Resource::list_columns).collect();
    let schema = match parameter.kind {
        Kind::Text => json!({ "type": "string", "pattern": "^[^\\x00]*$" }),
        Kind::Filter => {
            let conditions: Vec<String> = columns.iter().map(|c| condition(resource, c)).collect();
            json!({ "type": "string", "pattern": format!("^({})", conditions.join("|")) })
        }
        Kind::Sort => {
            json!({ "type": "string", "pattern": format!("^-?({})$", columns.join("|")) })
        }
        Kind::Id => json!({ "type": "string", "pattern": "^[0-9a-f]{1,64}$" }),
        Kind::Integer(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Milliseconds => json!({ "type": "number" }),
        Kind::OneOf(names) => json!({ "type": "string", "enum": names }),
    };
    let schema = match parameter.is_repeated {
        true => json!({ "type": "array", "items": schema }),
        false => schema,
    };
    let (place, is_required) = match parameter.place {
        Place::Path => ("path", true),
        Place::Query => ("query", false),
    };
    json!({
        "name": parameter.name,
        "in": place,
        "required": is_required,
        "description": parameter.about,
        "schema": schema,
    })
}

/// A condition on a column, as a pattern: some have few values.
fn condition(resource: Option<Resource>, column: &str) -> String {
    match resource.and_then(|resource| resource.values(column)) {
        Some(values) => format!("{column}!?=({})$", values.join("|")),
        None => format!("{column}!?="),
    }
}

fn object(properties: Value) -> Value {
    let names: Vec<&String> =
        properties.as_object().into_iter().flatten().map(|(n, _)| n).collect();
    json!({ "type": "object", "required": names, "properties": properties })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn string() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn integer() -> Value {
    json!({ "type": "integer" })
}

fn counts() -> Value {
    json!({ "type": "object", "additionalProperties": integer() })
}

fn amounts() -> Value {
    json!({ "type": "object", "additionalProperties": number() })
}

fn error() -> Value {
    object(json!({ "error": string() }))
}

pub(crate) fn anything() -> Value {
    json!({})
}

pub(crate) fn row() -> Value {
    json!({ "type": "object" })
}

pub(crate) fn page() -> Value {
    object(json!({ "total": integer(), "filtered": integer(), "rows": list(row()) }))
}

pub(crate) fn text() -> Value {
    object(json!({ "text": string() }))
}

pub(crate) fn svg() -> Value {
    object(json!({ "svg": string() }))
}

pub(crate) fn task_log() -> Value {
    let printed = object(json!({ "text": string(), "truncated": { "type": "boolean" } }));
    object(json!({ "out": printed, "err": printed }))
}

pub(crate) fn cluster() -> Value {
    object(json!({
        "session": string(),
        "address": string(),
        "python_version": string(),
        "oxiray_version": string(),
        "ray_version": string(),
        "started_ms": { "type": ["number", "null"] },
        "nodes": list(row()),
        "resources_total": amounts(),
        "resources_available": amounts(),
        "store_used": integer(),
        "store_size": integer(),
        "tasks": counts(),
        "actors": counts(),
        "jobs": counts(),
        "placement_groups": counts(),
        "waiting": list(string()),
        "missing": list(string()),
    }))
}

pub(crate) fn summary() -> Value {
    let kind = json!({ "type": ["string", "null"] });
    let row = json!({ "name": string(), "type": kind, "states": counts() });
    object(json!({ "rows": list(object(row)), "total": integer() }))
}

pub(crate) fn timeline() -> Value {
    let row = json!({
        "node_id": string(),
        "worker_id": { "type": ["string", "null"] },
        "pid": integer(),
        "lane": integer(),
        "label": string(),
        // Start, duration, index of the name, how many, state, task or null if they are many.
        "spans": list(json!({ "type": "array", "minItems": 6, "maxItems": 6 })),
    });
    object(json!({
        "from": number(),
        "to": number(),
        "first": number(),
        "last": number(),
        "names": list(string()),
        "rows": list(object(row)),
    }))
}

pub(crate) fn log_files() -> Value {
    let file = json!({
        "node_id": string(),
        "file": string(),
        "size": integer(),
        "pid": { "type": ["integer", "null"] },
    });
    object(json!({ "files": list(object(file)) }))
}

pub(crate) fn piece() -> Value {
    object(json!({
        "part": string(),
        "offset": integer(),
        "next": integer(),
        "size": integer(),
        "text": string(),
        "is_after_loss": { "type": "boolean" },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_names_is_described() {
        for route in routes::all() {
            let in_path: Vec<&str> = route
                .path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
                .collect();
            let described: Vec<&str> = route
                .parameters
                .iter()
                .filter(|parameter| parameter.place == Place::Path)
                .map(|parameter| parameter.name)
                .collect();
            assert_eq!(in_path, described, "{}", route.path);
        }
        let document = document();
        let filter = &document["paths"]["/api/jobs"]["get"]["parameters"][0];
        assert_eq!(filter["name"], "filter");
        assert!(filter["schema"]["items"]["pattern"].as_str().unwrap().contains("entrypoint"));
        assert!(document["paths"].get("/api/{resource}").is_none());
        assert!(document["paths"]["/api/summary/actors"].is_object());
    }
}
