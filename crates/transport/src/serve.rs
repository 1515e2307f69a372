//! Accepting connections, as many as are allowed at once, until told to stop.

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::connection::{Serving, serve_connection};
use crate::listener::{Accepting, Listener};
use crate::stream::Socket;
use crate::{ACCEPT_PAUSE, Origin, Result, TransportError};

pub(crate) async fn serve(
    listener: Listener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let Listener { address, tls, socket, max_connections, grace, trouble } = listener;
    let places = Arc::new(Semaphore::new(max_connections));
    let (stop, stopped) = watch::channel(false);
    let serving = Arc::new(Serving::new(router, tls, stopped));
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);

    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&socket, &places) => accepted,
        };
        match accepted {
            Ok((socket, origin, place)) => {
                let serving = serving.clone();
                connections.spawn(async move {
                    serve_connection(&serving, socket, origin).await;
                    drop(place);
                });
            }
            // The client has given up already; there is nothing to wait for.
            Err(error) if is_about_one_client(&error) => {}
            Err(source) => {
                trouble(TransportError::Accept { address: address.clone(), source });
                // The same error would come again at once; connections that end meanwhile may free a file.
                tokio::select! {
                    () = &mut shutdown => break,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                }
            }
        }
    }

    drop(socket);
    let _ = stop.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(grace, drained).await;
    connections.shutdown().await;
    Ok(())
}

type Accepted = (Socket, Origin, tokio::sync::OwnedSemaphorePermit);

/// Waits for a free place, then for a client. Cancelling loses neither.
async fn accept(socket: &Accepting, places: &Arc<Semaphore>) -> io::Result<Accepted> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    match socket {
        Accepting::Tcp(listener) => {
            let (stream, from) = listener.accept().await?;
            no_delay(&stream)?;
            Ok((Socket::Tcp(stream), Origin::Tcp(from.ip().to_canonical()), place))
        }
        Accepting::Unix { listener, .. } => {
            let (stream, _) = listener.accept().await?;
            let peer = stream.peer_cred()?;
            Ok((Socket::Unix(stream), Origin::Unix { uid: peer.uid(), gid: peer.gid() }, place))
        }
    }
}

fn no_delay(stream: &TcpStream) -> io::Result<()> {
    match stream.set_nodelay(true) {
        // A client that is gone already makes this fail.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        done => done,
    }
}

fn is_about_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | NotConnected)
}
