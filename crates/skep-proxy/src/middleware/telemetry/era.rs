//! What is known about the era of the server, as metrics.

use std::borrow::Cow;

use super::meters::{Kind, Metric, Reading, SECONDS, counter};
use super::series::{Label, Point};
use crate::eras::record::Status;

const ERA: Metric = Metric {
    name: "skep_backend_era",
    unit: "",
    description: "The era of the server, which is in the label; always 1",
    kind: Kind::UpDown,
};
const AGE: Metric = Metric {
    name: "skep_backend_era_age",
    unit: SECONDS,
    description: "How long ago the era of the server was found out, or said",
    kind: Kind::UpDown,
};
const CHANGES: Metric =
    counter("skep_backend_era_reclassifications", "How often the server was found to be of another era than before");

/// What these metrics say, under the labels of the server.
pub(super) fn readings(status: &Status, server: &[Label<'_>]) -> [Reading; 3] {
    let labels: Vec<Label<'static>> =
        server.iter().map(|(name, value)| (*name, Cow::Owned(value.clone().into_owned()))).collect();
    let mut of_era = labels.clone();
    of_era.push(("era", Cow::Borrowed(status.verdict.name())));
    let seconds = i64::try_from(status.age.as_secs()).unwrap_or(i64::MAX);
    [
        Reading { metric: &ERA, points: vec![(of_era.into(), Point::Level(1))] },
        Reading { metric: &AGE, points: vec![(labels.clone().into(), Point::Level(seconds))] },
        Reading { metric: &CHANGES, points: vec![(labels.into(), Point::Count(status.changes))] },
    ]
}
