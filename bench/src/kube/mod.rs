//! The embedded API server beside the real one.

pub(crate) mod measures;
mod objects;
mod round;
mod server;

use std::path::Path;

use crate::measure::Figures;
use server::{Kind, Server};

/// Measures both servers in turns, so that what else happens on the machine happens to both. Never both at once.
pub(crate) async fn run(skep: &Path, rounds: u32, objects: usize, alone: bool) -> anyhow::Result<Vec<Figures>> {
    let kinds = if alone { &[Kind::Ours][..] } else { &[Kind::Ours, Kind::Real] };
    let mut figures: Vec<Figures> = kinds.iter().map(|kind| Figures { of: kind.name(), rounds: Vec::new() }).collect();
    for number in 1..=rounds {
        for (kind, figures) in kinds.iter().zip(&mut figures) {
            eprintln!("round {number} of {rounds}: {}", kind.name());
            let server = Server::start(*kind, skep).await?;
            figures.rounds.push(round::run(&server, objects).await?);
        }
    }
    Ok(figures)
}
