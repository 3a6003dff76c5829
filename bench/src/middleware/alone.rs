//! Single decisions in this process, without sockets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use skep_mcp::Message;
use skep_proxy::middleware::{Authorizer, CedarSettings, Identity, Oidc};

use super::key::Key;
use crate::mcp::part::chain::{self, Around};
use crate::mcp::part::policies;
use crate::measure::{Measure, Measured, Target, percentile};

/// What is measured of one decision.
struct Decision {
    median: Measure,
    tail: Measure,
}

const JWT: Decision = Decision {
    median: Measure::latency("JWT, RS256, cached key, median").must_be(Target::Below(40.0)),
    tail: Measure::latency("JWT, RS256, cached key, 99th percentile"),
};
const CEDAR: Decision = Decision {
    median: Measure::latency("Cedar, 100 policies, median").must_be(Target::Below(30.0)),
    tail: Measure::latency("Cedar, 100 policies, 99th percentile"),
};
const CEDAR_TEAMS: Decision = Decision {
    median: Measure::latency("Cedar, 100 general policies, median"),
    tail: Measure::latency("Cedar, 100 general policies, 99th percentile"),
};
const CEDAR_ENTITIES: Decision = Decision {
    median: Measure::latency("Cedar, 100 policies, 1000 entities, median"),
    tail: Measure::latency("Cedar, 100 policies, 1000 entities, 99th percentile"),
};
const CEDAR_AGAIN: Decision = Decision {
    median: Measure::latency("Cedar, asked before, median"),
    tail: Measure::latency("Cedar, asked before, 99th percentile"),
};

pub(super) const ALL: [Measure; 10] = [
    JWT.median,
    JWT.tail,
    CEDAR.median,
    CEDAR.tail,
    CEDAR_TEAMS.median,
    CEDAR_TEAMS.tail,
    CEDAR_ENTITIES.median,
    CEDAR_ENTITIES.tail,
    CEDAR_AGAIN.median,
    CEDAR_AGAIN.tail,
];

/// How often each decision is taken before it counts, in percent of those that do.
const WARM_UP: usize = 10;

impl Decision {
    fn of(&self, mut times: Vec<Duration>) -> anyhow::Result<[(Measure, f64); 2]> {
        // Those that came first found everything cold.
        times.drain(..times.len() * WARM_UP / 100);
        let mut at = |part| percentile(&mut times, part).context("nothing was decided");
        Ok([(self.median, at(50)?), (self.tail, at(99)?)])
    }
}

/// Takes each decision so many times.
pub(super) async fn run(key: &Key, around: &Around, count: usize) -> anyhow::Result<Measured> {
    Ok(tokens(key, around, count).await?.into_iter().chain(calls(count).await?).collect())
}

/// Checks tokens, each of them once.
async fn tokens(key: &Key, around: &Around, count: usize) -> anyhow::Result<[(Measure, f64); 2]> {
    let tokens = (0..=count).map(|number| key.token(number)).collect::<anyhow::Result<Vec<_>>>()?;
    let oidc = Oidc::new(&around.oidc())?;
    let mut times = Vec::with_capacity(count);
    for token in &tokens {
        let begun = Instant::now();
        let proven = oidc.prove(token).await;
        times.push(begun.elapsed());
        ensure!(proven.is_some_and(|identity| identity.subject == "ann"), "a good token proves nothing");
    }
    // The first one had to wait for the key.
    times.remove(0);
    JWT.of(times)
}

/// Decides about calls.
async fn calls(count: usize) -> anyhow::Result<Vec<(Measure, f64)>> {
    let authorizer = Authorizer::cedar(chain::cedar(100))?;
    // None of these is about one resource, so that every question is put to all of them.
    let general = Authorizer::cedar(CedarSettings { policies: policies::of_teams(100), ..chain::cedar(1) })?;
    let group = |number: usize| json!({"type": "THVGroup", "id": format!("team-{number}")});
    let entity = |number| json!({"uid": group(number), "attrs": {}, "parents": [group(number / 10 + 1000)]});
    let entities = (0..1000).map(entity).collect::<Value>().to_string();
    let peopled = Authorizer::cedar(CedarSettings { entities, ..chain::cedar(100) })?;
    // Those who were here before are known by their claims.
    let somebody = |number: usize| {
        let groups = ["team-1", "team-2", "keepers"];
        let claims = json!({"sub": "ann", "email": "ann@example.com", "groups": groups, "jti": number.to_string()});
        let claims: Map<String, Value> = serde_json::from_value(claims)?;
        Identity::from_claims(claims, "token").map(Arc::new).context("nobody is somebody")
    };
    let call = |tool: &str| {
        let params = json!({"name": tool, "arguments": {"message": "honey"}});
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        Message::read(Bytes::from(text)).map_err(|error| anyhow::anyhow!("{error:?}"))
    };
    let same = somebody(count)?;
    for authorizer in [&authorizer, &general] {
        ensure!(!authorizer.allows(&same, &call("tool-3")?).await, "the policies allow everything");
    }
    let call = call("echo")?;
    let [mut first, mut by_all, mut among, mut again] = [const { Vec::new() }; 4];
    for number in 0..count {
        let another = somebody(number)?;
        let asked = [
            (&authorizer, &another, &mut first),
            (&general, &another, &mut by_all),
            (&peopled, &another, &mut among),
            (&authorizer, &same, &mut again),
        ];
        for (authorizer, caller, times) in asked {
            let begun = Instant::now();
            let is_allowed = authorizer.allows(caller, &call).await;
            times.push(begun.elapsed());
            ensure!(is_allowed, "the policies refuse what they should allow");
        }
    }
    let decisions = [CEDAR.of(first)?, CEDAR_TEAMS.of(by_all)?, CEDAR_ENTITIES.of(among)?, CEDAR_AGAIN.of(again)?];
    Ok(decisions.into_iter().flatten().collect())
}
