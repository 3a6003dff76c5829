//! Which users there are inside.

use std::fs;

/// Whether a process may run as anybody else. An ordinary user who makes namespaces is alone in them.
pub fn can_switch_users() -> bool {
    fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| maps_several(&map))
}

fn maps_several(map: &str) -> bool {
    let counts = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    counts.sum::<u64>() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_counted() {
        assert!(maps_several("         0          0 4294967295\n"));
        assert!(maps_several("0 1000 1\n1 100000 65536\n"));
        assert!(!maps_several("         0       1000          1\n"));
        assert!(!maps_several(""));
    }
}
