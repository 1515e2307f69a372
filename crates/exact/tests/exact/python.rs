//! Comparisons with the independent implementations `math.fsum`, `fractions` and `statistics` of Python.

use std::io::Write;
use std::process::{Command, Stdio};

use gristmill_exact::Moments;

use crate::values::f64_bytes;

/// A program that reads one list of numbers per line (as hexadecimal bits), and writes sum, mean, variance and standard
/// deviation. `statistics.stdev` rounds correctly since Python 3.11.
const PROGRAM: &str = r#"
import math, statistics, struct, sys
from fractions import Fraction
assert sys.version_info >= (3, 11), "too old"
def bits(x):
    return struct.pack(">d", x).hex()
for line in sys.stdin:
    xs = [struct.unpack(">d", bytes.fromhex(word))[0] for word in line.split()]
    exact = [Fraction(x) for x in xs]
    mean = sum(exact) / len(exact)
    variance = sum((x - mean) ** 2 for x in exact) / (len(exact) - 1)
    print(bits(math.fsum(xs)), bits(float(mean)), bits(float(variance)), bits(statistics.stdev(xs)))
"#;

fn lists() -> Vec<Vec<f64>> {
    let mut state = 5u64;
    let mut bits = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ (state >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd)
    };
    // The exponents are far enough from the ends that no sum of squares overflows. Python raises an error there.
    let fields = [(1000, 40), (1023, 1), (600, 400), (990, 90), (0, 30), (0, 1), (500, 60), (1400, 60)];
    let mut lists: Vec<Vec<f64>> = (0..80)
        .map(|list| {
            let (from, binades) = fields[list % fields.len()];
            let value = |_| {
                let field = from + bits() % binades;
                f64::from_bits(bits() & !(0x7ff << 52) | field << 52)
            };
            (0..2 + list * 7).map(value).collect()
        })
        .collect();
    lists.push(vec![1e16, 1.0, 1e-16]);
    lists.push(vec![1e16, 1.0, -1e16, 3.0]);
    lists.push((0..500).map(|i| 1e16 + 2.0 * f64::from(i % 3)).collect());
    lists
}

#[test]
fn python_agrees() {
    let child = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: no python3 on PATH");
        return;
    };
    let lists = lists();
    let mut stdin = child.stdin.take().unwrap();
    let text: String = lists
        .iter()
        .map(|list| list.iter().map(|x| format!("{:016x} ", x.to_bits())).collect::<String>() + "\n")
        .collect();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let written = writer.join().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("too old") {
        println!("skipped: python3 is older than 3.11");
        return;
    }
    assert!(output.status.success(), "{errors}");
    written.unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), lists.len());
    for (list, answer) in lists.iter().zip(answers.lines()) {
        let mut moments = Moments::new();
        moments.add_f64_le(&f64_bytes(list));
        let n = list.len() as u64;
        let ours = [
            moments.sum().value(),
            moments.mean(n, false),
            moments.variance(n, 1, false),
            moments.std(n, 1, false),
        ];
        let ours = ours.map(|x| format!("{:016x}", x.to_bits())).join(" ");
        assert_eq!(ours, answer, "sum, mean, variance, std of {list:?}");
    }
}
