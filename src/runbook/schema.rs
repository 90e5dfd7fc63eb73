//! JSON Schemas of books and of their cases, for editors: they complete and underline while somebody writes. What they can't
//! say (names, ways, evidence before an effect) the linter does.

use serde_json::{Map, Value as Json, json};

use super::book::{End, PARTS};
use super::read::{REDIS_REPORTS, REPORTS};
use crate::model::FindingId;

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
const NAME: &str = "^[a-z][a-z0-9_]*$";
const TIME: &str = "^([0-9]+ *[a-zA-Z]+ *)+$";

/// Of a book.
pub fn book() -> Json {
    object(
        &[
            (
                "runbook",
                said(json!({ "const": "v1" }), "the version of the language"),
            ),
            (
                "id",
                json!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]*$" }),
            ),
            ("title", text("what is wrong, as the person sees it")),
            ("owner", text("who keeps the book")),
            ("inputs", map_of(NAME, &input())),
            ("limits", limits()),
            (
                "steps",
                json!({ "type": "array", "minItems": 1, "items": step() }),
            ),
        ],
        &["runbook", "id", "title", "steps"],
    )
    .draft("A runbook")
}

/// Of a book's cases.
pub fn cases() -> Json {
    let mut ends: Vec<&str> = End::ALL.map(End::word).to_vec();
    ends.extend(["needs_human", "stopped"]);
    let case = object(
        &[
            ("name", text("what the case is")),
            ("set", said(map_of(NAME, &scalar()), "inputs of the book")),
            (
                "steps",
                said(
                    json!({ "type": "object" }),
                    "what each step comes to: a list has one entry each time it is asked",
                ),
            ),
            ("path", list(&text("a step"))),
            ("end", json!({ "enum": ends })),
        ],
        &["name", "end"],
    );
    object(
        &[
            (
                "test",
                said(json!({ "const": "v1" }), "the version of the language"),
            ),
            ("cases", list(&case.0)),
        ],
        &["test", "cases"],
    )
    .draft("The cases of a runbook")
}

fn step() -> Json {
    let condition = text("a condition, in CEL, on steps, inputs, answers and vars");
    let expect = object(
        &[
            ("that", condition.clone()),
            (
                "else",
                said(
                    json!({ "enum": ["warn", "stop"] }),
                    "stop ends the run there",
                ),
            ),
            ("say", text("in words; {{ }} says what was found")),
        ],
        &["that"],
    );
    let mut fields = vec![
        ("id", json!({ "type": "string", "pattern": NAME })),
        ("title", text("a short question or order")),
        ("why", text("why it is asked or done")),
        ("expect", said(list(&expect.0), "what should be found")),
        ("set", map_of(NAME, &condition)),
        ("needs", one_or_more("steps that must have been done")),
        (
            "confirm",
            object(&[("reason", json!({ "const": "required" }))], &[]).0,
        ),
        (
            "unattended",
            text("the answer where nobody is there; without it the run ends there"),
        ),
        ("timeout", time()),
        (
            "on_error",
            json!({ "anyOf": [text("the step to go on with"), map_of("^([0-9A-Z]{5}|\\*)$", &text("the step to go on with"))] }),
        ),
        (
            "on_timeout",
            text("the step to go on with when a poll runs out of time"),
        ),
        (
            "goto",
            text("the step to go on with; it stands further down"),
        ),
        ("end", json!({ "enum": End::ALL.map(End::word) })),
    ];
    fields.extend(kinds(&condition));
    let mut step = object(&fields, &["id"]).0;
    // One kind at most, or an end or a jump.
    let kinds: Vec<Json> = kinds(&condition)
        .iter()
        .map(|(name, _)| json!({ "required": [name] }))
        .collect();
    let none: Vec<Json> = kinds.iter().map(|kind| json!({ "not": kind })).collect();
    step["oneOf"] = Json::Array(
        kinds
            .into_iter()
            .chain([json!({ "allOf": none, "anyOf": [{ "required": ["end"] }, { "required": ["goto"] }] })])
            .collect(),
    );
    step
}

fn kinds(condition: &Json) -> Vec<(&'static str, Json)> {
    let findings: Vec<&str> = FindingId::ALL.iter().map(|id| id.name()).collect();
    let choices = json!({ "type": "object", "minProperties": 2, "additionalProperties": { "type": "string" } });
    let branch = json!({ "anyOf": [
        object(&[("if", condition.clone()), ("goto", text("a step further down"))], &["if", "goto"]).0,
        object(&[("else", text("a step further down"))], &["else"]).0,
    ] });
    let sql = object(
        &[
            (
                "sql",
                text("one SELECT, WITH, TABLE or VALUES; $1, $2 are bound as texts"),
            ),
            ("args", list(&scalar())),
        ],
        &["sql"],
    );
    let report = |of: &[&str]| object(&[("report", json!({ "enum": of }))], &["report"]).0;
    let whom = select();
    let part = said(
        json!({ "enum": PARTS }),
        "the part of the postmortem that the answer belongs into; none: the timeline alone has it",
    );
    let question = object(
        &[("text", text("the question")), ("for", part.clone())],
        &["text"],
    );
    let question = json!({ "anyOf": [text("the question"), question.0] });
    let action = object(
        &[
            ("title", text("what is to be done")),
            ("owner", text("who does it")),
            (
                "due",
                json!({ "type": "string", "pattern": "^(\\+[0-9]+d|[0-9]{4}-[0-9]{2}-[0-9]{2})$" }),
            ),
        ],
        &["title", "owner", "due"],
    );
    vec![
        (
            "ask",
            object(
                &[
                    ("text", text("the question")),
                    ("choices", choices),
                    ("for", part),
                ],
                &["text", "choices"],
            )
            .0,
        ),
        ("query", json!({ "anyOf": [report(&REPORTS), sql.0] })),
        (
            "check",
            said(json!({ "enum": findings }), "a finding of triage"),
        ),
        ("redis", report(&REDIS_REPORTS)),
        (
            "decide",
            said(list(&branch), "the first that holds; the last is an else"),
        ),
        (
            "capture",
            object(
                &[(
                    "include",
                    json!({ "type": "array", "items": { "enum": REPORTS } }),
                )],
                &[],
            )
            .0,
        ),
        (
            "act",
            json!({ "anyOf": [
                object(&[("terminate", whom.clone())], &["terminate"]).0,
                object(&[("cancel", whom)], &["cancel"]).0,
            ] }),
        ),
        (
            "run",
            object(
                &[
                    (
                        "argv",
                        json!({ "type": "array", "minItems": 1, "items": scalar() }),
                    ),
                    (
                        "writes",
                        said(
                            json!({ "type": "boolean" }),
                            "it changes something: it needs a yes",
                        ),
                    ),
                ],
                &["argv", "writes"],
            )
            .0,
        ),
        (
            "poll",
            object(
                &[
                    ("repeat", text("the step that is done again")),
                    ("until", condition.clone()),
                    ("every", time()),
                    ("timeout", time()),
                ],
                &["repeat", "until", "timeout"],
            )
            .0,
        ),
        ("wait", time()),
        (
            "note",
            object(
                &[
                    (
                        "ask",
                        said(
                            json!({ "anyOf": [question.clone(), list(&question)] }),
                            "what people write down",
                        ),
                    ),
                    ("actions", list(&action.0)),
                ],
                &[],
            )
            .0,
        ),
        (
            "include",
            object(
                &[
                    ("book", text("the id of another book")),
                    ("set", map_of(NAME, &scalar())),
                ],
                &["book"],
            )
            .0,
        ),
    ]
}

/// Whom an act is for.
fn select() -> Json {
    let names = |what: &str| said(json!({ "anyOf": [scalar(), list(&scalar())] }), what);
    let yes = |what: &str| said(json!({ "const": true }), what);
    let number = json!({ "type": "integer", "minimum": 1 });
    object(
        &[
            ("state", json!({ "const": "idle in transaction" })),
            ("active", yes("whose statement runs for longer_than")),
            (
                "transaction",
                yes("whose transaction is open for longer_than"),
            ),
            ("roots", yes("who stands in front of others")),
            (
                "longer_than",
                json!({ "type": "string", "pattern": format!("{TIME}|^inputs\\.") }),
            ),
            ("user", names("only these logins")),
            ("application", names("only these applications")),
            ("pid", names("only these pids")),
            ("max", number.clone()),
            (
                "batch",
                object(&[("size", number), ("pause", time())], &[]).0,
            ),
        ],
        &[],
    )
    .0
}

fn input() -> Json {
    object(
        &[
            (
                "type",
                json!({ "enum": ["duration", "number", "string", "bool"] }),
            ),
            ("default", scalar()),
            ("help", text("what it is")),
        ],
        &["type"],
    )
    .0
}

fn limits() -> Json {
    let number = json!({ "type": "integer", "minimum": 1 });
    let effects = object(
        &[
            ("pg.terminate", number.clone()),
            ("pg.cancel", number.clone()),
            ("run", number),
        ],
        &[],
    );
    object(&[("wall", time()), ("effects", effects.0)], &[]).0
}

/// A map with known fields and no others.
struct Object(Json);

impl Object {
    fn draft(self, title: &str) -> Json {
        let mut whole = Map::new();
        whole.insert("$schema".into(), DRAFT.into());
        whole.insert("title".into(), title.into());
        if let Json::Object(fields) = self.0 {
            whole.extend(fields);
        }
        Json::Object(whole)
    }
}

fn object(fields: &[(&str, Json)], required: &[&str]) -> Object {
    let properties: Map<String, Json> = fields
        .iter()
        .map(|(name, field)| ((*name).to_owned(), field.clone()))
        .collect();
    Object(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

fn map_of(name: &str, value: &Json) -> Json {
    json!({ "type": "object", "patternProperties": { name: value }, "additionalProperties": false })
}

fn said(mut schema: Json, what: &str) -> Json {
    schema["description"] = what.into();
    schema
}

fn text(what: &str) -> Json {
    json!({ "type": "string", "minLength": 1, "description": what })
}

fn time() -> Json {
    json!({ "type": "string", "pattern": TIME, "description": "such as 10s or 5m" })
}

fn scalar() -> Json {
    json!({ "type": ["string", "number", "boolean"] })
}

fn list(item: &Json) -> Json {
    json!({ "type": "array", "items": item })
}

fn one_or_more(what: &str) -> Json {
    said(
        json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] }),
        what,
    )
}
