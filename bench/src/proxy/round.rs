//! One round: everything once, each load on all paths before the next.

use super::measures::{
    ADDED, CYCLES, ECHO, IDLE, IDLE_OWN, LISTENER, LISTENER_ALONE, SESSION, SESSION_ALONE, STDIO, STDIO_CYCLES, STREAM,
};
use super::{PATHS, Settings, idle};
use crate::mcp::{Part, Process, load};
use crate::measure::{Measured, of, turns};

/// The figures of each path. Each round begins with another one.
pub(super) async fn run(settings: &Settings, number: usize) -> anyhow::Result<[Measured; PATHS.len()]> {
    let mut measured = <[Measured; PATHS.len()]>::default();
    loads(settings, number, &mut measured).await?;
    stdio(settings, &mut measured).await?;
    memory(settings, &mut measured).await?;
    Ok(measured)
}

async fn loads(settings: &Settings, number: usize, measured: &mut [Measured; PATHS.len()]) -> anyhow::Result<()> {
    let server = Process::start(&Part::Server, None).await?;
    let between = futures::future::try_join_all(PATHS.iter().map(|path| path.start(&server))).await?;
    let all = ECHO.iter().map(|load| ("echo", load)).chain([("large", &STREAM)]);
    for (tool, load) in all {
        for turn in turns(PATHS.len(), number) {
            eprintln!("  {}: {}", load.rate.name, PATHS[turn].name());
            let between = between[turn].as_ref();
            let door = &between.unwrap_or(&server).door;
            let outcome = load::run(door, between, tool, load.clients, settings.load).await?;
            measured[turn].extend(outcome.of(load));
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
    let bridge = Process::start(&Part::Bridge, None).await?;
    let [ours, bare, ..] = measured;
    for load in &STDIO {
        eprintln!("  {}", load.rate.name);
        let outcome = load::run(&bridge.door, Some(&bridge), "echo", load.clients, settings.load).await?;
        ours.extend(outcome.of(load));
        // There is no bare bridge; the promise is made in terms of the bare proxy with as many clients.
        if let Some(echo) = ECHO.iter().find(|echo| echo.clients == load.clients) {
            let same = [(echo.rate, load.rate), (echo.cpu, load.cpu)];
            let known: Measured = same.iter().filter_map(|(from, to)| Some((*to, of(bare, *from)?))).collect();
            bare.extend(known);
        }
    }
    ours.extend(idle::cycles(&bridge, settings.cycles, &STDIO_CYCLES).await?);
    Ok(())
}

async fn memory(settings: &Settings, measured: &mut [Measured; PATHS.len()]) -> anyhow::Result<()> {
    let server = Process::start(&Part::Server, None).await?;
    // What is promised is promised for ours, and in terms of the bare one.
    for (path, measured) in PATHS.iter().zip(&mut *measured).take(2) {
        let Some(between) = path.start(&server).await? else { continue };
        eprintln!("  sessions: {}", path.name());
        let idle = [(IDLE, between.resident_kibibytes()?), (IDLE_OWN, between.own_kibibytes()?)];
        measured.extend(idle.map(|(measure, held)| (measure, held / idle::KIBIBYTES_PER_MEBIBYTE)));
        let (session, listener) = idle::sessions(&between, settings.sessions).await?;
        measured.extend([(SESSION, session), (LISTENER, listener)]);
        measured.extend(idle::cycles(&between, settings.cycles, &CYCLES).await?);
    }
    let [ours, bare, ..] = measured;
    for (both, alone) in [(SESSION, SESSION_ALONE), (LISTENER, LISTENER_ALONE)] {
        let alone = of(ours, both).zip(of(bare, both)).map(|(ours, bare)| (alone, ours - bare));
        ours.extend(alone);
    }
    Ok(())
}
