//! The binary `gristmill`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let program = std::env::current_exe().map_or_else(|_| "gristmill".into(), |path| path.into_os_string());
    gristmill_cli::main(std::env::args_os().collect(), vec![program])
}
