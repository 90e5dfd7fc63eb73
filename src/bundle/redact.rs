//! What must not be seen is taken out before anything is shown or saved, so a saved snapshot shows the same.
//!
//! Each column has its class: numbers, enums and times are kept; statements lose their values; names and free text lose what
//! looks like a secret. Settings are an allow-list already when they are read.

use std::borrow::Cow;

use serde_json::Value;

use super::columns::HOLDS_A_PASSWORD;
use super::known::KnownSecrets;
use crate::model::{Pooler, Redaction, RedactionLevel, Section, Snapshot};
use crate::sql;

/// The header's word before anything was reduced.
pub fn no_redaction(level: RedactionLevel) -> Redaction {
    Redaction {
        rule: match level {
            RedactionLevel::Redacted => sql::REDACTION_RULE.into(),
            RedactionLevel::None => UNREDACTED_RULE.into(),
        },
        level,
        statements_reduced: 0,
        values_masked: 0,
    }
}

/// What `--unredacted` leaves.
const UNREDACTED_RULE: &str = "NOT redacted: values in statements and names are as they were; only statements that \
carry passwords are reduced to their command tag";

/// What became of a statement.
pub enum Reduced {
    Kept,
    /// It carries secrets: only its tag is left.
    Tag(String),
    /// So many values were taken out.
    Masked(String, u32),
}

/// A statement as it may be seen.
pub fn statement(text: &str, level: RedactionLevel) -> Reduced {
    if let Some(tag) = sql::reduce_secret(text) {
        return if tag == text {
            Reduced::Kept
        } else {
            Reduced::Tag(tag)
        };
    }
    if level == RedactionLevel::None {
        return Reduced::Kept;
    }
    let masked = sql::masked(text);
    if masked.text == text {
        Reduced::Kept
    } else {
        Reduced::Masked(masked.text, masked.replaced)
    }
}

/// Takes out of a snapshot what may not be seen.
pub fn redact(snapshot: &mut Snapshot) {
    let level = snapshot.redaction.level;
    let (mut reduced, mut masked) = (0, 0);
    for session in snapshot.activity.get_mut().into_iter().flatten() {
        match session.query.as_deref().map(|text| statement(text, level)) {
            None | Some(Reduced::Kept) => {}
            Some(Reduced::Tag(tag)) => {
                session.query = Some(tag);
                session.query_truncated = false;
                reduced += 1;
            }
            Some(Reduced::Masked(text, count)) => {
                session.query = Some(text);
                masked += count;
            }
        }
        if level == RedactionLevel::None {
            let name = session.application_name.as_mut();
            if let Some(name) = name.filter(|name| sql::has_password(name)) {
                *name = HOLDS_A_PASSWORD.into();
            }
            continue;
        }
        text(&mut session.application_name);
        name(&mut session.user);
        name(&mut session.database);
    }
    snapshot.redaction.statements_reduced += reduced;
    snapshot.redaction.values_masked += masked;
    if level == RedactionLevel::Redacted {
        names(snapshot);
        errors(snapshot);
    }
}

fn names(snapshot: &mut Snapshot) {
    for database in snapshot.databases.get_mut().into_iter().flatten() {
        of_name(&mut database.name);
    }
    for role in snapshot.roles.get_mut().into_iter().flatten() {
        of_name(&mut role.name);
    }
    for relation in snapshot.relations.get_mut().into_iter().flatten() {
        of_name(&mut relation.schema);
        of_name(&mut relation.name);
    }
    // A gid stays as it is: it is what COMMIT PREPARED needs. The gate looks at it.
    for prepared in snapshot.prepared.get_mut().into_iter().flatten() {
        name(&mut prepared.owner);
        name(&mut prepared.database);
    }
    for slot in snapshot.slots.get_mut().into_iter().flatten() {
        of_name(&mut slot.name);
    }
    for setting in snapshot.settings.get_mut().into_iter().flatten() {
        of_name(&mut setting.value);
    }
    for setting in snapshot.overrides.get_mut().into_iter().flatten() {
        of_name(&mut setting.value);
    }
}

/// What stands for a secret that this process was given; in a statement's place, what is left of a statement.
const HIDDEN: &str = "(not shown: a secret that stanch was given)";
const HIDDEN_STATEMENT: &str = "SELECT …";

/// A secret that this process was given isn't kept, wherever it stands: in a name as in a statement.
pub fn leave_out_known(snapshot: &mut Snapshot, known: &KnownSecrets) {
    let Ok(mut all) = serde_json::to_value(&*snapshot) else {
        return;
    };
    if !hide_known(&mut all, None, known) {
        return;
    }
    // Where a word of ours is somebody's password, the gate says so.
    if let Ok(without) = serde_json::from_value(all) {
        *snapshot = without;
    }
}

/// Whether there was one.
fn hide_known(value: &mut Value, field: Option<&str>, known: &KnownSecrets) -> bool {
    match value {
        Value::String(text) => {
            if known.find(text).is_none() {
                return false;
            }
            *text = match field {
                Some("query") => HIDDEN_STATEMENT.into(),
                _ => HIDDEN.into(),
            };
            true
        }
        Value::Array(all) => {
            let mut hidden = false;
            for value in all {
                hidden |= hide_known(value, field, known);
            }
            hidden
        }
        Value::Object(fields) => {
            let mut hidden = false;
            for (name, value) in fields {
                // Cells of rows have no name: what holds nowhere holds for all of them.
                let field = if name == "rows" { "query" } else { name };
                hidden |= hide_known(value, Some(field), known);
            }
            hidden
        }
        _ => false,
    }
}

/// The same for a look at the pooler.
pub fn redact_pooler(look: &mut Section<Pooler>) {
    match look {
        Section::Collected(pooler) => {
            for pool in &mut pooler.pools {
                of_name(&mut pool.database);
                of_name(&mut pool.user);
            }
        }
        Section::Failed { message, .. } => of_text(message),
        Section::Skipped(_) => {}
    }
}

/// What the server said of a part that failed may hold values.
fn errors(snapshot: &mut Snapshot) {
    fn of<T>(section: &mut Section<T>) {
        if let Section::Failed { message, .. } = section {
            of_text(message);
        }
    }
    of(&mut snapshot.server);
    of(&mut snapshot.login);
    of(&mut snapshot.activity);
    of(&mut snapshot.databases);
    of(&mut snapshot.roles);
    of(&mut snapshot.locks);
    of(&mut snapshot.blocking);
    of(&mut snapshot.relations);
    of(&mut snapshot.prepared);
    of(&mut snapshot.settings);
    of(&mut snapshot.overrides);
    of(&mut snapshot.slots);
    snapshot.queries.values_mut().for_each(of);
}

fn text(text: &mut Option<String>) {
    if let Some(text) = text {
        of_text(text);
    }
}

fn name(name: &mut Option<String>) {
    if let Some(name) = name {
        of_name(name);
    }
}

fn of_text(text: &mut String) {
    if let Cow::Owned(shown) = sql::redacted(text) {
        *text = shown;
    }
}

fn of_name(name: &mut String) {
    if let Cow::Owned(shown) = sql::name_redacted(name) {
        *name = shown;
    }
}

/// Every text in a report of Redis: names of keys, queues and jobs are strangers' as well.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => of_text(text),
        Value::Array(all) => all.iter_mut().for_each(redact_value),
        Value::Object(fields) => {
            // Bytes that are no text stand there once more.
            let shown = fields.get("key").and_then(Value::as_str);
            let hides = shown.is_some_and(|key| matches!(sql::redacted(key), Cow::Owned(_)));
            if hides {
                fields.remove("key_base64");
            }
            for (name, field) in fields.iter_mut() {
                if name != "key_base64" {
                    redact_value(field);
                }
            }
        }
        _ => {}
    }
}
