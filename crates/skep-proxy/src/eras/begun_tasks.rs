//! The tasks that clients have begun here, where the server may show all of them to everybody. Whoever asks for a list is
//! told of its own.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;

use super::holder::Holder;
use crate::tally::Tally;

/// Tasks that are remembered of one client, and of all.
const PER_CLIENT: usize = 1024;
const ALL: usize = 16 << 10;
/// Bytes of an id that is remembered.
const LONGEST: usize = 512;

/// Who has begun which tasks, by what the server calls them. What was begun first is forgotten first.
#[derive(Debug, Default)]
pub(crate) struct BegunTasks(Mutex<Begun>);

#[derive(Debug, Default)]
struct Begun {
    known: HashSet<(Holder, Box<str>)>,
    order: VecDeque<(Holder, Box<str>)>,
    each: Tally<Holder>,
}

impl BegunTasks {
    /// Somebody has begun a task.
    pub(super) fn note(&self, holder: &Holder, id: &str) {
        let mut begun = self.0.lock();
        let task = (holder.clone(), Box::from(id));
        if id.len() > LONGEST || begun.each.of(holder) >= PER_CLIENT || !begun.known.insert(task.clone()) {
            return;
        }
        begun.order.push_back(task);
        begun.each.add(holder.clone());
        if begun.order.len() > ALL
            && let Some(first) = begun.order.pop_front()
        {
            begun.known.remove(&first);
            begun.each.remove(&first.0);
        }
    }

    /// Whether a task is somebody's.
    pub(super) fn has(&self, holder: &Holder, id: &str) -> bool {
        self.0.lock().known.contains(&(holder.clone(), Box::from(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_tasks_are_remembered_of_one_client_and_of_all() {
        let (begun, client) = (BegunTasks::default(), |number: usize| Holder::Known(number.to_string().into()));
        for number in 0..2 * PER_CLIENT {
            begun.note(&client(0), &number.to_string());
        }
        assert!(begun.has(&client(0), "0") && begun.has(&client(0), &(PER_CLIENT - 1).to_string()));
        assert!(!begun.has(&client(0), &PER_CLIENT.to_string()) && !begun.has(&client(1), "0"));
        begun.note(&client(1), &"x".repeat(LONGEST + 1));
        for number in 0..ALL {
            begun.note(&client(1 + number % 100), &format!("t{number}"));
        }
        let held = begun.0.lock();
        assert_eq!((held.known.len(), held.order.len()), (ALL, ALL));
        assert!(!held.known.contains(&(client(0), "0".into())), "what was begun first is forgotten first");
    }
}
