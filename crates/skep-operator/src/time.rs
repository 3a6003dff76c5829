//! The time as conditions carry it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{Timestamp, Unit};

/// Now, in whole seconds: the API server keeps no more.
pub fn now() -> Time {
    let now = Timestamp::now();
    Time(now.round(Unit::Second).unwrap_or(now))
}
