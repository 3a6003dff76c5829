//! One round: everything once, each load on all paths before the next.

use super::measures::{
    ADDED, ECHO, GROWTH, IDLE, LISTENER, LISTENER_ALONE, SESSION, SESSION_ALONE, STDIO, STDIO_GROWTH, STREAM,
};
use super::part::Part;
use super::process::Process;
use super::{PATHS, Settings, idle, load};
use crate::measure::Measure;

type Measured = Vec<(Measure, f64)>;

const KIBIBYTES_PER_MEBIBYTE: f64 = 1024.0;

/// The figures of each path.
pub(super) async fn run(settings: &Settings) -> anyhow::Result<[Measured; PATHS.len()]> {
    let mut measured = <[Measured; PATHS.len()]>::default();
    loads(settings, &mut measured).await?;
    stdio(settings, &mut measured).await?;
    memory(settings, &mut measured).await?;
    Ok(measured)
}

fn of(measured: &Measured, measure: Measure) -> Option<f64> {
    measured.iter().find(|(known, _)| *known == measure).map(|(_, value)| *value)
}

async fn loads(settings: &Settings, measured: &mut [Measured; PATHS.len()]) -> anyhow::Result<()> {
    let server = Process::start(&Part::Server).await?;
    let between = futures::future::try_join_all(PATHS.iter().map(|path| path.start(&server))).await?;
    let all = ECHO.iter().map(|load| ("echo", load)).chain([("large", &STREAM)]);
    for (tool, load) in all {
        for ((path, between), measured) in PATHS.iter().zip(&between).zip(&mut *measured) {
            eprintln!("  {}: {}", load.rate.name, path.name());
            let address = between.as_ref().unwrap_or(&server).address;
            let outcome = load::run(address, between.as_ref(), tool, load.clients, settings.load).await?;
            measured.extend(outcome.of(load));
        }
    }
    let alone = ECHO[0].median;
    let Some(direct) = measured.last().and_then(|direct| of(direct, alone)) else { return Ok(()) };
    for measured in measured.iter_mut().take(PATHS.len() - 1) {
        let added = of(measured, alone).map(|median| (ADDED, median - direct));
        measured.extend(added);
    }
    Ok(())
}

async fn stdio(settings: &Settings, measured: &mut [Measured; PATHS.len()]) -> anyhow::Result<()> {
    let bridge = Process::start(&Part::Bridge).await?;
    let [ours, bare, _] = measured;
    for load in &STDIO {
        eprintln!("  {}", load.rate.name);
        let outcome = load::run(bridge.address, Some(&bridge), "echo", load.clients, settings.load).await?;
        ours.extend(outcome.of(load));
        // There is no bare bridge; the promise is made in terms of the bare proxy with as many clients.
        if let Some(echo) = ECHO.iter().find(|echo| echo.clients == load.clients) {
            let same = [(echo.rate, load.rate), (echo.cpu, load.cpu)];
            let known: Measured = same.iter().filter_map(|(from, to)| Some((*to, of(bare, *from)?))).collect();
            bare.extend(known);
        }
    }
    ours.push((STDIO_GROWTH, idle::cycles(&bridge, settings.cycles).await?));
    Ok(())
}

async fn memory(settings: &Settings, measured: &mut [Measured; PATHS.len()]) -> anyhow::Result<()> {
    let server = Process::start(&Part::Server).await?;
    for (path, measured) in PATHS.iter().zip(&mut *measured) {
        let Some(between) = path.start(&server).await? else { continue };
        eprintln!("  sessions: {}", path.name());
        measured.push((IDLE, between.resident_kibibytes()? / KIBIBYTES_PER_MEBIBYTE));
        let (session, listener) = idle::sessions(&between, settings.sessions).await?;
        measured.extend([(SESSION, session), (LISTENER, listener)]);
        measured.push((GROWTH, idle::cycles(&between, settings.cycles).await?));
    }
    let [ours, bare, _] = measured;
    for (both, alone) in [(SESSION, SESSION_ALONE), (LISTENER, LISTENER_ALONE)] {
        let alone = of(ours, both).zip(of(bare, both)).map(|(ours, bare)| (alone, ours - bare));
        ours.extend(alone);
    }
    Ok(())
}
