//! What is written: ConfigMaps of about 2 KiB, in a namespace of their own.

use anyhow::Result;
use serde_json::json;

use crate::client::Target;

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/bench/configmaps";

const ENTRIES: usize = 10;
const ENTRY: usize = 190;

pub(crate) async fn make_namespace(target: &Target) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}});
    target.connect().await?.create("/api/v1/namespaces", namespace.to_string()).await
}

pub(crate) fn config_map(name: &str) -> String {
    let data: serde_json::Map<_, _> =
        (0..ENTRIES).map(|entry| (format!("entry-{entry}"), "x".repeat(ENTRY).into())).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_of_about_two_kib() {
        let length = config_map("writes-64-1-63-10000").len();
        assert!((2000..2300).contains(&length), "{length}");
    }
}
