//! From stored bytes to values.

use gristmill_kernel::{ArrayType, DType};

use crate::error::ArrayError;
use crate::expr::{Arithmetic, CastFrom, cast};
use crate::meaning::{Exact, Meaning};
use crate::truth::is_float;
use crate::values::{Number, Values, with_number};

/// An element as it is stored.
pub(crate) trait Stored: Number {
    /// Reads a little-endian element from exactly its number of bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Returns the nearest element to a number. An integer type returns `None` unless it holds the number exactly.
    fn nearest(number: Exact) -> Option<Self>;
    /// Returns the bound that is equal to the number or the next inside it, from below or from above.
    fn bound(number: Exact, from_below: bool) -> Bound<Self>;
}

/// An end of a valid range.
#[derive(Clone, Copy)]
pub(crate) enum Bound<T> {
    All,
    None,
    At(T),
}

macro_rules! stored_integer {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<$t>()];
                raw.copy_from_slice(bytes);
                <$t>::from_le_bytes(raw)
            }
            fn nearest(number: Exact) -> Option<Self> {
                match number {
                    Exact::Int(n) => <$t>::try_from(n).ok(),
                    Exact::Float(x) if x.trunc() == x => <$t>::try_from(x as i128).ok(),
                    Exact::Float(_) => None,
                }
            }
            fn bound(number: Exact, from_below: bool) -> Bound<Self> {
                let n = match number {
                    Exact::Int(n) => n,
                    Exact::Float(x) if x.is_nan() => return Bound::All,
                    Exact::Float(x) => (if from_below { x.ceil() } else { x.floor() }) as i128,
                };
                let (least, most) = (<$t>::MIN as i128, <$t>::MAX as i128);
                match (from_below, n < least, n > most) {
                    (true, true, _) | (false, _, true) => Bound::All,
                    (true, _, true) | (false, true, _) => Bound::None,
                    _ => Bound::At(n as $t),
                }
            }
        }
    )*};
}

stored_integer! { i8, i16, i32, i64, u8, u16, u32, u64 }

macro_rules! stored_float {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<$t>()];
                raw.copy_from_slice(bytes);
                <$t>::from_le_bytes(raw)
            }
            fn nearest(number: Exact) -> Option<Self> {
                match number {
                    Exact::Int(n) => Some(n as $t),
                    Exact::Float(x) if x.is_nan() => None,
                    Exact::Float(x) => Some(x as $t),
                }
            }
            fn bound(number: Exact, _: bool) -> Bound<Self> {
                match Self::nearest(number) {
                    Some(x) => Bound::At(x),
                    None => Bound::All,
                }
            }
        }
    )*};
}

stored_float! { f32, f64 }

/// A float that values are decoded to.
trait Decoded: Number {
    fn from_number<T: Number>(x: T) -> Self;
    /// Returns the product, computed in f64 unless `single` and rounded to this type.
    fn scaled(self, factor: f64, single: bool) -> Self;
    /// Returns the sum, computed in f64 unless `single` and rounded to this type.
    fn moved(self, offset: f64, single: bool) -> Self;
    const MISSING: Self;
}

impl Decoded for f64 {
    #[inline(always)]
    fn from_number<T: Number>(x: T) -> f64 {
        x.to_f64()
    }
    #[inline(always)]
    fn scaled(self, factor: f64, _: bool) -> f64 {
        self * factor
    }
    #[inline(always)]
    fn moved(self, offset: f64, _: bool) -> f64 {
        self + offset
    }
    const MISSING: f64 = f64::NAN;
}

impl Decoded for f32 {
    #[inline(always)]
    fn from_number<T: Number>(x: T) -> f32 {
        if T::TYPE.size() == 8 && !is_float(T::TYPE) { x.to_i128() as f32 } else { x.to_f64() as f32 }
    }
    #[inline(always)]
    fn scaled(self, factor: f64, single: bool) -> f32 {
        if single { self * factor as f32 } else { (f64::from(self) * factor) as f32 }
    }
    #[inline(always)]
    fn moved(self, offset: f64, single: bool) -> f32 {
        if single { self + offset as f32 } else { (f64::from(self) + offset) as f32 }
    }
    const MISSING: f32 = f32::NAN;
}

impl Meaning {
    /// Decodes little-endian elements of the type `raw`.
    ///
    /// # Errors
    /// Returns the errors of [`Meaning::check`], and [`ArrayError::Grid`] if the bytes are not a whole number of
    /// elements.
    pub fn decode(&self, raw: &[u8]) -> Result<Values, ArrayError> {
        self.check()?;
        if !raw.len().is_multiple_of(self.raw.size()) {
            let why = format!("{} bytes are not a whole number of {} elements", raw.len(), self.raw);
            return Err(ArrayError::Grid { why });
        }
        let mut out = Values::empty(self.decoded());
        self.decode_into(raw, &mut out);
        Ok(out)
    }

    /// Decodes into a column and uses its memory again if it has the right type.
    pub(crate) fn decode_into(&self, raw: &[u8], out: &mut Values) {
        if out.dtype() != self.decoded() {
            *out = Values::empty(self.decoded());
        }
        with_number!(self.stored(), T => self.decode_stored::<T>(raw, out));
    }

    fn decode_stored<T: Stored>(&self, raw: &[u8], out: &mut Values) {
        let plain = self.decoded() == T::TYPE && self.scale.is_none() && self.offset.is_none();
        if plain && !self.masks() {
            copy::<T>(raw, out);
            return;
        }
        match out {
            Values::F32(out) => self.decode_to::<T, f32>(raw, out),
            Values::F64(out) => self.decode_to::<T, f64>(raw, out),
            // Integers without missing values, scaled by an integer.
            whole => self.decode_whole::<T>(raw, whole),
        }
    }

    fn decode_whole<T: Stored>(&self, raw: &[u8], out: &mut Values) {
        let ArrayType::Number(dtype) = self.decoded() else { return };
        let factor = self.scale.map_or(1.0, |scale| scale.value) as i64;
        let mut stored = Values::empty(T::TYPE);
        copy::<T>(raw, &mut stored);
        *out = with_number!(dtype, U => {
            let mut values = cast::<U>(stored);
            values.iter_mut().for_each(|x| *x = x.times(U::cast_from(factor)));
            U::wrap(values)
        });
    }

    fn decode_to<T: Stored, F: Decoded>(&self, raw: &[u8], out: &mut Vec<F>) {
        let mut missing = self.missing.iter().filter_map(|one| T::nearest(*one));
        let plain = self.scale.is_none() && self.offset.is_none();
        // The first missing value is replaced while converting, unless a scale or an offset comes between.
        match missing.next().filter(|_| plain) {
            Some(first) => convert(raw, out, |x: T| if x == first { F::MISSING } else { F::from_number(x) }),
            None => convert(raw, out, F::from_number::<T>),
        }
        if let Some(scale) = self.scale {
            let single = scale.dtype.keeps_f32();
            out.iter_mut().for_each(|x| *x = x.scaled(scale.value, single));
        }
        if let Some(offset) = self.offset {
            let single = offset.dtype.keeps_f32();
            out.iter_mut().for_each(|x| *x = x.moved(offset.value, single));
        }
        for missing in self.missing.iter().filter_map(|one| T::nearest(*one)).skip(usize::from(plain)) {
            mask(raw, out, |x: T| x == missing);
        }
        if let Some(low) = self.valid.0 {
            match T::bound(low, true) {
                Bound::All => {}
                Bound::None => out.fill(F::MISSING),
                Bound::At(low) => mask(raw, out, |x: T| x < low),
            }
        }
        if let Some(high) = self.valid.1 {
            match T::bound(high, false) {
                Bound::All => {}
                Bound::None => out.fill(F::MISSING),
                Bound::At(high) => mask(raw, out, |x: T| x > high),
            }
        }
    }
}

fn copy<T: Stored>(raw: &[u8], out: &mut Values) {
    let size = T::TYPE.size();
    let mut values = match (T::TYPE, std::mem::replace(out, Values::Bool(Vec::new()))) {
        (ArrayType::Number(DType::F32), Values::F32(values)) => {
            return *out = Values::F32(read_f32(raw, values));
        }
        (ArrayType::Number(DType::F64), Values::F64(values)) => {
            return *out = Values::F64(read_f64(raw, values));
        }
        _ => Vec::with_capacity(raw.len() / size),
    };
    values.extend(raw.chunks_exact(size).map(T::read));
    *out = T::wrap(values);
}

fn read_f32(raw: &[u8], mut values: Vec<f32>) -> Vec<f32> {
    values.clear();
    values.extend(raw.as_chunks::<4>().0.iter().map(|raw| f32::from_le_bytes(*raw)));
    values
}

fn read_f64(raw: &[u8], mut values: Vec<f64>) -> Vec<f64> {
    values.clear();
    values.extend(raw.as_chunks::<8>().0.iter().map(|raw| f64::from_le_bytes(*raw)));
    values
}

fn convert<T: Stored, F: Decoded>(raw: &[u8], out: &mut Vec<F>, each: impl Fn(T) -> F) {
    // The loop writes to elements that exist: a loop that pushes is not vectorised.
    out.resize(raw.len() / T::TYPE.size(), F::MISSING);
    for (out, raw) in out.iter_mut().zip(raw.chunks_exact(T::TYPE.size())) {
        *out = each(T::read(raw));
    }
}

/// Replaces the elements for which a test is true with the missing value. The loop selects and has no branch.
fn mask<T: Stored, F: Decoded>(raw: &[u8], out: &mut [F], missing: impl Fn(T) -> bool) {
    for (raw, out) in raw.chunks_exact(T::TYPE.size()).zip(out) {
        *out = if missing(T::read(raw)) { F::MISSING } else { *out };
    }
}
