//! Statistics of the system about a TCP connection: `TCP_INFO` of Linux. Other systems have none.
#![allow(unsafe_code)]

use std::os::fd::RawFd;

/// Statistics of a connection. The counters of the system only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Bytes that the other side has acknowledged.
    pub acked: u64,
    /// Bytes per second at which the latest bytes were delivered.
    pub delivery_rate: u64,
    /// Whether the rate is limited because the process had no more to send.
    pub app_limited: bool,
    /// Microseconds with bytes in flight, if the system reports them (Linux since 4.10).
    pub busy: Option<u64>,
    /// The part of `busy`, in microseconds, in which the other side had no room.
    pub no_room: u64,
}

/// Bytes of the system's structure that are read: up to `tcpi_rwnd_limited`.
const LENGTH: usize = 184;

/// Offsets of fields in `struct tcp_info` of `linux/tcp.h`. The structure grows only at its end. It has eight single
/// bytes, then 24 numbers of 32 bits, then the numbers below. The last of the eight bytes has the flag
/// `tcpi_delivery_rate_app_limited` as its first bit.
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
    /// Parses the structure of the system. An older system gives a shorter one, and its missing fields are unknown.
    /// Without a delivery rate (Linux before 4.9) the result is `None`.
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

    /// Reads the statistics of a socket. Returns `None` if it is not a TCP connection, or if the system has no
    /// statistics.
    #[cfg(target_os = "linux")]
    pub fn read(socket: RawFd) -> Option<TcpInfo> {
        let mut bytes = [0u8; LENGTH];
        let mut length = LENGTH as libc::socklen_t;
        // SAFETY: the pointers are to `bytes` and `length`. `bytes` has `length` bytes that may be written, and any
        // values are valid in it. Both live until the call returns, and no other pointers to them exist. The system
        // writes at most `length` bytes and checks `socket` itself: if the number is not an open TCP socket, the call
        // fails and writes nothing.
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

    /// Returns `None`: this system has no such statistics.
    #[cfg(not(target_os = "linux"))]
    pub fn read(_: RawFd) -> Option<TcpInfo> {
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn missing_fields_of_a_short_structure_are_unknown() {
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
    async fn acknowledged_bytes_are_counted() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let before = TcpInfo::read(server.as_raw_fd()).unwrap();
        let (content, mut got) = (vec![7; 3 << 20], vec![0; 3 << 20]);
        let (sent, read) = tokio::join!(server.write_all(&content), client.read_exact(&mut got));
        sent.unwrap();
        read.unwrap();
        // The client has all bytes. Their acknowledgement may arrive a moment later.
        while TcpInfo::read(server.as_raw_fd()).unwrap().acked - before.acked < 3 << 20 {
            tokio::task::yield_now().await;
        }
        let info = TcpInfo::read(server.as_raw_fd()).unwrap();
        assert!(info.delivery_rate > 0, "{info:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn other_files_have_no_statistics() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(TcpInfo::read(file.as_raw_fd()), None);
        assert_eq!(TcpInfo::read(-1), None);
    }
}
