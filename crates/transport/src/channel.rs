//! Channels of tonic over the connections of this crate.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

use crate::connect::{Protocol, connect};
use crate::stream::Stream;
use crate::{
    Address, DialerOptions, MAX_H2_FRAME, MAX_HEADER_LIST, PING_EVERY, PING_TIMEOUT, Result, TransportError,
};

/// Opens a channel. The windows are bytes of answers in flight.
pub(crate) fn open(
    address: &Address,
    options: &Arc<DialerOptions>,
    stream_window: u32,
    connection_window: u32,
) -> Result<Channel> {
    // tonic panics without a runtime.
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(TransportError::NoRuntime { address: address.clone() });
    }
    let bad =
        |_| TransportError::BadAddress { text: address.to_string(), reason: "it does not fit into a URI" };
    let encrypted = options.tls.is_some() && matches!(address, Address::Tcp { .. });
    let authority = address.authority();
    // With `https`, tonic would do the TLS itself. Requests carry the true scheme.
    let endpoint = Endpoint::from_shared(format!("http://{authority}")).map_err(bad)?;
    let scheme = if encrypted { "https" } else { "http" };
    let origin: Uri = format!("{scheme}://{authority}").parse().map_err(|_| TransportError::BadAddress {
        text: address.to_string(),
        reason: "it does not fit into a URI",
    })?;
    let endpoint = endpoint
        .origin(origin)
        .initial_stream_window_size(stream_window)
        .initial_connection_window_size(connection_window)
        .max_frame_size(MAX_H2_FRAME)
        .http2_max_header_list_size(MAX_HEADER_LIST)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .connect_timeout(options.connect_timeout);
    let connector = Connector { address: address.clone(), options: options.clone() };
    Ok(endpoint.connect_with_connector_lazy(connector))
}

struct Connector {
    address: Address,
    options: Arc<DialerOptions>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (address, options) = (self.address.clone(), self.options.clone());
        Box::pin(async move {
            let within = options.connect_timeout;
            Ok(TokioIo::new(connect(&address, options.tls.as_ref(), Protocol::H2, within).await?))
        })
    }
}
