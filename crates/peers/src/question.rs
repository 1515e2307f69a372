//! Questions: a kernel over a file on storage nodes, made into a request that can run.

use std::sync::Arc;

use gristmill_kernel::{Kernel, KernelError, Record, catalog};
use gristmill_object_fold::Binding;
use gristmill_runtime::{ErrorKind, FileParts, Options, Placement, Request, RunError, Selection};
use gristmill_wire::{FoldRequest, InputSpec};

use crate::array::ReserveMemory;
use crate::{ArrayWork, Files, Peers, StorageCrew, shards};

/// A kernel with its parameters, and the records of a file that it runs over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The kernel's name.
    pub kernel: String,
    /// Its parameters.
    pub params: Vec<(String, String)>,
    /// The rule that cuts the file into records.
    pub input: InputSpec,
    /// First byte of a range and its length. `None` is all of the file after the header.
    pub range: Option<(u64, Option<u64>)>,
    /// A reduction of an array, if the records are its chunks. Then `kernel`, `params` and `input` only name it.
    pub array: Option<Arc<ArrayWork>>,
}

/// The placement in reports of folds on storage nodes.
pub const ON_STORAGE: Placement = Placement {
    place: "storage",
    why: "each node folds the records that begin in its own stripes",
    remote: false,
};

/// The placement in reports of folds over plain reads.
pub const AT_CLIENT: Placement = Placement {
    place: "client",
    why: "the bytes are read from the nodes and folded by the process that asks",
    remote: true,
};

impl Question {
    /// A reduction of an array.
    pub fn for_array(work: Arc<ArrayWork>) -> Question {
        let (kernel, input) = (work.name().to_owned(), work.input());
        Question { kernel, input, array: Some(work), ..Question::default() }
    }

    /// The question of a request to a node, without the selection of its records. `reserve` reserves memory before it
    /// is used.
    ///
    /// # Errors
    /// Returns an error if the request over an array is malformed or refused by the kernel, and the errors of `reserve`.
    pub fn from_fold(request: &FoldRequest, reserve: ReserveMemory<'_>) -> Result<Question, RunError> {
        if let Some(spec) = &request.array {
            return Ok(Question::for_array(Arc::new(ArrayWork::decode(spec, reserve)?)));
        }
        let (kernel, params) = (request.kernel.clone(), request.params.clone());
        Ok(Question { kernel, params, input: request.input.clone(), range: None, array: None })
    }

    /// Binds the kernel.
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
    /// It fails as [`check_files`](Question::check_files) and [`request_over`](Question::request_over) do. It also fails as
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
        self.request_over(file, options)
    }

    /// The request over the parts of its files.
    ///
    /// # Errors
    /// The error is [`RunError::Kernel`] if the input is impossible or the kernel cannot be bound.
    pub fn request_over(&self, file: FileParts, options: Options) -> Result<Request, RunError> {
        let (input, byte_order) = self.input.input()?;
        let kernel = self.bind()?;
        let input = input.for_kernel(&kernel.spec());
        let mut request = Request::new(kernel, input, file);
        request.byte_order = byte_order;
        if self.array.is_none() {
            let bound_to = self.input.input()?.0;
            request.binding = Some(Binding::new(&self.kernel, &self.params, bound_to, byte_order));
        }
        request.selection = Selection { skip: self.input.skip, range: self.range };
        request.chunks = self.array.as_ref().map(|work| work.chunks.clone());
        request.options = options;
        Ok(request)
    }

    /// Checks the number and the lengths of the files. If there are several, each must be as long as the chunk table says,
    /// because offsets are counted from its beginning. Only chunks may lie in several files.
    ///
    /// # Errors
    /// The error is [`RunError::Remote`] if the files do not fit the chunk table, or if there are several and no
    /// chunks.
    pub fn check_files(&self, files: &Files) -> Result<(), RunError> {
        let usage = |message: &str| Err(RunError::Remote { kind: ErrorKind::Usage, message: message.into() });
        let Some(work) = &self.array else {
            return match files.each() {
                [_] => Ok(()),
                _ => usage("only chunks of arrays may be in several files; give one file"),
            };
        };
        if files.each().len() == 1 && work.chunks.files().len() <= 1 {
            return Ok(());
        }
        let expected = work.chunks.files().iter().map(|file| file.length);
        if expected.eq(files.each().iter().map(|(map, _)| map.length)) {
            return Ok(());
        }
        usage("the files changed after the chunk table was made; repeat the request")
    }

    /// The nodes that fold the records that they store. `output` is a sealed grant to write: with it, the nodes keep
    /// the bytes that they make in the objects of that file.
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
                "reads two files side by side, which storage nodes cannot do yet; use --place client".into();
            return Err(RunError::SecondInput { kernel: spec.name, why });
        }
        let (kernel, params) = (self.kernel.clone(), self.params.clone());
        let mut request = FoldRequest::new(files.grant().to_string(), kernel, params, self.input.clone());
        (request.max_record, request.output) = (max_record, output);
        request.array = self.array.as_ref().map(|work| work.spec.clone());
        request.more = files.other_grants();
        request.verify = peers.verify;
        let file = files.map();
        let mut nodes = shards(file);
        if let Some(work) = &self.array {
            let layout = files.layout(peers)?;
            let shares = work.chunks.shares(&layout, file.length)?;
            let owns = |target: &u32| shares.get(*target as usize).is_some_and(|share| share.chunks > 0);
            nodes.retain(|node| node.targets.iter().any(owns));
        } else if let Record::Index(_) = spec.record {
            // Virtual records lie on no node. The first target has them all.
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
