//! Tests of lines across blocks and pieces.

use super::*;
use crate::{NoRows, catalog, saved};

fn count(split: &[&str], whole: &str, max: u64) -> Result<Next, KernelError> {
    let kernel = catalog::bind("count", &[], &crate::Input::lines())?;
    let kernel = Lines::new(kernel, max);
    let ctx = Ctx::first(0..whole.len() as u64);
    let mut at = 0;
    let mut first: Option<Box<dyn Fold>> = None;
    for piece in split {
        let mut fold = kernel.begin(&ctx)?;
        fold.update(&Block::new(at, piece.len() as u64, piece.as_bytes()), &mut NoRows)?;
        at += piece.len() as u64;
        match &mut first {
            None => first = Some(fold),
            Some(first) => first.merge(&saved(&*fold), &mut NoRows)?,
        }
    }
    kernel.advance(&ctx, &saved(&*first.unwrap()))
}

fn counted(n: u64) -> Next {
    Next::Done(crate::Value::Map(vec![("count", n.into())]))
}

#[test]
fn a_line_in_three_pieces_is_one_line() {
    assert_eq!(count(&["ab", "c", "d\nx"], "abcd\nx", 100), Ok(counted(2)));
    assert_eq!(count(&["a", "b", "c"], "abc", 100), Ok(counted(1)));
    assert_eq!(count(&["\n", "\n"], "\n\n", 100), Ok(counted(2)));
}

#[test]
fn a_line_is_too_long_wherever_the_text_is_cut() {
    let text = "a\nbcd\nefghijk\nl\n\nmnopqr";
    for max in 0..10 {
        for cut in 0..text.len() {
            for again in cut..text.len() {
                let pieces = [&text[..cut], &text[cut..again], &text[again..]];
                let pieces: Vec<_> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
                let counted_lines = count(&pieces, text, max);
                if max < 8 {
                    let refused = matches!(counted_lines, Err(KernelError::LineTooLong { .. }));
                    assert!(refused, "{pieces:?}, at most {max}: {counted_lines:?}");
                } else {
                    assert_eq!(counted_lines, Ok(counted(6)), "{pieces:?}, at most {max}");
                }
            }
        }
    }
}

#[test]
fn a_line_over_the_bound_is_an_error_that_names_it() {
    let error = count(&["a\nbcd", "efgh\n"], "a\nbcdefgh\n", 5).unwrap_err();
    assert_eq!(error, KernelError::LineTooLong { offset: 2, max: 5 });
}
