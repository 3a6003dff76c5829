//! What is measured, what was promised, and what came out.

use std::time::Duration;

/// One line of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) target: Option<Target>,
}

/// Which of two figures is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// So many times better than the other's.
    Times(f64),
    /// Less than this, whatever the other does.
    Below(f64),
}

impl Measure {
    /// How often something happens in a second.
    pub(crate) const fn rate(name: &'static str) -> Self {
        Self { name, unit: "/s", better: Better::More, target: None }
    }

    /// How long something takes.
    pub(crate) const fn time(name: &'static str) -> Self {
        Self { name, unit: "ms", better: Better::Less, target: None }
    }

    /// How much something holds.
    pub(crate) const fn memory(name: &'static str) -> Self {
        Self { name, unit: "MiB", better: Better::Less, target: None }
    }

    /// How long something short takes.
    pub(crate) const fn latency(name: &'static str) -> Self {
        Self { name, unit: "µs", better: Better::Less, target: None }
    }

    /// How much something small holds.
    pub(crate) const fn small_memory(name: &'static str) -> Self {
        Self { name, unit: "KiB", better: Better::Less, target: None }
    }

    /// How many times another figure one is.
    pub(crate) const fn ratio(name: &'static str) -> Self {
        Self { name, unit: "×", better: Better::More, target: None }
    }

    /// How often something happens, in all or in the time that the name says.
    pub(crate) const fn count(name: &'static str) -> Self {
        Self { name, unit: "", better: Better::Less, target: None }
    }

    pub(crate) const fn must_be(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }
}

/// What came out of one round of one program.
pub(crate) type Measured = Vec<(Measure, f64)>;

/// The figure of a measure, if it was taken.
pub(crate) fn of(measured: &[(Measure, f64)], measure: Measure) -> Option<f64> {
    measured.iter().find(|(known, _)| *known == measure).map(|(_, value)| *value)
}

/// The figures of one program: one for each measure and round.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) of: &'static str,
    pub(crate) rounds: Vec<Measured>,
}

impl Figures {
    /// The median of the rounds.
    pub(crate) fn median(&self, measure: Measure) -> Option<f64> {
        let mut values: Vec<f64> = self.all(measure).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    pub(crate) fn all(&self, measure: Measure) -> impl Iterator<Item = f64> {
        self.rounds.iter().flatten().filter(move |(of, _)| *of == measure).map(|(_, value)| *value)
    }
}

/// So many things one after the other, in each round beginning with another one, so that none of them always comes after
/// the same.
pub(crate) fn turns(count: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (turn + round) % count)
}

/// What so many in a hundred of these do not exceed, in microseconds. Nothing of nothing.
pub(crate) fn percentile(times: &mut [Duration], part: usize) -> Option<f64> {
    times.sort_unstable();
    let index = (times.len() * part / 100).min(times.len().saturating_sub(1));
    times.get(index).map(|time| time.as_secs_f64() * 1e6)
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "memory is far below 2^52 bytes")]
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
