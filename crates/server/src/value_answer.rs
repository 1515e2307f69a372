//! The answer of a fold for a value, and its room in memory until the client has it.

use std::sync::Arc;
use std::time::Duration;

use gristmill_runtime::RunError;
use gristmill_wire::Frame;

use crate::frames::FrameSender;
use crate::limits::{ANSWER_TIME, FREE_ANSWER_BYTES, PARTIAL_STRETCH};
use crate::memory::Memory;
use crate::turns;

/// Turn of a fold. `None` for work without a turn.
pub(crate) type Turn = Option<Arc<turns::Yielding>>;

/// An encoded partial and the frames after it.
pub(crate) struct ValueAnswer {
    pub partial: Vec<u8>,
    pub last: Vec<Frame>,
    /// Turn of the fold. A large answer keeps it until there is room, so that only as many answers can wait as there
    /// are turns. Clients that read, or are disconnected, return room without a turn: no wait is circular.
    pub turn: Turn,
}

impl ValueAnswer {
    /// Sends the answer once the memory has room for it, for this principal. A large answer is dropped if the client
    /// reads nothing for `stall`.
    ///
    /// # Errors
    /// Returns an error if there was no room within [`ANSWER_TIME`].
    pub async fn send(
        mut self,
        out: &FrameSender,
        memory: &Arc<Memory>,
        principal: &Arc<str>,
        stall: Duration,
    ) -> Result<(), RunError> {
        let mut room = memory.room(principal);
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
            // The client is gone. If the answer was dropped its end is missing, which the client notices.
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
    use crate::frames::{FrameReceiver, frames};
    use crate::limits::{ANSWER_MEMORY, ANSWER_STALL, FRAME_BYTES_WAITING};

    fn answer(bytes: usize) -> ValueAnswer {
        ValueAnswer { partial: vec![7; bytes], last: Vec::new(), turn: None }
    }

    /// Next bytes of the partial.
    async fn next(waiting: &mut FrameReceiver) -> Option<usize> {
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
        // Both ends exist, and the client does not read.
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
