//! Before the first frame: the folder under a name of its own, and the key of the tokens.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::bundle::{self, Folder, Head};
use crate::cli::args::bundle::CaptureArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::secrets;
use crate::cli::settings::ConnectSettings;
use crate::model::RedactionLevel;
use crate::source::redis::RedisAddress;

/// The names that an error of a connection may hold; the longest first, since one may be part of another.
pub fn names(
    settings: &ConnectSettings,
    redis: Option<&RedisAddress>,
) -> Vec<(&'static str, String)> {
    let plans = settings.rescue.iter().chain([&settings.plan]);
    let mut names: Vec<(&'static str, String)> = plans
        .flat_map(|plan| &plan.places)
        .flat_map(|place| {
            let addr = place.hostaddr.clone().map(|addr| ("host", addr));
            let names = [
                ("host", place.host.clone()),
                ("user", place.user.clone()),
                ("db", place.database.clone()),
            ];
            names.into_iter().chain(addr)
        })
        .filter(|(_, name)| !name.is_empty())
        .collect();
    names.extend(
        redis
            .into_iter()
            .flat_map(RedisAddress::hosts)
            .map(|host| ("host", host)),
    );
    names.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
    names
}

/// A new key, kept with the journals: whoever has it can tell which name a token was.
pub fn new_key(ctx: &mut Context<'_>, head: &Head) -> Result<Vec<u8>, Fault> {
    let path = secrets::key_of(ctx.env, head.started_at)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let key: [u8; 32] = rand::random();
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let written = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .and_then(|()| bundle::write_bytes(&path, text.as_bytes()));
    written.map_err(|error| Fault::Save(format!("{}: no key: {error}", path.display())))?;
    ctx.console
        .note(&format!("the key of the tokens is in {}", path.display()));
    Ok(text.into_bytes())
}

/// A folder under a name that nobody has.
pub fn make(args: &CaptureArgs, head: &Head) -> Result<Folder, Fault> {
    if args.out.exists() && !args.out.is_dir() {
        return Err(Fault::Usage(format!(
            "--out {}: that is a file; the bundle gets a name of its own in the folder that --out names",
            args.out.display()
        )));
    }
    let place = head.target.name.as_ref().unwrap_or(&head.target.database);
    let plain: String = place
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    let unredacted = match head.redaction {
        RedactionLevel::None => "-UNREDACTED",
        RedactionLevel::Redacted => "",
    };
    let at = head.started_at.utc().format("%Y%m%dT%H%M%SZ");
    let name = format!("stanch-{plain}-{at}{unredacted}");
    for n in 0..100 {
        let name = match n {
            0 => name.clone(),
            n => format!("{name}-{n}"),
        };
        // Here, it is said by its name alone.
        let root = if args.out == Path::new(".") {
            PathBuf::from(&name)
        } else {
            args.out.join(&name)
        };
        if root.with_file_name(format!("{name}.tar.zst")).exists() {
            continue;
        }
        match Folder::create(root.clone(), head, args.max_size) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(Fault::Save(format!(
                    "{}: no bundle: {error}",
                    root.display()
                )));
            }
            Ok(folder) => return Ok(folder),
        }
    }
    Err(Fault::Save(format!("{name}: the name is taken")))
}
