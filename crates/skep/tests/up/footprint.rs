//! What a running machine holds of the machine around it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use skep_conformance::processes::{descendants, inner};

use super::machine::Machine;

/// So often nothing has become less.
const QUIET: u32 = 20;
const POLL: Duration = Duration::from_millis(100);

/// Everything that could be left behind by pods that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footprint {
    processes: usize,
    descriptors: usize,
    mounts: usize,
    /// Ends of the cables of pods, each with an address.
    links: usize,
    /// Folders of pods, on disk and in memory.
    folders: usize,
}

impl Footprint {
    pub(crate) fn of(machine: &Machine) -> Self {
        let data = machine.folder.path().join("data");
        let inner = inner(machine.process()).unwrap();
        let count = |path: &Path| fs::read_dir(path).map_or(0, Iterator::count);
        let lines = |file: &str| fs::read_to_string(format!("/proc/{inner}/{file}")).unwrap().lines().count();
        let descriptors = |process: u32| count(Path::new(&format!("/proc/{process}/fd")));
        // The memory is mounted inside only.
        let inside = Path::new("/proc").join(inner.to_string()).join("root").join(data.strip_prefix("/").unwrap());
        Self {
            processes: descendants(machine.process()).len(),
            descriptors: descriptors(machine.process()) + descriptors(inner),
            mounts: lines("mountinfo"),
            links: lines("net/dev"),
            folders: ["node/scratch", "node/logs"].iter().map(|name| count(&data.join(name))).sum::<usize>()
                + count(&inside.join("memory")),
        }
    }

    /// The smallest that it comes to when no pod is there: what pods held is let go of a moment after they are gone.
    pub(crate) async fn at_rest(machine: &Machine) -> Self {
        let mut smallest = Self::of(machine);
        let mut quiet = 0;
        while quiet < QUIET {
            tokio::time::sleep(POLL).await;
            let now = Self::of(machine);
            quiet = if now.is_within(&smallest) && now != smallest { 0 } else { quiet + 1 };
            if quiet == 0 {
                smallest = now;
            }
        }
        smallest
    }

    /// Whether there is nothing more than there was.
    pub(crate) fn is_within(&self, before: &Self) -> bool {
        let Self { processes, descriptors, mounts, links, folders } = self;
        *processes <= before.processes
            && *descriptors <= before.descriptors
            && *mounts <= before.mounts
            && *links <= before.links
            && *folders <= before.folders
    }
}
