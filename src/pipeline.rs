//! Ordered parallel batches on rayon: the only threads of the core.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::ThreadPoolBuilder;

use crate::error::{Error, ErrorKind, Result};

/// Batches under way for each worker: one in work, one waiting, so that no worker starves while the oldest is awaited.
const BATCHES_A_WORKER: usize = 2;

/// Threads that hash: as asked for, or as many as the machine has cores.
pub fn workers(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// Runs `work` over all that `source` yields, on `workers` threads, and hands the results to `sink` in order.
///
/// `source` and `sink` run on the calling thread, so that reading and writing overlap with the work.
/// At most `2 · workers + 1` batches exist at any time, whatever the size of the input.
///
/// # Errors
/// The first error of `source` or `sink`; nothing is sunk after it.
///
/// # Panics
/// Where `work` does.
pub fn ordered<T: Send, R: Send>(
    workers: usize,
    mut source: impl FnMut() -> Result<Option<T>>,
    work: impl Fn(T) -> R + Sync,
    mut sink: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(workers)
        .thread_name(|i| format!("hmask-{i}"))
        .build()
        .map_err(|e| Error::io("cannot start the worker threads", std::io::Error::other(e)))?;
    let work = &work;
    pool.in_place_scope(|scope| {
        let mut under_way: VecDeque<Receiver<R>> = VecDeque::new();
        // A worker hangs up only when it panics; the scope then passes the panic on.
        let mut finish = |result: Receiver<R>| sink(result.recv().map_err(|_| Error::new(ErrorKind::Interrupted))?);
        while let Some(item) = source()? {
            let (done, result) = sync_channel(1);
            under_way.push_back(result);
            scope.spawn(move |_| {
                // Nobody listens any more when an earlier batch has failed.
                let _ = done.send(work(item));
            });
            if under_way.len() > BATCHES_A_WORKER * workers
                && let Some(oldest) = under_way.pop_front()
            {
                finish(oldest)?;
            }
        }
        under_way.drain(..).try_for_each(finish)
    })
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
    fn a_panic_of_a_worker_reaches_the_caller() {
        let mut next = 0..100;
        let run = std::panic::AssertUnwindSafe(|| {
            ordered(2, || Ok(next.next()), |i| assert!(i != 42, "the worker's own words"), |()| Ok(()))
        });
        let panic = std::panic::catch_unwind(run).unwrap_err();
        assert!(panic.downcast_ref::<&str>().is_some_and(|t| t.contains("own words")));
    }
}
