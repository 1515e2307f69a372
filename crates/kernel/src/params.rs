//! Parameters of kernels. A kernel declares them once. Checks, lists and documentation use the declaration.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::KernelError;

/// The declaration of one parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParamDecl {
    /// Name, as in `--param name=value`.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: ParamKind,
    /// The value if none is given. With `None` and `required: false` the parameter is absent then.
    pub default: Option<&'static str>,
    /// Whether a request must give it.
    pub required: bool,
    /// Its meaning, in one line.
    pub help: &'static str,
    /// A useful value, for messages and documentation.
    pub example: &'static str,
}

impl ParamDecl {
    /// An optional parameter that is text.
    pub const fn text(
        name: &'static str,
        default: Option<&'static str>,
        help: &'static str,
        example: &'static str,
    ) -> ParamDecl {
        ParamDecl { name, kind: ParamKind::Text, default, required: false, help, example }
    }
}

/// The values that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// `true` or `false`.
    Bool,
    /// An integer within bounds, both included.
    Int {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Text that the kernel checks.
    Text,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// One of a few words, or a file. The request contains the bytes of the file: see [`inline_files`].
    WordOrFile(&'static [&'static str]),
}

/// Most bytes of a file given as a parameter.
pub const MAX_FILE_PARAM: usize = 8 << 20;

/// The prefix of a value that contains the bytes of a file.
const INLINE: &str = "data:";

/// Replaces names of files by their bytes, for parameters that may be files. A kernel may run on a machine without the
/// files of the user. `read` gets a name.
///
/// # Errors
/// The first error of `read` is returned. Names of files before it are replaced already.
pub fn inline_files<E>(
    declared: &[ParamDecl],
    params: &mut [(String, String)],
    mut read: impl FnMut(&str) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    for (name, value) in params {
        let kind = declared.iter().find(|decl| decl.name == *name).map(|decl| decl.kind);
        if let Some(ParamKind::WordOrFile(words)) = kind
            && !words.contains(&value.as_str())
            && !value.starts_with(INLINE)
        {
            *value = format!("{INLINE}{}", STANDARD_NO_PAD.encode(read(value)?));
        }
    }
    Ok(())
}

impl ParamKind {
    /// The text that describes it to users.
    pub fn describe(&self) -> String {
        match self {
            ParamKind::Bool => "true|false".into(),
            ParamKind::Int { min, max } => format!("integer {min}..={max}"),
            ParamKind::Text => "text".into(),
            ParamKind::Choice(words) => words.join("|"),
            ParamKind::WordOrFile(words) => format!("{}|FILE", words.join("|")),
        }
    }

    fn check(&self, value: &str) -> Result<(), String> {
        match self {
            ParamKind::Bool => match value {
                "true" | "false" => Ok(()),
                _ => Err("it must be true or false".into()),
            },
            ParamKind::Int { min, max } => match value.parse::<u64>() {
                Ok(n) if (*min..=*max).contains(&n) => Ok(()),
                _ => Err(format!("it must be an integer from {min} to {max}")),
            },
            ParamKind::Text => Ok(()),
            ParamKind::Choice(words) if words.contains(&value) => Ok(()),
            ParamKind::Choice(words) => Err(format!("it must be one of {}", words.join(", "))),
            ParamKind::WordOrFile(words) if words.contains(&value) => Ok(()),
            ParamKind::WordOrFile(words) => match value.strip_prefix(INLINE).map(str::len) {
                Some(length) if length / 4 * 3 <= MAX_FILE_PARAM => Ok(()),
                Some(_) => {
                    Err(format!("a file given as a parameter may have at most {MAX_FILE_PARAM} bytes"))
                }
                None => Err(format!(
                    "it must be one of {}, or a file's bytes as '{INLINE}' and base64",
                    words.join(", ")
                )),
            },
        }
    }
}

/// The parameters of one request, after they were checked against their declarations.
#[derive(Clone, Debug)]
pub struct Params {
    values: Vec<(&'static ParamDecl, Option<String>)>,
}

impl Params {
    /// Checks the pairs (name, value) in `given` against the declarations of `kernel`.
    ///
    /// # Errors
    /// The error is [`KernelError::UnknownParam`] for a name that is not declared, [`KernelError::RepeatedParam`] for a
    /// name that is given twice, [`KernelError::BadParam`] for a value that its declaration does not allow, and
    /// [`KernelError::MissingParam`] if a required parameter is not given.
    pub fn check(
        kernel: &'static str,
        declared: &'static [ParamDecl],
        given: &[(String, String)],
    ) -> Result<Params, KernelError> {
        let mut values: Vec<(&'static ParamDecl, Option<String>)> =
            declared.iter().map(|decl| (decl, None)).collect();
        for (name, value) in given {
            let Some((decl, slot)) = values.iter_mut().find(|(decl, _)| decl.name == name) else {
                let names: Vec<_> = declared.iter().map(|decl| decl.name).collect();
                let known = if names.is_empty() {
                    "it has none".to_owned()
                } else {
                    format!("it has: {}", names.join(", "))
                };
                return Err(KernelError::UnknownParam { kernel, name: name.clone(), known });
            };
            if slot.is_some() {
                return Err(KernelError::RepeatedParam { name: name.clone() });
            }
            let shown = if value.starts_with(INLINE) { "FILE" } else { value };
            decl.kind.check(value).map_err(|why| bad(name, shown, why))?;
            *slot = Some(value.clone());
        }
        for (decl, slot) in &mut values {
            if slot.is_none() {
                if decl.required {
                    return Err(KernelError::MissingParam {
                        kernel,
                        name: decl.name,
                        help: decl.help,
                        example: decl.example,
                    });
                }
                *slot = decl.default.map(str::to_owned);
            }
        }
        Ok(Params { values })
    }

    /// The value of a parameter, if it was given or has a default.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(decl, _)| decl.name == name).and_then(|(_, value)| value.as_deref())
    }

    /// The text of a parameter that is required or has a default; empty otherwise.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    /// The value of a boolean; false if it is absent.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// The value of a parameter that is declared as [`ParamKind::Int`].
    pub fn int(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|value| value.parse().ok())
    }

    /// The bytes of a file that was given as a parameter.
    ///
    /// # Errors
    /// The error is [`KernelError::BadParam`] if the base64 of the file cannot be decoded.
    pub fn file(&self, name: &'static str) -> Result<Vec<u8>, KernelError> {
        let text = self.text(name).strip_prefix(INLINE).unwrap_or("");
        STANDARD_NO_PAD
            .decode(text)
            .map_err(|error| self.refuse(name, format!("its base64 is damaged: {error}")))
    }

    /// The error for a value that the kernel refuses.
    pub fn refuse(&self, name: &'static str, why: impl Into<String>) -> KernelError {
        let text = self.text(name);
        bad(name, if text.starts_with(INLINE) { "FILE" } else { text }, why)
    }
}

fn bad(name: &str, value: &str, why: impl Into<String>) -> KernelError {
    KernelError::BadParam { name: name.to_owned(), value: value.to_owned(), why: why.into() }
}
