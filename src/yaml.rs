//! PURE: YAML as a tree of which every part knows its place. The one reader of runbooks, budgets and manifests.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::Spanned;

/// Line and column, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub place: Place,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Kind {
    /// What it is, for a fault.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl Node {
    /// A field of a map; the last of its name, as after a merge.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Kind::Map(fields) = &self.kind else {
            return None;
        };
        let named =
            |(key, _): &&(Self, Self)| matches!(&key.kind, Kind::Text(text) if text == name);
        fields.iter().find(named).map(|(_, value)| value)
    }

    /// A field of a field.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self) -> &[Self] {
        match &self.kind {
            Kind::List(all) => all,
            _ => &[],
        }
    }

    pub fn map(&self) -> &[(Self, Self)] {
        match &self.kind {
            Kind::Map(all) => all,
            _ => &[],
        }
    }
}

/// Where it is no YAML, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub place: Place,
    pub what: String,
}

fn options() -> serde_yaml::Options {
    let mut options = serde_yaml::Options::default();
    options.strict_booleans = true;
    options
}

/// The tree of a text with one document.
///
/// # Errors
/// The one place where it is none.
pub fn parse(text: &str) -> Result<Node, Wrong> {
    serde_yaml::from_str_with_options::<Node>(text, options()).map_err(wrong)
}

/// The trees of a text with several documents; empty ones are left out.
///
/// # Errors
/// The first place where it is none.
pub fn parse_all(text: &str) -> Result<Vec<Node>, Wrong> {
    let all = serde_yaml::from_multiple_with_options::<Node>(text, options()).map_err(wrong)?;
    Ok(all
        .into_iter()
        .filter(|node| !matches!(node.kind, Kind::Null))
        .collect())
}

fn wrong(error: serde_yaml::Error) -> Wrong {
    let place = error
        .location()
        .map_or(Place { line: 1, column: 1 }, |at| Place {
            line: usize::try_from(at.line()).unwrap_or(1).max(1),
            column: usize::try_from(at.column()).unwrap_or(1).max(1),
        });
    let bare = error.without_snippet().to_string();
    let what = bare.split(" at line ").next().unwrap_or(&bare).to_owned();
    let twice = what
        .strip_prefix("duplicate mapping key: ")
        .and_then(|rest| rest.split(", set ").next());
    let what = match twice {
        Some(key) => format!("{key:?} stands here twice"),
        None => format!("not YAML: {what}"),
    };
    Wrong { place, what }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        let number = |n: u64| usize::try_from(n).unwrap_or(1).max(1);
        // A value is where it is written, a whole where it is used.
        let at = match &spanned.value {
            Kind::List(_) | Kind::Map(_) => spanned.referenced,
            _ => spanned.defined,
        };
        Ok(Self {
            place: Place {
                line: number(at.line()),
                column: number(at.column()),
            },
            kind: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Kind;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(i64::try_from(value).map_or(Kind::Float(value as f64), Kind::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Kind, A::Error> {
        let mut all = Vec::new();
        while let Some(node) = seq.next_element()? {
            all.push(node);
        }
        Ok(Kind::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut all = Vec::new();
        while let Some(key) = map.next_key::<Node>()? {
            all.push((key, map.next_value()?));
        }
        Ok(Kind::Map(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_knows_its_place() {
        let text = "a: 1\nsteps:\n  - id: x\n    when: [yes, 5m]\n";
        let node = parse(text).expect("a tree");
        let Kind::Map(top) = &node.kind else {
            panic!("{node:?}")
        };
        assert_eq!(top[1].0.place, Place { line: 2, column: 1 });
        let Kind::List(steps) = &top[1].1.kind else {
            panic!("{node:?}")
        };
        let Kind::Map(step) = &steps[0].kind else {
            panic!("{node:?}")
        };
        assert_eq!(step[0].1.place, Place { line: 3, column: 9 });
        let Kind::List(list) = &step[1].1.kind else {
            panic!("{node:?}")
        };
        assert_eq!(
            list[1].place,
            Place {
                line: 4,
                column: 17
            }
        );
        assert!(
            matches!(&list[0].kind, Kind::Text(text) if text == "yes"),
            "{:?}",
            list[0]
        );
        assert!(parse("a: [").is_err());
    }
}
