//! Ordered parallel batches on rayon: the only threads of the core.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rayon::ThreadPoolBuilder;

use crate::error::{Error, Result};

/// Batches for each worker that may be read and not yet handed on.
const BATCHES_A_WORKER: usize = 2;

/// Threads that hash: as asked for, or as many as the machine has cores.
pub fn workers(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// Runs `work` over all that `source` yields, on `workers` threads, and hands the results to `sink` in order. A single worker is the
/// calling thread.
///
/// A batch stays with the thread that reads it: it lies in the cache of that core, and is mostly handed on by it, too. One thread at a
/// time reads, and one hands on, while the others work. At most `2 · workers` batches exist at any time, whatever the size of the input.
///
/// # Errors
/// The first error in the order of the batches, of `source` or `sink`; nothing is sunk after it.
///
/// # Panics
/// Where `work` does.
pub fn ordered<T: Send, R: Send>(
    workers: usize,
    source: impl FnMut() -> Result<Option<T>> + Send,
    work: impl Fn(T) -> R + Sync,
    sink: impl FnMut(R) -> Result<()> + Send,
) -> Result<()> {
    let line =
        Line { source: Mutex::new(source), sink: Mutex::new(sink), state: Mutex::default(), moved: Condvar::new(), workers };
    let one = || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| line.run(&work))) {
            line.stop(Stopped::Panic(panic));
        }
    };
    if workers <= 1 {
        one();
    } else {
        let pool = ThreadPoolBuilder::new().num_threads(workers).thread_name(|i| format!("hmask-{i}")).build();
        let pool = pool.map_err(|e| Error::io("cannot start the worker threads", std::io::Error::other(e)))?;
        pool.broadcast(|_| one());
    }
    match line.state.into_inner().unwrap_or_else(PoisonError::into_inner).stopped {
        None | Some(Stopped::Ended) => Ok(()),
        Some(Stopped::Error(error)) => Err(error),
        Some(Stopped::Panic(panic)) => resume_unwind(panic),
    }
}

/// What all threads share.
struct Line<S, K, R> {
    source: Mutex<S>,
    sink: Mutex<K>,
    state: Mutex<State<R>>,
    /// Something has been handed on, or the run has stopped.
    moved: Condvar,
    workers: usize,
}

/// Batches between source and sink.
struct State<R> {
    /// How many have been handed on.
    sunk: u64,
    /// What became of the others, the oldest first; none of those still in work.
    done: VecDeque<Option<Result<R>>>,
    /// Whether a thread is handing on.
    sinking: bool,
    stopped: Option<Stopped>,
}

/// Why nothing more is read.
enum Stopped {
    /// All has been.
    Ended,
    /// Nor is anything more handed on.
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl<R> Default for State<R> {
    fn default() -> Self {
        Self { sunk: 0, done: VecDeque::new(), sinking: false, stopped: None }
    }
}

impl<T, R, S: FnMut() -> Result<Option<T>>, K: FnMut(R) -> Result<()>> Line<S, K, R> {
    /// What one thread does.
    fn run(&self, work: &impl Fn(T) -> R) {
        while let Some((number, item)) = self.next() {
            // An error of the source has its place in line: what comes before it is handed on first.
            self.hand_on(number, item.map(work));
        }
    }

    /// The next batch and its number, once there is room for it.
    fn next(&self) -> Option<(u64, Result<T>)> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        while state.stopped.is_none() && state.done.len() >= BATCHES_A_WORKER * self.workers {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped.is_some() {
            return None;
        }
        drop(state);
        let item = source().transpose();
        if !matches!(item, Some(Ok(_))) {
            self.stop(Stopped::Ended);
        }
        let mut state = self.state();
        item.map(|item| {
            let number = state.sunk + state.done.len() as u64; // nobody else adds one: the source is still locked
            state.done.push_back(None);
            (number, item)
        })
    }

    /// Puts a result into its place, and hands on what is now first in line.
    fn hand_on(&self, number: u64, result: Result<R>) {
        let mut state = self.state();
        let place = (number - state.sunk) as usize; // below the number of batches that exist
        state.done[place] = Some(result);
        if state.sinking {
            return; // whoever is at it will see it
        }
        state.sinking = true;
        while matches!(state.stopped, None | Some(Stopped::Ended))
            && let Some(first) = state.done.front_mut().and_then(Option::take)
        {
            drop(state);
            let sunk = first.and_then(|first| self.sink.lock().unwrap_or_else(PoisonError::into_inner)(first));
            if let Err(error) = sunk {
                self.stop(Stopped::Error(error));
            }
            state = self.state();
            state.done.pop_front();
            state.sunk += 1;
            self.moved.notify_all();
        }
        state.sinking = false;
    }

    /// Ends the run; the first reason for it holds, but that all has been read.
    fn stop(&self, why: Stopped) {
        let mut state = self.state();
        if matches!(state.stopped, None | Some(Stopped::Ended)) {
            state.stopped = Some(why);
        }
        self.moved.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(workers: usize, n: u32) -> Vec<u32> {
        let mut next = 0..n;
        let mut out = Vec::new();
        ordered(
            workers,
            || Ok(next.next()),
            |i| {
                if i % 7 == 0 {
                    std::thread::yield_now();
                }
                i * 2
            },
            |r| {
                out.push(r);
                Ok(())
            },
        )
        .unwrap();
        out
    }

    #[test]
    fn results_come_in_order_and_none_is_lost() {
        let want: Vec<u32> = (0..1000).map(|i| i * 2).collect();
        for workers in [1, 2, 5] {
            assert_eq!(run(workers, 1000), want);
            assert_eq!(run(workers, 1), [0]);
            assert!(run(workers, 0).is_empty());
        }
    }

    #[test]
    fn errors_of_both_ends_stop_the_run() {
        let mut n = 0;
        let source = ordered(
            2,
            || {
                n += 1;
                if n == 50 { Err(Error::malformed("here")) } else { Ok(Some(n)) }
            },
            |i| i,
            |_| Ok(()),
        );
        assert_eq!(source.unwrap_err().to_string(), "here");
        let mut seen = 0;
        let sink = ordered(
            2,
            || Ok(Some(())),
            |()| (),
            |()| {
                seen += 1;
                if seen == 3 { Err(Error::malformed("there")) } else { Ok(()) }
            },
        );
        assert_eq!(sink.unwrap_err().to_string(), "there");
        assert_eq!(seen, 3);
    }

    #[test]
    fn what_was_read_before_an_error_is_handed_on_before_it() {
        for workers in [1, 2, 5] {
            let (mut n, mut seen) = (0, Vec::new());
            let source = || {
                n += 1;
                if n > 20 { Err(Error::malformed("the end of the line")) } else { Ok(Some(n)) }
            };
            let work = |i: u32| (0..(21 - i) * 1000).fold(i, |i, _| std::hint::black_box(i));
            let failed = ordered(workers, source, work, |i| {
                seen.push(i);
                Ok(())
            });
            assert_eq!(failed.unwrap_err().to_string(), "the end of the line");
            assert_eq!(seen, (1..=20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_batches_exist_than_are_allowed() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        for workers in [1, 2, 5] {
            let (alive, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let mut n = 0;
            let source = || {
                n += 1;
                most.fetch_max(alive.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                Ok((n < 300).then_some(n))
            };
            ordered(
                workers,
                source,
                |i| i,
                |_| {
                    alive.fetch_sub(1, Ordering::Relaxed);
                    Ok(())
                },
            )
            .unwrap();
            assert!(most.into_inner() <= BATCHES_A_WORKER * workers);
        }
    }

    #[test]
    fn a_panic_of_a_worker_reaches_the_caller() {
        let mut next = 0..100;
        let run = std::panic::AssertUnwindSafe(|| {
            ordered(2, || Ok(next.next()), |i| assert!(i != 42, "the worker's own words"), |()| Ok(()))
        });
        let panic = std::panic::catch_unwind(run).unwrap_err();
        assert!(panic.downcast_ref::<&str>().is_some_and(|t| t.contains("own words")));
        let mut next = 0..100;
        let run = std::panic::AssertUnwindSafe(|| {
            let sink = |i| {
                assert!(i != 42, "the sink's own words");
                Ok(())
            };
            ordered(3, || Ok(next.next()), |i| i, sink)
        });
        let panic = std::panic::catch_unwind(run).unwrap_err();
        assert!(panic.downcast_ref::<&str>().is_some_and(|t| t.contains("own words")));
    }
}
