//! Folds inside the storage of parts: the same answers as without, whatever the storage does not fold.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_kernel::{ByteOrder, DType, Input, Value, catalog};
use gristmill_layout::{Layout, Striped};
use gristmill_object_fold::{
    Binding, FoldOrder, FoldPolicy, FoldRefusal, Folded, ObjectFolder, Span, check_foldable, fold_object,
    split_spans,
};
use gristmill_runtime::{
    Answer, Control, Discard, FileParts, Options, Outcome, Part, Placement, Request, RunError, StorePart, run,
};
use gristmill_store::{CreateOptions, MemoryStore, ObjectId, ObjectStore, ReadOptions, WriteOptions};

/// Folds the objects of a store as storage daemons do, in pieces.
struct Daemons {
    store: Arc<MemoryStore>,
    piece: u64,
    /// Blocks that one call folds.
    blocks: usize,
    /// The piece that cannot be folded.
    broken: Option<u64>,
    refuses: bool,
    asked: AtomicUsize,
}

impl ObjectFolder for Daemons {
    fn fold(&self, object: &str, order: &FoldOrder, spans: &[Span]) -> Result<Folded, FoldRefusal> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.refuses {
            return Err(FoldRefusal("there is no class".into()));
        }
        let id = ObjectId::new(object).unwrap();
        let record = check_foldable(&order.binding.bind().unwrap().spec(), order.last).unwrap();
        let mut all = Folded::default();
        for (index, spans) in split_spans(spans, record, self.piece).pieces {
            if Some(index) == self.broken {
                continue;
            }
            let mut read = |offset: u64, length: usize| {
                assert!(offset + length as u64 <= self.piece, "no piece is longer");
                let mut bytes = vec![0; length];
                let read = self
                    .store
                    .read_at(&id, index * self.piece + offset, &mut bytes, ReadOptions::default())
                    .ok()?;
                bytes.truncate(read);
                Some(bytes)
            };
            let mut blocks = 0;
            let mut out_of_time = || {
                blocks += 1;
                blocks >= self.blocks
            };
            let (order, asked) = FoldOrder::decode(&order.encode(&spans).unwrap()).unwrap();
            let folded = fold_object(&order, &asked, &mut read, &mut out_of_time).unwrap();
            all.add(Folded::decode(&folded.encode().unwrap(), &spans).unwrap());
        }
        Ok(all)
    }
}

/// A file of these bytes on two targets, whose storage folds.
struct World {
    file: FileParts,
    daemons: Vec<Arc<Daemons>>,
}

fn world(bytes: &[u8], unit: u64, change: impl Fn(Daemons) -> Daemons) -> World {
    let layout = Layout::Striped(Striped::new(unit, 2, 0).unwrap());
    let mut parts: Vec<Arc<dyn Part>> = Vec::new();
    let mut daemons = Vec::new();
    for target in 0..2 {
        let store = Arc::new(MemoryStore::new());
        let id = ObjectId::new("object").unwrap();
        store.create(&id, &CreateOptions::default()).unwrap();
        for run in layout.runs(target, 0..bytes.len() as u64) {
            let data = &bytes[run.file.start as usize..run.file.end as usize];
            store.write_at(&id, run.object_offset, data, WriteOptions::default()).unwrap();
        }
        let new = Daemons {
            store: store.clone(),
            piece: 40_000,
            blocks: usize::MAX,
            broken: None,
            refuses: false,
            asked: AtomicUsize::new(0),
        };
        let folder = Arc::new(change(new));
        daemons.push(folder.clone());
        parts.push(Arc::new(StorePart::open(store, id, format!("{target}")).unwrap().folding(Some(folder))));
    }
    let place = Placement { place: "storage", why: "a test", remote: false };
    let file = FileParts { name: "file".into(), length: bytes.len() as u64, layout, parts, place };
    World { file, daemons }
}

impl World {
    fn request(&self, kernel: &str, input: Input, policy: FoldPolicy) -> Request {
        // Only "max" fails on what is no number.
        let params = if kernel == "max" { vec![("nan".to_owned(), "error".to_owned())] } else { Vec::new() };
        let bound = catalog::bind(kernel, &params, &input).unwrap();
        let mut request = Request::new(bound.clone(), input.for_kernel(&bound.spec()), self.file.clone());
        request.binding = Some(Binding::new(kernel, &params, input, ByteOrder::Little));
        request.fold_policy = policy;
        request.options = Options { lanes: 2, block_bytes: 4096, unit_bytes: 70_000, ..Options::default() };
        request
    }

    fn answer(&self, kernel: &str, input: Input, policy: FoldPolicy) -> Result<Answer, RunError> {
        match run(self.request(kernel, input, policy), &mut Discard, &Control::new())? {
            Outcome::Done(answer) => Ok(answer),
            Outcome::Stopped(_) => panic!("nobody stopped it"),
        }
    }

    fn asked(&self) -> usize {
        self.daemons.iter().map(|daemons| daemons.asked.load(Ordering::Relaxed)).sum()
    }
}

fn numbers(count: u64) -> Vec<u8> {
    (0..count)
        .flat_map(|n| ((n * 7919 % 997) as f64 * 1e-3 + 1e9 * ((n % 3) as f64 - 1.0)).to_le_bytes())
        .collect()
}

const F64: Input = Input::elements(DType::F64);

#[test]
fn answers_are_the_same_wherever_the_storage_folds() {
    let bytes = numbers(50_000);
    // Records of 8 bytes cross neither stripes nor pieces, both, or only pieces.
    for unit in [16_384, 10_001, 65_536] {
        for (blocks, broken) in [(usize::MAX, None), (1, None), (usize::MAX, Some(1)), (2, Some(0))] {
            let world = world(&bytes, unit, |daemons| Daemons { blocks, broken, piece: 40_004, ..daemons });
            for kernel in ["sum", "mean", "var", "median", "minmax", "count"] {
                let never = world.answer(kernel, F64, FoldPolicy::Never).unwrap();
                assert_eq!(never.report.bytes_folded_in_storage, 0);
                for policy in [FoldPolicy::Auto, FoldPolicy::Always] {
                    let answer = world.answer(kernel, F64, policy).unwrap();
                    let how = format!(
                        "{kernel} {policy:?} in stripes of {unit}, {blocks} blocks, without {broken:?}"
                    );
                    assert_eq!(answer.value, never.value, "{how}");
                    assert!(answer.report.bytes_folded_in_storage > 0, "{how}");
                    if kernel == "sum" && policy == FoldPolicy::Always && broken.is_none() {
                        let inside = answer.report.bytes_folded_in_storage;
                        assert!(inside > 395_000 && inside <= 400_000, "{inside} {how}");
                        // In whole stripes only the ends of pieces are in the way, each half a record of 8 bytes.
                        assert!(unit == 10_001 || 400_000 - inside <= 8 * 10, "{inside} {how}");
                    }
                }
            }
        }
    }
}

#[test]
fn lines_are_folded_in_the_storage_too() {
    let text: Vec<u8> = "one two\nthree\n\n".bytes().cycle().take(200_003).collect();
    let world = world(&text, 10_007, |daemons| daemons);
    let here = world.answer("wc", Input::lines(), FoldPolicy::Never).unwrap();
    let there = world.answer("wc", Input::lines(), FoldPolicy::Always).unwrap();
    assert_eq!(there.value, here.value);
    assert_eq!(there.report.bytes_folded_in_storage, 200_003);
}

#[test]
fn slow_storage_is_given_up_unless_it_must_fold() {
    let world = world(&numbers(400_000), 65_536, |daemons| Daemons { blocks: 1, ..daemons });
    let auto = world.answer("sum", F64, FoldPolicy::Auto).unwrap();
    let few = world.asked();
    assert!(few <= 2 && auto.report.bytes_folded_in_storage < 1_600_000, "each lane asks once: {few}");
    world.answer("sum", F64, FoldPolicy::Always).unwrap();
    assert!(world.asked() > few + 10);
}

#[test]
fn storage_that_refuses_is_an_error_only_if_it_must_fold() {
    let world = world(&numbers(5_000), 8_192, |daemons| Daemons { refuses: true, ..daemons });
    let auto = world.answer("sum", F64, FoldPolicy::Auto).unwrap();
    assert_eq!(auto.report.bytes_folded_in_storage, 0);
    let error = world.answer("sum", F64, FoldPolicy::Always).unwrap_err();
    assert!(matches!(&error, RunError::NotInStorage { why } if why == "there is no class"), "{error}");
    assert!(error.is_usage());
}

#[test]
fn a_kernel_that_cannot_run_there_is_refused_before_anything_is_read() {
    let world = world(&numbers(5_000), 8_192, |daemons| daemons);
    let mut request = world.request("sum", F64, FoldPolicy::Always);
    request.kernel = catalog::bind("lookup", &[("where".into(), "> 1".into())], &F64).unwrap();
    let error = run(request, &mut Discard, &Control::new()).unwrap_err();
    assert!(error.to_string().contains("gives rows"), "{error}");
    let mut request = world.request("sum", F64, FoldPolicy::Always);
    request.binding = None;
    let error = run(request, &mut Discard, &Control::new()).unwrap_err();
    assert!(error.to_string().contains("built-in"), "{error}");
    assert_eq!(world.asked(), 0);
}

#[test]
fn a_failure_is_reported_at_its_record() {
    let mut bytes = numbers(5_000);
    bytes[8 * 3_000..8 * 3_001].copy_from_slice(&f64::NAN.to_le_bytes());
    let world = world(&bytes, 8_192, |daemons| daemons);
    let here = world.answer("max", F64, FoldPolicy::Never).unwrap_err().to_string();
    let there = world.answer("max", F64, FoldPolicy::Always).unwrap_err().to_string();
    assert_eq!(there, here);
    assert_eq!(
        world.answer("sum", F64, FoldPolicy::Always).unwrap().value.get("sum").map(is_nan),
        Some(true)
    );
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(x) if x.is_nan())
}
