//! What the system knows of a TCP connection: `TCP_INFO` of Linux. Elsewhere nothing.
#![allow(unsafe_code)]

use std::os::fd::RawFd;

/// What is read of a connection. The system's counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Bytes that the other side has acknowledged.
    pub acked: u64,
    /// Bytes a second at which the latest ones were delivered.
    pub delivery_rate: u64,
    /// Whether that was so little because there was no more to send.
    pub app_limited: bool,
    /// Microseconds in which something was under way, if the system says (Linux since 4.10).
    pub busy: Option<u64>,
    /// Of these, microseconds in which the other side had no room for more.
    pub no_room: u64,
}

/// Bytes of the system's structure that are looked at: up to `tcpi_rwnd_limited`.
const LENGTH: usize = 184;

/// Where the fields lie in `struct tcp_info` of `linux/tcp.h`. It grows at its end only: eight single bytes, of which
/// the last has the flag `tcpi_delivery_rate_app_limited` as its first bit, 24 numbers of 32 bits, then those below.
mod at {
    pub const FLAGS: usize = 7;
    pub const BYTES_ACKED: usize = 120;
    pub const DELIVERY_RATE: usize = 160;
    pub const BUSY_TIME: usize = 168;
    pub const RWND_LIMITED: usize = 176;
}

/// The first bit field of a byte.
const APP_LIMITED: u8 = if cfg!(target_endian = "little") { 1 } else { 0x80 };

impl TcpInfo {
    /// Reads what the system gave, which may be shorter: then what is missing is not known, and without a delivery rate
    /// (Linux before 4.9) nothing is.
    fn parse(bytes: &[u8]) -> Option<TcpInfo> {
        let number = |at: usize| bytes.get(at..)?.first_chunk::<8>().map(|bytes| u64::from_ne_bytes(*bytes));
        Some(TcpInfo {
            acked: number(at::BYTES_ACKED)?,
            delivery_rate: number(at::DELIVERY_RATE)?,
            app_limited: bytes.get(at::FLAGS)? & APP_LIMITED != 0,
            busy: number(at::BUSY_TIME),
            no_room: number(at::RWND_LIMITED).unwrap_or(0),
        })
    }

    /// Of the connection with this number; `None` if it is none over TCP, or the system does not know.
    #[cfg(target_os = "linux")]
    pub fn of(socket: RawFd) -> Option<TcpInfo> {
        let mut bytes = [0u8; LENGTH];
        let mut length = LENGTH as libc::socklen_t;
        // SAFETY: the pointers are those of `bytes`, which may be written for the whole of `length` bytes and has no
        // values that are not allowed, and of `length`; both live until the call returns and nobody else has them. The
        // system writes at most `length` bytes and checks `socket` by itself: for a number that is no open socket, or
        // none of TCP, the call fails and writes nothing.
        let result = unsafe {
            libc::getsockopt(
                socket,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let written = usize::try_from(length).unwrap_or(0).min(LENGTH);
        if result == 0 { TcpInfo::parse(bytes.get(..written)?) } else { None }
    }

    /// The same where there is no such thing.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_: RawFd) -> Option<TcpInfo> {
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_short_answer_says_less_and_never_nonsense() {
        let bytes: Vec<u8> = (0..LENGTH).map(|n| n as u8).collect();
        for length in 0..LENGTH {
            let info = TcpInfo::parse(&bytes[..length]);
            assert_eq!(info.is_some(), length >= 168, "{length}");
            if let Some(info) = info {
                assert_eq!((info.busy.is_some(), info.no_room > 0), (length >= 176, length >= 184));
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_was_sent_is_counted() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let before = TcpInfo::of(server.as_raw_fd()).unwrap();
        let (content, mut got) = (vec![7; 3 << 20], vec![0; 3 << 20]);
        let (sent, read) = tokio::join!(server.write_all(&content), client.read_exact(&mut got));
        sent.unwrap();
        read.unwrap();
        // The client has it all; the system may hear of it a moment later.
        while TcpInfo::of(server.as_raw_fd()).unwrap().acked - before.acked < 3 << 20 {
            tokio::task::yield_now().await;
        }
        let info = TcpInfo::of(server.as_raw_fd()).unwrap();
        assert!(info.delivery_rate > 0, "{info:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_connection_says_nothing() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(TcpInfo::of(file.as_raw_fd()), None);
        assert_eq!(TcpInfo::of(-1), None);
    }
}
