//! Names that people give.

use super::*;

/// The name of one key that is alone.
fn name(key: &str) -> String {
    let mut grouping = learn(&[key]);
    let id = grouping.assign(key.as_bytes());
    grouping.name(id).to_owned()
}

#[test]
fn a_key_by_itself() {
    for (key, is) in [
        ("user:123", "user:*"),
        ("user_123", "user_*"),
        ("order-2024-01-05", "order-*"),
        ("logs/2024/01/05/app", "logs/*/app"),
        ("stats:20240105", "stats:*"),
        ("stats:2024-W05", "stats:*"),
        ("stats:2024:01:05", "stats:*:*:*"),
        ("stats:2024-01-05T10:15:00Z:hits", "stats:*:hits"),
        ("ts:1700000000", "ts:*"),
        ("a/b/c", "a/b/c"),
        ("app:v2|x", "app:v2|x"),
        ("app:v1.2.3:config", "app:v1.2.3:config"),
        ("tenant42:user", "tenant*:user"),
        ("shard07", "shard*"),
        ("cache:v12:home", "cache:v12:home"),
        ("bucket:s3:utf8:level2", "bucket:s3:utf8:level2"),
        (
            "img:sha256:d41d8cd98f00b204e9800998ecf8427e",
            "img:sha256:*",
        ),
        ("{user1000}.following", "{user*}.following"),
        ("{user1000}.followers", "{user*}.followers"),
        ("{a3f91c02}:x", "{*}:x"),
        ("{user:1000}:cart", "{user:*}:cart"),
        ("a:1:2", "a:*:*"),
        ("a:1-2-3", "a:*"),
        ("host:10.0.0.1:6379", "host:*:*"),
        ("10.0.0.1", "*"),
        (
            "user:550e8400-e29b-41d4-a716-446655440000:cart",
            "user:*:cart",
        ),
        ("metrics.web01.cpu.p99", "metrics.web*.cpu.p99"),
        ("tag#news#7", "tag#news#*"),
        ("a;b;1", "a;b;*"),
        ("hello world 12", "hello world *"),
        ("商品:12:価格", "商品:*:価格"),
        ("ключ:значение", "ключ:значение"),
        ("order:ORD-2024-000123", "order:ORD-*"),
        ("ip:fe80::1", "ip:*"),
        (":::::", ":::::"),
        ("", ""),
        ("*", "*"),
        ("user:", "user:"),
        ("i-0abc123def4567890", "i-*"),
        ("cart:01ARZ3NDEKTSV4RRFFQ69G5FAV", "cart:*"),
        ("cart:0x1f2e3d", "cart:*"),
        ("api:getUserByIdOrName:12", "api:getUserByIdOrName:*"),
        ("Zend_LocaleL10n_en_GB", "Zend_LocaleL10n_en_GB"),
        ("job:\u{1}\u{2}", "job:*"),
        ("rtl:\u{202e}evil", "rtl:*"),
    ] {
        assert_eq!(name(key), is, "{key}");
    }
}

#[test]
fn services_and_variants() {
    let mut keys = Vec::new();
    for n in 0..300 {
        keys.push(format!("catalog:product:{n}:v1"));
        keys.push(format!("catalog:product:{n}:v2"));
        keys.push(format!("catalog:price:{n}:eur"));
        keys.push(format!("checkout:cart:{}:items", word(n)));
        keys.push(format!("checkout:cart:{}:total", word(n)));
    }
    assert_groups(
        &keys,
        &[
            ("catalog:product:*:v1", 300),
            ("catalog:product:*:v2", 300),
            ("catalog:price:*:eur", 300),
            ("checkout:cart:*:items", 300),
            ("checkout:cart:*:total", 300),
        ],
    );
}

#[test]
fn tenants() {
    let mut keys = Vec::new();
    for n in 0..3000 {
        keys.push(format!("tenant:{}:user:{n}", word(n % 5)));
        keys.push(format!("t{}:order:{n}", 10 + n % 80));
        keys.push(format!(
            "org:{}:{}:{n}",
            word(n % 500),
            ["doc", "task"][n % 2]
        ));
    }
    let mut expected = vec![
        ("t*:order:*", 3000),
        ("org:*:doc:*", 1500),
        ("org:*:task:*", 1500),
    ];
    let words: Vec<String> = (0..5)
        .map(|n| format!("tenant:{}:user:*", word(n)))
        .collect();
    expected.extend(words.iter().map(|name| (&**name, 600)));
    assert_groups(&keys, &expected);
}

#[test]
fn hash_tags() {
    let mut keys = Vec::new();
    for n in 0..100 {
        keys.push(format!("{{user{n}}}.following"));
        keys.push(format!("{{{}}}:cart", word(n)));
        keys.push(format!("queue:{{mail}}:{n}"));
    }
    // The first ten have one digit only, and go with the others.
    assert_groups(
        &keys,
        &[
            ("{user*}.following", 100),
            ("{*}:cart", 100),
            ("queue:{mail}:*", 100),
        ],
    );
}

#[test]
fn words_as_ids() {
    let mut keys = Vec::new();
    for n in 0..200 {
        keys.push(format!("user:{}", word(n)));
        keys.push(format!("user:{}:cart", word(n)));
        keys.push(format!("user:index:{n}"));
        keys.push(format!("follow:{}:{}", word(n), word(n + 50)));
    }
    assert_groups(
        &keys,
        &[
            ("user:*", 200),
            ("user:*:cart", 200),
            ("user:index:*", 200),
            ("follow:*:*", 200),
        ],
    );
    // Nine are enough, if each is there once; six aren't.
    let of = |end: usize| {
        (0..end)
            .map(|n| format!("user:{}:cart", word(n)))
            .collect::<Vec<_>>()
    };
    assert_groups(&of(9), &[("user:*:cart", 9)]);
    assert_eq!(groups(&of(6)).len(), 6);
}

#[test]
fn one_digit() {
    let of = |end: usize| (0..end).map(|n| format!("shard{n}:x")).collect::<Vec<_>>();
    assert_eq!(groups(&of(4)).len(), 4);
    assert_groups(&of(5), &[("shard*:x", 5)]);
    assert_groups(&of(12), &[("shard*:x", 12)]);
    let versions: Vec<String> = (1..10).map(|n| format!("api:v{n}:{n}")).collect();
    assert_eq!(groups(&versions).len(), 9);
}

#[test]
fn other_scripts() {
    let mut keys = Vec::new();
    for n in 0..100 {
        keys.push(format!("商品:{n}:価格"));
        keys.push(format!("ユーザー:{}", word(n)));
        keys.push(format!("設定/{}", ["通知", "言語"][n % 2]));
        keys.push(format!("店舗{:03}:在庫", n));
    }
    assert_groups(
        &keys,
        &[
            ("商品:*:価格", 100),
            ("ユーザー:*", 100),
            ("設定/通知", 50),
            ("設定/言語", 50),
            ("店舗*:在庫", 100),
        ],
    );
}

#[test]
fn nothing_in_common() {
    let keys: Vec<String> = (0..500).map(word).collect();
    let mut grouping = learn(&keys);
    let id = grouping.assign(b"anything");
    assert_eq!(grouping.name(id), "*");
    assert!(!grouping.is_classified(id));
    let id = grouping.assign(b"queues");
    assert_eq!(grouping.name(id), "queues");
    assert!(grouping.is_classified(id));
}

#[test]
fn what_the_sample_did_not_have() {
    let mut keys = Vec::new();
    for n in 0..200 {
        keys.push(format!("user:{}:cart", word(n)));
        keys.push(format!("session:{n}"));
    }
    let mut grouping = learn(&keys);
    for (key, is) in [
        ("user:zoe:cart", "user:*:cart"),
        ("user:zoe:profile", "user:*:profile"),
        ("session:12345678", "session:*"),
        ("session:index", "session:index"),
        ("session:index:7", "session:index:*"),
        ("billing:invoice:77:pdf", "billing:invoice:*:pdf"),
    ] {
        let id = grouping.assign(key.as_bytes());
        assert_eq!(grouping.name(id), is);
    }
}
