//! Management actions, with their arguments and results.

use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_wire::SourceAccess;
use gristmill_wire::action::{self, names};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attached::see;
use crate::error::{Answer, Refusal};
use crate::join::admit;
use crate::listing::Levels;
use crate::requester::Requester;
use crate::shared::Shared;

/// A management action.
pub(crate) struct Action {
    pub name: &'static str,
    /// Description for people.
    pub what: &'static str,
    answer: fn(&Call<'_>) -> Answer<Vec<u8>>,
}

/// One request for an action.
struct Call<'a> {
    shared: &'a Shared,
    principal: &'a Principal,
    access: Option<&'a SourceAccess>,
    name: &'static str,
    body: &'a [u8],
}

const fn action(name: &'static str, what: &'static str, answer: fn(&Call<'_>) -> Answer<Vec<u8>>) -> Action {
    Action { name, what, answer }
}

/// All actions: the node answers them, and lists them in errors and in ListActions.
pub(crate) const ACTIONS: [Action; 23] = [
    action(names::OPEN, "a file and a grant to read it", |call| {
        reply(&call.shared.open(call.requester(), &call.read()?)?)
    }),
    action(names::OPEN_MANY, "many files and grants to read them", |call| {
        reply(&call.shared.open_many(call.requester(), &call.read()?)?)
    }),
    action(names::STAT, "what is known about a file", |call| {
        reply(&call.shared.stat(call.requester(), &call.read::<action::PathRequest>()?.path)?)
    }),
    action(names::LIST, "the names of a directory", |call| {
        reply(&call.shared.list(call.requester(), &call.read()?, Levels::One)?)
    }),
    action(names::LIST_BELOW, "the files on all levels below a directory", |call| {
        reply(&call.shared.list(call.requester(), &call.read()?, Levels::All)?)
    }),
    action(names::CREATE, "begins a put", |call| reply(&call.shared.create(call.principal, &call.read()?)?)),
    action(names::COMMIT, "makes what was put visible", |call| {
        reply(&call.shared.commit(call.principal, &call.read()?)?)
    }),
    action(names::CREATE_MANY, "begins many puts", |call| {
        reply(&call.shared.create_many(call.principal, &call.read()?)?)
    }),
    action(names::COMMIT_MANY, "makes what many puts put visible", |call| {
        reply(&call.shared.commit_many(call.principal, &call.read()?)?)
    }),
    action(names::RENEW, "a put is still going on", |call| {
        reply(&call.shared.renew(call.principal, &call.read()?)?)
    }),
    action(names::ABANDON, "gives a put up", |call| {
        reply(&call.shared.abandon(call.principal, &call.read()?)?)
    }),
    action(names::REMOVE, "removes a file", |call| {
        reply(&call.shared.remove(call.principal, &call.read()?)?)
    }),
    action(names::REMOVE_ALL, "removes a file, or all that lies in a directory", |call| {
        reply(&call.shared.remove_all(call.principal, &call.read()?)?)
    }),
    action(names::RENAME, "gives a file or a directory another path", |call| {
        reply(&call.shared.rename(call.principal, &call.read()?)?)
    }),
    action(names::USAGE, "how much a file or a directory is", |call| {
        reply(&call.shared.usage(call.requester(), &call.read()?)?)
    }),
    action(names::CHMOD, "changes who may read and write a file", |call| {
        reply(&call.shared.chmod(call.principal, &call.read()?)?)
    }),
    action(names::ATTACH, "a folder outside the cluster appears under a path", |call| {
        reply(&call.shared.attach(call.requester(), &call.read()?)?)
    }),
    action(names::DETACH, "an attached tree disappears", |call| {
        reply(&call.shared.detach(call.principal, &call.read()?)?)
    }),
    action(names::TREES, "the attached trees", |call| reply(&call.shared.attached_trees(call.principal)?)),
    action(names::SEE_TREE, "whether a storage node reaches a tree, for the entry node", |call| {
        reply(&see(call.shared, &call.read()?)?)
    }),
    action(names::NODES, "the storage nodes", |call| {
        call.shared.ready()?;
        reply(&call.shared.nodes()?)
    }),
    action(names::JOIN, "a storage node with the key of the cluster makes itself known", |call| {
        reply(&admit(call.shared, &call.read()?)?)
    }),
    action(names::PING, "answers nothing", |_| Ok(Vec::new())),
];

impl Call<'_> {
    fn requester(&self) -> Requester<'_> {
        Requester { principal: self.principal, access: self.access }
    }

    fn read<T: DeserializeOwned>(&self) -> Answer<T> {
        Ok(action::decode(self.name, self.body)?)
    }
}

/// Answers an action. Blocks.
pub(crate) fn answer(shared: &Shared, requester: Requester<'_>, name: &str, body: &[u8]) -> Answer<Vec<u8>> {
    let Requester { principal, access } = requester;
    let Some(action) = ACTIONS.iter().find(|action| action.name == name) else {
        let known = ACTIONS.map(|action| action.name).join(", ");
        let name: String = name.chars().take(MAX_NAME_SHOWN).collect();
        return Err(Refusal::new(
            ErrorKind::Usage,
            format!("there is no action '{name}'; there are {known}"),
        ));
    };
    (action.answer)(&Call { shared, principal, access, name: action.name, body })
}

/// Largest number of characters of an unknown name that an error repeats.
const MAX_NAME_SHOWN: usize = 40;

fn reply<T: Serialize>(value: &T) -> Answer<Vec<u8>> {
    Ok(action::encode(value)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_action_is_there_twice() {
        let names: HashSet<&str> = ACTIONS.iter().map(|action| action.name).collect();
        assert_eq!(names.len(), ACTIONS.len());
    }
}
