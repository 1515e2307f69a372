//! Names of axes without a dimension scale, as netCDF-C makes them up (`create_phony_dims` in its `hdf5open.c`).
//!
//! Each such axis takes the first dimension of its group that has its length and may grow like it, unless the variable has
//! that dimension already. If there is none, a new dimension is made. New dimensions are numbered through the file, after
//! the named ones. The groups inside a group are numbered before it.

use crate::dataset::{Dimension, PHONY, Variable};

/// Gives every axis a name. `limits` are the largest lengths of the axes of each variable; `u64::MAX` is unlimited.
pub fn name(dimensions: &mut Vec<Dimension>, variables: &mut [Variable], limits: &[&[u64]]) {
    for group in groups(variables) {
        for (at, limits) in limits.iter().enumerate().take(variables.len()) {
            if folder(&variables[at].path) == group {
                of_variable(dimensions, &group, &mut variables[at], limits);
            }
        }
    }
}

/// The group of a variable or of a dimension.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the groups that have variables. Groups inside a group come before it; otherwise they are in the order in
/// which they were found.
fn groups(variables: &[Variable]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for variable in variables {
        // Groups above it are added too, so that they keep their order if their first variable is in a group inside
        // them.
        let folder = folder(&variable.path);
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for path in std::iter::once(0).chain(ends).map(|end| &folder[..end]) {
            if !all.iter().any(|known| known == path) {
                all.push(path.to_owned());
            }
        }
    }
    let mut out = Vec::with_capacity(all.len());
    below("", &all, &mut out);
    out
}

fn below(group: &str, all: &[String], out: &mut Vec<String>) {
    for child in all.iter().filter(|path| !path.is_empty() && folder(path) == group) {
        below(child, all, out);
    }
    out.push(group.to_owned());
}

fn of_variable(dimensions: &mut Vec<Dimension>, group: &str, variable: &mut Variable, limits: &[u64]) {
    for axis in 0..variable.shape.len().min(variable.dimensions.len()) {
        if !variable.dimensions[axis].is_empty() {
            continue;
        }
        let (length, unlimited) = (variable.shape[axis], limits.get(axis) == Some(&u64::MAX));
        let same = |one: &&Dimension| {
            folder(&one.name) == group
                && (one.length, one.unlimited) == (length, unlimited)
                && !variable.dimensions.contains(&one.name)
        };
        let name = match dimensions.iter().find(same) {
            Some(known) => known.name.clone(),
            None => {
                let name = format!("{PHONY}{}", dimensions.len());
                let name = if group.is_empty() { name } else { format!("{group}/{name}") };
                dimensions.push(Dimension { name: name.clone(), length, unlimited });
                name
            }
        };
        variable.dimensions[axis] = name;
    }
}
