//! Names of tables as they are shown: what has the shape of a secret is none.

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
