//! What each layer of the chain costs, and all of them together: real MCP sessions beside a proxy that does nothing, in one
//! run on one machine; and single decisions without sockets.

mod alone;
mod key;
mod paths;

use std::time::Duration;

use skep_conformance::redis::RedisServer;

use self::key::Key;
use self::paths::{BARE, Credentials, DEFAULT, DIRECT, FULL, PATHS};
use crate::mcp::load::{self, Load, load};
use crate::mcp::part::chain::Around;
use crate::mcp::{Part, Process};
use crate::measure::{Figures, Measure, Measured, Target, of, turns};
use crate::table::Table;

/// How much is measured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) rounds: usize,
    /// How long each load lasts.
    pub(crate) load: Duration,
    /// How often each single decision is taken.
    pub(crate) decisions: usize,
    /// What the names of lines have to contain; everything when empty.
    pub(crate) only: Vec<String>,
}

impl Settings {
    /// Whether a line is measured. Those are that others are compared with.
    fn wants(&self, path: usize) -> bool {
        let is_named = |text: &String| PATHS[path].name.contains(text.as_str());
        [DIRECT, BARE, DEFAULT, FULL].contains(&path) || self.only.is_empty() || self.only.iter().any(is_named)
    }
}

const ONE: Load = load!("echo", 1);
const MANY: Load = load!("echo", 32);

/// In comparison with the bare proxy, and with the default chain.
const SHARE: Measure = Measure::ratio("calls ÷ bare");
const ADDED: Measure = Measure::latency("added to bare");
const OWN: Measure = Measure::latency("added to default");
/// The columns under short names.
const CALLS: Measure = Measure::rate("calls, 32");
const CPU: Measure = Measure::latency("processor, 32");
const MEDIAN: Measure = Measure::latency("median, 1");
const LAYERS: [Measure; 6] = [CALLS, SHARE, CPU, MEDIAN, ADDED, OWN];

/// What is promised for the full chain.
const BUDGET: [Measure; 3] = [
    MANY.rate.must_be(Target::Times(0.7)),
    MANY.cpu.must_be(Target::Times(0.5)),
    // Alone, a client meets cold code in every layer: docs/adr/0012.
    Measure::latency("echo, 1 client, added median").must_be(Target::Times(1.0 / 3.5)),
];

/// What everybody meets in all rounds.
struct Stage {
    key: Key,
    credentials: Credentials,
    around: Around,
    _companion: Process,
    _redis: Option<RedisServer>,
    _folder: tempfile::TempDir,
}

impl Stage {
    fn set() -> anyhow::Result<Self> {
        let key = Key::new()?;
        let companion = Process::listening(&Part::Companion { key: key.public.clone() }, None)?;
        let redis = RedisServer::volatile().inspect_err(|error| {
            eprintln!(
                "there is no Redis ({error}), so that nothing is measured that needs it: apt-get install redis-server"
            );
        });
        let (redis, folder) = (redis.ok(), tempfile::tempdir()?);
        let credentials = Credentials {
            signed: format!("Bearer {}", key.token(0)?).parse()?,
            opaque: http::HeaderValue::from_static("Bearer opaque"),
        };
        let around = Around {
            companion: companion.door.address,
            redis: redis.as_ref().map(RedisServer::address),
            folder: folder.path().to_owned(),
        };
        Ok(Self { key, credentials, around, _companion: companion, _redis: redis, _folder: folder })
    }

    /// The figures of each path, in this round.
    async fn round(&self, settings: &Settings, number: usize) -> anyhow::Result<[Measured; PATHS.len()]> {
        let mut measured = <[Measured; PATHS.len()]>::default();
        let server = Process::start(&Part::Server, Some(self.credentials.signed.clone())).await?;
        for load in [ONE, MANY] {
            let is_measured = |turn: &usize| PATHS[*turn].is_open(&self.around) && settings.wants(*turn);
            for turn in turns(PATHS.len(), number).filter(is_measured) {
                let path = &PATHS[turn];
                eprintln!("  {}: {}", load.rate.name, path.name);
                let between = path.start(&server, &self.around, &self.credentials).await?;
                let door = &between.as_ref().unwrap_or(&server).door;
                let outcome = load::run(door, between.as_ref(), "echo", load.clients, settings.load).await?;
                measured[turn].extend(outcome.of(&load));
            }
        }
        compare(&mut measured);
        Ok(measured)
    }
}

/// Adds what follows from the figures of several paths.
fn compare(measured: &mut [Measured; PATHS.len()]) {
    let known = |path: usize, measure: Measure| of(&measured[path], measure);
    let (direct, default) = (known(DIRECT, ONE.median), known(DEFAULT, ONE.median));
    let (bare, bare_rate) = (known(BARE, ONE.median), known(BARE, MANY.rate));
    for figures in measured {
        let (median, rate, cpu) = (of(figures, ONE.median), of(figures, MANY.rate), of(figures, MANY.cpu));
        let beyond = |other: Option<f64>| median.zip(other).map(|(median, other)| median - other);
        let found = [
            (CALLS, rate),
            (SHARE, rate.zip(bare_rate).map(|(rate, bare)| rate / bare)),
            (CPU, cpu),
            (MEDIAN, median),
            (ADDED, beyond(bare)),
            (OWN, beyond(default)),
            (BUDGET[0], rate),
            (BUDGET[1], cpu),
            (BUDGET[2], beyond(direct)),
        ];
        figures.extend(found.into_iter().filter_map(|(measure, figure)| Some((measure, figure?))));
    }
}

/// Measures all of them in turns, so that what else happens on the machine happens to all.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Table>> {
    let stage = Stage::set()?;
    let mut rounds: [Vec<Measured>; PATHS.len()] = Default::default();
    let mut decided = Vec::new();
    for number in 0..settings.rounds {
        eprintln!("round {} of {}", number + 1, settings.rounds);
        for (rounds, measured) in rounds.iter_mut().zip(stage.round(settings, number).await?) {
            rounds.push(measured);
        }
        eprintln!("  single decisions");
        decided.push(alone::run(&stage.key, &stage.around, settings.decisions).await?);
    }
    let of_path = |path: usize| Figures { of: PATHS[path].name, rounds: rounds[path].clone() };
    let decided = Figures { of: "skep", rounds: decided };
    let (chain, alone) = ("the full chain".to_owned(), "single decisions, no sockets".to_owned());
    Ok(vec![
        Table::of_rounds(&LAYERS, (0..PATHS.len()).filter(|path| settings.wants(*path)).map(of_path).collect()),
        Table { title: chain, measures: BUDGET.into(), figures: [FULL, BARE, DIRECT].map(of_path).into() },
        Table { title: alone, measures: alone::ALL.into(), figures: vec![decided] },
    ])
}
