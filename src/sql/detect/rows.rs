//! Values of rows in what the server says about them: details of violated constraints, lines of `COPY`, parameters. The
//! server speaks eleven languages and more; most forms are told by their brackets, the others by a few of its words.

use std::ops::Range;

use regex::Captures;

use super::Rule;
use super::shapes::{Shape, checked, group, is_masked};

pub(super) static SHAPES: &[Shape] = &[
    // `Key (email)=(…) already exists`, in any language.
    checked(
        Rule::RowData,
        r#"\([^()=\n]+(?:\([^()\n]*\)[^()=\n]*)*\)=(?<text>\((?:[^()\n]|\([^()\n]*\))+\)?)"#,
        key_data,
    ),
    // Failing row contains (…); partition key of the failing row contains (a) = (…).
    checked(
        Rule::RowData,
        r#"(?:ailing row contains|ehlgeschlagenen? Zeile enthält|fila que falla contiene|ligne en échec contient|riga (?:in errore|sbagliata) contiene|失敗した行は|パーティションキーは|მწკრივი|დანაყოფის გასაღები|실패한 자료:|파티션 키 값:|Ошибочная строка содержит|неподходящей строки содержит|isslyckande rad innehåller|trasiga raden innehåller|омилковий рядок містить|невідповідного рядка містить|失败, 行包含|分区键包含|egistro que falhou contém|Hata veren satır) ?"?(?<text>\((?:[^()\n]|\([^()\n]*\))+\)?)"#,
        row_data,
    ),
    // `$1 = '…'` of log_parameter_max_length.
    checked(
        Rule::RowData,
        r"(?:\$|parámetro )[0-9]{1,5} = (?<text>'(?:[^']|'')*'?)",
        row_data,
    ),
    checked(
        Rule::RowData,
        r#"(?:COPY [^\s,]+, \S+ [0-9]+(?:, \S+ [^:\n]+)?|COPY、行 [0-9]+(?:、列 [^:\n]+)?|복사, [0-9]+번째 줄(?:, [^:\n]+)?) ?: \\?(?<text>["»«].*)"#,
        row_data,
    ),
    // invalid input syntax for type …: "…"
    checked(
        Rule::RowData,
        r#"(?:nvalid input (?:syntax|value) for|malformed [a-z]+ literal|value out of range|nvalid byte sequence for|nvalid regular expression|ngültige Eingabesyntax für|ngültiger Eingabewert für|sintaxis de entrada no es válida para|yntaxe en entrée invalide pour|aleur en entrée invalide pour|sintassi di input non valida per|sintassi per l'enumerazione|入力構文が不正です|不正な入力構文|სინტაქსი ტიპისთვის|მნიშვნელობა ჩამონათვალისთვის|대한 잘못된 입력|입력 값이 잘못됨|еверный синтаксис для типа|еверное значение для перечисления|ogiltig indatasyntax för|ogiltigt indata-värde för|еприпустимий синтаксис для типу|еприпустиме вхідне значення для переліку|无效的类型|的输入值无效)[^:\n]*: ?\\?(?<text>["»«].*)"#,
        row_data,
    ),
    checked(
        Rule::RowData,
        r#"value \\?(?<text>"[^"\n]+")\\? is out of range"#,
        row_data,
    ),
];

/// Not the rows that SQL compares: `where (a, b)=($1, $2)`.
fn key_data(text: &str, captures: &Captures<'_>) -> bool {
    let start = captures.get(0).map_or(0, |all| all.start());
    let before = text[..start].trim_end_matches(' ');
    let word = &before[before.trim_end_matches(char::is_alphanumeric).len()..];
    let sql = ["where", "set", "and", "or", "on", "when", "having", "not"];
    let (values, _) = group(captures);
    let bound = |value: &str| {
        let value = value.trim();
        is_masked(value)
            || value
                .strip_prefix('$')
                .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    };
    let inside = values.trim_matches(['(', ')']);
    !sql.iter().any(|w| word.eq_ignore_ascii_case(w))
        && !inside.split(',').all(bound)
        && row_data(text, captures)
}

/// A value may hold brackets of its own: the row ends with the last one of the line.
pub(super) fn to_last_bracket(text: &str, range: Range<usize>) -> Range<usize> {
    const FAR: usize = 1 << 16;
    if !text[range.clone()].starts_with('(') {
        return range;
    }
    let mut limit = text.len().min(range.end + FAR);
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    let line = text[range.end..limit].split('\n').next().unwrap_or("");
    let closed = line.rfind(')').map_or(0, |at| at + 1);
    // A text that was cut has brackets that nothing closes.
    let more = if line[closed..].contains('(') {
        line.len()
    } else {
        closed
    };
    range.start..range.end + more
}

fn row_data(_: &str, captures: &Captures<'_>) -> bool {
    let (values, _) = group(captures);
    let inside = values
        .trim_end_matches(['.', ' '])
        .trim_matches(['(', ')', '\'', '"', '\\']);
    !inside.is_empty() && !inside.starts_with("not shown: ") && !is_masked(inside)
}

#[cfg(test)]
mod tests {
    use super::super::{Rule, hits};

    #[test]
    fn values_in_many_languages() {
        for (text, value) in [
            ("Key (email)=(a b) already exists.", "(a b)"),
            ("Schlüssel »(name)=(Alice)« existiert bereits.", "(Alice)"),
            ("键值\"(name)=(Alice)\" 已经存在", "(Alice)"),
            (
                "Key (room, during)=(1, [a,b)) conflicts with x",
                "(1, [a,b))",
            ),
            ("Fehlgeschlagene Zeile enthält (1, Alice).", "(1, Alice)"),
            ("失敗した行は(1, Alice)を含みます", "(1, Alice)"),
            ("실패한 자료: (1, Alice)", "(1, Alice)"),
            ("COPY p, Zeile 3, Spalte x: »Alice«", "»Alice«"),
            ("pのCOPY、行 3、列 x: \"Alice\"", "\"Alice\""),
            ("COPY p, ligne 3, colonne x : « Alice »", "« Alice »"),
            ("paramètres : $1 = 'Alice', $2 = NULL", "'Alice'"),
            (
                "ungültige Eingabesyntax für Typ integer: »Alice«",
                "»Alice«",
            ),
            (
                "value \"4711\" is out of range for type smallint",
                "\"4711\"",
            ),
        ] {
            let all = hits(text);
            assert_eq!(all.len(), 1, "{text}: {all:?}");
            assert_eq!(&text[all[0].range.clone()], value);
            assert_eq!(all[0].rule, Rule::RowData);
        }
    }

    #[test]
    fn rows_of_a_statement_are_none() {
        for text in [
            "where (a, b)=(c, d)",
            "update t set (a,b)=($1, $2)",
            "select x from t using (a)=(?)",
            "key (a)=(?)",
        ] {
            assert_eq!(hits(text), [], "{text}");
        }
    }
}
