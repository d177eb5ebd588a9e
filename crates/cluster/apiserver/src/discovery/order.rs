//! The order in which groups, versions and resources are told: a group's first version is the preferred one.

use std::cmp::Reverse;
use std::sync::Arc;

use super::Served;

/// Sorts versions as Kubernetes prefers them: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then other names by
/// alphabet.
pub fn version_priority(version: &str) -> impl Ord + use<> {
    let stability = |name: &str| match name {
        "" => Some(3),
        "beta" => Some(2),
        "alpha" => Some(1),
        _ => None,
    };
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let (major, rest) = split_number(rest);
        let word = rest.trim_end_matches(|character: char| character.is_ascii_digit());
        let minor = &rest[word.len()..];
        if word.is_empty() != minor.is_empty() {
            return None;
        }
        Some((stability(word)?, major.parse::<u32>().ok()?, minor.parse::<u32>().unwrap_or(0)))
    });
    (Reverse(parsed), version.to_owned())
}

fn split_number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len()))
}

/// The groups that Kubernetes puts before others, which clients search in this order.
const FIRST: [&str; 11] = [
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
];

/// The named groups: built-in ones in Kubernetes' order, then custom ones by name.
pub(super) fn groups(served: &[Arc<Served>]) -> Vec<&str> {
    let mut custom: Vec<&str> = named(served, true).collect();
    custom.sort_unstable();
    let mut groups = Vec::new();
    let mut built_in: Vec<&str> = named(served, false).collect();
    built_in.sort_by_key(|group| FIRST.iter().position(|first| first == group).unwrap_or(FIRST.len()));
    for group in built_in.into_iter().chain(custom) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

fn named(served: &[Arc<Served>], custom: bool) -> impl Iterator<Item = &str> {
    let groups = served.iter().filter(move |served| served.custom == custom).map(|served| served.group.as_str());
    groups.filter(|group| !group.is_empty())
}

/// A group's versions, the preferred one first.
pub(super) fn versions<'a>(served: &'a [Arc<Served>], group: &str) -> Vec<&'a str> {
    let of_group = served.iter().filter(|served| served.group == group);
    let mut versions: Vec<&str> = of_group.map(|served| served.version.as_str()).collect();
    versions.sort_by_key(|version| version_priority(version));
    versions.dedup();
    versions
}

/// The resources of one version, by name.
pub(super) fn resources<'a>(served: &'a [Arc<Served>], group: &str, version: &str) -> Vec<&'a Served> {
    let of_version = served.iter().filter(|served| served.group == group && served.version == version);
    let mut resources: Vec<&Served> = of_version.map(Arc::as_ref).collect();
    resources.sort_by(|one, other| one.plural.cmp(&other.plural));
    resources
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use super::*;

    #[test]
    fn stable_versions_come_first_and_then_the_higher_ones() {
        let wanted = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "v1x"];
        let mut versions = wanted;
        versions.reverse();
        versions.sort_by_key(|version| version_priority(version));
        assert_eq!(versions, wanted);
    }

    #[test]
    fn custom_groups_come_last() {
        let mut all = examples::all();
        all.reverse();
        assert_eq!(groups(&all), ["apps", "printing.example.com"]);
        assert_eq!(versions(&all, "printing.example.com"), ["v1", "v1beta1"]);
    }
}
