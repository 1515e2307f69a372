//! A kernel as a message names it, and which kernels can be folded over parts of objects.

use std::sync::Arc;

use gristmill_kernel::{
    ByteOrder, DEFAULT_MAX_RECORD, DType, Input, Kernel, KernelError, Lines, Output, Passes, Record,
    RecordRule, Spec, catalog,
    state::{StateReader, StateWriter},
};

use crate::FoldError;

/// Most parameters of a kernel.
pub const MAX_PARAMS: usize = 64;

/// Longest record, in bytes: a record is read whole.
pub const MAX_RECORD: u64 = 64 << 10;

/// Largest expected state, in bytes. Larger ones would move a large part of an object.
pub const MAX_STATE: u64 = 256 << 10;

/// A built-in kernel by its name, with the parameters and the input to which it is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The name of the kernel.
    pub kernel: String,
    /// Its parameters, as [`catalog::bind`] takes them.
    pub params: Vec<(String, String)>,
    /// The input to which it is bound. The header does not matter.
    pub input: Input,
    /// Byte order of the elements in the object.
    pub byte_order: ByteOrder,
    /// Longest line, in bytes, if the input is lines.
    pub max_line: u64,
}

impl Binding {
    /// A binding. Lines have at most [`DEFAULT_MAX_RECORD`] bytes.
    pub fn new(kernel: &str, params: &[(String, String)], input: Input, byte_order: ByteOrder) -> Binding {
        let (kernel, params) = (kernel.to_owned(), params.to_owned());
        Binding { kernel, params, input, byte_order, max_line: DEFAULT_MAX_RECORD }
    }

    /// The kernel as it runs over parts of an object. A kernel over lines runs over bytes, because a part may begin in the middle of a line.
    ///
    /// # Errors
    /// The errors are those of [`catalog::bind`].
    pub fn bind(&self) -> Result<Arc<dyn Kernel>, KernelError> {
        let kernel = catalog::bind(&self.kernel, &self.params, &self.input)?;
        Ok(match kernel.spec().record {
            Record::Line => Arc::new(Lines::new(kernel, self.max_line)),
            _ => kernel,
        })
    }

    /// The type of the elements of a kernel that was bound to it.
    pub(crate) fn element(&self, spec: &Spec) -> Option<DType> {
        self.input.for_kernel(spec).element
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.put_blob(self.kernel.as_bytes());
        out.put_u64(self.params.len() as u64);
        for (name, value) in &self.params {
            out.put_blob(name.as_bytes());
            out.put_blob(value.as_bytes());
        }
        out.put_blob(self.input.element.map_or("", DType::name).as_bytes());
        out.put_u64(match self.input.record {
            RecordRule::Fixed(bytes) => bytes,
            RecordRule::Lines => 0,
        });
        out.put_flag(self.byte_order == ByteOrder::Big);
        out.put_u64(self.max_line);
    }

    pub(crate) fn read(from: &mut StateReader<'_>) -> Result<Binding, FoldError> {
        let kernel = text(from)?;
        let count = from.u64()?;
        if count > MAX_PARAMS as u64 {
            return Err(FoldError::Malformed(format!(
                "it has {count} parameters; at most {MAX_PARAMS} are possible"
            )));
        }
        let mut params = Vec::new();
        for _ in 0..count {
            params.push((text(from)?, text(from)?));
        }
        let element = text(from)?;
        let element = (!element.is_empty()).then(|| element.parse::<DType>()).transpose()?;
        let input = match (element, from.u64()?) {
            (None, 0) => Input::lines(),
            (Some(dtype), bytes) => Input::typed_records(dtype, bytes)?,
            (None, bytes) => Input::records(bytes)?,
        };
        let byte_order = if from.flag()? { ByteOrder::Big } else { ByteOrder::Little };
        Ok(Binding { kernel, params, input, byte_order, max_line: from.u64()? })
    }
}

fn text(from: &mut StateReader<'_>) -> Result<String, FoldError> {
    let bytes = from.blob()?;
    String::from_utf8(bytes.to_vec()).map_err(|_| FoldError::Malformed("a text is not UTF-8".into()))
}

/// The bytes of a record of a kernel that can be folded over parts of objects. `last`: whether the pass is the last of several.
///
/// # Errors
/// The error is [`FoldError::NotFoldable`] if the kernel gives rows or bytes, needs neighbours or a second input, must not be split
/// anywhere, cannot save, or has records or states that are too large.
pub fn check_foldable(spec: &Spec, last: bool) -> Result<u64, FoldError> {
    let refuse = |why: &str| Err(FoldError::NotFoldable(format!("kernel '{}' {why}", spec.name)));
    let rows = spec.output != Output::Value && (last || spec.passes == Passes::One);
    match spec.record {
        _ if rows => refuse("gives rows or bytes"),
        _ if spec.second.is_some() => refuse("reads two files side by side"),
        _ if spec.halo > 0 => refuse("needs the neighbours of each record"),
        _ if spec.grain > 1 || !spec.can_save => refuse("cannot stop at any record"),
        _ if spec.state_hint > MAX_STATE => refuse("has large partial results"),
        Record::Fixed(bytes) if (1..=MAX_RECORD).contains(&bytes) => Ok(bytes),
        Record::Fixed(_) => refuse("has records that are too long"),
        Record::Line | Record::Index(_) => refuse("has no records of a fixed size"),
    }
}
