//! What a journal says of secrets: that there was one. What a server, a command or a person told may hold a password.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::event::Event;
use crate::sql;

/// What stands for a value whose name says that it is secret.
const HIDDEN: &str = "(not shown: a secret value)";

/// A text as it is journaled.
pub fn shown(text: &str) -> String {
    sql::without_credentials(text).into_owned()
}

/// The same of an input's value, which its name may call a secret.
pub fn shown_value(name: &str, value: &str) -> String {
    let pair = format!("{name}={value}");
    match sql::without_credentials(&pair).strip_prefix(&format!("{name}=")) {
        Some(value) => value.to_owned(),
        None => HIDDEN.to_owned(),
    }
}

/// Something was taken out of it: it isn't what it was.
pub fn is_hidden(value: &str) -> bool {
    value.contains("(not shown: ")
}

impl Event {
    /// As it is journaled. What is done again by it (signals, settings) stays as it is: it holds no text of others.
    pub(super) fn shown(mut self) -> Self {
        match &mut self {
            Self::Book { inputs, .. } => shown_inputs(inputs),
            Self::Computed { vars, .. } => {
                for (name, value) in vars.iter_mut() {
                    if let Json::String(text) = value {
                        *text = shown_value(name, text);
                    }
                }
            }
            Self::Expectation { say, .. } => {
                if let Some(say) = say {
                    *say = shown(say);
                }
            }
            Self::Note { question, text, .. } => {
                *question = shown(question);
                *text = shown(text);
            }
            Self::Skipped { reason: text, .. }
            | Self::BookEnd { end: text }
            | Self::Stopped { why: text }
            | Self::NotConfirmed { why: text }
            | Self::CommandResult { why: text, .. }
            | Self::EffectSeen { seen: text, .. }
            | Self::BatchEnd { measured: text } => *text = shown(text),
            Self::RunStart { .. }
            | Self::Resumed { .. }
            | Self::StepStart { .. }
            | Self::Answer { .. }
            | Self::Captured { .. }
            | Self::StepEnd { .. }
            | Self::Candidates { .. }
            | Self::Confirmed { .. }
            | Self::EffectIntent { .. }
            | Self::EffectResult { .. }
            | Self::RunEnd { .. } => {}
        }
        self
    }
}

fn shown_inputs(inputs: &mut BTreeMap<String, String>) {
    for (name, value) in inputs.iter_mut() {
        *value = shown_value(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_secret_by_their_look_or_their_name() {
        let url = shown_value("to", "postgres://u:hunter60x@h/d");
        assert_eq!(url, "postgres://u:(not shown: a password in a URL)@h/d");
        for (name, value) in [
            ("pw", "hunter60x"),
            ("db_password", "x y"),
            ("api_token", "a,b"),
        ] {
            let hidden = shown_value(name, value);
            assert!(is_hidden(&hidden) && !hidden.contains(value), "{hidden}");
            assert_eq!(shown_value(name, &hidden), hidden);
        }
        for (name, value) in [
            ("application", "web"),
            ("limit", "40"),
            ("by", "alice@example.com"),
            ("gid", "550e8400-e29b-41d4-a716-446655440000"),
        ] {
            assert_eq!(shown_value(name, value), value);
        }
    }
}
