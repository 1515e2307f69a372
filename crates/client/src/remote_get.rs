//! Copies of files from a cluster.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt};
use gristmill_layout::{Layout, Striped};
use gristmill_peers::ObjectStream;
use gristmill_runtime::{Control, RunError};
use gristmill_wire::FAN_IN;
use gristmill_wire::action::Opened;

use crate::remote_put::TICK;
use crate::{ClientError, Cluster};

/// Most bytes of one stripe of each object, if all objects are read at once in the order of the file. With shorter
/// stripes no connection idles for long.
const MAX_ROW: u64 = 64 << 20;

/// Bytes of a range of a file of an attached tree that is read with one request, if its stripes are shorter.
const MIN_RANGE: u64 = 8 << 20;

/// The failure of a copy.
enum Failure {
    Read(RunError),
    Write(io::Error),
    Stopped,
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        Failure::Read(error)
    }
}

/// Writes the next bytes of an object to their place in the file.
async fn write_run(
    object: &mut ObjectStream,
    file: Range<u64>,
    out: &File,
    done: &Cell<u64>,
) -> Result<(), Failure> {
    let mut to = file.start;
    while to < file.end {
        let left = usize::try_from(file.end - to).unwrap_or(usize::MAX);
        let bytes = object.chunk_of_at_most(left).await?;
        out.write_all_at(&bytes, to).map_err(Failure::Write)?;
        to += bytes.len() as u64;
        done.set(done.get() + bytes.len() as u64);
    }
    Ok(())
}

impl Cluster {
    fn failed(&self, opened: &Opened, destination: &Path, failure: Failure) -> ClientError {
        match failure {
            Failure::Read(error) => ClientError::Run(self.explain(&opened.info.file, error)),
            Failure::Write(source) => ClientError::Io { verb: "write", path: destination.to_owned(), source },
            Failure::Stopped => crate::copy::stopped(destination),
        }
    }

    /// Copies a file to a new file of this machine, which gets its name only when it is complete and durable. It has
    /// the file's permission bits without those of the umask. `progress` gets the bytes written so far.
    ///
    /// # Errors
    /// The error is [`ClientError::Run`] if the file cannot be read or was replaced meanwhile. It also fails if the new
    /// file cannot be made, as [`write_whole`](crate::write_whole) does.
    pub fn get(
        &self,
        opened: &Opened,
        destination: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        self.get_unless(opened, destination, &Control::new(), progress)
    }

    /// Copies a file like [`get`](Cluster::get), unless `stop` is stopped.
    ///
    /// # Errors
    /// It fails as [`get`](Cluster::get) does, and with [`ClientError::Stopped`] if `stop` is stopped. Nothing of the
    /// new file is left then.
    pub fn get_unless(
        &self,
        opened: &Opened,
        destination: &Path,
        stop: &Control,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        crate::copy::write_whole(destination, u32::from(opened.info.mode), stop, &mut |out: &File| {
            self.download_to(opened, destination, out, stop, progress)
        })
    }

    /// Writes all bytes of a file to `out`. Errors name it `destination`.
    pub(crate) fn download_to(
        &self,
        opened: &Opened,
        destination: &Path,
        out: &File,
        stop: &Control,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        let file = &opened.info.file;
        let layout = match file.attached.is_some() && (file.has_components() || file.unit < MIN_RANGE) {
            // Each node has the whole file. Short stripes would take too many requests.
            true => {
                let targets = u32::try_from(file.targets.len()).unwrap_or(u32::MAX);
                let stripes = Striped::new(MIN_RANGE, targets, 0).map_err(RunError::from)?;
                Layout::from(stripes.in_place())
            }
            false => self.layout(opened)?,
        };
        let copied = self.peers.wait(self.download(opened, &layout, out, stop, progress));
        copied.map_err(|failure| self.failed(opened, destination, failure))
    }

    /// Reads all objects at once, each with one request, and writes their bytes to their places in the file.
    async fn download(
        &self,
        opened: &Opened,
        layout: &Layout,
        out: &File,
        stop: &Control,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let file = &opened.info.file;
        let done = Cell::new(0u64);
        let bytes_on = |target: &u32| layout.bytes_on(*target, 0..file.length);
        let objects = (0..layout.targets()).filter(|target| bytes_on(target) > 0);
        let done_now = &done;
        let copies = objects.map(|target| async move {
            if file.attached.is_some() {
                return self.download_stripes(opened, layout, target, out, done_now).await;
            }
            let mut object = self.peers.object(file, target as usize, &opened.grant).await?;
            let mut at = 0;
            // The bytes of an object are in the order of the file.
            for run in layout.runs(target, 0..file.length) {
                write_run(&mut object, run.file.clone(), out, done_now).await?;
                at += run.file.end - run.file.start;
            }
            // After the bytes of a segments file comes the table of their places, which was read before.
            while let Some(more) = object.chunk().await? {
                at += if file.segments { 0 } else { more.len() as u64 };
            }
            object.check_length(at, bytes_on(&target))?;
            Ok::<(), Failure>(())
        });
        let mut copies = stream::iter(copies).buffer_unordered(FAN_IN);
        loop {
            if stop.stopped() {
                return Err(Failure::Stopped);
            }
            match tokio::time::timeout(TICK, copies.next()).await {
                Ok(Some(copied)) => copied?,
                Ok(None) => return Ok(()),
                Err(_) => progress(done.get()),
            }
        }
    }

    /// Reads the stripes of one target of a file of an attached tree, where the node reads the whole file.
    async fn download_stripes(
        &self,
        opened: &Opened,
        layout: &Layout,
        target: u32,
        out: &File,
        done: &Cell<u64>,
    ) -> Result<(), Failure> {
        let file = &opened.info.file;
        for run in layout.runs(target, 0..file.length) {
            let place = target as usize;
            let mut object = self.peers.object_range(file, place, &opened.grant, run.file.clone()).await?;
            write_run(&mut object, run.file.clone(), out, done).await?;
        }
        Ok(())
    }

    /// Writes all bytes of a file to `out`, in order.
    ///
    /// # Errors
    /// The error is [`ClientError::Run`] if the file cannot be read or was replaced meanwhile, and [`ClientError::Io`]
    /// if `out` cannot be written.
    pub fn read_to(
        &self,
        opened: &Opened,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        let file = &opened.info.file;
        let row = file.unit.saturating_mul(file.targets.len() as u64);
        if row > MAX_ROW || file.targets.len() > FAN_IN || file.segments || file.attached.is_some() {
            return crate::read_to(&self.parts(opened)?, out, progress).map_err(|error| match error {
                ClientError::Run(error) => ClientError::Run(self.explain(&opened.info.file, error)),
                other => other,
            });
        }
        let copied = self.peers.wait(self.in_order(opened, out, progress));
        copied.map_err(|failure| self.failed(opened, &PathBuf::from("standard output"), failure))
    }

    /// Reads all objects at once, and writes a stripe of each in turn.
    async fn in_order(
        &self,
        opened: &Opened,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let file = &opened.info.file;
        let striped = file.striped().map_err(RunError::from)?;
        let mut objects = Vec::new();
        for target in 0..striped.targets() {
            objects.push(match striped.object_len(target, file.length) {
                0 => None,
                _ => Some(self.peers.object(file, target as usize, &opened.grant).await?),
            });
        }
        let mut at = 0;
        while at < file.length {
            let stripe = (striped.unit() - at % striped.unit()).min(file.length - at);
            let object = objects.get_mut(striped.target_of(at) as usize).and_then(Option::as_mut);
            let Some(object) = object else {
                return Err(RunError::Internal { what: "a stripe lies on a target without an object" }.into());
            };
            let mut left = stripe;
            while left > 0 {
                let bytes = object.chunk_of_at_most(usize::try_from(left).unwrap_or(usize::MAX)).await?;
                out.write_all(&bytes).map_err(Failure::Write)?;
                left -= bytes.len() as u64;
            }
            at += stripe;
            progress(at);
        }
        Ok(())
    }
}
