//! Changes one setting of a Redis for a while, and puts it back: only where it is still what it was said to be.

use serde::{Deserialize, Serialize};

use crate::model::Outcome;
use crate::source::redis::{Node, Refused, setting};

/// One setting of one node, from what to what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    pub node: String,
    /// What the server calls itself since its start; unknown in old journals, and where INFO isn't permitted.
    #[serde(default)]
    pub run_id: Option<String>,
    pub name: String,
    pub before: String,
    pub after: String,
}

impl SettingChange {
    /// The way back.
    #[must_use]
    pub fn back(&self) -> Self {
        Self {
            node: self.node.clone(),
            run_id: self.run_id.clone(),
            name: self.name.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
        }
    }

    /// The person asked for it by an option that is for nothing else, or for the way back.
    pub fn asked_by_name(self, _: OptIn) -> ApprovedSetting {
        ApprovedSetting(self)
    }
}

/// The words that ask for a change of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptIn {
    /// `--enable-keymiss`
    EnableKeymiss,
    /// `--server-hotkeys`
    ServerHotkeys,
    /// What was changed by one of them is put back.
    Restore,
}

/// A change that somebody asked for. Made only here.
#[derive(Debug)]
pub struct ApprovedSetting(SettingChange);

impl ApprovedSetting {
    pub fn change(&self) -> &SettingChange {
        &self.0
    }
}

/// Sets it, if it still is what it was, and looks again. `same`: two spellings of one value.
pub async fn set(
    node: &mut Node,
    approved: &ApprovedSetting,
    same: fn(&str, &str) -> bool,
) -> Outcome {
    let SettingChange {
        name,
        before,
        after,
        ..
    } = &approved.0;
    match setting(node, name).await {
        Ok(Some(now)) if same(&now, before) => {}
        Ok(Some(now)) => {
            return Outcome::Changed(format!(
                "{name} is {now:?} by now: somebody else has set it"
            ));
        }
        Ok(None) => return Outcome::Refused(format!("the server has no {name}")),
        Err(refused) => return refused_by(&refused),
    }
    if let Err(refused) = node
        .ask(&[b"CONFIG", b"SET", name.as_bytes(), after.as_bytes()])
        .await
    {
        return refused_by(&refused);
    }
    match setting(node, name).await {
        Ok(Some(now)) if same(&now, after) => Outcome::Set,
        Ok(now) => Outcome::Failed(format!(
            "{name} is {:?} all the same",
            now.unwrap_or_default()
        )),
        Err(refused) => refused_by(&refused),
    }
}

fn refused_by(refused: &Refused) -> Outcome {
    match refused {
        Refused::NotPermitted(why) | Refused::Unknown(why) => Outcome::Refused(why.clone()),
        other => Outcome::Failed(other.text().to_owned()),
    }
}
