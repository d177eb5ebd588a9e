//! Server-side apply: the configuration is merged into the live object, and what the applier no longer mentions and
//! nobody else owns is removed.

use serde_json::{Map, Value};

use super::conflict::{self, Conflicts};
use super::field_set::FieldSet;
use super::fields_of::{fields_of, with_named_parents};
use super::managed::{self, Managed, Operation, Owned, Owner};
use super::merge::{merge, remove};
use super::place::Place;
use super::update::{compare, conflicts, never_owned, note_changes, take_from_others};
use super::validate::validate;
use super::{Tracked, Writer, last_applied};
use crate::object;
use crate::status::{Result, Status};

/// Who owned the fields of an object that nobody kept account of.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The object that results, with its `managedFields`. Without `live` it is created. Defaults come afterwards: nobody
/// owns them.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    force: bool,
    writer: &Writer<'_>,
    tracked: &Tracked<'_>,
) -> Result<Value> {
    check(applied, tracked)?;
    let mut managed = live.map_or_else(|| Ok(Managed::new()), managed::decode).map_err(decode_failed)?;
    if let Some(live) = live.filter(|_| managed.is_empty()) {
        let before = Writer { manager: BEFORE_FIRST_APPLY, ..*writer };
        note_changes(tracked.blank, live, &mut managed, &before, tracked);
    }
    managed::forget_other_groups(&mut managed, tracked.api_version);
    let mut live = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    managed::strip(&mut live);
    validate(applied, Place::root(tracked.schema)).map_err(|mistakes| untypable(applied, &mistakes))?;

    let attempt = Attempt { live: &live, applied, managed: &managed, writer, tracked };
    let (mut object, managed) = match attempt.run(force) {
        Err(conflicts) if writer.manager == last_applied::KUBECTL => {
            let remaining = without_last_applied(&conflicts, &live, tracked);
            if !remaining.is_empty() {
                return Err(conflict::status(&remaining));
            }
            attempt.run(true).map_err(|conflicts| conflict::status(&conflicts))?
        }
        result => result.map_err(|conflicts| conflict::status(&conflicts))?,
    };
    if writer.manager == last_applied::KUBECTL {
        last_applied::keep_current(&mut object, applied);
    }
    managed::encode(&managed, &mut object);
    Ok(object)
}

fn check(applied: &Value, tracked: &Tracked<'_>) -> Result<()> {
    let (api_version, kind) = (object::api_version(applied), object::kind(applied));
    if (api_version, kind) != (tracked.api_version, tracked.kind) {
        return Err(Status::bad_request(format!("invalid object type: {}", kind_text(applied))));
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// `apps/v1, Kind=Deployment`; the core group is empty: `/v1, Kind=Pod`.
fn kind_text(applied: &Value) -> String {
    let api_version = object::api_version(applied);
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={}", object::kind(applied))
}

/// What Kubernetes itself does not tell from its own failure: code 500, no reason.
fn failed(message: String) -> Status {
    Status { code: 500, reason: "".into(), message, details: Value::Null }
}

fn decode_failed(why: String) -> Status {
    failed(format!("failed to decode managed fields: {why}"))
}

fn untypable(applied: &Value, mistakes: &str) -> Status {
    let (namespace, name) = (object::namespace(applied), object::name(applied));
    let which = format!("{namespace}/{name}; {}", kind_text(applied));
    failed(format!("failed to create typed patch object ({which}): {mistakes}"))
}

fn without_last_applied(conflicts: &Conflicts, live: &Value, tracked: &Tracked<'_>) -> Conflicts {
    let Some(allowed) = last_applied::unchanged_since(live, tracked) else { return conflicts.clone() };
    let remaining = conflicts.iter().map(|(owner, fields)| (owner.clone(), fields.difference(&allowed)));
    remaining.filter(|(_, fields)| !fields.is_empty()).collect()
}

struct Attempt<'a> {
    live: &'a Value,
    applied: &'a Value,
    managed: &'a Managed,
    writer: &'a Writer<'a>,
    tracked: &'a Tracked<'a>,
}

impl Attempt<'_> {
    fn run(&self, force: bool) -> std::result::Result<(Value, Managed), Conflicts> {
        let Self { live, applied, writer, tracked, .. } = self;
        let place = Place::root(tracked.schema);
        let owner = Owner::new(writer.manager, Operation::Apply, tracked.api_version, writer.subresource);
        let mut managed = self.managed.clone();
        let before = managed.get(&owner).cloned();

        let fields = fields_of(applied, place).without(tracked.reset);
        let time = before.as_ref().and_then(|before| before.time.clone());
        managed.insert(owner.clone(), Owned { fields, api_version: tracked.api_version.to_owned(), time });
        let mut object = merge(live, applied, place);
        if let Some(before) = before.filter(|before| !before.fields.is_empty()) {
            object = prune(&object, &managed, &before.fields, place);
        }

        let comparison = compare(live, &object, tracked);
        let conflicts = conflicts(&managed, &owner, &comparison);
        if !force && !conflicts.is_empty() {
            return Err(conflicts);
        }
        take_from_others(&mut managed, Some(&owner), &comparison);
        if let Some(owned) = managed.get_mut(&owner) {
            owned.fields = owned.fields.difference(&never_owned());
            if object != **live {
                owned.time = Some(writer.now.to_owned());
            }
        }
        managed.retain(|_, owned| !owned.fields.is_empty());
        Ok((object, managed))
    }
}

/// Removes from the merged object what the applier owned before, except what it or anybody else still owns.
fn prune(merged: &Value, managed: &Managed, before: &FieldSet, place: Place<'_>) -> Value {
    let named = |set: &FieldSet| with_named_parents(set, place);
    let without = |set: &FieldSet| remove(merged, set, place);
    let (all, before) = (named(&fields_of(merged, place)), named(before));

    let bare = without(&before);
    let owned = managed.values().fold(FieldSet::default(), |all, owned| all.union(&owned.fields));
    let kept = named(&fields_of(&bare, place)).union(&named(&owned));
    let pruned = without(&all.difference(&kept));
    // Removing a parent takes along what stands below it: only what the applier owned may go.
    let gone = all.difference(&named(&fields_of(&pruned, place)));
    without(&gone.intersection(&before))
}
