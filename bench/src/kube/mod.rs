//! The embedded API server beside the real one.

mod load;
mod measure;
mod objects;
mod round;
mod server;

use std::path::Path;

pub(crate) use measure::{Better, Measure, Target};
use server::{Kind, Server};

/// The figures of one server: one for each measure and round.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) server: &'static str,
    pub(crate) rounds: Vec<Vec<(Measure, f64)>>,
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

/// Measures both servers in turns, so that what else happens on the machine happens to both. Never both at once.
pub(crate) async fn run(skep: &Path, rounds: u32, objects: usize, alone: bool) -> anyhow::Result<Vec<Figures>> {
    let kinds = if alone { &[Kind::Ours][..] } else { &[Kind::Ours, Kind::Real] };
    let mut figures: Vec<Figures> =
        kinds.iter().map(|kind| Figures { server: kind.name(), rounds: Vec::new() }).collect();
    for number in 1..=rounds {
        for (kind, figures) in kinds.iter().zip(&mut figures) {
            eprintln!("round {number} of {rounds}: {}", kind.name());
            let server = Server::start(*kind, skep).await?;
            figures.rounds.push(round::run(&server, objects).await?);
        }
    }
    Ok(figures)
}
