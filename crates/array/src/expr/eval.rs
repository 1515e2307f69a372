//! Evaluation over a block of elements.

use gristmill_kernel::ArrayType;

use crate::expr::ast::{Binary, Literal, Unary};
use crate::expr::check::{Typed, TypedNode};
use crate::expr::operators::{Arithmetic, Cast, cast};
use crate::values::{Number, Values, with_number, with_type, with_values};

/// The value of a part: elements, or one number for all elements.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Block(Values),
    Scalar(Literal),
}

impl Typed {
    /// Computes the values for these inputs, which have the checked types and one length.
    pub fn eval(&self, inputs: Vec<Values>) -> Values {
        self.eval_borrowed(&inputs)
    }

    /// Computes the values for inputs that another expression reads too.
    pub(crate) fn eval_borrowed(&self, inputs: &[Values]) -> Values {
        let length = inputs.first().map_or(0, Values::len);
        let operand = value(&self.root, inputs, length);
        with_type!(self.dtype, T => T::wrap(operand.elements::<T>(length)))
    }
}

impl Operand {
    pub(super) fn elements<T: Cast>(self, length: usize) -> Vec<T> {
        match self {
            Operand::Block(values) => cast(values),
            Operand::Scalar(Literal::Bool(truth)) => vec![T::cast_from(truth); length],
            Operand::Scalar(Literal::Float(x)) => vec![T::cast_from(x); length],
            // Checked literals fit their type: only u64 has literals above the range of i64.
            Operand::Scalar(Literal::Int(n)) => {
                let one = i64::try_from(n).map(T::cast_from).or_else(|_| u64::try_from(n).map(T::cast_from));
                vec![one.unwrap_or_else(|_| T::cast_from(n as f64)); length]
            }
        }
    }

    fn exact(self, length: usize) -> Vec<i128> {
        match self {
            Operand::Scalar(Literal::Int(n)) => vec![n; length],
            Operand::Scalar(Literal::Bool(truth)) => vec![i128::from(truth); length],
            Operand::Scalar(Literal::Float(x)) => vec![x as i128; length],
            Operand::Block(values) => {
                with_values!(values, values => values.into_iter().map(Number::to_i128).collect())
            }
        }
    }
}

fn value(part: &TypedNode, inputs: &[Values], length: usize) -> Operand {
    let of = |part: &TypedNode| value(part, inputs, length);
    match part {
        TypedNode::Input(at) => match inputs.get(*at) {
            Some(values) => Operand::Block(values.clone()),
            None => Operand::Scalar(Literal::Float(f64::NAN)),
        },
        TypedNode::Literal(literal) => Operand::Scalar(*literal),
        TypedNode::Unary(unary, operand, common) => {
            Operand::Block(apply(*unary, of(operand), *common, length))
        }
        TypedNode::Power(operand, exponent, ArrayType::Number(common)) => {
            Operand::Block(with_number!(*common, T => {
                let base = of(operand).elements::<T>(length);
                T::wrap(powers(base, *exponent))
            }))
        }
        TypedNode::Power(operand, ..) => of(operand),
        TypedNode::CompareExactly(binary, left, right) => {
            let (left, right) = (of(left).exact(length), of(right).exact(length));
            Operand::Block(Values::Bool(compared(*binary, &left, &right)))
        }
        TypedNode::Binary(binary, left, right, ArrayType::Bool) => {
            let (left, right) = (of(left).elements::<bool>(length), of(right).elements::<bool>(length));
            Operand::Block(Values::Bool(logic(*binary, &left, &right)))
        }
        TypedNode::Binary(binary, left, right, ArrayType::Number(common)) => {
            let (left, right) = (of(left), of(right));
            Operand::Block(with_number!(*common, T => {
                let (left, right) = (left.elements::<T>(length), right.elements::<T>(length));
                if binary.is_comparison() {
                    Values::Bool(compared(*binary, &left, &right))
                } else {
                    T::wrap(arithmetic(*binary, left, &right))
                }
            }))
        }
        TypedNode::Where(condition, left, right, common) => {
            let condition = of(condition).elements::<bool>(length);
            let (left, right) = (of(left), of(right));
            Operand::Block(with_type!(*common, T => {
                let (mut left, right) = (left.elements::<T>(length), right.elements::<T>(length));
                for ((left, right), truth) in left.iter_mut().zip(right).zip(condition) {
                    *left = if truth { *left } else { right };
                }
                T::wrap(left)
            }))
        }
    }
}

fn powers<T: Arithmetic>(mut base: Vec<T>, exponent: Literal) -> Vec<T> {
    match exponent {
        Literal::Int(n) => base.iter_mut().for_each(|x| *x = x.whole_power(n)),
        Literal::Bool(truth) => base.iter_mut().for_each(|x| *x = x.whole_power(i128::from(truth))),
        Literal::Float(0.5) => base.iter_mut().for_each(|x| *x = x.via_f64(f64::sqrt)),
        Literal::Float(n) if n.trunc() == n && n.abs() <= 64.0 => {
            base.iter_mut().for_each(|x| *x = x.whole_power(n as i128));
        }
        Literal::Float(y) => base.iter_mut().for_each(|x| *x = x.via_f64(|x| libm::pow(x, y))),
    }
    base
}

pub(super) fn apply(unary: Unary, operand: Operand, common: ArrayType, length: usize) -> Values {
    use Unary::*;
    match (unary, common) {
        (Cast(to), _) => with_type!(common, U => {
            let values = U::wrap(operand.elements::<U>(length));
            with_type!(to, T => T::wrap(cast::<T>(values)))
        }),
        (Not, _) => Values::Bool(operand.elements::<bool>(length).into_iter().map(|truth| !truth).collect()),
        (IsNan, ArrayType::Bool) => Values::Bool(vec![false; length]),
        (IsFinite, ArrayType::Bool) => Values::Bool(vec![true; length]),
        (_, ArrayType::Bool) => Values::Bool(operand.elements(length)),
        (_, ArrayType::Number(dtype)) => {
            with_number!(dtype, T => numbers(unary, operand.elements::<T>(length)))
        }
    }
}

fn numbers<T: Arithmetic>(unary: Unary, mut values: Vec<T>) -> Values {
    let mut each = |f: &dyn Fn(T) -> T| values.iter_mut().for_each(|x| *x = f(*x));
    match unary {
        Unary::IsNan => return Values::Bool(values.into_iter().map(Number::is_nan).collect()),
        Unary::IsFinite => return Values::Bool(values.into_iter().map(T::is_finite_number).collect()),
        Unary::Negative => each(&T::negative),
        Unary::Abs => each(&T::magnitude),
        // The root of an f32 is computed in f64 and rounded. It is the nearest f32, because f64 has more than twice the
        // bits.
        Unary::Sqrt => each(&|x| x.via_f64(f64::sqrt)),
        Unary::Exp => each(&|x| x.via_f64(libm::exp)),
        Unary::Log => each(&|x| x.via_f64(libm::log)),
        Unary::Log10 => each(&|x| x.via_f64(libm::log10)),
        Unary::Floor => each(&|x| x.via_f64(f64::floor)),
        Unary::Ceil => each(&|x| x.via_f64(f64::ceil)),
        Unary::Round => each(&|x| x.via_f64(f64::round_ties_even)),
        Unary::Not | Unary::Cast(_) => {}
    }
    T::wrap(values)
}

pub(super) fn arithmetic<T: Arithmetic>(binary: Binary, mut left: Vec<T>, right: &[T]) -> Vec<T> {
    macro_rules! each {
        ($operation:expr) => {
            for (a, b) in left.iter_mut().zip(right) {
                *a = $operation(*a, *b);
            }
        };
    }
    match binary {
        Binary::Add => each!(T::plus),
        Binary::Subtract => each!(T::minus),
        Binary::Multiply => each!(T::times),
        Binary::Divide => each!(T::over),
        Binary::FloorDivide => each!(T::floor_over),
        Binary::Remainder => each!(T::modulo),
        Binary::Power => each!(T::power),
        Binary::Minimum => each!(T::lesser),
        Binary::Maximum => each!(T::larger),
        // Comparisons and logic give booleans, elsewhere.
        _ => {}
    }
    left
}

fn compared<T: PartialOrd + Copy>(binary: Binary, left: &[T], right: &[T]) -> Vec<bool> {
    let pairs = left.iter().zip(right);
    match binary {
        Binary::Less => pairs.map(|(a, b)| a < b).collect(),
        Binary::LessEqual => pairs.map(|(a, b)| a <= b).collect(),
        Binary::Greater => pairs.map(|(a, b)| a > b).collect(),
        Binary::GreaterEqual => pairs.map(|(a, b)| a >= b).collect(),
        Binary::NotEqual => pairs.map(|(a, b)| a != b).collect(),
        _ => pairs.map(|(a, b)| a == b).collect(),
    }
}

fn logic(binary: Binary, left: &[bool], right: &[bool]) -> Vec<bool> {
    let pairs = left.iter().zip(right);
    match binary {
        Binary::And | Binary::Multiply | Binary::Minimum => pairs.map(|(a, b)| a & b).collect(),
        Binary::Or | Binary::Add | Binary::Maximum => pairs.map(|(a, b)| a | b).collect(),
        _ => compared(binary, left, right),
    }
}
