//! Metrics of a node, for Prometheus: `GET /metrics`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gristmill_runtime::ErrorKind;
use http::header;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::door::request_principal;
use crate::error::{Answer, Refusal};
use crate::shared::Shared;

/// The route.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/metrics", get(metrics))
}

type Share = Gauge<f64, AtomicU64>;
type Labels = [(&'static str, String); 1];

async fn metrics(State(shared): State<Arc<Shared>>, request: Request) -> Answer<Response> {
    request_principal(request.extensions())?;
    let mut text = String::new();
    let registry = registry(&shared);
    encode(&mut text, &registry).map_err(|error| Refusal::new(ErrorKind::Failed, error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], Body::from(text)).into_response())
}

/// The current values. Names and units follow the OpenMetrics conventions.
fn registry(shared: &Shared) -> Registry {
    let mut registry = Registry::with_prefix("gristmill");
    let (load, counts) = (shared.contention.load(""), shared.contention.counts());
    let mut share = |name: &str, help: &str, value: f64| {
        let gauge = Share::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    share("cpu_used_ratio", "Share of the processors that is used", load.cpu);
    share(
        "cpu_others_ratio",
        "Share of the processors that is used, but not by active requests",
        load.others,
    );
    share("active_cores", "Processors that active requests may use now", load.cores);
    share("active_queue_seconds", "Seconds for which these have active work", load.queued);
    share("link_bytes_per_second", "How fast the link to clients is taken to be", load.link);
    share(
        "link_measured",
        "1 if that was measured lately, 0 if it is what is said of it",
        f64::from(u8::from(load.link_measured)),
    );
    share("normal_requests", "Normal reads and writes that are being served", load.normal as f64);
    share(
        "link_queue_seconds",
        "Seconds for which the link has to send what was handed back",
        load.link_busy,
    );
    if let Some(io) = load.io {
        share("io_waiting_ratio", "Share of the last ten seconds in which something waited for I/O", io);
    }
    if let Some((available, total)) = load.memory {
        share("memory_available_bytes", "Memory that can be had", available as f64);
        share("memory_total_bytes", "All memory", total as f64);
    }
    let active = Family::<Labels, Gauge>::default();
    let waiting = load.active.saturating_sub(load.running);
    for (state, count) in [("running", load.running), ("waiting", waiting)] {
        active.get_or_create(&[("state", state.to_owned())]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register("active_requests", "Active requests that are here", active);
    let labels = |kernel: &str| [("kernel", kernel.to_owned())];
    let ended = Family::<Labels, Counter>::default();
    let handed_back = Family::<Labels, Counter>::default();
    let bytes = Family::<Labels, Counter>::default();
    let rates = Family::<Labels, Share>::default();
    for (kernel, counts) in &counts.kernels {
        ended.get_or_create(&labels(kernel)).inc_by(counts.ended);
        handed_back.get_or_create(&labels(kernel)).inc_by(counts.handed_back);
        bytes.get_or_create(&labels(kernel)).inc_by(counts.bytes);
        rates.get_or_create(&labels(kernel)).set(shared.contention.rate(kernel).0);
    }
    registry.register("active_ended", "Active requests whose work ended here", ended);
    registry.register(
        "active_handed_back",
        "Active requests that were handed back to their clients",
        handed_back,
    );
    registry.register_with_unit("folded", "What active requests folded here", Unit::Bytes, bytes);
    registry.register("kernel_bytes_per_core_second", "Measured speed of a kernel on one core", rates);
    let refused = Family::<Labels, Counter>::default();
    for permits in shared.permits() {
        refused.get_or_create(&[("requests", permits.what().to_owned())]).inc_by(permits.refused());
    }
    registry.register("refused", "Requests that were refused as busy", refused);
    let free = Family::<Labels, Gauge>::default();
    for memory in shared.memories() {
        let bytes = i64::try_from(memory.free()).unwrap_or(i64::MAX);
        free.get_or_create(&[("for", memory.what().to_owned())]).set(bytes);
    }
    registry.register_with_unit(
        "request_memory_free",
        "Memory that requests may have yet",
        Unit::Bytes,
        free,
    );
    if let Some(books) = &shared.statistics {
        let bytes = Gauge::<i64>::default();
        bytes.set(i64::try_from(books.bytes()).unwrap_or(i64::MAX));
        registry.register_with_unit(
            "statistics_memory",
            "Statistics of chunks in memory",
            Unit::Bytes,
            bytes,
        );
        let failed = Counter::<u64>::default();
        failed.inc_by(books.failed());
        registry.register(
            "statistics_not_written",
            "Statistics of an object that could not be written",
            failed,
        );
    }
    if let Some(counts) = shared.trees.cache_counts() {
        let bytes = Gauge::<i64>::default();
        bytes.set(i64::try_from(counts.bytes).unwrap_or(i64::MAX));
        registry.register_with_unit(
            "outside_cache",
            "Ranges of attached trees on the disk",
            Unit::Bytes,
            bytes,
        );
        let reads = Family::<Labels, Counter>::default();
        for (result, number) in [("found", counts.found), ("missed", counts.missed)] {
            reads.get_or_create(&[("result", result.to_owned())]).inc_by(number);
        }
        registry.register("outside_cache_reads", "Ranges of attached trees that were read", reads);
        let failed = Counter::<u64>::default();
        failed.inc_by(counts.failed);
        registry.register(
            "outside_cache_not_written",
            "Ranges that could not be written to the disk",
            failed,
        );
    }
    let cpu = Counter::<f64, AtomicU64>::default();
    cpu.inc_by(shared.contention.cap.used());
    registry.register_with_unit("active_cpu", "Processor time of active requests", Unit::Seconds, cpu);
    let decisions = Counter::<u64>::default();
    decisions.inc_by(counts.decisions);
    registry.register("decisions", "How often it was decided where active requests run", decisions);
    let seconds = Counter::<f64, AtomicU64>::default();
    seconds.inc_by(counts.seconds);
    registry.register_with_unit("deciding", "Time that decisions took", Unit::Seconds, seconds);
    registry
}
