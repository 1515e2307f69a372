//! Certificates for tests of TLS, for users without a certificate authority.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::{Result, TransportError};

/// Days for which test certificates are valid: a year, so that a test cluster does not stop after a month.
pub const TEST_CERTIFICATE_DAYS: u64 = 365;

/// Most names in one test certificate.
pub const MAX_CERTIFICATE_NAMES: usize = 256;

/// How long before its creation a certificate becomes valid, because clocks of a cluster may differ.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

const DEFAULT_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The files of [`make_test_certificates`], all in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate of the authority, for every client (`ca.pem`).
    pub ca: PathBuf,
    /// The server's certificate (`cert.pem`).
    pub cert: PathBuf,
    /// The server's private key (`key.pem`, mode 0600).
    pub key: PathBuf,
}

/// Makes a certificate authority and a server certificate for `names` (names or IP addresses).
///
/// If `names` is empty, the names are `localhost`, `127.0.0.1` and `::1`. All servers of a test cluster share one
/// certificate, so give all their names. The key of the authority is not stored: it cannot sign more certificates, and
/// it cannot leak. Existing files are never overwritten. The certificates are valid for [`TEST_CERTIFICATE_DAYS`].
///
/// # Errors
/// The error is [`TransportError::Certificate`] if there are too many names, if a name is not possible in a
/// certificate, and if a file exists or cannot be written. Then the files that it made are removed.
pub fn make_test_certificates(dir: &Path, names: &[String]) -> Result<CertificateFiles> {
    let failed = |reason: String| TransportError::Certificate { path: dir.to_owned(), reason };
    let failed_to_make = |error: rcgen::Error| failed(format!("no certificate could be made: {error}"));
    if names.len() > MAX_CERTIFICATE_NAMES {
        return Err(failed(format!("a certificate has at most {MAX_CERTIFICATE_NAMES} names")));
    }
    let names = match names {
        [] => DEFAULT_NAMES.map(str::to_owned).to_vec(),
        names => names.to_vec(),
    };

    let mut authority = dated_params(Vec::new(), "Gristmill test authority").map_err(failed_to_make)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().map_err(failed_to_make)?)
        .map_err(failed_to_make)?;

    let mut server = dated_params(names, "Gristmill test server").map_err(failed_to_make)?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().map_err(failed_to_make)?;
    let certificate = server.signed_by(&key, &authority).map_err(failed_to_make)?;

    std::fs::create_dir_all(dir).map_err(|error| failed(error.to_string()))?;
    let files =
        CertificateFiles { ca: dir.join("ca.pem"), cert: dir.join("cert.pem"), key: dir.join("key.pem") };
    let contents = [
        (&files.key, 0o600, key.serialize_pem()),
        (&files.cert, 0o644, certificate.pem()),
        (&files.ca, 0o644, authority.pem()),
    ];
    let mut written: Vec<&PathBuf> = Vec::new();
    for (path, mode, text) in &contents {
        if let Err(reason) = write_new(path, *mode, text) {
            // An incomplete set of files would look complete.
            for earlier in written {
                let _ = std::fs::remove_file(earlier);
            }
            return Err(TransportError::Certificate { path: path.to_path_buf(), reason });
        }
        written.push(path);
    }
    Ok(files)
}

fn dated_params(names: Vec<String>, common: &str) -> std::result::Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, common);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
    params.not_after = epoch + now + Duration::from_secs(TEST_CERTIFICATE_DAYS * 24 * 3600);
    Ok(params)
}

fn write_new(path: &Path, mode: u32, text: &str) -> std::result::Result<(), String> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(
                "exists already and is not overwritten: remove it, or choose another directory".into()
            );
        }
        Err(error) => return Err(format!("cannot be written: {error}")),
    };
    file.write_all(text.as_bytes()).map_err(|error| {
        let _ = std::fs::remove_file(path);
        format!("cannot be written: {error}")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{ClientTls, ServerTls};

    #[test]
    fn files_load_and_the_key_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let files = make_test_certificates(&dir.path().join("new"), &[]).unwrap();
        ServerTls::load(&files.cert, &files.key).unwrap();
        ClientTls::from_ca(&files.ca).unwrap();
        assert_eq!(std::fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn existing_files_stay_and_new_files_are_removed_after_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), "mine").unwrap();
        let error = make_test_certificates(dir.path(), &[]).unwrap_err();
        assert!(error.to_string().contains("ca.pem: exists already"), "{error}");
        assert_eq!(std::fs::read_to_string(dir.path().join("ca.pem")).unwrap(), "mine");
        assert!(!dir.path().join("key.pem").exists() && !dir.path().join("cert.pem").exists());
    }

    #[test]
    fn a_key_of_another_certificate_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let one = make_test_certificates(&dir.path().join("1"), &[]).unwrap();
        let two = make_test_certificates(&dir.path().join("2"), &["node".to_owned()]).unwrap();
        let error = ServerTls::load(&one.cert, &two.key).unwrap_err();
        assert!(error.to_string().contains("key.pem: does not fit"), "{error}");
        let error = ClientTls::from_ca(&one.key).unwrap_err();
        assert!(error.to_string().contains("key.pem: holds no certificate"), "{error}");
        let error = ClientTls::from_ca(&dir.path().join("none.pem")).unwrap_err();
        assert!(error.to_string().contains("none.pem: cannot read"), "{error}");
    }
}
