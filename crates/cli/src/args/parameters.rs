//! Parameters of kernels that have an option of their own.

use clap::Args;

use crate::error::CliError;

/// Parameters that are asked for often. All others, and these too, are given with `--param`.
#[derive(Debug, Args)]
pub struct ParamArgs {
    /// quantile: shares from 0 to 1, as 0.5 or 0.1,0.9; the parameter q
    #[arg(short = 'q', long = "q", value_name = "SHARE,...")]
    pub shares: Option<String>,
    /// lookup: the condition that elements meet, as '> 3.5'; the parameter where
    #[arg(long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub condition: Option<String>,
    /// grep: the regular expression; the parameter pattern
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub pattern: Option<String>,
    /// grep, lookup: only how many there are; the parameter count_only
    #[arg(long)]
    pub count_only: bool,
    /// histogram: how many bins, between the ends that --param range=LOW:HIGH says; the parameter bins
    #[arg(long, value_name = "N")]
    pub bins: Option<String>,
    /// var, std: degrees of freedom taken from the count; the parameter ddof
    #[arg(long, value_name = "N")]
    pub ddof: Option<String>,
}

impl ParamArgs {
    /// The parameters of a kernel: those with names of their own, and `given` beside them.
    ///
    /// # Errors
    /// One that is given in both ways.
    pub fn with(&self, given: &[(String, String)]) -> Result<Vec<(String, String)>, CliError> {
        let own = [
            ("q", "-q", self.shares.clone()),
            ("where", "--where", self.condition.clone()),
            ("pattern", "--pattern", self.pattern.clone()),
            ("count_only", "--count-only", self.count_only.then(|| "true".to_owned())),
            ("bins", "--bins", self.bins.clone()),
            ("ddof", "--ddof", self.ddof.clone()),
        ];
        let mut all = given.to_vec();
        for (name, option, value) in own {
            let Some(value) = value else { continue };
            if given.iter().any(|(other, _)| other == name) {
                return Err(CliError::Usage(format!(
                    "{name} is given with {option} and with --param; leave one out"
                )));
            }
            all.push((name.to_owned(), value));
        }
        Ok(all)
    }
}
