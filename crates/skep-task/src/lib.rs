//! Tasks that do not trouble the scheduler.
//!
//! A connection of hyper wakes itself whenever the handler of a request takes a piece of the body: both are the same
//! task. The scheduler puts such a task at the end of its queue and wakes a second thread, which then takes the task and
//! everything it has in its processor's cache. For a small request that is most of the work. [`Prompt`] goes on at once
//! instead.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// How often in a row. One that always wakes itself must let others in.
const ROUNDS: usize = 8;

/// Nobody looks at the future: to wake it is to wake its task.
const RESTING: u8 = 0;
/// It is being polled.
const POLLED: u8 = 1;
/// It is being polled, and was woken meanwhile.
const WOKEN: u8 = 2;

/// A future that is polled again at once when it was woken while it was polled.
#[derive(Debug)]
pub struct Prompt<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Debug)]
struct Bell {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted =
            self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| (state != RESTING).then_some(WOKEN));
        if noted.is_err() {
            self.task.wake();
        }
    }
}

impl<F: Future> Prompt<F> {
    /// Wraps a future, or all of a task.
    pub fn new(future: F) -> Self {
        let bell = Arc::new(Bell { state: AtomicU8::new(RESTING), task: AtomicWaker::new() });
        Self { future: Box::pin(future), waker: Waker::from(Arc::clone(&bell)), bell }
    }

    /// The future itself. What is done to it between two polls is not seen here, so that its task must be awake.
    pub fn inner(&mut self) -> Pin<&mut F> {
        self.future.as_mut()
    }
}

impl<F: Future> Future for Prompt<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        this.bell.task.register(context.waker());
        let mut again = Context::from_waker(&this.waker);
        for _ in 0..ROUNDS {
            this.bell.state.store(POLLED, Ordering::Release);
            if let Poll::Ready(output) = this.future.as_mut().poll(&mut again) {
                return Poll::Ready(output);
            }
            // Whoever wakes it from here on wakes the task.
            let rested = this.bell.state.compare_exchange(POLLED, RESTING, Ordering::AcqRel, Ordering::Acquire);
            if rested.is_ok() {
                return Poll::Pending;
            }
        }
        this.bell.state.store(RESTING, Ordering::Release);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::task::Waker;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Counter {
        fn count(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// A future that wakes itself so many times before it is done.
    fn restless(times: usize) -> Prompt<impl Future<Output = usize>> {
        let mut polls = 0;
        Prompt::new(poll_fn(move |context| {
            polls += 1;
            if polls > times {
                return Poll::Ready(polls);
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    #[test]
    fn what_wakes_itself_does_not_wake_its_task() {
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let polled = Pin::new(&mut restless(ROUNDS - 1)).poll(&mut Context::from_waker(&waker));
        assert_eq!((polled, counter.count()), (Poll::Ready(ROUNDS), 0));
    }

    #[test]
    fn what_is_woken_later_wakes_its_task() {
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut kept = None;
        let mut resting = Prompt::new(poll_fn(|context| {
            kept = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        assert_eq!(Pin::new(&mut resting).poll(&mut Context::from_waker(&waker)), Poll::Pending);
        drop(resting);
        kept.take().unwrap().wake();
        assert_eq!(counter.count(), 1);
    }

    proptest! {
        /// However restless: others get their turn, and it ends.
        #[test]
        fn everything_ends(times in 0_usize..100) {
            let counter = Arc::new(Counter::default());
            let waker = Waker::from(Arc::clone(&counter));
            let mut future = restless(times);
            let mut turns = 1;
            let polls = loop {
                match Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(polls) => break polls,
                    Poll::Pending => turns += 1,
                }
            };
            prop_assert_eq!(polls, times + 1);
            prop_assert_eq!(turns, times / ROUNDS + 1);
            prop_assert_eq!(counter.count(), turns - 1);
        }
    }

    /// No wake-up gets lost between threads: each of many is seen, or the future would never be done.
    #[test]
    fn wakes_of_other_threads_are_not_lost() {
        const WAKES: usize = 20_000;
        let done = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&done);
        let (send, receive) = std::sync::mpsc::channel::<Waker>();
        let worker = std::thread::spawn(move || {
            while let Ok(waker) = receive.recv() {
                done.fetch_add(1, Ordering::Relaxed);
                waker.wake();
            }
        });
        let mut asked = 0;
        let counted = futures::executor::block_on(Prompt::new(poll_fn(move |context| {
            let seen = seen.load(Ordering::Relaxed);
            if seen == WAKES {
                return Poll::Ready(seen);
            }
            if seen == asked {
                asked += 1;
                send.send(context.waker().clone()).unwrap();
            }
            Poll::Pending
        })));
        assert_eq!(counted, WAKES);
        worker.join().unwrap();
    }
}
