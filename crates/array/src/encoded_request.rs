//! A request as bytes, without what the chunk table of its array gives: shape, chunks and type.

use gristmill_kernel::DType;
use serde::{Deserialize, Serialize};

use crate::error::ArrayError;
use crate::expr::Expr;
use crate::grid::Grid;
use crate::inputs::{Constant, MAX_INPUTS};
use crate::meaning::{Exact, Factor, Meaning};
use crate::plan::Request;
use crate::reduction::Reduction;
use crate::selection::Selection;

/// Version of the bytes.
const VERSION: u8 = 3;

/// The part of a request that does not depend on where the array is stored: attributes, constants, selection,
/// expression and reduction.
///
/// The bytes are those of postcard. Integers have variable length and floats are their bits, so every number is decoded
/// exactly. [`ArrayReduce::bind`](crate::ArrayReduce::bind) checks whether the request makes sense.
///
/// ```
/// use gristmill_array::*;
/// use gristmill_kernel::DType;
///
/// let request = Request {
///     grid: Grid::whole(vec![6, 2])?,
///     meaning: Meaning::plain(DType::F32),
///     others: vec![Meaning::plain(DType::I16)],
///     constants: Vec::new(),
///     selection: "1:".parse()?,
///     expr: Some(Expr::parse("x > y", &["x", "y"])?),
///     reduction: Reduction::new(Op::Any).over(&[0]),
/// };
/// let bytes = EncodedRequest::new(&request).encode()?;
/// let types = [DType::F32, DType::I16];
/// assert_eq!(EncodedRequest::decode(&bytes)?.request(Grid::whole(vec![6, 2])?, &types)?, request);
/// # Ok::<(), ArrayError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncodedRequest {
    version: u8,
    /// Attributes of the lead and of the other variables.
    meanings: Vec<Attributes>,
    constants: Vec<Constant>,
    selection: Selection,
    #[serde(with = "expression_text")]
    expr: Option<Expr>,
    reduction: Reduction,
}

/// The attributes of a variable, without its type in the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Attributes {
    unsigned: Option<bool>,
    missing: Vec<Exact>,
    scale: Option<Factor>,
    offset: Option<Factor>,
    valid: (Option<Exact>, Option<Exact>),
}

impl Attributes {
    fn of(meaning: &Meaning) -> Attributes {
        let Meaning { raw: _, unsigned, missing, scale, offset, valid } = meaning.clone();
        Attributes { unsigned, missing, scale, offset, valid }
    }

    fn meaning(self, raw: DType) -> Meaning {
        let Attributes { unsigned, missing, scale, offset, valid } = self;
        Meaning { raw, unsigned, missing, scale, offset, valid }
    }
}

/// Serialisation of an expression as its text and the names of its inputs.
mod expression_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Expr, MAX_INPUTS};

    pub fn serialize<S: Serializer>(expr: &Option<Expr>, to: S) -> Result<S::Ok, S::Error> {
        expr.as_ref().map(|expr| (expr.text(), expr.inputs())).serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Expr>, D::Error> {
        let Some((text, inputs)) = <Option<(String, Vec<String>)>>::deserialize(from)? else {
            return Ok(None);
        };
        if inputs.len() > MAX_INPUTS {
            return Err(D::Error::custom("an expression over too many inputs"));
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        Expr::parse(&text, &inputs).map(Some).map_err(D::Error::custom)
    }
}

impl EncodedRequest {
    /// Takes everything of a request except its grid and its types.
    pub fn new(request: &Request) -> EncodedRequest {
        let meanings = [&request.meaning].into_iter().chain(&request.others).map(Attributes::of).collect();
        let Request { constants, selection, expr, reduction, .. } = request.clone();
        EncodedRequest { version: VERSION, meanings, constants, selection, expr, reduction }
    }

    /// Number of variables: the lead and the others.
    pub const fn variables(&self) -> usize {
        self.meanings.len()
    }

    /// Returns the request over an array. `raw` has the type of the array, then those of the other variables.
    ///
    /// # Errors
    /// Returns [`ArrayError::Encoding`] unless there are as many types as [`variables`](EncodedRequest::variables).
    pub fn request(self, grid: Grid, raw: &[DType]) -> Result<Request, ArrayError> {
        let EncodedRequest { version: _, meanings, constants, selection, expr, reduction } = self;
        let (asked, given) = (meanings.len(), raw.len());
        let mut meanings = meanings.into_iter().zip(raw).map(|(attributes, raw)| attributes.meaning(*raw));
        let lead = meanings.next().filter(|_| asked == given);
        let Some(meaning) = lead else {
            let why = format!("it needs {asked} variables, and {given} are given");
            return Err(ArrayError::Encoding { why });
        };
        let others = meanings.collect();
        Ok(Request { grid, meaning, others, constants, selection, expr, reduction })
    }

    /// Encodes the request.
    ///
    /// # Errors
    /// Returns [`ArrayError::Encoding`] if postcard cannot encode it.
    pub fn encode(&self) -> Result<Vec<u8>, ArrayError> {
        postcard::to_allocvec(self).map_err(|error| ArrayError::Encoding { why: error.to_string() })
    }

    /// Decodes a request. The number of bytes bounds the memory that is allocated.
    ///
    /// # Errors
    /// Returns [`ArrayError::Encoding`] for bytes that [`encode`](EncodedRequest::encode) does not write.
    pub fn decode(bytes: &[u8]) -> Result<EncodedRequest, ArrayError> {
        let wrong = |why: String| ArrayError::Encoding { why };
        let (encoded, rest) =
            postcard::take_from_bytes::<EncodedRequest>(bytes).map_err(|e| wrong(e.to_string()))?;
        if encoded.version != VERSION {
            return Err(wrong(format!(
                "it has version {}, and this node reads version {VERSION}",
                encoded.version
            )));
        }
        if !rest.is_empty() {
            return Err(wrong(format!("{} bytes follow it", rest.len())));
        }
        Ok(encoded)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_kernel::ArrayType;

    use super::*;
    use crate::meaning::FactorType;
    use crate::reduction::{Boundary, Groups, Op, Weights, Windows};
    use crate::selection::Take;

    fn request() -> Request {
        let mut meaning = Meaning::plain(DType::I16);
        meaning.unsigned = Some(true);
        meaning.missing = vec![Exact::Int(i128::from(i64::MIN)), Exact::Float(f64::NEG_INFINITY)];
        meaning.scale = Some(Factor { value: 0.1, dtype: FactorType::F32 });
        meaning.offset = Some(Factor { value: -0.0, dtype: FactorType::F64 });
        meaning.valid = (Some(Exact::Int(i128::from(u64::MAX))), None);
        let mut reduction = Reduction::new(Op::Histogram(vec![f64::NEG_INFINITY, 1e-310, 5.0])).over(&[-1]);
        reduction.weights = vec![Weights { axis: 0, values: vec![0.1, 1e300] }];
        reduction.groups = vec![Groups { axis: 1, labels: vec![-1, 0, i64::MAX], count: 7 }];
        reduction.windows = vec![Windows { axis: 2, length: 3, boundary: Boundary::Pad }];
        reduction.skipna = Some(false);
        let mut other = Meaning::plain(DType::F32);
        other.missing = vec![Exact::Float(1e20)];
        let constant = Constant {
            dtype: ArrayType::Number(DType::F64),
            lengths: vec![1, 4],
            bytes: [f64::NAN, -0.0, 0.1, 1e300].iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        let truth = Constant { dtype: ArrayType::Bool, lengths: vec![1, 4], bytes: vec![1, 0, 0, 1] };
        Request {
            grid: Grid::whole(vec![2, 3, 4]).unwrap(),
            meaning,
            others: vec![other],
            constants: vec![constant, truth],
            selection: Selection(vec![Take::At(-1), Take::Slice { start: Some(-2), stop: None, step: 2 }]),
            expr: Some(Expr::parse("where(t, x * y, c)", &["x", "y", "c", "t"]).unwrap()),
            reduction,
        }
    }

    #[test]
    fn a_request_comes_out_as_it_went_in() {
        let request = request();
        let bytes = EncodedRequest::new(&request).encode().unwrap();
        let encoded = EncodedRequest::decode(&bytes).unwrap();
        assert_eq!(encoded.variables(), 2);
        assert!(encoded.clone().request(request.grid.clone(), &[DType::I16]).is_err());
        let read = encoded.request(request.grid.clone(), &[DType::I16, DType::F32]).unwrap();
        assert_eq!(read, request);
        assert!(read.meaning.offset.unwrap().value.is_sign_negative());
    }

    #[test]
    fn what_was_cut_or_changed_is_an_error_or_another_request() {
        let bytes = EncodedRequest::new(&request()).encode().unwrap();
        for end in 0..bytes.len() {
            assert!(EncodedRequest::decode(&bytes[..end]).is_err(), "{end}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(matches!(EncodedRequest::decode(&longer), Err(ArrayError::Encoding { .. })));
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                // Bound, it must not panic either.
                if let Ok(encoded) = EncodedRequest::decode(&changed) {
                    let grid = Grid::whole(vec![2, 3, 4]).unwrap();
                    let types = vec![DType::I16; encoded.variables()];
                    let _ = encoded.request(grid, &types).and_then(crate::ArrayReduce::bind);
                }
            }
        }
    }
}
