//! Is a bundle what was sealed, and is nothing secret in it?

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};

use sha2::{Digest as _, Sha256};

use super::error::BundleError;
use super::format;
use super::gate::Hit;
use super::known::KnownSecrets;
use super::layout::frame_of;
use super::open::Bundle;
use super::seal::{hex, hits};

/// What was found.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Of the whole file, where it is one.
    pub sha256: Option<String>,
    pub files: usize,
    pub bytes: u64,
    /// Otherwise than the manifest says; empty where all is as it was sealed.
    pub faults: Vec<String>,
    /// There is no manifest to compare with: a folder that was never sealed.
    pub unsealed: bool,
    pub hits: Vec<Hit>,
}

/// Compares every file with the manifest, reads every frame, and looks for secrets again.
///
/// # Errors
/// When it can't be read at all.
pub fn verify(bundle: &Bundle, known: &KnownSecrets) -> Result<Checked, BundleError> {
    let mut found: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut faults = Vec::new();
    let mut damaged = BTreeSet::new();
    bundle.each(&mut |path, bytes| {
        let sum = (bytes.len() as u64, hex(&Sha256::digest(bytes)));
        found.insert(path.to_owned(), sum);
        if frame_of(path).is_some()
            && let Err(error) = format::parse(path.as_ref(), bytes)
        {
            faults.push(error.to_string());
            damaged.insert(path.to_owned());
        }
        Ok(())
    })?;
    if let Some(manifest) = bundle.manifest() {
        let mut listed = BTreeMap::new();
        for file in &manifest.files {
            listed.insert(file.path.as_str(), ());
            match found.get(&file.path) {
                None => faults.push(format!("{} isn't there any more", file.path)),
                Some((_, sha256)) if *sha256 != file.sha256 => {
                    faults.push(format!("{} was changed", file.path));
                }
                Some(_) => {}
            }
        }
        let added = found
            .keys()
            .filter(|path| !listed.contains_key(path.as_str()));
        faults.extend(added.map(|path| format!("{path} wasn't there when it was sealed")));
    }
    let mut hits = hits(bundle, known)?;
    // It is told as damage.
    hits.retain(|hit| !(hit.is_damage() && damaged.contains(&hit.file)));
    let sha256 = if bundle.is_sealed() || bundle.is_single() {
        Some(whole(bundle).map_err(|error| bundle.io(error))?)
    } else {
        None
    };
    Ok(Checked {
        sha256,
        files: found.len(),
        bytes: found.values().map(|(bytes, _)| bytes).sum(),
        faults,
        unsealed: bundle.manifest().is_none(),
        hits,
    })
}

fn whole(bundle: &Bundle) -> io::Result<String> {
    let mut file = File::open(bundle.path())?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&digest.finalize())),
            read => digest.update(&buffer[..read]),
        }
    }
}
