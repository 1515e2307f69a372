//! `gristmill cert`.

use std::net::IpAddr;
use std::process::ExitCode;

use gristmill_transport::make_test_certificates;

use crate::args::CertArgs;
use crate::commands::line;
use crate::error::CliError;

/// Makes certificates for tests.
pub fn cert(args: &CertArgs) -> Result<ExitCode, CliError> {
    if let Some(name) = args.names.iter().find(|name| !is_host(name)) {
        return Err(CliError::Usage(format!(
            "{name:?} is not a host name: write the DNS name or the IP address that clients use, without a port, such as \
             storage0.example or 192.0.2.7"
        )));
    }
    std::fs::create_dir_all(&args.dir).map_err(|source| CliError::File {
        verb: "make",
        path: args.dir.clone(),
        source,
    })?;
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    names.extend(args.names.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    let made = make_test_certificates(&args.dir, &names)?;
    line(&format!("nodes: --cert {} --tls-key {}", made.cert.display(), made.key.display()))?;
    line(&format!("clients: GRISTMILL_CA={}", made.ca.display()))
}

/// Longest DNS name, and longest part between its dots, in characters.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Whether a TLS client can look for this name in a certificate: an IP address, or a DNS name. The first part of a DNS
/// name may be `*`.
fn is_host(name: &str) -> bool {
    if name.parse::<IpAddr>().is_ok() {
        return true;
    }
    let wild = name.strip_prefix("*.");
    let labels = wild.unwrap_or(name);
    let is_label = |label: &str| {
        let fits = (1..=MAX_LABEL).contains(&label.len());
        let known = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        fits && known && !label.starts_with('-') && !label.ends_with('-')
    };
    // A name whose last part is a number is a wrong address; clients do not look for it as a name.
    let numeric = labels.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    name.len() <= MAX_NAME && labels.split('.').all(is_label) && !numeric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_told_from_what_no_client_dials() {
        for name in
            ["localhost", "storage0", "a_b.example", "*.lab.example", "192.0.2.7", "2001:db8::1", "x-1.y2"]
        {
            assert!(is_host(name), "{name}");
        }
        let long = format!("{}.example", "a".repeat(64));
        for name in [
            "",
            "bad name",
            "storage0:7440",
            "192.0.2",
            "192.0.2.256",
            "-a",
            "a-.b",
            "a..b",
            "a.",
            ".a",
            "*",
            "a.*.b",
            "http://a",
            "a/b",
            "[::1]",
            "*.192.0.2.7",
            "übung.example",
            &long,
        ] {
            assert!(!is_host(name), "{name}");
        }
    }
}
