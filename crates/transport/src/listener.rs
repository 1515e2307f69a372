//! Where clients connect.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, UnixListener};

use crate::resolve::resolve;
use crate::senders::Senders;
use crate::socket_file::{self, SocketFile};
use crate::{Address, CLIENT_STALL, MAX_CONNECTIONS, Result, SHUTDOWN_GRACE, ServerTls, TransportError};

/// One port, or one Unix socket, that speaks HTTP/1.1 and HTTP/2 (and so gRPC), over TLS if it was given a
/// certificate.
pub struct Listener {
    pub(crate) address: Address,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) socket: Accepting,
    pub(crate) max_connections: usize,
    pub(crate) body_silence: BodySilence,
    pub(crate) senders: Option<Arc<Senders>>,
    pub(crate) grace: Duration,
    pub(crate) trouble: Box<dyn Fn(TransportError) + Send + Sync>,
}

/// How long a client may be silent in the middle of the body of a request of this method and path.
pub type BodySilence = fn(&http::Method, &str) -> Duration;

pub(crate) enum Accepting {
    Tcp(TcpListener),
    Unix { listener: UnixListener, _file: SocketFile },
}

impl Listener {
    /// Takes the address. Connections wait until [`serve`](Self::serve).
    ///
    /// Without TLS only [local](Address::is_local) addresses are taken. A Unix socket is made with mode 0666:
    /// any user of the machine may connect, and the [`Peer`](crate::Peer) says who it is; to keep users out
    /// altogether, restrict the directory. TLS is not used on it. A socket file that nobody answers at is
    /// replaced, one in use is refused, and the file is removed when the listener goes.
    ///
    /// # Errors
    /// The error is [`TransportError::NotLocalListen`] if the address is not local and there is no TLS,
    /// [`TransportError::InUse`] if somebody listens there already, and [`TransportError::Listen`] if the system does
    /// not give it, if a file that is no socket is in the way, or if the lock beside the socket cannot be had.
    pub async fn bind(address: &Address, tls: Option<ServerTls>) -> Result<Self> {
        let (socket, tls, address) = match address {
            Address::Unix(path) => {
                let (listener, file) = socket_file::bind(path).await?;
                (Accepting::Unix { listener, _file: file }, None, address.clone())
            }
            Address::Tcp { .. } if tls.is_none() && !address.is_local() => {
                return Err(TransportError::NotLocalListen { address: address.clone() });
            }
            Address::Tcp { host, port } => {
                let failed = |source: io::Error| match source.kind() {
                    io::ErrorKind::AddrInUse => TransportError::InUse { address: address.clone() },
                    _ => TransportError::Listen { address: address.clone(), source },
                };
                let found = resolve(host, *port, tls.is_none()).await.map_err(failed)?;
                let listener = TcpListener::bind(&*found).await.map_err(failed)?;
                let bound: SocketAddr = listener.local_addr().map_err(failed)?;
                let real = Address::Tcp { host: host.clone(), port: bound.port() };
                (Accepting::Tcp(listener), tls, real)
            }
        };
        Ok(Self::of(address, tls, socket))
    }

    /// Serves a socket that listens already, made for this host by whoever started the process. Without TLS only sockets of
    /// this machine are taken.
    ///
    /// # Errors
    /// It is none that can be used, or is open to other machines without TLS.
    pub fn handed(host: &str, socket: std::net::TcpListener, tls: Option<ServerTls>) -> Result<Self> {
        let named = |port| Address::Tcp { host: host.to_owned(), port };
        let failed = |source: io::Error| TransportError::Listen { address: named(0), source };
        let bound = socket.local_addr().map_err(failed)?;
        let address = named(bound.port());
        if tls.is_none() && !bound.ip().to_canonical().is_loopback() {
            return Err(TransportError::NotLocalListen { address });
        }
        socket.set_nonblocking(true).map_err(failed)?;
        let socket = TcpListener::from_std(socket).map_err(failed)?;
        Ok(Self::of(address, tls, Accepting::Tcp(socket)))
    }

    fn of(address: Address, tls: Option<ServerTls>, socket: Accepting) -> Self {
        Self {
            address,
            tls,
            socket,
            max_connections: MAX_CONNECTIONS,
            body_silence: |_, _| CLIENT_STALL,
            senders: None,
            grace: SHUTDOWN_GRACE,
            trouble: Box::new(|_| ()),
        }
    }

    /// The address as given, with the port that was really taken.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// Serves at most so many connections at once, at least 1; [`MAX_CONNECTIONS`] unless set.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.max_connections = most.clamp(1, tokio::sync::Semaphore::MAX_PERMITS);
        self
    }

    /// How long a client may be silent in the middle of the body of a request, by method and path;
    /// [`CLIENT_STALL`] unless set. A handler that wants less bounds it by itself; it cannot have more.
    pub fn body_silence(mut self, most: BodySilence) -> Self {
        self.body_silence = most;
        self
    }

    /// Has the connections watched how fast they send.
    pub fn watched(mut self, senders: Arc<Senders>) -> Self {
        self.senders = Some(senders);
        self
    }

    /// How long requests in flight may go on after the shutdown; [`SHUTDOWN_GRACE`] unless set.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Calls `report` when a connection could not be accepted. The listener goes on after
    /// [`ACCEPT_PAUSE`](crate::ACCEPT_PAUSE) in any case.
    pub fn on_trouble(mut self, report: impl Fn(TransportError) + Send + Sync + 'static) -> Self {
        self.trouble = Box::new(report);
        self
    }

    /// Serves `router` until `shutdown` is ready and the requests in flight are answered, or have used up
    /// their grace. Every request carries a [`Peer`](crate::Peer) in its extensions.
    ///
    /// Mount gRPC services with `Router::route_service("/package.Service/{*method}", service)`. Limits on the
    /// size of bodies are the router's affair.
    ///
    /// # Errors
    /// No error is known. A connection that cannot be accepted is told to [`on_trouble`](Self::on_trouble).
    pub async fn serve(self, router: Router, shutdown: impl Future<Output = ()>) -> Result<()> {
        crate::serve::serve(self, router, shutdown).await
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).field("tls", &self.tls).finish()
    }
}
