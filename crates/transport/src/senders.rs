//! Measurement of how fast the connections of a listener send.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;

use crate::tcp_info::TcpInfo;

/// Most connections that are measured at once. Further connections are not measured.
pub const MAX_MEASURED: usize = crate::MAX_CONNECTIONS;

/// Most ended connections whose last samples are kept until the next call. The oldest are dropped.
pub const MAX_ENDED: usize = 256;

/// Bytes that one connection sent since its previous sample. The values are those of the system: see `TCP_INFO` of
/// Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendSample {
    /// Address of the receiver.
    pub peer: IpAddr,
    /// Bytes that the receiver acknowledged.
    pub bytes: u64,
    /// Bytes per second at which the latest bytes were delivered.
    pub delivery_rate: u64,
    /// Whether the connection sometimes had nothing to send. Then the rate shows how much there was to send, and not
    /// how fast the connection is.
    pub app_limited: bool,
    /// Microseconds with bytes in flight, if the system reports them. It counts in steps of some thousands.
    pub busy: Option<u64>,
    /// The part of `busy`, in microseconds, in which the receiver had no room.
    pub no_room: u64,
}

/// The measured TCP connections of listeners. It is empty on systems without statistics of connections.
#[derive(Default)]
pub struct Senders {
    table: Mutex<SenderTable>,
}

#[derive(Default)]
struct SenderTable {
    next: u64,
    /// The sockets of these connections are open: a connection is removed, under the lock, before its socket is closed.
    sockets: HashMap<u64, MeasuredSocket>,
    ended: VecDeque<SendSample>,
}

struct MeasuredSocket {
    socket: RawFd,
    peer: IpAddr,
    before: TcpInfo,
}

impl MeasuredSocket {
    fn sample(&mut self) -> Option<SendSample> {
        let now = TcpInfo::read(self.socket)?;
        let before = std::mem::replace(&mut self.before, now);
        Some(SendSample {
            peer: self.peer,
            bytes: now.acked.saturating_sub(before.acked),
            delivery_rate: now.delivery_rate,
            app_limited: now.app_limited,
            busy: now.busy.zip(before.busy).map(|(now, before)| now.saturating_sub(before)),
            no_room: now.no_room.saturating_sub(before.no_room),
        })
    }
}

/// A measured connection. It must be dropped before its socket is closed.
pub(crate) struct Measurement {
    senders: Arc<Senders>,
    number: u64,
}

impl Drop for Measurement {
    fn drop(&mut self) {
        let mut table = self.senders.table();
        let Some(sample) = table.sockets.remove(&self.number).and_then(|mut socket| socket.sample()) else {
            return;
        };
        if sample.bytes > 0 {
            if table.ended.len() >= MAX_ENDED {
                table.ended.pop_front();
            }
            table.ended.push_back(sample);
        }
    }
}

impl Senders {
    fn table(&self) -> MutexGuard<'_, SenderTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures a connection until the result is dropped. The result must be dropped before `stream`.
    pub(crate) fn measure(self: &Arc<Self>, stream: &TcpStream) -> Option<Measurement> {
        let socket = stream.as_raw_fd();
        let (before, peer) = (TcpInfo::read(socket)?, stream.peer_addr().ok()?.ip().to_canonical());
        let mut table = self.table();
        if table.sockets.len() >= MAX_MEASURED {
            return None;
        }
        let number = table.next;
        table.next += 1;
        table.sockets.insert(number, MeasuredSocket { socket, peer, before });
        Some(Measurement { senders: self.clone(), number })
    }

    /// Samples of all connections that sent bytes since the last call.
    pub fn samples(&self) -> Vec<SendSample> {
        let mut table = self.table();
        let mut samples: Vec<SendSample> = table.ended.drain(..).collect();
        samples.extend(
            table.sockets.values_mut().filter_map(MeasuredSocket::sample).filter(|sent| sent.bytes > 0),
        );
        samples
    }
}

impl std::fmt::Debug for Senders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Senders").field("measured", &self.table().sockets.len()).finish_non_exhaustive()
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

    /// Collects samples until they have this number of bytes.
    async fn collect_samples(senders: &Senders, bytes: u64) -> Vec<SendSample> {
        let mut samples = Vec::new();
        while samples.iter().map(|sample: &SendSample| sample.bytes).sum::<u64>() < bytes {
            samples.extend(senders.samples());
            tokio::task::yield_now().await;
        }
        samples
    }

    #[tokio::test]
    async fn bytes_are_reported_once_also_after_the_connection_ended() {
        let senders = Arc::new(Senders::default());
        let (mut client, mut server) = pair().await;
        let measurement = senders.measure(&server).unwrap();
        assert_eq!(senders.samples(), []);
        send(&mut client, &mut server).await;
        let first = collect_samples(&senders, SENT as u64).await;
        assert!(first.iter().all(|sample| sample.peer.is_loopback()));
        assert_eq!(first.iter().map(|sample| sample.bytes).sum::<u64>(), SENT as u64);
        assert_eq!(senders.samples(), []);

        send(&mut client, &mut server).await;
        server.shutdown().await.unwrap();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        drop((measurement, server));
        let last = senders.samples();
        assert!(last.len() == 1 && last[0].bytes >= SENT as u64, "{last:?}");
        assert_eq!(senders.samples(), []);
    }

    #[tokio::test]
    async fn samples_of_ended_connections_are_bounded() {
        let senders = Arc::new(Senders::default());
        let (mut client, mut server) = pair().await;
        let measurements: Vec<Measurement> =
            (0..MAX_ENDED + 3).map(|_| senders.measure(&server).unwrap()).collect();
        let before = TcpInfo::read(server.as_raw_fd()).unwrap().acked;
        send(&mut client, &mut server).await;
        while TcpInfo::read(server.as_raw_fd()).unwrap().acked == before {
            tokio::task::yield_now().await;
        }
        drop(measurements);
        assert_eq!(senders.samples().len(), MAX_ENDED);
        assert!(senders.table().sockets.is_empty());
    }
}
