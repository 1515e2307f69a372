//! The cells of an answer while elements are reduced into them.

use crate::element::Element;
use crate::missing::MissingValues;

/// The values of all cells, for one operation.
pub(crate) enum Gathered<T: Element> {
    /// Only the count.
    Nothing,
    Sums(T::Sums),
    Least(Vec<T>),
    Most(Vec<T>),
}

/// The cells of an answer.
pub(crate) struct Cells<T: Element> {
    gathered: Gathered<T>,
    counts: Vec<i64>,
    missing: MissingValues<T>,
    /// Elements of a run that are not missing.
    present: Vec<T>,
}

impl<T: Element> Cells<T> {
    pub fn new(gathered: Gathered<T>, cells: usize, missing: MissingValues<T>) -> Cells<T> {
        Cells { gathered, counts: vec![0; cells], missing, present: Vec::new() }
    }

    /// Reduces all elements into one cell.
    pub fn run(&mut self, cell: usize, elements: &[T]) {
        if self.missing.is_none() {
            self.add(cell, elements);
            return;
        }
        let mut present = std::mem::take(&mut self.present);
        present.clear();
        present.extend(elements.iter().copied().filter(|element| !self.missing.has(*element)));
        self.add(cell, &present);
        self.present = present;
    }

    /// Adds all elements of a chunk to the only cell. Returns `false`, and does nothing, if they must be looked at one by one.
    pub fn add_chunk(&mut self, bytes: &[u8]) -> bool {
        match (&mut self.gathered, &mut *self.counts) {
            (Gathered::Sums(sums), [count]) if self.missing.is_none() => {
                T::add_bytes(sums, bytes);
                *count += (bytes.len() / size_of::<T>()) as i64;
                true
            }
            _ => false,
        }
    }

    /// Reduces each element into a cell of its own, from `cell` on.
    pub fn row(&mut self, cell: usize, elements: &[T]) {
        if let (Gathered::Sums(sums), true) = (&mut self.gathered, self.missing.is_none()) {
            T::add_row(sums, cell, elements);
            self.counts.iter_mut().skip(cell).zip(elements).for_each(|(count, _)| *count += 1);
            return;
        }
        for (at, element) in elements.iter().enumerate() {
            self.run(cell + at, std::slice::from_ref(element));
        }
    }

    fn add(&mut self, cell: usize, elements: &[T]) {
        if let Some(count) = self.counts.get_mut(cell) {
            *count += elements.len() as i64;
        }
        match &mut self.gathered {
            Gathered::Nothing => {}
            Gathered::Sums(sums) => T::add(sums, cell, elements),
            Gathered::Least(all) => fold(all, cell, elements, |least, x| x < least),
            Gathered::Most(all) => fold(all, cell, elements, |most, x| x > most),
        }
    }

    /// The bytes of the results, little-endian, and the counts.
    pub fn finish(self) -> (Vec<u8>, Vec<i64>) {
        let mut bytes = Vec::with_capacity(self.counts.len() * size_of::<T>());
        match self.gathered {
            Gathered::Nothing => bytes.extend(self.counts.iter().flat_map(|count| count.to_le_bytes())),
            Gathered::Sums(sums) => {
                (0..self.counts.len()).for_each(|cell| T::sum(&sums, cell).write(&mut bytes))
            }
            Gathered::Least(all) => write_present(all, &self.counts, T::ENDS.1, &mut bytes),
            Gathered::Most(all) => write_present(all, &self.counts, T::ENDS.0, &mut bytes),
        }
        (bytes, self.counts)
    }
}

/// Writes the values of cells, and `absent` for cells without elements.
fn write_present<T: Element>(all: Vec<T>, counts: &[i64], absent: T, bytes: &mut Vec<u8>) {
    for (value, count) in all.into_iter().zip(counts) {
        (if *count > 0 { value } else { absent }).write(bytes);
    }
}

/// Replaces the value of a cell by elements that are better. A NaN stays.
fn fold<T: Element>(all: &mut [T], cell: usize, elements: &[T], better: impl Fn(T, T) -> bool) {
    let Some(value) = all.get_mut(cell) else { return };
    for element in elements {
        if value.is_nan() {
            return;
        }
        if element.is_nan() || better(*value, *element) {
            *value = *element;
        }
    }
}
