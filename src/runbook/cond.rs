//! Conditions, in CEL: a missing field, a null or a number against a text is an error, never false. The one user of the
//! expression crate.

use std::collections::HashMap;
use std::sync::Arc;

use cel::{Context, Program};
use serde_json::Value as Json;

use super::fault::{Fault, Place, meant};

/// Longer ones aren't read: the language has no limit on cost, and its reader none on depth.
const MOST_BYTES: usize = 2048;
const MOST_NESTED: usize = 2;
/// Of brackets of any kind, in texts too: the reader goes down by each.
const MOST_BRACKETS: usize = 24;
const MOST_OPERATORS: usize = 64;

/// A condition that could be read.
#[derive(Clone, Debug)]
pub struct Condition(Expression);

/// Something that is computed of what was found, answered and given.
#[derive(Clone, Debug)]
pub struct Expression {
    pub text: String,
    pub place: Place,
    program: Arc<Program>,
}

/// What one book may look at. One that includes another doesn't share it.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub steps: serde_json::Map<String, Json>,
    pub inputs: serde_json::Map<String, Json>,
    pub answers: serde_json::Map<String, Json>,
    pub vars: serde_json::Map<String, Json>,
}

impl Scope {
    /// By the names that conditions and texts say.
    pub fn roots(&self) -> [(&'static str, &serde_json::Map<String, Json>); 4] {
        [
            (ROOTS[0], &self.steps),
            (ROOTS[1], &self.inputs),
            (ROOTS[2], &self.answers),
            (ROOTS[3], &self.vars),
        ]
    }
}

impl std::ops::Deref for Condition {
    type Target = Expression;

    fn deref(&self) -> &Expression {
        &self.0
    }
}

impl Condition {
    /// # Errors
    /// What is wrong with it, at its place in the file.
    pub fn read(text: &str, place: Place) -> Result<Self, Fault> {
        Expression::read(text, place).map(Self)
    }

    /// # Errors
    /// Where it can't be told: the words are for the person.
    pub fn holds(&self, scope: &Scope) -> Result<bool, String> {
        match self.0.value(scope)? {
            Json::Bool(holds) => Ok(holds),
            Json::Null => Err(self.unknown(scope)),
            _ => Err(format!("{:?} is neither true nor false", self.text)),
        }
    }
}

impl Expression {
    /// # Errors
    /// What is wrong with it, at its place in the file.
    pub fn read(text: &str, place: Place) -> Result<Self, Fault> {
        let code = without_texts(text);
        let nested = MACROS
            .iter()
            .map(|name| code.matches(name).count())
            .sum::<usize>();
        let count = |of: &str| text.chars().filter(|c| of.contains(*c)).count();
        if text.len() > MOST_BYTES
            || nested > MOST_NESTED
            || count("([{") > MOST_BRACKETS
            || count("!-+*/%?<>=&|.,") > MOST_OPERATORS
        {
            return Err(Fault::new(place, "the condition is too long or too deep")
                .hint("split it into two steps"));
        }
        if ROOTS.iter().any(|root| is_asked_otherwise(&code, root)) {
            return Err(
                Fault::new(place, "a step, an input or an answer is named after a dot")
                    .hint("steps.NAME, inputs.NAME, answers.NAME, vars.NAME"),
            );
        }
        let Some(compiled) = on_a_large_stack(|| Program::compile(text)) else {
            return Err(Fault::new(place, "not a condition"));
        };
        let program = compiled.map_err(|errors| {
            let first = errors.errors.first();
            let what =
                first.map_or_else(|| "not a condition".to_owned(), |error| error.msg.clone());
            Fault::new(place, format!("not a condition: {what}"))
        })?;
        let stranger = on_a_large_stack(|| stranger(&code, &program)).flatten();
        if let Some(stranger) = stranger {
            let fault = Fault::new(place, format!("{stranger:?} is nothing that there is"));
            return Err(match meant(&stranger, &ROOTS) {
                Some(root) => fault.hint(format!("did you mean {root:?}?")),
                None => fault.hint("steps.NAME, inputs.NAME, answers.NAME, vars.NAME"),
            });
        }
        Ok(Self {
            text: text.to_owned(),
            place,
            program: Arc::new(program),
        })
    }

    /// Names after a root: `steps.picture.capacity` → `picture` of `steps`.
    pub fn names(&self, root: &str) -> Vec<String> {
        let code = without_texts(&self.text);
        let mut names = Vec::new();
        let start = format!("{root}.");
        for (at, _) in code.match_indices(&start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
                continue;
            }
            let name: String = code[at + start.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            names.push(name);
        }
        names
    }

    /// # Errors
    /// Where it can't be told: the words are for the person.
    pub fn value(&self, scope: &Scope) -> Result<Json, String> {
        on_a_large_stack(|| self.told(scope))
            .unwrap_or_else(|| Err(format!("{:?} can't be told", self.text)))
    }

    fn told(&self, scope: &Scope) -> Result<Json, String> {
        let mut context = Context::default();
        for (name, map) in scope.roots() {
            context.add_variable_from_value(name, value(&Json::Object(map.clone())));
        }
        let told = self
            .program
            .execute(&context)
            .map_err(|error| self.why(&error.to_string(), scope))?;
        json(&told).ok_or_else(|| format!("{:?} is no plain value", self.text))
    }

    /// The language's word on a value that isn't there is one on types, which is no answer for a person.
    fn why(&self, error: &str, scope: &Scope) -> String {
        match NOTHING.iter().any(|nothing| error.contains(nothing)) {
            true => self.unknown(scope),
            false => format!("{:?} can't be told: {error}", self.text),
        }
    }

    fn unknown(&self, scope: &Scope) -> String {
        let roots = scope.roots();
        let names = roots.iter().find_map(|(root, map)| self.missing(root, map));
        let what = names.unwrap_or_else(|| "a value in it".to_owned());
        format!("{:?} can't be told: {what} isn't known", self.text)
    }

    /// The first of the names after a root that stands for nothing.
    fn missing(&self, root: &str, map: &serde_json::Map<String, Json>) -> Option<String> {
        let code = without_texts(&self.text);
        let start = format!("{root}.");
        code.match_indices(&start).find_map(|(at, _)| {
            let mut name = root.to_owned();
            let mut found: Option<&Json> = None;
            for part in code[at + start.len()..].split('.') {
                let word: String = part
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                found = match found {
                    None => map.get(&word),
                    Some(Json::Object(fields)) => fields.get(&word),
                    Some(_) => None,
                };
                name.push('.');
                name.push_str(&word);
                match found {
                    Some(Json::Null) => return Some(name),
                    Some(_) if word.len() == part.len() => {}
                    _ => return None,
                }
            }
            None
        })
    }
}

/// How the language names a null in its errors.
const NOTHING: [&str; 2] = ["null_type", "Null"];

/// A name that stands at the beginning of something and is none of ours: neither a root, nor what a macro names its elements,
/// nor a function of the language.
fn stranger(code: &str, program: &Program) -> Option<String> {
    let own: Vec<String> = MACROS
        .iter()
        .flat_map(|name| code.match_indices(name).map(move |(at, _)| at + name.len()))
        .map(|at| {
            let rest = code[at..].trim_start();
            rest.chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        })
        .collect();
    let references = program.references();
    let mut names: Vec<&str> = references.variables();
    names.sort_unstable();
    names
        .into_iter()
        .find(|name| {
            !ROOTS.contains(name) && !name.starts_with('@') && !own.iter().any(|own| own == name)
        })
        .map(str::to_owned)
}

const MACROS: [&str; 5] = [".exists(", ".exists_one(", ".all(", ".map(", ".filter("];

/// The expression crate goes down a dozen calls for each bracket and operator, more than a thread's usual stack may hold.
/// `None` where there is no thread to be had.
fn on_a_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(64 << 20)
            .spawn_scoped(scope, work);
        thread.ok().and_then(|thread| thread.join().ok())
    })
}

/// What conditions and texts may look at.
pub const ROOTS: [&str; 4] = ["steps", "inputs", "answers", "vars"];

/// `steps['x']` or `steps . x`: what it names couldn't be looked up before the run.
fn is_asked_otherwise(code: &str, root: &str) -> bool {
    let part_of_a_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    code.match_indices(root).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let mut after = code[at + root.len()..].chars();
        let whole = !before.is_some_and(part_of_a_name);
        match after.next() {
            Some('.') => {
                let named = after.next().is_some_and(|c| c.is_alphabetic() || c == '_');
                whole && !named
            }
            Some(c) if c.is_alphanumeric() || c == '_' => false,
            _ => whole,
        }
    })
}

/// What stands in quotes is no name.
fn without_texts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {
                if c == '\\' {
                    chars.next();
                }
            }
            None if c == '\'' || c == '"' => quote = Some(c),
            None => out.push(c),
        }
    }
    out
}

/// Whole numbers stay signed: the language doesn't mix signed and unsigned.
fn value(json: &Json) -> cel::Value {
    match json {
        Json::Null => cel::Value::Null,
        Json::Bool(value) => cel::Value::Bool(*value),
        Json::Number(number) => number.as_i64().map_or_else(
            || cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            cel::Value::Int,
        ),
        Json::String(text) => cel::Value::from(text.clone()),
        Json::Array(all) => cel::Value::List(all.iter().map(value).collect::<Vec<_>>().into()),
        Json::Object(fields) => {
            let map: HashMap<String, cel::Value> = fields
                .iter()
                .map(|(name, field)| (name.clone(), value(field)))
                .collect();
            cel::Value::from(map)
        }
    }
}

/// Back from the language: what the books can say is plain.
fn json(value: &cel::Value) -> Option<Json> {
    Some(match value {
        cel::Value::Null => Json::Null,
        cel::Value::Bool(value) => Json::Bool(*value),
        cel::Value::Int(number) => Json::from(*number),
        cel::Value::UInt(number) => Json::from(*number),
        cel::Value::Float(number) => Json::from(*number),
        cel::Value::String(text) => Json::from(text.as_str()),
        cel::Value::List(all) => Json::Array(all.iter().map(json).collect::<Option<_>>()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> Result<bool, String> {
        let scope = Scope {
            steps: serde_json::json!({ "picture": { "capacity": { "used_pct": 90.0, "free": 3, "unaccounted": null },
                "groups": [{ "idle_in_transaction": 14 }] } })
            .as_object()
            .cloned()
            .unwrap_or_default(),
            ..Scope::default()
        };
        Condition::read(text, Place::default())
            .map_err(|fault| fault.what)?
            .holds(&scope)
    }

    #[test]
    fn what_is_not_known_is_never_false() {
        assert_eq!(holds("steps.picture.capacity.used_pct < 85.0"), Ok(false));
        assert_eq!(
            holds("steps.picture.groups.exists(g, g.idle_in_transaction >= 5)"),
            Ok(true)
        );
        assert_eq!(
            holds("steps.picture.capacity.free == 3 && 'steps.x' != ''"),
            Ok(true)
        );
        for unknown in [
            "steps.picture.capacity.unaccounted > 3",
            "steps.picture.nothing > 3",
            "steps.other.x",
            "'97' > 90",
            "steps.picture.capacity.free",
        ] {
            assert!(holds(unknown).is_err(), "{unknown}");
        }
        for (text, what) in [
            (
                "steps.picture.capacity.unaccounted > 3",
                "steps.picture.capacity.unaccounted isn't known",
            ),
            (
                "steps.picture.capacity.unaccounted + 1 > 3",
                "steps.picture.capacity.unaccounted isn't known",
            ),
            (
                "steps.picture.capacity.unaccounted.more < 70.0",
                "steps.picture.capacity.unaccounted isn't known",
            ),
            (
                "steps.picture.capacity.unaccounted",
                "steps.picture.capacity.unaccounted isn't known",
            ),
            (
                "steps.picture.capacity.unaccounted.exists(g, g.a)",
                "steps.picture.capacity.unaccounted isn't known",
            ),
            ("[null].exists(g, g >= 5)", "a value in it isn't known"),
        ] {
            let told = format!("{text:?} can't be told: {what}");
            assert_eq!(holds(text), Err(told));
        }
        for bad in [
            "",
            "steps.",
            "a &&",
            &"(".repeat(50),
            &format!("{}{} == []", "[".repeat(60), "]".repeat(60)),
            &format!("{}1", "{1:".repeat(400)),
            &format!("'\\'' == '' || {}", "(".repeat(500)),
            &format!("{}true", "!".repeat(2000)),
            &format!("{}1 == 1", "1+".repeat(900)),
            &format!("{}true", "true || ".repeat(200)),
            "steps['a'].b",
            "steps .a.b",
            "steps. a.b",
            "steps",
            "step.a == 1",
            "steps.a.exists(g, h == 1)",
            &format!("'{}' == ''", "x".repeat(3000)),
        ] {
            assert!(Condition::read(bad, Place::default()).is_err(), "{bad}");
        }
        // As deep as it may be, it is read and told in the smallest of stacks.
        for deep in [
            format!("{}{} == []", "[".repeat(23), "]".repeat(23)),
            format!("{}true", "!".repeat(64)),
            format!("{}1 == 1", "1+".repeat(60)),
            format!("{}true", "false || ".repeat(32)),
            format!("{}1 == 1", "-".repeat(60)),
            format!("{}true{}", "(".repeat(24), ")".repeat(24)),
        ] {
            let condition = Condition::read(&deep, Place::default()).expect("a condition");
            let _ = condition.holds(&Scope::default());
        }
        let names = Condition::read(
            "steps.a.b > 1 && answers.c == 'steps.d' && vars.steps.e",
            Place::default(),
        )
        .expect("a condition")
        .names("steps");
        assert_eq!(names, ["a"]);
    }
}
