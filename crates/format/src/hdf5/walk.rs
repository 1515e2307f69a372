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

/// The content of a file.
pub struct Walked {
    /// Attributes of the root.
    pub attributes: Vec<Attribute>,
    /// The groups below the root.
    pub groups: Vec<String>,
    /// The datasets, once for each name.
    pub objects: Vec<Object>,
    /// Whether the file says that a netCDF library wrote it.
    pub netcdf: bool,
}

/// Walks all groups. A group with several names is walked once.
pub fn walk(file: &Hdf5File, masks: &Masks) -> Result<Walked, FormatError> {
    let root = file.root_group().map_err(bad)?;
    let own = match root.attributes() {
        Err(_) if masks.blank(file, &root, root.address())? => root.attributes(),
        read => read,
    };
    let extra = masks.extra_attributes(root.address());
    let mut own = own.map_err(bad)?;
    own.extend(extra.read);
    let netcdf = own.iter().any(|attribute| attribute.name == "_NCProperties");
    let mut visible = attributes::visible(&own)?;
    visible.extend(extra.refused);
    let mut walked = Walked { attributes: visible, groups: Vec::new(), objects: Vec::new(), netcdf };
    let mut seen = HashSet::from([root.address()]);
    // A stack of groups that are still to be walked, with their paths.
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
                    // A dataset that cannot be used does not affect the others.
                    Member::Dataset(dataset) => {
                        let object = Object::read(file, masks, &dataset, path.clone());
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
    /// A named type, or a broken soft link.
    Nothing,
    Unreadable(String),
}

/// Returns the member of a name, after blanking the attributes that the reader refuses.
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

/// Returns the cause inside an error.
fn cause(error: &Error) -> &Error {
    match error {
        Error::Context { source, .. } => cause(source),
        other => other,
    }
}
