//! The nodes of the tree of an expression.

use gristmill_kernel::{ArrayType, DType};

/// Longest expression, in bytes.
pub const MAX_TEXT: usize = 4096;

/// Most levels of an expression, parentheses and functions.
pub const MAX_DEPTH: usize = 64;

/// A part of an expression and where it is, counted in characters from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) kind: NodeKind,
}

/// The operation of a node, with its operands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeKind {
    Input(usize),
    Literal(Literal),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    Where(Box<Node>, Box<Node>, Box<Node>),
}

/// A number that takes its type from the other operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Literal {
    Bool(bool),
    Int(i128),
    Float(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Negative,
    Not,
    IsNan,
    IsFinite,
    Abs,
    Sqrt,
    Exp,
    Log,
    Log10,
    Floor,
    Ceil,
    Round,
    Cast(ArrayType),
}

impl Unary {
    /// Returns the function or the cast of a name.
    pub(crate) fn named(name: &str) -> Option<Unary> {
        Some(match name {
            "isnan" => Unary::IsNan,
            "isfinite" => Unary::IsFinite,
            "abs" => Unary::Abs,
            "sqrt" => Unary::Sqrt,
            "exp" => Unary::Exp,
            "log" => Unary::Log,
            "log10" => Unary::Log10,
            "floor" => Unary::Floor,
            "ceil" => Unary::Ceil,
            "round" => Unary::Round,
            "bool" => Unary::Cast(ArrayType::Bool),
            other => Unary::Cast(ArrayType::Number(other.parse::<DType>().ok()?)),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Minimum,
    Maximum,
}

impl Binary {
    pub(crate) const fn is_comparison(self) -> bool {
        use Binary::*;
        matches!(self, Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual)
    }
}
