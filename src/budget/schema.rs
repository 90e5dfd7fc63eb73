//! A JSON Schema of `budget.yaml`, for editors.

use serde_json::{Map, Value as Json, json};

use super::libraries::library_names;
use super::sources::POOL;

/// Of the whole file.
pub fn budget() -> Json {
    let number = json!({ "type": "integer", "minimum": 0, "maximum": 1_000_000_000 });
    let text = json!({ "type": "string", "minLength": 1 });
    let surge = json!({ "anyOf": [number, { "type": "string", "pattern": "^[0-9.]+%$" }] });
    let plain = json!({ "type": ["string", "number", "boolean"] });
    let pool: Vec<(&str, Json)> = POOL.iter().map(|name| (*name, plain.clone())).collect();
    let numbers = json!({ "type": "object", "additionalProperties": number });
    let server = object(&[
        ("max_connections", number.clone()),
        ("superuser_reserved_connections", number.clone()),
        ("reserved_connections", number.clone()),
        ("provider_reserve", number.clone()),
        ("headroom", numbers.clone()),
        ("roles", numbers.clone()),
        ("databases", numbers),
        ("warn_at", json!({ "type": ["string", "number"] })),
        ("replica_of", text.clone()),
        ("conf", text.clone()),
        (
            "settings",
            json!({ "type": "object", "additionalProperties": plain }),
        ),
    ]);
    let workload = object(&[
        ("target", text.clone()),
        ("manifest", text.clone()),
        ("role", text.clone()),
        ("database", text.clone()),
        ("library", json!({ "enum": library_names() })),
        ("pods", number.clone()),
        ("processes", number.clone()),
        ("connections", number.clone()),
        ("surge", surge.clone()),
        ("drain", number.clone()),
        ("sidekiq", text.clone()),
        ("database_yml", text.clone()),
        ("pool", object(&pool)),
    ]);
    let pooler = object(&[
        ("target", text.clone()),
        ("pgbouncer", text.clone()),
        ("pods", number),
        ("surge", surge),
        ("session_features", json!({ "type": ["boolean", "array"] })),
    ]);
    let mut suppression = object(&[
        ("rule", text.clone()),
        ("about", text.clone()),
        ("reason", text),
        (
            "until",
            json!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" }),
        ),
    ]);
    suppression["required"] = json!(["rule", "reason", "until"]);
    let named = |entry: Json| json!({ "type": ["object", "null"], "additionalProperties": entry });
    let mut whole = object(&[
        ("servers", named(server)),
        ("workloads", named(workload)),
        ("poolers", named(pooler)),
        ("suppress", json!({ "type": "array", "items": suppression })),
    ]);
    whole["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    whole["title"] = "A connection budget".into();
    whole
}

fn object(fields: &[(&str, Json)]) -> Json {
    let properties: Map<String, Json> = fields
        .iter()
        .map(|(name, field)| ((*name).to_owned(), field.clone()))
        .collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
