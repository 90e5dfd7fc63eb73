//! What must not be seen is taken out before anything is shown or saved, so a saved snapshot shows the same.

use crate::model::{Redaction, Snapshot};
use crate::sql;

/// The header's word for a snapshot in which nothing was found to reduce.
pub fn no_redaction() -> Redaction {
    Redaction {
        rule: sql::REDACTION_RULE.into(),
        statements_reduced: 0,
    }
}

/// Reduces statements that carry secrets to their command tag.
pub fn redact(snapshot: &mut Snapshot) {
    let mut reduced = 0;
    for session in snapshot.activity.get_mut().into_iter().flatten() {
        if let Some(tag) = session.query.as_deref().and_then(sql::reduce_secret) {
            session.query = Some(tag);
            session.query_truncated = false;
            reduced += 1;
        }
        // Some drivers take the name from where the connection string was meant to be.
        if session
            .application_name
            .as_deref()
            .is_some_and(sql::has_password)
        {
            session.application_name = Some("(not shown: it holds a password)".into());
        }
    }
    snapshot.redaction.statements_reduced += reduced;
}
