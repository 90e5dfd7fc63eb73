//! A frame that is damaged costs itself alone: the bundle around it is read, compared, told of and sealed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use stanch::bundle::{self, Bundle, Gap};
use stanch::model::Timestamp;

use crate::bundle::{captures, ended, head, nothing, sealed_one, written};

fn stanch(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(args)
        .env_clear()
        .current_dir(folder)
        .output()
        .expect("run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

/// Half of a frame is there; its number.
fn cut(root: &Path, n: usize) -> usize {
    let frame = Bundle::open(root).expect("a bundle").frames()[n].clone();
    let path = root.join(&frame.path);
    let bytes = fs::read(&path).expect("a frame");
    fs::write(path, &bytes[..bytes.len() / 2]).expect("written");
    frame.number
}

#[test]
fn a_damaged_frame_is_a_gap_of_its_folder() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    drop(written(&root));
    let last = cut(&root, captures().len() - 1);
    let middle = cut(&root, 1);
    let here = |args: &[&str]| stanch(place.path(), args);
    let (code, text, errors) = here(&["report", "one", "-o", "md"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("**Partial**"), "{text}");
    for number in [middle, last] {
        assert!(
            text.contains(&format!("frame {number}: damaged at line")),
            "{text}"
        );
    }
    let readable = (last - 1).to_string();
    let (_, shown, _) = here(&["triage", "--from", "one", "--at", &readable, "--json"]);
    let (_, of_last, errors) = here(&["triage", "--from", "one", "--json"]);
    assert_eq!(shown, of_last);
    let told = format!("one: frame {last}: damaged at line");
    assert!(errors.contains(&told), "{errors}");
    // Whoever asks for that very one is told so.
    let (code, ..) = here(&["triage", "--from", "one", "--at", &last.to_string()]);
    assert_eq!(code, Some(65));
    let (code, _, errors) = here(&["bundle", "diff", "one"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains(&told), "{errors}");
}

#[test]
fn a_damaged_frame_is_left_out_of_what_is_sealed() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    ended(&mut written(&root));
    let number = cut(&root, 1);
    let checked = bundle::verify(&Bundle::open(&root).expect("a bundle"), &nothing());
    let checked = checked.expect("read");
    assert_eq!((checked.faults.len(), checked.hits.len()), (1, 0));
    assert!(checked.faults[0].contains("damaged at line"), "{checked:?}");
    let here = |args: &[&str]| stanch(place.path(), args);
    let (code, _, errors) = here(&["bundle", "seal", "one"]);
    assert_eq!(code, Some(3), "{errors}");
    let told = format!("frame {number}: damaged at line");
    assert!(
        errors.contains(&told) && errors.contains("left out of it"),
        "{errors}"
    );
    assert!(!errors.contains("not-as-written"), "{errors}");
    let sealed = Bundle::open(&place.path().join("one.tar.zst")).expect("a bundle");
    let counted = (sealed.frames().len(), sealed.gaps().len());
    assert_eq!(counted, (captures().len() - 1, 2));
    let manifest = sealed.manifest().expect("sealed");
    assert_eq!((manifest.frames, manifest.gaps), counted);
    assert_eq!(sealed.gaps()[1].what, format!("frame {number}"));
    let (code, text, _) = here(&["bundle", "verify", "one.tar.zst"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text, errors) = here(&["report", "one.tar.zst", "-o", "md"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains(&told), "{text}");
}

/// Nobody damages a sealed one but who changes it.
#[test]
fn a_frame_that_was_cut_after_sealing_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let (root, _, manifest) = sealed_one(place.path());
    fs::write(root.join("manifest.json"), manifest).expect("written");
    cut(&root, 1);
    let (code, _, errors) = stanch(place.path(), &["report", "one", "-o", "md"]);
    assert_eq!(code, Some(65));
    assert!(
        errors.contains("was changed after it was sealed"),
        "{errors}"
    );
}

/// What a full disk loses is told once at first, and how often again as soon as there is room, or at the end.
#[test]
fn rounds_that_are_lost_are_counted() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    let mut folder = written(&root);
    let frame = captures()[0].clone();
    let at = |seconds| Timestamp::new(frame.taken_at.utc() + chrono::TimeDelta::seconds(seconds));
    let lose = |folder: &mut bundle::Folder, second| {
        let why = "not written: no storage space".to_owned();
        let (first, told) = folder.lost(Gap::new(at(second), "frame".into(), why));
        told.expect("written");
        first
    };
    let first: Vec<bool> = (1..=20).map(|second| lose(&mut folder, second)).collect();
    assert_eq!(first.iter().filter(|first| **first).count(), 1);
    // Nothing is kept of each.
    assert_eq!(folder.gaps().len(), 2);
    folder.frame(&frame).expect("written");
    let told = |folder: &bundle::Folder, n: usize| {
        let gap = &folder.gaps()[n];
        (gap.at, gap.until, gap.times)
    };
    assert_eq!(told(&folder, 2), (at(2), Some(at(20)), 19));
    assert!(lose(&mut folder, 30) && !lose(&mut folder, 31));
    ended(&mut folder);
    assert_eq!(told(&folder, 4), (at(31), None, 1));
    let here = |args: &[&str]| stanch(place.path(), args);
    let (_, text, _) = here(&["bundle", "show", "one"]);
    assert!(text.contains("frame (22 times)"), "{text}");
    let (code, _, errors) = here(&["bundle", "seal", "one"]);
    assert_eq!(code, Some(0), "{errors}");
    let sealed = Bundle::open(&place.path().join("one.tar.zst")).expect("a bundle");
    assert_eq!(sealed.manifest().expect("sealed").gaps, 23);
    let (code, text, errors) = here(&["report", "one.tar.zst", "-o", "md"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("23 captures failed"), "{text}");
}

/// A capture reads its logs at its end: one that was cut off says which it didn't.
#[test]
fn a_log_that_was_never_read_is_told() {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("one");
    let frame = captures()[0].clone();
    let logs = ["/var/log/a.log", "/var/log/b.log"].map(str::to_owned);
    let asked = bundle::Head {
        logs: logs.to_vec(),
        ..head(&frame)
    };
    let mut folder = bundle::Folder::create(root.clone(), &asked, 1 << 30).expect("a folder");
    folder.frame(&frame).expect("written");
    let told = |path: &Path| {
        let bundle = Bundle::open(path).expect("a bundle");
        let whys = bundle.gaps().iter().map(|gap| gap.why.clone());
        whys.collect::<Vec<String>>()
    };
    // It is still written.
    assert_eq!(told(&root), [""; 0]);
    folder.log(&Vec::<u8>::new()).expect("written");
    drop(folder);
    let why =
        "/var/log/b.log: not read: the capture was cut off before its end, when it would have been";
    assert_eq!(told(&root), [why]);
    let here = |args: &[&str]| stanch(place.path(), args);
    let (_, text, _) = here(&["bundle", "show", "one", "--json"]);
    assert!(text.contains(why), "{text}");
    let (_, text, errors) = here(&["report", "one", "-o", "md"]);
    assert!(
        text.contains(&format!("- server log: `{why}`")),
        "{text}{errors}"
    );
    let (code, _, errors) = here(&["bundle", "seal", "one"]);
    assert_eq!(code, Some(3), "{errors}");
    assert_eq!(told(&place.path().join("one.tar.zst")), [why]);
    // One that came to its end has told of each what became of it.
    let root = place.path().join("two");
    let mut folder = bundle::Folder::create(root.clone(), &asked, 1 << 30).expect("a folder");
    ended(&mut folder);
    assert_eq!(told(&root), [""; 0]);
}
