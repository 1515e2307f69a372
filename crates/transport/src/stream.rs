//! One type for the three kinds of connections, with a bound on how long a write may be stuck.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsStream;

use crate::senders::{Measurement, Senders};
use crate::slot::ConnectionSlot;

pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection. With a bound, a write fails if the other side takes nothing for that time. So a stopped peer does not
/// keep its slot for ever.
pub(crate) struct Stream {
    /// This field is dropped before the socket.
    _measurement: Option<Measurement>,
    socket: Socket,
    bound: Option<Duration>,
    stuck: Option<Pin<Box<Sleep>>>,
    slot: Option<Arc<ConnectionSlot>>,
}

macro_rules! each_socket {
    ($self:expr, $io:ident => $call:expr) => {
        match &mut $self.socket {
            Socket::Tcp(socket) => {
                let $io = Pin::new(socket);
                $call
            }
            Socket::Unix(socket) => {
                let $io = Pin::new(socket);
                $call
            }
            Socket::Tls(socket) => {
                let $io = Pin::new(socket.as_mut());
                $call
            }
        }
    };
}

impl Stream {
    pub fn new(socket: Socket, bound: Option<Duration>) -> Self {
        Self { _measurement: None, socket, bound, stuck: None, slot: None }
    }

    /// Reports to the slot of the connection whether bytes wait for the socket.
    pub fn with_slot(mut self, slot: &Arc<ConnectionSlot>) -> Self {
        self.slot = Some(slot.clone());
        self
    }

    fn report_sending(&self, sending: bool) {
        if let Some(slot) = &self.slot {
            slot.set_sending(sending);
        }
    }

    /// Measures how fast the connection sends, if it is over TCP.
    pub fn with_senders(mut self, senders: &Arc<Senders>) -> Self {
        self._measurement = match &self.socket {
            Socket::Tcp(socket) => senders.measure(socket),
            Socket::Tls(socket) => senders.measure(socket.get_ref().0),
            Socket::Unix(_) => None,
        };
        self
    }

    fn bound_write<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let Some(bound) = self.bound else { return result };
        if result.is_ready() {
            if self.stuck.take().is_some() {
                self.report_sending(false);
            }
            return result;
        }
        if self.stuck.is_none() {
            self.report_sending(true);
        }
        let stuck =
            self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + bound)));
        match stuck.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each_socket!(self, io => io.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let result = each_socket!(self, io => io.poll_write(cx, data));
        self.bound_write(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = each_socket!(self, io => io.poll_write_vectored(cx, parts));
        self.bound_write(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.socket {
            Socket::Tcp(socket) => socket.is_write_vectored(),
            Socket::Unix(socket) => socket.is_write_vectored(),
            Socket::Tls(socket) => socket.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = each_socket!(self, io => io.poll_flush(cx));
        self.bound_write(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = each_socket!(self, io => io.poll_shutdown(cx));
        self.bound_write(cx, result)
    }
}
