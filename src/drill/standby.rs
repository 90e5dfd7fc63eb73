//! A standby as a copy of a running primary: by pg_basebackup where the server has it, else by the same steps.

use std::fs;
use std::path::{Path, PathBuf};

use tokio_postgres::Client;

use super::error::DrillError;
use super::folder::RunAs;
use super::process::run;
use super::scenes::{batch, connect};
use crate::source::postgres::ConnSpec;

/// Not part of a copy: the primary's own process, and what it holds for others.
const LEFT_OUT: [&str; 3] = ["postmaster.pid", "postmaster.opts", "pg_replslot"];

pub(super) async fn copy(
    bin_dir: &Path,
    folder: &Path,
    data: &Path,
    primary: &ConnSpec,
    run_as: RunAs,
) -> Result<(), DrillError> {
    let tool = bin_dir.join("pg_basebackup");
    if !tool.exists() {
        return by_hand(data, primary, run_as).await;
    }
    let (port, data) = (primary.port.to_string(), data.display().to_string());
    let args = [
        "-D",
        &data,
        "-h",
        &primary.host,
        "-p",
        &port,
        "-U",
        &primary.user,
        "-R",
        "-X",
        "stream",
        "-c",
        "fast",
    ];
    run(&tool, &args, folder, run_as)
}

/// Some builds of the server come without its clients.
async fn by_hand(data: &Path, primary: &ConnSpec, run_as: RunAs) -> Result<(), DrillError> {
    let client = connect(primary, "drill").await?;
    let major = one(
        &client,
        "SELECT current_setting('server_version_num')::int / 10000",
    )
    .await?;
    let from = PathBuf::from(one(&client, "SELECT current_setting('data_directory')").await?);
    // The functions have other names from 15 on.
    let new = major.parse::<u32>().is_ok_and(|major| major >= 15);
    batch(
        &client,
        if new {
            "SELECT pg_backup_start('drill', true)"
        } else {
            "SELECT pg_start_backup('drill', true, false)"
        },
    )
    .await?;
    copy_folder(&from, data, run_as)?;
    let label = one(
        &client,
        if new {
            "SELECT labelfile FROM pg_backup_stop(false)"
        } else {
            "SELECT labelfile FROM pg_stop_backup(false, false)"
        },
    )
    .await?;
    let conninfo = format!(
        "primary_conninfo = 'host={} port={} user={}'\n",
        primary.host, primary.port, primary.user
    );
    let auto = data.join("postgresql.auto.conf");
    let old = fs::read_to_string(&auto).map_err(DrillError::at(&auto))?;
    for (name, content) in [
        ("backup_label", label),
        ("standby.signal", String::new()),
        ("postgresql.auto.conf", format!("{old}{conninfo}")),
    ] {
        let path = data.join(name);
        fs::write(&path, content).map_err(DrillError::at(&path))?;
        run_as.give(&path)?;
    }
    fs::create_dir(data.join("pg_replslot"))
        .map_err(DrillError::at(data))
        .and_then(|()| run_as.give(&data.join("pg_replslot")))
}

async fn one(client: &Client, sql: &str) -> Result<String, DrillError> {
    let rows = client.query(&format!("SELECT ({sql})::text"), &[]).await?;
    rows.first()
        .and_then(|row| row.get::<_, Option<String>>(0))
        .ok_or_else(|| DrillError::Scene(format!("no answer to {sql}")))
}

/// What goes while it is copied (a temporary file) was not needed: the WAL says what becomes of the rest.
fn copy_folder(from: &Path, to: &Path, run_as: RunAs) -> Result<(), DrillError> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    fs::DirBuilder::new()
        .mode(0o700)
        .create(to)
        .map_err(DrillError::at(to))?;
    run_as.give(to)?;
    for entry in fs::read_dir(from).map_err(DrillError::at(from))?.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let copy = to.join(&name);
        if path.is_dir() {
            copy_folder(&path, &copy, run_as)?;
        } else if let Ok(mut source) = fs::File::open(&path) {
            let mut file = fs::File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&copy)
                .map_err(DrillError::at(&copy))?;
            std::io::copy(&mut source, &mut file).map_err(DrillError::at(&copy))?;
            run_as.give(&copy)?;
        }
    }
    Ok(())
}
