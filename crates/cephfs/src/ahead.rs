//! Bytes of files that threads read before they are needed.
//!
//! A call of the library waits for the storage daemons, so only as many objects are read at once as there are threads. The lanes of a
//! fold are few. These threads ask for the next objects meanwhile.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use gristmill_backend::{AheadBudget, AheadLimits, Arriving, Buffer, Buffers, ReadAhead};
use rustix::process::{Pid, getpid};

/// Most bytes of all files that are read ahead, or were and are still kept.
pub const MAX_AHEAD: u64 = 64 << 20;

/// Most reads ahead at once.
pub const MAX_READS_AHEAD: usize = 8;

/// Most reads ahead that wait for a thread. Others are not begun.
const MAX_WAITING: usize = 256;

/// Time after which a thread without work ends.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// A piece is one object of a usual file.
const LIMITS: AheadLimits = AheadLimits { bytes: MAX_AHEAD, piece: 4 << 20, gap: 32 << 10, kept: 8 };

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the read of a segment is.
enum Progress {
    Waiting,
    Running,
    /// It has the bytes if they could be read.
    Ended(Option<Arc<Buffer>>),
}

struct Shared {
    progress: Mutex<Progress>,
    ended: Condvar,
}

/// A segment that a thread reads.
#[derive(Clone)]
pub(crate) struct ReadSegment(Arc<Shared>);

impl ReadSegment {
    fn new() -> ReadSegment {
        ReadSegment(Arc::new(Shared { progress: Mutex::new(Progress::Waiting), ended: Condvar::new() }))
    }

    /// Whether it still waits to be read. Then nobody else begins to read it.
    fn begin(&self) -> bool {
        let mut progress = lock(&self.0.progress);
        let waits = matches!(*progress, Progress::Waiting);
        if waits {
            *progress = Progress::Running;
        }
        waits
    }

    fn end(&self, bytes: Option<Buffer>) {
        *lock(&self.0.progress) = Progress::Ended(bytes.map(Arc::new));
        self.0.ended.notify_all();
    }

    fn waits(&self) -> bool {
        matches!(*lock(&self.0.progress), Progress::Waiting)
    }

    /// Waits for the bytes. There are none if they could not be read, and if no thread has begun: a thread that waits for the storage
    /// does not hold up those who need other bytes.
    fn wait(&self) -> Option<Arc<Buffer>> {
        let mut progress = lock(&self.0.progress);
        loop {
            match &*progress {
                Progress::Waiting => *progress = Progress::Ended(None),
                Progress::Running => {
                    progress = self.0.ended.wait(progress).unwrap_or_else(PoisonError::into_inner);
                }
                Progress::Ended(bytes) => return bytes.clone(),
            }
        }
    }
}

impl Arriving for ReadSegment {
    fn give_up(&self) {
        let mut progress = lock(&self.0.progress);
        if matches!(*progress, Progress::Waiting) {
            *progress = Progress::Ended(None);
        }
    }
}

/// Reads bytes from an offset. The buffer has room for them. Returns whether all were read.
type Read = dyn Fn(Range<u64>, &mut Vec<u8>) -> bool + Send + Sync;

struct Work {
    segment: ReadSegment,
    range: Range<u64>,
    read: Arc<Read>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

/// The threads that read ahead, and what they may hold.
struct Threads {
    process: Pid,
    queue: Mutex<Queue>,
    more: Condvar,
    budget: Arc<AheadBudget<ReadSegment>>,
    buffers: Arc<Buffers>,
}

/// The threads of this process, or of the one from which it was forked.
static THREADS: OnceLock<Arc<Threads>> = OnceLock::new();

impl Threads {
    fn new() -> Arc<Threads> {
        let budget = Arc::new(AheadBudget::new(LIMITS));
        let (queue, more) = (Mutex::default(), Condvar::new());
        Arc::new(Threads { process: getpid(), queue, more, budget, buffers: Arc::default() })
    }

    /// Those of this process. A process that was forked from one with threads has none.
    fn of_process() -> Option<&'static Arc<Threads>> {
        Some(THREADS.get_or_init(Threads::new)).filter(|threads| threads.is_of_this_process())
    }

    fn is_of_this_process(&self) -> bool {
        self.process == getpid()
    }

    /// Gives work to a thread that has none, or to a new one. Work that finds no place is not done.
    fn add(self: &Arc<Threads>, work: Work) {
        let mut queue = lock(&self.queue);
        if queue.waiting.len() >= MAX_WAITING {
            queue.waiting.retain(|work| work.segment.waits());
        }
        if queue.idle <= queue.waiting.len() && queue.threads < MAX_READS_AHEAD {
            let threads = self.clone();
            let started = Builder::new().name("ceph ahead".into()).spawn(move || threads.work());
            queue.threads += usize::from(started.is_ok());
        }
        if queue.threads == 0 || queue.waiting.len() >= MAX_WAITING {
            drop(queue);
            work.segment.end(None);
            return;
        }
        queue.waiting.push_back(work);
        self.more.notify_one();
    }

    /// What a thread does until there is no work.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(work) = queue.waiting.pop_front() {
                drop(queue);
                self.do_work(&work);
                // What it holds may take time to close.
                drop(work);
                queue = lock(&self.queue);
                continue;
            }
            queue.idle += 1;
            let waited = self.more.wait_timeout(queue, IDLE_TIME);
            let (again, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = again;
            queue.idle -= 1;
            if waited.timed_out() && queue.waiting.is_empty() {
                queue.threads -= 1;
                return;
            }
        }
    }

    fn do_work(&self, work: &Work) {
        if !work.segment.begin() {
            return;
        }
        let mut buffer = self.buffers.take((work.range.end - work.range.start) as usize);
        let read = (work.read)(work.range.clone(), &mut buffer.bytes);
        work.segment.end(read.then_some(buffer));
    }
}

/// The bytes of one file that are read ahead.
pub(crate) struct FileAhead {
    threads: Arc<Threads>,
    ahead: ReadAhead<ReadSegment>,
    read: Arc<Read>,
}

impl FileAhead {
    /// Nothing is read yet of a file of some bytes. Returns `None` if this process has no threads for it.
    pub fn new(
        length: u64,
        read: impl Fn(Range<u64>, &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Option<FileAhead> {
        Some(FileAhead::on(Threads::of_process()?, length, Arc::new(read)))
    }

    fn on(threads: &Arc<Threads>, length: u64, read: Arc<Read>) -> FileAhead {
        let ahead = ReadAhead::new(threads.budget.clone(), length);
        FileAhead { threads: threads.clone(), ahead, read }
    }

    /// Begins to read ranges that will be needed soon, in ascending order, as far as there is room.
    pub fn expect(&self, ranges: &[Range<u64>]) {
        if !self.threads.is_of_this_process() {
            return;
        }
        self.ahead.expect(ranges, |range| {
            let segment = ReadSegment::new();
            self.threads.add(Work { segment: segment.clone(), range, read: self.read.clone() });
            segment
        });
    }

    /// Fills buffers from what was read ahead. `read` reads the others, each from its offset.
    ///
    /// # Errors
    /// It fails as `read` does.
    pub fn fill<'a, E>(
        &self,
        reads: Vec<(u64, &'a mut [u8])>,
        mut read: impl FnMut(Vec<(u64, &'a mut [u8])>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Threads of the process from which this one was forked would never end.
        if !self.threads.is_of_this_process() {
            return read(reads);
        }
        let (parts, left) = self.ahead.take(reads);
        // Threads read on meanwhile.
        read(left)?;
        let mut failed = Vec::new();
        for part in parts {
            let arrived = part.segment.wait();
            part.fill(arrived.as_ref().map(|buffer| &*buffer.bytes), &mut failed);
        }
        read(failed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const PIECE: u64 = LIMITS.piece;

    fn byte(at: u64) -> u8 {
        (at / 1000) as u8
    }

    /// Reads a file whose bytes tell their offsets.
    fn numbers(range: Range<u64>, out: &mut Vec<u8>) -> bool {
        out.extend(range.map(byte));
        true
    }

    /// Fills a buffer, and returns how many bytes were not read ahead.
    fn read(ahead: &FileAhead, range: Range<u64>) -> u64 {
        let mut out = vec![0; (range.end - range.start) as usize];
        let mut direct = 0;
        let done: Result<(), Infallible> = ahead.fill(vec![(range.start, &mut out)], |reads| {
            for (start, buffer) in reads {
                direct += buffer.len() as u64;
                buffer.iter_mut().zip(start..).for_each(|(one, at)| *one = byte(at));
            }
            Ok(())
        });
        done.unwrap();
        assert!(out.iter().zip(range.start..).all(|(found, at)| *found == byte(at)));
        direct
    }

    #[test]
    fn bytes_that_were_expected_arrive_and_others_are_read() {
        let threads = Threads::new();
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = begun.clone();
        let count = move |range: Range<u64>, out: &mut Vec<u8>| {
            counted.fetch_add(1, Ordering::SeqCst);
            numbers(range, out)
        };
        let ahead = FileAhead::on(&threads, 10 * PIECE, Arc::new(count));
        ahead.expect(&[0..2 * PIECE, 3 * PIECE..4 * PIECE]);
        // A read that no thread has begun is left to the reader.
        while begun.load(Ordering::SeqCst) < 3 {
            std::thread::yield_now();
        }
        assert_eq!(read(&ahead, 0..PIECE / 2), 0);
        assert_eq!(read(&ahead, PIECE / 2..5 * PIECE), 2 * PIECE);
        drop(ahead);
        assert_eq!(threads.budget.used(), 0);
    }

    #[test]
    fn what_could_not_be_read_is_left_to_the_reader() {
        let threads = Threads::new();
        let fails = |range: Range<u64>, out: &mut Vec<u8>| range.start != PIECE && numbers(range, out);
        let ahead = FileAhead::on(&threads, 3 * PIECE, Arc::new(fails));
        ahead.expect(std::slice::from_ref(&(0..3 * PIECE)));
        assert!(read(&ahead, 0..3 * PIECE) >= PIECE);
    }

    /// Reads that wait until something is sent, and a channel that tells when one began.
    fn held() -> (Arc<Read>, Receiver<u64>, Sender<()>) {
        let (begin, begun) = channel();
        let (go, gone) = channel::<()>();
        let gone = Mutex::new(gone);
        let read = move |range: Range<u64>, out: &mut Vec<u8>| {
            begin.send(range.start).unwrap();
            // It ends when the other side is dropped.
            let _ = lock(&gone).recv();
            numbers(range, out)
        };
        (Arc::new(read), begun, go)
    }

    #[test]
    fn storage_that_does_not_answer_holds_up_nobody_else() {
        let threads = Threads::new();
        let (stuck, begun, go) = held();
        let length = MAX_READS_AHEAD as u64 * PIECE;
        let silent = FileAhead::on(&threads, length, stuck);
        silent.expect(std::slice::from_ref(&(0..length)));
        for _ in 0..MAX_READS_AHEAD {
            begun.recv().unwrap();
        }
        // All threads wait.
        let other = FileAhead::on(&threads, 4 * PIECE, Arc::new(numbers));
        other.expect(std::slice::from_ref(&(0..4 * PIECE)));
        assert_eq!(read(&other, 0..4 * PIECE), 4 * PIECE);
        drop(go);
        assert_eq!(read(&silent, 0..length), 0);
    }

    #[test]
    fn what_waits_is_bounded_and_is_not_read_when_nobody_needs_it() {
        let threads = Threads::new();
        let (stuck, begun, go) = held();
        let length = MAX_READS_AHEAD as u64 * PIECE;
        let silent = FileAhead::on(&threads, length, stuck);
        silent.expect(std::slice::from_ref(&(0..length)));
        for _ in 0..MAX_READS_AHEAD {
            begun.recv().unwrap();
        }
        let read = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 * MAX_WAITING {
            let counted = read.clone();
            let count = move |range: Range<u64>, out: &mut Vec<u8>| {
                counted.fetch_add(1, Ordering::SeqCst);
                numbers(range, out)
            };
            let other = FileAhead::on(&threads, PIECE, Arc::new(count));
            other.expect(std::slice::from_ref(&(0..1)));
        }
        assert!(lock(&threads.queue).waiting.len() <= MAX_WAITING);
        drop(go);
        let last = FileAhead::on(&threads, PIECE, Arc::new(numbers));
        last.expect(std::slice::from_ref(&(0..1)));
        assert!(self::read(&last, 0..1) <= 1);
        assert_eq!(read.load(Ordering::SeqCst), 0);
    }
}
