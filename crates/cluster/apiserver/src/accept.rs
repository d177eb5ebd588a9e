//! What a client wants to be answered with, by its `Accept` header.

/// The form of an answer. All are JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The object, the list or the document itself.
    Plain,
    /// `meta.k8s.io/v1` Table: what `kubectl get` prints.
    Table,
    /// `meta.k8s.io/v1` PartialObjectMetadata (or its list).
    PartialObjectMetadata,
    /// All groups, versions and resources at once; this version of `apidiscovery.k8s.io`.
    AggregatedDiscovery(&'static str),
}

/// The first form of the header that is served; none if there is none (406). An absent header is [`Form::Plain`].
pub fn asked_form(accept: &str) -> Option<Form> {
    if accept.trim().is_empty() {
        return Some(Form::Plain);
    }
    accept.split(',').find_map(form)
}

fn form(clause: &str) -> Option<Form> {
    let mut parts = clause.split(';').map(str::trim);
    if !matches!(parts.next()?, "application/json" | "*/*") {
        return None;
    }
    let (mut target, mut group, mut version) = ("", "", "");
    for (name, value) in parts.filter_map(|part| part.split_once('=')) {
        match name {
            "as" => target = value,
            "g" => group = value,
            "v" => version = value,
            _ => {}
        }
    }
    match (target, group, version) {
        ("", _, _) => Some(Form::Plain),
        ("Table", "meta.k8s.io", "v1") => Some(Form::Table),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
            Some(Form::PartialObjectMetadata)
        }
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Form::AggregatedDiscovery("v2")),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => Some(Form::AggregatedDiscovery("v2beta1")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_gets_what_it_prefers() {
        let get = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(asked_form(get), Some(Form::Table));
        let discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                         application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(asked_form(discovery), Some(Form::AggregatedDiscovery("v2")));
    }

    #[test]
    fn a_form_that_is_not_served_leaves_the_turn_to_the_next() {
        assert_eq!(asked_form("application/vnd.kubernetes.protobuf, application/json"), Some(Form::Plain));
        assert_eq!(asked_form("application/json;as=Chart;v=v1;g=meta.k8s.io, */*"), Some(Form::Plain));
        assert_eq!(asked_form("text/html"), None);
        assert_eq!(asked_form(""), Some(Form::Plain));
    }

    #[test]
    fn a_metadata_watch_gets_metadata() {
        let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;stream=watch";
        assert_eq!(asked_form(accept), Some(Form::PartialObjectMetadata));
    }
}
