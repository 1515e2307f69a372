//! The description of the records of a request.

use gristmill_kernel::{ByteOrder, DType, Input, KernelError};
use serde::{Deserialize, Serialize};

/// Description of the records of a request: the options `--type`, `--record`, `--skip`, `--big-endian`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// Type of the elements. Without it the file is text.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Bytes of a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// Bytes before the first record.
    #[serde(default)]
    pub skip: u64,
    /// Whether the elements are big-endian.
    #[serde(default)]
    pub big_endian: bool,
}

impl InputSpec {
    /// The input that a kernel is bound to, and the byte order of the elements.
    ///
    /// # Errors
    /// It fails if the type is unknown, if the record size is 0, and if it is not a multiple of the size of the type.
    pub fn input(&self) -> Result<(Input, ByteOrder), KernelError> {
        let dtype = self.dtype.as_deref().map(str::parse::<DType>).transpose()?;
        let input = match (dtype, self.record) {
            (Some(dtype), None) => Input::elements(dtype),
            (Some(dtype), Some(record)) => Input::typed_records(dtype, record)?,
            (None, Some(record)) => Input::records(record)?,
            (None, None) => Input::lines(),
        };
        let order = if self.big_endian { ByteOrder::Big } else { ByteOrder::Little };
        Ok((input.with_header(self.skip), order))
    }

    /// The description of an input.
    pub fn new(input: &Input, order: ByteOrder) -> InputSpec {
        let record = match (input.record, input.element) {
            (gristmill_kernel::RecordRule::Fixed(size), Some(dtype)) if size == dtype.size() as u64 => None,
            (gristmill_kernel::RecordRule::Fixed(size), _) => Some(size),
            (gristmill_kernel::RecordRule::Lines, _) => None,
        };
        InputSpec {
            dtype: input.element.map(|dtype| dtype.name().to_owned()),
            record,
            skip: input.header,
            big_endian: order == ByteOrder::Big,
        }
    }
}
