//! Incidents in front of the database: real clients that misbehave on a throwaway Redis, with a PostgreSQL behind it where
//! the story needs one.

use std::path::Path;
use std::time::Duration;

use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinHandle;

use super::cache::{Cache, CacheOptions};
use super::error::DrillError;
use super::scenes::{Scene, batch, connect, leave};
use super::server::{Server, ServerOptions};

/// What can be practised on in front of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheIncident {
    Stampede,
    HotKey,
    QueueBacklog,
}

impl CacheIncident {
    pub const ALL: [Self; 3] = [Self::Stampede, Self::HotKey, Self::QueueBacklog];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stampede => "stampede",
            Self::HotKey => "hot-key",
            Self::QueueBacklog => "queue-backlog",
        }
    }

    pub const fn summary(self) -> &'static str {
        match self {
            Self::Stampede => {
                "a warm-up gave a whole catalog one lifetime: when it ends, every client rebuilds it from the database"
            }
            Self::HotKey => "one key takes most of what a Redis does",
            Self::QueueBacklog => "jobs come faster than the one worker takes them, and die",
        }
    }

    /// The command that shows it.
    pub const fn shown_by(self) -> &'static [&'static str] {
        match self {
            Self::Stampede => &["redis", "stampede"],
            Self::HotKey => &["redis", "hotkeys", "--top", "5"],
            Self::QueueBacklog => &["redis", "queues", "--sample", "3s"],
        }
    }
}

/// How long the catalog of the stampede lives.
const LIFETIME: Duration = Duration::from_secs(75);
const PRODUCTS: usize = 3000;
/// Clients of the shop.
const CLIENTS: usize = 24;

/// A scene that goes on as long as this value lives.
#[derive(Debug)]
pub struct CacheScene {
    pub incident: CacheIncident,
    clients: Vec<JoinHandle<()>>,
    // After the clients: the servers go last.
    cache: Cache,
    database: Option<Server>,
}

impl CacheScene {
    /// Starts what the incident needs, and its clients.
    ///
    /// # Errors
    /// When a server doesn't come up, or the scene can't be set.
    pub async fn set(
        incident: CacheIncident,
        redis: &Path,
        postgres: &Path,
    ) -> Result<Self, DrillError> {
        // A queue that may be evicted is no queue.
        let policy = match incident {
            CacheIncident::QueueBacklog => "noeviction",
            CacheIncident::Stampede | CacheIncident::HotKey => "allkeys-lfu",
        };
        let settings = vec![
            ("maxmemory", "200mb".into()),
            ("maxmemory-policy", policy.into()),
        ];
        let cache = Cache::start(&CacheOptions {
            program: redis.to_path_buf(),
            settings,
            ..CacheOptions::default()
        })
        .await?;
        let mut scene = Self {
            incident,
            clients: Vec::new(),
            cache,
            database: None,
        };
        match incident {
            CacheIncident::Stampede => scene.stampede(postgres).await?,
            CacheIncident::HotKey => scene.hot_key().await?,
            CacheIncident::QueueBacklog => scene.queue_backlog().await?,
        }
        Ok(scene)
    }

    /// `unix:///…`
    pub fn redis_url(&self) -> String {
        self.cache.url()
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The PostgreSQL behind it.
    pub fn database(&self) -> Option<&Server> {
        self.database.as_ref()
    }

    async fn link(&self) -> Result<MultiplexedConnection, DrillError> {
        let client = redis::Client::open(self.cache.url()).map_err(told)?;
        // A client under load waits longer than the library's half second.
        let config =
            redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(10)));
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(told)
    }

    async fn stampede(&mut self, postgres: &Path) -> Result<(), DrillError> {
        let server = Server::start(&ServerOptions {
            bin_dir: postgres.to_path_buf(),
            settings: vec![("max_connections", "50".into())],
            ..ServerOptions::default()
        })
        .await?;
        leave(super::scenes::prepare(&server).await?).await?;
        let mut link = self.link().await?;
        for from in (0..PRODUCTS).step_by(500) {
            let mut pipe = redis::pipe();
            for n in from..from + 500 {
                pipe.pset_ex(product(n), "{\"name\":\"a product\"}", millis(LIFETIME))
                    .ignore();
            }
            pipe.exec_async(&mut link).await.map_err(told)?;
        }
        // Sessions of people, which are jittered by their own coming and going.
        let mut pipe = redis::pipe();
        for n in 0..800_u64 {
            let left = 60_000 + n * 8_999;
            pipe.pset_ex(
                format!("session:{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                "{}",
                left,
            )
            .ignore();
        }
        pipe.exec_async(&mut link).await.map_err(told)?;
        for n in 0..CLIENTS {
            let link = self.link().await?;
            let database = connect(&server.spec("app_rw", Scene::database()), "shop").await?;
            self.clients.push(tokio::spawn(shop(link, database, n)));
        }
        self.database = Some(server);
        Ok(())
    }

    async fn hot_key(&mut self) -> Result<(), DrillError> {
        let mut link = self.link().await?;
        let mut pipe = redis::pipe();
        for n in 0..2000 {
            pipe.set(format!("user:{n}:profile"), "{}").ignore();
        }
        pipe.set("config:feature-flags", "{}").ignore();
        pipe.exec_async(&mut link).await.map_err(told)?;
        // So hot that its counter says so at once.
        for _ in 0..40 {
            let mut pipe = redis::pipe();
            for _ in 0..500 {
                pipe.get("config:feature-flags").ignore();
            }
            pipe.exec_async(&mut link).await.map_err(told)?;
        }
        for n in 0..8 {
            let link = self.link().await?;
            self.clients.push(tokio::spawn(reader(link, n)));
        }
        Ok(())
    }

    /// A queue as Sidekiq 7 lays it out.
    async fn queue_backlog(&mut self) -> Result<(), DrillError> {
        let mut link = self.link().await?;
        let mut pipe = redis::pipe();
        pipe.sadd("queues", &["default", "mailers"]).ignore();
        let now = now(&mut link).await?;
        for n in 0..4000_u32 {
            let at = now - 900.0 + f64::from(n) * 0.2;
            pipe.lpush("queue:default", job(n, at)).ignore();
        }
        for n in 0..350_u32 {
            pipe.zadd(
                "retry",
                job(10_000 + n, now - 60.0),
                now + f64::from(n) - 50.0,
            )
            .ignore();
        }
        for n in 0..120_u32 {
            pipe.zadd(
                "dead",
                job(20_000 + n, now - 3600.0),
                now - f64::from(n) * 30.0,
            )
            .ignore();
        }
        pipe.exec_async(&mut link).await.map_err(told)?;
        let producer = self.link().await?;
        self.clients.push(tokio::spawn(produce(producer)));
        let worker = self.link().await?;
        self.clients.push(tokio::spawn(work(worker)));
        Ok(())
    }
}

impl Drop for CacheScene {
    fn drop(&mut self) {
        for client in &self.clients {
            client.abort();
        }
    }
}

fn told(error: redis::RedisError) -> DrillError {
    DrillError::Scene(error.to_string())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn product(n: usize) -> String {
    format!("catalog:product:{n}:v1")
}

/// Looks at products, popular ones more often, and asks the database for what the cache doesn't have: without a lock, with
/// the same lifetime again, and at the same time as everybody else.
async fn shop(mut cache: MultiplexedConnection, database: tokio_postgres::Client, seed: usize) {
    let mut turn = seed;
    loop {
        turn = turn.wrapping_mul(6_364_136_223).wrapping_add(1_442_695) % 1_000_003;
        // Three in four look at one of three products.
        let n = if turn.is_multiple_of(4) {
            turn % PRODUCTS
        } else {
            turn % 3
        };
        let Ok(found) = cache.get::<_, Option<String>>(product(n)).await else {
            return;
        };
        if found.is_none() {
            let sql = format!(
                "SELECT name, price, pg_sleep(1.5) FROM product WHERE id = {}",
                n % 500 + 1
            );
            if batch(&database, &sql).await.is_err() {
                return;
            }
            let set: Result<(), _> = cache
                .pset_ex(product(n), "{\"name\":\"a product\"}", millis(LIFETIME))
                .await;
            if set.is_err() {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn reader(mut cache: MultiplexedConnection, seed: usize) {
    for turn in seed.. {
        let mut pipe = redis::pipe();
        for _ in 0..20 {
            pipe.get("config:feature-flags").ignore();
        }
        pipe.get(format!("user:{}:profile", turn * 7 % 2000))
            .ignore();
        if pipe.exec_async(&mut cache).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn job(n: u32, at: f64) -> String {
    format!(
        "{{\"class\":\"InvoiceJob\",\"args\":[{n}],\"jid\":\"{n:024x}\",\"queue\":\"default\",\"retry\":true,\
         \"created_at\":{at:.3},\"enqueued_at\":{at:.3}}}"
    )
}

/// Seconds of the server's clock.
async fn now(link: &mut MultiplexedConnection) -> Result<f64, DrillError> {
    let (seconds, micros): (u32, u32) = redis::cmd("TIME").query_async(link).await.map_err(told)?;
    Ok(f64::from(seconds) + f64::from(micros) / 1e6)
}

async fn produce(mut link: MultiplexedConnection) {
    for n in 100_000.. {
        let Ok(at) = now(&mut link).await else { return };
        if link
            .lpush::<_, _, ()>("queue:default", job(n, at))
            .await
            .is_err()
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// One process with one thread, slower than the jobs come; every fifth job fails.
async fn work(mut link: MultiplexedConnection) {
    let identity = "worker-1:1:drill";
    for turn in 1_u32.. {
        let Ok(at) = now(&mut link).await else { return };
        let taken: Result<Option<String>, _> = link.rpop("queue:default", None).await;
        let Ok(Some(job)) = taken else { return };
        let mut pipe = redis::pipe();
        pipe.sadd("processes", identity).ignore();
        pipe.cmd("HSET")
            .arg(identity)
            .arg("info")
            .arg("{\"hostname\":\"worker-1\",\"queues\":[\"default\"]}");
        pipe.arg("busy")
            .arg(1)
            .arg("beat")
            .arg(format!("{at:.3}"))
            .arg("quiet")
            .arg("false")
            .ignore();
        pipe.expire(identity, 60).ignore();
        pipe.incr("stat:processed", 1).ignore();
        if turn.is_multiple_of(5) {
            pipe.incr("stat:failed", 1).ignore();
            pipe.zadd("dead", job, at).ignore();
        }
        if pipe.exec_async(&mut link).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
