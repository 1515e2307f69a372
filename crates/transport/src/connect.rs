//! New connections, including TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{TlsConnector, TlsStream};

use crate::resolve::resolve;
use crate::stream::{Socket, Stream};
use crate::{Address, ClientTls, Result, TransportError};

/// The protocol of a connection, which TLS negotiates.
#[derive(Clone, Copy)]
pub(crate) enum Protocol {
    Http1,
    H2,
}

/// Refuses an address of another machine without TLS. Only the text of the address is checked.
pub(crate) fn require_tls(address: &Address, tls: Option<&ClientTls>) -> Result<()> {
    match tls.is_some() || address.is_local() {
        true => Ok(()),
        false => Err(TransportError::NotLocal { address: address.clone() }),
    }
}

pub(crate) async fn connect(
    address: &Address,
    tls: Option<&ClientTls>,
    protocol: Protocol,
    within: Duration,
) -> Result<Stream> {
    require_tls(address, tls)?;
    let connected = async {
        let socket = match address {
            Address::Unix(path) => {
                Socket::Unix(UnixStream::connect(path).await.map_err(|source| refused(address, source))?)
            }
            Address::Tcp { host, port } => {
                let stream =
                    tcp(host, *port, tls.is_none()).await.map_err(|source| refused(address, source))?;
                match tls {
                    None => Socket::Tcp(stream),
                    Some(tls) => {
                        let config = match protocol {
                            Protocol::Http1 => &tls.http1,
                            Protocol::H2 => &tls.h2,
                        };
                        secure(host, stream, config)
                            .await
                            .map_err(|source| TransportError::Tls { address: address.clone(), source })?
                    }
                }
            }
        };
        Ok(Stream::new(socket, None))
    };
    match tokio::time::timeout(within, connected).await {
        Ok(done) => done,
        Err(_) => Err(TransportError::Timeout { address: address.clone(), waited: within }),
    }
}

async fn tcp(host: &str, port: u16, local: bool) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(&*resolve(host, port, local).await?).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn secure(host: &str, stream: TcpStream, config: &Arc<ClientConfig>) -> io::Result<Socket> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(config.clone()).connect(name, stream).await?;
    Ok(Socket::Tls(Box::new(TlsStream::Client(stream))))
}

fn refused(address: &Address, source: io::Error) -> TransportError {
    TransportError::Refused { address: address.clone(), source }
}
