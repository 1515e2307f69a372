//! All datasets of a file, group by group.

use std::collections::HashSet;

use hdf5_reader::Hdf5File;
use hdf5_reader::error::Error;
use hdf5_reader::group::Group;

use super::attributes;
use super::bad;
use super::datasets::Object;
use super::links::{Link, links};
use super::masks::Masks;
use crate::attribute::Attribute;
use crate::{FormatError, MAX_GROUP_DEPTH, MAX_GROUPS, MAX_VARIABLES};

/// What was found.
pub struct Walked {
    /// The attributes of the root.
    pub attributes: Vec<Attribute>,
    /// The groups below the root.
    pub groups: Vec<String>,
    /// The datasets, each once for every name that leads to it.
    pub objects: Vec<Object>,
    /// Whether a netCDF library says that it wrote the file.
    pub netcdf: bool,
}

/// Walks all groups, each once, however many names lead to it.
pub fn walk(file: &Hdf5File, masks: &Masks) -> Result<Walked, FormatError> {
    let root = file.root_group().map_err(bad)?;
    let own = match root.attributes() {
        Err(_) if masks.blank(file, &root, root.address())? => root.attributes(),
        read => read,
    };
    let beside = masks.beside(root.address());
    let mut own = own.map_err(bad)?;
    own.extend(beside.read);
    let netcdf = own.iter().any(|attribute| attribute.name == "_NCProperties");
    let mut visible = attributes::visible(&own)?;
    visible.extend(beside.refused);
    let mut walked = Walked { attributes: visible, groups: Vec::new(), objects: Vec::new(), netcdf };
    let mut seen = HashSet::from([root.address()]);
    // Groups whose names are still to be looked at, with their paths; the next one is the last.
    let mut left = vec![(root, String::new(), 0)];
    while let Some((group, path, depth)) = left.pop() {
        let mut below = Vec::new();
        for link in links(file, &group)? {
            let name = link.name.trim_end_matches('\0');
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
            if let Some(other) = link.external {
                walked.objects.push(Object::unreadable(path, format!("a link to the file {other:?}")));
            } else {
                match unmasked(file, masks, &group, &link) {
                    // One that cannot be used leaves the others as they are.
                    Member::Dataset(dataset) => {
                        let object = Object::of(file, masks, &dataset, path.clone());
                        walked
                            .objects
                            .push(object.unwrap_or_else(|why| Object::unreadable(path, why.to_string())));
                    }
                    Member::Group(child) if seen.insert(child.address()) => {
                        walked.groups.push(path.clone());
                        below.push((child, path, depth + 1))
                    }
                    Member::Group(_) | Member::Nothing => {}
                    Member::Unreadable(why) => walked.objects.push(Object::unreadable(path, why)),
                }
            }
            FormatError::limit("variables", walked.objects.len() as u64, MAX_VARIABLES as u64)?;
        }
        FormatError::limit("groups", seen.len() as u64, MAX_GROUPS as u64)?;
        if !below.is_empty() {
            FormatError::limit("levels of groups", depth as u64 + 1, MAX_GROUP_DEPTH as u64)?;
        }
        left.extend(below.into_iter().rev());
    }
    Ok(walked)
}

enum Member {
    Dataset(Box<hdf5_reader::Dataset>),
    Group(Group),
    /// A named type, or a soft link that leads nowhere.
    Nothing,
    Unreadable(String),
}

/// What a name leads to, without the attributes that the reader does not take.
fn unmasked(file: &Hdf5File, masks: &Masks, group: &Group, link: &Link) -> Member {
    match (member(group, &link.name), link.address) {
        (Member::Unreadable(_), Some(address)) if masks.blank(file, group, address).unwrap_or(false) => {
            member(group, &link.name)
        }
        (member, _) => member,
    }
}

fn member(group: &Group, name: &str) -> Member {
    match group.dataset(name) {
        Ok(dataset) => return Member::Dataset(Box::new(dataset)),
        Err(error) => match cause(&error) {
            Error::DatasetNotFound(_) => {}
            Error::UnsupportedLayoutClass(3) => return Member::Unreadable("a virtual dataset".to_owned()),
            cause => return Member::Unreadable(format!("unreadable ({cause})")),
        },
    }
    match group.group(name) {
        Ok(group) => Member::Group(group),
        Err(error) => match cause(&error) {
            Error::GroupNotFound(_) => Member::Nothing,
            cause => Member::Unreadable(format!("unreadable ({cause})")),
        },
    }
}

/// What an error says below the places that it came through.
fn cause(error: &Error) -> &Error {
    match error {
        Error::Context { source, .. } => cause(source),
        other => other,
    }
}
