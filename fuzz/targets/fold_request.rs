//! Tickets: a fold over one node's records, or a kernel over a file by path.
#![no_main]

use gristmill_kernel::catalog;
use gristmill_wire::{FoldRequest, InputSpec, RunRequest};
use libfuzzer_sys::fuzz_target;

fn bind(kernel: &str, params: &[(String, String)], input: &InputSpec) {
    if let Ok((input, _)) = input.input() {
        let _ = catalog::bind(kernel, params, &input).map(|kernel| kernel.spec());
    }
}

fuzz_target!(|bytes: &[u8]| {
    match FoldRequest::decode(bytes) {
        Ok(Some(fold)) => {
            let again = fold.encode().expect("what was decoded can be encoded");
            assert_eq!(FoldRequest::decode(&again).expect("and decoded").as_ref(), Some(&fold));
            let _ = fold.shared();
            bind(&fold.kernel, &fold.params, &fold.input);
        }
        Ok(None) => {
            if let Ok(run) = RunRequest::decode(bytes) {
                bind(&run.kernel, &run.params(), &run.input());
            }
        }
        Err(_) => {}
    }
});
