//! Reading a document with the fields that it says twice: the last word counts, and strict clients want to know.

use std::cell::RefCell;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A document, and the paths of what it says again.
#[derive(Debug, PartialEq)]
pub struct Said {
    pub value: Value,
    pub repeated: Vec<String>,
}

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let repeated = RefCell::default();
        let value = Place { path: String::new(), repeated: &repeated }.deserialize(deserializer)?;
        Ok(Self { value, repeated: repeated.into_inner() })
    }
}

/// A place in the document: `spec.containers[1]`.
struct Place<'a> {
    path: String,
    repeated: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        loop {
            let place = Place { path: format!("{}[{}]", self.path, all.len()), repeated: self.repeated };
            match items.next_element_seed(place)? {
                Some(item) => all.push(item),
                None => return Ok(all.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = if self.path.is_empty() { name.clone() } else { format!("{}.{name}", self.path) };
            if all.contains_key(&name) {
                self.repeated.borrow_mut().push(path.clone());
            }
            let value = fields.next_value_seed(Place { path, repeated: self.repeated })?;
            all.insert(name, value);
        }
        Ok(all.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_twice_is_named_by_its_place_and_the_last_word_counts() {
        let text = r#"{"a": 1, "a": -2, "b": [{"c": null}, {"c": 1.5, "c": "x"}], "d": {"e": true, "e": false}}"#;
        let wanted = json!({"a": -2, "b": [{"c": null}, {"c": "x"}], "d": {"e": false}});
        let said: Said = serde_json::from_str(text).unwrap();
        assert_eq!(said, Said { value: wanted, repeated: ["a", "b[1].c", "d.e"].map(str::to_owned).into() });
    }
}
