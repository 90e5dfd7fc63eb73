//! What holds for any keys.

use std::collections::HashMap;

use super::*;

/// Where `*` is any run of bytes.
pub fn glob(name: &[u8], key: &[u8]) -> bool {
    let parts: Vec<&[u8]> = name.split(|byte| *byte == b'*').collect();
    let [first, middle @ .., last] = parts.as_slice() else {
        return name == key;
    };
    if key.len() < first.len() + last.len() || !key.starts_with(first) || !key.ends_with(last) {
        return false;
    }
    let mut rest = &key[first.len()..key.len() - last.len()];
    for part in middle.iter().filter(|part| !part.is_empty()) {
        let Some(at) = rest.windows(part.len()).position(|window| window == *part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Made of pieces that mean something to the code, joined at random.
fn any_key(r: &mut Random) -> Vec<u8> {
    let mut key = Vec::new();
    for _ in 0..r.below(9) {
        let piece: Vec<u8> = match r.below(24) {
            0..4 => word(r.below(5)).into_bytes(),
            4 => word(r.below(5000)).into_bytes(),
            5 => r.below(100_000).to_string().into_bytes(),
            6 => r.hex(8).into_bytes(),
            7 => r.uuid().into_bytes(),
            8 => r.base64url(22).into_bytes(),
            9 => (0..r.below(6)).map(|_| r.next() as u8).collect(),
            10 => b"2024-01-05T10:15:00Z".to_vec(),
            11 => b"a.b@example.com".to_vec(),
            12 => format!("v{}.{}", r.below(20), r.below(20)).into_bytes(),
            13 => b"%2F%3A".to_vec(),
            14 => format!("{}{}", word(r.below(5)), r.below(20)).into_bytes(),
            15 => "商品".into(),
            16 => b"2001:db8::1".to_vec(),
            17 => b"*".to_vec(),
            18 => b"celery\x06\x163".to_vec(),
            19 => b"-2.5".to_vec(),
            20 => vec![b'a'; r.below(80)],
            21 => b"meta".to_vec(),
            _ => Vec::new(),
        };
        key.extend(piece);
        let delimiters = b"::::/|.#,; -_-_{}[]()=&?@\\";
        for _ in 0..r.below(3) {
            key.push(delimiters[r.below(delimiters.len())]);
        }
    }
    key
}

#[test]
fn names_match_their_keys() {
    for seed in 0..20 {
        let r = &mut Random::new(100 + seed);
        let size = [3, 30, 300, 3000][seed as usize % 4];
        let sampled: Vec<Vec<u8>> = (0..size).map(|_| any_key(r)).collect();
        let later: Vec<Vec<u8>> = (0..2000).map(|_| any_key(r)).collect();
        let mut grouping = learn(&sampled);
        let mut before = Vec::new();
        for key in sampled.iter().chain(&later) {
            let id = grouping.assign(key);
            let name = grouping.name(id);
            let matches = name == "(others)" || glob(name.as_bytes(), key);
            assert!(matches, "{seed}: {name} {}", key.escape_ascii());
            assert!(!name.chars().any(char::is_control), "{name:?}");
            before.push((key.clone(), id));
        }
        r.shuffle(&mut before);
        for (key, id) in before {
            assert_eq!(grouping.assign(&key), id, "{seed}: {}", key.escape_ascii());
        }
    }
}

/// A sampled key is assigned to what was learned from it.
#[test]
fn the_sample_is_all_there() {
    for seed in 0..12 {
        let r = &mut Random::new(500 + seed);
        let keys: Vec<Vec<u8>> = (0..[40, 400, 4000][seed as usize % 3])
            .map(|_| any_key(r))
            .collect();
        let mut grouping = learn(&keys);
        let groups = grouping.len();
        let mut assigned = HashMap::new();
        for key in &keys {
            *assigned.entry(grouping.assign(key)).or_insert(0) += 1;
        }
        assert_eq!(grouping.len(), groups, "{seed}");
        assert_eq!(grouping.learned(), assigned, "{seed}");
    }
}

#[test]
fn any_order_gives_the_same() {
    for seed in 0..8 {
        let r = &mut Random::new(900 + seed);
        let mut keys: Vec<Vec<u8>> = (0..1500).map(|_| any_key(r)).collect();
        let first = groups(&keys);
        r.shuffle(&mut keys);
        assert_eq!(groups(&keys), first, "{seed}");
    }
}
