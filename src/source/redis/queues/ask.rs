//! Commands for single keys, each sent to the node that has the key, an answer or a refusal for each.

use redis::{Pipeline, Value};

use crate::source::redis::error::{Refused, answer};
use crate::source::redis::fleet::Fleet;
use crate::source::redis::value;

/// Members of a set of queue names that are read.
pub const NAMES: usize = 1000;
/// Members of what is kept for all queues together: up to so many are read and shared out.
pub const SMALL: u64 = 100;
/// Worker processes that are looked at, of each installation or queue.
pub const WORKERS: usize = 200;
/// Jobs in flight whose times are read, of each queue.
pub const RUNNING: u64 = 50;
/// Jobs at the head that are looked at for the oldest.
pub const AHEAD: usize = 5;
/// Commands in one go.
const BATCH: usize = 200;

/// One command that names one key.
pub struct Ask {
    words: Vec<Vec<u8>>,
    key: usize,
}

/// `XINFO STREAM` and others of two words go before the key.
pub fn ask(command: &str, key: impl Into<Vec<u8>>) -> Ask {
    let mut words: Vec<Vec<u8>> = command.split(' ').map(|word| word.into()).collect();
    words.push(key.into());
    Ask {
        key: words.len() - 1,
        words,
    }
}

impl Ask {
    pub fn arg(mut self, arg: impl AsRef<[u8]>) -> Self {
        self.words.push(arg.as_ref().to_vec());
        self
    }
}

/// The answers in the order of the questions. The first refusal since the last `refusal()` is kept.
pub struct Answers {
    values: std::vec::IntoIter<Result<Value, Refused>>,
    refused: Option<Refused>,
}

impl Answers {
    /// `None`: there is nothing, or it was refused.
    pub fn value(&mut self) -> Option<Value> {
        match self.values.next()? {
            Ok(Value::Nil) => None,
            Ok(value) => Some(value),
            Err(refused) => {
                self.refused.get_or_insert(refused);
                None
            }
        }
    }

    pub fn uint(&mut self) -> Option<u64> {
        value::uint(&self.value()?)
    }

    pub fn yes(&mut self) -> Option<bool> {
        Some(self.uint()? > 0)
    }

    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        value::bytes(self.value()?)
    }

    /// `None` where it was refused; an empty list is one.
    pub fn list(&mut self) -> Option<Vec<Value>> {
        self.value().map(value::list)
    }

    /// Members and scores of a sorted set, of either protocol.
    pub fn scored(&mut self) -> Option<Vec<(Vec<u8>, f64)>> {
        let values = self.list()?;
        let flat: Vec<Value> = if values.iter().any(|pair| matches!(pair, Value::Array(_))) {
            values.into_iter().flat_map(value::list).collect()
        } else {
            values
        };
        let mut pairs = flat.into_iter();
        let mut scored = Vec::new();
        while let (Some(member), Some(score)) = (pairs.next(), pairs.next()) {
            let score = value::text(&score).and_then(|score| score.parse().ok());
            scored.extend(value::bytes(member).zip(score));
        }
        Some(scored)
    }

    /// Fields of `whole_hash`; `None` also where they didn't fit on its page.
    pub fn hash(&mut self) -> Option<Vec<(String, Value)>> {
        let mut page = self.list()?.into_iter();
        let cursor = page.next().and_then(value::bytes)?;
        let fields = value::fields(page.next().unwrap_or(Value::Nil));
        (cursor == b"0").then_some(fields)
    }

    /// Texts of HMGET, `None` for each field that isn't there.
    pub fn fields(&mut self) -> Vec<Option<String>> {
        let values = self.list().unwrap_or_default();
        values.iter().map(value::text).collect()
    }

    pub fn refusal(&mut self) -> Option<Refused> {
        self.refused.take()
    }
}

/// Asks all of it, each at its node.
pub async fn answers(fleet: &mut Fleet, asks: Vec<Ask>) -> Answers {
    let count = asks.len();
    let mut values: Vec<Result<Value, Refused>> = Vec::with_capacity(count);
    values.resize_with(count, || {
        Err(Refused::Other("nobody serves its slot".into()))
    });
    let mut of_node: Vec<Vec<(usize, Ask)>> = fleet.nodes.iter().map(|_| Vec::new()).collect();
    for (n, ask) in asks.into_iter().enumerate() {
        let owner = fleet.owner(&ask.words[ask.key]);
        if let Some(asks) = owner.and_then(|owner| of_node.get_mut(owner)) {
            asks.push((n, ask));
        }
    }
    for (node, asks) in fleet.nodes.iter_mut().zip(of_node) {
        for batch in asks.chunks(BATCH) {
            if let Some(silent) = &node.silent {
                for (n, _) in batch {
                    values[*n] = Err(silent.clone());
                }
                continue;
            }
            let mut commands = Pipeline::with_capacity(batch.len());
            for (_, ask) in batch {
                let mut command = redis::Cmd::new();
                for word in &ask.words {
                    command.arg(word.as_slice());
                }
                commands.add_command(command);
            }
            node.looked_up(batch.len() as u64);
            match node.ask_all(&commands).await {
                Ok(answered) => {
                    for ((n, _), value) in batch.iter().zip(answered) {
                        values[*n] = answer(value);
                    }
                }
                Err(lost) => {
                    for (n, _) in batch {
                        values[*n] = Err(lost.clone());
                    }
                    node.silent = Some(lost);
                }
            }
        }
    }
    Answers {
        values: values.into_iter(),
        refused: None,
    }
}

/// All fields of a hash that is known to have no more than `SMALL`: it is never spread over more than ten times as many
/// places, or is made smaller.
pub fn whole_hash(key: impl Into<Vec<u8>>) -> Ask {
    let count = SMALL * 40;
    ask("HSCAN", key)
        .arg("0")
        .arg("COUNT")
        .arg(count.to_string())
}

/// Members of a set, at most so many; whether these are all.
///
/// # Errors
/// What it is refused for: also that it is no set.
pub async fn members(
    fleet: &mut Fleet,
    key: &[u8],
    limit: usize,
) -> Result<(Vec<Vec<u8>>, bool), Refused> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let page = ask("SSCAN", key).arg(&cursor).arg("COUNT").arg("100");
        let mut page = answers(fleet, vec![page]).await;
        let mut parts = page.list().unwrap_or_default().into_iter();
        if let Some(refused) = page.refusal() {
            return Err(refused);
        }
        cursor = parts.next().and_then(value::bytes).unwrap_or_default();
        let names = value::list(parts.next().unwrap_or_default());
        found.extend(names.into_iter().filter_map(value::bytes));
        let whole = cursor.is_empty() || cursor == b"0";
        if whole || found.len() >= limit {
            found.sort_unstable();
            found.dedup();
            let whole = whole && found.len() <= limit;
            found.truncate(limit);
            return Ok((found, whole));
        }
    }
}

/// A key of parts.
pub fn key(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}
