//! A progress bar on standard error, if it is a terminal and the work is long.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use gristmill_runtime::Control;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

/// Shorter work shows no bar.
const SHOW_AFTER: Duration = Duration::from_millis(500);
const REFRESH: Duration = Duration::from_millis(100);

/// A thread that shows the progress of a request until this is dropped.
pub struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the thread. It shows nothing unless standard error is a terminal.
    pub fn start(control: Arc<Control>, quiet: bool) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        if quiet || !std::io::stderr().is_terminal() {
            return Watch { over, thread: None };
        }
        let flag = over.clone();
        let thread = std::thread::spawn(move || {
            std::thread::park_timeout(SHOW_AFTER);
            if flag.load(Ordering::Relaxed) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style("{bar:40} {percent}% {elapsed} (about {eta} left)"));
            set_shown(&bar);
            while !flag.load(Ordering::Relaxed) {
                let (done, total) = control.progress();
                bar.set_length(total);
                bar.set_position(done.min(total));
                std::thread::park_timeout(REFRESH);
            }
            bar.finish_and_clear();
        });
        Watch { over, thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the bar does not matter.
            let _ = thread.join();
        }
    }
}

/// A bar over copied bytes, for `put` and `get`.
pub fn bytes_bar(total: u64, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    bar.set_style(style("{bar:40} {bytes}/{total_bytes} {bytes_per_sec}"));
    set_shown(&bar);
    bar
}

/// The bar on the terminal, so that a signal can remove it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn set_shown(bar: &ProgressBar) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(bar.clone().with_finish(ProgressFinish::AndClear));
}

/// Removes the bar from the terminal, before the program ends in the middle of its work.
pub fn clear() {
    if let Some(bar) = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
