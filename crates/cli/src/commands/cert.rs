//! `gristmill cert`.

use std::process::ExitCode;

use gristmill_transport::make_test_certificates;

use crate::args::CertArgs;
use crate::commands::line;
use crate::error::CliError;

/// Makes certificates for tests.
pub fn cert(args: &CertArgs) -> Result<ExitCode, CliError> {
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
