//! `gristmill kernels`.

use std::io::{self, Write};
use std::process::ExitCode;

use gristmill_kernel::catalog::{Accepts, BUILT_IN, Declaration, find};
use serde_json::{Value as Json, json};

use crate::args::KernelsArgs;
use crate::commands::operations::{self, OPERATIONS, Operation};
use crate::error::CliError;

/// Longest line of an explanation in characters.
const WIDTH: usize = 90;

/// Lists the kernels, or explains one.
pub fn kernels(args: &KernelsArgs) -> Result<ExitCode, CliError> {
    let mut out = Vec::new();
    let written = match (&args.name, args.json) {
        (None, false) => list(&mut out),
        (None, true) => {
            writeln!(out, "{}", Json::Array(BUILT_IN.iter().map(|decl| describe(decl)).collect()))
        }
        (Some(name), false) if operations::word_meaning(name).is_some() => {
            writeln!(out, "{}", wrapped(operations::word_meaning(name).unwrap_or_default(), WIDTH))
        }
        (Some(name), json) => match (find(name), operations::find(name)) {
            (Err(_), Some(operation)) if json => writeln!(out, "{}", operation.describe()),
            (Err(_), Some(operation)) => explain_operation(&mut out, operation),
            (Err(error), None) => return Err(error.into()),
            (Ok(decl), _) if json => writeln!(out, "{}", describe(decl)),
            (Ok(decl), operation) => explain(&mut out, decl).and_then(|()| match operation {
                Some(operation) => {
                    writeln!(out)?;
                    explain_operation(&mut out, operation)
                }
                None => Ok(()),
            }),
        },
    };
    written.and_then(|()| io::stdout().write_all(&out)).map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}

fn list(out: &mut dyn Write) -> io::Result<()> {
    for decl in BUILT_IN {
        writeln!(out, "{:10} {}", decl.name, decl.summary)?;
    }
    writeln!(
        out,
        "\nOver a variable of a netCDF, HDF5, Zarr, .npy or .csv file (--var), along any of its dimensions:"
    )?;
    for operation in OPERATIONS {
        writeln!(out, "  {:10} {}", operation.name, operation.summary)?;
    }
    writeln!(
        out,
        "\n'gristmill kernels NAME' explains one, and the words 'exact', 'binned' and 'fixed' of a report."
    )
}

fn explain_operation(out: &mut dyn Write, operation: &Operation) -> io::Result<()> {
    writeln!(out, "{} of a variable (--var): {}\n", operation.name, operation.summary)?;
    writeln!(out, "{}\n\nParameters (--param NAME=VALUE):", wrapped(operation.details, WIDTH))?;
    for (name, help, example) in operation.all_params() {
        writeln!(out, "  {name}\n      {help}; for example {name}={example}")?;
    }
    Ok(())
}

fn accepts(decl: &Declaration) -> String {
    let words: Vec<_> = decl
        .accepts
        .iter()
        .map(|accepts| match accepts {
            Accepts::Elements => "numbers (--type)",
            Accepts::Records => "records of a fixed size (--record)",
            Accepts::Lines => "lines of text",
        })
        .collect();
    words.join(", ")
}

fn explain(out: &mut dyn Write, decl: &Declaration) -> io::Result<()> {
    writeln!(out, "{}: {}\n", decl.name, decl.summary)?;
    writeln!(out, "Input      {}", accepts(decl))?;
    writeln!(out, "Numerics   {}", decl.numerics)?;
    let width = decl.result.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (n, (name, meaning)) in decl.result.iter().enumerate() {
        let label = if n == 0 { "Result" } else { "" };
        writeln!(out, "{label:10} {name:width$}  {meaning}")?;
    }
    if let Some(rows) = decl.rows {
        writeln!(out, "Rows       {rows}")?;
    }
    if !decl.params.is_empty() {
        writeln!(out, "\nParameters (--param NAME=VALUE):")?;
    }
    for param in decl.params {
        let default = match param.default {
            _ if param.required => ", required".to_owned(),
            Some(default) => format!(", default {default}"),
            None => String::new(),
        };
        writeln!(out, "  {} ({}{default})", param.name, param.kind.describe())?;
        writeln!(out, "      {}; for example {}={}", param.help, param.name, param.example)?;
    }
    writeln!(out, "\n{}", wrapped(decl.details, WIDTH))
}

/// Breaks text into lines of at most `width` characters; a longer word gets its own line.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let fits = lines.last().is_some_and(|line| line.is_empty() || line.len() + 1 + word.len() <= width);
        if !fits {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn describe(decl: &Declaration) -> Json {
    let params: Vec<Json> = decl
        .params
        .iter()
        .map(|param| {
            json!({
                "name": param.name, "kind": param.kind.describe(), "default": param.default,
                "required": param.required, "help": param.help, "example": param.example,
            })
        })
        .collect();
    let result: Vec<Json> =
        decl.result.iter().map(|(name, meaning)| json!({ "name": name, "meaning": meaning })).collect();
    json!({
        "name": decl.name, "summary": decl.summary, "details": decl.details, "input": accepts(decl),
        "numerics": decl.numerics.to_string(), "result": result, "rows": decl.rows, "params": params,
    })
}
