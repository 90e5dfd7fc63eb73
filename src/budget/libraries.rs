//! The pools of the popular libraries: what each opens at most in one process where nothing says a number, and the variables by
//! which it is told one.

/// What a pool holds by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    Number(u64),
    /// Follows the machine's processors: at least so many.
    OfCores(u64),
    Unlimited,
    /// One for each thread that the server program runs.
    OfThreads,
}

#[derive(Clone, Copy, Debug)]
pub struct Library {
    pub name: &'static str,
    pub most: Most,
    /// Variables that its framework reads.
    pub variables: &'static [&'static str],
    /// A variable that shows that it is this library, without a number.
    pub shown_by: Option<&'static str>,
}

const fn library(name: &'static str, most: Most) -> Library {
    Library {
        name,
        most,
        variables: &[],
        shown_by: None,
    }
}

/// By the defaults of their documentation.
pub const LIBRARIES: &[Library] = &[
    Library {
        variables: &[
            "SPRING_DATASOURCE_HIKARI_MAXIMUMPOOLSIZE",
            "SPRING_DATASOURCE_HIKARI_MAXIMUM_POOL_SIZE",
        ],
        ..library("hikaricp", Most::Number(10))
    },
    Library {
        variables: &[
            "SPRING_DATASOURCE_DBCP2_MAXTOTAL",
            "SPRING_DATASOURCE_DBCP2_MAX_TOTAL",
        ],
        ..library("dbcp2", Most::Number(8))
    },
    Library {
        variables: &[
            "SPRING_DATASOURCE_TOMCAT_MAXACTIVE",
            "SPRING_DATASOURCE_TOMCAT_MAX_ACTIVE",
        ],
        ..library("tomcat", Most::Number(100))
    },
    Library {
        variables: &["SPRING_R2DBC_POOL_MAXSIZE", "SPRING_R2DBC_POOL_MAX_SIZE"],
        shown_by: Some("SPRING_R2DBC_URL"),
        ..library("r2dbc-pool", Most::Number(10))
    },
    library("c3p0", Most::Number(15)),
    library("npgsql", Most::Number(100)),
    library("sqlalchemy", Most::Number(15)),
    library("psycopg_pool", Most::Number(4)),
    library("asyncpg", Most::Number(10)),
    library("django", Most::OfThreads),
    library("activerecord", Most::Number(5)),
    library("node-pg", Most::Number(10)),
    library("knex", Most::Number(10)),
    library("sequelize", Most::Number(5)),
    library("prisma", Most::OfCores(3)),
    library("prisma-7", Most::Number(10)),
    library("database/sql", Most::Unlimited),
    library("pgx", Most::OfCores(4)),
    library("sqlx", Most::Number(10)),
    library("bb8", Most::Number(10)),
    library("deadpool", Most::OfCores(2)),
    library("ecto", Most::Number(10)),
];

/// Variables that say where the database is: whoever has one connects.
pub const ADDRESSES: &[&str] = &[
    "DATABASE_URL",
    "DATABASE_DSN",
    "DATABASE_HOST",
    "DB_URL",
    "DB_DSN",
    "DB_HOST",
    "POSTGRES_URL",
    "POSTGRES_DSN",
    "POSTGRES_HOST",
    "POSTGRESQL_URL",
    "POSTGRESQL_HOST",
    "PGHOST",
    "PGDATABASE",
    "PGSERVICE",
];

pub fn by_name(name: &str) -> Option<&'static Library> {
    LIBRARIES.iter().find(|library| library.name == name)
}

pub fn library_names() -> Vec<&'static str> {
    LIBRARIES.iter().map(|library| library.name).collect()
}
