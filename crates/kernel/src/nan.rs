//! The parameter `nan`, shared by all kernels over numbers.

use crate::{KernelError, ParamDecl, ParamKind, Params};

/// The effect of a NaN among the values on the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanRule {
    /// A NaN becomes the answer, as in NumPy.
    Propagate,
    /// A NaN counts as absent.
    Skip,
    /// A NaN is an error.
    Error,
}

/// The declaration of the parameter.
pub const NAN: ParamDecl = ParamDecl {
    name: "nan",
    kind: ParamKind::Choice(&["propagate", "skip", "error"]),
    default: Some("propagate"),
    required: false,
    help: "what a NaN does: becomes the answer (as in NumPy), counts as absent, or is an error",
    example: "skip",
};

impl NanRule {
    /// The rule that a request chose.
    pub fn from_params(params: &Params) -> NanRule {
        match params.text(NAN.name) {
            "skip" => NanRule::Skip,
            "error" => NanRule::Error,
            _ => NanRule::Propagate,
        }
    }

    /// Returns an error if NaNs are errors and there is a first NaN.
    pub fn check(self, first: Option<u64>) -> Result<(), KernelError> {
        match (self, first) {
            (NanRule::Error, Some(index)) => Err(KernelError::NotANumber { index }),
            _ => Ok(()),
        }
    }
}
