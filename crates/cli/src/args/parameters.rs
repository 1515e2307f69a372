//! Parameters of kernels that have their own option.

use clap::Args;

use crate::error::CliError;

/// Options for frequent parameters. `--param` gives these and all others.
#[derive(Debug, Args)]
pub struct ParamArgs {
    /// quantile: shares from 0 to 1, such as 0.5 or 0.1,0.9; the parameter q
    #[arg(short = 'q', long = "q", value_name = "SHARE,...")]
    pub shares: Option<String>,
    /// lookup: the condition that elements meet, such as '> 3.5'; the parameter where
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub condition: Option<String>,
    /// grep: the regular expression; the parameter pattern
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub pattern: Option<String>,
    /// grep, lookup: only the number of rows; the parameter count_only
    #[arg(long)]
    pub count_only: bool,
    /// histogram: number of bins in --param range=LOW:HIGH; the parameter bins
    #[arg(long, value_name = "N")]
    pub bins: Option<String>,
    /// var, std: degrees of freedom to subtract from the count; the parameter ddof
    #[arg(long, value_name = "N")]
    pub ddof: Option<String>,
}

impl ParamArgs {
    /// All parameters of a kernel: those of these options, and `given`, those of `--param`.
    ///
    /// # Errors
    /// Returns an error if a parameter is given in both ways.
    pub fn merged(&self, given: &[(String, String)]) -> Result<Vec<(String, String)>, CliError> {
        let options = [
            ("q", "-q", self.shares.clone()),
            ("where", "--where", self.condition.clone()),
            ("pattern", "--pattern", self.pattern.clone()),
            ("count_only", "--count-only", self.count_only.then(|| "true".to_owned())),
            ("bins", "--bins", self.bins.clone()),
            ("ddof", "--ddof", self.ddof.clone()),
        ];
        let mut all = given.to_vec();
        for (name, option, value) in options {
            let Some(value) = value else { continue };
            if given.iter().any(|(other, _)| other == name) {
                return Err(CliError::Usage(format!(
                    "{name} is given with {option} and with --param; omit one"
                )));
            }
            all.push((name.to_owned(), value));
        }
        Ok(all)
    }
}
