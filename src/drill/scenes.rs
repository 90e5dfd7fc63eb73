//! The incidents, each made by real connections doing what applications do.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tokio_postgres::{Client, Config, NoTls};

use super::balancer::Balancer;
use super::error::DrillError;
use super::incident::Incident;
use super::server::Server;
use crate::source::postgres::ConnSpec;

const SETTLE: Duration = Duration::from_secs(60);

/// A set scene. Its idle sessions live as long as this value, its busy ones as long as the server.
pub struct Scene {
    incident: Incident,
    _sessions: Vec<Client>,
}

/// The database of every scene.
const DATABASE: &str = "shop";

impl Scene {
    pub fn database() -> &'static str {
        DATABASE
    }

    pub fn incident(&self) -> Incident {
        self.incident
    }

    /// Makes the incident on a server of ours, and waits until its sessions stand as they should.
    ///
    /// # Errors
    /// When a session can't do its part.
    pub async fn set(server: &Server, incident: Incident) -> Result<Self, DrillError> {
        let mut stage = Stage {
            server,
            control: Some(prepare(server).await?),
            sessions: Vec::new(),
        };
        match incident {
            Incident::Exhaustion => stage.exhaustion().await?,
            Incident::Leak => stage.leak().await?,
            Incident::LongTransaction => stage.long_transaction().await?,
            Incident::LockChain => stage.lock_chain().await?,
            Incident::LockQueue => stage.lock_queue().await?,
            Incident::Prepared => stage.prepared().await?,
            Incident::Deadlock => stage.deadlock().await?,
            Incident::Storm => stage.storm().await?,
            Incident::PoolTimeouts => stage.pool_timeouts().await?,
        }
        if let Some(control) = stage.control.take() {
            leave(control).await?;
        }
        Ok(Self {
            incident,
            _sessions: stage.sessions,
        })
    }
}

/// The shop: its roles and a little data.
pub(super) async fn prepare(server: &Server) -> Result<Client, DrillError> {
    let superuser = server.superuser();
    let first = connect(&server.spec(superuser, "postgres"), "drill").await?;
    batch(&first, &format!("CREATE DATABASE {DATABASE}")).await?;
    batch(
        &first,
        "CREATE ROLE app_rw LOGIN; CREATE ROLE reporting LOGIN; CREATE ROLE migrator LOGIN",
    )
    .await?;
    leave(first).await?;
    let control = connect(&server.spec(superuser, DATABASE), "drill").await?;
    batch(
        &control,
        "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, status text NOT NULL, total int NOT NULL);
         INSERT INTO orders SELECT n, n % 50, 'open', n * 3 FROM generate_series(1, 2000) n;
         CREATE TABLE product (id int PRIMARY KEY, name text NOT NULL, price int NOT NULL);
         INSERT INTO product SELECT n, 'product ' || n, n * 7 FROM generate_series(1, 500) n;
         GRANT ALL ON orders, product TO app_rw, reporting;
         ALTER TABLE orders OWNER TO migrator;
         GRANT ALL ON orders TO app_rw, reporting;
         ANALYZE",
    )
    .await?;
    Ok(control)
}

struct Stage<'s> {
    server: &'s Server,
    /// The superuser's session that sets things up and looks on.
    control: Option<Client>,
    sessions: Vec<Client>,
}

impl Stage<'_> {
    async fn session(&self, user: &str, application: &str) -> Result<Client, DrillError> {
        connect(&self.server.spec(user, DATABASE), application).await
    }

    /// A session that has done this and now does nothing.
    async fn idle(&mut self, user: &str, application: &str, sql: &str) -> Result<(), DrillError> {
        let client = self.session(user, application).await?;
        batch(&client, sql).await?;
        self.sessions.push(client);
        Ok(())
    }

    /// A session in which this runs, or waits, until the scene ends.
    async fn busy(
        &mut self,
        user: &str,
        application: &str,
        before: &str,
        sql: &str,
    ) -> Result<(), DrillError> {
        let client = self.session(user, application).await?;
        if !before.is_empty() {
            batch(&client, before).await?;
        }
        leave_running(client, sql);
        Ok(())
    }

    /// Until the superuser's session sees this as true.
    async fn until(&self, sql: &str) -> Result<(), DrillError> {
        match &self.control {
            Some(control) => until(control, sql).await,
            None => Err(DrillError::Scene("nobody looks on any more".into())),
        }
    }

    /// Until so many sessions wait for a lock.
    async fn waiting(&self, sessions: i64) -> Result<(), DrillError> {
        let sql =
            format!("SELECT count(DISTINCT pid) >= {sessions} FROM pg_locks WHERE NOT granted");
        self.until(&sql).await
    }

    async fn exhaustion(&mut self) -> Result<(), DrillError> {
        for (user, application, sessions) in [
            ("app_rw", "web", 11),
            ("app_rw", "worker", 6),
            ("reporting", "reports", 2),
        ] {
            for _ in 0..sessions {
                self.idle(
                    user,
                    application,
                    "SELECT count(*) FROM orders WHERE status = 'open'",
                )
                .await?;
            }
        }
        // The setting-up connection has one of the slots: it goes, and the last application takes its place.
        if let Some(control) = self.control.take() {
            leave(control).await?;
        }
        self.idle(
            "app_rw",
            "web",
            "SELECT count(*) FROM orders WHERE status = 'open'",
        )
        .await
    }

    async fn leak(&mut self) -> Result<(), DrillError> {
        for customer in 0..14 {
            let sql = format!("BEGIN; SELECT * FROM orders WHERE customer = {customer} LIMIT 1");
            self.idle("app_rw", "checkout", &sql).await?;
        }
        for _ in 0..4 {
            self.idle("app_rw", "web", "SELECT count(*) FROM product")
                .await?;
        }
        Ok(())
    }

    async fn long_transaction(&mut self) -> Result<(), DrillError> {
        let update = "BEGIN; UPDATE orders SET total = total + 1";
        self.busy(
            "app_rw",
            "nightly-batch",
            update,
            "UPDATE orders SET status = 'closed', total = total - 1 WHERE pg_sleep(2) IS NOT NULL",
        )
        .await?;
        for _ in 0..3 {
            self.idle("app_rw", "web", "SELECT count(*) FROM product")
                .await?;
        }
        self.until("SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'nightly-batch' AND state = 'active' \
             AND backend_xid IS NOT NULL",
        )
        .await
    }

    async fn lock_chain(&mut self) -> Result<(), DrillError> {
        self.idle(
            "app_rw",
            "psql",
            "BEGIN; UPDATE orders SET status = 'held' WHERE id = 1",
        )
        .await?;
        let row = |id: i32| format!("UPDATE orders SET total = total + 1 WHERE id = {id}");
        // The first waits for the console and holds row 2, the others wait for it.
        self.busy(
            "app_rw",
            "checkout",
            "BEGIN; UPDATE orders SET total = 0 WHERE id = 2",
            &row(1),
        )
        .await?;
        self.waiting(1).await?;
        for waiting in 2..5 {
            self.busy("app_rw", "checkout", "", &row(2)).await?;
            self.waiting(waiting).await?;
        }
        for waiting in 5..8 {
            self.busy("app_rw", "worker", "", &row(1)).await?;
            self.waiting(waiting).await?;
        }
        Ok(())
    }

    async fn lock_queue(&mut self) -> Result<(), DrillError> {
        self.idle(
            "reporting",
            "report",
            "BEGIN; SELECT sum(total) FROM orders",
        )
        .await?;
        self.busy(
            "migrator",
            "migration",
            "",
            "ALTER TABLE orders ADD COLUMN note text",
        )
        .await?;
        self.waiting(1).await?;
        for n in 0..8 {
            self.busy(
                "app_rw",
                "web",
                "",
                &format!("SELECT * FROM orders WHERE id = {n}"),
            )
            .await?;
        }
        self.waiting(9).await
    }

    async fn prepared(&mut self) -> Result<(), DrillError> {
        let client = self.session("app_rw", "payments").await?;
        batch(
            &client,
            "BEGIN; UPDATE orders SET status = 'paid' WHERE id = 7; PREPARE TRANSACTION 'payment-4711'",
        )
        .await?;
        drop(client);
        for _ in 0..3 {
            self.busy(
                "app_rw",
                "checkout",
                "",
                "UPDATE orders SET status = 'sent' WHERE id = 7",
            )
            .await?;
        }
        self.waiting(3).await
    }

    async fn deadlock(&mut self) -> Result<(), DrillError> {
        let row = |id: i32| format!("UPDATE orders SET total = total + 1 WHERE id = {id}");
        let begin = |id: i32| format!("BEGIN; {}", row(id));
        // Each holds its own row before either asks for the other's.
        let first = self.session("app_rw", "batch").await?;
        batch(&first, &begin(1)).await?;
        self.busy("app_rw", "api", &begin(2), &row(1)).await?;
        self.waiting(1).await?;
        leave_running(first, &row(2));
        self.waiting(2).await?;
        self.busy("app_rw", "web", "", &row(1)).await?;
        self.waiting(3).await
    }

    async fn storm(&mut self) -> Result<(), DrillError> {
        for n in 0..24 {
            let sql = format!(
                "SELECT name, price FROM product WHERE id = {n} AND (SELECT pg_sleep(86400)) IS NOT NULL /* request {n} */"
            );
            self.busy("app_rw", "web", "", &sql).await?;
        }
        self.until("SELECT count(*) = 24 FROM pg_stat_activity WHERE application_name = 'web' AND wait_event = 'PgSleep'",
        )
        .await
    }
}

impl Stage<'_> {
    /// A pool whose connections are dropped in between whenever it says nothing for a while, which is about once a minute.
    async fn pool_timeouts(&mut self) -> Result<(), DrillError> {
        let balancer = Balancer::start(self.server, Duration::from_secs(2))?;
        let spec = ConnSpec {
            host: balancer.folder().display().to_string(),
            ..self.server.spec("app_rw", DATABASE)
        };
        for n in 0..POOL {
            // They were opened one after the other, over a minute.
            let first = LIFE * n / POOL;
            tokio::spawn(pooled(spec.clone(), first));
        }
        let open = format!(
            "SELECT count(*) = {POOL} FROM pg_stat_activity WHERE application_name = 'checkout'"
        );
        self.until(&open).await
    }
}

/// Connections of the pool, and how long one of them is in use before it falls silent.
const POOL: u32 = 30;
const LIFE: Duration = Duration::from_secs(58);

/// One connection of a pool: in use for a while, then silent for longer than it may be; what is found dead is opened anew.
async fn pooled(spec: ConnSpec, first: Duration) {
    let mut in_use = first;
    loop {
        if let Ok(client) = connect(&spec, "checkout").await {
            let silent = Instant::now() + in_use;
            while client.batch_execute("SELECT 1").await.is_ok() {
                let pause = if Instant::now() < silent {
                    Duration::from_millis(500)
                } else {
                    Duration::from_secs(3)
                };
                tokio::time::sleep(pause).await;
            }
        }
        in_use = LIFE;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A real connection; it lives as long as the client that is returned.
///
/// # Errors
/// When the server doesn't let it in.
pub async fn connect(spec: &ConnSpec, application: &str) -> Result<Client, DrillError> {
    let mut config = Config::new();
    config
        .user(&spec.user)
        .dbname(&spec.database)
        .port(spec.port)
        .host(&spec.host)
        .application_name(application);
    if let Some(password) = &spec.password {
        config.password(password.expose());
    }
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

/// Runs one or more statements.
///
/// # Errors
/// When one fails.
pub async fn batch(client: &Client, sql: &str) -> Result<(), DrillError> {
    Ok(client.batch_execute(sql).await?)
}

/// Asks until the answer is true.
///
/// # Errors
/// When the question fails, or the answer doesn't become true in time.
pub async fn until(client: &Client, sql: &str) -> Result<(), DrillError> {
    let give_up = Instant::now() + SETTLE;
    while Instant::now() < give_up {
        let rows = client.query_typed(sql, &[]).await?;
        // NULL is not yet: what has no value can't be compared.
        if rows
            .first()
            .is_some_and(|row| row.get::<_, Option<bool>>(0) == Some(true))
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(DrillError::NotRipe {
        what: sql.to_owned(),
        seconds: SETTLE.as_secs(),
    })
}

/// Ends an idle session and waits until its process is gone: until then it has its slot and its row.
///
/// # Errors
/// When it is gone already, or doesn't go.
pub async fn leave(client: Client) -> Result<(), DrillError> {
    let rows = client.query_typed("SELECT pg_backend_pid()", &[]).await?;
    let pid = rows.first().and_then(|row| Pid::from_raw(row.get(0)));
    drop(client);
    let give_up = Instant::now() + SETTLE;
    // A process of another user answers too, with a refusal.
    while pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH)) {
        if Instant::now() > give_up {
            return Err(DrillError::Scene("a session doesn't end".into()));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Leaves a statement running, or waiting, and its session open after it.
pub fn leave_running(client: Client, sql: &str) {
    let sql = sql.to_owned();
    tokio::spawn(async move {
        // An error is somebody who cancelled it or ended the session: what the drill is for.
        if client.batch_execute(&sql).await.is_ok() {
            // What waited goes on like an application: with the end of its transaction, where it is in one.
            let _ = client.batch_execute("COMMIT").await;
        }
        // An open connection goes on holding what it holds.
        std::future::pending::<()>().await;
        drop(client);
    });
}
