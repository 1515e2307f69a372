//! The answer of a fold for a value, and the room that it takes in memory until the client has it.

use std::sync::Arc;
use std::time::Duration;

use gristmill_runtime::RunError;
use gristmill_wire::Frame;

use crate::frames::Frames;
use crate::limits::{ANSWER_TIME, FREE_ANSWER_BYTES, PARTIAL_STRETCH};
use crate::memory::Memory;
use crate::turns;

/// A place among the folds that work; `None` for work that needs none.
pub(crate) type Turn = Option<Arc<turns::Yielding>>;

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
    /// Sends all of it once there is room for it in the memory, for a principal. A large answer of which the client takes
    /// nothing for `stall` is dropped.
    ///
    /// # Errors
    /// There was no room within [`ANSWER_TIME`].
    pub async fn send(
        mut self,
        out: &Frames,
        memory: &Arc<Memory>,
        who: &Arc<str>,
        stall: Duration,
    ) -> Result<(), RunError> {
        let mut room = memory.room(who);
        let large = self.partial.len() > FREE_ANSWER_BYTES;
        if large {
            let taken = room.grow_within(self.partial.len(), ANSWER_TIME).await;
            taken.map_err(|refusal| refusal.0.into_error())?;
        }
        self.turn = None;
        let stretches = self.partial.chunks(PARTIAL_STRETCH).map(|stretch| Frame::Partial(stretch.to_vec()));
        for frame in stretches.chain(self.last) {
            let sending = out.send(Ok(frame));
            let sent = match large {
                true => tokio::time::timeout(stall, sending).await.is_ok_and(|sent| sent.is_ok()),
                false => sending.await.is_ok(),
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

    use super::*;
    use crate::frames::{Waiting, frames};
    use crate::limits::{ANSWER_MEMORY, ANSWER_STALL, FRAME_BYTES_WAITING};

    fn answer(bytes: usize) -> ValueAnswer {
        ValueAnswer { partial: vec![7; bytes], last: Vec::new(), turn: None }
    }

    /// Bytes of the partial that come next.
    async fn next(waiting: &mut Waiting) -> Option<usize> {
        let frames = waiting.next().await?.unwrap();
        let bytes = |frame: &Vec<u8>| match Frame::decode(frame).unwrap() {
            Frame::Partial(stretch) => stretch.len(),
            _ => 0,
        };
        Some(frames.iter().map(bytes).sum())
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_that_nobody_takes_gives_its_room_back() {
        let memory = Memory::new(ANSWER_MEMORY, "answers");
        // Both ends are there, and nobody reads.
        let (out, mut waiting) = frames();
        let large = FRAME_BYTES_WAITING + 2 * PARTIAL_STRETCH;
        answer(large).send(&out, &memory, &"a".into(), ANSWER_STALL).await.unwrap();
        assert_eq!(memory.free(), ANSWER_MEMORY as u64);
        drop(out);
        let mut got = 0;
        while let Some(bytes) = next(&mut waiting).await {
            got += bytes;
        }
        assert!(got > 0 && got < large, "{got}: what had been sent before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_arrives_however_slowly_it_is_taken() {
        let memory = Memory::new(ANSWER_MEMORY, "answers");
        let (out, mut waiting) = frames();
        let large = 20 * PARTIAL_STRETCH + 1;
        let held = memory.clone();
        let sending =
            tokio::spawn(async move { answer(large).send(&out, &held, &"a".into(), ANSWER_STALL).await });
        let mut got = 0;
        while let Some(bytes) = next(&mut waiting).await {
            got += bytes;
            tokio::time::sleep(ANSWER_STALL / 2).await;
        }
        sending.await.unwrap().unwrap();
        assert_eq!((got, memory.free()), (large, ANSWER_MEMORY as u64));
    }
}
