//! The clients of the object stores, from options and the environment.

use std::sync::Arc;

use gristmill_backend::{BackendError, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;

use crate::bucket::Store;
use crate::http_client::HttpClient;
use crate::retry::no_store_retries;
use crate::store_error::innermost;
use crate::{Access, AccessKey, Scheme, SourceUrl, SourcesOptions};

/// The client of the store of a bucket.
pub(crate) fn open_store(
    url: &SourceUrl,
    options: &SourcesOptions,
    http: HttpClient,
) -> Result<Arc<dyn Store>> {
    let failed = |error: object_store::Error| BackendError::Unavailable {
        name: url.to_string(),
        why: format!("{}; check the options and the variables of the environment", innermost(&error)),
    };
    if let Access::Key(AccessKey { id, token, .. }) = &options.access
        && !(is_visible(id) && token.as_deref().is_none_or(is_visible))
    {
        let why =
            "the key, or the token of its session, has letters that keys do not have; check them".to_owned();
        return Err(BackendError::Denied { name: url.to_string(), why });
    }
    Ok(match url.scheme() {
        Scheme::Gs => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(url.container());
            let builder = if options.anonymous { builder.with_skip_signature(true) } else { builder };
            let builder = builder.with_retry(no_store_retries()).with_http_connector(http);
            Arc::new(builder.build().map_err(failed)?)
        }
        Scheme::Az => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(url.container());
            let builder = if options.anonymous { builder.with_skip_signature(true) } else { builder };
            let builder = builder.with_retry(no_store_retries()).with_http_connector(http);
            Arc::new(builder.build().map_err(failed)?)
        }
        _ => Arc::new(s3(url, options, http).build().map_err(failed)?),
    })
}

/// Whether a text can be sent in a header.
fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn s3(url: &SourceUrl, options: &SourcesOptions, http: HttpClient) -> AmazonS3Builder {
    let mut builder = match &options.access {
        Access::Environment => AmazonS3Builder::from_env(),
        Access::Anonymous => AmazonS3Builder::new().with_skip_signature(true),
        Access::Key(key) => {
            let builder =
                AmazonS3Builder::new().with_access_key_id(&key.id).with_secret_access_key(&key.secret);
            match &key.token {
                Some(token) => builder.with_token(token),
                None => builder,
            }
        }
    };
    builder = builder.with_bucket_name(url.container());
    if let Some(endpoint) = &options.endpoint {
        // The environment may have named a server for S3 alone, which would count more.
        builder = builder.with_endpoint(endpoint).with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    }
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    let endpoints = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let named = endpoints.iter().find_map(|key| builder.get_config_value(key));
    // Who names such an endpoint wants it. Requests are signed, and the secret itself is not sent.
    let plain = named.is_some_and(|endpoint| endpoint.starts_with("http://"));
    builder.with_allow_http(plain).with_retry(no_store_retries()).with_http_connector(http)
}
