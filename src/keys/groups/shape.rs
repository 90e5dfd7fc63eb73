//! What a word of a key looks like, by itself: a name, or a value such as a number or a hash.

/// Longer words are values.
pub const LONGEST_WORD: usize = 64;

const DIGIT: u8 = 1;
const LOWER: u8 = 2;
const UPPER: u8 = 4;
const HEX_LETTER: u8 = 8;
const MAJOR: u8 = 16;
const MINOR: u8 = 32;
const CONTROL: u8 = 64;
const HIGH: u8 = 128;
/// Of no other class; words have no delimiters, so that the bit is free there.
const OTHER: u8 = MINOR | MAJOR;
const MIXED: u8 = DIGIT | LOWER | UPPER;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        all[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'f' => LOWER | HEX_LETTER,
            b'A'..=b'F' => UPPER | HEX_LETTER,
            b'g'..=b'z' => LOWER,
            b'G'..=b'Z' => UPPER,
            b':' | b'/' | b'|' | b'.' | b'#' | b',' | b';' | b' ' => MAJOR,
            b'{' | b'}' | b'[' | b']' | b'(' | b')' => MAJOR,
            b'=' | b'&' | b'?' | b'@' | b'\\' => MAJOR,
            b'-' | b'_' => MINOR,
            0..=31 | 127 => CONTROL,
            128..=255 => HIGH,
            _ => OTHER,
        };
        byte += 1;
    }
    all
}

/// Ends a segment.
pub fn is_major(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & OTHER == MAJOR
}

/// `-` and `_`.
pub fn is_minor(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & OTHER == MINOR
}

/// Ends a word: of a segment, or within it (`-` and `_`).
pub fn is_delimiter(byte: u8) -> bool {
    matches!(CLASSES[usize::from(byte)] & OTHER, MAJOR | MINOR)
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Name,
    /// A name with a number in it, `tenant42`: from the first to the second offset it is a value.
    Numbered(u8, u8),
    /// A name as far as one can see; next to values it rather is one of them.
    Odd,
    Value,
}

/// Digits that belong to the name.
const WORDS: [&str; 30] = [
    "amd64", "arm64", "base32", "base58", "base62", "base64", "crc32", "float32", "float64",
    "h264", "h265", "i386", "int16", "int32", "int64", "p50", "p90", "p95", "p99", "p999",
    "sha224", "sha256", "sha384", "sha512", "utf16", "utf32", "win32", "win64", "x64", "x86",
];

/// Names of the parts of well-known queues, which no number of neighbours makes a value.
const PARTS: [&str; 26] = [
    "active",
    "celery",
    "completed",
    "dead",
    "delayed",
    "events",
    "failed",
    "id",
    "limiter",
    "marker",
    "meta",
    "paused",
    "pc",
    "prioritized",
    "processed",
    "processes",
    "queues",
    "repeat",
    "retry",
    "schedule",
    "stalled",
    "unacked",
    "wait",
    "waiting",
    "wip",
    "workers",
];

/// Whether a word stays a name whatever is beside it: a part of a well-known queue, or `v2`.
pub fn is_fixed(word: &[u8]) -> bool {
    (word.len() <= 3 && is_version(word))
        || (word.len() <= 11 && PARTS.iter().any(|part| part.as_bytes() == word))
}

/// How a word is made up. A run is a number, a word in one case, or a word with a capital.
struct Measure {
    bits: u8,
    letters_and_digits: usize,
    digits: usize,
    runs: usize,
    digit_runs: usize,
}

/// The classes that any of the bytes has, and those that all have; digits count for hex letters.
fn classes_of(word: &[u8]) -> (u8, u8) {
    word.iter().fold((0, 255), |(any, all), byte| {
        let class = CLASSES[usize::from(*byte)];
        (any | class, all & (class | (class & DIGIT) << 3))
    })
}

fn measure(word: &[u8], bits: u8) -> Measure {
    let (mut letters_and_digits, mut digits, mut runs, mut digit_runs) = (0, 0, 0, 0);
    let (mut last, mut began) = (0, false);
    for &byte in word {
        let kind = CLASSES[usize::from(byte)] & MIXED;
        let capital = began & (last == UPPER) & (kind == LOWER);
        began = (kind != last) & (kind != 0) & !capital;
        letters_and_digits += usize::from(kind != 0);
        digits += usize::from(kind == DIGIT);
        runs += usize::from(began);
        digit_runs += usize::from(began & (kind == DIGIT));
        last = kind;
    }
    Measure {
        bits,
        letters_and_digits,
        digits,
        runs,
        digit_runs,
    }
}

impl Measure {
    /// Base 36, 62 or 64: runs are far shorter than in anything that a person has named.
    fn is_random(&self) -> bool {
        let (length, runs) = (self.letters_and_digits, self.runs);
        if length < 16 {
            return false;
        }
        match self.bits & MIXED {
            MIXED if length * 10 < runs * 24 => true,
            kinds if kinds & DIGIT != 0 && kinds != DIGIT => {
                self.digit_runs >= 2 && length * 2 < runs * 7
            }
            kinds => kinds == LOWER | UPPER && length < runs * 2,
        }
    }
}

impl Measure {
    /// Nearly random.
    fn is_odd(&self) -> bool {
        let (length, runs) = (self.letters_and_digits, self.runs);
        match self.bits & MIXED {
            kinds if kinds & DIGIT != 0 => length >= 10 && length * 2 < runs * 7,
            kinds if kinds != LOWER | UPPER => false,
            _ if length >= 16 => length * 10 < runs * 28,
            _ => length >= 12 && length * 2 < runs * 5,
        }
    }
}

/// Whether a whole segment, `-` and `_` in it, is one base64 value: `Value`, perhaps: `Odd`, or not: `Name`.
pub fn segment_shape(segment: &[u8]) -> Shape {
    if segment.len() < 20 {
        return Shape::Name;
    }
    let (bits, _) = classes_of(segment);
    let cased = LOWER | UPPER;
    if bits & (CONTROL | HIGH) != 0 || bits & cased != cased {
        return Shape::Name;
    }
    let all = measure(segment, bits);
    let (length, runs) = (all.letters_and_digits, all.runs);
    let cuts = segment.len() - length;
    if length < cuts * 4 {
        Shape::Name
    } else if all.digit_runs >= 2 && length >= cuts * 4 + 4 && length * 10 < runs * 26 {
        Shape::Value
    } else if length * 10 < runs * 28 {
        Shape::Odd
    } else {
        Shape::Name
    }
}

/// Whether a word has a digit, or a capital that isn't its first: a base64 value that a `-` cut may begin so.
pub fn is_mixed(word: &[u8]) -> bool {
    let is = |byte: &u8, of: u8| CLASSES[usize::from(*byte)] & of != 0;
    word.iter().any(|byte| is(byte, DIGIT))
        || (word.iter().skip(1).any(|byte| is(byte, UPPER)) && word.iter().any(|b| is(b, LOWER)))
}

/// Capitals and small letters: hex and numbers have not.
pub fn has_both_cases(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_lowercase) && word.iter().any(u8::is_ascii_uppercase)
}

/// Only digits, at least one.
pub fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// `v1`, `v12`.
fn is_version(word: &[u8]) -> bool {
    matches!(word, [b'v' | b'V', digits @ ..] if digits.len() <= 3 && is_number(digits))
}

/// `level2`: a name with just one digit at its end. Gives the name.
pub fn stem(word: &[u8]) -> Option<&[u8]> {
    let (last, name) = word.split_last()?;
    let before = name.last()?;
    let is = last.is_ascii_digit() && !before.is_ascii_digit() && !is_version(word);
    is.then_some(name)
}

/// What a word is that has no delimiter in it. A `*` would be taken for what stands for a value, so it makes one.
pub fn shape(word: &[u8]) -> Shape {
    if word.len() > LONGEST_WORD {
        return Shape::Value;
    }
    let (bits, common) = classes_of(word);
    let hex = common & HEX_LETTER != 0 && word.len() >= 8;
    if bits & !(LOWER | HEX_LETTER) == 0 {
        return if hex { Shape::Odd } else { Shape::Name };
    }
    if bits & CONTROL != 0 {
        return priority(word);
    }
    let is_hidden = bits & HIGH != 0 && !is_printable(word);
    let is_number = bits == DIGIT || (hex && bits & DIGIT != 0) || is_prefixed_hex(word);
    if is_hidden || is_number || (bits & OTHER != 0 && word.contains(&b'*')) {
        return Shape::Value;
    }
    if bits & (DIGIT | UPPER) == 0 {
        return Shape::Name;
    }
    let all = measure(word, bits);
    if all.is_random() {
        return Shape::Value;
    }
    let known = || WORDS.iter().any(|known| known.as_bytes() == word);
    if all.digits > 0 && !is_version(word) && !known() {
        if word[0].is_ascii_digit() && all.digits >= 4 {
            return Shape::Value;
        }
        if let Some((from, to)) = numbers(word) {
            return Shape::Numbered(from, to);
        }
    }
    if hex || all.is_odd() {
        Shape::Odd
    } else {
        Shape::Name
    }
}

/// Kombu writes the priority behind two control characters: `celery`, 06, 16, `3`.
fn priority(word: &[u8]) -> Shape {
    let Some(at) = word.windows(2).position(|two| two == [6, 0x16]) else {
        return Shape::Value;
    };
    let name = &word[..at];
    let plain = !name.is_empty() && name.iter().all(u8::is_ascii_alphabetic);
    match (u8::try_from(at), u8::try_from(word.len())) {
        (Ok(from), Ok(to)) if plain && is_number(&word[at + 2..]) => Shape::Numbered(from, to),
        _ => Shape::Value,
    }
}

fn is_prefixed_hex(word: &[u8]) -> bool {
    matches!(word, [b'0', b'x' | b'X', hex @ ..] if hex.len() >= 4 && hex.iter().all(u8::is_ascii_hexdigit))
}

/// From the first to the last number: two digits or more at the end, four or more elsewhere, not at the start.
fn numbers(word: &[u8]) -> Option<(u8, u8)> {
    let mut found: Option<(usize, usize)> = None;
    let mut at = 0;
    while at < word.len() {
        let length = word[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let end = at + length;
        let least = if end == word.len() { 2 } else { 4 };
        if at > 0 && length >= least {
            found = Some((found.map_or(at, |(from, _)| from), end));
        }
        at = end + 1;
    }
    let (from, to) = found?;
    Some((u8::try_from(from).ok()?, u8::try_from(to).ok()?))
}

/// UTF-8 that a terminal shows as it is: no controls, nothing invisible, nothing that turns the direction of writing.
fn is_printable(word: &[u8]) -> bool {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}')
            || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..)
    };
    str::from_utf8(word).is_ok_and(|text| !text.chars().any(is_hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values() {
        for name in [
            "user",
            "s3",
            "utf8",
            "level2",
            "v1",
            "v2",
            "v12",
            "sha256",
            "i18n",
            "x86",
            "24h",
            "2fa",
            "HTTPServer",
            "getUserByIdOrName",
            "checkout",
            "商品",
            "naïve",
            "A",
            "",
            "deadbee",
            "user+tag",
            "k8s",
            "mycompanyservice2",
        ] {
            assert_eq!(shape(name.as_bytes()), Shape::Name, "{name}");
        }
        for value in [
            "0",
            "007",
            "1700000000",
            "20240105",
            "3f2a9b1c",
            "d41d8cd98f00b204e9800998ecf8427e",
            "20240105T101500Z",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "507f1f77bcf86cd799439011",
            "cjld2cjxh0000qzrmn831i7rn",
            "V1StGXR8Z5jdHi6B",
            "a\tb",
            "\u{202e}abc",
            "0x1f2e",
            "2024w05",
        ] {
            assert_eq!(shape(value.as_bytes()), Shape::Value, "{value}");
        }
        assert_eq!(shape(&[0xff, b'a']), Shape::Value);
        assert_eq!(shape(&[b'a'; 65]), Shape::Value);
        assert_eq!(shape(b"tenant42"), Shape::Numbered(6, 8));
        assert_eq!(shape(b"shard07"), Shape::Numbered(5, 7));
        assert_eq!(shape(b"ts1700000000ms"), Shape::Numbered(2, 12));
        assert_eq!(shape(b"celery\x06\x163"), Shape::Numbered(6, 9));
        assert_eq!(shape(b"deadbeef"), Shape::Odd);
        assert_eq!(stem(b"level2"), Some(&b"level"[..]));
        assert_eq!(stem(b"v2"), None);
        assert_eq!(stem(b"level22"), None);
    }
}
