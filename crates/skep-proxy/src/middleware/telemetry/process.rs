//! What the process itself takes, under the names that everybody uses for it.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// A number about the process.
#[derive(Debug)]
pub(super) struct Measure {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) description: &'static str,
    pub(super) value: f64,
}

/// What can be found out now.
pub(super) fn read() -> Vec<Measure> {
    let gauge = |name, description, value| Measure { name, kind: "gauge", description, value };
    let mut measures = Vec::new();
    if let Some(usage) = fs::read_to_string("/proc/self/stat").ok().and_then(|text| usage(&text)) {
        measures.extend([
            Measure {
                name: "process_cpu_seconds_total",
                kind: "counter",
                description: "Time of processors, in seconds",
                value: usage.processors,
            },
            gauge("process_resident_memory_bytes", "Memory that is in use", usage.resident),
            gauge("process_virtual_memory_bytes", "Memory that is reserved", usage.reserved),
        ]);
        let boot = fs::read_to_string("/proc/stat").ok().and_then(|text| boot_time(&text));
        let began = boot.map(|boot| boot + usage.began);
        measures.extend(began.map(|began| gauge("process_start_time_seconds", "When the process began", began)));
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        measures.push(gauge("process_open_fds", "Files that are open", number(files.count() as u64)));
    }
    let most = getrlimit(Resource::Nofile).current;
    measures.extend(most.map(|most| gauge("process_max_fds", "Files that may be open", number(most))));
    measures
}

struct Usage {
    processors: f64,
    began: f64,
    reserved: f64,
    resident: f64,
}

/// What the kernel says. The name of the program is in brackets, and may have any character in it.
fn usage(text: &str) -> Option<Usage> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<u64> = rest.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect();
    // The third field of the file is the first one here.
    let field = |place: usize| fields.get(place - 3).copied().map(number);
    let ticks = number(clock_ticks_per_second());
    Some(Usage {
        processors: (field(14)? + field(15)?) / ticks,
        began: field(22)? / ticks,
        reserved: field(23)?,
        resident: field(24)? * number(page_size() as u64),
    })
}

fn boot_time(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "such numbers are below 2^53")]
fn number(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_something() {
        let measures = read();
        let value = |name: &str| measures.iter().find(|measure| measure.name == name).unwrap().value;
        assert!(value("process_resident_memory_bytes") > 1e6 && value("process_open_fds") >= 3.0);
        assert!(value("process_start_time_seconds") > 1.7e9, "{measures:?}");
        let odd = usage("7 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 100 200 0 0 20 0 1 0 300 4096 2 0").unwrap();
        assert_eq!((odd.reserved, odd.processors * number(clock_ticks_per_second())), (4096.0, 300.0));
    }
}
