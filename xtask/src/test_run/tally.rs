//! What became of tests, counted from what test programs print.

/// So many passed, so many failed, and why the others did not run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: Vec<String>,
    /// Tests that passed only when they ran again.
    pub(super) unsteady: Vec<String>,
}

impl Tally {
    /// The tests of a program that has ended, by what it printed.
    pub(super) fn of_program(output: &str, succeeded: bool) -> Self {
        let mut tally = Self::default();
        let mut crashes = Crashes::default();
        for line in output.lines() {
            crashes.see(line);
            if line.starts_with("test result:") {
                tally.count(line);
            }
        }
        tally.failed += crashes.total();
        // A program that does not get as far as its tests prints no result.
        if !succeeded && tally.failed == 0 {
            tally.failed = 1;
        }
        tally
    }

    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
        self.unsteady.extend(other.unsteady);
    }

    /// A test that failed has passed when it ran again.
    pub(super) fn forgive(&mut self, test: String) {
        self.failed = self.failed.saturating_sub(1);
        self.passed += 1;
        self.unsteady.push(test);
    }

    /// Tests that skipped themselves, a line each. The harness counted them as passed.
    pub(super) fn move_to_skipped(&mut self, log: &str) {
        let skipped: Vec<String> = log.lines().map(str::to_owned).collect();
        self.passed = self.passed.saturating_sub(skipped.len());
        self.skipped.extend(skipped);
    }

    /// Adds the numbers of a line such as `test result: ok. 5 passed; 0 failed; 1 ignored; …`.
    fn count(&mut self, line: &str) {
        let number_before = |word: &str| -> usize {
            line.split([';', '.'])
                .find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
                .unwrap_or_default()
        };
        self.passed += number_before("passed");
        self.failed += number_before("failed");
        self.skipped.extend((0..number_before("ignored")).map(|_| "marked as ignored in the source".to_owned()));
    }
}

/// The tests that a program lists as failed before it ends.
pub(super) fn failures(output: &str) -> Vec<String> {
    let Some((_, list)) = output.rsplit_once("\nfailures:\n") else { return Vec::new() };
    list.lines().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

/// Runs of tests that began and did not get to a result. A program may run its tests more than once.
#[derive(Debug, Default)]
struct Crashes {
    running: bool,
    count: usize,
}

impl Crashes {
    fn see(&mut self, line: &str) {
        let begins = line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
        if begins {
            self.count += usize::from(self.running);
        }
        self.running = begins || self.running && !line.starts_with("test result:");
    }

    fn total(&self) -> usize {
        self.count + usize::from(self.running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s";
    const FAILED: &str =
        "test result: FAILED. 12 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.10s";

    #[test]
    fn a_program_that_ends_without_a_result_has_crashed() {
        let crashed = ["running 2 tests", "test a ... ok", "running 1 test", OK, "running 0 tests"].join("\n");
        assert_eq!(Tally::of_program(&crashed, false).failed, 2);
        assert_eq!(Tally::of_program(&format!("{crashed}\n{OK}"), false).failed, 1);
        assert_eq!(Tally::of_program("cannot begin", false).failed, 1);
        assert_eq!(Tally::of_program("", true), Tally::default());
    }

    #[test]
    fn failures_are_found_by_name() {
        let output = format!(
            "running 2 tests\ntest a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n    oh\n\n\
             failures:\n    a::b\n    Real::c\n\n{FAILED}\n"
        );
        assert_eq!(failures(&output), ["a::b", "Real::c"]);
        assert_eq!(failures("running 1 test\nfailures: none\n"), [""; 0]);
    }

    #[test]
    fn result_lines_are_added_up() {
        let mut tally = Tally::of_program(&format!("running 6 tests\n{OK}\nrunning 14 tests\n{FAILED}"), false);
        assert_eq!((tally.passed, tally.failed, tally.skipped.len()), (17, 2, 1));
        tally.add(Tally::of_program(OK, true));
        assert_eq!((tally.passed, tally.failed, tally.skipped.len()), (22, 2, 2));
        tally.move_to_skipped("one: no control plane\ntwo: no control plane\n");
        assert_eq!((tally.passed, tally.failed, tally.skipped.len()), (20, 2, 4));
    }
}
