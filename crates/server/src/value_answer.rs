//! The answer of a fold for a value, and the room that it takes in memory until the client has it.

use std::sync::Arc;
use std::time::Duration;

use gristmill_runtime::RunError;
use gristmill_wire::Frame;
use tokio::sync::Semaphore;

use crate::error::Refusal;
use crate::fold::Frames;
use crate::limits::{FREE_ANSWER_BYTES, PARTIAL_STRETCH};
use crate::turns;

/// A place among the folds that work; `None` for work that needs none.
pub(crate) type Turn = Option<turns::Turn>;

/// An encoded partial and what follows it.
pub(crate) struct ValueAnswer {
    pub partial: Vec<u8>,
    pub last: Vec<Frame>,
    /// The turn of the fold. A large answer keeps it until there is room, so that only as many can wait as there are
    /// turns. Room is given back by clients that read, or are cut off, and those need no turn for it: nobody waits in
    /// a circle.
    pub turn: Turn,
}

impl ValueAnswer {
    /// Sends all of it once there is room for it, of which `room` has the KiB. A large answer of which the client
    /// takes nothing for `stall` is dropped.
    pub async fn send(
        mut self,
        out: &Frames,
        room: &Arc<Semaphore>,
        stall: Duration,
    ) -> Result<(), RunError> {
        let _held = if self.partial.len() > FREE_ANSWER_BYTES {
            let kib = u32::try_from(self.partial.len().div_ceil(1024)).unwrap_or(u32::MAX);
            Some(room.clone().acquire_many_owned(kib).await.map_err(|_| RunError::Panicked)?)
        } else {
            None
        };
        self.turn = None;
        let stretches = self.partial.chunks(PARTIAL_STRETCH).map(|stretch| Frame::Partial(stretch.to_vec()));
        for frame in stretches.chain(self.last) {
            let sending = out.send(Ok::<_, Refusal>(frame));
            let sent = match _held {
                Some(_) => tokio::time::timeout(stall, sending).await.is_ok_and(|sent| sent.is_ok()),
                None => sending.await.is_ok(),
            };
            // Nobody listens. Where the answer was dropped its end is missing, which the client sees.
            if !sent {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::sync::mpsc;

    use super::*;
    use crate::limits::{ANSWER_KIB, ANSWER_STALL, FRAMES_WAITING};

    fn answer(bytes: usize) -> ValueAnswer {
        ValueAnswer { partial: vec![7; bytes], last: Vec::new(), turn: None }
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_that_nobody_takes_gives_its_room_back() {
        let room = Arc::new(Semaphore::new(ANSWER_KIB));
        // Both ends are there, and nobody reads.
        let (out, mut frames) = mpsc::channel(FRAMES_WAITING);
        let large = (FRAMES_WAITING + 1) * PARTIAL_STRETCH;
        answer(large).send(&out, &room, ANSWER_STALL).await.unwrap();
        assert_eq!(room.available_permits(), ANSWER_KIB);
        drop(out);
        let mut got = 0;
        while let Some(Ok(Frame::Partial(stretch))) = frames.recv().await {
            got += stretch.len();
        }
        assert_eq!(got, FRAMES_WAITING * PARTIAL_STRETCH, "what had been sent before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_arrives_however_slowly_it_is_taken() {
        let room = Arc::new(Semaphore::new(ANSWER_KIB));
        let (out, mut frames) = mpsc::channel(FRAMES_WAITING);
        let large = 20 * PARTIAL_STRETCH + 1;
        let held = room.clone();
        let sending = tokio::spawn(async move { answer(large).send(&out, &held, ANSWER_STALL).await });
        let mut got = 0;
        while let Some(Ok(Frame::Partial(stretch))) = frames.recv().await {
            got += stretch.len();
            tokio::time::sleep(ANSWER_STALL / 2).await;
        }
        sending.await.unwrap().unwrap();
        assert_eq!((got, room.available_permits()), (large, ANSWER_KIB));
    }
}
