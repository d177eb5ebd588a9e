//! What holds whatever is applied or written.

use proptest::option;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

use super::{Server, schema, thing};
use crate::ownership::FieldSet;
use crate::ownership::fields_of::fields_of;
use crate::ownership::place::Place;
use crate::ownership::update::never_owned;

/// Some configuration: labels, data, containers with environments, a free-form part and a set.
fn configuration() -> impl Strategy<Value = Value> {
    let name = || proptest::sample::select(vec!["a", "b", "c", "d"]);
    let texts = move || proptest::collection::btree_map(name(), name(), 1..4);
    let names = move || {
        proptest::collection::btree_set(name(), 1..4).prop_map(|set| set.into_iter().collect::<Vec<_>>()).prop_shuffle()
    };
    let containers = names().prop_flat_map(move |names| {
        let envs = proptest::collection::vec((texts(), any::<bool>()), names.len());
        envs.prop_map(move |envs| {
            let containers = names.iter().zip(envs).map(|(name, (env, with_args))| {
                let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                let mut container = json!({"name": name, "env": env});
                if with_args {
                    container["args"] = json!([name]);
                }
                container
            });
            containers.collect::<Vec<Value>>()
        })
    });

    (option::of(texts()), option::of(texts()), option::of(containers), option::of(texts()), option::of(names()))
        .prop_map(|(labels, data, containers, free, tags)| {
            let mut parts = json!({"metadata": {}});
            if let Some(labels) = labels {
                parts["metadata"]["labels"] = json!(labels);
            }
            if let Some(data) = data {
                parts["data"] = json!(data);
            }
            if let Some(containers) = containers {
                parts["spec"]["template"]["spec"]["containers"] = json!(containers);
            }
            if let Some(free) = free {
                parts["spec"]["free"] = json!({"deep": free});
            }
            if let Some(tags) = tags {
                parts["spec"]["tags"] = json!(tags);
            }
            parts
        })
}

/// Whether `object` has all that `part` says; items of lists in any order and amid others.
fn contains(object: &Value, part: &Value) -> bool {
    match (object, part) {
        (Value::Object(object), Value::Object(part)) => {
            part.iter().all(|(name, part)| object.get(name).is_some_and(|object| contains(object, part)))
        }
        (Value::Array(object), Value::Array(part)) => {
            part.iter().all(|part| object.iter().any(|object| contains(object, part)))
        }
        (object, part) => object == part,
    }
}

proptest! {
    #[test]
    fn a_printed_field_set_reads_back_as_itself(parts in configuration()) {
        let mut server = Server::new();
        server.apply("a", parts);
        for (_, fields) in server.owners() {
            prop_assert_eq!(&FieldSet::parse(&fields).unwrap().print(), &fields);
        }
    }

    #[test]
    fn applying_twice_changes_nothing(before in configuration(), parts in configuration()) {
        let mut server = Server::new();
        server.apply("other", before);
        server.second = 1;
        server.try_apply("a", true, parts.clone()).unwrap();
        let once = server.live.clone();
        server.second = 2;
        server.apply("a", parts);
        prop_assert_eq!(&server.live, &once);
    }

    #[test]
    fn what_is_applied_is_there(before in configuration(), last in configuration(), parts in configuration()) {
        let mut server = Server::new();
        server.apply("other", before);
        server.try_apply("a", true, last).unwrap();
        server.try_apply("a", true, parts.clone()).unwrap();
        prop_assert!(contains(server.object(), &parts), "{}", server.object());
    }

    #[test]
    fn a_field_of_two_appliers_survives_one_of_them(parts in configuration()) {
        let mut server = Server::new();
        server.apply("a", parts.clone());
        server.apply("b", parts.clone());
        server.apply("a", json!({}));
        prop_assert!(contains(server.object(), &parts), "{}", server.object());
        server.apply("b", json!({}));
        prop_assert_eq!(server.object(), &thing(json!({})));
    }

    #[test]
    fn every_field_that_was_written_has_an_owner(first in configuration(), second in configuration()) {
        let mut server = Server::new();
        server.write("a", |new| *new = thing(first));
        let second = thing(second);
        server.write("b", |new| *new = second.clone());
        let mut owned = FieldSet::default();
        for (_, fields) in server.owners() {
            owned = owned.union(&FieldSet::parse(&fields).unwrap());
        }
        let schema = schema();
        let set = fields_of(&second, Place::root(&schema));
        // Unless the first write left no owner at all: then updates are not tracked.
        if !server.owners().is_empty() {
            prop_assert_eq!(set.difference(&never_owned()).difference(&owned), FieldSet::default());
        }
    }
}
