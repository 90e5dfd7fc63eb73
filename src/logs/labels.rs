//! The word before a line's text: which part of a message it is, in the languages that the server has.

/// What a line is of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// It begins one: ERROR, LOG, …
    Message,
    Detail,
    Context,
    Statement,
    /// HINT, QUERY, LOCATION, BACKTRACE: nothing of them is used.
    Aside,
    /// A word of a language that isn't in the table.
    Unknown,
}

/// How bad a message is, by the word of its label. Whatever a session says itself is no more than an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    Log,
    Error,
    /// FATAL, PANIC
    Fatal,
    /// WARNING, NOTICE, INFO, DEBUG
    Less,
    /// In a language whose words aren't told apart.
    #[default]
    Unknown,
}

impl Severity {
    /// By the end of what stands before a message: the longest word of the table that it ends in.
    pub fn of(before: &str) -> Self {
        let before = before.trim_end_matches([' ', ':', '\u{a0}', '\u{202f}']);
        WORDS
            .iter()
            .find(|(_, words)| words.iter().any(|word| before.ends_with(word)))
            .map_or(Self::Unknown, |(severity, _)| *severity)
    }
}

/// `致命的エラー` ends in `エラー`.
const WORDS: [(Severity, &[&str]); 4] = [
    (
        Severity::Fatal,
        &["FATAL", "PANIC", "致命的エラー", "パニック"],
    ),
    (Severity::Error, &["ERROR", "エラー"]),
    (Severity::Log, &["LOG", "ログ"]),
    (
        Severity::Less,
        &[
            "WARNING", "NOTICE", "INFO", "DEBUG", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4", "DEBUG5",
            "警告", "注意", "情報",
        ],
    ),
];

const MESSAGE: &[&str] = &[
    "LOG",
    "ERROR",
    "FATAL",
    "PANIC",
    "WARNING",
    "NOTICE",
    "INFO",
    "DEBUG",
    "DEBUG1",
    "DEBUG2",
    "DEBUG3",
    "DEBUG4",
    "DEBUG5", // Japanese
    "ログ",
    "エラー",
    "致命的エラー",
    "パニック",
    "警告",
    "注意",
    "情報", // German
    "FEHLER",
    "PANIK",
    "WARNUNG",
    "HINWEIS", // French
    "ERREUR",
    "ATTENTION", // Korean
    "로그",
    "오류",
    "치명적오류",
    "손상",
    "경고",
    "알림",
    "정보", // Russian, Ukrainian
    "СООБЩЕНИЕ",
    "ОШИБКА",
    "ВАЖНО",
    "ПАНИКА",
    "ПРЕДУПРЕЖДЕНИЕ",
    "ЗАМЕЧАНИЕ",
    "ИНФОРМАЦИЯ",
    "ЗАПИСУВАННЯ",
    "ПОМИЛКА",
    "ФАТАЛЬНО",
    "ПАНІКА",
    "ПОПЕРЕДЖЕННЯ",
    "ПОВІДОМЛЕННЯ", // Chinese
    "日志",
    "错误",
    "致命错误",
    "比致命错误还过分的错误",
    "日誌",
    "錯誤",
    "嚴重錯誤", // Italian
    "ERRORE",
    "FATALE",
    "PANICO",
    "ATTENZIONE",
    "NOTIFICA", // Swedish
    "LOGG",
    "FEL",
    "FATALT",
    "VARNING",
    "NOTIS", // Georgian
    "ჟურნალი",
    "შეცდომა",
    "ფატალური",
    "პანიკა",
    "გაფრთხილება", // Portuguese, Spanish
    "ERRO",
    "AVISO",
    "NOTA",
    "ADVERTENCIA", // Polish, Turkish, Czech
    "DZIENNIK",
    "BŁĄD",
    "KATASTROFALNY",
    "OSTRZEŻENIE",
    "KAYIT",
    "HATA",
    "ÖLÜMCÜL",
    "UYARI",
    "CHYBA",
    "FATÁLNÍ",
];
const DETAIL: &[&str] = &[
    "DETAIL",
    "詳細",
    "DÉTAIL",
    "DETALLE",
    "상세정보",
    "ПОДРОБНОСТИ",
    "详细信息",
    "詳細內容",
    "DETTAGLI",
    "DETALJ",
    "ВІДОМОСТІ",
    "დეტალები",
    "DETALHE",
    "SZCZEGÓŁY",
    "AYRINTI",
    "DETAY",
];
const CONTEXT: &[&str] = &[
    "CONTEXT",
    "文脈",
    "コンテキスト",
    "ZUSAMMENHANG",
    "CONTEXTE",
    "CONTEXTO",
    "내용",
    "КОНТЕКСТ",
    "上下文",
    "CONTESTO",
    "KONTEXT",
    "კონტექსტი",
    "KONTEKST",
    "BAĞLAM",
];
const STATEMENT: &[&str] = &[
    "STATEMENT",
    "文",
    "ANWEISUNG",
    "INSTRUCTION",
    "SENTENCIA",
    "명령 구문",
    "ОПЕРАТОР",
    "语句",
    "陳述式",
    "ISTRUZIONE",
    "SATS",
    "ІНСТРУКЦІЯ",
    "ოპერატორი",
    "COMANDO",
    "INSTRUÇÃO",
    "WYRAŻENIE",
    "İFADE",
    "PŘÍKAZ",
];
const ASIDE: &[&str] = &[
    "HINT",
    "ヒント",
    "TIPP",
    "ASTUCE",
    "힌트",
    "ПОДСКАЗКА",
    "提示",
    "SUGGERIMENTO",
    "TIPS",
    "УКАЗІВКА",
    "მინიშნება",
    "DICA",
    "SUGERENCIA",
    "PODPOWIEDŹ",
    "İPUCU",
    "DOPORUČENÍ",
    "QUERY",
    "問い合わせ",
    "ANFRAGE",
    "REQUÊTE",
    "CONSULTA",
    "쿼리",
    "ЗАПРОС",
    "查询",
    "FRÅGA",
    "ЗАПИТ",
    "მოთხოვნა",
    "LOCATION",
    "場所",
    "ORT",
    "EMPLACEMENT",
    "UBICACIÓN",
    "위치",
    "ПОЛОЖЕНИЕ",
    "位置",
    "POSIZIONE",
    "PLATS",
    "РОЗТАШУВАННЯ",
    "მდებარეობა",
    "BACKTRACE",
    "バックトレース",
];

/// A label at the beginning of a text, and where the text behind it begins.
pub fn leading(text: &str) -> Option<(Label, usize)> {
    // The colon stands near, or this is no label: two blanks follow it, except for some words of some translations.
    let colon = text
        .char_indices()
        .take(32)
        .find(|(_, c)| *c == ':')
        .map(|(at, _)| at)?;
    let word = text[..colon].trim_end_matches([' ', '\u{a0}', '\u{202f}']);
    let behind = &text[colon + 1..];
    let start = colon + 1 + (behind.len() - behind.trim_start_matches(' ').len());
    let label = known(word).or_else(|| unknown(word, behind))?;
    Some((label, start))
}

/// The label's word, of what stands before a message's text.
pub fn word_of(before: &str) -> &str {
    let before = before.trim_end_matches([' ', ':', '\u{a0}', '\u{202f}']);
    let start = before.rfind(|c: char| !c.is_alphanumeric());
    start.map_or(before, |at| &before[at..])
}

/// A word of the table.
pub fn known(word: &str) -> Option<Label> {
    [
        (Label::Message, MESSAGE),
        (Label::Detail, DETAIL),
        (Label::Context, CONTEXT),
        (Label::Statement, STATEMENT),
        (Label::Aside, ASIDE),
    ]
    .into_iter()
    .find(|(_, words)| words.contains(&word))
    .map(|(label, _)| label)
}

/// Upper case or a script without cases, and the two blanks behind the colon.
fn unknown(word: &str, behind: &str) -> Option<Label> {
    let letters = word
        .chars()
        .all(|c| c.is_alphabetic() && !c.is_lowercase() || c == ' ');
    // A name that ends in such letters, and its label behind it, are two.
    let with_name = word
        .match_indices(' ')
        .any(|(at, _)| known(&word[at + 1..]).is_some());
    (behind.starts_with("  ") && word.chars().count() >= 2 && letters && !with_name)
        .then_some(Label::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_several_languages() {
        let cases = [
            (
                "ERROR:  deadlock detected",
                Label::Message,
                "deadlock detected",
            ),
            ("詳細:  プロセス", Label::Detail, "プロセス"),
            ("ASTUCE :  Voir", Label::Aside, "Voir"),
            ("명령 구문:  select 1", Label::Statement, "select 1"),
            ("쿼리:select 1", Label::Aside, "select 1"),
            ("YHTEYS:  x", Label::Unknown, "x"),
        ];
        for (text, label, rest) in cases {
            let (found, start) = leading(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found, &text[start..]), (label, rest), "{text}");
        }
        for text in [
            "店 LOG:  x",
            "店 명령 구문:  x",
            "app@shop LOG:  x",
            "select 1",
            "Process 1: x",
            "a: b",
        ] {
            assert_eq!(leading(text), None, "{text}");
        }
    }
}
