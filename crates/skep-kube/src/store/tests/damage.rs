//! A folder that cannot be opened says why and stays exactly as it was.

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;

const DATA: &str = "store.redb";
const OBJECTS: usize = 30;
/// How many places of the data file to damage, spread over the ones that are not zero, and how many in each page.
const DAMAGED_BYTES: usize = 60;
const DAMAGED_IN_A_PAGE: usize = 3;
const PAGE: usize = 4096;

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

/// Places all over the file, and where they matter most. Other ones each time the seed is another.
fn places(whole: &[u8], seed: u64) -> Vec<usize> {
    let used: Vec<usize> = (0..whole.len()).filter(|place| whole[*place] != 0).collect();
    let spread = used.iter().copied().step_by(used.len() / DAMAGED_BYTES);
    let header = (0..320).step_by(11).chain(9..24);
    let in_pages = used.chunk_by(|one, next| one / PAGE == next / PAGE).enumerate().flat_map(|(number, page)| {
        let draw = move |count| usize::try_from(mixed(seed, number, count) % page.len() as u64).unwrap();
        (0..DAMAGED_IN_A_PAGE).map(move |count| page[draw(count)])
    });
    header.chain(spread).chain(in_pages).collect()
}

/// A number that depends on all three and looks like it depends on none.
fn mixed(seed: u64, number: usize, count: usize) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (seed, number, count).hash(&mut hasher);
    hasher.finish()
}

/// A flipped byte is found, or it is in a place that nothing is read from. It never changes what the store holds.
/// Returns why it was found, and how often it had no effect.
async fn flips_are_harmless_or_refused(folder: &Path, seed: u64) -> (Vec<String>, usize) {
    let path = folder.join(DATA);
    let whole = fs::read(&path).unwrap();
    let (mut found, mut harmless) = (Vec::new(), 0);
    for (count, place) in places(&whole, seed).into_iter().enumerate() {
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
                assert_eq!(holds_what_was_written(&store), OBJECTS, "seed {seed}, {place}");
                assert!(fs::read(&path).unwrap() == damaged, "{place}: the file was changed by looking at it");
                // It must also be fit for writing.
                create(&store, &pod("a", "one more"), "a").await;
                store.close().await;
                let store = on_disk(folder).unwrap();
                assert_eq!(store.list(&Selection::all(PODS)).records.len(), OBJECTS + 1, "{place}");
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
    let (found, harmless) = flips_are_harmless_or_refused(folder.path(), 1).await;
    println!("closed: {} flips refused, {harmless} without effect", found.len());
    assert!(!found.is_empty());
}

#[tokio::test]
async fn a_flipped_byte_after_a_crash_loses_nothing_silently() {
    let folder = interrupted().await;
    let (found, harmless) = flips_are_harmless_or_refused(folder.path(), 2).await;
    println!("interrupted: {} flips refused, {harmless} without effect", found.len());
    // Where redb went back to an older transaction, that was noticed.
    let lost = "is damaged: what was written last cannot be read (it ends with revision 30, and 31 was acknowledged)";
    assert!(found.iter().any(|error| error.ends_with(lost)), "{found:?}");
}

/// A crash in the middle of a write leaves a transaction that nobody was told of.
#[tokio::test]
async fn what_was_cut_short_before_it_was_acknowledged_is_taken_back() {
    let original = tempfile::tempdir().unwrap();
    let store = on_disk(original.path()).unwrap();
    fill(&store).await;
    let before = contents(original.path());
    create(&store, &pod("a", "999"), "never acknowledged").await;
    let after = contents(original.path());
    store.close().await;
    let (before, mut after) = (before[Path::new(DATA)].clone(), after[Path::new(DATA)].clone());
    // The header is of the new transaction; the note and one of the pages are not there yet.
    let differs =
        |page: &usize| before.get(page * PAGE..(page + 1) * PAGE) != after.get(page * PAGE..(page + 1) * PAGE);
    let page = (1..after.len() / PAGE).find(differs).unwrap();
    after[page * PAGE..(page + 1) * PAGE].fill(0);
    after[320..PAGE].copy_from_slice(&before[320..PAGE]);
    let folder = tempfile::tempdir().unwrap();
    fs::copy(original.path().join("format"), folder.path().join("format")).unwrap();
    fs::write(folder.path().join(DATA), &after).unwrap();
    let store = on_disk(folder.path()).unwrap();
    assert_eq!(holds_what_was_written(&store), OBJECTS);
    store.close().await;
}

#[tokio::test]
async fn a_store_that_is_only_read_stays_as_it_is() {
    for folder in [closed().await, interrupted().await] {
        let before = contents(folder.path());
        let store = on_disk(folder.path()).unwrap();
        assert_eq!(holds_what_was_written(&store), OBJECTS);
        store.close().await;
        assert!(contents(folder.path()) == before);
    }
}

#[tokio::test]
async fn a_store_that_must_be_there_is_missed() {
    let must_exist = |folder: &Path| {
        let options = Options { durability: Durability::None, must_exist: true, ..Options::default() };
        Store::open_with(Some(folder), options)
    };
    let folder = closed().await;
    must_exist(folder.path()).unwrap().close().await;
    let empty = tempfile::tempdir().unwrap();
    for missing in [empty.path().to_owned(), empty.path().join("store")] {
        let error = must_exist(&missing).unwrap_err();
        assert!(matches!(error, OpenError::Missing { .. }), "{error}");
        assert!(contents(empty.path()).is_empty());
    }
}
