//! Runs the kernel: sign-changes FILE [NAME=VALUE]...
//!
//! The file is plain, striped over directories (*.grist) or on storage nodes (grist://HOST:PORT/PATH). Nodes do not have
//! this kernel, so this program folds it over plain reads.

use std::error::Error;

use gristmill_client::{Cluster, ClusterOptions, Location, open_file};
use gristmill_kernel::{DType, Input, Params, Value};
use gristmill_runtime::{Control, Discard, Outcome, Request, run};
use sign_changes::DECLARATION;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("give a file of f64")?;
    let pair = |word: String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let given: Vec<_> =
        words.map(|word| pair(word).ok_or("write parameters as NAME=VALUE")).collect::<Result<_, _>>()?;

    let input = Input::elements(DType::F64);
    let params = Params::check(DECLARATION.name, DECLARATION.params, &given)?;
    let kernel = (DECLARATION.bind)(&params, &input)?;

    let location = Location::parse(&file)?;
    let parts = match location.cluster() {
        None => open_file(&location, false)?,
        Some(url) => {
            let cluster = Cluster::connect(ClusterOptions::from_env(url.entry.as_deref())?)?;
            cluster.parts(&cluster.open(&url.path)?)?
        }
    };
    let request = Request::new(kernel, input, parts);
    let Outcome::Done(answer) = run(request, &mut Discard, &Control::new())? else { return Ok(()) };
    for name in ["changes", "count"] {
        if let Some(Value::Int(number)) = answer.value.get(name) {
            println!("{name:8} {number}");
        }
    }
    Ok(())
}
