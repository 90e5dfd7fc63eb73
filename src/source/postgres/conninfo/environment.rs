//! The environment and the person's account, read at the edge and handed down.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Variables by name, and who runs this.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The name and the home folder of the operating system's user.
    pub account: Option<(String, PathBuf)>,
}

impl Environment {
    pub fn get(&self, name: &str) -> Option<&String> {
        self.variables.get(name)
    }

    /// Every variable, by name.
    pub fn all(&self) -> impl Iterator<Item = (&String, &String)> {
        self.variables.iter()
    }

    /// `HOME`, else what the operating system says (libpq 15 and newer).
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME")
            .filter(|home| !home.is_empty())
            .map(PathBuf::from)
            .or_else(|| self.account.as_ref().map(|(_, home)| home.clone()))
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self {
            variables: pairs.into_iter().collect(),
            account: None,
        }
    }
}
