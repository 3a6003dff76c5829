//! What every controller is made of: the name of an object, a watched copy of all objects of a kind, a queue of objects
//! to look at, and the loop that works it off. It knows no kind and needs nothing but a `kube::Client`.

mod cache;
mod change;
mod keeper;
mod key;
mod queue;
mod store;
mod trouble;
mod worker;

pub use cache::Cache;
pub use change::Change;
pub use keeper::{Keeper, Whole};
pub use key::Key;
pub use queue::Queue;
pub use worker::{Failure, Next, Observer, work};
