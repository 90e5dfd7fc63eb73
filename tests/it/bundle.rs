//! Bundles: the same bytes each time, whatever is hostile refused, whatever was cut off readable, and nothing secret sealed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use stanch::bundle::{
    self, Bundle, BundleError, End, Folder, Gap, Head, Kept, KnownSecrets, SealError,
};
use stanch::model::{QueryRows, RedactionLevel, Section, Snapshot, Timestamp};
use stanch::source::saved::{self, Loaded, When};

use crate::corpus::{PLANTED, Place};

const MOST: u64 = 64 << 20;

pub fn nothing() -> KnownSecrets {
    KnownSecrets::new(Vec::<(String, String)>::new())
}

pub fn captures() -> Vec<Snapshot> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("captures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    let mut all: Vec<Snapshot> = files
        .iter()
        .map(|file| bundle::read(file).expect("a snapshot"))
        .collect();
    for snapshot in &mut all {
        bundle::redact(snapshot);
    }
    all.sort_by_key(|snapshot| snapshot.taken_at);
    all
}

pub fn head(snapshot: &Snapshot) -> Head {
    Head {
        format: bundle::BUNDLE_FORMAT.into(),
        stanch: "0.1.0".into(),
        started_at: snapshot.taken_at,
        target: snapshot.target.clone(),
        every_ms: Some(2000),
        for_ms: None,
        redaction: RedactionLevel::Redacted,
        tokens: false,
        logs: Vec::new(),
    }
}

fn load(path: &Path, when: When) -> Result<Loaded, BundleError> {
    saved::load(path, when, stanch::analysis::glance::weight)
}

fn gap(at: Timestamp) -> Gap {
    Gap::new(at, "frame".into(), "no answer within 10 s".into())
}

/// Every stored capture as a frame, one gap, and an end.
pub fn written(place: &Path) -> Folder {
    let all = captures();
    let mut folder = Folder::create(place.to_path_buf(), &head(&all[0]), MOST).expect("a folder");
    for snapshot in &all {
        assert_eq!(folder.frame(snapshot).expect("written"), Kept::Written);
    }
    folder.gap(gap(all[0].taken_at)).expect("written");
    folder
}

pub fn ended(folder: &mut Folder) {
    let end = End {
        at: captures()[0].taken_at,
        whole: true,
        why: "the time is over".into(),
    };
    folder.end(&end).expect("written");
}

/// One that was captured to its end, sealed: its folder, its file, and its manifest as it stands in it.
pub fn sealed_one(place: &Path) -> (PathBuf, PathBuf, Vec<u8>) {
    let (root, sealed) = (place.join("one"), place.join("one.tar.zst"));
    ended(&mut written(&root));
    let file = bundle::seal(&root, &sealed, &nothing(), &[]).expect("sealed");
    let manifest = serde_json::to_vec(&file.manifest).expect("JSON");
    (root, sealed, manifest)
}

/// An archive of these files.
fn packed(place: &Path, files: &[(String, Vec<u8>)]) -> PathBuf {
    let plain = files.iter().map(|(path, bytes)| Entry {
        path,
        kind: tar::EntryType::Regular,
        link: None,
        bytes,
    });
    archive(place, &plain.collect::<Vec<_>>())
}

#[test]
fn sealed_twice_it_is_the_same() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    ended(&mut written(&root));
    let (a, b) = (
        place.path().join("a.tar.zst"),
        place.path().join("b.tar.zst"),
    );
    let first = bundle::seal(&root, &a, &nothing(), &[]).expect("sealed");
    // Other times and another order of files on disk.
    let copy = place.path().join("elsewhere/one");
    fs::create_dir_all(copy.join("frames")).expect("a folder");
    let mut files: Vec<PathBuf> = fs::read_dir(root.join("frames"))
        .expect("frames")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    for file in files.iter().rev() {
        let name = file.file_name().expect("a name");
        fs::copy(file, copy.join("frames").join(name)).expect("copied");
    }
    for name in ["end.json", "capture.json", "gaps.jsonl"] {
        fs::copy(root.join(name), copy.join(name)).expect("copied");
    }
    let second = bundle::seal(&copy, &b, &nothing(), &[]).expect("sealed");
    assert_eq!(first.sha256, second.sha256);
    assert_eq!(fs::read(&a).expect("bytes"), fs::read(&b).expect("bytes"));
    let mode = fs::metadata(&a).expect("it").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let bundle = Bundle::open(&a).expect("a bundle");
    assert_eq!(
        (bundle.frames().len(), bundle.gaps().len()),
        (captures().len(), 1)
    );
    assert_eq!(bundle.why_partial(), None);
    let checked = bundle::verify(&bundle, &nothing()).expect("read");
    assert_eq!((checked.faults.len(), checked.hits.len()), (0, 0));
    assert_eq!(checked.sha256.as_deref(), Some(first.sha256.as_str()));
    // Unpacked again it is the folder that it was, and is sealed to the same bytes.
    let unpacked = place.path().join("unpacked");
    fs::create_dir(&unpacked).expect("a folder");
    let decoder = zstd::Decoder::new(fs::File::open(&a).expect("it")).expect("zstd");
    tar::Archive::new(decoder)
        .unpack(&unpacked)
        .expect("unpacked");
    let c = place.path().join("c.tar.zst");
    bundle::seal(&unpacked.join("one"), &c, &nothing(), &[]).expect("sealed");
    assert_eq!(fs::read(&a).expect("bytes"), fs::read(&c).expect("bytes"));
}

#[test]
fn frames_are_what_was_put_in() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    ended(&mut written(&root));
    let sealed = place.path().join("one.tar.zst");
    bundle::seal(&root, &sealed, &nothing(), &[]).expect("sealed");
    let all = captures();
    for path in [&root, &sealed] {
        let bundle = Bundle::open(path).expect("a bundle");
        let mut read = Vec::new();
        bundle
            .each_frame(&mut |_, snapshot| read.push(snapshot.expect("a frame")))
            .expect("read");
        assert!(read == all);
        let last = load(path, When::Last).expect("the last");
        assert!(Some(&last.snapshot) == all.last());
        assert_eq!((last.number, last.of), (all.len(), all.len()));
        let second = load(path, When::At(all[1].taken_at.utc())).expect("the second");
        assert_eq!(second.number, 2);
        let after = all[1].taken_at.utc() + chrono::Duration::microseconds(1);
        assert_eq!(load(path, When::At(after)).expect("still").number, 2);
        let before = all[0].taken_at.utc() - chrono::Duration::seconds(1);
        assert!(load(path, When::At(before)).is_err());
        assert!(load(path, When::Number(99)).is_err());
    }
}

#[test]
fn what_was_cut_off_is_read_and_says_so() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    drop(written(&root));
    // What a kill leaves: half a gap, a file that has no name yet.
    let mut gaps = fs::OpenOptions::new()
        .append(true)
        .open(root.join("gaps.jsonl"))
        .expect("it");
    gaps.write_all(b"{\"at\":\"2026-11-").expect("written");
    fs::write(root.join("frames/.part-x1"), b"{\"format\"").expect("written");
    let bundle = Bundle::open(&root).expect("a bundle");
    assert_eq!(
        (bundle.frames().len(), bundle.gaps().len()),
        (captures().len(), 1)
    );
    assert!(bundle.why_partial().expect("partial").contains("cut off"));
    let loaded = load(&root, When::First).expect("the first");
    assert!(loaded.why_partial.is_some());
    let sealed = bundle::seal(&root, &place.path().join("x.tar.zst"), &nothing(), &[]);
    assert!(sealed.expect("sealed").manifest.why_partial.is_some());
}

#[test]
fn a_folder_that_was_taken_away_is_written_again() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("deep/one");
    let mut folder = written(&root);
    fs::remove_dir_all(place.path().join("deep")).expect("removed");
    let all = captures();
    folder.frame(&all[0]).expect("written again");
    fs::remove_dir_all(&root).expect("removed");
    folder.gap(gap(all[0].taken_at)).expect("written again");
    ended(&mut folder);
    let bundle = Bundle::open(&root).expect("a bundle");
    assert_eq!(
        (bundle.frames().len(), bundle.gaps().len()),
        (all.len() + 1, 4)
    );
    let told = bundle
        .gaps()
        .iter()
        .filter(|gap| gap.why.contains("written again"));
    assert_eq!(told.count(), 2);
    // Only a part of it.
    let mut folder = written(&place.path().join("two"));
    fs::remove_dir_all(place.path().join("two/frames")).expect("removed");
    ended(&mut folder);
    let bundle = Bundle::open(&place.path().join("two")).expect("a bundle");
    assert_eq!((bundle.frames().len(), bundle.gaps().len()), (all.len(), 2));
}

/// Taking away takes its time, and takes what is written meanwhile with it.
#[test]
fn a_folder_that_is_taken_away_for_a_while() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("deep/one");
    let mut folder = written(&root);
    let gone = place.path().join("deep");
    let remover = std::thread::spawn(move || {
        let mut removed = 0;
        while removed < 5 {
            removed += usize::from(fs::remove_dir_all(&gone).is_ok());
        }
    });
    let all = captures();
    let mut frames = all.len();
    while !remover.is_finished() {
        folder.frame(&all[0]).expect("written again");
        frames += 1;
    }
    remover.join().expect("it ends");
    ended(&mut folder);
    let bundle = Bundle::open(&root).expect("a bundle");
    assert_eq!(bundle.frames().len(), frames);
}

#[test]
fn a_bundle_has_a_largest_size() {
    let place = tempfile::tempdir().expect("a folder");
    let all = captures();
    let root = place.path().join("one");
    let mut folder = Folder::create(root, &head(&all[0]), 1000).expect("a folder");
    assert_eq!(folder.frame(&all[0]).expect("no fault"), Kept::TooLarge);
    assert_eq!(folder.frames(), 0);
}

struct Entry<'e> {
    path: &'e str,
    kind: tar::EntryType,
    link: Option<&'e str>,
    bytes: &'e [u8],
}

/// An archive of any content: names are put into the header as they are.
fn archive(place: &Path, entries: &[Entry<'_>]) -> PathBuf {
    let mut tar = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..entry.path.len()].copy_from_slice(entry.path.as_bytes());
        header.set_size(entry.bytes.len() as u64);
        header.set_mode(0o600);
        header.set_entry_type(entry.kind);
        if let Some(link) = entry.link {
            header.set_link_name(link).expect("a link");
        }
        header.set_cksum();
        tar.append(&header, entry.bytes).expect("added");
    }
    let path = place.join("hostile.tar.zst");
    let bytes = zstd::encode_all(tar.into_inner().expect("bytes").as_slice(), 1).expect("packed");
    fs::write(&path, bytes).expect("written");
    path
}

#[test]
fn hostile_archives_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let head = serde_json::to_vec(&head(&captures()[0])).expect("JSON");
    let plain = |path, bytes| Entry {
        path,
        kind: tar::EntryType::Regular,
        link: None,
        bytes,
    };
    let capture = || plain("b/capture.json", &head);
    let special = |path, kind, link| Entry {
        path,
        kind,
        link,
        bytes: b"",
    };
    let cases = [
        (vec![capture(), plain("../evil", b"x")], "leads out"),
        (vec![capture(), plain("b/../../evil", b"x")], "leads out"),
        (vec![capture(), plain("/etc/evil", b"x")], "leads out"),
        (vec![capture(), plain("b/a/b/c/d", b"x")], "leads out"),
        (vec![capture(), plain("b", b"x")], "leads out"),
        (vec![capture(), plain("c/end.json", b"{}")], "second folder"),
        (vec![capture(), capture()], "twice"),
        (
            vec![
                capture(),
                special("b/x", tar::EntryType::Symlink, Some("/etc/passwd")),
            ],
            "no plain file",
        ),
        (
            vec![
                capture(),
                special("b/x", tar::EntryType::Link, Some("b/capture.json")),
            ],
            "no plain file",
        ),
        (
            vec![capture(), special("b/x", tar::EntryType::Fifo, None)],
            "no plain file",
        ),
        (
            vec![capture(), special("b/x", tar::EntryType::Char, None)],
            "no plain file",
        ),
        (
            vec![special("b/", tar::EntryType::Directory, None), capture()],
            "no plain file",
        ),
        (
            vec![
                capture(),
                plain("b/x", b""),
                special("y", tar::EntryType::XHeader, None),
            ],
            "no plain file",
        ),
        (
            vec![capture(), special("y", tar::EntryType::GNULongName, None)],
            "no plain file",
        ),
    ];
    for (entries, what) in cases {
        let path = archive(place.path(), &entries);
        let error = Bundle::open(&path).expect_err(what);
        let refused = matches!(error, BundleError::Refused { .. });
        assert!(
            refused && error.to_string().contains(what),
            "{what}: {error}"
        );
    }
}

#[test]
fn a_bomb_is_refused_early() {
    let place = tempfile::tempdir().expect("a folder");
    let head = serde_json::to_vec(&head(&captures()[0])).expect("JSON");
    let path = place.path().join("bomb.tar.zst");
    let mut encoder =
        zstd::Encoder::new(fs::File::create(&path).expect("a file"), 1).expect("zstd");
    let add = |name: String, size: u64, encoder: &mut dyn std::io::Write| {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).expect("a path");
        header.set_size(size);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        encoder.write_all(header.as_bytes()).expect("written");
    };
    add("b/capture.json".into(), head.len() as u64, &mut encoder);
    encoder.write_all(&head).expect("written");
    encoder
        .write_all(&vec![0; 512 - head.len() % 512])
        .expect("written");
    let zeros = vec![0; 1 << 20];
    for n in 0..12 {
        add(format!("b/frames/{n:06}.json"), 100 << 20, &mut encoder);
        for _ in 0..100 {
            encoder.write_all(&zeros).expect("written");
        }
    }
    encoder.finish().expect("packed");
    let packed = fs::metadata(&path).expect("it").len();
    assert!(packed < 1 << 20, "{packed}");
    let error = Bundle::open(&path).expect_err("a bomb");
    assert!(error.to_string().contains("unpacks to"), "{error}");
    // One file of a size that none of ours has, however it is packed.
    let path = place.path().join("large.tar.zst");
    let mut encoder =
        zstd::Encoder::new(fs::File::create(&path).expect("a file"), 1).expect("zstd");
    add("b/capture.json".into(), 300 << 20, &mut encoder);
    encoder.finish().expect("packed");
    let error = Bundle::open(&path).expect_err("too large");
    assert!(error.to_string().contains("larger than any"), "{error}");
}

#[test]
fn another_version_and_other_files_are_told_apart() {
    let place = tempfile::tempdir().expect("a folder");
    let mut newer = head(&captures()[0]);
    newer.format = "stanch.bundle/2".into();
    let bytes = serde_json::to_vec(&newer).expect("JSON");
    let entry = |bytes| Entry {
        path: "b/capture.json",
        kind: tar::EntryType::Regular,
        link: None,
        bytes,
    };
    let path = archive(place.path(), &[entry(&bytes)]);
    let error = Bundle::open(&path).expect_err("another version");
    assert!(matches!(error, BundleError::OtherVersion { .. }), "{error}");
    let path = archive(place.path(), &[entry(b"{\"format\": \"else\"}")]);
    assert!(matches!(
        Bundle::open(&path),
        Err(BundleError::NotABundle(_))
    ));
    let cut = fs::read(&path).expect("bytes");
    fs::write(&path, &cut[..cut.len() - 9]).expect("written");
    assert!(matches!(
        Bundle::open(&path),
        Err(BundleError::Damaged { .. })
    ));
    fs::write(&path, "no bundle at all").expect("written");
    assert!(matches!(Bundle::open(&path), Err(BundleError::Snapshot(_))));
    assert!(matches!(
        Bundle::open(place.path()),
        Err(BundleError::NotABundle(_))
    ));
    // A link in a folder leads elsewhere.
    let root = place.path().join("one");
    ended(&mut written(&root));
    std::os::unix::fs::symlink("/etc/passwd", root.join("frames/000099-x.json")).expect("a link");
    assert!(matches!(
        Bundle::open(&root),
        Err(BundleError::Refused { .. })
    ));
}

#[test]
fn what_was_changed_after_sealing_is_found() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    ended(&mut written(&root));
    let sealed = place.path().join("one.tar.zst");
    bundle::seal(&root, &sealed, &nothing(), &[]).expect("sealed");
    let decoder = zstd::Decoder::new(fs::File::open(&sealed).expect("it")).expect("zstd");
    tar::Archive::new(decoder)
        .unpack(place.path())
        .expect("unpacked");
    let gaps = root.join("gaps.jsonl");
    let text = fs::read_to_string(&gaps)
        .expect("text")
        .replace("10 s", "20 s");
    fs::write(&gaps, text).expect("written");
    fs::remove_file(root.join("end.json")).expect("removed");
    let bundle = Bundle::open_to_verify(&root).expect("a bundle");
    let checked = bundle::verify(&bundle, &nothing()).expect("read");
    assert_eq!(
        checked.faults,
        ["end.json isn't there any more", "gaps.jsonl was changed"]
    );
}

/// The place of a secret in a snapshot, with the redactor switched off.
fn planted(place: Place, text: &str) -> Snapshot {
    let mut snapshot = captures()
        .into_iter()
        .find(|snapshot| !snapshot.activity.rows().is_empty())
        .expect("one with sessions");
    let session = &mut snapshot.activity.get_mut().expect("sessions")[0];
    if place.is_statement() {
        session.query = Some(text.into());
    } else {
        session.application_name = Some(text.into());
    }
    snapshot
}

/// A secret of that kind in a frame of which nothing else is to be learned.
fn planted_in_rows(place: Place, text: &str) -> Snapshot {
    let mut snapshot = planted(place, "");
    snapshot.activity.get_mut().expect("sessions").clear();
    let column = if place.is_statement() {
        "query"
    } else {
        "application_name"
    };
    let rows = QueryRows {
        columns: vec!["pid".into(), column.into()],
        rows: vec![vec![7.into(), "".into()], vec![8.into(), text.into()]],
    };
    let rows = Section::Collected(rows);
    snapshot.queries.insert("activity".into(), rows);
    snapshot
}

#[test]
fn the_gate_finds_each_secret_when_nothing_was_redacted() {
    // In the sessions, and in the rows of a query as they came: each in a frame of its own.
    for planted in [planted, planted_in_rows] {
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("open");
        let mut folder: Option<Folder> = None;
        for secret in PLANTED {
            let snapshot = planted(secret.place, secret.text);
            let folder = folder.get_or_insert_with(|| {
                Folder::create(root.clone(), &head(&snapshot), MOST).expect("a folder")
            });
            assert_eq!(folder.frame(&snapshot).expect("written"), Kept::Written);
        }
        ended(&mut folder.expect("a folder"));
        let to = place.path().join("x.tar.zst");
        let error = bundle::seal(&root, &to, &nothing(), &[]).err();
        let Some(SealError::Secrets(hits)) = error else {
            panic!("sealed");
        };
        assert!(!to.exists());
        let bundle = Bundle::open(&root).expect("a bundle");
        for (frame, secret) in bundle.frames().iter().zip(PLANTED) {
            let of_it: Vec<_> = hits.iter().filter(|hit| hit.file == frame.path).collect();
            assert!(!of_it.is_empty(), "{}: {}", secret.name, secret.text);
            assert!(of_it.iter().all(|hit| hit.line > 0), "{of_it:?}");
            for hit in of_it {
                let told = hit.to_string();
                assert!(!told.contains(secret.secret), "{}: {told}", secret.name);
            }
        }
    }
}

#[test]
fn no_secret_is_in_a_sealed_bundle() {
    let place = tempfile::tempdir().expect("a folder");
    let all = captures();
    let root = place.path().join("one");
    let mut folder = Folder::create(root.clone(), &head(&all[0]), MOST).expect("a folder");
    for secret in PLANTED {
        let mut snapshot = planted(secret.place, secret.text);
        // Of the others there is nothing to be learned.
        snapshot.activity.get_mut().expect("sessions").truncate(1);
        bundle::redact(&mut snapshot);
        folder.frame(&snapshot).expect("written");
    }
    ended(&mut folder);
    let to = place.path().join("one.tar.zst");
    bundle::seal(&root, &to, &nothing(), &[]).expect("sealed");
    let mut text = String::new();
    let bundle = Bundle::open(&to).expect("a bundle");
    bundle
        .each_frame(&mut |_, snapshot| {
            text.push_str(
                &serde_json::to_string_pretty(&snapshot.expect("a frame").activity).expect("JSON"),
            );
        })
        .expect("read");
    let all = PLANTED.iter().map(|secret| (secret.name, secret.secret));
    let known = KnownSecrets::new(all);
    for line in text.lines() {
        assert_eq!(known.find(line), None, "{line}");
    }
}

#[test]
fn what_this_process_knows_is_never_sealed() {
    let place = tempfile::tempdir().expect("a folder");
    let snapshot = planted(Place::ApplicationName, "web-blue-harbour");
    let known = KnownSecrets::new([("PGPASSWORD", "blue-harbour")]);
    let root = place.path().join("one");
    let mut folder = Folder::create(root.clone(), &head(&snapshot), MOST).expect("a folder");
    folder.frame(&snapshot).expect("written");
    ended(&mut folder);
    let to = place.path().join("x.tar.zst");
    let allowed = [("known-secret (PGPASSWORD)".to_owned(), "because".to_owned())];
    for allow in [&[][..], &allowed] {
        let error = bundle::seal(&root, &to, &known, allow).expect_err("refused");
        let told = error.to_string();
        assert!(told.contains("known-secret (PGPASSWORD)"), "{told}");
        assert!(!told.contains("blue-harbour"), "{told}");
    }
}

/// What a process knows is taken out before it is written, wherever it stands, and what is left is sealed.
#[test]
fn what_this_process_knows_is_left_out() {
    let place = tempfile::tempdir().expect("a folder");
    let mut snapshot = planted_in_rows(Place::Statement, "select blue_harbour from t");
    let secret = "blue_harbour";
    let session = captures()
        .into_iter()
        .flat_map(|snapshot| snapshot.activity.rows().to_vec());
    let mut session = session.into_iter().next().expect("a session");
    session.query = Some(format!("select {secret} from t"));
    session.database = Some(secret.into());
    snapshot.activity = Section::Collected(vec![session]);
    let database = &mut snapshot.databases.get_mut().expect("databases")[0];
    database.name = secret.into();
    let known = KnownSecrets::new([("PGPASSWORD", secret)]);
    bundle::leave_out_known(&mut snapshot, &known);
    bundle::redact(&mut snapshot);
    let root = place.path().join("one");
    let mut folder = Folder::create(root.clone(), &head(&snapshot), MOST).expect("a folder");
    folder.frame(&snapshot).expect("written");
    ended(&mut folder);
    bundle::seal(&root, &place.path().join("x.tar.zst"), &known, &[]).expect("sealed");
    assert!(
        !serde_json::to_string(&snapshot)
            .expect("JSON")
            .contains(secret)
    );
    // A word of ours that is somebody's password stands in every frame.
    let known = KnownSecrets::new([("PGPASSWORD", "relations")]);
    bundle::seal(&root, &place.path().join("y.tar.zst"), &known, &[]).expect("sealed");
}

/// Rows that no redactor of ours has left so are refused, however they were put there.
#[test]
fn rows_that_were_edited_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let kept = |query: &str, columns: &[&str], row: Vec<serde_json::Value>| {
        let mut snapshot = planted_in_rows(Place::Statement, "select ?");
        let rows = QueryRows {
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: vec![row],
        };
        snapshot
            .queries
            .insert(query.into(), Section::Collected(rows));
        snapshot
    };
    let text = "select 'hunter2'";
    let cases = [
        kept("activity", &["pid", "x"], vec![7.into(), text.into()]),
        kept("mine", &["x"], vec![text.into()]),
        kept("activity", &["pid"], vec![7.into(), text.into()]),
        kept("activity", &["query"], vec![serde_json::json!([text])]),
        kept(
            "activity",
            &["pid", "query"],
            vec![serde_json::json!({"a": 1}), text.into()],
        ),
        kept(
            "overrides",
            &["config"],
            vec!["app.signing=hunter2Value".into()],
        ),
    ];
    for (n, snapshot) in cases.iter().enumerate() {
        let root = place.path().join(n.to_string());
        let mut folder = Folder::create(root.clone(), &head(snapshot), MOST).expect("a folder");
        folder.frame(snapshot).expect("written");
        ended(&mut folder);
        let sealed = bundle::seal(&root, &place.path().join("x"), &nothing(), &[]);
        assert!(
            matches!(sealed, Err(SealError::Secrets(_))),
            "{n}: {sealed:?}"
        );
    }
}

#[test]
fn a_rule_is_passed_over_for_a_reason() {
    let place = tempfile::tempdir().expect("a folder");
    let snapshot = planted(Place::ApplicationName, "mail for ops@example.com");
    let root = place.path().join("one");
    let mut folder = Folder::create(root.clone(), &head(&snapshot), MOST).expect("a folder");
    folder.frame(&snapshot).expect("written");
    ended(&mut folder);
    let to = place.path().join("x.tar.zst");
    assert!(bundle::seal(&root, &to, &nothing(), &[]).is_err());
    let allowed = [("email".to_owned(), "a public list".to_owned())];
    let sealed = bundle::seal(&root, &to, &nothing(), &allowed).expect("sealed");
    let allowed = &sealed.manifest.allowed[0];
    assert_eq!((allowed.rule.as_str(), allowed.places), ("email", 1));
}

/// The gate reads a field a line: whatever is written otherwise isn't looked at, and so isn't sealed.
#[test]
fn a_file_that_was_written_otherwise_is_not_sealed() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    ended(&mut written(&root));
    let frame = Bundle::open(&root).expect("a bundle").frames()[0].clone();
    let path = root.join(frame.path);
    let value: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).expect("a frame")).expect("JSON");
    fs::write(&path, value.to_string()).expect("written");
    let to = place.path().join("x.tar.zst");
    let error = bundle::seal(&root, &to, &nothing(), &[]).expect_err("refused");
    assert!(error.to_string().contains(":0: not-as-written"), "{error}");
}

/// As one that was changed: it is no evidence.
#[test]
fn a_frame_that_was_added_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let (_, sealed, manifest) = sealed_one(place.path());
    let mut files = vec![("one/manifest.json".to_owned(), manifest)];
    let bundle = Bundle::open(&sealed).expect("a bundle");
    let last = bundle.frames().last().expect("a frame").clone();
    let forged = last.path.replacen("/0", "/9", 1);
    bundle
        .each(&mut |name, bytes| {
            files.push((format!("one/{name}"), bytes.to_vec()));
            if name == last.path {
                files.push((format!("one/{forged}"), bytes.to_vec()));
            }
            Ok(())
        })
        .expect("read");
    let changed = packed(place.path(), &files);
    let refused = |error: BundleError| {
        let text = error.to_string();
        assert!(text.contains("wasn't there when it was sealed"), "{text}");
    };
    refused(load(&changed, When::Last).map(drop).expect_err("forged"));
    load(&changed, When::First).expect("as it was sealed");
    let bundle = Bundle::open(&changed).expect("a bundle");
    refused(bundle.read(&forged).expect_err("forged"));
    let mut faults = 0;
    let mut each = |_: &_, frame: Result<Snapshot, BundleError>| {
        faults += usize::from(frame.is_err());
    };
    bundle.each_frame(&mut each).expect("read");
    assert_eq!(faults, 1);
    let frames: Vec<_> = bundle.into_frames().expect("read").collect();
    assert_eq!(frames.iter().filter(|(_, read)| read.is_err()).count(), 1);
}

/// A time of the day that two days have is neither's.
#[test]
fn a_time_of_several_days_is_told() {
    let place = tempfile::tempdir().expect("a folder");
    let mut snapshot = planted(Place::ApplicationName, "x");
    let root = place.path().join("one");
    let mut folder = Folder::create(root.clone(), &head(&snapshot), MOST).expect("a folder");
    for at in [
        "2026-12-01T12:00:00.5Z",
        "2026-12-01T23:59:56.5Z",
        "2026-12-02T11:00:00.5Z",
        "2026-12-02T23:59:56.5Z",
    ] {
        snapshot.taken_at = serde_json::from_value(at.into()).expect("a time");
        folder.frame(&snapshot).expect("written");
    }
    ended(&mut folder);
    // As the command line reads it: to the end of what is said.
    let end = "23:59:56.999999".parse().expect("a time");
    let error = load(&root, When::Clock(end))
        .map(drop)
        .expect_err("two days have it");
    let text = error.to_string();
    assert!(
        text.contains("--at 2026-12-01T23:59:56Z") && text.contains("--at 2026-12-02T23:59:56Z"),
        "{text}"
    );
    let once = When::Clock("11:00:59.999999".parse().expect("a time"));
    assert_eq!(load(&root, once).expect("one day has it").number, 3);
    let show = |path: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_stanch"))
            .args(["bundle", "show"])
            .arg(path)
            .output()
            .expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let one = place.path().join("one.json");
    bundle::write(&one, &snapshot).expect("written");
    let single = show(&one);
    assert!(single.contains("(one saved snapshot)"), "{single}");
    let shown = show(&root);
    for line in ["2026-12-01T23:59:56Z", "2026-12-02T11:00:00Z"] {
        assert!(shown.contains(line), "{shown}");
    }
}

/// Whatever stands behind the end, and a manifest that was taken out, are found by whoever opens it.
#[test]
fn what_was_added_or_taken_out_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    ended(&mut written(&root));
    let sealed = place.path().join("one.tar.zst");
    bundle::seal(&root, &sealed, &nothing(), &[]).expect("sealed");
    let bytes = fs::read(&sealed).expect("bytes");
    let twice = [bytes.clone(), bytes.clone()].concat();
    for longer in [twice, [&bytes[..], b"more"].concat()] {
        fs::write(&sealed, longer).expect("written");
        let error = Bundle::open(&sealed).expect_err("more than it was");
        let refused = matches!(
            error,
            BundleError::Refused { .. } | BundleError::Damaged { .. }
        );
        assert!(refused, "{error}");
    }
    let head = fs::read(root.join("capture.json")).expect("bytes");
    let without = archive(
        place.path(),
        &[Entry {
            path: "one/capture.json",
            kind: tar::EntryType::Regular,
            link: None,
            bytes: &head,
        }],
    );
    let error = Bundle::open(&without).expect_err("no manifest");
    assert!(error.to_string().contains("no manifest.json"), "{error}");
}

/// What a sealed bundle says of itself (whose it is, how it ended, what is missing) is as it was sealed, for every reader.
#[test]
fn what_it_says_of_itself_was_not_changed() {
    let place = tempfile::tempdir().expect("a folder");
    let (_, sealed, manifest) = sealed_one(place.path());
    let mut files = vec![("manifest.json".to_owned(), manifest)];
    let bundle = Bundle::open(&sealed).expect("a bundle");
    bundle
        .each(&mut |name, bytes| {
            files.push((name.to_owned(), bytes.to_vec()));
            Ok(())
        })
        .expect("read");
    let changed = |of: &str, how: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
        let kept: Vec<(String, Vec<u8>)> = files
            .iter()
            .filter_map(|(name, bytes)| {
                let bytes = if name == of {
                    how(bytes)?
                } else {
                    bytes.clone()
                };
                Some((format!("one/{name}"), bytes))
            })
            .collect();
        packed(place.path(), &kept)
    };
    let space = |bytes: &[u8]| Some([bytes, b" \n"].concat());
    Bundle::open(&changed("none", &space)).expect("as it was sealed");
    for (of, how, what) in [
        (
            "capture.json",
            &space as &dyn Fn(&[u8]) -> Option<Vec<u8>>,
            "was changed after",
        ),
        ("end.json", &space, "was changed after"),
        ("end.json", &|_: &[u8]| None, "isn't there any more"),
    ] {
        let path = changed(of, how);
        let error = Bundle::open(&path).expect_err(of).to_string();
        assert!(error.contains(of) && error.contains(what), "{error}");
        // Who verifies is told of it all the same.
        let bundle = Bundle::open_to_verify(&path).expect("to be verified");
        let checked = bundle::verify(&bundle, &nothing()).expect("read");
        assert_eq!(checked.faults.len(), 1, "{:?}", checked.faults);
    }
}
