//! Likely causes of a failure to reach the entry node of a cluster.

/// Adds the most likely cause to the message of a failure to reach the node at `entry`. `tls` says whether the client
/// speaks TLS.
pub(crate) fn explain_unreachable(message: &str, entry: &str, tls: bool) -> String {
    let message = message.replacen("storage node", "the entry node", 1);
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if tls && has(&["corrupt message", "InvalidContentType"]) {
        return format!(
            "the node at {entry} does not speak TLS; leave GRISTMILL_CA out, or start it with --cert and --tls-key"
        );
    }
    if !tls && has(&["closed", "reset", "roken pipe", "invalid size", "http2 error", "protocol error"]) {
        return format!("{message}; if it speaks TLS only, set GRISTMILL_CA");
    }
    message
}
