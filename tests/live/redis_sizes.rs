//! Sizes of keys on real servers: what five elements tell wrongly is measured, and what stays an estimate says so.

use crate::redis_keys::{connect, stanch, start};

/// So many hashes of small fields that are larger than the one that hides a large field, by five of their elements.
const OTHERS: usize = 40;

#[tokio::test]
async fn a_size_that_five_elements_do_not_tell() {
    // The first has no CLIENT NO-TOUCH, so it counts no elements.
    for program in ["redis-server", "valkey-9.1/valkey-server"] {
        let Some(server) = start(program, &[], false).await else {
            continue;
        };
        let mut connection = connect(&server.url());
        let mut pipe = redis::pipe();
        for n in 0..OTHERS {
            for field in 0..2000 {
                let value = "y".repeat(100);
                let set = pipe.cmd("HSET").arg(format!("session:{n}:data"));
                set.arg(format!("field-{field}")).arg(value);
            }
        }
        for field in 0..1500 {
            let set = pipe.cmd("HSET").arg("cart:77:items");
            set.arg(format!("field-{field}")).arg(field);
        }
        let large = "x".repeat(3_000_000);
        let set = pipe.cmd("HSET").arg("cart:77:items");
        set.arg("blob").arg(&large);
        // A string is measured as it is.
        pipe.cmd("SET").arg("page:1:html").arg(&large[..1_000_000]);
        // So many elements of one key would keep the server from its work.
        for n in (0..150_000).step_by(100) {
            let add = pipe.cmd("SADD").arg("visitors:all:today");
            for of in n..n + 100 {
                add.arg(format!("visitor-{of}"));
            }
        }
        pipe.exec(&mut connection).expect("it is written");
        let truth: u64 = redis::cmd("MEMORY")
            .arg(&["USAGE", "cart:77:items", "SAMPLES", "0"])
            .query(&mut connection)
            .expect("a size");
        assert!(truth > 3_000_000, "{truth}");
        let told: u64 = redis::cmd("MEMORY")
            .arg(&["USAGE", "cart:77:items"])
            .query(&mut connection)
            .expect("a size");
        for full in [false, true] {
            let more: &[&str] = if full { &["--full"] } else { &[] };
            let report = stanch(&server.url(), &[&["bigkeys", "--json"], more].concat())
                .expect_code(0)
                .json();
            let keys = report["bigkeys"].as_array().expect("keys");
            let of = |name: &str| {
                let found = keys.iter().find(|key| key["key"] == name);
                found.unwrap_or_else(|| panic!("{program}, {told}: {name} in {report}"))
            };
            assert_eq!(of("cart:77:items")["bytes"], truth, "{program}");
            assert_eq!(of("cart:77:items")["bytes_estimated"], false, "{program}");
            assert_eq!(of("page:1:html")["bytes_estimated"], false, "{program}");
            // With --full it is small enough.
            let visitors = of("visitors:all:today");
            assert_eq!(visitors["bytes_estimated"], !full, "{program}: {visitors}");
            let set = report["types"]
                .as_array()
                .and_then(|types| types.iter().find(|of| of["type"] == "set"));
            assert_eq!(set.expect("sets")["bytes_estimated"], !full, "{program}");
            let exact: u64 = (0..OTHERS)
                .map(|n| {
                    let key = format!("session:{n}:data");
                    let usage = &["USAGE", &key, "SAMPLES", "0"];
                    let size: u64 = redis::cmd("MEMORY")
                        .arg(usage)
                        .query(&mut connection)
                        .expect("a size");
                    size
                })
                .sum();
            let groups = report["groups"].as_array().expect("groups");
            let sessions = groups.iter().find(|of| of["keys"] == OTHERS);
            let sessions = sessions.unwrap_or_else(|| panic!("{groups:?}"));
            assert_eq!(
                (&sessions["bytes"], &sessions["bytes_estimated"]),
                (&exact.into(), &false.into()),
                "{program}"
            );
            let text = stanch(&server.url(), &[&["bigkeys"], more].concat()).expect_code(0);
            let line = |what: &str| {
                let found = text.stdout.lines().find(|line| line.contains(what));
                found
                    .unwrap_or_else(|| panic!("{}", text.stdout))
                    .to_owned()
            };
            let cart = line("cart:77:items");
            assert!(cart.contains(" MiB") && !cart.contains('~'), "{cart}");
            assert_eq!(line("visitors:all:today").contains('~'), !full);
            assert_eq!(text.stdout.contains(", estimated"), !full);
            assert!(text.stdout.contains("measured element by element"));
        }
        let few = stanch(&server.url(), &["bigkeys", "--top", "5", "--touch"]).expect_code(0);
        assert!(
            few.stdout
                .contains("and 2 keys more by elements (--json has all)"),
            "{}",
            few.stdout
        );
    }
}
