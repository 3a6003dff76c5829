//! A server on standard input and output, as its clients meet it through the proxy. The server is the test itself, so
//! that it can do what real ones do only now and then.

mod cancellation;
mod changed;
mod chaos;
mod correlation;
mod crowd;
mod eras;
mod faults;
mod hostile;
mod listeners;
mod notifications;
mod oddities;
mod own_process;
mod process;
mod resumption;
mod revisions;
pub(crate) mod server;
mod sessions;
pub(crate) mod sse;
mod stopping;
mod subscriptions;
