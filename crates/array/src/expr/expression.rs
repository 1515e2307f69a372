//! An expression as it was written, with its tree.

use std::str::FromStr;

use gristmill_kernel::ArrayType;

use crate::error::ArrayError;
use crate::expr::ast::Node;
use crate::expr::{check, parse};

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
