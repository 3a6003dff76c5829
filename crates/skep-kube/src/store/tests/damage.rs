//! A folder that cannot be opened says why and stays exactly as it was.

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const DATA: &str = "store.redb";
const OBJECTS: usize = 30;
/// How many bytes of the data file to damage, spread over the ones that are not zero.
const DAMAGED_BYTES: usize = 60;

/// A folder with a store in it that was closed.
async fn closed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(folder.path()).unwrap();
    fill(&store).await;
    store.close().await;
    folder
}

async fn fill(store: &Store) {
    for number in 0..OBJECTS {
        create(store, &pod("a", &format!("{number:03}")), &format!("{number} {}", "x".repeat(1000))).await;
    }
}

/// A copy of a folder whose store is still open, as a crash would leave it.
async fn interrupted() -> tempfile::TempDir {
    let original = tempfile::tempdir().unwrap();
    let store = on_disk(original.path()).unwrap();
    fill(&store).await;
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in contents(original.path()) {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    store.close().await;
    folder
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into(), fs::read(entry.path()).unwrap())).collect()
}

/// Opens the folder, which must fail and change nothing.
fn refused(folder: &Path) -> OpenError {
    let before = contents(folder);
    let error = on_disk(folder).expect_err("the folder should be refused");
    assert!(contents(folder) == before, "the folder was changed: {error}");
    assert!(error.to_string().contains(folder.to_str().unwrap()), "{error}");
    assert!(!error.hint().is_empty());
    error
}

#[tokio::test]
async fn a_data_file_that_is_cut_off_is_refused() {
    for folder in [closed().await, interrupted().await] {
        let path = folder.path().join(DATA);
        let whole = fs::read(&path).unwrap();
        // Behind the last used page there may be free ones: cut where there must be data.
        for length in [0, 1, 9, 64, 319, 320, 4095, 4096, 8192, 20_000, 40_960] {
            fs::write(&path, &whole[..length]).unwrap();
            let error = refused(folder.path());
            assert!(matches!(error, OpenError::Damaged { .. }), "{length}: {error}");
        }
    }
}

#[tokio::test]
async fn a_data_file_of_something_else_is_refused() {
    let folder = closed().await;
    let path = folder.path().join(DATA);
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] = b'R';
    for other in [bytes, b"SQLite format 3\0 and more".to_vec(), vec![0; 100_000], vec![0xff; 100_000]] {
        fs::write(&path, other).unwrap();
        let error = refused(folder.path());
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(refused(folder.path()), OpenError::Damaged { .. }));
}

#[tokio::test]
async fn a_newer_folder_is_refused() {
    let folder = closed().await;
    fs::write(folder.path().join("format"), "skep-kube store 2\n").unwrap();
    let error = refused(folder.path());
    assert!(matches!(error, OpenError::Newer { found: 2, supported: FORMAT_VERSION, .. }), "{error}");
    assert_eq!(error.hint(), "use the newer version, or another folder");
}

#[tokio::test]
async fn a_damaged_marker_is_refused() {
    let folder = closed().await;
    for text in ["", "skep-kube store", "skep-kube store \n", "skep-kube store one\n", "skep-kube store 0\n", "yaml: 1"]
    {
        fs::write(folder.path().join("format"), text).unwrap();
        let error = refused(folder.path());
        assert!(matches!(error, OpenError::Damaged { .. } | OpenError::Foreign { .. }), "{error}");
    }
    fs::remove_file(folder.path().join("format")).unwrap();
    assert!(matches!(refused(folder.path()), OpenError::Foreign { .. }));
}

#[tokio::test]
async fn a_folder_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
    let error = refused(folder.path());
    assert_eq!(error.to_string(), format!("{} is not a data folder: it holds \"thesis.tex\"", folder.path().display()));
    let file = folder.path().join("thesis.tex");
    let error = on_disk(&file).unwrap_err();
    assert_eq!(error.to_string(), format!("{} is not a folder", file.display()));
}

/// A flipped byte is found, or it is in a place that nothing is read from. It never changes what the store holds.
/// Returns why it was found, and how often it had no effect.
async fn flips_are_harmless_or_refused(folder: &Path, may_lose_the_last: bool) -> (Vec<String>, usize) {
    let path = folder.join(DATA);
    let original = contents(folder);
    let whole = &original[Path::new(DATA)];
    let used: Vec<usize> = (0..whole.len()).filter(|place| whole[*place] != 0).collect();
    let spread = used.iter().copied().step_by(used.len() / DAMAGED_BYTES);
    let header = (0..320).step_by(11).chain(9..24);
    let (mut found, mut harmless) = (Vec::new(), 0);
    for (count, place) in header.chain(spread).enumerate() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1 << (count % 8);
        fs::write(&path, &damaged).unwrap();
        match on_disk(folder) {
            Err(error) => {
                assert!(matches!(error, OpenError::Damaged { .. }), "{place}: {error}");
                assert!(fs::read(&path).unwrap() == damaged, "{place}: the file was changed");
                found.push(error.to_string());
            }
            Ok(store) => {
                let known = holds_what_was_written(&store);
                assert!(known == OBJECTS || may_lose_the_last && known == OBJECTS - 1, "{place}: {known} objects");
                // It must also be fit for writing.
                create(&store, &pod("a", "one more"), "a").await;
                store.close().await;
                let store = on_disk(folder).unwrap();
                assert_eq!(store.list(&Selection::all(PODS)).records.len(), known + 1, "{place}");
                store.close().await;
                harmless += 1;
            }
        }
    }
    (found, harmless)
}

fn holds_what_was_written(store: &Store) -> usize {
    let page = store.list(&Selection::all(PODS));
    assert_eq!(page.revision, page.records.len() as u64 + 1);
    for (number, record) in page.records.iter().enumerate() {
        assert!(record.object == format!("{number} {}", "x".repeat(1000)).as_str().into());
    }
    page.records.len()
}

#[tokio::test]
async fn a_flipped_byte_in_a_closed_store_loses_nothing_silently() {
    let folder = closed().await;
    let (found, harmless) = flips_are_harmless_or_refused(folder.path(), false).await;
    println!("closed: {} flips refused, {harmless} without effect", found.len());
    // Where redb would have gone back to an older transaction, it was stopped.
    assert!(found.iter().any(|error| error.ends_with("is damaged: a checksum does not match")), "{found:?}");
}

/// After a crash the newest transaction cannot be told from one that was cut short, so damage in exactly that one takes
/// it back. Damage anywhere else is found.
#[tokio::test]
async fn a_flipped_byte_after_a_crash_loses_at_most_the_last_transaction() {
    let folder = interrupted().await;
    let (found, harmless) = flips_are_harmless_or_refused(folder.path(), true).await;
    println!("interrupted: {} flips refused, {harmless} without effect", found.len());
    assert!(!found.is_empty());
}
