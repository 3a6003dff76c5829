//! A second run for the few tests that fail on a machine that is busy with the others.
//!
//! It hides nothing: what failed was shown, and the summary names every test that needed a second run. It is there so
//! that one late process among two thousand tests does not stand in the way of everything else.

use super::programs::Outcome;

/// More failures than this are no accident, and none of them is run again.
const FORGIVEN: usize = 3;

/// Runs what failed again, one test at a time, now that nothing else runs.
pub(super) fn run(outcomes: &mut [Outcome]) -> anyhow::Result<()> {
    if outcomes.iter().map(|outcome| outcome.tally.failed).sum::<usize>() > FORGIVEN {
        return Ok(());
    }
    for Outcome { program, tally, failures, .. } in outcomes {
        for test in std::mem::take(failures) {
            if program.passes(&test)? {
                tally.forgive(format!("{}: {test}", program.name));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::programs::{self, Program};
    use super::*;

    /// A program with so many tests that fail unless they run alone, and perhaps one that fails always.
    fn program(folder: &std::path::Path, failing: usize, hopeless: bool) -> Program {
        let mut names: Vec<String> = (0..failing).map(|number| format!("t{number}")).collect();
        names.extend(hopeless.then(|| "always".to_owned()));
        let script = folder.join("tests.sh");
        let text = format!(
            "case \"$2\" in
               always) echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 1;;
               t*) echo 'test result: ok. 1 passed; 0 failed; 0 ignored'; exit 0;;
             esac
             printf 'running 9 tests\\n\\nfailures:\\n'
             printf '    %s\\n' {}
             echo; echo 'test result: FAILED. 2 passed; {} failed; 0 ignored'; exit 1",
            names.join(" "),
            names.len(),
        );
        std::fs::write(&script, text).unwrap();
        Program::script(&script)
    }

    fn run_again(failing: usize, hopeless: bool) -> (usize, usize, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let mut outcomes = programs::run(vec![program(folder.path(), failing, hopeless)]).unwrap();
        run(&mut outcomes).unwrap();
        let tally = outcomes.remove(0).tally;
        (tally.passed, tally.failed, tally.unsteady)
    }

    #[test]
    fn what_passes_alone_is_named() {
        assert_eq!(run_again(1, false), (3, 0, vec!["tests.sh: t0".to_owned()]));
        assert_eq!(run_again(1, true), (3, 1, vec!["tests.sh: t0".to_owned()]));
    }

    #[test]
    fn many_failures_stay_failures() {
        assert_eq!(run_again(FORGIVEN + 1, false), (2, FORGIVEN + 1, Vec::new()));
    }
}
