//! Reductions against a plain loop over all elements.
#![allow(clippy::unwrap_used)]

use gristmill_reductionist::{Operation, Request, RequestError, reduce};
use proptest::prelude::*;

/// A chunk with its request: the shape, the axes to reduce, a slice for each axis, and the order.
#[derive(Clone, Debug)]
struct Chunk {
    shape: Vec<i64>,
    axes: Option<Vec<usize>>,
    slices: Vec<(i64, i64, i64)>,
    is_fortran: bool,
    missing: bool,
}

fn chunk() -> impl Strategy<Value = Chunk> {
    prop::collection::vec(1..6i64, 1..4).prop_flat_map(|shape| {
        let rank = shape.len();
        let slice = (-7..8i64, -7..8i64, prop_oneof![1..4i64, -3..0i64]);
        let axes = prop::option::of(prop::sample::subsequence((0..rank).collect::<Vec<_>>(), 0..=rank));
        (Just(shape), axes, prop::collection::vec(slice, rank), any::<bool>(), any::<bool>()).prop_map(
            |(shape, axes, slices, is_fortran, missing)| Chunk { shape, axes, slices, is_fortran, missing },
        )
    })
}

/// `range(*slice(start, end, step).indices(length))`, step by step.
fn positions((start, end, step): (i64, i64, i64), length: i64) -> Vec<i64> {
    let whole = |at: i64| if at < 0 { at + length } else { at };
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let (mut at, end) = (whole(start).clamp(low, high), whole(end).clamp(low, high));
    let mut found = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        found.push(at);
        at += step;
    }
    found
}

/// All places of axes with these lengths, in C order.
fn places(lengths: &[i64]) -> Vec<Vec<i64>> {
    lengths.iter().fold(vec![Vec::new()], |all, length| {
        all.into_iter().flat_map(|at| (0..*length).map(move |n| [at.clone(), vec![n]].concat())).collect()
    })
}

/// All finite values of f32 are multiples of 2^-149, so `Sum` is exact.
fn exact_sum(values: impl Iterator<Item = f64>) -> gristmill_exact::Sum {
    let mut sum = gristmill_exact::Sum::new();
    values.for_each(|x| sum.add(x));
    sum
}

/// Compares the sum of all values, and the sums of columns, with sums that are rounded once.
///
/// The sum of one of several cells is off by at most `n * 2^-80` of its largest value before it is rounded. So it may be the other
/// neighbour of an exact sum that lies as near as that to the middle between two values of f32.
fn check_sums(values: &[f32], columns: usize) {
    let rows = values.len() / columns;
    let values = &values[..rows * columns];
    let stored: Vec<u8> = values.iter().flat_map(|x| x.to_be_bytes()).collect();
    let json = format!(
        r#"{{"interface_type": "http", "url": "x", "dtype": "float32", "byte_order": "big", "shape": [{rows}, {columns}]}}"#
    );
    let got = reduce(&Request::parse(json.as_bytes()).unwrap(), Operation::Sum, &stored).unwrap();
    let expected = exact_sum(values.iter().map(|x| f64::from(*x))).exactly(1, false).to_f32();
    assert_eq!(got.bytes, expected.to_le_bytes().to_vec());
    let axis = json.replace("}", r#", "axis": 0}"#);
    let got = reduce(&Request::parse(axis.as_bytes()).unwrap(), Operation::Sum, &stored).unwrap();
    for (column, bytes) in got.bytes.chunks(4).enumerate() {
        let cell: Vec<f64> = values.iter().skip(column).step_by(columns).map(|x| f64::from(*x)).collect();
        let got = f32::from_le_bytes(bytes.try_into().unwrap());
        let expected = exact_sum(cell.iter().copied()).exactly(1, false).to_f32();
        if got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan() {
            continue;
        }
        let most = cell.iter().fold(0f64, |most, x| most.max(x.abs())) * cell.len() as f64 * 2f64.powi(-80);
        let distance =
            |from: f64| exact_sum(cell.iter().copied().chain([-from])).exactly(1, false).to_f64().abs();
        // Also cells whose sum is small because their values cancel.
        // Sums overflow as if 2^128 came after the largest value.
        let value = |x: f32| if x.is_infinite() { 2f64.powi(128).copysign(x.into()) } else { f64::from(x) };
        let (got, expected) = (value(got), value(expected));
        assert!(
            distance((got + expected) / 2.0) <= most || distance(got) <= most,
            "{got} {expected} {cell:?}"
        );
    }
}

#[test]
fn sums_near_the_middle_between_two_values_are_one_of_these() {
    let mut values = [0f32; 14];
    (values[0], values[10], values[12]) = (-3.312251e-9, 6.6227217e34, 2.4068887e36);
    check_sums(&values, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn integers_are_reduced_as_by_a_loop(chunk in chunk(), values in prop::collection::vec(-3..4i32, 216)) {
        let Chunk { shape, axes, slices, is_fortran, missing } = chunk;
        let json = format!(
            r#"{{"interface_type": "http", "url": "x", "dtype": "int32", "shape": {shape:?}, "selection": {slices:?},
                "order": "{}"{}{}}}"#,
            if is_fortran { "F" } else { "C" },
            axes.as_ref().map_or_else(String::new, |axes| format!(r#", "axis": {axes:?}"#)),
            if missing { r#", "missing": {"missing_values": [2, -1]}"# } else { "" },
        ).replace('(', "[").replace(')', "]");
        let request = Request::parse(json.as_bytes()).unwrap();
        let length = shape.iter().product::<i64>() as usize;
        let stored: Vec<u8> = values[..length].iter().flat_map(|x| x.to_le_bytes()).collect();
        let value = |at: &[i64]| {
            let axes: Vec<usize> =
                if is_fortran { (0..shape.len()).rev().collect() } else { (0..shape.len()).collect() };
            values[axes.iter().fold(0, |n, axis| n * shape[*axis] + at[*axis]) as usize]
        };
        let chosen: Vec<Vec<i64>> = slices.iter().zip(&shape).map(|(slice, length)| positions(*slice, *length)).collect();
        let lengths: Vec<i64> = chosen.iter().map(|positions| positions.len() as i64).collect();
        let reduced = axes.clone().unwrap_or_else(|| (0..shape.len()).collect());
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !reduced.contains(axis)).collect();
        let kept_lengths: Vec<i64> = kept.iter().map(|axis| lengths[*axis]).collect();
        let mut order = places(&kept_lengths);
        if is_fortran && reduced.is_empty() {
            order.sort_by(|one, other| one.iter().rev().cmp(other.iter().rev()));
        }
        let (mut sums, mut least, mut most, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for cell in order {
            let of_cell = places(&lengths).into_iter().filter(|at| kept.iter().zip(&cell).all(|(axis, n)| at[*axis] == *n));
            let elements: Vec<i32> = of_cell
                .map(|at| value(&at.iter().zip(&chosen).map(|(n, positions)| positions[*n as usize]).collect::<Vec<_>>()))
                .filter(|x| !(missing && [2, -1].contains(x)))
                .collect();
            sums.push(elements.iter().sum::<i32>());
            least.push(elements.iter().copied().min().unwrap_or(i32::MAX));
            most.push(elements.iter().copied().max().unwrap_or(i32::MIN));
            counts.push(elements.len() as i64);
        }
        let bytes = |values: &[i32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let shape: Vec<u64> = kept_lengths.iter().map(|length| *length as u64).collect();
        for (operation, expected) in [
            (Operation::Sum, bytes(&sums)),
            (Operation::Min, bytes(&least)),
            (Operation::Max, bytes(&most)),
            (Operation::Count, counts.iter().flat_map(|x| x.to_le_bytes()).collect()),
        ] {
            let got = reduce(&request, operation, &stored).unwrap();
            prop_assert_eq!((&got.bytes, &got.shape, &got.count), (&expected, &shape, &counts), "{:?}", operation);
        }
        let mut all = places(&lengths);
        if is_fortran {
            all.sort_by(|one, other| one.iter().rev().cmp(other.iter().rev()));
        }
        let selected: Vec<i32> = all
            .iter()
            .map(|at| value(&at.iter().zip(&chosen).map(|(n, positions)| positions[*n as usize]).collect::<Vec<_>>()))
            .collect();
        let got = reduce(&request, Operation::Select, &stored).unwrap();
        prop_assert_eq!(got.bytes, bytes(&selected));
        prop_assert_eq!(got.shape, lengths.iter().map(|length| *length as u64).collect::<Vec<_>>());
        let present = selected.iter().filter(|x| !(missing && [2, -1].contains(x))).count();
        prop_assert_eq!(got.count, vec![present as i64]);
    }

    #[test]
    fn sums_of_floats_are_rounded_once(values in prop::collection::vec(any::<f32>(), 3..60), columns in 1..4usize) {
        check_sums(&values, columns);
    }

    #[test]
    fn bodies_and_bytes_from_outside_never_panic(body in ".{0,200}", stored in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Request::parse(body.as_bytes()).is_err());
        for json in [
            r#"{"interface_type": "s3", "url": "x", "dtype": "float64", "shape": [3, 2], "compression": {"id": "zlib"}}"#,
            r#"{"interface_type": "s3", "url": "x", "dtype": "uint32", "filters": [{"id": "shuffle", "element_size": 4}]}"#,
            r#"{"interface_type": "s3", "url": "x", "dtype": "int64", "shape": [5], "selection": [[-9, 9, -2]]}"#,
        ] {
            let _ = reduce(&Request::parse(json.as_bytes()).unwrap(), Operation::Max, &stored);
        }
    }
}

#[test]
fn requests_that_do_not_fit_together_say_why() {
    for (fields, why) in [
        (r#""dtype": "int16""#, "int16"),
        (r#""dtype": "int32", "extra": 1"#, "extra"),
        (r#""dtype": "int32", "shape": []"#, "1 to 32 axes"),
        (r#""dtype": "int32", "shape": [2, 0]"#, "at least 1"),
        (r#""dtype": "int32", "shape": [2], "size": 7"#, "that of the shape, 8"),
        (r#""dtype": "int32", "size": 7"#, "a multiple of 4"),
        (r#""dtype": "int32", "size": 0"#, "at least 1"),
        (r#""dtype": "int32", "shape": [99999, 99999, 99999]"#, "ask for parts"),
        (r#""dtype": "int32", "shape": [9223372036854775807, 9223372036854775807]"#, "ask for parts"),
        (r#""dtype": "int32", "axis": 0"#, "needs a shape"),
        (r#""dtype": "int32", "shape": [2, 3], "axis": 2"#, "ascending"),
        (r#""dtype": "int32", "shape": [2, 3], "axis": [1, 0]"#, "ascending"),
        (r#""dtype": "int32", "shape": [2, 3], "axis": [1, 1]"#, "ascending"),
        (r#""dtype": "int32", "selection": [[0, 1, 1]]"#, "needs a shape"),
        (r#""dtype": "int32", "shape": [2], "selection": [[0, 1, 0]]"#, "must not be 0"),
        (r#""dtype": "int32", "shape": [2], "selection": [[0, 1]]"#, "invalid length"),
        (r#""dtype": "int32", "shape": [2, 3], "selection": [[0, 1, 1]]"#, "a slice for each axis"),
        (r#""dtype": "int32", "compression": {"id": "zlib"}"#, "needs a shape"),
        (r#""dtype": "int32", "shape": [2], "compression": {"id": "lzma"}"#, "lzma"),
        (
            r#""dtype": "int32", "shape": [2], "filters": [{"id": "shuffle", "element_size": 0}]"#,
            "at least 1",
        ),
        (r#""dtype": "uint32", "missing": {"missing_value": -1}"#, "-1 is no value"),
        (r#""dtype": "int32", "missing": {"missing_value": 2147483648}"#, "is no value"),
        (r#""dtype": "float32", "missing": {"missing_value": 1e39}"#, "is no value"),
        (r#""dtype": "int32", "missing": {"valid_range": [2, 1]}"#, "below its end"),
        (r#""dtype": "int32", "missing": {"missing_value": 1, "valid_min": 2}"#, "not valid"),
        (r#""dtype": "int32", "order": "K""#, "K"),
    ] {
        let body = format!(r#"{{"interface_type": "s3", "url": "x", {fields}}}"#);
        let error = Request::parse(body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{fields}: {error}");
    }
    assert!(matches!(Operation::named("mean"), Err(RequestError::Operation(_))));
}

#[test]
fn nans_and_infinities_are_those_of_numpy() {
    let request = |more: &str| {
        let json =
            format!(r#"{{"interface_type": "s3", "url": "x", "dtype": "float64", "shape": [4]{more}}}"#);
        Request::parse(json.as_bytes()).unwrap()
    };
    let stored: Vec<u8> =
        [1.0, f64::NAN, f64::NEG_INFINITY, 3.0].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
    let value = |request: &Request, operation| {
        let got = reduce(request, operation, &stored).unwrap();
        (f64::from_le_bytes(got.bytes.try_into().unwrap()), got.count)
    };
    for operation in [Operation::Sum, Operation::Min, Operation::Max] {
        let (x, count) = value(&request(""), operation);
        assert!(x.is_nan() && count == [4], "{operation:?} {x}");
    }
    let valid = request(r#", "missing": {"valid_min": 0}"#);
    assert!(value(&valid, Operation::Max).0.is_nan());
    assert_eq!(value(&valid, Operation::Max).1, [3], "a NaN is not missing");
    for (sign, operation) in [("-inf", Operation::Max), ("inf", Operation::Min)] {
        let x: f64 = sign.parse().unwrap();
        let infinities: Vec<u8> = [x; 4].iter().flat_map(|x| x.to_le_bytes()).collect();
        for more in ["", r#", "axis": 0"#] {
            let got = reduce(&request(more), operation, &infinities).unwrap();
            assert_eq!((got.bytes, got.count), (x.to_le_bytes().to_vec(), vec![4]), "{sign} {more}");
        }
    }
    let first = request(r#", "selection": [[0, 4, 3]]"#);
    assert_eq!(value(&first, Operation::Max), (3.0, vec![2]));
    assert_eq!(value(&first, Operation::Sum), (4.0, vec![2]));
}
