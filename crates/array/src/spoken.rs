//! A request as bytes, but for what the chunk table of its array says: shape, chunks and type.

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

/// What is asked of an array, wherever it lies: attributes, selection, expression, reduction.
///
/// The bytes are those of postcard: numbers of variable length, floats as their bits, so that every number comes out as it
/// went in. Whether a request makes sense says [`ArrayReduce::bind`](crate::ArrayReduce::bind).
///
/// ```
/// use gristmill_array::*;
/// use gristmill_kernel::DType;
///
/// let request = Request {
///     grid: Grid::whole(vec![6, 2])?,
///     meaning: Meaning::of(DType::F32),
///     others: vec![Meaning::of(DType::I16)],
///     constants: Vec::new(),
///     selection: "1:".parse()?,
///     expr: Some(Expr::parse("x > y", &["x", "y"])?),
///     reduction: Reduction::new(Op::Any).over(&[0]),
/// };
/// let bytes = Spoken::of(&request).encode()?;
/// let types = [DType::F32, DType::I16];
/// assert_eq!(Spoken::decode(&bytes)?.request(Grid::whole(vec![6, 2])?, &types)?, request);
/// # Ok::<(), ArrayError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spoken {
    version: u8,
    /// Of the lead, and of the other variables.
    meanings: Vec<Attributes>,
    constants: Vec<Constant>,
    selection: Selection,
    #[serde(with = "as_text")]
    expr: Option<Expr>,
    reduction: Reduction,
}

/// A meaning without the type in the file.
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

/// An expression as its text and the names of its inputs.
mod as_text {
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

impl Spoken {
    /// All of a request but its grid and its types.
    pub fn of(request: &Request) -> Spoken {
        let meanings = [&request.meaning].into_iter().chain(&request.others).map(Attributes::of).collect();
        let Request { constants, selection, expr, reduction, .. } = request.clone();
        Spoken { version: VERSION, meanings, constants, selection, expr, reduction }
    }

    /// How many variables it is about: the lead, and the others.
    pub const fn variables(&self) -> usize {
        self.meanings.len()
    }

    /// The request over such an array, and others of the same shape; `raw` are their types, that of the array first.
    ///
    /// # Errors
    /// [`ArrayError::Spoken`] for types of more or fewer [`variables`](Spoken::variables).
    pub fn request(self, grid: Grid, raw: &[DType]) -> Result<Request, ArrayError> {
        let Spoken { version: _, meanings, constants, selection, expr, reduction } = self;
        let (asked, given) = (meanings.len(), raw.len());
        let mut meanings = meanings.into_iter().zip(raw).map(|(attributes, raw)| attributes.meaning(*raw));
        let lead = meanings.next().filter(|_| asked == given);
        let Some(meaning) = lead else {
            let why = format!("it is about {asked} variables, and comes with {given}");
            return Err(ArrayError::Spoken { why });
        };
        let others = meanings.collect();
        Ok(Request { grid, meaning, others, constants, selection, expr, reduction })
    }

    /// As bytes.
    ///
    /// # Errors
    /// [`ArrayError::Spoken`], where there is no memory for them.
    pub fn encode(&self) -> Result<Vec<u8>, ArrayError> {
        postcard::to_allocvec(self).map_err(|error| ArrayError::Spoken { why: error.to_string() })
    }

    /// From bytes; as many of them as there are bound what is allocated.
    ///
    /// # Errors
    /// [`ArrayError::Spoken`] for whatever [`encode`](Spoken::encode) does not write.
    pub fn decode(bytes: &[u8]) -> Result<Spoken, ArrayError> {
        let wrong = |why: String| ArrayError::Spoken { why };
        let (spoken, rest) = postcard::take_from_bytes::<Spoken>(bytes).map_err(|e| wrong(e.to_string()))?;
        if spoken.version != VERSION {
            return Err(wrong(format!("it is of version {}, and {VERSION} is spoken here", spoken.version)));
        }
        if !rest.is_empty() {
            return Err(wrong(format!("{} bytes follow it", rest.len())));
        }
        Ok(spoken)
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
        let mut meaning = Meaning::of(DType::I16);
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
        let mut other = Meaning::of(DType::F32);
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
        let bytes = Spoken::of(&request).encode().unwrap();
        let spoken = Spoken::decode(&bytes).unwrap();
        assert_eq!(spoken.variables(), 2);
        assert!(spoken.clone().request(request.grid.clone(), &[DType::I16]).is_err());
        let read = spoken.request(request.grid.clone(), &[DType::I16, DType::F32]).unwrap();
        assert_eq!(read, request);
        assert!(read.meaning.offset.unwrap().value.is_sign_negative());
    }

    #[test]
    fn what_was_cut_or_changed_is_an_error_or_another_request() {
        let bytes = Spoken::of(&request()).encode().unwrap();
        for end in 0..bytes.len() {
            assert!(Spoken::decode(&bytes[..end]).is_err(), "{end}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(matches!(Spoken::decode(&longer), Err(ArrayError::Spoken { .. })));
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                // Bound, it must not panic either.
                if let Ok(spoken) = Spoken::decode(&changed) {
                    let grid = Grid::whole(vec![2, 3, 4]).unwrap();
                    let types = vec![DType::I16; spoken.variables()];
                    let _ = spoken.request(grid, &types).and_then(crate::ArrayReduce::bind);
                }
            }
        }
    }
}
