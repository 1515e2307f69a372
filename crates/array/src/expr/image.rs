//! What an expression makes of all values in a range, without looking at each.
//!
//! Only what is certain is said. A number is followed through operations that do not turn: with one operand that is
//! written out they are monotone also after rounding, zeros ordered by their signs (but for the lesser or larger of a zero and
//! them), so the image of a range lies between the
//! images of its ends, and these are computed as those of any element. Where an end becomes NaN, an integer would wrap, or
//! an operation turns or is left to a library, nothing is said.

use gristmill_kernel::ArrayType;

use crate::expr::ast::{Binary, Literal, Unary};
use crate::expr::check::{Part, Typed};
use crate::expr::eval::{Operand, apply, arithmetic};
use crate::expr::operators::{Arithmetic, Cast, cast};
use crate::truth::is_float;
use crate::values::{Number, Values, with_number, with_type, with_values};

/// What some elements come to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Image {
    /// Whether any may be true, and whether any may be false.
    Truth {
        yes: bool,
        no: bool,
    },
    Numbers(Spread),
    Literal(Literal),
}

/// Numbers of which some are the least, some the largest, and some NaN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The least and the largest, both of which some element is; none where all are NaN.
    pub(crate) ends: Option<Values>,
    /// Whether those that were missing are NaN still; no other is.
    pub(crate) nan: bool,
    /// Whether they are the elements as they came.
    pub(crate) same: bool,
}

impl Image {
    /// Of elements as they are.
    pub(crate) const fn of(ends: Option<Values>, nan: bool) -> Image {
        Image::Numbers(Spread { ends, nan, same: true })
    }
}

impl Typed {
    /// What elements of the one input come to that are no smaller and no larger than these two, both of which are among
    /// them, or NaN. `None` where that is not certain.
    pub(crate) fn image(&self, ends: Option<Values>, nan: bool) -> Option<Image> {
        let input = Spread { ends, nan, same: true };
        brought(image(&self.root, &input)?, self.dtype)
    }
}

fn image(part: &Part, input: &Spread) -> Option<Image> {
    match part {
        Part::Input(0) => Some(Image::Numbers(input.clone())),
        Part::Input(_) | Part::Power(..) => None,
        Part::Literal(literal) => Some(Image::Literal(*literal)),
        Part::Unary(unary, of, common) => one(*unary, brought(image(of, input)?, *common)?, *common),
        Part::Binary(binary, left, right, common) => {
            let (left, right) = (image(left, input)?, image(right, input)?);
            match common {
                ArrayType::Bool => logic(*binary, brought(left, *common)?, brought(right, *common)?),
                ArrayType::Number(_) if binary.is_comparison() => {
                    let (left, right) = (numbers(left, *common)?, numbers(right, *common)?);
                    compared_ends(*binary, &left, &right)
                }
                ArrayType::Number(_) => with_literal(*binary, left, right, *common),
            }
        }
        Part::CompareExactly(binary, left, right) => {
            let (left, right) = (exact(image(left, input)?)?, exact(image(right, input)?)?);
            Some(compared(*binary, Some((left, right)), false))
        }
        Part::Where(condition, left, right, common) => {
            match brought(image(condition, input)?, ArrayType::Bool)? {
                Image::Truth { yes: true, no: false } => brought(image(left, input)?, *common),
                Image::Truth { yes: false, no: true } => brought(image(right, input)?, *common),
                _ => None,
            }
        }
    }
}

/// The same brought to a type, as operands are.
fn brought(image: Image, to: ArrayType) -> Option<Image> {
    let spread = match image {
        Image::Literal(literal) if to == ArrayType::Bool => {
            let yes = Operand::Scalar(literal).brought::<bool>(1).contains(&true);
            return Some(Image::Truth { yes, no: !yes });
        }
        Image::Literal(literal) => {
            let ends = with_type!(to, T => T::wrap(Operand::Scalar(literal).brought::<T>(2)));
            let nan = any_nan(&ends);
            return Some(Image::Numbers(Spread { ends: (!nan).then_some(ends), nan, same: false }));
        }
        Image::Truth { .. } if to == ArrayType::Bool => return Some(image),
        Image::Truth { yes, no } if yes != no => {
            let ends = with_type!(to, T => T::wrap(cast::<T>(Values::Bool(vec![yes; 2]))));
            return Some(Image::Numbers(Spread { ends: Some(ends), nan: false, same: false }));
        }
        Image::Truth { .. } => return None,
        Image::Numbers(spread) => spread,
    };
    let Some(ends) = &spread.ends else {
        // NaN is true, and no integer.
        return match to {
            ArrayType::Bool => Some(Image::Truth { yes: spread.nan, no: false }),
            to if is_float(to) => Some(Image::Numbers(Spread { same: false, ..spread })),
            _ => None,
        };
    };
    let from = ends.dtype();
    match to {
        to if to == from => Some(Image::Numbers(spread)),
        ArrayType::Bool => {
            let (low, high) = signs(ends);
            let yes = spread.nan || low != 0 || high != 0;
            Some(Image::Truth { yes, no: low <= 0 && high >= 0 })
        }
        to if !is_float(to) && (spread.nan || !is_float(from) && !stays(ends, to)) => None,
        to => {
            let ends = with_type!(to, T => T::wrap(cast::<T>(ends.clone())));
            Some(Image::Numbers(Spread { ends: Some(ends), same: false, ..spread }))
        }
    }
}

fn numbers(image: Image, to: ArrayType) -> Option<Spread> {
    match brought(image, to)? {
        Image::Numbers(spread) => Some(spread),
        _ => None,
    }
}

/// Whether integers keep their values in another type.
fn stays(ends: &Values, to: ArrayType) -> bool {
    let there = with_type!(to, T => T::wrap(cast::<T>(ends.clone())));
    whole(ends) == whole(&there)
}

fn whole(values: &Values) -> Vec<i128> {
    with_values!(values, values => values.iter().map(|x| x.to_i128()).collect())
}

fn any_nan(values: &Values) -> bool {
    with_values!(values, values => values.iter().any(|x| x.is_nan()))
}

/// -1, 0 or 1 for the least and for the largest.
fn signs(ends: &Values) -> (i8, i8) {
    fn of<T: Number>(x: T) -> i8 {
        let zero = T::default();
        if x > zero { 1 } else { -i8::from(x < zero) }
    }
    with_values!(ends, ends => (of(ends[0]), of(ends[1])))
}

/// In ascending order of keys, which is descending where the operation turns the order over; `None` where one is NaN.
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

fn one(unary: Unary, of: Image, common: ArrayType) -> Option<Image> {
    if let Unary::Cast(to) = unary {
        return brought(of, to);
    }
    let spread = match (unary, of) {
        (Unary::Not, Image::Truth { yes, no }) => return Some(Image::Truth { yes: no, no: yes }),
        (Unary::IsNan, Image::Truth { .. }) => return Some(Image::Truth { yes: false, no: true }),
        (Unary::IsFinite, Image::Truth { .. }) => return Some(Image::Truth { yes: true, no: false }),
        (_, Image::Numbers(spread)) => spread,
        _ => return None,
    };
    let finite = |ends: &Values| -> Vec<bool> {
        with_values!(ends, ends => ends.iter().map(|x| x.to_f64().is_finite()).collect())
    };
    match unary {
        Unary::IsNan => Some(Image::Truth { yes: spread.nan, no: spread.ends.is_some() }),
        Unary::IsFinite => {
            let ends = spread.ends.as_ref().map(finite).unwrap_or_default();
            // Between infinities of both signs anything may lie.
            let one_infinity = spread.ends.as_ref().is_some_and(|ends| {
                let (low, high) = signs(ends);
                low == high && finite(ends) == [false, false]
            });
            let yes = spread.ends.is_some() && !one_infinity;
            Some(Image::Truth { yes, no: spread.nan || ends.contains(&false) })
        }
        Unary::Abs if spread.ends.as_ref().is_some_and(|ends| matches!(signs(ends), (-1, 1))) => None,
        Unary::Negative | Unary::Abs | Unary::Sqrt | Unary::Floor | Unary::Ceil | Unary::Round => {
            let Some(ends) = spread.ends else {
                return Some(Image::Numbers(Spread { same: false, ..spread }));
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
            Some(Image::Numbers(Spread { ends: Some(ends), nan: spread.nan, same: false }))
        }
        _ => None,
    }
}

/// Arithmetic with one operand that is written out.
fn with_literal(binary: Binary, left: Image, right: Image, common: ArrayType) -> Option<Image> {
    use Binary::*;
    let first = match (&left, &right) {
        (Image::Literal(_), Image::Numbers(_)) => true,
        (Image::Numbers(_), Image::Literal(_)) => false,
        _ => return None,
    };
    let (left, right) = (numbers(left, common)?, numbers(right, common)?);
    let (literal, spread) = if first { (&left, &right) } else { (&right, &left) };
    let literal = literal.ends.as_ref()?;
    let number = with_values!(literal, literal => literal[0].to_f64());
    match binary {
        Add | Subtract => {}
        // Of two that are equal the second is taken, so behind a zero the signs of zeros are not in order.
        Minimum | Maximum if number != 0.0 || !first => {}
        Multiply if number.is_finite() => {}
        Divide if number.is_finite() && number != 0.0 && !first => {}
        _ => return None,
    }
    let nan = spread.nan;
    let (Some(left), Some(right)) = (left.ends, right.ends) else {
        return Some(Image::Numbers(Spread { ends: None, nan, same: false }));
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
    Some(Image::Numbers(Spread { ends: Some(ends), nan, same: false }))
}

fn compared_ends(binary: Binary, left: &Spread, right: &Spread) -> Option<Image> {
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

/// Which truths a comparison of any of one range with any of the other can give, NaNs apart.
fn compared<T: PartialOrd>(binary: Binary, ends: Option<([T; 2], [T; 2])>, nan: bool) -> Image {
    use Binary::*;
    // Two NaNs, or one, are not equal; nothing else is true of them.
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

/// Both ends of integers, whatever their type.
fn exact(image: Image) -> Option<[i128; 2]> {
    match image {
        Image::Literal(Literal::Int(n)) => Some([n; 2]),
        Image::Literal(Literal::Bool(truth)) => Some([i128::from(truth); 2]),
        Image::Numbers(Spread { ends: Some(ends), nan: false, .. }) if !is_float(ends.dtype()) => {
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
