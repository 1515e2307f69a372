//! A kernel over a file on storage nodes, from what was asked to a request that can be run.

use std::sync::Arc;

use gristmill_kernel::{Kernel, KernelError, Record, catalog};
use gristmill_runtime::{ErrorKind, FileParts, Options, Placement, Request, RunError, Selection};
use gristmill_wire::{FoldRequest, InputSpec};

use crate::array::TakeRoom;
use crate::{ArrayWork, Files, Peers, StorageCrew, shards};

/// What is asked of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The kernel's name.
    pub kernel: String,
    /// Its parameters.
    pub params: Vec<(String, String)>,
    /// What the records are.
    pub input: InputSpec,
    /// First byte of a range and its length; `None`: all of the file behind the header.
    pub range: Option<(u64, Option<u64>)>,
    /// The records are chunks of an array. `kernel`, `params` and `input` only name it then.
    pub array: Option<Arc<ArrayWork>>,
}

/// Reported for folds on storage nodes.
pub const ON_STORAGE: Placement = Placement {
    place: "storage",
    why: "each node folds the records that begin in its own stripes",
    remote: false,
};

/// Reported for folds over plain reads.
pub const AT_CLIENT: Placement = Placement {
    place: "client",
    why: "the bytes are read from the nodes and folded by the process that asks",
    remote: true,
};

impl Question {
    /// A reduction of an array.
    pub fn of_array(work: Arc<ArrayWork>) -> Question {
        let (kernel, input) = (work.name().to_owned(), work.input());
        Question { kernel, input, array: Some(work), ..Question::default() }
    }

    /// The question of a request to a node. Which records it is about is not part of it. `room` takes memory before it is used.
    ///
    /// # Errors
    /// A request over an array that is malformed or that the kernel refuses, and the errors of `room`.
    pub fn of_fold(request: &FoldRequest, room: TakeRoom<'_>) -> Result<Question, RunError> {
        if let Some(spec) = &request.array {
            return Ok(Question::of_array(Arc::new(ArrayWork::decode(spec, room)?)));
        }
        let (kernel, params) = (request.kernel.clone(), request.params.clone());
        Ok(Question { kernel, params, input: request.input.clone(), range: None, array: None })
    }

    /// The kernel, bound.
    ///
    /// # Errors
    /// It fails if there is no such kernel, if the input is impossible, and if the kernel refuses the input or a
    /// parameter.
    pub fn bind(&self) -> Result<Arc<dyn Kernel>, KernelError> {
        if let Some(work) = &self.array {
            return Ok(work.kernel.clone());
        }
        catalog::bind(&self.kernel, &self.params, &self.input.input()?.0)
    }

    /// The request over opened files.
    ///
    /// # Errors
    /// It fails as [`check_files`](Question::check_files) and [`request_of`](Question::request_of) do. It also fails as
    /// [`Files::whole`] does if the place is remote, and as [`Files::parts`] does if it is not.
    pub fn request(
        &self,
        peers: &Peers,
        files: &Files,
        place: Placement,
        options: Options,
    ) -> Result<Request, RunError> {
        self.check_files(files)?;
        let file = if place.remote { files.whole(peers, place)? } else { files.parts(peers, place)? };
        self.request_of(file, options)
    }

    /// The request over the parts of its files.
    ///
    /// # Errors
    /// The error is [`RunError::Kernel`] if the input is impossible or the kernel cannot be bound.
    pub fn request_of(&self, file: FileParts, options: Options) -> Result<Request, RunError> {
        let (input, byte_order) = self.input.input()?;
        let kernel = self.bind()?;
        let input = input.for_kernel(&kernel.spec());
        let mut request = Request::new(kernel, input, file);
        request.byte_order = byte_order;
        request.selection = Selection { skip: self.input.skip, range: self.range };
        request.chunks = self.array.as_ref().map(|work| work.chunks.clone());
        request.options = options;
        Ok(request)
    }

    /// Of several files each must be as long as the chunk table says: places are counted from their beginnings. Records that
    /// are no chunks are of one file.
    ///
    /// # Errors
    /// The error is [`RunError::Remote`] if the files do not fit the chunk table, or if there are several and no
    /// chunks.
    pub fn check_files(&self, files: &Files) -> Result<(), RunError> {
        let usage = |message: &str| Err(RunError::Remote { kind: ErrorKind::Usage, message: message.into() });
        let Some(work) = &self.array else {
            return match files.each() {
                [_] => Ok(()),
                _ => usage("several files are for chunks of arrays only"),
            };
        };
        if files.each().len() == 1 && work.chunks.files().len() <= 1 {
            return Ok(());
        }
        let told = work.chunks.files().iter().map(|file| file.length);
        if told.eq(files.each().iter().map(|(map, _)| map.length)) {
            return Ok(());
        }
        usage("the files are no longer those of which the chunk table was made; ask again")
    }

    /// The nodes that fold it where it lies. With `output`, a sealed grant to write, they keep the bytes that they make
    /// in the objects of that file.
    ///
    /// # Errors
    /// The error is [`RunError::SecondInput`] if the kernel reads two files, and [`RunError::Kernel`] if it cannot be
    /// bound. It also fails as [`Files::layout`] does, and if the chunk table does not fit the files.
    pub fn crew(
        &self,
        peers: &Peers,
        files: &Files,
        max_record: u64,
        output: Option<String>,
    ) -> Result<StorageCrew, RunError> {
        let spec = self.bind()?.spec();
        if spec.second.is_some() {
            let why =
                "reads two files side by side, which storage nodes do not do yet; use --place client".into();
            return Err(RunError::SecondInput { kernel: spec.name, why });
        }
        let (kernel, params) = (self.kernel.clone(), self.params.clone());
        let mut request = FoldRequest::new(files.grant().to_string(), kernel, params, self.input.clone());
        (request.max_record, request.output) = (max_record, output);
        request.array = self.array.as_ref().map(|work| work.spec.clone());
        request.more = files.more();
        request.verify = peers.verify;
        let file = files.map();
        let mut nodes = shards(file);
        if let Some(work) = &self.array {
            let layout = files.layout(peers)?;
            let shares = work.chunks.shares(&layout, file.length)?;
            let owns = |target: &u32| shares.get(*target as usize).is_some_and(|share| share.chunks > 0);
            nodes.retain(|node| node.targets.iter().any(owns));
        } else if let Record::Index(_) = spec.record {
            // Virtual records lie nowhere; the first target has them all.
            nodes.truncate(1);
        } else {
            // A node without a byte of the file has nothing to fold.
            let layout = files.layout(peers)?;
            let holds = |target: &u32| layout.bytes_on(*target, 0..file.length) > 0;
            nodes.retain(|node| node.targets.iter().any(holds));
        }
        Ok(StorageCrew::new(peers.clone(), files.clone(), request, nodes))
    }
}
