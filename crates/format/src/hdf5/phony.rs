//! Names of axes that no dimension scale is attached to, as netCDF-C makes them up (`create_phony_dims` in its `hdf5open.c`).
//!
//! In a group, each such axis takes the first dimension of the group that is as long and grows as it does, unless the variable
//! has that already; where there is none a new one is made. They are numbered through the file, behind the dimensions that it
//! has, and groups within a group come before it.

use crate::dataset::{Dimension, PHONY, Variable};

/// Gives every axis a name. `limits`: how long the axes of each variable may grow; `u64::MAX` for any length.
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

/// The groups that have variables: those below a group before it, and else in the order in which they were found.
fn groups(variables: &[Variable]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for variable in variables {
        // Those above it too, so that they keep their order where their first variable is one of a group within.
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
