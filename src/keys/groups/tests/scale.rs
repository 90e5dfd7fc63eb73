//! The same database gives the same groups, whether a few hundred or many thousand of its keys were sampled.

use super::*;

/// Learns from samples of these sizes, and has the same groups of all keys each time.
#[track_caller]
fn assert_same(mut keys: Vec<String>, sizes: &[usize], groups: usize) {
    let random = &mut Random::new(21);
    random.shuffle(&mut keys);
    let of = |size: usize| count(&mut learn(&keys[..size.min(keys.len())]), &keys);
    let first = of(sizes[0]);
    assert_eq!(first.len(), groups, "{first:?}");
    for &size in &sizes[1..] {
        assert_eq!(of(size), first, "{size}");
    }
}

const SIZES: [usize; 4] = [300, 1000, 5000, 30_000];

#[test]
fn tables_stay_apart() {
    let keys = (0..30_000).map(|n| format!("app:{}:{n}", word(n % 50)));
    assert_same(keys.collect(), &SIZES, 50);
}

#[test]
fn services_stay_apart() {
    let kinds = ["session", "cache", "lock"];
    let keys = (0..30_000).map(|n| format!("{}:{}:{n}", word(n % 40), kinds[n / 40 % 3]));
    assert_same(keys.collect(), &SIZES, 120);
}

#[test]
fn tables_of_all_sizes() {
    let r = &mut Random::new(22);
    let mut zipf = || 60_f64.powf(r.below(10_000) as f64 / 10_000.0) as usize;
    let keys = (0..30_000).map(|n| format!("app:{}:{n}", word(zipf())));
    assert_same(keys.collect(), &SIZES[1..], 59);
}

#[test]
fn users_are_one() {
    let keys = (0..20_000).map(|n| format!("user:{}:{}", word(n / 2), ["cart", "profile"][n % 2]));
    assert_same(keys.collect(), &SIZES, 2);
    let keys = (0..20_000).map(|n| format!("{}:{}", word(n / 2), ["cart", "profile"][n % 2]));
    assert_same(keys.collect(), &SIZES, 2);
}

#[test]
fn tenants_of_all_sizes_are_one() {
    let r = &mut Random::new(23);
    let mut zipf = || 2000_f64.powf(r.below(10_000) as f64 / 10_000.0) as usize;
    let kinds = ["user", "order", "cart"];
    let keys = (0..30_000).map(|n| format!("tenant:{}:{}:{n}", word(zipf()), kinds[n % 3]));
    assert_same(keys.collect(), &SIZES, 3);
}

#[test]
fn an_index_beside_users() {
    let keys = (0..30_000).map(|n| match n % 3 {
        0 => format!("user:index:{n}"),
        _ => format!("user:{}:{}", word(n), ["cart", "profile"][n % 2]),
    });
    assert_same(keys.collect(), &SIZES, 3);
}

#[test]
fn large_names_beside_many_small_ones() {
    let r = &mut Random::new(24);
    let keys = (0..30_000).map(|n| match n % 3 {
        _ if n % 100 == 0 => word(n),
        0 => format!("session:{}", r.uuid()),
        _ => format!("cart:{n}:items"),
    });
    assert_same(keys.collect(), &SIZES[2..], 3);
}

#[test]
fn slugs() {
    let r = &mut Random::new(25);
    let mut zipf = || 3000_f64.powf(r.below(10_000) as f64 / 10_000.0) as usize;
    let keys = (0..30_000).map(|n| {
        format!(
            "post:{}-{}-{}",
            word(zipf()),
            word(n % 3000),
            word(n * 3 % 7001)
        )
    });
    assert_same(keys.collect(), &SIZES, 1);
}

#[test]
fn any_order() {
    let r = &mut Random::new(26);
    let mut keys: Vec<String> = Vec::new();
    for n in 0..2000 {
        keys.push(format!("{}:{}:{n}", word(n % 60), word(n % 7)));
        keys.push(format!("user:{}-{}", word(n % 900), word(n % 11)));
        keys.push(format!("sess:{}", r.base64url(22)));
        keys.push(format!("level{}:{}", n % 9, r.hex(8)));
    }
    let first = groups(&keys);
    for _ in 0..5 {
        r.shuffle(&mut keys);
        assert_eq!(groups(&keys), first);
    }
}
