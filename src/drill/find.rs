//! Where the servers' programs are: PATH first, then the places where distributions put them.

use std::path::{Path, PathBuf};

/// Folders that hold `postgres` and `initdb`: those of PATH in their order, then the packaged ones, newest first.
///
/// `path` is the value of PATH, handed down from the edge.
pub fn bin_dirs(path: &str) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = path
        .split(':')
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
        .collect();
    let mut packaged: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    packaged.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    dirs.extend(packaged.into_iter().map(|(_, dir)| dir));
    // A wrapper script in PATH is no server: where the programs lie together is.
    dirs.retain(|dir| is_program(&dir.join("postgres")) && is_program(&dir.join("initdb")));
    let mut found = Vec::new();
    for dir in dirs {
        // PATH may hold links to some of the programs: the folder that they lead to has them all.
        let file = dir.join("postgres").canonicalize().ok();
        let real = file.and_then(|file| file.parent().map(Path::to_path_buf));
        let real = real
            .filter(|real| is_program(&real.join("initdb")))
            .unwrap_or(dir);
        if !found.contains(&real) {
            found.push(real);
        }
    }
    found
}

/// A program by name: in PATH, or in the folders where daemons lie.
pub fn find_tool(path: &str, name: &str) -> Option<PathBuf> {
    path.split(':')
        .filter(|dir| !dir.is_empty())
        .chain(["/usr/sbin", "/usr/local/sbin", "/usr/bin"])
        .map(|dir| Path::new(dir).join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
