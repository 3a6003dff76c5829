//! What is measured, and what was promised.

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    StartToReady,
    CustomResources,
    ConfigMaps,
    ConfigMapsOneByOne,
    Updates,
    List,
    FanOut,
    SlowestFanOut,
    Memory,
    MemoryAfterwards,
}

/// Which of two figures is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// So many times better than the real server's.
    Times(f64),
    /// Less than this, whatever the real server does.
    Below(f64),
}

impl Measure {
    pub(crate) const ALL: [Self; 10] = [
        Self::StartToReady,
        Self::CustomResources,
        Self::ConfigMaps,
        Self::ConfigMapsOneByOne,
        Self::Updates,
        Self::List,
        Self::FanOut,
        Self::SlowestFanOut,
        Self::Memory,
        Self::MemoryAfterwards,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::StartToReady => "start to ready",
            Self::CustomResources => "create MCPServers of 3 KB, 4 connections",
            Self::ConfigMaps => "create ConfigMaps of 1 KB, 4 connections",
            Self::ConfigMapsOneByOne => "create ConfigMaps of 1 KB, 1 connection",
            Self::Updates => "update MCPServers, 4 connections",
            Self::List => "list all MCPServers",
            Self::FanOut => "write to event, 100 watchers, median",
            Self::SlowestFanOut => "write to event, 100 watchers, 99th percentile",
            Self::Memory => "memory with all MCPServers",
            Self::MemoryAfterwards => "memory at the end",
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self.better() {
            Better::More => "/s",
            Better::Less if matches!(self, Self::Memory | Self::MemoryAfterwards) => "MiB",
            Better::Less => "ms",
        }
    }

    pub(crate) fn better(self) -> Better {
        match self {
            Self::CustomResources | Self::ConfigMaps | Self::ConfigMapsOneByOne | Self::Updates => Better::More,
            _ => Better::Less,
        }
    }

    pub(crate) fn target(self) -> Option<Target> {
        match self {
            Self::StartToReady => Some(Target::Below(150.0)),
            Self::CustomResources | Self::ConfigMaps => Some(Target::Times(3.0)),
            Self::Memory => Some(Target::Below(60.0)),
            _ => None,
        }
    }
}
