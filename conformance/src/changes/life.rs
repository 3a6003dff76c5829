//! A life: changes one after the other, an end, and a look at what has become of everything.

use std::time::Duration;

use anyhow::bail;
use serde_json::Value;

use super::marks::{self, Mark};
use super::outcome::Told;
use super::place::Place;
use super::random::Random;
use super::twin::Twin;
use super::{outcome, people, surroundings};

/// How often and how long it is looked for what has to come: far longer than it takes on a busy machine.
const LOOKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(200);
/// In so many lives Secrets change, once.
const SECRETS: u64 = 3;

/// What happens in a namespace.
#[derive(Debug)]
pub struct Life {
    place: Place,
    random: Random,
    marks: Vec<Mark>,
    /// Whether Secrets change as well.
    secrets: bool,
}

impl Life {
    /// Begins in a namespace where nothing is yet.
    pub async fn begin(place: Place, seed: u64) -> kube::Result<Self> {
        surroundings::prepare(&place).await?;
        Ok(Self { place, random: Random(!seed), marks: Vec::new(), secrets: seed.is_multiple_of(SECRETS) })
    }

    /// Somebody changes something, or writes something onto an object of others.
    pub async fn go_on(&mut self) -> kube::Result<()> {
        if self.random.once_in(8) {
            self.marks.extend(marks::mark_something(&self.place, &mut self.random).await?);
            return Ok(());
        }
        people::change_something(&self.place, &mut self.random, self.secrets).await
    }

    /// Nothing changes any more. Some correct their mistakes before.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        if self.random.once_in(2) {
            people::heal(&self.place).await?;
        } else if self.secrets {
            people::look_again(&self.place).await?;
        }
        marks::check(&self.place, &self.marks).await?;
        marks::let_go(&self.place).await?;
        Ok(())
    }

    /// The namespace.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Waits until everything is as it is in a place that had no troubles; and once more when all mistakes are corrected,
    /// so that everything that was made for those who made them is looked at, too.
    pub async fn compare(&self, twin: &Twin<'_>) -> anyhow::Result<()> {
        let place = twin.place();
        self.converge(place, |_| true, "not what an untroubled operator makes of it").await?;
        for place in [&self.place, place] {
            people::heal(place).await?;
        }
        self.converge(place, |all| all.values().all(is_well), "not what is made of it without mistakes").await?;
        marks::check(&self.place, &self.marks).await
    }

    async fn converge(&self, twin: &Place, is_enough: impl Fn(&Told) -> bool, words: &str) -> anyhow::Result<()> {
        let mut last = (Told::new(), Told::new());
        for _ in 0..LOOKS {
            last = (outcome::of(&self.place).await?, outcome::of(twin).await?);
            if last.0 == last.1 && is_enough(&last.0) {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        let ill = last.1.iter().filter(|(_, told)| !is_well(told));
        let ill: Vec<String> = ill.map(|(name, told)| format!("{name}: {told}")).collect();
        bail!("{words}:\n{}\nfailed:\n{}", outcome::difference(&last.0, &last.1), ill.join("\n"))
    }
}

fn is_well(told: &Value) -> bool {
    told["status"]["phase"] != "Failed"
}
