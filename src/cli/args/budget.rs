//! `budget` and its options.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::{AtArgs, ConnectArgs};

#[derive(Debug, Subcommand)]
pub enum BudgetCommand {
    /// What can connect at its peak, against what the server has: for CI, and with --live against a running server
    Check(Box<BudgetCheck>),
    /// The derivation, each factor with its source; what if by --set, and what still fits
    Explain(BudgetInput),
    /// A budget.yaml of what is found, to be completed
    Init(BudgetInput),
}

/// What is read, and what if.
#[derive(Debug, ClapArgs)]
pub struct BudgetInput {
    /// Files or folders: budget.yaml, manifests, docker-compose, ECS, pgbouncer.ini, postgresql.conf
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Left out: a path from here, or the name of a file or folder anywhere
    #[arg(long, value_name = "NAME")]
    pub exclude: Vec<String>,
    /// max_connections of every server, whatever the files say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=262_143))]
    pub max_connections: Option<u64>,
    /// On how many nodes a DaemonSet runs
    #[arg(long, value_name = "N")]
    pub nodes: Option<u64>,
    /// What if: web.pods=40, web.connections=5, main.max_connections=500
    #[arg(long, value_name = "NAME.FIELD=N")]
    pub set: Vec<String>,
    /// The scenarios that decide; the others warn
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "steady,rollout-worst-one,rollout-all"
    )]
    pub fail_on: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub struct BudgetCheck {
    #[command(flatten)]
    pub input: BudgetInput,
    /// What isn't known fails too
    #[arg(long)]
    pub strict: bool,
    /// The same files as they were: -o md shows what has changed
    #[arg(long, value_name = "PATH")]
    pub base: Option<PathBuf>,
    /// Against the running server: its limits, and what is really connected, workload by workload
    #[arg(long)]
    pub live: bool,
    /// Write the snapshot that it was compared with
    #[arg(long, value_name = "FILE", requires = "live")]
    pub save: Option<PathBuf>,
    /// The same, on a saved snapshot or a frame of a bundle
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    pub at: AtArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}
