//! csvlog: a message a record, whose fields may span lines.

use super::labels::Severity;
use super::record::{Record, named, sqlstate};
use super::stderr::{line_end, line_start};
use super::time::{self, Zone};
use crate::model::{LogSession, Pid};

/// Columns that PostgreSQL 12, 13, and 14 to 18 write; the first 23 are the same in all.
const COLUMNS: [usize; 3] = [23, 24, 26];
/// The message is always in quotes, so a record can't be forged inside a quoted field.
const MESSAGE: usize = 13;
/// How far before a place its record may begin.
const FAR: usize = 2 << 20;

/// A record and where it ends, or why there is none.
pub enum Read {
    Found(Box<Record>, usize),
    /// The buffer ends before it does.
    More,
    Nothing,
}

/// The record that holds a byte of the buffer.
pub fn around(buffer: &[u8], hit: usize, zone: &mut Zone, complete: bool) -> Read {
    let mut start = line_start(buffer, hit);
    let mut open = false;
    loop {
        if begins(buffer, start) {
            match fields(buffer, start, complete) {
                Some((fields, end)) => match record(&fields, zone) {
                    Some(record) if end > hit => return Read::Found(Box::new(record), end),
                    // What follows a whole record and is in none is nothing of the server's.
                    Some(_) => break,
                    None => {}
                },
                // It may be a line inside of a record that begins earlier.
                None => open = true,
            }
        }
        if start == 0 || hit - start > FAR {
            break;
        }
        start = line_start(buffer, start - 1);
    }
    if open && !complete {
        Read::More
    } else {
        Read::Nothing
    }
}

/// A record begins here, as far as its first field tells.
pub fn begins(buffer: &[u8], start: usize) -> bool {
    let head = String::from_utf8_lossy(&buffer[start..line_end(buffer, start).min(start + 48)]);
    time::leading(&head, &mut Zone::default()).is_some_and(|(_, end)| head[end..].starts_with(','))
}

/// Its bytes, and whether they were in quotes.
type Field = (Vec<u8>, bool);

/// The fields of a record with whether they were in quotes; `None` where the buffer ends before it does.
fn fields(buffer: &[u8], start: usize, complete: bool) -> Option<(Vec<Field>, usize)> {
    let mut all = Vec::new();
    let mut at = start;
    loop {
        let quoted = buffer.get(at) == Some(&b'"');
        let mut field = Vec::new();
        if quoted {
            at += 1;
            loop {
                let close = at + memchr::memchr(b'"', buffer.get(at..)?)?;
                field.extend_from_slice(&buffer[at..close]);
                at = close + 1;
                if buffer.get(at) != Some(&b'"') {
                    break;
                }
                field.push(b'"');
                at += 1;
            }
        } else {
            let rest = &buffer[at..];
            let end = memchr::memchr2(b',', b'\n', rest).or(complete.then_some(rest.len()))?;
            field.extend_from_slice(&rest[..end]);
            at += end;
        }
        all.push((field, quoted));
        match buffer.get(at) {
            Some(b',') => at += 1,
            Some(b'\r') if buffer.get(at + 1) == Some(&b'\n') => return Some((all, at + 2)),
            Some(b'\n') => return Some((all, at + 1)),
            None if complete => return Some((all, at)),
            None => return None,
            // Text behind a closing quote: no record of the server's.
            Some(_) => return Some((Vec::new(), at)),
        }
        if all.len() > 64 {
            return Some((Vec::new(), at));
        }
    }
}

fn record(fields: &[Field], zone: &mut Zone) -> Option<Record> {
    if !COLUMNS.contains(&fields.len()) && fields.len() <= 26 || !fields[MESSAGE].1 {
        return None;
    }
    let text = |n: usize| String::from_utf8_lossy(&fields[n].0).into_owned();
    let some = |n: usize| Some(text(n)).filter(|text| !text.is_empty());
    // Every record has one, 00000 where nothing failed.
    if text(12).len() != 5 {
        return None;
    }
    Some(Record {
        at: time::leading(&text(0), zone).map(|(at, _)| at),
        pid: text(3).parse().ok().map(Pid),
        session: LogSession {
            user: named(&text(1)),
            database: named(&text(2)),
            application_name: named(&text(22)),
        },
        sqlstate: sqlstate(&text(12)),
        severity: Severity::of(&text(11)),
        message: text(MESSAGE),
        detail: some(14),
        context: some(18),
        aside: false,
        statement: some(19),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "2026-12-01 02:35:48.073 UTC,\"app\",\"shop\",7,\"[local]\",6b.79,2,\"UPDATE\",2026-12-01 02:35:47 \
        UTC,4/2,728,ERROR,40P01,\"deadlock detected\",\"a \"\"b\"\"\nShareLock\",,,,,\"update t\n2026-12-01 02:35:48.073 \
        UTC,forged,\",,,\"web\",\"client backend\",,0\n";

    fn read(text: &str, complete: bool) -> Option<(Record, usize)> {
        let hit = text.find("ShareLock").expect("a lock");
        match around(text.as_bytes(), hit, &mut Zone::default(), complete) {
            Read::Found(record, end) => Some((*record, end)),
            Read::More | Read::Nothing => None,
        }
    }

    #[test]
    fn a_record_over_lines() {
        let text = format!("{RECORD}{RECORD}");
        let (record, end) = read(&text, true).expect("a record");
        assert_eq!(end, RECORD.len());
        assert_eq!(record.detail.as_deref(), Some("a \"b\"\nShareLock"));
        assert_eq!(record.sqlstate.as_deref(), Some("40P01"));
        assert_eq!(record.session.application_name.as_deref(), Some("web"));
        assert!(record.statement.expect("a statement").ends_with("forged,"));
    }

    #[test]
    fn what_is_not_there_yet_is_waited_for() {
        let part = &RECORD[..RECORD.len() - 12];
        let hit = part.find("ShareLock").expect("a lock");
        let read = around(part.as_bytes(), hit, &mut Zone::default(), false);
        assert!(matches!(read, Read::More));
    }

    #[test]
    fn no_record_is_forged_inside_a_field() {
        let inner = "2026-12-01 00:00:00 UTC,a,b,1,c,d,1,e,2026-12-01 00:00:00 UTC,1/1,0,ERROR,40P01,m,ShareLock,,,,,,,,w";
        let text = RECORD.replace("ShareLock", inner);
        let (record, _) = read(&text, true).expect("a record");
        assert_eq!(record.pid, Some(Pid(7)));
        let quotes = inner.replace(",m,", ",\"\"m\"\",");
        let text = RECORD.replace("ShareLock", &quotes);
        assert_eq!(read(&text, true).expect("a record").0.pid, Some(Pid(7)));
    }
}
