//! Folds inside the storage daemons, by the object class of the crate `object-class`.

use std::ffi::{CStr, CString};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gristmill_object_fold::{
    FoldOrder, FoldRefusal, Folded, MAX_SPANS, ObjectFolder, Span, check_foldable, split_spans,
};
use gristmill_store::ObjectId;
use gristmill_store::rules::lock;
use rustix::io::Errno;

use crate::client::Call;
use crate::piece::PIECE_BYTES;
use crate::store::RadosStore;

const CLASS: &CStr = c"gristmill";
const METHOD: &CStr = c"fold";

/// Time for which daemons that refused to fold are not asked again.
const REFUSED_TIME: Duration = Duration::from_secs(30);

/// The last refusal, and when it came.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<Option<(Instant, FoldRefusal)>>);

impl Refusals {
    /// The refusal that still counts.
    fn current(&self) -> Option<FoldRefusal> {
        let refused = lock(&self.0);
        refused.as_ref().filter(|(at, _)| at.elapsed() < REFUSED_TIME).map(|(_, refusal)| refusal.clone())
    }

    fn note(&self, refusal: &FoldRefusal) {
        *lock(&self.0) = Some((Instant::now(), refusal.clone()));
    }
}

/// A part of an object that one call folds.
struct Asked {
    name: CString,
    spans: Vec<Span>,
}

impl ObjectFolder for RadosStore {
    /// Records that lie in two pieces, and those of pieces that do not exist, are not folded. A refusal is remembered for half a minute.
    fn fold(&self, object: &str, order: &FoldOrder, spans: &[Span]) -> Result<Folded, FoldRefusal> {
        if let Some(refusal) = self.refusals.current() {
            return Err(refusal);
        }
        let nothing = Ok(Folded::default());
        let Ok(id) = ObjectId::new(object) else { return nothing };
        let spec = order.binding.bind().map_err(|error| FoldRefusal(error.to_string()))?.spec();
        let record = check_foldable(&spec, order.last).map_err(|error| FoldRefusal(error.to_string()))?;
        let asked: Vec<Asked> = split_spans(spans, record, PIECE_BYTES)
            .pieces
            .into_iter()
            .filter_map(|(index, mut spans)| {
                spans.truncate(MAX_SPANS);
                Some(Asked { name: self.name_of_piece(&id, index)?, spans })
            })
            .collect();
        let call = |asked: &Asked| {
            let input = order.encode(&asked.spans).map_err(|error| FoldRefusal(error.to_string()))?;
            Ok(Call { name: asked.name.clone(), input })
        };
        let calls = asked.iter().map(call).collect::<Result<Vec<_>, FoldRefusal>>()?;
        let mut folded = Folded::default();
        let mut refused = None;
        for (answer, asked) in self.pool().call_all(CLASS, METHOD, &calls).into_iter().zip(&asked) {
            match answer {
                // What a daemon answers wrongly is read and folded by the node.
                Ok(answer) => folded.add(Folded::decode(&answer, &asked.spans).unwrap_or_default()),
                Err(errno) => refused = refused.or(refusal(errno)),
            }
        }
        match refused {
            Some(refusal) => {
                self.refusals.note(&refusal);
                Err(refusal)
            }
            None => Ok(folded),
        }
    }

    fn refuses(&self) -> bool {
        self.refusals.current().is_some()
    }
}

/// The refusal that an error number means. `None` if the error concerns a single object.
fn refusal(errno: Errno) -> Option<FoldRefusal> {
    let why = match errno {
        Errno::OPNOTSUPP => {
            "a storage daemon has no object class 'gristmill'; install libcls_gristmill.so on all of them, and see that \
             osd_class_load_list names it"
        }
        // A class that a daemon does not have, and one that is not on the second list, are refused in this way too.
        Errno::PERM | Errno::ACCESS => {
            "a storage daemon does not let this key call the object class 'gristmill'; see that libcls_gristmill.so is installed, \
             that osd_class_load_list and osd_class_default_list name it, and that the key has the right \
             \"osd: allow rwx pool=POOL\""
        }
        Errno::PROTO => {
            "the object class 'gristmill' is of another version; install libcls_gristmill.so of this version and restart the \
             storage daemons"
        }
        _ => return None,
    };
    Some(FoldRefusal(why.to_owned()))
}
