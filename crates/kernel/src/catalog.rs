//! The built-in kernels by name, their declarations, and how one is bound to parameters and an input.

use std::sync::Arc;

use crate::kernels;
pub use crate::other_names::kernels_for_other_name;
use crate::{DType, Input, Kernel, KernelError, Numerics, ParamDecl, Params, RecordRule};

/// The kind of input that a kernel accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Elements of a type, `--type`.
    Elements,
    /// Fixed-size records of text or bytes, `--record` without `--type`.
    Records,
    /// Lines, the kind of a file without `--type` and `--record`.
    Lines,
}

/// Makes a kernel from checked parameters and an accepted input.
pub type Bind = fn(&Params, &Input) -> Result<Arc<dyn Kernel>, KernelError>;

/// The description of a kernel that is not bound yet.
#[derive(Debug)]
pub struct Declaration {
    /// Name on the command line and on the wire.
    pub name: &'static str,
    /// The result of the kernel, in one line.
    pub summary: &'static str,
    /// Definitions that a user must know: ties, empty input, NaN, rounding.
    pub details: &'static str,
    /// Kinds of input that it accepts.
    pub accepts: &'static [Accepts],
    /// Parameters that it takes.
    pub params: &'static [ParamDecl],
    /// Names and meaning of the values in its answer.
    pub result: &'static [(&'static str, &'static str)],
    /// The meaning of its rows; `None` if it gives no rows.
    pub rows: Option<&'static str>,
    /// The promise about the bits of the answer.
    pub numerics: Numerics,
    /// Makes the kernel of checked parameters and an accepted input.
    pub bind: Bind,
}

/// Every built-in kernel, sorted by name.
pub const BUILT_IN: &[&Declaration] = &[
    &kernels::count::DECLARATION,
    &kernels::first::FIRST,
    &kernels::gaussian::DECLARATION,
    &kernels::grep::DECLARATION,
    &kernels::histogram::DECLARATION,
    &kernels::kmeans::DECLARATION,
    &kernels::first::LAST,
    &kernels::lookup::DECLARATION,
    &kernels::minmax::MAX,
    &kernels::mean::DECLARATION,
    &kernels::quantile::MEDIAN,
    &kernels::minmax::MIN,
    &kernels::minmax::MINMAX,
    &kernels::quantile::QUANTILE,
    &kernels::sum::DECLARATION,
    &kernels::top::DECLARATION,
    &kernels::unique::DECLARATION,
    &kernels::var::DECLARATION,
    &kernels::wc::DECLARATION,
];

/// The built-in kernel of this name.
///
/// # Errors
/// The error is [`KernelError::UnknownKernel`] if no built-in kernel has this name.
pub fn find(name: &str) -> Result<&'static Declaration, KernelError> {
    BUILT_IN.iter().copied().find(|decl| decl.name == name).ok_or_else(|| {
        let near = BUILT_IN.iter().map(|decl| (distance(name, decl.name), decl.name)).min();
        let hint = match (kernels_for_other_name(name), near) {
            (Some(kernels), _) => format!("did you mean {kernels}?"),
            (None, Some((distance, near))) if distance <= 2 => format!("did you mean '{near}'?"),
            _ => "'gristmill kernels' lists them".to_owned(),
        };
        KernelError::UnknownKernel { name: name.to_owned(), hint }
    })
}

/// The kernel `name` with its parameters checked and bound, for records of `input`.
///
/// # Errors
/// The errors are those of [`find`], [`Declaration::check_input`] and [`Params::check`]. The kernel itself may refuse a
/// value with [`KernelError::BadParam`], or the input with [`KernelError::WrongInput`].
pub fn bind(name: &str, params: &[(String, String)], input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    let decl = find(name)?;
    decl.check_input(input)?;
    let params = Params::check(decl.name, decl.params, params)?;
    (decl.bind)(&params, input)
}

impl Declaration {
    /// Checks that the kernel accepts the input.
    ///
    /// # Errors
    /// The error is [`KernelError::WrongInput`] if it does not. It says what to give instead.
    pub fn check_input(&self, input: &Input) -> Result<(), KernelError> {
        let given = match input {
            Input { element: Some(_), .. } => Accepts::Elements,
            Input { record: RecordRule::Fixed(_), .. } => Accepts::Records,
            Input { record: RecordRule::Lines, .. } => Accepts::Lines,
        };
        if self.accepts.contains(&given) {
            return Ok(());
        }
        let why = if self.accepts == [Accepts::Elements] {
            let types: Vec<_> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            format!("works on numbers: say which with --type {}", types.join("|"))
        } else if self.accepts.contains(&Accepts::Records) {
            "works on text: leave --type out, and give --record for records of a fixed size".to_owned()
        } else {
            "works on lines of text: leave --type and --record out".to_owned()
        };
        Err(KernelError::WrongInput { kernel: self.name, why })
    }
}

/// Number of typing mistakes between two short names. Two letters in the wrong order are one mistake.
fn distance(a: &str, b: &str) -> usize {
    let short: String = a.chars().take(64).collect();
    strsim::osa_distance(&short, b)
}
