//! What the server says of locks, by structure: the mode's word is never translated, and numbers keep their roles.

use crate::model::{LockMode, LogEdge, LogObject, LogPlace, LogWaitStage, Millis, Pid};

/// Quotes around a name, in the languages that the server has.
const QUOTES: [(char, char); 5] = [('"', '"'), ('«', '»'), ('»', '«'), ('“', '”'), ('„', '“')];

/// Words that stand before the number of a database where the database comes first.
const DATABASE_FIRST: [&str; 3] = ["データベース", "数据库", "資料庫"];

/// Longest name that the server has, in bytes.
const NAME: usize = 63;

/// How the lines on rows call an index, in small letters.
const INDEX: [&str; 8] = [
    "index",
    "indice",
    "índice",
    "индекс",
    "індекс",
    "インデックス",
    "索引",
    "인덱스",
];

/// What stands around the place in a statement that the stderr format adds to a message.
const CURSOR: [(&str, &str); 12] = [
    (" at character ", ""),
    ("(", "文字目)"),
    (" bei Zeichen ", ""),
    (" en carácter ", ""),
    (" au caractère ", ""),
    (" al carattere ", ""),
    (" სიმბოლოსთან ", ""),
    (" ", " 번째 문자 부근"),
    (" (символ ", ")"),
    (" символ ", ""),
    (" vid tecken ", ""),
    (" 第 ", " 个字符处"),
];

/// A number in a text, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Number {
    from: usize,
    to: usize,
    value: u64,
}

/// `Process 1 waits for ShareLock on transaction 2; blocked by process 3.` in any language: the first number is who
/// waits, the last who is in the way, what stands between is the object.
pub fn edge(line: &str) -> Option<LogEdge> {
    let (mode, _) = mode(line)?;
    let numbers = numbers(line);
    let (first, rest) = numbers.split_first()?;
    let (last, between) = rest.split_last()?;
    Some(LogEdge {
        pid: pid(*first)?,
        on: object(line, between, first.to, last.from)?,
        mode,
        blocked_by: pid(*last)?,
        statement: None,
        place: None,
        inner: None,
    })
}

/// A line of log_lock_waits without its label.
pub struct WaitLine {
    pub pid: Pid,
    pub mode: LockMode,
    pub on: LogObject,
    pub waited: Option<Millis>,
    pub stage: LogWaitStage,
}

/// `process 1 still waiting for ShareLock on transaction 2 after 1000.123 ms` in any language.
pub fn wait(message: &str, has_detail: bool) -> Option<WaitLine> {
    // It is of one line: whatever stands below it is another message, which couldn't be told from it.
    let message = without_cursor(message.lines().next()?);
    let (mode, _) = mode(message)?;
    let (waited, text) = match duration(message) {
        Some((waited, from, to)) => (
            Some(waited),
            format!("{}{}", &message[..from], &message[to..]),
        ),
        None => (None, message.to_owned()),
    };
    let numbers = numbers(&text);
    let (first, rest) = numbers.split_first()?;
    let stage = stage(message, has_detail)?;
    if waited.is_none() && stage != LogWaitStage::Failed {
        return None;
    }
    Some(WaitLine {
        pid: pid(*first)?,
        on: object(&text, rest, first.to, text.len())?,
        mode,
        waited,
        stage,
    })
}

/// The message without ` at character 22`.
pub fn without_cursor(message: &str) -> &str {
    CURSOR
        .iter()
        .find_map(|(before, behind)| {
            let head = message.strip_suffix(behind)?;
            let text = head.trim_end_matches(|c: char| c.is_ascii_digit());
            (text.len() < head.len()).then(|| text.strip_suffix(before))?
        })
        .unwrap_or(message)
}

/// Holders and queue out of `Process holding the lock: 1, 2. Wait queue: 3, 4.`: two lists of numbers.
pub fn holders_and_queue(detail: &str) -> (Vec<Pid>, Vec<Pid>) {
    let mut lists: Vec<Vec<Pid>> = Vec::new();
    let mut last_end = None;
    for number in numbers(detail) {
        let Some(pid) = pid(number) else { continue };
        let joined = last_end.is_some_and(|end: usize| {
            detail[end..number.from]
                .chars()
                .all(|c| c.is_whitespace() || matches!(c, ',' | '、' | '،' | '，'))
        });
        match lists.last_mut().filter(|_| joined) {
            Some(list) => list.push(pid),
            None => lists.push(vec![pid]),
        }
        last_end = Some(number.to);
    }
    let mut lists = lists.into_iter();
    match (lists.next(), lists.next()) {
        (Some(holders), queue) => (holders, queue.unwrap_or_default()),
        (None, _) => Default::default(),
    }
}

/// `while updating tuple (0,1) in relation "accounts"` in any language. The server writes that line before all others of a
/// CONTEXT, so what a statement has in it, further down, is never taken for one.
pub fn place(context: &str) -> Option<LogPlace> {
    let mut lines = own_lines(context);
    let (relation, page, tuple, words) = row(lines.next()?)?;
    let index = INDEX.iter().any(|word| words.contains(word));
    // The query of the check, in the server's own words, right behind.
    let foreign_key = lines.next().is_some_and(|line| {
        line.contains("SELECT 1 FROM ONLY ") && line.contains(" FOR KEY SHARE OF x")
    });
    Some(LogPlace {
        relation,
        page,
        tuple,
        index,
        foreign_key,
    })
}

/// `SQL statement "…"` right behind the place: what a function does while it waits. Of a foreign key's check nothing.
pub fn inner(context: &str) -> Option<String> {
    if place(context).is_some_and(|place| place.foreign_key) {
        return None;
    }
    let lines: Vec<&str> = own_lines(context)
        .skip_while(|line| row(line).is_some())
        .collect();
    let (at, open) = lines
        .first()?
        .char_indices()
        .find(|(_, c)| QUOTES.iter().any(|(open, _)| open == c))?;
    let (_, close) = QUOTES.iter().find(|(known, _)| *known == open)?;
    // The word for a function's own statements stands before the quotes, and never a function's name.
    if !lines[0][..at].contains("SQL") {
        return None;
    }
    let ends = |n: usize| {
        let behind = lines.get(n + 1).is_none_or(|next| next.contains("SQL"));
        lines[n].ends_with(*close) && behind
    };
    let last = (0..lines.len()).find(|n| ends(*n))?;
    let whole = lines[..=last].join("\n");
    let text = whole[at + open.len_utf8()..].strip_suffix(*close)?;
    Some(text.trim_matches([' ', '\u{a0}', '\u{202f}']).to_owned())
}

/// Lines of a CONTEXT behind those that only say which lock it is.
fn own_lines(context: &str) -> impl Iterator<Item = &str> {
    context
        .lines()
        .skip_while(|line| mode(line).is_some() && quoted(line).is_none())
}

/// Name, page, tuple, and the words around them: nothing else may stand in the line.
fn row(line: &str) -> Option<(String, u32, u32, String)> {
    let (name, from, to) = quoted(line)?;
    let words = format!("{}\u{1}{}", &line[..from], &line[to..]).to_lowercase();
    let [a, b] = numbers(&words)[..] else {
        return None;
    };
    let plain = words.chars().all(|c| {
        c.is_alphanumeric()
            || c.is_whitespace()
            || matches!(c, '\u{1}' | '(' | ')' | ',' | ':' | '\'' | '’' | '-')
    });
    // What begins a statement or a function of somebody's has one of these in all languages.
    let others = words.contains("sql") || words.starts_with("copy ");
    let is_row = words[a.to..b.from].trim() == "," && plain && !others;
    (is_row && name.len() <= NAME).then(|| Some((name, small(a)?, small(b)?, words)))?
}

/// The word of a lock mode, and where it ends.
fn mode(text: &str) -> Option<(LockMode, usize)> {
    text.match_indices("Lock").find_map(|(at, tail)| {
        let end = at + tail.len();
        let start = text[..at]
            .rfind(|c: char| !c.is_ascii_alphabetic())
            .map_or(0, |before| {
                before + text[before..].chars().next().map_or(1, char::len_utf8)
            });
        let found = LockMode::parse(&text[start..end]);
        (!matches!(found, LockMode::Other(_))).then_some((found, end))
    })
}

fn numbers(text: &str) -> Vec<Number> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let from = at;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            at += 1;
        }
        if let Ok(value) = text[from..at].parse() {
            found.push(Number {
                from,
                to: at,
                value,
            });
        }
    }
    found
}

fn pid(number: Number) -> Option<Pid> {
    i32::try_from(number.value).ok().map(Pid)
}

fn small(number: Number) -> Option<u32> {
    u32::try_from(number.value).ok()
}

/// The object by the numbers it has and the signs between them.
fn object(text: &str, numbers: &[Number], from: usize, to: usize) -> Option<LogObject> {
    let between = |a: Number, b: Number| text[a.to..b.from].trim();
    let before = |n: Number| text[..n.from].trim_end();
    let words = text[from..to].to_lowercase();
    let is_token = ["token", "トークン", "токен", "토큰", "令牌"]
        .iter()
        .any(|word| words.contains(word));
    let is_part = [
        "exten",
        "erweiterung",
        "拡張",
        "확장",
        "расширени",
        "розширен",
        "扩展",
        "estension",
        "utökning",
    ]
    .iter()
    .any(|word| words.contains(word));
    let database_first = |n: Number| DATABASE_FIRST.iter().any(|word| before(n).ends_with(word));
    let of_relation = |a: Number, b: Number| {
        let (relation, database) = if database_first(a) { (b, a) } else { (a, b) };
        Some((small(relation)?, small(database)?))
    };
    let other = || {
        let words = text[from..to]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        // In English the object stands between these words.
        let inside = words
            .split_once(" on ")
            .map_or(words.as_str(), |(_, rest)| rest);
        let inside = inside.split("; blocked by").next().unwrap_or(inside);
        let inside = inside.split(" after").next().unwrap_or(inside);
        Some(LogObject::Other {
            text: inside.trim().to_owned(),
        })
    };
    match *numbers {
        [a] if words.contains("datfrozenxid") => {
            let _ = a;
            other()
        }
        [a] => Some(LogObject::Transaction { xid: small(a)? }),
        [a, b] if between(a, b) == "/" => Some(LogObject::VirtualTransaction {
            vxid: format!("{}/{}", a.value, b.value),
        }),
        [_, _] if is_token || is_part => other(),
        [a, b] => {
            let (relation, database) = of_relation(a, b)?;
            Some(LogObject::Relation { relation, database })
        }
        [a, b, c, d] if before(a).ends_with('[') && text[d.to..].starts_with(']') => {
            Some(LogObject::Advisory {
                database: small(a)?,
                key: [small(b)?, small(c)?, small(d)?],
            })
        }
        [a, b, c, d] if before(a).ends_with('(') && between(a, b) == "," => {
            let (relation, database) = of_relation(c, d)?;
            Some(LogObject::Tuple { relation, database })
        }
        [a, b, c, d] if before(c).ends_with('(') && between(c, d) == "," => {
            let (relation, database) = of_relation(a, b)?;
            Some(LogObject::Tuple { relation, database })
        }
        _ => other(),
    }
}

/// `1000.123 ms`, with the comma or the unit of another language.
fn duration(text: &str) -> Option<(Millis, usize, usize)> {
    numbers(text).windows(2).find_map(|pair| {
        let [whole, part] = pair else { return None };
        let joined = matches!(&text[whole.to..part.from], "." | ",") && part.to - part.from == 3;
        let behind = text[part.to..].trim_start();
        let unit = ["ms", "ミリ秒", "мс"]
            .iter()
            .find(|unit| behind.starts_with(**unit))?;
        let end = text.len() - behind.len() + unit.len();
        joined.then_some((Millis(whole.value), whole.from, end))
    })
}

/// Which of the lines it is, by its words; what isn't known is told by whether it names holders.
fn stage(message: &str, has_detail: bool) -> Option<LogWaitStage> {
    const WORDS: [(LogWaitStage, &[&str]); 5] = [
        (
            LogWaitStage::Avoided,
            &[
                "avoided",
                "防ぎました",
                "vermied",
                "évité",
                "evitó",
                "избежал",
                "避免",
                "evitato",
                "undvek",
                "уникнув",
                "다시 조정",
            ],
        ),
        (
            LogWaitStage::Failed,
            &[
                "failed to acquire",
                "could not obtain",
                "失敗",
                "できませんでした",
                "nicht erlangen",
                "échoué",
                "no pudo",
                "не смог",
                "失败",
                "fallito",
                "misslyckades",
                "не зміг",
                "취득하지",
            ],
        ),
        (
            LogWaitStage::Deadlock,
            &[
                "detected deadlock",
                "検知",
                "検出",
                "festgestellt",
                "détecté",
                "detectó",
                "обнаружил",
                "监测到",
                "检测到",
                "individuato",
                "upptäckte",
                "виявив",
                "감지",
            ],
        ),
        (
            LogWaitStage::StillWaiting,
            &[
                "still waiting",
                "待機しています",
                "immer noch",
                "toujours",
                "aún espera",
                "продолжает",
                "仍然等待",
                "ancora",
                "fortfarande",
                "все ще",
                "여전히",
            ],
        ),
        (
            LogWaitStage::Acquired,
            &[
                "acquired",
                "獲得",
                "erlangte",
                "a acquis",
                "adquirió",
                "получил",
                "获取",
                "acquisito",
                " fick ",
                "отримав",
                "취득함",
            ],
        ),
    ];
    let by_word = WORDS
        .iter()
        .find(|(_, words)| words.iter().any(|word| message.contains(word)))
        .map(|(stage, _)| *stage);
    by_word.or(Some(if has_detail {
        LogWaitStage::StillWaiting
    } else {
        LogWaitStage::Acquired
    }))
}

/// The name in quotes, and where the quotes begin and end; a quote inside of it isn't doubled, so it goes up to the last.
fn quoted(line: &str) -> Option<(String, usize, usize)> {
    let (at, open) = line
        .char_indices()
        .find(|(_, c)| QUOTES.iter().any(|(open, _)| open == c))?;
    let (_, close) = QUOTES.iter().find(|(known, _)| *known == open)?;
    let start = at + open.len_utf8();
    let inside = &line[start..];
    let end = inside.rfind(*close)?;
    let name = inside[..end].trim_matches([' ', '\u{a0}', '\u{202f}']);
    let found = (name.to_owned(), at, start + end + close.len_utf8());
    (!name.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_a_quote() {
        let line = "while updating tuple (0,2) in relation \"we ird\"Täble\"";
        let place = place(line).expect("a place");
        assert_eq!(place.relation, "we ird\"Täble");
    }

    #[test]
    fn edges_in_eleven_languages() {
        let lines = [
            "Process 11 waits for ShareLock on transaction 727; blocked by process 22.",
            "プロセス 11 は ShareLock を トランザクション 727 で待機していましたが、プロセス 22 でブロックされました",
            "Prozess 11 wartet auf ShareLock-Sperre auf Transaktion 727; blockiert von Prozess 22.",
            "Le processus 11 attend ShareLock sur transaction 727 ; bloqué par le processus 22.",
            "El proceso 11 espera ShareLock en transacción 727; bloqueado por proceso 22.",
            "11 프로세스가 ShareLock 상태로 지연되고 있음(해당 작업: 트랜잭션 727); 22 프로세스에 의해 블록킹되었음",
            "Процесс 11 ожидает в режиме ShareLock блокировку \"транзакция 727\"; заблокирован процессом 22.",
            "进程11等待在事务 727上的ShareLock; 由进程22阻塞.",
            "Il processo 11 è in attesa di ShareLock su la transazione 727; bloccato dal processo 22.",
            "Process 11 väntar på ShareLock för transaktion 727; blockerad av process 22.",
            "Процес 11 очікує в режимі ShareLock блокування \"транзакція 727\"; заблокований процесом 22.",
        ];
        for line in lines {
            let edge = edge(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!((edge.pid, edge.blocked_by), (Pid(11), Pid(22)), "{line}");
            assert_eq!(edge.mode, LockMode::Share, "{line}");
            assert_eq!(edge.on, LogObject::Transaction { xid: 727 }, "{line}");
        }
    }

    #[test]
    fn objects_by_their_numbers() {
        let relation = LogObject::Relation {
            relation: 16386,
            database: 5,
        };
        let tuple = LogObject::Tuple {
            relation: 16386,
            database: 5,
        };
        let advisory = LogObject::Advisory {
            database: 5,
            key: [0, 22, 1],
        };
        let cases = [
            ("on relation 16386 of database 5;", &relation),
            ("データベース5のリレーション16386 で", &relation),
            ("等待在数据库5的关系16386上的", &relation),
            ("on tuple (0,3) of relation 16386 of database 5;", &tuple),
            ("データベース5のリレーション16386のタプル(3,0) で", &tuple),
            ("数据库5的关系16386中的元组(0,3)", &tuple),
            ("on advisory lock [5,0,22,1];", &advisory),
            ("アドバイザリ・ロック[5,0,22,1] で", &advisory),
        ];
        for (text, object) in cases {
            let line = format!("Process 11 waits for ExclusiveLock {text} blocked by process 22.");
            assert_eq!(&edge(&line).expect("an edge").on, object, "{text}");
        }
        let line = "Process 1 waits for ExclusiveLock on extension of relation 7 of database 5; blocked by process 2.";
        assert_eq!(
            edge(line).expect("an edge").on,
            LogObject::Other {
                text: "extension of relation 7 of database 5".into()
            }
        );
    }

    #[test]
    fn waits_in_several_orders() {
        let cases = [
            (
                "process 1 still waiting for ShareLock on transaction 742 after 1000.149 ms",
                LogWaitStage::StillWaiting,
            ),
            (
                "プロセス1はShareLockをトランザクション 742で待機しています。1000.149ミリ秒後",
                LogWaitStage::StillWaiting,
            ),
            (
                "プロセス1は1000.149 ms後にトランザクション 742上のShareLockを獲得しました",
                LogWaitStage::Acquired,
            ),
            (
                "プロセス1は、トランザクション 742上のShareLockに対し1000.149 ms待機するデッドロックを検知しました",
                LogWaitStage::Deadlock,
            ),
            (
                "Prozess 1 erlangte ShareLock-Sperre auf Transaktion 742 nach 1000,149 ms",
                LogWaitStage::Acquired,
            ),
            (
                "进程1在1000.149 ms后获取在事务 742上的ShareLock失败",
                LogWaitStage::Failed,
            ),
            (
                "процесс 1 получил в режиме ShareLock блокировку \"транзакция 742\" через 1000.149 мс",
                LogWaitStage::Acquired,
            ),
        ];
        for (text, stage) in cases {
            let wait = wait(text, false).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (wait.pid, wait.waited, wait.stage),
                (Pid(1), Some(Millis(1000)), stage),
                "{text}"
            );
            assert_eq!(wait.on, LogObject::Transaction { xid: 742 }, "{text}");
        }
        assert!(wait("a lock of the kind ShareLock is on 1 and 2", false).is_none());
    }

    #[test]
    fn the_place_in_a_statement_is_no_part_of_the_lock() {
        let relation = LogObject::Relation {
            relation: 16453,
            database: 16384,
        };
        for text in [
            "process 1 acquired AccessShareLock on relation 16453 of database 16384 after 240.512 ms at character 22",
            "プロセス1は240.512 ms後にデータベース16384のリレーション16453上のAccessShareLockを獲得しました(22文字目)",
            "Prozess 1 erlangte AccessShareLock-Sperre auf Relation 16453 der Datenbank 16384 nach 240,512 ms bei Zeichen 22",
            "процесс 1 получил в режиме AccessShareLock блокировку \"отношение 16453 базы данных 16384\" через 240.512 мс (символ 22)",
        ] {
            let wait = wait(text, false).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((wait.pid, &wait.on), (Pid(1), &relation), "{text}");
            assert_eq!(wait.stage, LogWaitStage::Acquired, "{text}");
        }
        let failed = "process 1 could not obtain ShareLock on transaction 742";
        assert_eq!(without_cursor(failed), failed);
    }

    #[test]
    fn holders_queue_and_place() {
        let pids = |all: &[i32]| all.iter().copied().map(Pid).collect::<Vec<_>>();
        for (text, holders, queue) in [
            (
                "Process holding the lock: 5. Wait queue: 7, 8.",
                &[5][..],
                &[7, 8][..],
            ),
            (
                "Processes holding the lock: 5, 6, Wait queue: .",
                &[5, 6],
                &[],
            ),
        ] {
            assert_eq!(
                holders_and_queue(text),
                (pids(holders), pids(queue)),
                "{text}"
            );
        }
        for context in [
            "while updating tuple (0,2) in relation \"accounts\"\nPL/pgSQL function f() line 3",
            "リレーション\"accounts\"のタプル(0,2)の更新中",
            "beim Aktualisieren von Tupel (0,2) in Relation »accounts«",
            "lors de la mise à jour de la ligne (0,2) dans la relation « accounts »",
            "当更新关系\"accounts\"的元组(0, 2)时",
        ] {
            let place = place(context).unwrap_or_else(|| panic!("{context}"));
            assert_eq!(
                (place.relation.as_str(), place.page, place.tuple),
                ("accounts", 0, 2)
            );
        }
    }

    /// As the catalogs of messages have them, with whether it is an index.
    #[test]
    fn places_in_eleven_languages() {
        let lines = [
            (
                "while locking updated version (5,7) of tuple in relation \"t\"",
                false,
            ),
            ("while inserting index tuple (5,7) in relation \"t\"", true),
            (
                "beim Sperren von aktualisierter Version (5,7) von Tupel in Relation »t«",
                false,
            ),
            ("beim Einfügen von Indextupel (5,7) in Relation »t«", true),
            (
                "beim Prüfen eines Exclusion-Constraints für Tupel (5,7) in Relation »t«",
                false,
            ),
            (
                "mientras se borraba la tupla (5,7) en la relación «t»",
                false,
            ),
            (
                "mientras se insertaba la tupla de índice (5,7) en la relación «t»",
                true,
            ),
            (
                "lors de l'insertion de l'enregistrement (5, 7) de l'index dans la relation « t »",
                true,
            ),
            (
                "lors de la re-vérification de l'enregistrement mis à jour (5,7) dans la relation « t »",
                false,
            ),
            (
                "durante l'inserimento della tupla di indice (5,7) nella relazione \"t\"",
                true,
            ),
            ("リレーション\"t\"のインデックスタプル(5,7)の挿入中", true),
            (
                "リレーション\"t\"のタプルの更新後バージョン(5,7)のロック中",
                false,
            ),
            ("კორტეჟის (5,7) წაშლისას ურთიერთობაში \"t\"", false),
            (
                "5,7 튜플(해당 릴레이션: \"t\")의 고유성을 검사하는 중에 발생",
                false,
            ),
            (
                "5,7 튜플 인덱스(해당 릴레이션 \"t\")를 삽입하는 중에 발생",
                true,
            ),
            (
                "при проверке ограничения-исключения для кортежа (5,7) в отношении \"t\"",
                false,
            ),
            (
                "при добавлении кортежа индекса (5,7) в отношении \"t\"",
                true,
            ),
            ("vid insättning av indextupel (5,7) i relation \"t\"", true),
            ("при вставці кортежу індексу (5,7) в зв'язку \"t\"", true),
            ("在往关系\"t\"中插入索引元组 (5,7) 时", true),
            ("重新检查关系 \"t\"中已更新的元组(5, 7)时", false),
        ];
        for (line, index) in lines {
            let place = place(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (
                    place.relation.as_str(),
                    place.page,
                    place.tuple,
                    place.index
                ),
                ("t", 5, 7, index),
                "{line}"
            );
        }
    }

    #[test]
    fn what_a_statement_says_is_no_place() {
        let long = format!(
            "while updating tuple (0,2) in relation \"{}\"",
            "x".repeat(64)
        );
        for context in [
            "SQL statement \"SELECT pg_advisory_xact_lock(7, 35) from parent where 'Meier' <> '' limit 1\"\nPL/pgSQL function f() line 1",
            "SQL statement \"SELECT \"a\" from t where (7,8)\n = f(b)\"",
            "SQL statement \"SELECT f(b)\nwhile updating tuple (0,2) in relation \"Meier\"\nfrom t\"",
            "SQL文 \"SELECT pg_advisory_xact_lock(7, 35), 'Meier'\"",
            "PL/pgSQL assignment \"x := f(7, 8)\"",
            "instruction SQL « select f(7, 8) »",
            "PL/pgSQL function f(\"Meier\") line 7, 8 at PERFORM",
            "COPY 7,8 (\"Meier\")",
            "COPY t, line 7,8: \"Meier\"",
            long.as_str(),
        ] {
            assert_eq!(place(context), None, "{context}");
        }
        let behind =
            "waiting for ShareLock on transaction 5\nwhile updating tuple (0,2) in relation \"t\"";
        assert_eq!(place(behind).expect("a place").relation, "t");
    }

    #[test]
    fn the_statement_of_a_function() {
        let cases = [
            (
                "while updating tuple (0,2) in relation \"t\"\nSQL statement \"update t\n set a = \"b\"\nwhere id = 1\"\nPL/pgSQL function f() line 3",
                Some("update t\n set a = \"b\"\nwhere id = 1"),
            ),
            (
                "SQL文 \"LOCK TABLE \"表三\" IN SHARE MODE\"\nPL/pgSQL関数inline_code_blockの1行目 - SQL ステートメント",
                Some("LOCK TABLE \"表三\" IN SHARE MODE"),
            ),
            ("instruction SQL « lock table t »", Some("lock table t")),
            ("SQL function \"f\" statement 1", None),
            ("while updating tuple (0,2) in relation \"t\"", None),
            ("PL/pgSQL function f(\"x\") line 1 at PERFORM", None),
        ];
        for (context, statement) in cases {
            assert_eq!(inner(context).as_deref(), statement, "{context}");
        }
    }

    #[test]
    fn the_check_of_a_foreign_key_is_the_server_s_own() {
        let check = "while locking tuple (12,190) in relation \"parent\"\nSQL statement \"SELECT 1 FROM ONLY \"public\".\"parent\" x \
                     WHERE \"id\" OPERATOR(pg_catalog.=) $1 FOR KEY SHARE OF x\"";
        let place = place(check).expect("a place");
        assert!(place.foreign_key && place.relation == "parent");
        let forged = "while locking tuple (12,190) in relation \"parent\"\nPL/pgSQL function f()\nSELECT 1 FROM ONLY x FOR KEY SHARE OF x";
        assert!(!super::place(forged).expect("a place").foreign_key);
    }
}
