//! The bookkeeping of writes that are no applies: who changes a field owns it from then on, the others lose it.

use serde_json::Value;

use super::compare::Comparison;
use super::conflict::Conflicts;
use super::element::Element;
use super::field_set::FieldSet;
use super::managed::{self, Managed, Operation, Owned, Owner};
use super::place::Place;
use super::{Tracked, Writer};

/// More owners by update than this are put together, the oldest first.
const MAX_UPDATERS: usize = 10;

/// Sets the `managedFields` of `new`, which a create (no `live`), an update or a patch is about to store.
///
/// An update of an object that has no managed fields leaves it so: somebody reset them.
pub fn track_update(live: Option<&Value>, new: &mut Value, writer: &Writer<'_>, tracked: &Tracked<'_>) {
    let mut managed = known_owners(live, new, writer);
    managed::strip(new);
    if live.is_some() && managed.is_empty() {
        return;
    }
    managed::forget_other_groups(&mut managed, tracked.api_version);
    note_changes(live.unwrap_or(tracked.blank), new, &mut managed, writer, tracked);
    managed::encode(&managed, new);
}

/// The owners before this write: those that the client sends, if it may and does; else those of the live object.
fn known_owners(live: Option<&Value>, new: &Value, writer: &Writer<'_>) -> Managed {
    let of_live = || live.and_then(|live| managed::decode(live).ok()).unwrap_or_default();
    if !writer.subresource.is_empty() {
        return of_live();
    }
    if managed::is_reset(new) {
        return Managed::new();
    }
    managed::decode(new).ok().filter(|sent| !sent.is_empty()).unwrap_or_else(of_live)
}

/// Gives what differs between `old` and `new` to the writer.
pub(super) fn note_changes(
    old: &Value,
    new: &Value,
    managed: &mut Managed,
    writer: &Writer<'_>,
    tracked: &Tracked<'_>,
) {
    let comparison = compare(old, new, tracked);
    take_from_others(managed, None, &comparison);
    let changed = comparison.written().difference(&never_owned());
    let is_scale = writer.subresource == "scale";
    // In a Scale, no replicas at all is an absent field: nobody's.
    let is_nobodys = is_scale && changed.paths().iter().all(|path| is_zero(new, path));
    if !changed.is_empty() && !is_nobodys {
        let owner = Owner::new(writer.manager, Operation::Update, tracked.api_version, writer.subresource);
        let before = managed.get(&owner).map(|owned| owned.fields.clone()).unwrap_or_default();
        // Kubernetes loses the time on the way from the Scale back to the object.
        let time = (!is_scale).then(|| writer.now.to_owned());
        let api_version = tracked.api_version.to_owned();
        managed.insert(owner, Owned { fields: changed.union(&before), api_version, time });
    }
    put_oldest_together(managed);
}

fn is_zero(object: &Value, path: &[Element]) -> bool {
    let found = path.iter().try_fold(object, |value, element| match element {
        Element::Field(name) => value.get(name),
        Element::Key(_) | Element::Value(_) | Element::Index(_) => None,
    });
    found.is_some_and(|value| *value == 0)
}

pub(super) fn compare(old: &Value, new: &Value, tracked: &Tracked<'_>) -> Comparison {
    Comparison::of(old, new, Place::root(tracked.schema)).without(tracked.reset)
}

/// What of the others' fields a write changes: on an apply that is not forced, they are conflicts.
pub(super) fn conflicts(managed: &Managed, writer: &Owner, comparison: &Comparison) -> Conflicts {
    let written = comparison.written();
    let others = managed.iter().filter(|(owner, _)| *owner != writer);
    let taken = others.map(|(owner, owned)| (owner.clone(), owned.fields.intersection(&written)));
    taken.filter(|(_, fields)| !fields.is_empty()).collect()
}

/// Whoever owned what was changed or removed does no more; who owns nothing any more is gone.
pub(super) fn take_from_others(managed: &mut Managed, writer: Option<&Owner>, comparison: &Comparison) {
    let lost = comparison.written().union(&comparison.removed);
    for (_, owned) in managed.iter_mut().filter(|(owner, _)| Some(*owner) != writer) {
        owned.fields = owned.fields.difference(&lost);
    }
    managed.retain(|_, owned| !owned.fields.is_empty());
}

/// What identifies an object or is the server's own: nobody owns it.
pub(super) fn never_owned() -> FieldSet {
    let metadata = "name namespace creationTimestamp selfLink uid clusterName generation managedFields resourceVersion";
    let metadata: Vec<String> = metadata.split(' ').map(|field| format!("metadata.{field}")).collect();
    let whole = ["apiVersion", "kind", "metadata"];
    FieldSet::of(&whole.into_iter().chain(metadata.iter().map(String::as_str)).collect::<Vec<_>>())
}

/// Keeps the number of updaters bounded: the oldest of a version become one owner, `ancient-changes`.
fn put_oldest_together(managed: &mut Managed) {
    let mut updaters: Vec<(Option<String>, Owner)> = managed
        .iter()
        .filter(|(owner, _)| owner.operation == Operation::Update)
        .map(|(owner, owned)| (owned.time.clone(), owner.clone()))
        .collect();
    let mut count = updaters.len();
    updaters.sort();
    let mut first_of_version: Vec<Owner> = Vec::new();
    for (time, owner) in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        let Some(first) = first_of_version.iter().find(|first| first.api_version == owner.api_version) else {
            first_of_version.push(owner);
            continue;
        };
        let bucket = Owner::new("ancient-changes", Operation::Update, &owner.api_version, "");
        if !managed.contains_key(&bucket)
            && let Some(owned) = managed.remove(first)
        {
            managed.insert(bucket.clone(), owned);
        }
        if let Some(owned) = managed.remove(&owner)
            && let Some(together) = managed.get_mut(&bucket)
        {
            together.fields = together.fields.union(&owned.fields);
            together.time = time;
            count -= 1;
        }
    }
}

/// Takes back the times of managed fields if they are all that a write would change: it then changes nothing.
pub fn keep_times(live: &Value, new: &mut Value) {
    let timeless = |object: &Value| {
        let mut object = object.clone();
        let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        object
    };
    if timeless(live) == timeless(new) {
        *new = live.clone();
    }
}
