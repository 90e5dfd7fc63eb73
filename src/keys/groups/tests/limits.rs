//! Hostile names, and how much they can take.

use super::properties::glob;
use super::*;

#[test]
fn odd_keys() {
    let mut keys: Vec<Vec<u8>> = vec![
        Vec::new(),
        b":::::".to_vec(),
        b":".repeat(70_000),
        b"a".repeat(65_536),
        b"a:".repeat(10_000),
        b"a-".repeat(10_000),
        b"1-".repeat(10_000),
        b"1.".repeat(10_000),
        b"%41".repeat(20_000),
        b"aB3-".repeat(20_000),
        b"@".repeat(10_000),
        b"-".to_vec(),
        b"--".to_vec(),
        b":-".to_vec(),
        b"v1.".to_vec(),
        b"v.".to_vec(),
        b"2024-01-05T".to_vec(),
        b"abcd:".to_vec(),
        b"ab d:".to_vec(),
        vec![0xff; 300],
        vec![0; 3],
    ];
    keys.extend(
        keys.clone()
            .into_iter()
            .map(|key| [b"x:".to_vec(), key].concat()),
    );
    let mut grouping = learn(&keys);
    for key in &keys {
        let id = grouping.assign(key);
        assert!(grouping.name(id).len() < 4096);
    }
    let deep = grouping.assign(&b"a:".repeat(10_000));
    assert_eq!(grouping.name(deep), format!("{}*", "a:".repeat(16)));
    let long = grouping.assign(&b"b".repeat(65_536));
    assert_eq!(grouping.name(long), "*");
}

#[test]
fn binary_keys() {
    let r = &mut Random::new(31);
    let keys: Vec<Vec<u8>> = (0..5000)
        .map(|_| (0..16).map(|_| r.next() as u8).collect())
        .collect();
    let mut grouping = learn(&keys);
    let mut classified = 0;
    for key in &keys {
        let id = grouping.assign(key);
        assert!(grouping.name(id).contains('*'));
        classified += usize::from(grouping.is_classified(id));
    }
    assert!(grouping.len() < 1000, "{}", grouping.len());
    assert!(classified < 500, "{classified}");
}

#[test]
fn ever_new_prefixes() {
    let mut grouping = learn(&["user:1", "user:2"]);
    for n in 0..200_000 {
        grouping.assign(format!("{}:{}:{n}", word(n), word(n * 31)).as_bytes());
    }
    assert!(grouping.len() <= 4096);
    // What was there before stays.
    let id = grouping.assign(b"user:3");
    assert_eq!(grouping.name(id), "user:*");
    let id = grouping.assign(b"nevermet:x:1");
    assert_eq!(grouping.name(id), "*:*:*");
}

#[test]
fn as_many_groups_as_can_be() {
    let mut keys = Vec::new();
    for a in 0..8 {
        for b in 0..8 {
            for c in 0..8 {
                for d in 0..8 {
                    for e in 0..8 {
                        keys.push([a, b, c, d, e].map(word).join(":"));
                    }
                }
            }
        }
    }
    let mut grouping = learn(&keys);
    for key in &keys {
        let id = grouping.assign(key.as_bytes());
        let name = grouping.name(id);
        assert!(
            name == "(others)" || glob(name.as_bytes(), key.as_bytes()),
            "{name} {key}"
        );
    }
    assert!(grouping.len() <= 4096);
    let id = grouping.assign([7, 7, 7, 7, 7].map(word).join(":").as_bytes());
    assert_eq!(grouping.name(id), "(others)");
    assert!(!grouping.is_classified(id));
}

#[test]
fn a_full_sample() {
    let mut sample = Sample::new(vec![Pattern::new("p:*")]);
    for n in 0..50_000 {
        assert!(!sample.is_full());
        sample.push(if n % 2 == 0 { b"p:1" } else { b"q:1" });
    }
    assert!(sample.is_full());
    let mut sample = Sample::new(Vec::new());
    let huge = vec![b'x'; 1 << 16];
    for _ in 0..2048 {
        assert!(!sample.is_full());
        sample.push(&huge);
    }
    assert!(sample.is_full());
}
