//! Errors as gRPC statuses: our errors arrive unchanged, and other errors keep their kind.
#![allow(clippy::unwrap_used)]

use gristmill_peers::{from_status, to_status, unavailable};
use gristmill_runtime::ErrorKind;
use gristmill_wire::ErrorBody;
use tonic::{Code, Status};

#[test]
fn every_kind_arrives_with_its_message() {
    for (kind, _) in ErrorKind::NAMES {
        let status = to_status(&ErrorBody::new(kind, "what was wrong; what to do"));
        assert_ne!(status.code(), Code::Ok);
        assert_eq!(status.message(), "what was wrong; what to do", "other clients see it too");
        let error = from_status("3 (a:1)", &status);
        assert_eq!((error.kind(), error.to_string()), (kind, "what was wrong; what to do".to_owned()));
    }
}

#[test]
fn kinds_have_codes_that_other_clients_know() {
    let code = |kind| to_status(&ErrorBody::new(kind, "m")).code();
    assert_eq!(code(ErrorKind::Usage), Code::InvalidArgument);
    assert_eq!(code(ErrorKind::NotFound), Code::NotFound);
    assert_eq!(code(ErrorKind::Denied), Code::PermissionDenied);
    assert_eq!(code(ErrorKind::Unavailable), Code::Unavailable);
    let unknown = ErrorBody { kind: "melted".into(), message: "m".into(), retry_after: None };
    assert_eq!(to_status(&unknown).code(), Code::Internal);
}

#[test]
fn a_plain_status_keeps_its_kind_and_names_the_node() {
    for (code, kind) in [
        (Code::InvalidArgument, ErrorKind::Usage),
        (Code::Unimplemented, ErrorKind::Usage),
        (Code::NotFound, ErrorKind::NotFound),
        (Code::PermissionDenied, ErrorKind::Denied),
        (Code::Unauthenticated, ErrorKind::Denied),
        (Code::ResourceExhausted, ErrorKind::Busy),
        (Code::Unavailable, ErrorKind::Unavailable),
        (Code::Unknown, ErrorKind::Unavailable),
        (Code::Internal, ErrorKind::Unavailable),
    ] {
        for details in ["", "no JSON", r#"{"kind":"usage"}"#] {
            let status = Status::with_details(code, "its words", details.as_bytes().to_vec().into());
            let error = from_status("3 (a:1)", &status);
            assert_eq!(error.kind(), kind, "{code:?}");
            let text = error.to_string();
            assert!(text.contains("3 (a:1)") && text.contains("its words"), "{code:?}: {text}");
        }
    }
}

#[test]
fn the_innermost_cause_is_in_the_message() {
    let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
    let status = Status::from_error(Box::new(std::io::Error::other(refused)));
    let error = from_status("3 (a:1)", &status);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("connection refused"), "{error}");
}

#[test]
fn an_error_about_a_lost_node_names_it_and_says_what_to_do() {
    let error = unavailable("3 (a:1)", "timed out");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    assert!(
        text.contains("3 (a:1)") && text.contains("timed out") && text.contains("start it again"),
        "{text}"
    );
}
