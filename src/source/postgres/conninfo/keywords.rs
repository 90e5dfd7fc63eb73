//! libpq's connection parameters by name (PostgreSQL 12 to 18), with the environment variable of each.

/// What becomes of a parameter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It says where, as whom or how to connect.
    Connects,
    /// Taken and not needed: what it sets is set per transaction, or is of no effect on where a connection leads.
    Taken,
    /// Never printed.
    Secret,
}

#[derive(Debug)]
pub struct Keyword {
    pub name: &'static str,
    pub variable: Option<&'static str>,
    pub use_: Use,
}

const fn keyword(name: &'static str, variable: &'static str, use_: Use) -> Keyword {
    Keyword {
        name,
        variable: if variable.is_empty() {
            None
        } else {
            Some(variable)
        },
        use_,
    }
}

use Use::{Connects, Secret, Taken};

/// libpq's table `PQconninfoOptions`, by the manual of PostgreSQL 18 (34.1.2, 34.15).
pub static KEYWORDS: &[Keyword] = &[
    keyword("service", "PGSERVICE", Connects),
    keyword("servicefile", "PGSERVICEFILE", Connects),
    keyword("host", "PGHOST", Connects),
    keyword("hostaddr", "PGHOSTADDR", Connects),
    keyword("port", "PGPORT", Connects),
    keyword("dbname", "PGDATABASE", Connects),
    keyword("user", "PGUSER", Connects),
    keyword("password", "PGPASSWORD", Secret),
    keyword("passfile", "PGPASSFILE", Connects),
    keyword("require_auth", "PGREQUIREAUTH", Connects),
    keyword("channel_binding", "PGCHANNELBINDING", Connects),
    keyword("connect_timeout", "PGCONNECT_TIMEOUT", Connects),
    keyword("target_session_attrs", "PGTARGETSESSIONATTRS", Connects),
    keyword("load_balance_hosts", "PGLOADBALANCEHOSTS", Connects),
    keyword("sslmode", "PGSSLMODE", Connects),
    keyword("requiressl", "PGREQUIRESSL", Connects),
    keyword("sslnegotiation", "PGSSLNEGOTIATION", Connects),
    keyword("sslrootcert", "PGSSLROOTCERT", Connects),
    keyword("sslcrl", "PGSSLCRL", Connects),
    keyword("sslcrldir", "PGSSLCRLDIR", Connects),
    keyword("sslcert", "PGSSLCERT", Connects),
    keyword("sslkey", "PGSSLKEY", Connects),
    keyword("sslcertmode", "PGSSLCERTMODE", Connects),
    keyword("sslpassword", "", Secret),
    keyword("sslsni", "PGSSLSNI", Connects),
    keyword(
        "ssl_min_protocol_version",
        "PGSSLMINPROTOCOLVERSION",
        Connects,
    ),
    keyword(
        "ssl_max_protocol_version",
        "PGSSLMAXPROTOCOLVERSION",
        Connects,
    ),
    keyword("requirepeer", "PGREQUIREPEER", Connects),
    keyword("gssencmode", "PGGSSENCMODE", Connects),
    keyword("replication", "", Connects),
    keyword("keepalives", "", Connects),
    keyword("keepalives_idle", "", Connects),
    keyword("keepalives_interval", "", Connects),
    keyword("keepalives_count", "", Connects),
    keyword("tcp_user_timeout", "", Connects),
    keyword("application_name", "PGAPPNAME", Taken),
    keyword("fallback_application_name", "", Taken),
    keyword("client_encoding", "PGCLIENTENCODING", Taken),
    keyword("options", "PGOPTIONS", Taken),
    keyword("sslcompression", "PGSSLCOMPRESSION", Taken),
    keyword("krbsrvname", "PGKRBSRVNAME", Taken),
    keyword("gsslib", "PGGSSLIB", Taken),
    keyword("gssdelegation", "PGGSSDELEGATION", Taken),
    keyword("min_protocol_version", "PGMINPROTOCOLVERSION", Taken),
    keyword("max_protocol_version", "PGMAXPROTOCOLVERSION", Taken),
    keyword("sslkeylogfile", "", Taken),
    keyword("authtype", "", Taken),
    keyword("tty", "", Taken),
    keyword("scram_client_key", "", Secret),
    keyword("scram_server_key", "", Secret),
    keyword("oauth_issuer", "", Taken),
    keyword("oauth_client_id", "", Taken),
    keyword("oauth_client_secret", "", Secret),
    keyword("oauth_scope", "", Taken),
];

/// The parameter of that name.
pub fn known(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}
