//! The terminal, its keys, and requests to the entry node.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use gristmill_client::{ClientError, Cluster};
use gristmill_runtime::Control;
use gristmill_wire::ClusterStatus;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::closed_terminal::end_with_terminal;
use super::screen::{KeyOutcome, Screen};
use crate::error::{CliError, INTERRUPTED};
use crate::interrupt::stop_on_signal;

/// Longest time until a signal or an answer is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The terminal in full-screen mode. Dropping this restores it, after a panic too.
struct TerminalGuard(DefaultTerminal);

impl TerminalGuard {
    fn take() -> Result<TerminalGuard, CliError> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(TerminalGuard(terminal)),
            Err(error) => {
                // Some of it may have been done.
                let _ = ratatui::try_restore();
                Err(CliError::Terminal(error))
            }
        }
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _ = ratatui::try_restore();
    }
}

/// Shows a cluster until a key or a signal ends it.
pub fn live(cluster: Cluster, first: ClusterStatus, interval: Duration) -> Result<ExitCode, CliError> {
    let signalled = Arc::new(Control::new());
    stop_on_signal(&signalled)?;
    let mut screen = Screen::new(cluster.entry(), first);
    // Dropping `_over` ends the thread at its next request.
    let (_over, over) = sync_channel(0);
    let (answer, answers) = sync_channel(1);
    let ask = move || ask(&cluster, interval, &over, &answer);
    std::thread::Builder::new()
        .name("top".into())
        .spawn(ask)
        .map_err(|error| CliError::System(format!("cannot start a thread: {error}")))?;
    end_with_terminal()?;
    let mut terminal_guard = TerminalGuard::take()?;
    let mut last_answer = Instant::now();
    loop {
        terminal_guard.0.draw(|frame| screen.draw(frame)).map_err(CliError::Terminal)?;
        // Wait until there is something new to draw.
        loop {
            if signalled.stopped() {
                return Ok(ExitCode::from(INTERRUPTED));
            }
            match answers.try_recv() {
                Ok(Ok(cluster)) => {
                    last_answer = Instant::now();
                    screen.update(cluster);
                    break;
                }
                Ok(Err(error)) => {
                    screen.no_answer(&error.to_string(), last_answer.elapsed());
                    break;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    return Err(CliError::Internal { what: "the thread that asks the nodes has ended" });
                }
            }
            if event::poll(POLL_INTERVAL).map_err(CliError::Terminal)? {
                if let Event::Key(key) = event::read().map_err(CliError::Terminal)?
                    && key.kind != KeyEventKind::Release
                    && screen.key(key) == KeyOutcome::Quit
                {
                    return Ok(ExitCode::SUCCESS);
                }
                break;
            }
        }
    }
}

/// Asks for the status every `interval` until the receiver or `over` is dropped.
fn ask(
    cluster: &Cluster,
    interval: Duration,
    over: &Receiver<()>,
    answer: &SyncSender<Result<ClusterStatus, ClientError>>,
) {
    while let Err(RecvTimeoutError::Timeout) = over.recv_timeout(interval) {
        if answer.send(cluster.status()).is_err() {
            return;
        }
    }
}
