use stanch::drill::{self, Server, ServerOptions};
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let bin_dir = drill::bin_dirs("/usr/local/bin")
        .into_iter()
        .next()
        .unwrap();
    let server = Server::start(&ServerOptions {
        bin_dir,
        settings: vec![("max_connections", "1020".into())],
        ..Default::default()
    })
    .await
    .unwrap();
    let spec = server.spec("postgres", "postgres");
    let holder = drill::connect(&spec, "holder").await.unwrap();
    drill::batch(
        &holder,
        "CREATE TABLE hot (id int); INSERT INTO hot VALUES (1)",
    )
    .await
    .unwrap();
    drill::batch(&holder, "BEGIN; UPDATE hot SET id = 2")
        .await
        .unwrap();
    for _ in 0..1000 {
        let client = drill::connect(&spec, "web").await.unwrap();
        tokio::spawn(async move {
            let _ = client.batch_execute("UPDATE hot SET id = 3").await;
            drop(client);
        });
    }
    drill::until(
        &holder,
        "SELECT count(DISTINCT pid) = 1000 FROM pg_locks WHERE NOT granted",
    )
    .await
    .unwrap();
    std::fs::write(
        "/tmp/hold.place",
        format!(
            "-h {} -p {} -U postgres -d postgres",
            server.folder().display(),
            server.port()
        ),
    )
    .unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1500)).await;
}
