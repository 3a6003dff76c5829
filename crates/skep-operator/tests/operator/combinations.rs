//! Combinations of the options of a workload, the same in every run.

use super::{OPTIONS, SampleOption};

/// No option, all of them, each alone, all but each, and from then on whatever a generator of numbers says.
pub fn combinations() -> impl Iterator<Item = Vec<&'static SampleOption>> {
    let chosen = |keep: &dyn Fn(usize) -> bool| -> Vec<&'static SampleOption> {
        OPTIONS.iter().enumerate().filter(|(index, _)| keep(*index)).map(|(_, option)| option).collect()
    };
    let one = (0..OPTIONS.len()).map(move |one| chosen(&|index| index == one));
    let all_but_one = (0..OPTIONS.len()).map(move |one| chosen(&|index| index != one));
    let others = (1..).map(move |seed: u64| {
        let bits = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        chosen(&|index| bits >> (index + 16) & 1 == 1)
    });
    [chosen(&|_| false), chosen(&|_| true)].into_iter().chain(one).chain(all_but_one).chain(others)
}
