//! The connections of a listener as far as it matters how fast they send.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;

use crate::tcp_info::TcpInfo;

/// Connections that are watched at once; of more, nothing is known.
pub const MAX_WATCHED: usize = crate::MAX_CONNECTIONS;

/// Connections that ended since somebody last looked, of which it is still told what they sent. The oldest are forgotten.
pub const MAX_ENDED: usize = 256;

/// What one connection sent since it was looked at before. Figures of the system, as they are: see `TCP_INFO` of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// To whom.
    pub peer: IpAddr,
    /// Bytes that arrived there.
    pub bytes: u64,
    /// Bytes a second at which the latest ones were delivered.
    pub delivery_rate: u64,
    /// Whether the connection had at times nothing more to send, so that it says how much there was and not how
    /// fast it could have been.
    pub app_limited: bool,
    /// Microseconds in which something was under way, if the system says; it counts in steps of some thousands.
    pub busy: Option<u64>,
    /// Of these, microseconds in which whoever reads had no room for more.
    pub no_room: u64,
}

/// The TCP connections of listeners that are live. On systems that tell nothing of them there are none.
#[derive(Default)]
pub struct Senders {
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    next: u64,
    /// As long as a connection is here its socket is open: it is taken out, under the lock, before that is closed.
    watched: HashMap<u64, Watched>,
    ended: VecDeque<Sent>,
}

struct Watched {
    socket: RawFd,
    peer: IpAddr,
    before: TcpInfo,
}

impl Watched {
    fn sent(&mut self) -> Option<Sent> {
        let now = TcpInfo::of(self.socket)?;
        let before = std::mem::replace(&mut self.before, now);
        Some(Sent {
            peer: self.peer,
            bytes: now.acked.saturating_sub(before.acked),
            delivery_rate: now.delivery_rate,
            app_limited: now.app_limited,
            busy: now.busy.zip(before.busy).map(|(now, before)| now.saturating_sub(before)),
            no_room: now.no_room.saturating_sub(before.no_room),
        })
    }
}

/// A watched connection. Dropped before its socket is closed.
pub(crate) struct Watch {
    senders: Arc<Senders>,
    number: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut live = self.senders.live();
        let Some(sent) = live.watched.remove(&self.number).and_then(|mut watched| watched.sent()) else {
            return;
        };
        if sent.bytes > 0 {
            if live.ended.len() >= MAX_ENDED {
                live.ended.pop_front();
            }
            live.ended.push_back(sent);
        }
    }
}

impl Senders {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a connection until what is given is dropped, which must be before `stream` is.
    pub(crate) fn watch(self: &Arc<Self>, stream: &TcpStream) -> Option<Watch> {
        let socket = stream.as_raw_fd();
        let (before, peer) = (TcpInfo::of(socket)?, stream.peer_addr().ok()?.ip().to_canonical());
        let mut live = self.live();
        if live.watched.len() >= MAX_WATCHED {
            return None;
        }
        let number = live.next;
        live.next += 1;
        live.watched.insert(number, Watched { socket, peer, before });
        Some(Watch { senders: self.clone(), number })
    }

    /// What each connection that sent something has sent since this was asked before.
    pub fn sent(&self) -> Vec<Sent> {
        let mut live = self.live();
        let mut sent: Vec<Sent> = live.ended.drain(..).collect();
        sent.extend(live.watched.values_mut().filter_map(Watched::sent).filter(|sent| sent.bytes > 0));
        sent
    }
}

impl std::fmt::Debug for Senders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Senders").field("watched", &self.live().watched.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const SENT: usize = 1 << 20;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    async fn send(client: &mut TcpStream, server: &mut TcpStream) {
        let (content, mut got) = (vec![7; SENT], vec![0; SENT]);
        let (sent, read) = tokio::join!(server.write_all(&content), client.read_exact(&mut got));
        sent.unwrap();
        read.unwrap();
    }

    /// All that is told until so many bytes were.
    async fn told(senders: &Senders, bytes: u64) -> Vec<Sent> {
        let mut told = Vec::new();
        while told.iter().map(|sent: &Sent| sent.bytes).sum::<u64>() < bytes {
            told.extend(senders.sent());
            tokio::task::yield_now().await;
        }
        told
    }

    #[tokio::test]
    async fn what_was_sent_is_told_once_and_behind_the_end_too() {
        let senders = Arc::new(Senders::default());
        let (mut client, mut server) = pair().await;
        let watch = senders.watch(&server).unwrap();
        assert_eq!(senders.sent(), []);
        send(&mut client, &mut server).await;
        let first = told(&senders, SENT as u64).await;
        assert!(first.iter().all(|sent| sent.peer.is_loopback()));
        assert_eq!(first.iter().map(|sent| sent.bytes).sum::<u64>(), SENT as u64);
        assert_eq!(senders.sent(), []);

        send(&mut client, &mut server).await;
        server.shutdown().await.unwrap();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        drop((watch, server));
        let last = senders.sent();
        assert!(last.len() == 1 && last[0].bytes >= SENT as u64, "{last:?}");
        assert_eq!(senders.sent(), []);
    }

    #[tokio::test]
    async fn only_so_many_that_ended_are_remembered() {
        let senders = Arc::new(Senders::default());
        let (mut client, mut server) = pair().await;
        let watches: Vec<Watch> = (0..MAX_ENDED + 3).map(|_| senders.watch(&server).unwrap()).collect();
        let before = TcpInfo::of(server.as_raw_fd()).unwrap().acked;
        send(&mut client, &mut server).await;
        while TcpInfo::of(server.as_raw_fd()).unwrap().acked == before {
            tokio::task::yield_now().await;
        }
        drop(watches);
        assert_eq!(senders.sent().len(), MAX_ENDED);
        assert!(senders.live().watched.is_empty());
    }
}
