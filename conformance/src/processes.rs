//! Processes of this machine, for tests that want to know whether all of them have gone.

use std::fs;
use std::path::Path;

/// Processes that one has started, directly or not, at some moment.
#[derive(Debug)]
pub struct Family(Vec<(u32, String)>);

impl Family {
    pub fn of(process: u32) -> Self {
        Self(descendants(process).into_iter().filter_map(|process| Some((process, birth(process)?))).collect())
    }

    /// Those that are still there.
    pub fn left(&self) -> Vec<u32> {
        let lives = |(process, born): &&(u32, String)| birth(*process).as_ref() == Some(born);
        self.0.iter().filter(lives).map(|(process, _)| *process).collect()
    }
}

/// The process of a `skep` command that does the work: the program that the first process inside the namespaces has
/// started.
pub fn inner(outer: u32) -> Option<u32> {
    children(*children(outer).first()?).first().copied()
}

/// All processes that one has started, directly or not.
pub fn descendants(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for child in children(process) {
        found.push(child);
        found.extend(descendants(child));
    }
    found
}

/// Processes whose environment or arguments carry a mark.
pub fn marked(mark: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let carries = |process: &u32| {
        let read = |file: &str| fs::read(Path::new("/proc").join(process.to_string()).join(file)).unwrap_or_default();
        ["cmdline", "environ"].iter().any(|file| String::from_utf8_lossy(&read(file)).contains(mark))
    };
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(carries).collect()
}

fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    texts.flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// When a process was born, as its number may be another's later; none when it is gone or has only not been buried yet.
fn birth(process: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    (*fields.first()? != "Z").then(|| fields.get(19).map(|&born| born.to_owned())).flatten()
}
