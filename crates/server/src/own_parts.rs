//! Files of a fold request on this node, and checks of the request.

use std::sync::Arc;

use gristmill_object_fold::FoldPolicy;
use gristmill_peers::{Files, ON_STORAGE, Question, file_parts};
use gristmill_runtime::{ErrorKind, RunError, StorePart};
use gristmill_store::{ObjectId, StoreError, Version};
use gristmill_wire::{FileMap, FoldPlace, FoldRequest, Grant, NodeShard, Rights};

use crate::door::Caller;
use crate::error::{Answer, Refusal};
use crate::limits::MAX_MAX_RECORD;
use crate::objects::elsewhere;
use crate::shared::Shared;
use crate::statistics;

/// The request that this node runs, and the name under which its speed is measured.
pub(crate) fn node_request(
    shared: &Arc<Shared>,
    files: &Files,
    request: &FoldRequest,
    caller: &Caller,
) -> Answer<(gristmill_runtime::Request, String)> {
    if request.max_record > MAX_MAX_RECORD {
        let text = format!(
            "lines of up to {} bytes are more than a node takes, {MAX_MAX_RECORD}; lower --max-record or use --place client",
            request.max_record
        );
        return Err(Refusal::new(ErrorKind::Usage, text));
    }
    let mut room = |bytes: usize| caller.grow(bytes).map_err(|refusal| refusal.0.into_error());
    let question = Question::from_fold(request, &mut room).map_err(Refusal::from)?;
    let options = shared.options(request.max_record, &question.kernel);
    question.check_files(files).map_err(Refusal::from)?;
    let file = own_parts(shared, files, request)?;
    let mut run = question.request_over(file, options).map_err(Refusal::from)?;
    // Chunks that statistics settle are not read, and so their checksums are not compared.
    run.options.statistics = request.statistics && !request.verify;
    run.fold_policy = match request.place {
        FoldPlace::Osd => FoldPolicy::Always,
        FoldPlace::Storage => FoldPolicy::Never,
        FoldPlace::Auto | FoldPlace::Client => FoldPolicy::Auto,
    };
    run.statistics = statistics::for_request(shared, files, &run);
    Ok((run, question.kernel))
}

/// Checks that the nodes to ask have the addresses of the grant, so that no request makes a node contact others.
pub(crate) fn check_rest(file: &FileMap, own: &[u32], rest: &[NodeShard]) -> Answer<()> {
    let named = own.iter().chain(rest.iter().flat_map(|shard| &shard.targets));
    check_once(named)?;
    check_places(file, rest)
}

/// Checks that all members of a group have the addresses of the grant.
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
            let text = format!("{} is not the node of these targets; open the file again", shard.address);
            Err(Refusal::new(ErrorKind::Denied, text))
        }
    }
}

/// Opens the grants of a request. Returns the grant of the first file, and all files. All grants have one principal.
pub(crate) fn granted(shared: &Shared, request: &FoldRequest) -> Answer<(Grant, Files)> {
    let grant = shared.grant(&request.grant, Rights::Read)?;
    let first = (grant.file.clone(), Arc::from(request.grant.as_str()));
    let mut each = vec![first];
    for sealed in &request.more {
        let further = shared.grant(sealed, Rights::Read)?;
        if further.principal != grant.principal {
            return Err(Refusal::new(
                ErrorKind::Denied,
                "the grants are of several principals; open the files again",
            ));
        }
        each.push((further.file, sealed.as_str().into()));
    }
    Ok((grant, Files::several(each).map_err(Refusal::from)?))
}

/// The files on this node: its own targets are in its store, other targets are read over the network.
fn own_parts(
    shared: &Arc<Shared>,
    files: &Files,
    request: &FoldRequest,
) -> Answer<gristmill_runtime::FileParts> {
    let number = shared.number()?;
    let own =
        |target: &u32| files.map().targets.get(*target as usize).is_some_and(|one| one.number == number);
    if !request.targets.iter().all(own) {
        return Err(elsewhere(&shared.address));
    }
    let parts = |map: &FileMap, sealed: &Arc<str>| own_file(shared, number, map, sealed, request.verify);
    files.parts_with(ON_STORAGE, parts).map_err(Refusal::from)
}

/// One of these files.
fn own_file(
    shared: &Arc<Shared>,
    number: u32,
    map: &FileMap,
    sealed: &Arc<str>,
    verify: bool,
) -> Result<gristmill_runtime::FileParts, RunError> {
    if let Some(attached) = &map.attached {
        // Of several files of a request, this node may not reach the tree of one. Then it reads it through the others.
        if map.targets.iter().any(|place| place.number == number) {
            return crate::attached::own_parts(shared, map, attached);
        }
        return file_parts(&shared.peers.verifying(verify), map, sealed, ON_STORAGE);
    }
    let mut file = file_parts(&shared.peers.verifying(verify), map, sealed, ON_STORAGE)?;
    let object = ObjectId::new(&map.object()).map_err(StoreError::from)?;
    for ((target, place), part) in (0..).zip(&map.targets).zip(&mut file.parts) {
        let expected = file.layout.bytes_on(target, 0..file.length);
        if place.number != number || expected == 0 {
            continue;
        }
        let node = format!("{number} ({})", shared.address);
        let own = StorePart::open_at(shared.store.clone(), object.clone(), Version(place.version), node);
        let own = own.map_err(|error| shared.explain_run_error(&map.path, error))?;
        // The object of a segments file also has a table, which was read for the layout.
        if own.length() != expected && !map.segments {
            let message = format!(
                "storage node {number} ({}) has {} bytes of {} instead of {expected}: its object is damaged; \
                 put the file again from its source",
                shared.address,
                own.length(),
                map.path
            );
            return Err(RunError::Remote { kind: ErrorKind::Failed, message });
        }
        let own = own.verifying(verify).folding(shared.folder.clone());
        *part = Arc::new(if shared.store.is_distant() { own.reading_ahead() } else { own });
    }
    Ok(file)
}
