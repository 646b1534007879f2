//! `uflip run --live`: the terminal as one page that is drawn anew while runs
//! are measured.
//!
//! Method: a thread of the lowest priority wakes five times a second, copies what
//! the timed loops have handed over since (`uflip_store::recorder::Watch`), adds
//! it to the picture of the run (`picture.rs`) and draws the page with one write
//! to standard error. The loops are those of any other run. The terminal gets its
//! own screen back when the page is dropped, whatever ends the run.

mod page;
mod picture;

use crate::interrupt::STOP;
use page::Board;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uflip_device::Nanos;
use uflip_device::process::be_modest;
use uflip_measure::run::{RunSpec, RunStats};
use uflip_store::recorder::RecordWatch;

/// Time between two pages.
const EVERY: Duration = Duration::from_millis(200);
/// Records copied for one page, at most: the rest waits for the next one.
const GLANCES: usize = 256;

/// Another screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// The screen and the cursor as they were.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The page while it is shown.
pub struct Live {
    board: Arc<Mutex<Board>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub fn start(title: String, budget: Option<Nanos>, watch: RecordWatch) -> anyhow::Result<Live> {
        let board = Arc::new(Mutex::new(Board::new(title, budget)));
        let over = Arc::new(AtomicBool::new(false));
        let (shown, ended) = (board.clone(), over.clone());
        let draw = move || {
            be_modest();
            show(&shown, &ended, watch);
        };
        let thread = std::thread::Builder::new().name("uflip-live".into()).spawn(draw)?;
        Ok(Live { board, over, thread: Some(thread) })
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// More runs are planned, so many of each group.
    pub fn expect<'a>(&self, groups: impl Iterator<Item = (&'a str, u64)>) {
        self.board().expect(groups);
    }

    /// A run begins.
    pub fn started(&self, group: &str, what: String, spec: &RunSpec) {
        self.board().started(group, what, spec);
    }

    /// A run is kept.
    pub fn finished(&self, group: &str, what: &str, stats: &RunStats) {
        self.board().finished(group, what, stats);
    }

    /// Something other than a run takes time.
    pub fn note(&self, text: &str) {
        self.board().note = text.to_string();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It gives the terminal back itself, also where it panics.
            let _ = thread.join();
        }
    }
}

/// The terminal's own screen comes back when this is dropped.
struct Screen;

impl Screen {
    fn take() -> Screen {
        write(ENTER);
        Screen
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write(LEAVE);
    }
}

/// A page that cannot be shown loses nothing that is measured.
fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn show(board: &Mutex<Board>, over: &AtomicBool, mut watch: RecordWatch) {
    let _screen = Screen::take();
    let mut records = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let mut page = board.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..GLANCES {
            records.clear();
            let Some(seen) = watch.glance(&mut records) else { break };
            page.see(seen, &records);
        }
        let (rows, columns) = console::Term::stderr().size();
        let text = page.draw(usize::from(columns), usize::from(rows), STOP.after_this_run());
        drop(page);
        write(&text);
        std::thread::park_timeout(EVERY.saturating_sub(began.elapsed()));
    }
}
