//! The types of the parts of an expression: NumPy 2's promotion, in which literals are weak (NEP 50).

use gristmill_kernel::{ArrayType, DType};

use crate::error::ArrayError;
use crate::expr::ast::{Binary, Literal, Node, NodeKind, Unary};
use crate::truth::is_float;

/// An expression whose types are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    pub(crate) root: TypedNode,
    pub(crate) dtype: ArrayType,
}

impl Typed {
    /// The type of its values.
    pub const fn dtype(&self) -> ArrayType {
        self.dtype
    }

    /// Returns the two factors, as f64, if the expression is a product of numbers.
    pub(crate) fn factors(&self) -> Option<[Typed; 2]> {
        match &self.root {
            TypedNode::Binary(Binary::Multiply, left, right, ArrayType::Number(_)) => {
                Some([left, right].map(|factor| Typed { root: (**factor).clone(), dtype: F64 }))
            }
            _ => None,
        }
    }
}

/// A part of an expression with the type to which its operands are cast.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TypedNode {
    Input(usize),
    Literal(Literal),
    Unary(Unary, Box<TypedNode>, ArrayType),
    Binary(Binary, Box<TypedNode>, Box<TypedNode>, ArrayType),
    /// A comparison by exact values, of integers that no single type holds.
    CompareExactly(Binary, Box<TypedNode>, Box<TypedNode>),
    /// A power with an exponent that is known.
    Power(Box<TypedNode>, Literal, ArrayType),
    Where(Box<TypedNode>, Box<TypedNode>, Box<TypedNode>, ArrayType),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Weak(Literal),
    Strong(ArrayType),
}

const BOOL: ArrayType = ArrayType::Bool;
const I64: ArrayType = ArrayType::Number(DType::I64);
const F32: ArrayType = ArrayType::Number(DType::F32);
const F64: ArrayType = ArrayType::Number(DType::F64);

pub(crate) fn check(root: &Node, inputs: &[ArrayType]) -> Result<Typed, ArrayError> {
    let (root, kind) = type_node(root, inputs)?;
    Ok(Typed { root, dtype: default_type(kind) })
}

fn wrong(at: usize, why: impl Into<String>) -> ArrayError {
    ArrayError::Expression { at, why: why.into() }
}

/// Returns the type, or for a weak literal the type that it has by itself.
const fn default_type(kind: Kind) -> ArrayType {
    match kind {
        Kind::Strong(dtype) => dtype,
        Kind::Weak(Literal::Bool(_)) => BOOL,
        Kind::Weak(Literal::Int(_)) => I64,
        Kind::Weak(Literal::Float(_)) => F64,
    }
}

fn type_node(node: &Node, inputs: &[ArrayType]) -> Result<(TypedNode, Kind), ArrayError> {
    match &node.kind {
        NodeKind::Input(at) => {
            let dtype = *inputs.get(*at).ok_or_else(|| wrong(node.at, "there is no such input"))?;
            Ok((TypedNode::Input(*at), Kind::Strong(dtype)))
        }
        NodeKind::Literal(literal @ Literal::Bool(_)) => {
            Ok((TypedNode::Literal(*literal), Kind::Strong(BOOL)))
        }
        NodeKind::Literal(literal) => Ok((TypedNode::Literal(*literal), Kind::Weak(*literal))),
        NodeKind::Unary(unary, of) => {
            let (of, kind) = type_node(of, inputs)?;
            let (common, result) = unary_types(node.at, *unary, default_type(kind))?;
            fits(node.at, kind, common)?;
            Ok((TypedNode::Unary(*unary, Box::new(of), common), Kind::Strong(result)))
        }
        NodeKind::Binary(binary, left, right) => {
            let (left, right) = (type_node(left, inputs)?, type_node(right, inputs)?);
            binary_types(node.at, *binary, left, right)
        }
        NodeKind::Where(condition, left, right) => {
            let (condition, kind) = type_node(condition, inputs)?;
            if default_type(kind) != BOOL {
                return Err(wrong(
                    node.at,
                    "the first argument of where must be true or false, as a comparison is",
                ));
            }
            let ((left, a), (right, b)) = (type_node(left, inputs)?, type_node(right, inputs)?);
            let common = promote(a, b);
            fits(node.at, a, common)?;
            fits(node.at, b, common)?;
            let part = TypedNode::Where(Box::new(condition), Box::new(left), Box::new(right), common);
            Ok((part, Kind::Strong(common)))
        }
    }
}

/// Returns the type to which the operand is cast, and the type of the result.
fn unary_types(at: usize, unary: Unary, of: ArrayType) -> Result<(ArrayType, ArrayType), ArrayError> {
    use Unary::*;
    Ok(match unary {
        Negative if of == BOOL => return Err(wrong(at, "true and false have no sign; use ~, or cast them")),
        Not if of != BOOL => return Err(wrong(at, "~ takes true or false, as a comparison gives")),
        Negative | Not | Abs | Floor | Ceil | Round => (of, of),
        IsNan | IsFinite => (of, BOOL),
        Sqrt | Exp | Log | Log10 if is_float(of) => (of, of),
        Sqrt | Exp | Log | Log10 => {
            let float = if of.size() <= 2 { F32 } else { F64 };
            (float, float)
        }
        Cast(to) => (of, to),
    })
}

fn binary_types(
    at: usize,
    binary: Binary,
    (left, a): (TypedNode, Kind),
    (right, b): (TypedNode, Kind),
) -> Result<(TypedNode, Kind), ArrayError> {
    use Binary::*;
    if let (Kind::Weak(a), Kind::Weak(b)) = (a, b)
        && let Some(folded) = fold(binary, a, b)
    {
        return Ok((TypedNode::Literal(folded), Kind::Weak(folded)));
    }
    let common = promote(a, b);
    if binary.is_comparison() {
        if !is_float(common) && (fits(at, a, common).is_err() || fits(at, b, common).is_err())
            || [default_type(a), default_type(b)].iter().all(|one| !is_float(*one)) && is_float(common)
        {
            return Ok((
                TypedNode::CompareExactly(binary, Box::new(left), Box::new(right)),
                Kind::Strong(BOOL),
            ));
        }
        return Ok((TypedNode::Binary(binary, Box::new(left), Box::new(right), common), Kind::Strong(BOOL)));
    }
    let common = match binary {
        And | Or if common != BOOL => {
            return Err(wrong(
                at,
                "& and | join true and false, as comparisons give; use parentheses or a cast",
            ));
        }
        Subtract if common == BOOL => {
            return Err(wrong(at, "true and false cannot be subtracted; cast them, as in i8(...)"));
        }
        Divide if !is_float(common) => F64,
        FloorDivide | Remainder | Power if common == BOOL => ArrayType::Number(DType::I8),
        _ => common,
    };
    if binary == Power {
        if let Kind::Weak(exponent) = b {
            if let (Literal::Int(n), false) = (exponent, is_float(common))
                && n < 0
            {
                return Err(wrong(at, "an integer has no integer power below 0; cast it, as in f64(x)"));
            }
            return Ok((TypedNode::Power(Box::new(left), exponent, common), Kind::Strong(common)));
        }
        if !is_float(common) {
            return Err(wrong(
                at,
                "the exponent of integers must be a number that is written out, as in x ** 2",
            ));
        }
    }
    fits(at, a, common)?;
    fits(at, b, common)?;
    Ok((TypedNode::Binary(binary, Box::new(left), Box::new(right), common), Kind::Strong(common)))
}

/// Computes an operation on two literals; the result is weak too.
fn fold(binary: Binary, a: Literal, b: Literal) -> Option<Literal> {
    let float = |literal| match literal {
        Literal::Int(n) => n as f64,
        Literal::Float(x) => x,
        Literal::Bool(_) => f64::NAN,
    };
    match (binary, a, b) {
        (Binary::Add, Literal::Int(a), Literal::Int(b)) => a.checked_add(b).map(Literal::Int),
        (Binary::Subtract, Literal::Int(a), Literal::Int(b)) => a.checked_sub(b).map(Literal::Int),
        (Binary::Multiply, Literal::Int(a), Literal::Int(b)) => a.checked_mul(b).map(Literal::Int),
        (Binary::Power, Literal::Int(a), Literal::Int(b)) if b >= 0 => {
            u32::try_from(b).ok().and_then(|b| a.checked_pow(b)).map(Literal::Int)
        }
        (Binary::Add, ..) => Some(Literal::Float(float(a) + float(b))),
        (Binary::Subtract, ..) => Some(Literal::Float(float(a) - float(b))),
        (Binary::Multiply, ..) => Some(Literal::Float(float(a) * float(b))),
        (Binary::Divide, ..) => Some(Literal::Float(float(a) / float(b))),
        (Binary::Power, ..) => Some(Literal::Float(libm::pow(float(a), float(b)))),
        _ => None,
    }
}

/// Checks that a literal integer is in the range of the type that it takes.
fn fits(at: usize, kind: Kind, common: ArrayType) -> Result<(), ArrayError> {
    let Kind::Weak(Literal::Int(n)) = kind else { return Ok(()) };
    let (low, high) = match common {
        ArrayType::Number(dtype) if !dtype.is_float() => {
            let bits = 8 * dtype.size() as u32;
            match dtype {
                DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0, (1i128 << bits) - 1),
                _ => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            }
        }
        _ => return Ok(()),
    };
    if (low..=high).contains(&n) {
        return Ok(());
    }
    Err(wrong(at, format!("{n} is out of the range of {}; cast the other side, as in i64(x)", common.name())))
}

fn promote(a: Kind, b: Kind) -> ArrayType {
    match (a, b) {
        (Kind::Strong(a), Kind::Strong(b)) => promoted(a, b),
        (Kind::Weak(weak), Kind::Strong(strong)) | (Kind::Strong(strong), Kind::Weak(weak)) => {
            match (weak, strong) {
                (_, strong) if is_float(strong) => strong,
                (Literal::Int(_), BOOL) => I64,
                (Literal::Int(_) | Literal::Bool(_), strong) => strong,
                (Literal::Float(_), _) => F64,
            }
        }
        (Kind::Weak(a), Kind::Weak(b)) => promoted(default_type(Kind::Weak(a)), default_type(Kind::Weak(b))),
    }
}

/// Returns the type that NumPy 2 promotes two types to.
pub(crate) fn promoted(a: ArrayType, b: ArrayType) -> ArrayType {
    use DType::*;
    let (ArrayType::Number(x), ArrayType::Number(y)) = (a, b) else {
        return if a == BOOL { b } else { a };
    };
    let unsigned = |dtype| matches!(dtype, U8 | U16 | U32 | U64);
    ArrayType::Number(match (x.is_float(), y.is_float()) {
        (true, true) => {
            if x == F64 || y == F64 {
                F64
            } else {
                F32
            }
        }
        (true, false) => {
            if x == F32 && y.size() <= 2 {
                F32
            } else {
                F64
            }
        }
        (false, true) => return promoted(b, a),
        (false, false) if unsigned(x) == unsigned(y) => {
            if x.size() >= y.size() {
                x
            } else {
                y
            }
        }
        (false, false) => {
            let (signed, unsigned) = if unsigned(x) { (y, x) } else { (x, y) };
            match unsigned.size() {
                size if size < signed.size() => signed,
                1 => I16,
                2 => I32,
                4 => I64,
                _ => F64,
            }
        }
    })
}
