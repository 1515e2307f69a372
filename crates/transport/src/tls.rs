//! Configurations of rustls. They name the `ring` provider, so no process-wide default is needed.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::{Result, TransportError};

const H2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Certificate and key of a server. It offers TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1.
#[derive(Clone)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads a chain of certificates, the server's first, and its private key, both in PEM form.
    ///
    /// # Errors
    /// The error is [`TransportError::Certificate`] if a file cannot be read or is not of this form, and if the key
    /// does not fit the certificate.
    pub fn load(cert_pem: &Path, key_pem: &Path) -> Result<Self> {
        let chain = read_certificates(cert_pem)?;
        let key = PrivateKeyDer::from_pem_file(key_pem)
            .map_err(|error| file_error(key_pem, format!("has no private key in PEM form: {error}")))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| file_error(cert_pem, error.to_string()))?;
        let mut config = builder
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| file_error(key_pem, format!("does not fit {}: {error}", cert_pem.display())))?;
        config.alpn_protocols = vec![H2.to_vec(), HTTP1.to_vec()];
        Ok(Self { config: Arc::new(config) })
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

/// The certificate authorities that a client trusts. The authorities of the system are not used.
#[derive(Clone)]
pub struct ClientTls {
    pub(crate) http1: Arc<ClientConfig>,
    pub(crate) h2: Arc<ClientConfig>,
}

impl ClientTls {
    /// Reads the certificates of one or more authorities, in PEM form.
    ///
    /// # Errors
    /// The error is [`TransportError::Certificate`] if the file cannot be read, has no certificate, or has a
    /// certificate that cannot be trusted as an authority.
    pub fn from_ca(pem: &Path) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for authority in read_certificates(pem)? {
            roots
                .add(authority)
                .map_err(|error| file_error(pem, format!("is not a certificate authority: {error}")))?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| file_error(pem, error.to_string()))?;
        let mut h2 = builder.with_root_certificates(roots).with_no_client_auth();
        let mut http1 = h2.clone();
        h2.alpn_protocols = vec![H2.to_vec()];
        http1.alpn_protocols = vec![HTTP1.to_vec()];
        Ok(Self { http1: Arc::new(http1), h2: Arc::new(h2) })
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let all: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| file_error(path, format!("cannot read certificates in PEM form: {error}")))?;
    if all.is_empty() {
        return Err(file_error(path, "holds no certificate in PEM form".to_owned()));
    }
    Ok(all)
}

fn file_error(path: &Path, reason: String) -> TransportError {
    TransportError::Certificate { path: path.to_owned(), reason }
}
