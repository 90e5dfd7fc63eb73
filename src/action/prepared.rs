//! Rolls back one prepared transaction, in its own database, after a last look that it is the same one.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::guard::{Consent, Policy};
use crate::model::{Outcome, PreparedXact, Timestamp};
use crate::source::postgres::chain;
use crate::sql;

const ANSWER: Duration = Duration::from_secs(8);
const LOOK: &str = "SELECT p.transaction::pg_catalog.text AS xid, p.prepared, p.ownerid, p.dbid \
FROM pg_catalog.pg_prepared_xact() p WHERE p.gid = $1";

/// A prepared transaction as it was shown to the person.
#[derive(Clone, Debug)]
pub struct PreparedTarget {
    pub xact: PreparedXact,
    /// Its owner by oid: a name may be another role's by now.
    pub owner: u32,
    pub superuser: Option<bool>,
}

/// One that somebody has said yes to. Made only here.
#[derive(Debug)]
pub struct ApprovedRollback(PreparedTarget);

impl PreparedTarget {
    /// # Errors
    /// A rule against it, or a yes that isn't one.
    pub fn approve(
        self,
        policy: &Policy,
        consent: &Consent,
        target_name: &str,
    ) -> Result<ApprovedRollback, String> {
        policy.allows_owner(self.xact.owner.as_deref(), self.superuser)?;
        consent.check(target_name)?;
        Ok(ApprovedRollback(self))
    }
}

/// On a connection to the transaction's own database.
pub async fn roll_back(client: &Client, approved: &ApprovedRollback) -> Outcome {
    let wanted = &approved.0;
    // Its bytes aren't known any more, and another's name may read the same.
    if wanted.xact.gid.contains(char::REPLACEMENT_CHARACTER) {
        return Outcome::Refused(
            "its gid isn't text in the server's encoding: roll it back by hand".into(),
        );
    }
    let work = async {
        let rows = client
            .query_typed(LOOK, &[(&wanted.xact.gid, Type::TEXT)])
            .await?;
        let Some(row) = rows.first() else {
            return Ok(Outcome::Changed("it is resolved already".into()));
        };
        let same = row.get::<_, &str>("xid") == wanted.xact.xid.0.to_string()
            && row.get::<_, DateTime<Utc>>("prepared") == Timestamp::utc(wanted.xact.prepared)
            && row.get::<_, u32>("ownerid") == wanted.owner
            && row.get::<_, u32>("dbid") == wanted.xact.datid.0;
        if !same {
            return Ok(Outcome::Changed(
                "another transaction has that gid by now".into(),
            ));
        }
        // The one statement that takes no parameter: quoted by the one function for it.
        let statement = format!("ROLLBACK PREPARED {}", sql::literal(&wanted.xact.gid));
        client.batch_execute(&statement).await?;
        Ok(Outcome::Gone)
    };
    match timeout(ANSWER, work).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => rejected(&error),
        Err(_) => Outcome::Failed(
            "no answer from the server: whether it was rolled back isn't known".into(),
        ),
    }
}

fn rejected(error: &tokio_postgres::Error) -> Outcome {
    match error.as_db_error() {
        Some(db) if db.code().code() == "42501" => {
            Outcome::Refused(format!("{} (42501)", db.message()))
        }
        Some(db) => Outcome::Failed(format!("{} ({})", db.message(), db.code().code())),
        None => Outcome::Failed(chain(error)),
    }
}
