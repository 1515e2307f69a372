//! Management: what each action takes and gives.

use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_wire::action::{self, names};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Answer, Refusal};
use crate::join::admit;
use crate::node::Shared;

/// Actions that clients may ask for, and what they do.
pub(crate) const ACTIONS: [(&str, &str); 11] = [
    (names::OPEN, "a file and a grant to read it"),
    (names::STAT, "what is known about a file"),
    (names::LIST, "the names of a directory"),
    (names::CREATE, "begins a put"),
    (names::COMMIT, "makes what was put visible"),
    (names::RENEW, "a put is still going on"),
    (names::ABANDON, "gives a put up"),
    (names::REMOVE, "removes a file"),
    (names::CHMOD, "changes who may read and write a file"),
    (names::NODES, "the storage nodes"),
    (names::PING, "answers nothing"),
];

/// Answers an action. Blocks.
pub(crate) fn answer(shared: &Shared, who: &Principal, name: &str, body: &[u8]) -> Answer<Vec<u8>> {
    match name {
        names::OPEN => reply(&shared.open(who, &read::<action::Open>("open", body)?.path)?),
        names::STAT => reply(&shared.stat(who, &read::<action::PathOf>("stat", body)?.path)?),
        names::CREATE => reply(&shared.create(who, &read("create", body)?)?),
        names::COMMIT => reply(&shared.commit(who, &read("commit", body)?)?),
        names::CREATE_MANY => reply(&shared.create_many(who, &read("create-many", body)?)?),
        names::COMMIT_MANY => reply(&shared.commit_many(who, &read("commit-many", body)?)?),
        names::RENEW => reply(&shared.renew(who, &read("renew", body)?)?),
        names::ABANDON => reply(&shared.abandon(who, &read("abandon", body)?)?),
        names::LIST => reply(&shared.list(&read("list", body)?)?),
        names::REMOVE => reply(&shared.remove(who, &read("remove", body)?)?),
        names::CHMOD => reply(&shared.chmod(who, &read("chmod", body)?)?),
        names::NODES => reply(&shared.nodes()?),
        names::JOIN => reply(&admit(shared, &read("join", body)?)?),
        _ => {
            let known = "open, stat, create, commit, create-many, commit-many, renew, abandon, list, remove, chmod, nodes, join, ping";
            Err(Refusal::new(ErrorKind::Usage, format!("there is no action '{name}'; there are {known}")))
        }
    }
}

fn read<T: DeserializeOwned>(what: &'static str, body: &[u8]) -> Answer<T> {
    Ok(action::decode(what, body)?)
}

fn reply<T: Serialize>(value: &T) -> Answer<Vec<u8>> {
    Ok(action::encode(value)?)
}
