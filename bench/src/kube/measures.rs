//! What is measured of an API server.

use crate::measure::{Measure, Target};

pub(crate) const START_TO_READY: Measure = Measure::time("start to ready").must_be(Target::Below(150.0));
pub(crate) const CUSTOM_RESOURCES: Measure =
    Measure::rate("create MCPServers of 3 KB, 4 connections").must_be(Target::Times(3.0));
pub(super) const CONFIG_MAPS: Measure =
    Measure::rate("create ConfigMaps of 1 KB, 4 connections").must_be(Target::Times(3.0));
pub(super) const CONFIG_MAPS_ONE_BY_ONE: Measure = Measure::rate("create ConfigMaps of 1 KB, 1 connection");
pub(super) const UPDATES: Measure = Measure::rate("update MCPServers, 4 connections");
pub(super) const LIST: Measure = Measure::time("list all MCPServers");
pub(super) const FAN_OUT: Measure = Measure::time("write to event, 100 watchers, median");
pub(super) const SLOWEST_FAN_OUT: Measure = Measure::time("write to event, 100 watchers, 99th percentile");
pub(super) const MEMORY: Measure = Measure::memory("memory with all MCPServers").must_be(Target::Below(60.0));
pub(super) const MEMORY_AFTERWARDS: Measure = Measure::memory("memory at the end");

pub(crate) const ALL: [Measure; 10] = [
    START_TO_READY,
    CUSTOM_RESOURCES,
    CONFIG_MAPS,
    CONFIG_MAPS_ONE_BY_ONE,
    UPDATES,
    LIST,
    FAN_OUT,
    SLOWEST_FAN_OUT,
    MEMORY,
    MEMORY_AFTERWARDS,
];
