//! The image of a range of values under an expression, found without looking at each value.
//!
//! An image is given only if it is certain. A range is followed through operations that are monotone. With one literal
//! operand they stay monotone after rounding, if zeros are ordered by their signs; `min` and `max` with a literal zero
//! are the exception. So the image of a range lies between the images of its ends, and these are computed as for any
//! element. There is no image if an end becomes NaN, if an integer would wrap, or if an operation is not monotone or is
//! left to a library.

use gristmill_kernel::ArrayType;

use crate::expr::ast::{Binary, Literal, Unary};
use crate::expr::check::{Typed, TypedNode};
use crate::expr::eval::{Operand, apply, arithmetic};
use crate::expr::operators::{Arithmetic, Cast, cast};
use crate::truth::is_float;
use crate::values::{Number, Values, with_number, with_type, with_values};

/// The results of an expression over some elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Image {
    /// `yes`: some may be true. `no`: some may be false.
    Truth {
        yes: bool,
        no: bool,
    },
    Numbers(NumberRange),
    Literal(Literal),
}

/// The range of some numbers, which may include NaN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NumberRange {
    /// The least and the largest, which both occur; `None` if all are NaN.
    pub(crate) ends: Option<Values>,
    /// Whether elements that were missing are still NaN. No other element is NaN.
    pub(crate) nan: bool,
    /// Whether the numbers are the unchanged elements.
    pub(crate) same: bool,
}

impl Image {
    /// The image of elements that no operation changes.
    pub(crate) const fn unchanged(ends: Option<Values>, nan: bool) -> Image {
        Image::Numbers(NumberRange { ends, nan, same: true })
    }
}

impl Typed {
    /// Returns the image of the only input's elements. `ends` are their least and largest, which both occur; `nan` says
    /// whether some are NaN. Returns `None` if the image is not certain.
    pub(crate) fn image(&self, ends: Option<Values>, nan: bool) -> Option<Image> {
        let input = NumberRange { ends, nan, same: true };
        cast_image(image(&self.root, &input)?, self.dtype)
    }
}

fn image(part: &TypedNode, input: &NumberRange) -> Option<Image> {
    match part {
        TypedNode::Input(0) => Some(Image::Numbers(input.clone())),
        TypedNode::Input(_) | TypedNode::Power(..) => None,
        TypedNode::Literal(literal) => Some(Image::Literal(*literal)),
        TypedNode::Unary(unary, of, common) => {
            unary_image(*unary, cast_image(image(of, input)?, *common)?, *common)
        }
        TypedNode::Binary(binary, left, right, common) => {
            let (left, right) = (image(left, input)?, image(right, input)?);
            match common {
                ArrayType::Bool => logic(*binary, cast_image(left, *common)?, cast_image(right, *common)?),
                ArrayType::Number(_) if binary.is_comparison() => {
                    let (left, right) = (numbers(left, *common)?, numbers(right, *common)?);
                    compared_ends(*binary, &left, &right)
                }
                ArrayType::Number(_) => with_literal(*binary, left, right, *common),
            }
        }
        TypedNode::CompareExactly(binary, left, right) => {
            let (left, right) = (exact(image(left, input)?)?, exact(image(right, input)?)?);
            Some(compared(*binary, Some((left, right)), false))
        }
        TypedNode::Where(condition, left, right, common) => {
            match cast_image(image(condition, input)?, ArrayType::Bool)? {
                Image::Truth { yes: true, no: false } => cast_image(image(left, input)?, *common),
                Image::Truth { yes: false, no: true } => cast_image(image(right, input)?, *common),
                _ => None,
            }
        }
    }
}

/// Casts an image to a type, as operands are cast.
fn cast_image(image: Image, to: ArrayType) -> Option<Image> {
    let range = match image {
        Image::Literal(literal) if to == ArrayType::Bool => {
            let yes = Operand::Scalar(literal).elements::<bool>(1).contains(&true);
            return Some(Image::Truth { yes, no: !yes });
        }
        Image::Literal(literal) => {
            let ends = with_type!(to, T => T::wrap(Operand::Scalar(literal).elements::<T>(2)));
            let nan = any_nan(&ends);
            return Some(Image::Numbers(NumberRange { ends: (!nan).then_some(ends), nan, same: false }));
        }
        Image::Truth { .. } if to == ArrayType::Bool => return Some(image),
        Image::Truth { yes, no } if yes != no => {
            let ends = with_type!(to, T => T::wrap(cast::<T>(Values::Bool(vec![yes; 2]))));
            return Some(Image::Numbers(NumberRange { ends: Some(ends), nan: false, same: false }));
        }
        Image::Truth { .. } => return None,
        Image::Numbers(range) => range,
    };
    let Some(ends) = &range.ends else {
        // As a bool NaN is true. As an integer it has no certain image.
        return match to {
            ArrayType::Bool => Some(Image::Truth { yes: range.nan, no: false }),
            to if is_float(to) => Some(Image::Numbers(NumberRange { same: false, ..range })),
            _ => None,
        };
    };
    let from = ends.dtype();
    match to {
        to if to == from => Some(Image::Numbers(range)),
        ArrayType::Bool => {
            let (low, high) = signs(ends);
            let yes = range.nan || low != 0 || high != 0;
            Some(Image::Truth { yes, no: low <= 0 && high >= 0 })
        }
        to if !is_float(to) && (range.nan || !is_float(from) && !keeps_values(ends, to)) => None,
        to => {
            let ends = with_type!(to, T => T::wrap(cast::<T>(ends.clone())));
            Some(Image::Numbers(NumberRange { ends: Some(ends), same: false, ..range }))
        }
    }
}

fn numbers(image: Image, to: ArrayType) -> Option<NumberRange> {
    match cast_image(image, to)? {
        Image::Numbers(range) => Some(range),
        _ => None,
    }
}

/// Returns whether integers keep their values in another type.
fn keeps_values(ends: &Values, to: ArrayType) -> bool {
    let there = with_type!(to, T => T::wrap(cast::<T>(ends.clone())));
    whole(ends) == whole(&there)
}

fn whole(values: &Values) -> Vec<i128> {
    with_values!(values, values => values.iter().map(|x| x.to_i128()).collect())
}

fn any_nan(values: &Values) -> bool {
    with_values!(values, values => values.iter().any(|x| x.is_nan()))
}

/// Returns the signs of the least and of the largest: -1, 0 or 1.
fn signs(ends: &Values) -> (i8, i8) {
    fn of<T: Number>(x: T) -> i8 {
        let zero = T::default();
        if x > zero { 1 } else { -i8::from(x < zero) }
    }
    with_values!(ends, ends => (of(ends[0]), of(ends[1])))
}

/// Sorts the images of the ends by their keys, because an operation may reverse the order. Returns `None` if one is
/// NaN.
fn in_order(values: Values) -> Option<Values> {
    with_values!(values, values => {
        let mut values = values;
        if values.iter().any(|x| x.is_nan()) {
            return None;
        }
        values.sort_by_key(|x| x.key());
        Some(Number::wrap(values))
    })
}

fn unary_image(unary: Unary, of: Image, common: ArrayType) -> Option<Image> {
    if let Unary::Cast(to) = unary {
        return cast_image(of, to);
    }
    let range = match (unary, of) {
        (Unary::Not, Image::Truth { yes, no }) => return Some(Image::Truth { yes: no, no: yes }),
        (Unary::IsNan, Image::Truth { .. }) => return Some(Image::Truth { yes: false, no: true }),
        (Unary::IsFinite, Image::Truth { .. }) => return Some(Image::Truth { yes: true, no: false }),
        (_, Image::Numbers(range)) => range,
        _ => return None,
    };
    let finite = |ends: &Values| -> Vec<bool> {
        with_values!(ends, ends => ends.iter().map(|x| x.to_f64().is_finite()).collect())
    };
    match unary {
        Unary::IsNan => Some(Image::Truth { yes: range.nan, no: range.ends.is_some() }),
        Unary::IsFinite => {
            let ends = range.ends.as_ref().map(finite).unwrap_or_default();
            // Between infinities of both signs there may be any number.
            let one_infinity = range.ends.as_ref().is_some_and(|ends| {
                let (low, high) = signs(ends);
                low == high && finite(ends) == [false, false]
            });
            let yes = range.ends.is_some() && !one_infinity;
            Some(Image::Truth { yes, no: range.nan || ends.contains(&false) })
        }
        Unary::Abs if range.ends.as_ref().is_some_and(|ends| matches!(signs(ends), (-1, 1))) => None,
        Unary::Negative | Unary::Abs | Unary::Sqrt | Unary::Floor | Unary::Ceil | Unary::Round => {
            let Some(ends) = range.ends else {
                return Some(Image::Numbers(NumberRange { same: false, ..range }));
            };
            let before = whole(&ends);
            let ends = in_order(apply(unary, Operand::Block(ends), common, 2))?;
            if !is_float(common) {
                let mut expected: Vec<i128> = match unary {
                    Unary::Negative => before.iter().map(|n| -n).collect(),
                    Unary::Abs => before.iter().map(|n| n.abs()).collect(),
                    _ => before,
                };
                expected.sort_unstable();
                if whole(&ends) != expected {
                    return None;
                }
            }
            Some(Image::Numbers(NumberRange { ends: Some(ends), nan: range.nan, same: false }))
        }
        _ => None,
    }
}

/// Returns the image of arithmetic with one literal operand.
fn with_literal(binary: Binary, left: Image, right: Image, common: ArrayType) -> Option<Image> {
    use Binary::*;
    let first = match (&left, &right) {
        (Image::Literal(_), Image::Numbers(_)) => true,
        (Image::Numbers(_), Image::Literal(_)) => false,
        _ => return None,
    };
    let (left, right) = (numbers(left, common)?, numbers(right, common)?);
    let (literal, range) = if first { (&left, &right) } else { (&right, &left) };
    let literal = literal.ends.as_ref()?;
    let number = with_values!(literal, literal => literal[0].to_f64());
    match binary {
        Add | Subtract => {}
        // Of two equal operands the second is taken, so with a literal zero first the signs of zeros are not in order.
        Minimum | Maximum if number != 0.0 || !first => {}
        Multiply if number.is_finite() => {}
        Divide if number.is_finite() && number != 0.0 && !first => {}
        _ => return None,
    }
    let nan = range.nan;
    let (Some(left), Some(right)) = (left.ends, right.ends) else {
        return Some(Image::Numbers(NumberRange { ends: None, nan, same: false }));
    };
    let mut expected: Vec<i128> = whole(&left)
        .iter()
        .zip(whole(&right))
        .map(|(a, b)| match binary {
            Add => a.checked_add(b),
            Subtract => a.checked_sub(b),
            Multiply => a.checked_mul(b),
            Minimum => Some(*a.min(&b)),
            _ => Some(*a.max(&b)),
        })
        .collect::<Option<_>>()
        .unwrap_or_default();
    expected.sort_unstable();
    fn pair<T: Arithmetic>(binary: Binary, left: Values, right: Values) -> Values {
        T::wrap(arithmetic(binary, cast::<T>(left), &cast::<T>(right)))
    }
    let ArrayType::Number(dtype) = common else { return None };
    let ends = in_order(with_number!(dtype, T => pair::<T>(binary, left, right)))?;
    if !is_float(common) && whole(&ends) != expected {
        return None;
    }
    Some(Image::Numbers(NumberRange { ends: Some(ends), nan, same: false }))
}

fn compared_ends(binary: Binary, left: &NumberRange, right: &NumberRange) -> Option<Image> {
    let nan = left.nan || right.nan;
    let (Some(a), Some(b)) = (&left.ends, &right.ends) else {
        return Some(compared::<u8>(binary, None, nan));
    };
    fn pairs<T: Cast>(a: &Values, b: &Values, binary: Binary, nan: bool) -> Image {
        let (a, b) = (cast::<T>(a.clone()), cast::<T>(b.clone()));
        compared(binary, Some(([a[0], a[1]], [b[0], b[1]])), nan)
    }
    Some(with_type!(a.dtype(), T => pairs::<T>(a, b, binary, nan)))
}

/// Returns the possible results of comparing any number of one range with any number of the other. `nan` says whether
/// either range has NaN.
fn compared<T: PartialOrd>(binary: Binary, ends: Option<([T; 2], [T; 2])>, nan: bool) -> Image {
    use Binary::*;
    // NaN is unequal to everything; every other comparison with it is false.
    let (mut yes, mut no) = (nan && binary == NotEqual, nan && binary != NotEqual);
    if let Some(([a, b], [c, d])) = ends {
        let meet = a <= d && c <= b;
        let apart = !(a == b && c == d && a == c);
        let (can, cannot) = match binary {
            Less => (a < d, b >= c),
            LessEqual => (a <= d, b > c),
            Greater => (b > c, a <= d),
            GreaterEqual => (b >= c, a < d),
            NotEqual => (apart, meet),
            _ => (meet, apart),
        };
        yes |= can;
        no |= cannot;
    }
    Image::Truth { yes, no }
}

/// Returns both ends if they are integers or booleans.
fn exact(image: Image) -> Option<[i128; 2]> {
    match image {
        Image::Literal(Literal::Int(n)) => Some([n; 2]),
        Image::Literal(Literal::Bool(truth)) => Some([i128::from(truth); 2]),
        Image::Numbers(NumberRange { ends: Some(ends), nan: false, .. }) if !is_float(ends.dtype()) => {
            whole(&ends).try_into().ok()
        }
        _ => None,
    }
}

fn logic(binary: Binary, left: Image, right: Image) -> Option<Image> {
    use Binary::*;
    let (Image::Truth { yes: a, no: not_a }, Image::Truth { yes: b, no: not_b }) = (left, right) else {
        return None;
    };
    match binary {
        And | Multiply | Minimum => Some(Image::Truth { yes: a && b, no: not_a || not_b }),
        Or | Add | Maximum => Some(Image::Truth { yes: a || b, no: not_a && not_b }),
        _ => None,
    }
}
