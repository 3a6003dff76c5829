//! Several starts at once on one folder: one of them wins, and the others say so.

use std::fs;
use std::process::Stdio;

use super::here::{Here, Said};

#[test]
fn one_of_several_starts_wins_and_has_the_log() {
    let here = Here::new();
    let start = |_| {
        let mut command = here.command(&["up", "--detach", "--no-demo", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    let said: Vec<Said> = children.into_iter().map(|child| Said::new(child.wait_with_output())).collect();
    let (won, lost): (Vec<&Said>, Vec<&Said>) = said.iter().partition(|said| said.code == Some(0));
    assert_eq!((won.len(), lost.len()), (1, 3), "{said:#?}");
    assert!(!won[0].stderr.contains("error:") && won[0].stderr.contains("serving https://"), "{said:#?}");
    let process = won[0].stderr.split("as process ").nth(1).unwrap().split(',').next().unwrap();
    for said in lost {
        let data = here.data();
        let told = format!("already (process {process})\nhint: skep status --data-dir {} shows", data.display());
        assert!(said.code == Some(1) && said.stderr.contains(&told), "{process}: {said:?}");
    }
    let log = fs::read_to_string(here.data().join("log")).unwrap();
    assert!(log.contains("serving https://") && !log.contains("error:"), "{log}");
    let logs = fs::read_dir(here.data()).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    assert_eq!(logs.filter(|name| name.starts_with("log")).collect::<Vec<_>>(), ["log"]);
}
