//! What a failed hook wrote: the end of the log of the container that ran it. Others may have been injected beside it.

use boathook_runtime::{error_class::chain, in_time};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::LogParams};

use super::hook_pods::runs_again;

/// How much is kept: lines that are asked for, and bytes at the end of them.
const TAIL_LINES: i64 = 100;
const TAIL_BYTES: usize = 10 << 10;

/// That it cannot be read is no reason to wait.
pub(super) async fn tail(pods: &Api<Pod>, pod: &Pod, container_name: Option<&str>) -> Option<String> {
    let asked = LogParams {
        container: container_name.map(str::to_owned),
        previous: runs_again(pod, container_name),
        tail_lines: Some(TAIL_LINES),
        limit_bytes: Some(1 << 20),
        ..LogParams::default()
    };
    let name = pod.name_any();
    match in_time(pods.logs(&name, &asked)).await {
        Ok(log) => {
            let from = log.len().saturating_sub(TAIL_BYTES);
            let from = (from..=log.len()).find(|place| log.is_char_boundary(*place)).unwrap_or(0);
            Some(log[from..].to_owned()).filter(|tail| !tail.is_empty())
        }
        Err(error) => {
            tracing::warn!(pod = name, error = chain(&error), "failed to read the log of a hook pod");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::{Client, client::Body};
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// As the API server answers about a pod of two containers: it must be told which.
    async fn answer(request: Request<Body>) -> Result<Response<Body>, std::io::Error> {
        let query = request.uri().query().unwrap_or_default();
        let (code, text) = match query.split('&').any(|part| part == "container=web") {
            true => (200, format!("{}the end", "ä".repeat(TAIL_BYTES))),
            false => (400, "a container name must be specified".to_owned()),
        };
        Response::builder().status(code).body(Body::from(text.into_bytes())).map_err(std::io::Error::other)
    }

    #[tokio::test]
    async fn it_is_the_hook_that_is_read_and_not_what_was_injected_beside_it() {
        let pods = Api::namespaced(Client::new(service_fn(answer), "default"), "default");
        let containers = json!([{"name": "web"}, {"name": "injected"}]);
        let pod = json!({"metadata": {"name": "web-pre"}, "spec": {"containers": containers}});
        let read = tail(&pods, &serde_json::from_value(pod).unwrap(), Some("web")).await.unwrap();
        assert!(read.ends_with("the end") && read.len() <= TAIL_BYTES, "{} bytes", read.len());
    }
}
