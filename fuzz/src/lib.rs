//! What the targets share: the kernels as people bind them, and a bound on what a short input may allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::{Arc, OnceLock};

use gristmill_kernel::{DType, Input, Kernel, catalog};

/// Largest allocation that an input of a few kilobytes may cause.
const MAX_ALLOCATION: usize = 64 << 20;

struct Bounded;

// SAFETY: every call is handed on to the system's allocator unchanged, or ends the process.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; all memory comes from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

fn check(size: usize) {
    if size > MAX_ALLOCATION {
        // Nothing may be allocated here, so the message is fixed; libFuzzer prints the stack and keeps the input.
        eprintln!("a short input led to an allocation of more than 64 MiB");
        std::process::abort();
    }
}

/// Built-in kernels, each bound in the ways that its code differs by.
pub fn kernels() -> &'static [Arc<dyn Kernel>] {
    static KERNELS: OnceLock<Vec<Arc<dyn Kernel>>> = OnceLock::new();
    KERNELS.get_or_init(|| {
        let lines = Input::lines();
        let records = Input::records(4).expect("4 bytes are a record");
        let (f64, f32, i32) =
            (Input::elements(DType::F64), Input::elements(DType::F32), Input::elements(DType::I32));
        let (u8, u64) = (Input::elements(DType::U8), Input::elements(DType::U64));
        let bound: &[(&str, &[(&str, &str)], Input)] = &[
            ("count", &[], f64),
            ("count", &[], lines),
            ("first", &[], lines),
            ("first", &[], records),
            ("last", &[], lines),
            ("last", &[], f32),
            ("grep", &[("pattern", "[a-c]+x")], lines),
            ("grep", &[("pattern", "a"), ("count_only", "true")], records),
            ("histogram", &[("bins", "4")], f64),
            ("histogram", &[("bins", "4"), ("range", "-1:1")], f32),
            ("histogram", &[("bins", "3")], u64),
            ("lookup", &[("where", "> 3")], f64),
            ("lookup", &[("where", "0..7"), ("count_only", "true")], u8),
            ("max", &[], f64),
            ("min", &[], u8),
            ("minmax", &[], i32),
            ("minmax", &[], f32),
            ("mean", &[], f64),
            ("mean", &[], u64),
            ("sum", &[], f64),
            ("sum", &[], i32),
            ("var", &[("ddof", "1")], f64),
            ("var", &[], u64),
            ("wc", &[], lines),
        ];
        let bind = |(name, params, input): &(&str, &[(&str, &str)], Input)| {
            let params: Vec<_> = params.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            catalog::bind(name, &params, input).ok()
        };
        let kernels: Vec<_> = bound.iter().filter_map(bind).collect();
        assert!(kernels.len() + 6 > bound.len(), "most of them can be bound");
        kernels
    })
}

/// The kernel that the first byte of an input names, and the rest of the input.
pub fn kernel_of(bytes: &[u8]) -> Option<(&'static dyn Kernel, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let kernels = kernels();
    Some((&**kernels.get(usize::from(*first) % kernels.len())?, rest))
}

/// A piece of the input behind its length in one byte (or what there is of it).
pub fn piece<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let Some((length, rest)) = bytes.split_first() else { return &[] };
    let (piece, rest) = rest.split_at(usize::from(*length).min(rest.len()));
    *bytes = rest;
    piece
}
