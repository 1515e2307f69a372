//! Arrow Flight service: folds, requests by path, and management.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use gristmill_flight::{
    Action, ActionResult, ActionType, Answers, Criteria, DescriptorType, Empty, FlightData, FlightDescriptor,
    FlightEndpoint, FlightInfo, FlightServer, FlightService, Ticket, encode_batches,
};
use gristmill_namespace::Principal;
use gristmill_peers::{frame_batch, frame_schema};
use gristmill_runtime::ErrorKind;
use gristmill_transport::{Origin, Peer};
use gristmill_wire::action::{self, FileInfo, names};
use gristmill_wire::{FoldRequest, Frame, MAX_REQUEST_BYTES, RunRequest, SourceAccess};
use tokio::sync::{mpsc, oneshot};
use tonic::{Request, Response, Status};

use crate::actions::{ACTIONS, answer};
use crate::blocking::blocking;
use crate::door::{Caller, request_principal};
use crate::error::{Answer, Refusal};
use crate::fold::Fold;
use crate::frames::frames;
use crate::group_fold::GroupFold;
use crate::guard::StopOnDrop;
use crate::limits::{BATCHES_WAITING, READ_FACTOR, SIGN_OF_LIFE};
use crate::listing::Pages;
use crate::requester::{Requester, source_access};
use crate::run::Run;
use crate::sent::Sent;
use crate::shared::Shared;

/// Bytes that gRPC may add around a request.
const ENVELOPE_BYTES: usize = 64 << 10;

/// Largest number of files in one listing.
const MAX_LISTED: usize = 10_000;

/// Request in a ticket.
enum TicketRequest {
    Fold(Box<FoldRequest>),
    Run(RunRequest),
}

/// Creates the Flight service of a node.
pub(crate) fn service(shared: Arc<Shared>) -> FlightServer<Flight> {
    FlightServer::new(Flight(shared), MAX_REQUEST_BYTES + ENVELOPE_BYTES)
}

/// Flight service of a node.
pub(crate) struct Flight(Arc<Shared>);

impl Flight {
    async fn fold(
        &self,
        request: FoldRequest,
        from: Option<IpAddr>,
        caller: Caller,
    ) -> Answer<Answers<FlightData>> {
        let shared = self.0.clone();
        let (sender, waiting) = frames();
        let account = caller.account.clone();
        let control = if request.together.is_some() {
            let check = move || GroupFold::new(&shared, request, from, caller);
            let fold = self.0.checks.run(&account, check).await?;
            let control = fold.control.clone();
            tokio::spawn(fold.run(sender));
            control
        } else {
            let check = move || Fold::new(&shared, request, from, caller);
            let fold = self.0.checks.run(&account, check).await?;
            let control = fold.control.clone();
            tokio::spawn(fold.run(sender));
            control
        };
        let guard = StopOnDrop(control.clone());
        let schema = frame_schema();
        let batches = stream::unfold((waiting, guard), move |(mut waiting, guard)| {
            let (control, schema) = (control.clone(), frame_schema());
            async move {
                let frames = match tokio::time::timeout(SIGN_OF_LIFE, waiting.next()).await {
                    Err(_) => Ok(vec![Frame::Progress(control.progress().0).encode()]),
                    Ok(some) => some?,
                };
                let batch = match frames {
                    Ok(frames) => {
                        frame_batch(&schema, &frames).map_err(|error| Status::internal(error.to_string()))
                    }
                    Err(refusal) => Err(refusal.into()),
                };
                Some((batch, (waiting, guard)))
            }
        });
        Ok(messages(batches, Some(schema), &self.0.sent))
    }

    async fn run(
        &self,
        principal: Principal,
        access: Option<SourceAccess>,
        request: RunRequest,
        caller: Caller,
    ) -> Answer<Answers<FlightData>> {
        let shared = self.0.clone();
        let account: Arc<str> = principal.as_str().into();
        let permit = shared.permit(&shared.waiting_runs, &account)?;
        let check = move || {
            let requester = Requester { principal: &principal, access: access.as_ref() };
            Ok((Run::new(&shared, requester, &request)?, (permit, caller)))
        };
        let (run, held) = self.0.checks.run(&account, check).await?;
        let guard = StopOnDrop(run.control.clone());
        let schema = run.schema();
        let (sender, batches) = mpsc::channel(BATCHES_WAITING);
        let (done, report) = oneshot::channel();
        let shared = self.0.clone();
        let sent = shared.sent.clone();
        tokio::spawn(async move {
            let _held = held;
            let turn = tokio::select! {
                turn = shared.runs.turn(&account) => turn,
                () = sender.closed() => return,
            };
            let _turn = match turn {
                Ok(turn) => turn,
                Err(error) => {
                    // Sending fails if the client is gone.
                    let _ = sender.send(Err(error.into())).await;
                    return;
                }
            };
            let last = sender.clone();
            if tokio::task::spawn_blocking(move || run.run(&sender, done)).await.is_err() {
                // Without an error the client would take these rows for all.
                let text = "the request panicked; please report it";
                let _ = last.send(Err(Refusal::new(ErrorKind::Failed, text))).await;
            }
        });
        let batches = stream::unfold((batches, guard), |(mut batches, guard)| async move {
            let batch = batches.recv().await?;
            Some((batch.map_err(|refusal: Refusal| refusal.into()), (batches, guard)))
        });
        // The last message has only metadata.
        let report = stream::once(report)
            .filter_map(|report| async move { report.ok().map(|text| Ok(FlightData::of_metadata(text))) });
        Ok(Box::pin(messages(batches, schema, &sent).chain(report)))
    }

    fn describe(&self, requester: Requester<'_>, descriptor: FlightDescriptor) -> Answer<FlightInfo> {
        let usage = |text: &str| Refusal::new(ErrorKind::Usage, text);
        match descriptor.r#type() {
            DescriptorType::Cmd => {
                let request = RunRequest::decode(&descriptor.cmd)?;
                // This reports now the errors of a later DoGet.
                Run::new(&self.0, requester, &request)?;
                let ticket = Ticket { ticket: descriptor.cmd.clone() };
                let endpoint = FlightEndpoint { ticket: Some(ticket), location: Vec::new() };
                Ok(FlightInfo { endpoint: vec![endpoint], ..FlightInfo::of(descriptor) })
            }
            DescriptorType::Path => {
                let path = format!("/{}", descriptor.path.join("/").trim_start_matches('/'));
                Ok(file_info(&self.0.stat(requester, &path)?))
            }
            DescriptorType::Unknown => Err(usage("give a path, or a request as JSON in the command")),
        }
    }
}

/// Description of a file as a flight: its length, and everything else as JSON in the metadata.
fn file_info(info: &FileInfo) -> FlightInfo {
    let path = info.file.path.trim_start_matches('/').split('/').map(str::to_owned).collect();
    FlightInfo {
        total_bytes: i64::try_from(info.file.length).unwrap_or(i64::MAX),
        app_metadata: action::encode(info).unwrap_or_default().into(),
        ..FlightInfo::of(FlightDescriptor::of_path(path))
    }
}

/// The messages of these batches, which are counted.
fn messages(
    batches: impl Stream<Item = Result<RecordBatch, Status>> + Send + 'static,
    schema: Option<arrow_schema::SchemaRef>,
    sent: &Sent,
) -> Answers<FlightData> {
    let sent = sent.clone();
    Box::pin(encode_batches(schema, batches).inspect_ok(move |data| sent.message(data)))
}

impl FlightService for Flight {
    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Answers<FlightData>>, Status> {
        let (principal, caller) =
            (request_principal(request.extensions()), Caller::from_extensions(request.extensions())?);
        let from = match request.extensions().get::<Peer>().map(|peer| peer.origin) {
            Some(Origin::Tcp(address)) => Some(address),
            Some(Origin::Unix { .. }) | None => None,
        };
        let access = source_access(request.metadata().as_ref())?;
        let ticket = request.into_inner().ticket;
        let length = ticket.len();
        let asked = caller.read(&self.0.checks, length, move || {
            Ok(match FoldRequest::decode(&ticket)? {
                Some(fold) => TicketRequest::Fold(Box::new(fold)),
                None => TicketRequest::Run(RunRequest::decode(&ticket)?),
            })
        });
        let stream = match asked.await? {
            // The grant names the principal.
            TicketRequest::Fold(fold) => self.fold(*fold, from, caller).await?,
            TicketRequest::Run(run) => self.run(principal?, access, run, caller).await?,
        };
        Ok(Response::new(stream))
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Answers<ActionResult>>, Status> {
        let (principal, caller) =
            (request_principal(request.extensions()), Caller::from_extensions(request.extensions())?);
        let access = source_access(request.metadata().as_ref())?;
        let Action { r#type: name, body } = request.into_inner();
        let answer = if name == names::PING {
            Vec::new()
        } else {
            // A node that joins, and the entry node that asks for a tree, are identified by their seals.
            let principal = if [names::JOIN, names::SEE_TREE].contains(&&*name) {
                principal.unwrap_or_else(|_| Principal::anonymous())
            } else {
                principal?
            };
            let shared = self.0.clone();
            caller.grow(body.len().saturating_mul(READ_FACTOR))?;
            let turn = shared.actions.turn(&caller.account).await.map_err(Refusal::from)?;
            let held = (turn, caller.clone());
            blocking(move || {
                let (_turn, caller) = held;
                let requester = Requester { principal: &principal, access: access.as_ref() };
                let answer = answer(&shared, requester, &name, &body)?;
                caller.grow(answer.len())?;
                Ok::<_, Refusal>(answer)
            })
            .await?
        };
        let result = ActionResult { body: answer.into() };
        Ok(Response::new(Box::pin(stream::once(async move {
            // Held until the answer is sent.
            let _held = caller;
            Ok(result)
        }))))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let (principal, caller) =
            (request_principal(request.extensions())?, Caller::from_extensions(request.extensions())?);
        let access = source_access(request.metadata().as_ref())?;
        let (flight, descriptor) = (Flight(self.0.clone()), request.into_inner());
        caller.grow(descriptor.cmd.len().saturating_mul(READ_FACTOR))?;
        let account = caller.account.clone();
        let check = move || {
            let _held = caller;
            let requester = Requester { principal: &principal, access: access.as_ref() };
            flight.describe(requester, descriptor)
        };
        Ok(Response::new(self.0.checks.run(&account, check).await?))
    }

    async fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> Result<Response<Answers<FlightInfo>>, Status> {
        request_principal(request.extensions())?;
        let caller = Caller::from_extensions(request.extensions())?;
        let access = source_access(request.metadata().as_ref())?;
        let path = String::from_utf8_lossy(&request.into_inner().expression).into_owned();
        let path = if path.is_empty() { "/".to_owned() } else { path };
        let pages = Pages::new(self.0.clone(), &caller.account, access, path, MAX_LISTED)?.stream();
        let files = pages.map_ok(move |page| {
            // Held until the listing is read to its end.
            let _held = &caller;
            let files = page.into_iter().filter_map(|entry| entry.info);
            stream::iter(files.map(|info| Ok::<_, Refusal>(file_info(&info))).collect::<Vec<_>>())
        });
        Ok(Response::new(Box::pin(files.try_flatten().map_err(Status::from))))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Answers<ActionType>>, Status> {
        let types = ACTIONS.map(|action| {
            Ok(ActionType { r#type: action.name.to_owned(), description: action.what.to_owned() })
        });
        Ok(Response::new(Box::pin(stream::iter(types))))
    }

    fn unsupported(&self, method: &str) -> Status {
        let instead = match method {
            "Handshake" => " (a token goes in the header 'authorization')",
            "DoPut" => " (files are written with HTTP: PUT /files/PATH)",
            _ => "",
        };
        Status::unimplemented(format!(
            "{method}{instead} is not supported; ListActions and the documentation list what is"
        ))
    }
}
