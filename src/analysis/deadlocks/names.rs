//! Names as they are shown: what has the shape of a secret is none.

use crate::model::{LogEvent, LogSession, LogWhat};
use crate::sql;

/// The table with its schema, unless that is `public`.
pub fn shown(schema: Option<&str>, table: &str, unredacted: bool) -> String {
    let name = match schema {
        Some(schema) if schema != "public" => format!("{schema}.{table}"),
        _ => table.to_owned(),
    };
    if unredacted {
        return name;
    }
    sql::name_redacted(&name).into_owned()
}

/// The names of logins, databases and applications that an event came with.
pub fn redact(event: &mut LogEvent) {
    of_session(&mut event.session);
    if let LogWhat::Deadlock(deadlock) = &mut event.what {
        for before in &mut deadlock.before {
            of_session(&mut before.session);
        }
    }
}

fn of_session(session: &mut LogSession) {
    let names = [
        &mut session.user,
        &mut session.database,
        &mut session.application_name,
    ];
    for name in names.into_iter().flatten() {
        // What has quotes or braces in it is a text rather than a name.
        let shown = match name.contains(['"', '\'', '{']) {
            true => sql::redacted(name),
            false => sql::name_redacted(name),
        };
        if let std::borrow::Cow::Owned(shown) = shown {
            *name = shown;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_no_name() {
        assert_eq!(shown(Some("public"), "orders", false), "orders");
        assert_eq!(shown(Some("shop"), "注文 a@b", false), "shop.注文 a@b");
        let secret = "password=hunter2";
        assert!(!shown(None, secret, false).contains("hunter2"));
        assert_eq!(shown(None, secret, true), secret);
    }
}
