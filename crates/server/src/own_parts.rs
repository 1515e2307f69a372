//! The file of a fold request as this node sees it, and whether the request makes sense here.

use std::sync::Arc;

use gristmill_peers::{ON_STORAGE, Question, file_parts};
use gristmill_runtime::{ErrorKind, Selection, StorePart};
use gristmill_store::{ObjectId, StoreError, Version};
use gristmill_wire::{FileMap, FoldRequest, Grant, NodeShard};

use crate::error::{Answer, Refusal};
use crate::limits::MAX_MAX_RECORD;
use crate::node::Shared;
use crate::objects::elsewhere;

/// What this node runs for a request, and what that is called where its speed is measured.
pub(crate) fn node_request(
    shared: &Arc<Shared>,
    grant: &Grant,
    request: &FoldRequest,
) -> Answer<(gristmill_runtime::Request, String)> {
    if request.max_record > MAX_MAX_RECORD {
        let text = format!(
            "lines of up to {} bytes are more than a node takes, {MAX_MAX_RECORD}; lower --max-record or use --place client",
            request.max_record
        );
        return Err(Refusal::new(ErrorKind::Usage, text));
    }
    let question = Question::of_fold(request).map_err(Refusal::from)?;
    let options = shared.options(request.max_record, &question.kernel);
    let opened = opened(grant, request);
    let mut run = question.request(&shared.peers, &opened, ON_STORAGE, options).map_err(Refusal::from)?;
    run.file = own_parts(shared, grant, request)?;
    run.selection = Selection { skip: question.input.skip, range: None };
    Ok((run, question.kernel))
}

/// Nodes to be asked in turn must be where the grant has them: nobody makes a node call on strangers.
pub(crate) fn check_rest(file: &FileMap, own: &[u32], rest: &[NodeShard]) -> Answer<()> {
    let named = own.iter().chain(rest.iter().flat_map(|shard| &shard.targets));
    check_once(named)?;
    check_places(file, rest)
}

/// The same for all nodes of a group.
pub(crate) fn check_nodes(file: &FileMap, nodes: &[NodeShard]) -> Answer<()> {
    check_rest(file, &[], nodes)
}

fn check_once<'a>(targets: impl Iterator<Item = &'a u32>) -> Answer<()> {
    let mut named: Vec<u32> = targets.copied().collect();
    let count = named.len();
    named.sort_unstable();
    named.dedup();
    if named.len() < count {
        return Err(Refusal::new(ErrorKind::Usage, "a target is named twice; name each once"));
    }
    Ok(())
}

fn check_places(file: &FileMap, rest: &[NodeShard]) -> Answer<()> {
    let known = |shard: &NodeShard, target: &u32| {
        file.targets.get(*target as usize).is_some_and(|place| place.address == shard.address)
    };
    match rest.iter().find(|shard| shard.targets.is_empty() || !shard.targets.iter().all(|t| known(shard, t)))
    {
        None => Ok(()),
        Some(shard) => {
            let text = format!("{} is no node of these targets; open the file again", shard.address);
            Err(Refusal::new(ErrorKind::Denied, text))
        }
    }
}

fn opened(grant: &Grant, request: &FoldRequest) -> gristmill_wire::action::Opened {
    let info = gristmill_wire::action::FileInfo {
        file: grant.file.clone(),
        owner: grant.principal.clone(),
        mode: 0,
        created: 0,
    };
    gristmill_wire::action::Opened { info, grant: request.grant.clone() }
}

/// The file as this node sees it: its own targets in its store, those of others over the network.
fn own_parts(
    shared: &Arc<Shared>,
    grant: &Grant,
    request: &FoldRequest,
) -> Answer<gristmill_runtime::FileParts> {
    let number = shared.number()?;
    let sealed: Arc<str> = request.grant.as_str().into();
    let mut file = file_parts(&shared.peers, &grant.file, &sealed, ON_STORAGE)?;
    let object = ObjectId::new(&grant.file.object()).map_err(StoreError::from)?;
    for target in &request.targets {
        let at = *target as usize;
        let place = grant.file.targets.get(at).filter(|place| place.number == number);
        let (Some(place), Some(part)) = (place, file.parts.get_mut(at)) else {
            return Err(elsewhere(&shared.address));
        };
        if file.layout.bytes_on(*target, 0..file.length) == 0 {
            continue;
        }
        let node = format!("{number} ({})", shared.address);
        let own = StorePart::open_at(shared.store.clone(), object.clone(), Version(place.version), node);
        let own = own.map_err(|error| shared.of_run(&grant.file.path, error))?;
        let expected = file.layout.bytes_on(*target, 0..file.length);
        // The object of a segments file has its table besides, which was read for the layout.
        if own.length() != expected && !grant.file.segments {
            let text = format!(
                "storage node {number} ({}) has {} bytes of {} instead of {expected}: its object is damaged; \
                 put the file again from its source",
                shared.address,
                own.length(),
                grant.file.path
            );
            return Err(Refusal::new(ErrorKind::Failed, text));
        }
        *part = Arc::new(own);
    }
    Ok(file)
}
