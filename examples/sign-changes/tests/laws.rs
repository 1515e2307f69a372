//! The kernel keeps the laws, and gives the answers of a naive program.

use gristmill_conformance::{Case, check};
use gristmill_kernel::{DType, Input, KernelError, Params, Value};
use sign_changes::DECLARATION;

const F64: Input = Input::elements(DType::F64);

/// The kernel for some values and one parameter.
fn case(values: &[f64], zero: &str) -> Result<Case, KernelError> {
    let given = [("zero".to_owned(), zero.to_owned())];
    let params = Params::check(DECLARATION.name, DECLARATION.params, &given)?;
    let data = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    Ok(Case::new((DECLARATION.bind)(&params, &F64)?, F64, data))
}

/// The same number in the simplest way: from all values at once.
fn naive(data: &[u8], zero: f64) -> Value {
    let values = data.as_chunks().0.iter().map(|x| f64::from_le_bytes(*x));
    let negative: Vec<bool> = values.filter(|x| x.abs() > zero).map(|x| x < 0.0).collect();
    let changes = negative.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
    Value::Map(vec![("changes", changes.into()), ("count", (negative.len() as u64).into())])
}

#[test]
fn it_keeps_the_laws_and_is_right() {
    let waves: Vec<f64> = (0..300).map(|i| f64::from(i).sin()).collect();
    for values in [&waves[..], &[1.0, -0.0, f64::NAN, -1.0, 0.0, -2.0, f64::INFINITY], &[0.0; 9], &[]] {
        for zero in ["0", "0.5", "inf"] {
            let bound = zero.parse().unwrap();
            let case = case(values, zero).unwrap().with_reference(move |data| naive(data, bound));
            // 50 random cases for each law, from seed 1.
            check(&case, 1, 50).unwrap();
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for zero in ["-1", "nan", "some"] {
        let error = case(&[1.0], zero).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("at least 0")), "{zero}");
    }
    assert!((DECLARATION.check_input(&Input::lines())).is_err());
}
