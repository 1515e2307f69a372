//! The tree of an expression.

use std::str::FromStr;

use gristmill_kernel::{ArrayType, DType};

use crate::error::ArrayError;
use crate::expr::{check, parse};

/// Longest expression, in bytes.
pub const MAX_TEXT: usize = 4096;

/// Most levels of an expression, parentheses and functions.
pub const MAX_DEPTH: usize = 64;

/// An expression over one or more inputs of the same shape.
///
/// ```
/// use gristmill_array::{Expr, Values};
///
/// let expr: Expr = "where(x > 2, sqrt(x), -1)".parse()?;
/// let typed = expr.check(&[Values::F32(vec![]).dtype()])?;
/// assert_eq!(typed.eval(vec![Values::F32(vec![4.0, 1.0])]), Values::F32(vec![2.0, -1.0]));
/// let error = "x +* 2".parse::<Expr>().unwrap_err();
/// assert_eq!(error.to_string(), "expression, at character 4: a number, a name or '(' is missing here");
/// # Ok::<(), gristmill_array::ArrayError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub(crate) root: Node,
    /// Names of the inputs, in the order in which their columns are given.
    pub(crate) inputs: Vec<String>,
    text: String,
}

impl Expr {
    /// Reads an expression over inputs of these names.
    ///
    /// # Errors
    /// Returns [`ArrayError::Expression`] with the character at which the text cannot be read.
    pub fn parse(text: &str, inputs: &[&str]) -> Result<Expr, ArrayError> {
        let inputs: Vec<String> = inputs.iter().map(|name| (*name).to_owned()).collect();
        Ok(Expr { root: parse::parse(text, &inputs)?, inputs, text: text.to_owned() })
    }

    /// The text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names of the inputs.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Finds the type of every part for inputs of these types.
    ///
    /// # Errors
    /// Returns [`ArrayError::Expression`] if the number of inputs differs, if an operation does not take its types, or
    /// if a literal does not fit its type.
    pub fn check(&self, inputs: &[ArrayType]) -> Result<check::Typed, ArrayError> {
        if inputs.len() != self.inputs.len() {
            let why = format!("it is over {} inputs and {} are given", self.inputs.len(), inputs.len());
            return Err(ArrayError::Expression { at: 1, why });
        }
        check::check(&self.root, inputs)
    }
}

impl FromStr for Expr {
    type Err = ArrayError;

    /// Reads an expression over one input, `x`.
    fn from_str(text: &str) -> Result<Expr, ArrayError> {
        Expr::parse(text, &["x"])
    }
}

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
