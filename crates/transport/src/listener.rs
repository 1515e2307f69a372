//! The listener, to which clients connect.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use socket2::SockRef;
use tokio::net::{TcpListener, UnixListener};

use crate::resolve::resolve;
use crate::senders::Senders;
use crate::socket_file::{self, SocketFile};
use crate::{
    Address, CLIENT_STALL, MAX_CONNECTIONS, MAX_UNACCEPTED, Result, SHUTDOWN_GRACE, ServerTls, TransportError,
};

/// One port, or one Unix socket, that serves HTTP/1.1 and HTTP/2 (and so gRPC), over TLS if it has a certificate.
pub struct Listener {
    pub(crate) address: Address,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) socket: ListenSocket,
    pub(crate) max_connections: usize,
    pub(crate) body_silence: BodySilence,
    pub(crate) senders: Option<Arc<Senders>>,
    pub(crate) grace: Duration,
    pub(crate) on_accept_error: Box<dyn Fn(TransportError) + Send + Sync>,
}

/// A function from the method and the path of a request to the time for which its client may be silent within the body.
pub type BodySilence = fn(&http::Method, &str) -> Duration;

pub(crate) enum ListenSocket {
    Tcp(TcpListener),
    Unix { listener: UnixListener, _file: SocketFile },
}

impl Listener {
    /// Binds the address. Connections wait until [`serve`](Self::serve).
    ///
    /// Without TLS only [local](Address::is_local) addresses are allowed. A Unix socket is made with mode 0666: any
    /// user of the machine may connect, and the [`Peer`](crate::Peer) names the user. To exclude users, restrict the
    /// directory. TLS is not used on a Unix socket. A socket file on which no process listens is replaced, one in use
    /// is refused, and the file is removed when the listener is dropped.
    ///
    /// # Errors
    /// The error is [`TransportError::NotLocalListen`] if the address is not local and there is no TLS,
    /// [`TransportError::InUse`] if another process listens on it, and [`TransportError::Listen`] if the system refuses
    /// the address, if the path is a file that is not a socket, or if the lock file of the socket cannot be locked.
    pub async fn bind(address: &Address, tls: Option<ServerTls>) -> Result<Self> {
        let (socket, tls, address) = match address {
            Address::Unix(path) => {
                let (listener, file) = socket_file::bind(path).await?;
                (ListenSocket::Unix { listener, _file: file }, None, address.clone())
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
                SockRef::from(&listener).listen(i32::from(MAX_UNACCEPTED)).map_err(failed)?;
                let bound: SocketAddr = listener.local_addr().map_err(failed)?;
                let actual = Address::Tcp { host: host.clone(), port: bound.port() };
                (ListenSocket::Tcp(listener), tls, actual)
            }
        };
        Ok(Self::new(address, tls, socket))
    }

    /// Makes a listener from a socket that listens already. The process that started this one made the socket for this
    /// host. Without TLS only sockets that are local to this machine are allowed.
    ///
    /// # Errors
    /// The error is [`TransportError::NotLocalListen`] if other machines can reach the socket and there is no TLS, and
    /// [`TransportError::Listen`] if the socket cannot be used.
    pub fn from_socket(host: &str, socket: std::net::TcpListener, tls: Option<ServerTls>) -> Result<Self> {
        let with_port = |port| Address::Tcp { host: host.to_owned(), port };
        let failed = |source: io::Error| TransportError::Listen { address: with_port(0), source };
        let bound = socket.local_addr().map_err(failed)?;
        let address = with_port(bound.port());
        if tls.is_none() && !bound.ip().to_canonical().is_loopback() {
            return Err(TransportError::NotLocalListen { address });
        }
        socket.set_nonblocking(true).map_err(failed)?;
        // Only the length of its queue changes: it listens already, perhaps with a short queue.
        SockRef::from(&socket).listen(i32::from(MAX_UNACCEPTED)).map_err(failed)?;
        let socket = TcpListener::from_std(socket).map_err(failed)?;
        Ok(Self::new(address, tls, ListenSocket::Tcp(socket)))
    }

    fn new(address: Address, tls: Option<ServerTls>, socket: ListenSocket) -> Self {
        Self {
            address,
            tls,
            socket,
            max_connections: MAX_CONNECTIONS,
            body_silence: |_, _| CLIENT_STALL,
            senders: None,
            grace: SHUTDOWN_GRACE,
            on_accept_error: Box::new(|_| ()),
        }
    }

    /// The address, with the actual port.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// Sets the most connections that are served at once, at least 1; [`MAX_CONNECTIONS`] by default.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.max_connections = most.clamp(1, tokio::sync::Semaphore::MAX_PERMITS);
        self
    }

    /// Sets how long a client may be silent within the body of a request, by method and path; [`CLIENT_STALL`] by
    /// default. A handler can use a smaller bound itself, but not a larger one.
    pub fn body_silence(mut self, body_silence: BodySilence) -> Self {
        self.body_silence = body_silence;
        self
    }

    /// Measures how fast the connections send.
    pub fn senders(mut self, senders: Arc<Senders>) -> Self {
        self.senders = Some(senders);
        self
    }

    /// Sets how long requests in flight may continue after the shutdown; [`SHUTDOWN_GRACE`] by default.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Calls `report` when a connection could not be accepted. The listener always continues after
    /// [`ACCEPT_PAUSE`](crate::ACCEPT_PAUSE).
    pub fn on_accept_error(mut self, report: impl Fn(TransportError) + Send + Sync + 'static) -> Self {
        self.on_accept_error = Box::new(report);
        self
    }

    /// Serves `router` until `shutdown` is ready, and then until the requests in flight are answered or their grace is
    /// over. Every request carries a [`Peer`](crate::Peer) in its extensions.
    ///
    /// Mount gRPC services with `Router::route_service("/package.Service/{*method}", service)`. The router must limit
    /// the size of bodies.
    ///
    /// # Errors
    /// No error is known. A connection that cannot be accepted is reported to
    /// [`on_accept_error`](Self::on_accept_error).
    pub async fn serve(self, router: Router, shutdown: impl Future<Output = ()>) -> Result<()> {
        crate::serve::serve(self, router, shutdown).await
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).field("tls", &self.tls).finish()
    }
}
