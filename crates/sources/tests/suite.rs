//! The tests that every backend passes, for the protocol of S3 and for web servers.

#![allow(clippy::unwrap_used, missing_docs)]

mod server;

use server::{S3, Server, Web};

gristmill_backend::backend_suite!(s3, S3::start());
gristmill_backend::backend_suite!(s3_with_short_pages, S3::with_pages(3, true));
gristmill_backend::backend_suite!(s3_without_tokens, S3::with_pages(3, false));
gristmill_backend::backend_suite!(web, Web::start());
gristmill_backend::backend_suite!(s3_with_a_cache, S3(Server::cached()));
gristmill_backend::backend_suite!(web_with_a_cache, Web(Server::cached()));
