//! `pg_service.conf`: connection parameters under a name.

use std::io;
use std::path::{Path, PathBuf};

use super::layer::Layer;
use super::{ConnInputError, Environment};
use crate::model::Origin;

/// Where distributions have the file of all users; `PGSYSCONFDIR` names another folder.
const SYSTEM_FOLDERS: [&str; 3] = ["/etc/postgresql-common", "/etc", "/usr/local/pgsql/etc"];

/// The parameters of a service: of the person's own file, else of the system's.
///
/// # Errors
/// When a file that was named isn't there, a file can't be read, or none defines the service.
pub fn load(
    service: &str,
    named_file: Option<&str>,
    env: &Environment,
) -> Result<Layer, ConnInputError> {
    let own = match named_file {
        Some(file) => Some((PathBuf::from(file), true)),
        None => env
            .home()
            .map(|home| (home.join(".pg_service.conf"), false)),
    };
    let folders: Vec<&str> = match env.get("PGSYSCONFDIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => vec![dir.as_str()],
        None => SYSTEM_FOLDERS.to_vec(),
    };
    let system = folders
        .into_iter()
        .map(|folder| (Path::new(folder).join("pg_service.conf"), false));
    for (path, must_be) in own.into_iter().chain(system) {
        match std::fs::read(&path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                if let Some(layer) = find(&text, service, &path)? {
                    return Ok(layer);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_be => {}
            Err(error) => {
                return Err(ConnInputError::File {
                    path,
                    error: error.to_string(),
                });
            }
        }
    }
    Err(ConnInputError::NoService(service.to_owned()))
}

fn find(text: &str, service: &str, path: &Path) -> Result<Option<Layer>, ConnInputError> {
    let mut found: Option<Layer> = None;
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |what: &'static str| ConnInputError::ServiceFile {
            path: path.to_path_buf(),
            line: n + 1,
            what,
        };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(head) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if head.strip_suffix(']') == Some(service) || head.starts_with(&format!("{service}]")) {
                found = Some(Layer::default());
            }
            continue;
        }
        let Some(layer) = &mut found else { continue };
        if line.starts_with("ldap") {
            return Err(wrong("parameters from an LDAP server aren't read here"));
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| wrong("a line without '='"))?;
        if name == "service" || name == "servicefile" {
            return Err(wrong("a service inside a service"));
        }
        // The first of two lines counts.
        if !layer.has(name) {
            let origin = Origin::service(service, path);
            layer
                .set_named(name, value, origin)
                .map_err(|_| wrong("an unknown parameter"))?;
        }
    }
    Ok(found)
}
