//! Expressions compared with the results of NumPy 2. `tests/test_array_expressions.py` has more of them.

use gristmill_kernel::{ArrayType, DType};

use super::*;
use crate::error::ArrayError;
use crate::values::Values;

fn eval(text: &str, x: Values) -> Values {
    let expr: Expr = text.parse().unwrap();
    expr.check(&[x.dtype()]).unwrap().eval(vec![x])
}

fn refused(text: &str, dtype: DType) -> (usize, String) {
    let error = text.parse::<Expr>().and_then(|expr| expr.check(&[ArrayType::Number(dtype)])).unwrap_err();
    match error {
        ArrayError::Expression { at, why } => (at, why),
        other => panic!("{other}"),
    }
}

#[test]
fn precedence_is_that_of_python() {
    let x = || Values::F64(vec![3.0]);
    assert_eq!(eval("2 + x * 4", x()), Values::F64(vec![14.0]));
    assert_eq!(eval("-x ** 2", x()), Values::F64(vec![-9.0]));
    assert_eq!(eval("2 ** x ** 2", x()), Values::F64(vec![512.0]));
    assert_eq!(eval("x ** -1 * 3", x()), Values::F64(vec![1.0]));
    assert_eq!(eval("10 - x - 2", x()), Values::F64(vec![5.0]));
    assert_eq!(eval("-7 // x + -7 % x", x()), Values::F64(vec![-1.0]));
    assert_eq!(eval("x > 1 & x < 2 | ~(x == 4)", x()), Values::Bool(vec![true]));
}

#[test]
fn literals_are_weak() {
    assert_eq!(eval("x * 2.5", Values::F32(vec![2.0])), Values::F32(vec![5.0]));
    assert_eq!(eval("x + 2 * 3", Values::I8(vec![1])), Values::I8(vec![7]));
    assert_eq!(eval("x + 0.5", Values::I8(vec![1])), Values::F64(vec![1.5]));
    assert_eq!(eval("x + f32(1)", Values::I16(vec![1])), Values::F32(vec![2.0]));
    assert_eq!(eval("x + f32(1)", Values::I32(vec![1])), Values::F64(vec![2.0]));
    assert_eq!(eval("x / 2", Values::I32(vec![1])), Values::F64(vec![0.5]));
    assert_eq!(eval("x + i8(1)", Values::U8(vec![1])), Values::I16(vec![2]));
    assert_eq!(eval("x + i64(1)", Values::U64(vec![1])), Values::F64(vec![2.0]));
}

#[test]
fn integers_wrap_and_divide_downwards() {
    assert_eq!(eval("x + 1", Values::I8(vec![127])), Values::I8(vec![-128]));
    assert_eq!(eval("-x", Values::U8(vec![1])), Values::U8(vec![255]));
    assert_eq!(eval("x ** 2", Values::I32(vec![46341])), Values::I32(vec![-2147479015]));
    assert_eq!(eval("x // 0 + x % 0", Values::I32(vec![5])), Values::I32(vec![0]));
    assert_eq!(eval("x // -1", Values::I8(vec![-128])), Values::I8(vec![-128]));
    assert_eq!(eval("x % -3", Values::I8(vec![7])), Values::I8(vec![-2]));
    assert_eq!(eval("abs(x)", Values::I8(vec![-128])), Values::I8(vec![-128]));
}

#[test]
fn comparisons_of_integers_are_exact() {
    let big = (1i64 << 53) + 1;
    assert_eq!(eval("x == u64(9007199254740992)", Values::I64(vec![big])), Values::Bool(vec![false]));
    assert_eq!(eval("x < 300", Values::U8(vec![255])), Values::Bool(vec![true]));
    assert_eq!(eval("x > -1", Values::U8(vec![0])), Values::Bool(vec![true]));
}

#[test]
fn casts_do_not_depend_on_the_processor() {
    let x = || Values::F64(vec![f64::NAN, 1e300, -1e300, 2.9, -2.9]);
    assert_eq!(eval("i16(x)", x()), Values::I16(vec![0, i16::MAX, i16::MIN, 2, -2]));
    assert_eq!(eval("u8(x)", x()), Values::U8(vec![0, 255, 0, 2, 0]));
    assert_eq!(eval("bool(x)", x()), Values::Bool(vec![true; 5]));
    assert_eq!(eval("u8(x)", Values::I16(vec![-1, 300])), Values::U8(vec![255, 44]));
    assert_eq!(eval("round(x)", Values::F64(vec![0.5, 1.5, -2.5])), Values::F64(vec![0.0, 2.0, -2.0]));
}

#[test]
fn nan_wins_and_is_found() {
    let x = || Values::F32(vec![f32::NAN, 1.0, f32::INFINITY]);
    assert_eq!(eval("isnan(x)", x()), Values::Bool(vec![true, false, false]));
    assert_eq!(eval("isfinite(x)", x()), Values::Bool(vec![false, true, false]));
    let Values::F32(clipped) = eval("clip(x, 0, 0.5)", x()) else { panic!() };
    assert!(clipped[0].is_nan() && clipped[1..] == [0.5, 0.5]);
    let Values::F32(least) = eval("min(2, x)", x()) else { panic!() };
    assert!(least[0].is_nan() && least[1..] == [1.0, 2.0]);
}

#[test]
fn errors_say_where() {
    assert_eq!(refused("x + ", DType::F64).0, 5);
    assert_eq!(refused("(x", DType::F64), (3, "')' is missing here".into()));
    assert_eq!(refused("x y", DType::F64), (3, "'y' does not belong here".into()));
    assert_eq!(refused("1 < x < 2", DType::F64).0, 7);
    assert_eq!(refused("sin(x)", DType::F64), (1, "there is no function 'sin'".into()));
    assert_eq!(refused("where(x, 1)", DType::F64).0, 1);
    assert_eq!(refused("where(x, 1, 2)", DType::F64).0, 1);
    assert_eq!(refused("x + 300", DType::U8).0, 3);
    assert_eq!(refused("x & 1", DType::U8).0, 3);
    assert_eq!(refused("x ** -1", DType::I32).0, 3);
    assert_eq!(refused("-(x > 1)", DType::I32).0, 1);
    assert_eq!(refused("1.2.3", DType::I32), (1, "'1.2.3' is not a number".into()));
    let deep = "(".repeat(100) + "x" + &")".repeat(100);
    assert!(refused(&deep, DType::F64).1.contains("nested"));
    assert!(refused(&"x+".repeat(3000), DType::F64).1.contains("longer"));
    assert!(refused(&("x+".repeat(1500) + "x"), DType::F64).1.contains("parts"));
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[x0-9+*/%()<>=&|~.,e -]{0,40}|[a-z(),x]{0,30}") {
        if let Ok(expr) = text.parse::<Expr>() {
            for dtype in [DType::I8, DType::U64, DType::F32] {
                if let Ok(typed) = expr.check(&[ArrayType::Number(dtype)]) {
                    let x = crate::Meaning::plain(dtype).decode(&[255; 64]).unwrap();
                    let length = x.len();
                    proptest::prop_assert_eq!(typed.eval(vec![x]).len(), length);
                }
            }
        }
    }
}
