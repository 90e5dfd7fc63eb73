//! Texts of a book, with `{{ }}` for what was found: for people's eyes only, never part of a statement or a command.

use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value as Json};

use super::cond::{ROOTS, Scope};
use super::fault::{Fault, Place, meant};
use crate::sql;

/// A text that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub text: String,
    pub place: Place,
}

impl Text {
    /// # Errors
    /// Where its template isn't one.
    pub fn read(text: &str, place: Place) -> Result<Self, Fault> {
        if text.contains("{%") {
            return Err(Fault::new(
                place,
                "a text says what was found: {{ … }}, without {% %}",
            ));
        }
        let read = Self {
            text: text.to_owned(),
            place,
        };
        if read.is_template() {
            environment()
                .template_from_str(text)
                .map_err(|error| Fault::new(place, format!("not a template: {error}")))?;
        }
        Ok(read)
    }

    fn is_template(&self) -> bool {
        self.text.contains("{{") || self.text.contains("{#")
    }

    /// The names that it says: the root, and the name after it where there is one.
    pub fn names(&self) -> Vec<(String, Option<String>)> {
        if !self.is_template() {
            return Vec::new();
        }
        let environment = environment();
        let Ok(template) = environment.template_from_str(&self.text) else {
            return Vec::new();
        };
        let mut names: Vec<(String, Option<String>)> = template
            .undeclared_variables(true)
            .into_iter()
            .map(|name| {
                let mut parts = name.split('.').map(str::to_owned);
                (parts.next().unwrap_or_default(), parts.next())
            })
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// A root of another spelling, where `own` (what the step itself found) can't be meant.
    pub fn stranger(&self, own: bool) -> Option<Fault> {
        let names = self.names();
        let (root, _) = names
            .iter()
            .find(|(root, name)| !(ROOTS.contains(&root.as_str()) || own && name.is_none()))?;
        let fault = Fault::new(self.place, format!("{root:?} is nothing that there is"));
        Some(match meant(root, &ROOTS) {
            Some(root) => fault.hint(format!("did you mean {root:?}?")),
            None => fault.hint("steps.NAME, inputs.NAME, answers.NAME, vars.NAME"),
        })
    }

    /// As it is shown, without what is secret in what was found; `own` is what the step itself found, whose fields may be said without its name. What isn't known is
    /// said to be that: a text never ends a run.
    pub fn told(&self, scope: &Scope, own: Option<&Json>) -> String {
        if !self.is_template() {
            return self.text.clone();
        }
        let mut context: Map<String, Json> = Map::new();
        if let Some(Json::Object(fields)) = own {
            // Fields of the parts first, so that the report's own win.
            for part in fields.values().filter_map(Json::as_object) {
                context.extend(part.clone());
            }
            context.extend(fields.clone());
        }
        for (name, map) in scope.roots() {
            context.insert(name.into(), Json::Object(map.clone()));
        }
        let rendered = environment().render_str(&self.text, minijinja::value::Serde(&context));
        match rendered {
            Ok(text) => sql::without_credentials(&text).into_owned(),
            Err(_) => format!("{} (not all of it is known)", self.text),
        }
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Text {
        Text::read(text, Place::default()).expect("a text")
    }

    #[test]
    fn a_text_says_what_was_found_and_never_guesses() {
        let mut scope = Scope::default();
        let found = serde_json::json!({ "capacity": { "used_pct": 91.5 }, "groups": [] });
        scope.steps.insert("picture".into(), found.clone());
        let told = |text: &str| read(text).told(&scope, Some(&found));
        assert_eq!(told("plain { text }"), "plain { text }");
        assert_eq!(told("{{ used_pct }} %"), "91.5 %");
        assert_eq!(told("{{ steps.picture.capacity.used_pct }}"), "91.5");
        assert!(told("{{ steps.other.x }}").contains("not all of it is known"));
        let found = serde_json::json!({ "stdout": "password=hunter60x by alice@example.com" });
        let told = read("got {{ stdout }}").told(&Scope::default(), Some(&found));
        assert!(
            !told.contains("hunter60x") && told.ends_with("alice@example.com"),
            "{told}"
        );
        assert!(Text::read("{{ a b }}", Place::default()).is_err());
        assert!(Text::read("{% for x in y %}{% endfor %}", Place::default()).is_err());
        assert_eq!(
            read("{{ steps.a.b }} {{ used }}").names(),
            [
                ("steps".to_owned(), Some("a".to_owned())),
                ("used".to_owned(), None)
            ]
        );
        assert!(read("{{ step.a }}").stranger(true).is_some());
        assert!(read("{{ used }}").stranger(true).is_none());
        assert!(read("{{ used }}").stranger(false).is_some());
    }
}
