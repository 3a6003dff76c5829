//! What is written to the log while a test runs.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// The warnings of a test, which has to run on one thread with all that it starts.
pub(crate) struct Warnings {
    texts: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
    _other: Dispatch,
}

impl Warnings {
    /// Listens from now on.
    pub(crate) fn listen() -> Self {
        Self::down_to(Level::WARN)
    }

    /// The same, for what matters less, too.
    pub(crate) fn down_to(level: Level) -> Self {
        // Where somebody listens alone, a thread on which nobody does may decide that nobody wants to know.
        let other = Dispatch::new(Listener(Arc::default(), Level::ERROR));
        let texts = Arc::default();
        let guard = tracing::subscriber::set_default(Listener(Arc::clone(&texts), level));
        Self { texts, _guard: guard, _other: other }
    }

    /// Those since this was last asked.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.texts.lock().unwrap())
    }
}

struct Listener(Arc<Mutex<Vec<String>>>, Level);

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.1
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// All that an event says.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}
