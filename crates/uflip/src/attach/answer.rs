//! Answers requests when the model says that they are done.
//!
//! What: requests are served by the model as they arrive, and each answer
//! waits in a queue ordered by the time it is due. One thread of its own sends
//! them, so that any number may be on their way and the threads that take
//! requests never wait.

use super::lateness::{Lateness, LatenessReport};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use uflip_device::{Mode, Nanos, process};

/// Sends one answer.
pub type Send = Box<dyn FnOnce() + std::marker::Send>;

/// An answer and when it is due, on the clock of the attachment.
struct Waiting {
    due: Nanos,
    /// Requests due at the same time are answered in the order of arrival.
    turn: u64,
    arrived: Nanos,
    mode: Mode,
    send: Send,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.turn == other.turn
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// The greatest is the one due first: the heap's top.
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.due, other.turn).cmp(&(self.due, self.turn))
    }
}

#[derive(Default)]
struct Queue {
    waiting: BinaryHeap<Waiting>,
    turns: u64,
    closed: bool,
}

/// The queue, the clock and the figures, shared by all threads.
pub struct Answers {
    began: Instant,
    queue: Mutex<Queue>,
    more: Condvar,
    lateness: Mutex<Lateness>,
}

/// A panic elsewhere leaves these locks' data whole: each change is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answers {
    /// An empty queue whose clock starts now, and its thread.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn start() -> std::io::Result<Arc<Answers>> {
        let answers = Arc::new(Answers {
            began: Instant::now(),
            queue: Mutex::default(),
            more: Condvar::new(),
            lateness: Mutex::new(Lateness::new()),
        });
        let shared = Arc::clone(&answers);
        std::thread::Builder::new().name("answers".into()).spawn(move || {
            process::exact_timers();
            shared.send_all();
        })?;
        Ok(answers)
    }

    /// Time since the start.
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Has `send` called once it is `due`.
    pub fn at(&self, due: Nanos, arrived: Nanos, mode: Mode, send: Send) {
        let mut queue = lock(&self.queue);
        let turn = queue.turns;
        queue.turns += 1;
        let first = queue.waiting.peek().is_none_or(|top| due < top.due);
        queue.waiting.push(Waiting { due, turn, arrived, mode, send });
        drop(queue);
        if first {
            self.more.notify_one();
        }
    }

    /// The figures so far.
    pub fn report(&self) -> LatenessReport {
        lock(&self.lateness).report()
    }

    /// Ends the thread; what still waits is dropped.
    pub fn close(&self) {
        lock(&self.queue).closed = true;
        self.more.notify_one();
    }

    fn send_all(&self) {
        while let Some(waiting) = self.next_due() {
            (waiting.send)();
            lock(&self.lateness).note(waiting.mode, waiting.arrived, waiting.due, self.now());
        }
    }

    /// Waits until the first answer is due.
    fn next_due(&self) -> Option<Waiting> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.closed {
                return None;
            }
            let due = queue.waiting.peek().map(|top| top.due);
            queue = match due.map(|due| due.0.saturating_sub(self.now().0)) {
                Some(0) => return queue.waiting.pop(),
                Some(left) => {
                    let wait = self.more.wait_timeout(queue, Duration::from_nanos(left));
                    wait.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.more.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn answers_come_in_the_order_they_are_due_and_never_early() {
        let answers = Answers::start().unwrap();
        let (sent, received) = mpsc::channel();
        let now = answers.now();
        for ms in [30_u64, 10, 20, 10, 0] {
            let (sent, shared) = (sent.clone(), Arc::clone(&answers));
            let due = Nanos(now.0 + ms * 1_000_000);
            answers.at(due, now, Mode::Read, Box::new(move || sent.send((ms, due, shared.now())).unwrap()));
        }
        let got: Vec<_> = (0..5).map(|_| received.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
        assert_eq!(got.iter().map(|g| g.0).collect::<Vec<_>>(), [0, 10, 10, 20, 30]);
        assert!(got.iter().all(|(_, due, at)| at >= due), "answered early: {got:?}");
        // The last is counted right after it was sent.
        let deadline = Instant::now() + Duration::from_secs(20);
        while answers.report().requests < 5 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(answers.report().requests, 5);
        answers.close();
    }
}
