//! Folds over pieces of objects: the same answers as one fold, in any number of calls, and messages that are refused.
#![allow(clippy::unwrap_used)] // in functions that tests share
#![allow(clippy::single_range_in_vec_init)] // lists of ranges are meant

use std::ops::Range;

use gristmill_kernel::{ByteOrder, DType, Input, Kernel, Next, NoRows, Value, catalog};
use gristmill_object_fold::{
    Binding, FoldError, FoldOrder, Folded, MAX_POSITION, Span, check_foldable, fold_object, split_spans,
};
use proptest::prelude::*;

/// Kernels over numbers, and their parameters.
const OF_NUMBERS: [(&str, &[(&str, &str)]); 11] = [
    ("count", &[]),
    ("histogram", &[("range", "0:100"), ("bins", "7")]),
    ("max", &[]),
    ("mean", &[]),
    ("median", &[]),
    ("min", &[]),
    ("minmax", &[]),
    ("sum", &[]),
    ("top", &[("k", "3")]),
    ("unique", &[]),
    ("var", &[]),
];
/// Kernels over lines.
const OF_LINES: [&str; 2] = ["count", "wc"];

fn binding(kernel: &str, params: &[(&str, &str)], input: Input, order: ByteOrder) -> Binding {
    let params: Vec<_> =
        params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Binding::new(kernel, &params, input, order)
}

fn order_of(binding: Binding, extent: Range<u64>) -> FoldOrder {
    FoldOrder { binding, round: 0, shared: [].into(), last: false, extent }
}

/// Asks for spans of an object, as a client does: encoded, and again until everything was folded. `blocks`: how many blocks a call folds.
fn fold_all(order: &FoldOrder, object: &[u8], spans: &[Span], blocks: usize) -> Folded {
    let record = check_foldable(&order.binding.bind().unwrap().spec(), false).unwrap();
    let mut all = Folded::default();
    let mut left = spans.to_vec();
    while !left.is_empty() {
        let (got, asked) = FoldOrder::decode(&order.encode(&left).unwrap()).unwrap();
        assert_eq!((&got, &asked), (order, &left));
        let mut folded_blocks = 0;
        let mut read = |offset: u64, length: usize| {
            let bytes = object.get(offset as usize..).unwrap_or(&[]);
            Some(bytes[..bytes.len().min(length)].to_vec())
        };
        let mut out_of_time = || {
            folded_blocks += 1;
            folded_blocks >= blocks
        };
        let folded = fold_object(&got, &asked, &mut read, &mut out_of_time).unwrap();
        let folded = Folded::decode(&folded.encode().unwrap(), &left).unwrap();
        assert!(folded.count() > 0, "a call folds at least one block");
        let covered: Vec<Range<u64>> = folded.states.iter().flat_map(|state| state.records.clone()).collect();
        let rest = left.iter().flat_map(|span| {
            let done = covered
                .iter()
                .filter(|range| range.start < span.records.end && range.end > span.records.start);
            let at = done.map(|range| range.end.min(span.records.end)).max().unwrap_or(span.records.start);
            let offset = span.offset + (at - span.records.start) * record;
            (at < span.records.end).then_some(Span { offset, records: at..span.records.end })
        });
        left = rest.collect();
        assert_eq!(folded.out_of_time, !left.is_empty());
        all.add(folded);
    }
    all
}

/// The answer of all states together, or the broadcast to the next pass.
fn answer(kernel: &dyn Kernel, order: &FoldOrder, mut folded: Folded) -> Next {
    folded.states.sort_by_key(|state| state.records.first().map(|range| range.start));
    let ctx = order.ctx();
    let mut whole = kernel.begin(&ctx).unwrap();
    for state in &folded.states {
        whole.merge(&state.state, &mut NoRows).unwrap();
    }
    kernel.advance(&ctx, &gristmill_kernel::saved(&*whole)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_answer_does_not_depend_on_pieces_and_calls(
        count in 1_u64..40_000,
        cut in 0.0_f64..1.0,
        piece in 1_000_u64..200_000,
        blocks in 1_usize..4,
        big in any::<bool>(),
        which in 0..OF_NUMBERS.len(),
    ) {
        let values = (0..count).map(|n| (n * 7919 % 997) as f64 / 8.0 - 10.0);
        let object: Vec<u8> = values.flat_map(|x| if big { x.to_be_bytes() } else { x.to_le_bytes() }).collect();
        let byte_order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let (name, params) = OF_NUMBERS[which];
        let order = order_of(binding(name, params, Input::elements(DType::F64), byte_order), 0..count);
        let kernel = order.binding.bind().unwrap();
        let middle = (count as f64 * cut) as u64;
        let halves = [0..middle, middle..count].into_iter().filter(|records| !records.is_empty());
        let spans: Vec<_> = halves.map(|records| Span { offset: records.start * 8, records }).collect();
        let one = fold_all(&order, &object, &[Span { offset: 0, records: 0..count }], usize::MAX);
        let split = split_spans(&spans, 8, piece);
        let mut all = Folded::default();
        for (index, spans) in &split.pieces {
            let bytes = &object[(index * piece) as usize..object.len().min(((index + 1) * piece) as usize)];
            all.add(fold_all(&order, bytes, spans, blocks));
        }
        // Records in two pieces are folded by the node.
        for records in split.across {
            let offset = records.start * 8;
            all.add(fold_all(&order, &object, &[Span { offset, records }], 1));
        }
        prop_assert_eq!(all.count(), count);
        prop_assert_eq!(answer(&*kernel, &order, all), answer(&*kernel, &order, one));
    }

    #[test]
    fn lines_are_folded_in_any_pieces(text in "[ab \n]{1,300}", piece in 1_u64..90, which in 0..OF_LINES.len()) {
        let length = text.len() as u64;
        let order = order_of(binding(OF_LINES[which], &[], Input::lines(), ByteOrder::Little), 0..length);
        let kernel = order.binding.bind().unwrap();
        let all = [Span { offset: 0, records: 0..length }];
        let one = fold_all(&order, text.as_bytes(), &all, usize::MAX);
        let mut folded = Folded::default();
        for (index, spans) in split_spans(&all, 1, piece).pieces {
            let bytes = &text.as_bytes()[(index * piece) as usize..];
            folded.add(fold_all(&order, bytes, &spans, 1));
        }
        prop_assert_eq!(answer(&*kernel, &order, folded), answer(&*kernel, &order, one));
    }
}

#[test]
fn an_object_that_ends_early_leaves_records_to_the_node() {
    let order = order_of(binding("sum", &[], Input::elements(DType::U8), ByteOrder::Little), 0..100_000);
    let mut read =
        |offset: u64, length: usize| Some(vec![0; length.min(20_000_usize.saturating_sub(offset as usize))]);
    let spans = [Span { offset: 0, records: 0..100_000 }];
    let folded = fold_object(&order, &spans, &mut read, &mut || false).unwrap();
    // The first block.
    assert_eq!(folded.states[0].records, [0..16 << 10]);
    assert!(!folded.out_of_time && folded.enough.is_none());
    let folded = fold_object(&order, &spans, &mut |_, _| None::<Vec<u8>>, &mut || false).unwrap();
    assert_eq!(folded, Folded::default());
}

#[test]
fn a_record_on_which_the_kernel_fails_is_left_to_the_node() {
    let order =
        order_of(binding("max", &[("nan", "error")], Input::elements(DType::F64), ByteOrder::Little), 0..2);
    let object: Vec<u8> = [1.0, f64::NAN].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
    let mut read = |_: u64, length: usize| Some(object[..length].to_vec());
    let spans = [Span { offset: 0, records: 0..2 }];
    assert_eq!(fold_object(&order, &spans, &mut read, &mut || false).unwrap(), Folded::default());
}

#[test]
fn a_fold_that_has_enough_says_so() {
    let order = order_of(binding("first", &[], Input::lines(), ByteOrder::Little), 0..40_000);
    let mut calls = 0;
    let mut read = |_: u64, length: usize| {
        calls += 1;
        Some(vec![b'\n'; length])
    };
    let spans = [Span { offset: 0, records: 0..40_000 }];
    let folded = fold_object(&order, &spans, &mut read, &mut || false).unwrap();
    assert_eq!((folded.enough, calls), (Some(16 << 10), 1));
    let mut one = Folded { enough: Some(7), ..Folded::default() };
    one.add(Folded { enough: Some(5), out_of_time: true, ..Folded::default() });
    assert_eq!((one.enough, one.out_of_time), (Some(5), true));
}

#[test]
fn kernels_that_need_more_than_a_part_of_an_object_are_refused() {
    let numbers = Input::elements(DType::F64);
    for (kernel, params, input) in [
        ("lookup", &[("where", "> 1")][..], numbers),
        ("grep", &[("pattern", "a")], Input::lines()),
        ("histogram", &[("range", "0:1"), ("bins", "65536")], numbers),
    ] {
        let order = order_of(binding(kernel, params, input, ByteOrder::Little), 0..10);
        let folded = fold_object(&order, &[], &mut |_, _| None::<Vec<u8>>, &mut || false);
        assert!(matches!(folded, Err(FoldError::NotFoldable(_))), "{kernel}: {folded:?}");
    }
}

#[test]
fn messages_that_make_no_sense_are_refused() {
    let sum = || binding("sum", &[], Input::elements(DType::F64), ByteOrder::Little);
    let order = order_of(sum(), 10..20);
    let span = |records| Span { offset: 0, records };
    let refused = |order: &FoldOrder, spans: &[Span]| {
        let error = FoldOrder::decode(&order.encode(spans).unwrap()).unwrap_err();
        assert!(!matches!(error, FoldError::OtherForm { .. }), "{error}");
    };
    assert!(FoldOrder::decode(&order.encode(&[span(10..20)]).unwrap()).is_ok());
    refused(&order, &[span(9..12)]);
    refused(&order, &[span(10..21)]);
    refused(&order, &[span(12..12)]);
    refused(&order, &[span(15..18), span(10..12)]);
    refused(&order, &[span(10..13), span(12..14)]);
    refused(&order_of(sum(), 0..MAX_POSITION + 1), &[]);
    refused(&order, &[Span { offset: MAX_POSITION + 1, records: 10..11 }]);
    let mut other = order.encode(&[]).unwrap();
    other[0] += 1;
    assert!(matches!(FoldOrder::decode(&other), Err(FoldError::OtherForm { .. })));
    assert!(FoldOrder::decode(&order.encode(&[]).unwrap()[..40]).is_err());
    let long =
        order_of(binding("sum", &[("a", &"b".repeat(2 << 20))], Input::lines(), ByteOrder::Little), 0..1);
    assert!(matches!(long.encode(&[]), Err(FoldError::TooLong { .. })));
}

#[test]
fn answers_to_another_question_are_refused() {
    let asked = [
        Span { offset: 0, records: 10..20 },
        Span { offset: 80, records: 20..25 },
        Span { offset: 0, records: 30..31 },
    ];
    let state = |records: &[Range<u64>]| gristmill_object_fold::FoldedState {
        records: records.to_vec(),
        state: vec![7],
    };
    let decoded = |states: Vec<_>| {
        let folded = Folded { states, ..Folded::default() };
        Folded::decode(&folded.encode().unwrap(), &asked).map(|decoded| assert_eq!(decoded, folded))
    };
    decoded(vec![state(&[12..22, 30..31]), state(&[10..12])]).unwrap();
    for wrong in [&[9..12][..], &[10..26], &[24..31], &[10..12, 11..13], &[12..12], &[31..32], &[25..30]] {
        assert!(decoded(vec![state(wrong)]).is_err(), "{wrong:?}");
    }
    assert!(decoded(vec![state(&[10..12]), state(&[11..14])]).is_err());
}

/// States are computed on one machine and merged on another one, so their bytes are a part of the form. If this test fails, raise `FORM`.
#[test]
fn the_states_of_kernels_belong_to_the_form() {
    let object: Vec<u8> =
        (0..1000_u64).flat_map(|n| ((n * 7919 % 997) as f64 / 8.0 - 10.0).to_le_bytes()).collect();
    let span = [Span { offset: 0, records: 0..1000 }];
    let numbers = OF_NUMBERS.iter().map(|(name, params)| {
        let order = order_of(binding(name, params, Input::elements(DType::F64), ByteOrder::Little), 0..1000);
        fnv1a(&fold_all(&order, &object, &span, usize::MAX).encode().unwrap())
    });
    let text: Vec<u8> = "ab c\nd\n".bytes().cycle().take(1000).collect();
    let lines = OF_LINES.iter().map(|name| {
        let order = order_of(binding(name, &[], Input::lines(), ByteOrder::Little), 0..1000);
        fnv1a(&fold_all(&order, &text, &span, usize::MAX).encode().unwrap())
    });
    let hashes: Vec<u64> = numbers.chain(lines).collect();
    assert_eq!((gristmill_object_fold::FORM, hashes), (1, GOLDEN.to_vec()));
}

const GOLDEN: [u64; 13] = [
    8_592_052_080_327_164_204,
    496_696_261_235_712_559,
    2_763_640_303_029_353_690,
    8_266_448_062_924_967_710,
    6_424_315_213_192_556_073,
    2_763_640_303_029_353_690,
    2_763_640_303_029_353_690,
    8_266_448_062_924_967_710,
    6_009_335_887_678_100_093,
    1_166_995_737_344_525_121,
    10_393_246_395_090_472_867,
    18_112_280_946_879_043_609,
    4_958_368_732_355_112_220,
];

fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn a_value_that_is_known_is_the_sum() {
    let order = order_of(binding("sum", &[], Input::elements(DType::U8), ByteOrder::Little), 0..3);
    let kernel = catalog::bind("sum", &[], &Input::elements(DType::U8)).unwrap();
    let folded = fold_all(&order, &[1, 2, 3], &[Span { offset: 0, records: 0..3 }], 1);
    let Next::Done(value) = answer(&*kernel, &order, folded) else { panic!("sum has one pass") };
    assert_eq!(value.get("sum"), Some(&Value::Int(6)));
}
