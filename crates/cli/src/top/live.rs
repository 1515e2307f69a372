//! The terminal, keys, and questions to the entry node.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use gristmill_client::{ClientError, Cluster};
use gristmill_runtime::Control;
use gristmill_wire::ClusterStatus;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::gone::end_with_the_terminal;
use super::screen::{Screen, Then};
use crate::error::{CliError, INTERRUPTED};
use crate::interrupt::stop_on_signal;

/// Longest that a signal or an answer waits to be looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The terminal for as long as this lives. It is given back as it was however this ends, by a panic too.
struct Held(DefaultTerminal);

impl Held {
    fn take() -> Result<Held, CliError> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Held(terminal)),
            Err(error) => {
                // Perhaps half of it was done.
                let _ = ratatui::try_restore();
                Err(CliError::Terminal(error))
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
    }
}

/// Shows a cluster until a key or a signal ends it.
pub fn live(cluster: Cluster, first: ClusterStatus, interval: Duration) -> Result<ExitCode, CliError> {
    let signalled = Arc::new(Control::new());
    stop_on_signal(&signalled)?;
    let mut screen = Screen::new(cluster.entry(), first);
    // Dropped, it ends the thread at its next question.
    let (_over, over) = sync_channel(0);
    let (answer, answers) = sync_channel(1);
    let ask = move || ask(&cluster, interval, &over, &answer);
    std::thread::Builder::new()
        .name("top".into())
        .spawn(ask)
        .map_err(|error| CliError::Usage(format!("cannot start a thread: {error}")))?;
    end_with_the_terminal()?;
    let mut held = Held::take()?;
    let mut heard = Instant::now();
    loop {
        held.0.draw(|frame| screen.draw(frame)).map_err(CliError::Terminal)?;
        // Until there is something to draw anew.
        loop {
            if signalled.stopped() {
                return Ok(ExitCode::from(INTERRUPTED));
            }
            match answers.try_recv() {
                Ok(Ok(cluster)) => {
                    heard = Instant::now();
                    screen.take(cluster);
                    break;
                }
                Ok(Err(error)) => {
                    screen.silent(&error.to_string(), heard.elapsed());
                    break;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    return Err(CliError::Usage("the thread that asks is gone; please report it".into()));
                }
            }
            if event::poll(LOOK).map_err(CliError::Terminal)? {
                if let Event::Key(key) = event::read().map_err(CliError::Terminal)?
                    && key.kind != KeyEventKind::Release
                    && screen.key(key) == Then::End
                {
                    return Ok(ExitCode::SUCCESS);
                }
                break;
            }
        }
    }
}

/// Asks again and again until nobody listens.
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
