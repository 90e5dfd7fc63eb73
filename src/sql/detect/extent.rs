//! How far a value reaches that has no quotes of its own. A password may hold any sign: before the next blank only what
//! looks like the structure around it ends it. Where that can't be told, rather too much is hidden than the tail shown.

/// Quotes and brackets are looked for no further back.
const FAR: usize = 2000;

/// No value is followed further than this: what has no blank for so long is no password.
const LONGEST: usize = 16 << 10;

/// What stands before a value, its key or its URL.
#[derive(Clone, Copy)]
pub(super) struct Before<'t> {
    text: &'t str,
    /// The operator, where pairs may follow one another (`a=b;c=d`).
    op: Option<&'t str>,
    open: Open,
}

/// Which quotes and brackets are open before it.
#[derive(Clone, Copy, Default)]
struct Open {
    double: bool,
    escaped: bool,
    single: bool,
    backtick: bool,
    round: i32,
    square: i32,
    curly: i32,
    angle: i32,
}

impl Open {
    fn after(text: &str) -> Self {
        let mut open = Self::default();
        let mut last = 0;
        for byte in text.bytes() {
            match byte {
                b'"' if last == b'\\' => open.escaped = !open.escaped,
                b'"' => open.double = !open.double,
                b'\'' => open.single = !open.single,
                b'`' => open.backtick = !open.backtick,
                b'(' => open.round += 1,
                b')' => open.round -= 1,
                b'[' => open.square += 1,
                b']' => open.square -= 1,
                b'{' => open.curly += 1,
                b'}' => open.curly -= 1,
                b'<' => open.angle += 1,
                b'>' => open.angle -= 1,
                _ => {}
            }
            last = byte;
        }
        open
    }
}

impl<'t> Before<'t> {
    /// Of a key and its operator.
    pub fn key(text: &'t str, at: usize, op: &'t str) -> Self {
        let op = Some(op);
        Self {
            op,
            ..Self::word(text, at)
        }
    }

    /// Of something that stands alone.
    pub fn word(text: &'t str, at: usize) -> Self {
        let mut from = at.saturating_sub(FAR);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        let line = text[from..at].rfind('\n').map_or(from, |n| from + n + 1);
        let text = &text[line..at];
        Self {
            text,
            op: None,
            open: Open::after(text),
        }
    }

    /// Where a value ends of which all before `at` is a part already.
    pub fn end(self, text: &str, mut at: usize) -> usize {
        // `-u "bob:…"`: its own quote ends it, blanks are within.
        let alone = self.op.is_none();
        let quoted = alone && self.text.ends_with(['"', '\'', '`']);
        // `-u bob:"…"`: so does one that opens it, where there is one that closes it.
        if let Some(quote) = text[at..]
            .chars()
            .next()
            .filter(|c| alone && "\"'".contains(*c))
            && let line = text[at + 1..].lines().next().unwrap_or_default()
            && let Some(close) = line.find(quote)
            && !self.is_end(&text[at..], quoted)
        {
            at += close + 2;
        }
        let most = at.saturating_add(LONGEST);
        while let Some(c) = text[at..].chars().next().filter(|_| at < most) {
            let blank = if quoted { c == '\n' } else { c.is_whitespace() };
            if blank || self.is_end(&text[at..], quoted) {
                break;
            }
            at += c.len_utf8();
            if c == '\\' {
                // Escaped, be it a blank.
                let next = text[at..].chars().next().filter(|c| *c != '\n');
                at += next.map_or(0, char::len_utf8);
            }
        }
        at
    }

    /// The structure goes on here: quotes and brackets close that were opened before, or the next pair begins.
    pub fn is_end(self, rest: &str, quoted: bool) -> bool {
        let over = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
        let escaped = ["\\n", "\\r", "\\t"];
        if let Some(after) = escaped.iter().find_map(|it| rest.strip_prefix(it)) {
            return after.is_empty() || after.starts_with(['\\', '"']) || is_pair(after, "=");
        }
        if let Some(tag) = rest.strip_prefix("</") {
            return tag
                .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_:-".contains(c))
                .starts_with('>');
        }
        let mut inner = rest;
        while let Some(after) = self.closes(inner) {
            inner = after;
        }
        let closed = inner.len() < rest.len();
        if quoted && !closed {
            return false;
        }
        let Some(sign) = inner.chars().next().filter(|c| ",;&|.:\\".contains(*c)) else {
            return closed && over(inner);
        };
        let after = &inner[1..];
        if closed {
            let opens = ['"', '\'', '{', '[', '(', '\\', '|', ':'];
            let escaped = sign == '\\' && after.starts_with(['"', '\\', 'n', 'r', 't']);
            return over(after) || escaped || after.starts_with(opens);
        }
        match sign {
            ',' | ';' if over(after) => true,
            ',' | ';' | '&' | '|' => {
                self.op.is_some_and(|op| is_pair(after, op)) && self.parts(sign)
            }
            _ => false,
        }
    }

    /// What follows the quote or bracket that closes here.
    fn closes(self, rest: &str) -> Option<&str> {
        if let Some(after) = rest.strip_prefix("\\\"") {
            return self.open.escaped.then_some(after);
        }
        let open = match rest.bytes().next()? {
            b'"' => self.open.double,
            b'\'' => self.open.single,
            b'`' => self.open.backtick,
            b')' => self.open.round > 0,
            b']' => self.open.square > 0,
            b'}' => self.open.curly > 0,
            b'>' => self.open.angle > 0,
            _ => false,
        };
        open.then(|| &rest[1..])
    }

    /// Pairs are parted by this sign: one stands before this pair too, or it is the first.
    fn parts(self, sign: char) -> bool {
        let before = self.text.trim_end();
        before.is_empty() || before.ends_with(['"', '\'', '`', '(', '[', '{', '<', '?', sign])
    }
}

/// `key=value`, `"key": value`.
pub(super) fn is_pair(text: &str, op: &str) -> bool {
    let bare = text.trim_start_matches(['\\', '"', '\'']);
    let after = bare.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_.-".contains(c));
    let key = &bare[..bare.len() - after.len()];
    let value = after.trim_start_matches(['\\', '"', '\'', ' ']);
    let value = match value.strip_prefix(':') {
        Some(rest) if op == ":" || bare.len() < text.len() => rest.trim_start(),
        _ => value.strip_prefix('=').unwrap_or_default(),
    };
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && !value.is_empty()
        && !value.starts_with(['=', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_structure_ends_a_value_before_a_blank() {
        for (text, rest) in [
            ("password=ab,cd ef", " ef"),
            ("password=ab,cd, ef", ", ef"),
            ("password=a\\ b c", " c"),
            ("password=a;b=c", ";b=c"),
            ("x password=a;b=c", ""),
            ("u=x;password=a;b;c=d", ";c=d"),
            ("?password=a&b&c=d", "&c=d"),
            ("(password=a)b)", ")"),
            ("password=a)b", ""),
            ("{\"x\": \"password=a\"b\", \"c\": 1}", "\", \"c\": 1}"),
            (
                "{\\\"x\\\":\\\"password=a\\\",\\\"c\\\":1}",
                "\\\",\\\"c\\\":1}",
            ),
            ("password=a\\nhost=b", "\\nhost=b"),
            ("<x>password=a<b</x>", "</x>"),
            ("'password=a'::text", "'::text"),
            ("('password=a', 'b')", "', 'b')"),
        ] {
            let at = text.find("password").expect("a key");
            let end = Before::key(text, at, "=").end(text, at + "password=a".len());
            assert_eq!(&text[end..], rest, "{text}");
        }
    }
}
