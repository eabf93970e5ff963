// SPDX-License-Identifier: Apache-2.0
//! Threads that do one job side by side, all of them from one moment to another.

use super::job::{Job, Work};
use crate::clock::{measure, wait};
use crate::meter::Done;
use crate::speed::subject::Operation;
use crate::{Failure, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The clock is looked at after so much work.
const CHUNK: Duration = Duration::from_micros(50);

/// Who makes operations; each thread has its own.
pub(super) trait Maker: Send + Sync {
    /// An operation with its own session and buffers.
    ///
    /// # Errors
    /// This one cannot do it.
    fn make(&self, job: &Job) -> Result<Box<dyn Operation>>;

    /// What the job gives, where all must get the same.
    ///
    /// # Errors
    /// This one cannot do it.
    fn result(&self, job: &Job) -> Result<Option<Vec<u8>>>;
}

/// The threads.
pub(super) struct Team {
    members: Vec<Member>,
}

/// A thread as the others see it.
struct Member {
    orders: Sender<Order>,
    results: Receiver<Result<Done>>,
}

/// So long, once all are there.
struct Order {
    length: Duration,
    gate: Arc<AtomicUsize>,
}

impl Team {
    /// Starts the threads; each has done its job once, and checked it.
    ///
    /// # Errors
    /// The job cannot be done, or its result is wrong.
    pub(super) fn new(maker: &Arc<dyn Maker>, work: &Work, threads: usize) -> Result<Self> {
        let members = (0..threads).map(|_| Member::start(Arc::clone(maker), work.clone()));
        Ok(Self { members: members.collect::<Result<_>>()? })
    }

    /// All of them work for so long; afterwards each one's last result is checked.
    ///
    /// # Errors
    /// A call failed, or a result is wrong.
    pub(super) fn run(&self, length: Duration) -> Result<Done> {
        let gate = Arc::new(AtomicUsize::new(self.members.len()));
        for member in &self.members {
            let order = Order { length, gate: Arc::clone(&gate) };
            member.orders.send(order).map_err(|_| ended())?;
        }
        let mut all = Done::default();
        for member in &self.members {
            let done = member.results.recv().map_err(|_| ended())??;
            all.operations += done.operations;
            all.cpu_ns += done.cpu_ns;
            all.wall_ns = all.wall_ns.max(done.wall_ns);
        }
        Ok(all)
    }
}

fn ended() -> Failure {
    Failure::new("a worker thread ended early")
}

impl Member {
    fn start(maker: Arc<dyn Maker>, work: Work) -> Result<Self> {
        let (orders, received) = channel::<Order>();
        let (sender, results) = channel();
        std::thread::spawn(move || match prepared(maker.as_ref(), &work) {
            Ok((operation, chunk)) => {
                if sender.send(Ok(Done::default())).is_ok() {
                    obey(operation, chunk, &received, &sender);
                }
            }
            // A receiver that is gone has stopped caring.
            Err(failure) => drop(sender.send(Err(failure))),
        });
        let member = Self { orders, results };
        member.results.recv().map_err(|_| ended())??;
        Ok(member)
    }
}

/// The operation, done once and checked, and how many take as long as a chunk.
fn prepared(maker: &dyn Maker, work: &Work) -> Result<(Box<dyn Operation>, u64)> {
    let parts = work.iter().map(|(job, times)| Ok((maker.make(job)?, *times)));
    let mut parts = parts.collect::<Result<Vec<_>>>()?;
    // One job is not called through a round.
    let mut operation = match (parts.len(), parts.pop()) {
        (1, Some((operation, 1))) => operation,
        (_, last) => Box::new(Round(parts.into_iter().chain(last).collect())),
    };
    operation.repeat(1)?;
    operation.check()?;
    let mut chunk = 1;
    loop {
        let (done, spent) = measure(|| operation.repeat(chunk));
        done?;
        if spent.cpu * 2 > CHUNK || chunk >= 1 << 30 {
            return Ok((operation, chunk));
        }
        chunk *= 2;
    }
}

/// Several operations, each so many times.
struct Round(Vec<(Box<dyn Operation>, u64)>);

impl Operation for Round {
    fn repeat(&mut self, times: u64) -> Result<()> {
        (0..times).try_for_each(|_| {
            self.0.iter_mut().try_for_each(|(operation, times)| operation.repeat(*times))
        })
    }

    fn check(&mut self) -> Result<()> {
        self.0.iter_mut().try_for_each(|(operation, _)| operation.check())
    }
}

/// A thread's life: works as long as it is told, tells what that took, has its last result checked.
fn obey(
    mut operation: Box<dyn Operation>,
    chunk: u64,
    orders: &Receiver<Order>,
    results: &Sender<Result<Done>>,
) {
    for Order { length, gate } in orders {
        wait(&gate);
        let (done, spent) = measure(|| {
            let (began, mut operations) = (Instant::now(), 0);
            while operations == 0 || began.elapsed() < length {
                operation.repeat(chunk)?;
                operations += chunk;
            }
            Ok(operations)
        });
        let checked = done.and_then(|operations| operation.check().map(|()| operations));
        let done = checked.map(|operations| Done {
            operations: operations as f64,
            cpu_ns: spent.cpu.as_secs_f64() * 1e9,
            wall_ns: spent.wall.as_secs_f64() * 1e9,
        });
        if results.send(done).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::{Function, Key, Parameter};
    use super::*;
    use crate::speed::subject::{Loop, expect};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts, and is wrong from some operation on.
    struct Counting {
        done: Arc<AtomicU64>,
        wrong_after: u64,
    }

    impl Maker for Counting {
        fn make(&self, _job: &Job) -> Result<Box<dyn Operation>> {
            let (counter, seen, most) =
                (Arc::clone(&self.done), Arc::clone(&self.done), self.wrong_after);
            Ok(Loop::boxed(
                (),
                move |()| {
                    counter.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                },
                move |()| expect(seen.load(Ordering::Relaxed) <= most, "too many"),
            ))
        }

        fn result(&self, _job: &Job) -> Result<Option<Vec<u8>>> {
            Ok(None)
        }
    }

    const JOB: Job = Job {
        mechanism: metaslot_ck::CKM_MD5,
        function: Function::Digest,
        key: Key::None,
        parameter: Parameter::None,
        bytes: 16,
    };

    fn team(wrong_after: u64) -> (Arc<AtomicU64>, Result<Team>) {
        let done = Arc::new(AtomicU64::new(0));
        let maker: Arc<dyn Maker> = Arc::new(Counting { done: Arc::clone(&done), wrong_after });
        (done, Team::new(&maker, &vec![(JOB, 1)], 3))
    }

    #[test]
    fn every_operation_of_every_thread_is_counted() {
        let (done, team) = team(u64::MAX);
        let (team, before) = (team.unwrap(), done.load(Ordering::Relaxed));
        let ran = team.run(Duration::from_millis(3)).unwrap();
        assert_eq!(ran.operations, (done.load(Ordering::Relaxed) - before) as f64);
        assert!(ran.wall_ns >= 3e6 && ran.cpu_ns > 0.0, "{ran:?}");
    }

    #[test]
    fn a_wrong_result_is_no_sample() {
        assert!(team(0).1.is_err());
        // Right when it is made ready, wrong later.
        let team = team(1 << 21).1.unwrap();
        let failure = (0..1000).find_map(|_| team.run(Duration::from_millis(5)).err());
        assert_eq!(failure.unwrap().message, "wrong result: too many");
    }
}
