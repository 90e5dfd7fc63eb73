//! Values by parameter, each with the place where it was given; what was given nearer to the person wins.

use std::collections::BTreeMap;

use super::ConnInputError;
use super::keywords::{self, Keyword, Use};
use crate::model::{Origin, Parameter, Secret};

/// A value and where it was given. An empty one was given too: it means the default, and hides what lies below.
#[derive(Clone, Debug)]
pub struct Given {
    /// May be a password: the type can't be printed.
    value: Secret,
    pub origin: Origin,
}

impl Given {
    pub fn text(&self) -> &str {
        self.value.expose()
    }
}

/// What one place gives.
#[derive(Clone, Debug, Default)]
pub struct Layer(BTreeMap<&'static str, Given>);

impl Layer {
    pub fn set(&mut self, keyword: &'static Keyword, value: impl Into<String>, origin: Origin) {
        let value = Secret::new(value);
        self.0.insert(keyword.name, Given { value, origin });
    }

    /// A parameter by the name that a person wrote.
    ///
    /// # Errors
    /// When there is none of that name. The name itself isn't repeated: it may be the rest of a password.
    pub fn set_named(
        &mut self,
        name: &str,
        value: impl Into<String>,
        origin: Origin,
    ) -> Result<(), ConnInputError> {
        let keyword = keywords::known(name).ok_or(ConnInputError::UnknownParameter)?;
        self.set(keyword, value, origin);
        Ok(())
    }

    /// An option, where it was given.
    pub fn flag(&mut self, name: &'static str, value: Option<String>, flag: &'static str) {
        if let (Some(keyword), Some(value)) = (keywords::known(name), value) {
            self.set(keyword, value, Origin::flag(flag));
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn take(&mut self, name: &str) -> Option<Given> {
        self.0.remove(name)
    }

    pub fn put(&mut self, name: &'static str, given: Given) {
        self.0.insert(name, given);
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// A value that is set and not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(Given::text)
            .filter(|text| !text.is_empty())
    }

    /// Takes from another layer what isn't set here.
    pub fn under(&mut self, lower: Self) {
        for (name, given) in lower.0 {
            self.0.entry(name).or_insert(given);
        }
    }

    pub fn get(&self, name: &str) -> Option<&Given> {
        self.0.get(name)
    }

    /// Name, value and origin in libpq's order; of a secret only that it is there.
    pub fn shown(&self) -> impl Iterator<Item = (&'static str, String, Origin)> + '_ {
        keywords::KEYWORDS.iter().filter_map(|keyword| {
            let given = self.0.get(keyword.name)?;
            let value = match keyword.use_ {
                Use::Secret => Parameter::SECRET.to_owned(),
                Use::Connects | Use::Taken => given.text().to_owned(),
            };
            (!given.text().is_empty()).then(|| (keyword.name, value, given.origin.clone()))
        })
    }
}
