//! Settings. Flags override environment variables (`GRISTMILL_*`), which override `gristmill.toml`.

use std::io::ErrorKind;
use std::path::PathBuf;

use gristmill_runtime::Options;
use serde::Deserialize;

use crate::args::TuningArgs;
use crate::error::CliError;
use crate::size::Size;

/// Longest configuration file, in bytes.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The content of `gristmill.toml` in the working directory. `GRISTMILL_CONFIG` names another file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of threads that fold.
    lanes: Option<usize>,
    /// Longest line, as `"4MiB"`.
    max_record: Option<Size>,
}

impl Config {
    /// Reads the file. Without one, and without `GRISTMILL_CONFIG`, all settings have their defaults.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is too long, or does not parse.
    pub fn load() -> Result<Config, CliError> {
        let named = std::env::var_os("GRISTMILL_CONFIG").map(PathBuf::from);
        let path = named.clone().unwrap_or_else(|| PathBuf::from("gristmill.toml"));
        let fail = |why: String| CliError::Config { path: path.clone(), why };
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => {
                return Ok(Config::default());
            }
            Err(error) => return Err(fail(error.to_string())),
            // Opening a pipe would block.
            Ok(meta) if !meta.is_file() => return Err(fail("it is not a regular file".to_owned())),
            Ok(meta) if meta.len() > MAX_CONFIG_BYTES => {
                return Err(fail(format!("it is longer than {MAX_CONFIG_BYTES} bytes")));
            }
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(&path).map_err(|e| fail(e.to_string()))?;
        toml::from_str(&text).map_err(|error| {
            let line =
                error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
            fail(format!(
                "line {line}: {}; it may hold lanes and max_record",
                error.message().replace('\n', " ")
            ))
        })
    }

    /// The options of a run: from flags, else from the file, else the defaults.
    pub fn options(&self, tuning: &TuningArgs) -> Options {
        let default = Options::default();
        let max_record = tuning.max_record.or(self.max_record).map_or(default.max_record, |size| size.0);
        Options { lanes: tuning.lanes.or(self.lanes).unwrap_or(default.lanes), max_record, ..default }
    }
}
