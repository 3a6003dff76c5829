//! What is measured of a proxy, and what was promised (the budgets of the design, as ratios to the bare proxy).

use crate::mcp::load::{Load, load};
use crate::measure::{Measure, Target};

const ECHO_32: Load = load!("echo", 32);

/// Calls of a tool that answers at once.
pub(super) const ECHO: [Load; 4] = [
    load!("echo", 1),
    load!("echo", 8),
    Load { rate: ECHO_32.rate.must_be(Target::Times(0.7)), cpu: ECHO_32.cpu.must_be(Target::Times(0.5)), ..ECHO_32 },
    load!("echo", 128),
];

/// How much longer one client waits than without a proxy.
pub(super) const ADDED: Measure = Measure::latency("echo, 1 client, added median").must_be(Target::Times(0.5));

/// Calls of a tool whose answer is a stream of 1 MiB.
pub(super) const STREAM: Load = load!("1 MiB event streams", 8);

const STDIO_32: Load = load!("stdio echo", 32);

/// The same as [`ECHO`], with a server on standard input and output. What it is compared with is the bare proxy's echo.
pub(super) const STDIO: [Load; 2] = [
    load!("stdio echo", 1),
    Load {
        rate: STDIO_32.rate.must_be(Target::Times(20.0 / 38.0)),
        cpu: STDIO_32.cpu.must_be(Target::Times(22.0 / 70.0)),
        ..STDIO_32
    },
];

pub(super) const IDLE: Measure = Measure::memory("memory before the first load").must_be(Target::Below(12.0));
/// Without the pages of the program, of which the kernel maps some more or some fewer, as they happen to be at hand.
pub(super) const IDLE_OWN: Measure = Measure::memory("of that, not the program itself");
pub(super) const SESSION: Measure = Measure::small_memory("memory of an idle session");
pub(super) const LISTENER: Measure = Measure::small_memory("memory of an idle session with a stream");
pub(super) const SESSION_ALONE: Measure =
    Measure::small_memory("the session on top of the connection").must_be(Target::Below(25.0));
pub(super) const LISTENER_ALONE: Measure = Measure::small_memory("the same with a stream").must_be(Target::Below(25.0));

/// What is held while sessions begin and end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cycles {
    pub(super) before: Measure,
    pub(super) after: Measure,
    /// What is held after all of them and was not held after a tenth of them.
    pub(super) growth: Measure,
}

impl Cycles {
    fn all(self) -> [Measure; 3] {
        [self.before, self.after, self.growth]
    }
}

pub(super) const CYCLES: Cycles = Cycles {
    before: Measure::memory("memory after a tenth of the session cycles"),
    after: Measure::memory("memory after all session cycles"),
    growth: Measure::memory("growth over all session cycles").must_be(Target::Below(2.0)),
};
pub(super) const STDIO_CYCLES: Cycles = Cycles {
    before: Measure::memory("stdio, after a tenth of the session cycles"),
    after: Measure::memory("stdio, after all session cycles"),
    growth: Measure::memory("stdio, growth over all session cycles").must_be(Target::Below(2.0)),
};

/// Everything, in the order of the table.
pub(crate) fn all() -> Vec<Measure> {
    let loads = ECHO.into_iter().chain([STREAM]).chain(STDIO);
    let memory = [IDLE, IDLE_OWN, SESSION, SESSION_ALONE, LISTENER, LISTENER_ALONE];
    let cycles = CYCLES.all().into_iter().chain(STDIO_CYCLES.all());
    [ADDED].into_iter().chain(loads.flat_map(Load::all)).chain(memory).chain(cycles).collect()
}
