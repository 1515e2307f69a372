//! Waits for the answer of a node that is silent because it works, or because it is gone.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::{FailedRequest, unavailable};

/// Longest time of an action. The node may ask storage of others several times, and each time repeats what may pass.
pub const ACTION_TIME: Duration = Duration::from_secs(180);

/// Waits for an answer. A node that gives no answer for half of the longest silence, `stall`, is pinged, and gets the other half to
/// answer the ping.
///
/// # Errors
/// It fails if the node does not answer a ping, or works for longer than [`ACTION_TIME`].
pub(crate) async fn while_alive<T, P: Future<Output = bool>>(
    address: &str,
    stall: Duration,
    answer: impl Future<Output = T>,
    ping: impl Fn() -> P,
) -> Result<T, FailedRequest> {
    let silent = |why: std::fmt::Arguments<'_>| FailedRequest {
        error: unavailable(address, why),
        begun: true,
        silent: true,
    };
    let (half, begun, mut answer) = (stall / 2, Instant::now(), pin!(answer));
    loop {
        if let Ok(answer) = timeout(half, &mut answer).await {
            return Ok(answer);
        }
        if begun.elapsed() >= ACTION_TIME {
            let seconds = ACTION_TIME.as_secs();
            return Err(silent(format_args!("it works on the request for longer than {seconds} s")));
        }
        tokio::select! {
            answer = &mut answer => return Ok(answer),
            pinged = timeout(half, ping()) => if !pinged.unwrap_or(false) {
                return Err(silent(format_args!("no answer in {} s", stall.as_secs_f64())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const STALL: Duration = Duration::from_secs(10);

    async fn after(seconds: u64) -> u64 {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        seconds
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_answers_pings_has_time_and_another_does_not() {
        let pings = AtomicUsize::new(0);
        let pinged = |answers_until: usize| {
            let pings = &pings;
            move || async move {
                after(1).await;
                pings.fetch_add(1, Ordering::Relaxed) < answers_until
            }
        };
        let ask = async |seconds, answers_until| {
            pings.store(0, Ordering::Relaxed);
            let begun = Instant::now();
            let answer = while_alive("h:1", STALL, after(seconds), pinged(answers_until)).await;
            (answer.map_err(|failed| failed.error.to_string()), begun.elapsed().as_secs())
        };
        assert_eq!(ask(4, 0).await, (Ok(4), 4));
        assert_eq!(ask(6, 9).await, (Ok(6), 6));
        assert_eq!(ask(60, 100).await, (Ok(60), 60));
        let (gone, seconds) = ask(60, 2).await;
        assert!(gone.is_err_and(|text| text.contains("no answer in 10 s")) && seconds == 18);
        let (late, seconds) = ask(1_000, 1_000).await;
        assert!(late.is_err_and(|text| text.contains("longer than 180 s")) && seconds < 200);
        // The ping is not answered either.
        let begun = Instant::now();
        let silent = while_alive("h:1", STALL, after(60), || async { after(60).await > 0 }).await;
        assert!(silent.is_err_and(|failed| failed.silent) && begun.elapsed().as_secs() == 10);
    }
}
