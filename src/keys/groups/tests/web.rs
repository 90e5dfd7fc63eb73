//! Caches, sessions and locks as frameworks and people name them.

use super::*;

#[test]
fn rails() {
    let r = &mut Random::new(1);
    let mut keys = Vec::new();
    for n in 0..100 {
        keys.push(format!("views/products/{n}-20240105{n:06}/{}", r.hex(32)));
        keys.push(format!("views/products/index:{}/{n}", r.hex(32)));
        keys.push(format!("shop:cache:users/{n}"));
        keys.push(format!(
            "users/query-{}-{n}-20240105101500123456",
            r.hex(32)
        ));
        keys.push(format!("_session_id:2::{}", r.hex(64)));
    }
    assert_groups(
        &keys,
        &[
            ("views/products/*/*", 100),
            ("views/products/index:*/*", 100),
            ("shop:cache:users/*", 100),
            ("users/query-*", 100),
            ("_session_id:*::*", 100),
        ],
    );
}

#[test]
fn django() {
    let r = &mut Random::new(2);
    let mut keys = Vec::new();
    for _ in 0..100 {
        let (url, headers) = (r.hex(32), r.hex(32));
        keys.push(format!(
            ":1:views.decorators.cache.cache_page..GET.{url}.{headers}.en-us.UTC"
        ));
        keys.push(format!(
            ":1:views.decorators.cache.cache_header..{url}.en-us.UTC"
        ));
        keys.push(format!(":1:template.cache.sidebar.{}", r.hex(32)));
    }
    assert_groups(
        &keys,
        &[
            (
                ":*:views.decorators.cache.cache_page..GET.*.*.en-us.UTC",
                100,
            ),
            (":*:views.decorators.cache.cache_header..*.en-us.UTC", 100),
            (":*:template.cache.sidebar.*", 100),
        ],
    );
}

#[test]
fn laravel() {
    let r = &mut Random::new(3);
    let mut keys = vec![
        "laravel_database_queues:default".to_owned(),
        "laravel_database_queues:default:notify".to_owned(),
        "laravel_database_queues:default:reserved".to_owned(),
        "laravel_horizon:masters".to_owned(),
    ];
    for n in 0..100 {
        keys.push(format!("laravel_database_laravel_cache:{}", r.hex(40)));
        keys.push(format!("laravel_database_laravel_cache:{}", r.base62(40)));
        keys.push(format!("laravel_database_App\\Models\\User:{n}"));
        keys.push(format!("laravel_horizon:{}", r.uuid()));
    }
    assert_groups(
        &keys,
        &[
            ("laravel_database_laravel_cache:*", 200),
            ("laravel_database_App\\Models\\User:*", 100),
            ("laravel_database_queues:default", 1),
            ("laravel_database_queues:default:notify", 1),
            ("laravel_database_queues:default:reserved", 1),
            ("laravel_horizon:*", 100),
            ("laravel_horizon:masters", 1),
        ],
    );
}

#[test]
fn spring() {
    let r = &mut Random::new(4);
    let mut keys = Vec::new();
    for n in 0..100 {
        keys.push(format!("spring:session:sessions:expires:{}", r.uuid()));
        keys.push(format!("spring:session:sessions:{}", r.uuid()));
        keys.push(format!(
            "spring:session:expirations:{}",
            1_700_000_000_000_u64 + n
        ));
        keys.push(format!("products::{n}"));
        keys.push(format!("prices::SimpleKey [{n},EUR]"));
    }
    assert_groups(
        &keys,
        &[
            ("spring:session:sessions:expires:*", 100),
            ("spring:session:sessions:*", 100),
            ("spring:session:expirations:*", 100),
            ("products::*", 100),
            ("prices::SimpleKey [*,EUR]", 100),
        ],
    );
}

#[test]
fn sessions() {
    let r = &mut Random::new(5);
    let mut keys = Vec::new();
    for _ in 0..300 {
        keys.push(format!("sess:{}", r.base64url(43)));
        keys.push(format!("connect.sid:{}", r.base64url(32)));
        let id = r.text("0123456789abcdefghijklmnopqrstuv", 26);
        keys.push(format!("PHPREDIS_SESSION:{id}"));
        keys.push(format!("token:{}==", r.base62(22)));
        keys.push(format!("token:{}=", r.base62(43)));
        keys.push(format!(
            "refresh:{}:meta",
            r.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26)
        ));
        keys.push(format!("device:{}:seen", r.hex(24)));
        keys.push(format!("nano:{}", r.base62(10)));
    }
    let found = groups(&keys);
    // One of base64 in some hundreds looks like words. These stay few.
    let named = |name: &str| found.get(name).copied().unwrap_or(0);
    assert!(named("sess:*") >= 297, "{found:?}");
    assert!(named("connect.sid:*") >= 294, "{found:?}");
    assert!(named("token:*") >= 597, "{found:?}");
    for (name, count) in [
        ("PHPREDIS_SESSION:*", 300),
        ("refresh:*:meta", 300),
        ("device:*:seen", 300),
        ("nano:*", 300),
    ] {
        assert_eq!(named(name), count, "{name} {found:?}");
    }
}

#[test]
fn rate_limits() {
    let mut keys = Vec::new();
    for n in 0..300 {
        let path = ["users", "orders", "login"][n % 3];
        keys.push(format!("rl:10.{}.2.{}:/api/v1/{path}", n % 4, n % 250));
        keys.push(format!("rl:2001:db8:{n:x}:1::7/64"));
        keys.push(format!("throttle:1m:{n}"));
        keys.push(format!("throttle:24h:{n}"));
        keys.push(format!(
            "limit_{}.{}@example.com:login",
            word(n),
            word(n + 1)
        ));
    }
    assert_groups(
        &keys,
        &[
            ("rl:*:/api/v1/users", 100),
            ("rl:*:/api/v1/orders", 100),
            ("rl:*:/api/v1/login", 100),
            ("rl:*/*", 300),
            ("throttle:1m:*", 300),
            ("throttle:24h:*", 300),
            ("limit_*:login", 300),
        ],
    );
}

#[test]
fn locks() {
    let mut keys = Vec::new();
    for n in 0..100 {
        keys.push(format!("lock:catalog:product:{n}"));
        keys.push(format!("catalog:product:{n}:v1"));
        keys.push(format!("catalog:product:{n}:v2"));
        keys.push(format!("{}_lock", word(n)));
        keys.push(format!("redlock-{n}-invoice"));
    }
    assert_groups(
        &keys,
        &[
            ("lock:catalog:product:*", 100),
            ("catalog:product:*:v1", 100),
            ("catalog:product:*:v2", 100),
            ("*_lock", 100),
            ("redlock-*-invoice", 100),
        ],
    );
}

#[test]
fn feature_flags() {
    // A few have their names, a list of them is one group.
    assert_groups(
        &["feature:dark-mode", "feature:new-checkout", "feature:beta"],
        &[
            ("feature:dark-mode", 1),
            ("feature:new-checkout", 1),
            ("feature:beta", 1),
        ],
    );
    let keys: Vec<String> = (0..30)
        .map(|n| match n % 2 {
            0 => format!("feature:{}-{}", word(n), word(n + 1)),
            _ => format!("feature:{}", word(n)),
        })
        .collect();
    assert_groups(&keys, &[("feature:*", 30)]);
}

#[test]
fn urls_and_mail() {
    let mut keys = Vec::new();
    for n in 0..60 {
        keys.push(format!("page:https://example.com/shop/{n}?lang=en"));
        keys.push(format!("http:https%3A%2F%2Fexample.com%2F{}:etag", word(n)));
        keys.push(format!("verify:{}.{}@example.com", word(n), word(n + 7)));
        keys.push(format!("verify:{}@example.org:tries", word(n)));
        keys.push(format!("geo:{n}.8566:-{n}.3522"));
        keys.push(format!("geo:near:{n}.8,-{n}.3"));
    }
    assert_groups(
        &keys,
        &[
            ("page:https://example.com/shop/*?lang=en", 60),
            ("http:*:etag", 60),
            ("verify:*", 60),
            ("verify:*:tries", 60),
            ("geo:*:*", 60),
            ("geo:near:*,*", 60),
        ],
    );
}

#[test]
fn free_text() {
    let mut keys = Vec::new();
    for n in 0..300 {
        keys.push(match n % 3 {
            0 => format!("post:{}", word(n)),
            1 => format!("post:{}-{}-{}", word(n / 3), word(n * 7), word(n * 13)),
            _ => format!("search:{} {}", word(n * 3), word(n * 11)),
        });
    }
    assert_groups(&keys, &[("post:*", 200), ("search:* *", 100)]);
}
