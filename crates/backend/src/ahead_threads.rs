//! Bytes that threads read before they are needed, for storage whose reads block.
//!
//! A read waits for the storage, so only as many run at once as there are threads. The lanes of a fold are few. These threads read what the
//! lanes will need next.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Builder;

use rustix::process::{Pid, getpid};

use crate::{AheadBudget, AheadLimits, Arriving, Buffer, Buffers, ReadAhead};

/// Most bytes of all objects that threads are reading ahead, or that are kept afterwards.
pub const MAX_AHEAD: u64 = 64 << 20;

/// Most reads ahead at once.
pub const MAX_READS_AHEAD: usize = 8;

/// Most reads ahead that wait for a thread. Others are not begun.
const MAX_WAITING: usize = 256;

/// A piece is one object of RADOS, in a usual file.
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
struct ReadSegment(Arc<Shared>);

impl ReadSegment {
    fn new() -> ReadSegment {
        ReadSegment(Arc::new(Shared { progress: Mutex::new(Progress::Waiting), ended: Condvar::new() }))
    }

    /// Marks it as running if it waits. Returns whether it did.
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

    /// Waits for the bytes. Returns `None` if they could not be read, or if no thread has begun to: then the reader reads them itself, and
    /// does not wait for threads that wait for other objects.
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

/// Appends the bytes of a range to a buffer with room for them. Returns whether all were read.
type Read = dyn Fn(Range<u64>, &mut Vec<u8>) -> bool + Send + Sync;

struct Work {
    segment: ReadSegment,
    range: Range<u64>,
    /// Work that waits does not keep its object open.
    read: Weak<Read>,
}

/// Ends a segment, also if its read panics.
struct Ending<'a> {
    segment: &'a ReadSegment,
    bytes: Option<Buffer>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.segment.end(self.bytes.take());
    }
}

/// The threads that read ahead, and what they may hold.
struct Threads {
    process: Pid,
    waiting: Mutex<VecDeque<Work>>,
    more: Condvar,
    budget: Arc<AheadBudget<ReadSegment>>,
    buffers: Arc<Buffers>,
}

/// The threads of this process, or of the one from which it was forked.
static THREADS: OnceLock<Option<Arc<Threads>>> = OnceLock::new();

impl Threads {
    /// Starts the threads. They run until the process ends. Returns `None` if the system gives none.
    fn start() -> Option<Arc<Threads>> {
        let threads = Arc::new(Threads {
            process: getpid(),
            waiting: Mutex::default(),
            more: Condvar::new(),
            budget: Arc::new(AheadBudget::new(LIMITS)),
            buffers: Arc::default(),
        });
        let start = |_: &usize| {
            let threads = threads.clone();
            Builder::new().name("read ahead".into()).spawn(move || threads.work()).is_ok()
        };
        let started = (0..MAX_READS_AHEAD).filter(start).count();
        (started > 0).then_some(threads)
    }

    /// Those of this process. They are started when the first object is opened, and not by a lane that needs bytes: a thread has the priority
    /// of the one that starts it, and lanes may run at idle priority. A process that was forked from one with threads has none.
    fn of_process() -> Option<&'static Arc<Threads>> {
        let threads = THREADS.get_or_init(Threads::start).as_ref();
        threads.filter(|threads| threads.is_of_this_process())
    }

    fn is_of_this_process(&self) -> bool {
        self.process == getpid()
    }

    /// Gives work to the next thread that has none. Returns `false` if too much waits.
    fn add(&self, work: Work) -> bool {
        let mut waiting = lock(&self.waiting);
        let has_room = waiting.len() < MAX_WAITING;
        if has_room {
            waiting.push_back(work);
            self.more.notify_one();
        }
        has_room
    }

    /// Takes work and does it, for ever.
    fn work(&self) {
        let mut waiting = lock(&self.waiting);
        loop {
            match waiting.pop_front() {
                Some(work) => {
                    drop(waiting);
                    self.do_work(&work);
                    waiting = lock(&self.waiting);
                }
                None => waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn do_work(&self, work: &Work) {
        if !work.segment.begin() {
            return;
        }
        let mut ending = Ending { segment: &work.segment, bytes: None };
        // Nobody needs the bytes of an object that was closed.
        let Some(read) = work.read.upgrade() else { return };
        let mut buffer = self.buffers.take((work.range.end - work.range.start) as usize);
        ending.bytes = read(work.range.clone(), &mut buffer.bytes).then_some(buffer);
        // Whoever waits goes on before the object is closed, if this was its last user.
        drop(ending);
    }
}

/// The bytes of one object that threads read ahead.
pub struct ThreadsAhead {
    threads: Arc<Threads>,
    /// It is there until this is dropped.
    ahead: Option<ReadAhead<ReadSegment>>,
    read: Arc<Read>,
}

impl Drop for ThreadsAhead {
    fn drop(&mut self) {
        // A thread may have held a lock of it when this process was forked.
        if !self.threads.is_of_this_process() {
            std::mem::forget(self.ahead.take());
        }
    }
}

impl ThreadsAhead {
    /// Nothing is read yet of an object of some bytes. `read` appends the bytes of a range, and returns whether all were read. The result is `None` if
    /// this process has no threads for it.
    pub fn new(
        length: u64,
        read: impl Fn(Range<u64>, &mut Vec<u8>) -> bool + Send + Sync + 'static,
    ) -> Option<ThreadsAhead> {
        Some(ThreadsAhead::on(Threads::of_process()?, length, Arc::new(read)))
    }

    fn on(threads: &Arc<Threads>, length: u64, read: Arc<Read>) -> ThreadsAhead {
        let ahead = Some(ReadAhead::new(threads.budget.clone(), length));
        ThreadsAhead { threads: threads.clone(), ahead, read }
    }

    /// Returns the segments of the object, or `None` in a process that was forked.
    fn ahead(&self) -> Option<&ReadAhead<ReadSegment>> {
        self.ahead.as_ref().filter(|_| self.threads.is_of_this_process())
    }

    /// Begins to read ranges that will be needed soon, in ascending order, as far as there is room.
    pub fn expect(&self, ranges: &[Range<u64>]) {
        let Some(ahead) = self.ahead() else { return };
        ahead.expect(ranges, |range| {
            let segment = ReadSegment::new();
            let work = Work { segment: segment.clone(), range, read: Arc::downgrade(&self.read) };
            self.threads.add(work).then_some(segment)
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
        let Some(ahead) = self.ahead() else { return read(reads) };
        let (parts, left) = ahead.take(reads);
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
    use std::sync::mpsc::{Sender, channel};

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
    fn read(ahead: &ThreadsAhead, range: Range<u64>) -> u64 {
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
        let threads = Threads::start().unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = begun.clone();
        let count = move |range: Range<u64>, out: &mut Vec<u8>| {
            counted.fetch_add(1, Ordering::SeqCst);
            numbers(range, out)
        };
        let ahead = ThreadsAhead::on(&threads, 10 * PIECE, Arc::new(count));
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
        let threads = Threads::start().unwrap();
        let fails = |range: Range<u64>, out: &mut Vec<u8>| range.start != PIECE && numbers(range, out);
        let ahead = ThreadsAhead::on(&threads, 3 * PIECE, Arc::new(fails));
        ahead.expect(std::slice::from_ref(&(0..3 * PIECE)));
        assert!(read(&ahead, 0..3 * PIECE) >= PIECE);
    }

    /// Bytes of a file for which every thread waits.
    const SILENT: u64 = MAX_READS_AHEAD as u64 * PIECE;

    /// A file that all threads read, until the sender is dropped.
    fn silent(threads: &Arc<Threads>) -> (ThreadsAhead, Sender<()>) {
        let (begin, begun) = channel();
        let (go, gone) = channel::<()>();
        let gone = Mutex::new(gone);
        let read = move |range: Range<u64>, out: &mut Vec<u8>| {
            begin.send(()).unwrap();
            let _ = lock(&gone).recv();
            numbers(range, out)
        };
        let silent = ThreadsAhead::on(threads, SILENT, Arc::new(read));
        silent.expect(std::slice::from_ref(&(0..SILENT)));
        (0..MAX_READS_AHEAD).for_each(|_| begun.recv().unwrap());
        (silent, go)
    }

    #[test]
    fn storage_that_does_not_answer_holds_up_nobody_else() {
        let threads = Threads::start().unwrap();
        let (silent, go) = silent(&threads);
        let other = ThreadsAhead::on(&threads, 4 * PIECE, Arc::new(numbers));
        other.expect(std::slice::from_ref(&(0..4 * PIECE)));
        assert_eq!(read(&other, 0..4 * PIECE), 4 * PIECE);
        drop(go);
        assert_eq!(read(&silent, 0..SILENT), 0);
    }

    #[test]
    fn what_waits_is_bounded_and_keeps_no_file_open() {
        let threads = Threads::start().unwrap();
        let (silent, go) = silent(&threads);
        for _ in 0..MAX_WAITING + 10 {
            let open = Arc::new(());
            let file = open.clone();
            let read = move |range: Range<u64>, out: &mut Vec<u8>| {
                let _file = &file;
                numbers(range, out)
            };
            let other = ThreadsAhead::on(&threads, PIECE, Arc::new(read));
            other.expect(std::slice::from_ref(&(0..1)));
            drop(other);
            assert_eq!(Arc::strong_count(&open), 1);
        }
        assert_eq!(lock(&threads.waiting).len(), MAX_WAITING);
        assert_eq!(threads.budget.used(), SILENT);
        drop(go);
        assert_eq!(read(&silent, 0..SILENT), 0);
    }

    #[test]
    fn a_read_that_panics_is_left_to_the_reader() {
        let threads = Threads::start().unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = begun.clone();
        let panics = move |_: Range<u64>, _: &mut Vec<u8>| -> bool {
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("a test")
        };
        let ahead = ThreadsAhead::on(&threads, PIECE, Arc::new(panics));
        ahead.expect(std::slice::from_ref(&(0..PIECE)));
        while begun.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(read(&ahead, 0..PIECE), PIECE);
    }
}
