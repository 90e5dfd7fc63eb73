//! Whether a look at a key makes it hotter for the server, and another one be evicted in its place.

use super::clock::setting;
use super::error::Refused;
use super::fleet::Fleet;

/// What came of `CLIENT NO-TOUCH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTouch {
    /// Looks of this connection leave counters and idle times alone.
    On,
    /// The server doesn't have it.
    Absent,
    /// This login may not ask for it.
    NotPermitted,
}

/// What keys are evicted by, and why it isn't known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    Known(String),
    /// With what would have to be granted; `None`: no right would help.
    Untold(Option<&'static str>),
}

impl Policy {
    /// No key is evicted for how seldom or how long ago it was used: a look at one changes nothing for another.
    pub fn idle_decides_nothing(&self) -> bool {
        matches!(self, Self::Known(policy)
            if matches!(policy.as_str(), "noeviction" | "volatile-ttl") || policy.ends_with("-random"))
    }
}

impl Fleet {
    /// Asks every node to leave counters and idle times alone for this connection: Redis 7.2, every Valkey.
    pub async fn no_touch(&mut self) -> NoTouch {
        let mut all = NoTouch::On;
        for node in &mut self.nodes {
            match node.say("CLIENT NO-TOUCH ON").await {
                Ok(_) => {}
                // Before 7.0 a login without CLIENT is refused all of it, also what there isn't.
                Err(Refused::NotPermitted(why)) if why.contains("client|no-touch") => {
                    all = NoTouch::NotPermitted;
                }
                Err(_) => return NoTouch::Absent,
            }
        }
        all
    }

    /// `maxmemory_policy` by INFO, else by CONFIG GET, of the first node.
    pub async fn evicts_by(&mut self) -> Policy {
        if let Some(policy) = self.policy() {
            return Policy::Known(policy);
        }
        let Some(node) = self.nodes.first_mut() else {
            return Policy::Untold(None);
        };
        let by_setting = match setting(node, "maxmemory-policy").await {
            Ok(Some(policy)) => return Policy::Known(policy),
            Ok(None) => None,
            Err(refused) => Some(refused),
        };
        let by_info = node.say("INFO memory").await.err();
        let denied = |refused: &Option<Refused>| matches!(refused, Some(Refused::NotPermitted(_)));
        Policy::Untold(if denied(&by_info) {
            Some("+info")
        } else {
            denied(&by_setting).then_some("+config|get")
        })
    }

    /// Why a look at a key isn't kept from its counters; what was asked for is in place otherwise.
    pub(super) fn why_touched(&self, no_touch: NoTouch) -> String {
        match no_touch {
            NoTouch::NotPermitted => format!(
                "this login may not ask for CLIENT NO-TOUCH ({})",
                self.grant(NO_TOUCH)
            ),
            NoTouch::On | NoTouch::Absent => {
                "this server has no CLIENT NO-TOUCH (Redis 7.2)".into()
            }
        }
    }
}

/// What grants it.
pub(super) const NO_TOUCH: &str = "+client|no-touch";
