//! `bundle names`: which token a name has become, as a table.

use serde::Serialize;

use crate::view::clean;
use crate::view::console::Style;
use crate::view::layout::{Column, table};

/// A token that stands in a bundle, and the name that it stands for.
#[derive(Clone, Debug, Serialize)]
pub struct NamedToken {
    pub token: String,
    pub kind: &'static str,
    pub name: String,
    pub places: usize,
}

/// All of the names that were asked for.
#[derive(Clone, Debug, Serialize)]
pub struct NamedTokens {
    pub schema: &'static str,
    pub tokens: Vec<NamedToken>,
    /// Names that stand in it as no token.
    pub missing: Vec<String>,
}

/// As a table, and whose token isn't in it.
pub fn named(result: &NamedTokens, style: Style) -> String {
    let columns = [
        Column::text("token"),
        Column::text("kind"),
        Column::text("name").flex(8),
        Column::number("places"),
    ];
    let rows: Vec<Vec<String>> = result
        .tokens
        .iter()
        .map(|one| {
            vec![
                one.token.clone(),
                one.kind.to_owned(),
                clean(&one.name),
                one.places.to_string(),
            ]
        })
        .collect();
    let mut out = match rows.is_empty() {
        true => String::new(),
        false => table(&columns, rows, style.width),
    };
    for name in &result.missing {
        out.push_str(&format!(
            "{}: no token of it is in the bundle\n",
            clean(name)
        ));
    }
    out
}
