//! The way there: `redis://`, `rediss://`, `unix://` with user, password and database as clients of Redis spell them.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo as _};

use crate::model::Secret;

/// Where a Redis is, and as whom it is asked.
#[derive(Clone)]
pub struct RedisAddress {
    url: Secret,
    shown: String,
}

/// Why it can't be asked.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    #[error("{0:?} is no address of a Redis, such as redis://host:6379/0")]
    Address(String),
    #[error("Redis at {place}: {what}")]
    Failed { place: String, what: String },
}

impl RedisAddress {
    /// # Errors
    /// When it is none.
    pub fn parse(url: &str) -> Result<Self, RedisError> {
        let known = url
            .into_connection_info()
            .map_err(|_| RedisError::Address(without_login(url)))?;
        Ok(Self {
            url: Secret::new(url),
            shown: format!("{}, database {}", known.addr(), known.redis_settings().db()),
        })
    }

    /// Without login and password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether a password stands in it.
    pub fn has_password(&self) -> bool {
        let info = self.url.expose().into_connection_info();
        info.is_ok_and(|info| info.redis_settings().password().is_some())
    }

    pub(super) fn failed(&self, error: &redis::RedisError) -> RedisError {
        RedisError::Failed {
            place: self.shown.clone(),
            what: error.to_string(),
        }
    }

    /// One connection; each of its answers is awaited for so long.
    pub(super) async fn connect(
        &self,
        limit: Duration,
    ) -> Result<MultiplexedConnection, RedisError> {
        let failed = |error: redis::RedisError| self.failed(&error);
        let client = Client::open(self.url.expose()).map_err(failed)?;
        // The defaults are half a second and one: too short for a server that is in trouble.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(limit))
            .set_response_timeout(Some(limit));
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(failed)
    }
}

/// For a message: what stands before an `@` may be a password.
fn without_login(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, place)) => format!("…@{place}"),
        None => url.to_owned(),
    }
}
