//! What a request asks for, read from its method, path and query: before anything is looked up or allowed.

use std::collections::BTreeMap;

use crate::access::Attributes;
use crate::status::{Result, Status};

/// The verbs of Kubernetes, as access rules name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// A request to objects: `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub verb: Verb,
    pub group: String,
    pub version: String,
    pub resource: String,
    /// Empty: none was named.
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

impl Target {
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes {
            verb: self.verb.name(),
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
            subresource: &self.subresource,
            name: &self.name,
            namespace: &self.namespace,
            path: "",
        }
    }
}

/// The query's parameters. A repeated key counts once, the last one: none of those that are read here repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub fn parse(query: &str) -> Self {
        let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            // In a query, and only there, a plus is a space.
            let decode = |text: &str| unescaped(&text.replace('+', " "));
            map.entry(decode(key)).or_default().push(decode(value));
        }
        Self(map)
    }

    /// The value of a parameter; empty if it is not there.
    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).and_then(|values| values.last()).map(String::as_str).unwrap_or_default()
    }

    /// Every value of a parameter that may be repeated (`command=sh&command=-c`).
    pub fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    /// A switch: everything but `false` and `0` is on, as Kubernetes reads it.
    pub fn is_set(&self, key: &str) -> bool {
        self.0.contains_key(key) && self.get(key) != "0" && !self.get(key).eq_ignore_ascii_case("false")
    }

    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>> {
        match self.get(key) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let why = if text.parse::<i128>().is_ok() { "value out of range" } else { "invalid syntax" };
                Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
            }),
        }
    }

    /// The version that is asked for; what cannot be one, in Kubernetes' words.
    pub fn version(&self) -> std::result::Result<Option<u64>, String> {
        match self.get("resourceVersion") {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
                format!("resourceVersion: Invalid value: {text:?}: {why}")
            }),
        }
    }
}

/// The target of a path; none if it is no path to objects (discovery, health, version).
pub fn target(method: &str, path: &str, query: &Query) -> Result<Option<Target>> {
    if path.contains("//") {
        return Ok(None);
    }
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(unescaped).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Ok(None),
    };
    let (namespace, resource, name, subresource) = match rest {
        [] => return Ok(None),
        // A namespace is an object too, and has two subresources of its own.
        ["namespaces"] => ("", "namespaces", "", String::new()),
        ["namespaces", name] => (*name, "namespaces", *name, String::new()),
        ["namespaces", name, sub @ ("status" | "finalize")] => (*name, "namespaces", *name, (*sub).to_owned()),
        ["namespaces", namespace, resource] => (*namespace, *resource, "", String::new()),
        ["namespaces", namespace, resource, name, sub @ ..] => (*namespace, *resource, *name, sub.join("/")),
        [resource] => ("", *resource, "", String::new()),
        [resource, name, sub @ ..] => ("", *resource, *name, sub.join("/")),
    };
    if name.contains('/') {
        return Ok(None);
    }
    if matches!(name, "." | "..") {
        return Err(Status::bad_request(format!("Name parameter invalid: {name:?}: may not be '{name}'")));
    }
    let verb = verb(method, name, &subresource, query)?;
    Ok(Some(Target {
        verb,
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource,
    }))
}

fn verb(method: &str, name: &str, subresource: &str, query: &Query) -> Result<Verb> {
    let named = !name.is_empty();
    Ok(match method {
        "GET" | "HEAD" if named => Verb::Get,
        "GET" | "HEAD" if query.is_set("watch") => Verb::Watch,
        "GET" | "HEAD" => Verb::List,
        "POST" if !named || !subresource.is_empty() => Verb::Create,
        "PUT" if named => Verb::Update,
        "PATCH" if named => Verb::Patch,
        "DELETE" if named => Verb::Delete,
        "DELETE" => Verb::DeleteCollection,
        _ => return Err(Status::method_not_allowed()),
    })
}

/// Percent decoding; what is not valid stays as it is.
pub(crate) fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, path: &str, query: &str) -> Target {
        target(method, path, &Query::parse(query)).unwrap().unwrap()
    }

    #[test]
    fn a_path_names_group_namespace_resource_name_and_subresource() {
        let target = read("GET", "/apis/apps/v1/namespaces/shop/deployments/web/status", "");
        assert_eq!((target.verb, target.group.as_str(), target.version.as_str()), (Verb::Get, "apps", "v1"));
        assert_eq!((target.namespace.as_str(), target.resource.as_str()), ("shop", "deployments"));
        assert_eq!((target.name.as_str(), target.subresource.as_str()), ("web", "status"));
    }

    #[test]
    fn a_namespace_is_an_object_in_itself() {
        let target = read("DELETE", "/api/v1/namespaces/shop", "");
        assert_eq!(
            (target.resource.as_str(), target.namespace.as_str(), target.name.as_str()),
            ("namespaces", "shop", "shop")
        );
        assert_eq!(read("PUT", "/api/v1/namespaces/shop/finalize", "").subresource, "finalize");
        assert_eq!(read("GET", "/api/v1/namespaces/shop/pods", "").resource, "pods");
    }

    #[test]
    fn a_watch_is_a_list_with_a_switch() {
        assert_eq!(read("GET", "/api/v1/pods", "watch=true").verb, Verb::Watch);
        assert_eq!(read("GET", "/api/v1/pods", "watch=0").verb, Verb::List);
        assert_eq!(read("GET", "/api/v1/namespaces/a/pods/b", "watch=1").verb, Verb::Get);
    }

    #[test]
    fn other_paths_have_no_target_and_a_put_on_a_collection_is_refused() {
        assert_eq!(target("GET", "/version", &Query::default()), Ok(None));
        assert_eq!(target("GET", "/apis/apps/v1", &Query::default()), Ok(None));
        assert_eq!(target("PUT", "/api/v1/pods", &Query::default()), Err(Status::method_not_allowed()));
    }

    #[test]
    fn a_query_is_decoded_and_may_repeat() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+(d)&command=sh&command=-c&limit=x");
        assert_eq!(query.get("labelSelector"), "a=b,c in (d)");
        assert_eq!(query.all("command"), ["sh", "-c"]);
        assert!(query.number::<i64>("limit").is_err());
        assert_eq!(Query::parse("a=%zz%").get("a"), "%zz%");
        assert_eq!(read("GET", "/api/v1/nodes/a+b%20c", "").name, "a+b c");
    }
}
