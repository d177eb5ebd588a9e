//! Objects of which only the metadata is told: `meta.k8s.io/v1` PartialObjectMetadata.

use serde_json::{Value, json};

pub fn partial(object: &Value) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

/// `metadata` is the list's own.
pub fn partial_list<'a>(objects: impl IntoIterator<Item = &'a Value>, metadata: Value) -> Value {
    let items: Vec<Value> = objects.into_iter().map(partial).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "items": items,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_metadata_is_told() {
        let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"k": "dg=="}});
        let list = partial_list([&secret], json!({"resourceVersion": "5"}));
        let wanted = json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "5"},
            "items": [{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}],
        });
        assert_eq!(list, wanted);
    }
}
