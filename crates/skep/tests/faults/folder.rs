//! What the data folder holds.

use std::fs;

use crate::load::start;

#[tokio::test]
async fn keys_are_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _server = start(folder.path()).await;
    let mut names: Vec<String> = fs::read_dir(folder.path().join("data/pki"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["admin.crt", "admin.key", "ca.crt", "ca.key", "server.crt", "server.key", "service-accounts.key"];
    assert_eq!(names, expected);
}
