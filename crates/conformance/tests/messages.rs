//! Numbers of messages between owners of records: at most one for each pair of targets and each MiB of the file. The
//! tally has the same numbers.
#![allow(clippy::unwrap_used)] // in functions that tests share

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_conformance::samples::{Echo, Stencil};
use gristmill_kernel::{DType, Input, Kernel, Next, RowBatch, catalog};
use gristmill_layout::{Layout, Striped};
use gristmill_runtime::{
    Control, FileParts, Options, Outcome, Part, PartRange, Placement, Request, RunError, Shard, ShardEnd,
    ShardJob, Tally, UnitEnd, UnitOutput, run,
};

const MIB: u64 = 1 << 20;

/// Part of one target, in memory.
struct MemoryPart(Vec<u8>);

impl Part for MemoryPart {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }
    fn unchanged(&self) -> Result<(), RunError> {
        Ok(())
    }
    fn version(&self) -> u64 {
        1
    }
    fn describe(&self) -> String {
        "held".into()
    }
}

/// Part of another owner. Every call is a message.
struct CountingPart {
    part: Arc<MemoryPart>,
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Part for CountingPart {
    fn read(&self, object: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        self.read_many(&[PartRange { object, offset, len: buffer.len() }], buffer)
    }
    fn read_many(&self, wants: &[PartRange<'_>], out: &mut [u8]) -> Result<(), RunError> {
        assert_eq!(wants.iter().map(|want| want.len).sum::<usize>(), out.len());
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.part.read_many(wants, out)
    }
    fn unchanged(&self) -> Result<(), RunError> {
        Ok(())
    }
    fn version(&self) -> u64 {
        1
    }
    fn describe(&self) -> String {
        "counted".into()
    }
}

fn distribute(data: &[u8], layout: &Layout) -> Vec<Arc<MemoryPart>> {
    let objects = (0..layout.targets()).map(|target| {
        let runs = layout.runs(target, 0..data.len() as u64);
        runs.flat_map(|run| &data[run.file.start as usize..run.file.end as usize]).copied().collect()
    });
    objects.map(|object| Arc::new(MemoryPart(object))).collect()
}

fn request(kernel: &Arc<dyn Kernel>, input: Input, file: FileParts, lanes: usize) -> Request {
    let request = Request::new(kernel.clone(), input, file);
    Request { options: Options { lanes, ..Options::default() }, ..request }
}

/// Units and rows in the order of the shard.
#[derive(Default)]
struct ShardRows {
    unit: u64,
    rows: Vec<(u64, RowBatch)>,
}

impl UnitOutput for ShardRows {
    fn begin(&mut self, at: u64) -> Result<(), RunError> {
        self.unit = at;
        Ok(())
    }
    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        self.rows.push((self.unit, batch));
        Ok(())
    }
    fn end(&mut self, _: UnitEnd) -> Result<(), RunError> {
        Ok(())
    }
}

struct Workload {
    kernel: Arc<dyn Kernel>,
    input: Input,
    data: Vec<u8>,
}

impl Workload {
    /// Folds the records of each target separately. Compares the answer with the one of one process, and the messages
    /// with the bound.
    fn check_messages(&self, unit: u64, targets: u32, lanes: usize) {
        let layout = Layout::from(Striped::new(unit, targets, targets / 2).unwrap());
        let objects = distribute(&self.data, &layout);
        let place = Placement { place: "storage", why: "a test", remote: false };
        let length = self.data.len() as u64;
        let file = |parts| FileParts { name: "data".into(), length, layout: layout.clone(), parts, place };
        let whole: Arc<dyn Part> = Arc::new(MemoryPart(self.data.clone()));
        let plain = FileParts { layout: Striped::new(length, 1, 0).unwrap().into(), ..file(vec![whole]) };
        let mut expected = RowBatch::default();
        let plain = run(request(&self.kernel, self.input, plain, lanes), &mut expected, &Control::new());
        let Outcome::Done(answer) = plain.unwrap() else { panic!("it stopped") };

        let mut end = ShardEnd::new(0, targets as usize);
        let mut rows = ShardRows::default();
        let mut job = None;
        for owner in 0..targets {
            let counted: Vec<Arc<CountingPart>> = (objects.iter())
                .map(|part| CountingPart { part: part.clone(), messages: 0.into(), bytes: 0.into() })
                .map(Arc::new)
                .collect();
            let parts = (0..targets).map(|target| -> Arc<dyn Part> {
                if target == owner {
                    objects[target as usize].clone()
                } else {
                    counted[target as usize].clone()
                }
            });
            let request = request(&self.kernel, self.input, file(parts.collect()), lanes);
            let positions = if self.input == Input::lines() { length } else { length / self.size() };
            let shard = Shard {
                targets: vec![owner],
                round: 0,
                shared: [].into(),
                last: false,
                keep: false,
                select: 0..positions,
            };
            let shard = job.insert(ShardJob::new(request, shard).unwrap());
            let tally: Tally = if shard.gives_rows() {
                shard.rows(&mut rows, &Control::new()).unwrap().tally
            } else {
                let one = shard.values(&Control::new()).unwrap();
                let tally = one.tally.clone();
                end.join(&**shard.kernel(), shard.ctx(), one).unwrap();
                tally
            };
            let setup = format!("{unit} bytes a stripe, target {owner} of {targets}, {lanes} lanes");
            for part in &counted {
                let messages = part.messages.load(Ordering::Relaxed);
                assert!(messages <= length.div_ceil(MIB) + 1, "{messages} messages: {setup}");
            }
            let sum = |get: fn(&CountingPart) -> &AtomicU64| {
                counted.iter().map(|part| get(part).load(Ordering::Relaxed)).sum::<u64>()
            };
            assert_eq!(sum(|part| &part.messages), tally.messages, "{setup}");
            assert_eq!(sum(|part| &part.bytes), tally.moved, "{setup}");
        }
        let shard = job.unwrap();
        if shard.gives_rows() {
            rows.rows.sort_by_key(|(unit, _)| *unit);
            let rows = rows.rows.iter().flat_map(|(_, batch)| batch.iter());
            assert!(rows.eq(expected.iter()));
            assert!(!expected.is_empty());
        } else {
            let whole = end.partial.whole(&**shard.kernel(), shard.ctx()).unwrap();
            let Next::Done(value) = shard.kernel().advance(shard.ctx(), &whole).unwrap() else {
                panic!("one pass")
            };
            assert_eq!(value, answer.value);
        }
    }

    fn size(&self) -> u64 {
        match self.input.record {
            gristmill_kernel::RecordRule::Fixed(size) => size,
            gristmill_kernel::RecordRule::Lines => 1,
        }
    }
}

fn floats(bytes: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(bytes);
    (0..bytes / 8).flat_map(|_| (rng.f64() - 0.5).to_le_bytes()).collect()
}

fn bind_kernel(kernel: &str, params: &[(&str, &str)], input: &Input) -> Arc<dyn Kernel> {
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    catalog::bind(kernel, &params, input).unwrap()
}

#[test]
fn records_that_end_after_their_stripe() {
    let input = Input::typed_records(DType::F64, 80).unwrap();
    for kernel in [
        bind_kernel("sum", &[], &input),
        bind_kernel("last", &[], &input),
        bind_kernel("lookup", &[("where", "> 0.45")], &input),
    ] {
        let workload = Workload { kernel, input, data: floats(80 * 150_000) };
        for targets in [2, 3, 4, 7] {
            workload.check_messages(64 << 10, targets, 2);
        }
        workload.check_messages(4 << 10, 3, 1);
    }
}

#[test]
fn rows_with_a_halo() {
    let workload =
        Workload { kernel: Arc::new(Stencil), input: Input::elements(DType::F64), data: floats(6 * MIB) };
    for targets in [2, 3, 7] {
        workload.check_messages(64 << 10, targets, 2);
    }
}

#[test]
fn values_with_a_halo() {
    let input = Input::elements(DType::U8);
    // The halo is less than a stripe, several stripes, or more than one pull.
    for (halo, bytes) in [(1, 9 * MIB), (200_000, 9 * MIB), (3 * MIB, 40 * MIB)] {
        let workload = Workload { kernel: Arc::new(Echo(halo)), input, data: floats(bytes) };
        for targets in [2, 4] {
            workload.check_messages(64 << 10, targets, 2);
        }
    }
}

/// Draws lines of up to so many bytes.
fn text(bytes: u64, longest: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(bytes);
    let mut out = Vec::new();
    while (out.len() as u64) < bytes {
        let line = std::iter::repeat_with(|| rng.lowercase() as u8).take(longest * (out.len() % 97) / 96);
        out.extend(line.collect::<Vec<_>>());
        out.push(b'\n');
    }
    out
}

#[test]
fn rows_of_lines() {
    let input = Input::lines();
    let kernel = bind_kernel("grep", &[("pattern", "q.?x")], &input);
    for longest in [120, 1500] {
        let workload = Workload { kernel: kernel.clone(), input, data: text(9 * MIB, longest) };
        for (unit, targets) in [(64 << 10, 2), (64 << 10, 3), (4 << 10, 2), (4 << 10, 7)] {
            for lanes in [1, 3] {
                workload.check_messages(unit, targets, lanes);
            }
        }
    }
}

#[test]
fn there_are_no_messages_if_records_end_with_their_stripes() {
    let input = Input::elements(DType::F64);
    let data = floats(3 * MIB);
    let layout = Layout::from(Striped::new(64 << 10, 3, 0).unwrap());
    let parts = distribute(&data, &layout).into_iter().map(|part| part as Arc<dyn Part>).collect();
    let place = Placement { place: "storage", why: "a test", remote: false };
    let file = FileParts { name: "data".into(), length: data.len() as u64, layout, parts, place };
    let request = request(&bind_kernel("sum", &[], &input), input, file, 2);
    let Outcome::Done(answer) = run(request, &mut RowBatch::default(), &Control::new()).unwrap() else {
        panic!("it stopped")
    };
    assert_eq!((answer.report.messages, answer.report.bytes_moved), (0, 0));
    assert_eq!(answer.report.bytes_read, data.len() as u64);
}
