//! Lists of bounded length. A longer list is refused while it is read: a request of 16 MiB of brackets must not become
//! a gigabyte.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a list of at most `MOST` elements.
pub(crate) fn at_most<'de, D, T, const MOST: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct List<T, const MOST: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST} elements")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(one) = seq.next_element()? {
                if list.len() == MOST {
                    return Err(A::Error::custom(format_args!("a list has more than {MOST} elements")));
                }
                list.push(one);
            }
            Ok(list)
        }
    }

    from.deserialize_seq(List::<T, MOST>(PhantomData))
}

/// Reads a map of at most `MOST` names. If a name occurs several times, its last value counts.
pub(crate) fn map_of_at_most<'de, D, T, const MOST: usize>(from: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Map<T, const MOST: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Map<T, MOST> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a map of at most {MOST} names")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some(name) = map.next_key::<String>()? {
                let value =
                    map.next_value().map_err(|error| A::Error::custom(format_args!("'{name}': {error}")))?;
                all.insert(name, value);
                if all.len() > MOST {
                    return Err(A::Error::custom(format_args!("there are more than {MOST} names")));
                }
            }
            Ok(all)
        }
    }

    from.deserialize_map(Map::<T, MOST>(PhantomData))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Both {
        #[serde(default, deserialize_with = "at_most::<_, _, 3>")]
        list: Vec<u32>,
        #[serde(default, deserialize_with = "map_of_at_most::<_, _, 2>")]
        map: BTreeMap<String, u32>,
    }

    #[test]
    fn lists_and_maps_beyond_the_bound_are_refused() {
        let read = |text: &str| serde_json::from_str::<Both>(text);
        assert_eq!(read(r#"{"list": [1, 2, 3]}"#).unwrap().list, [1, 2, 3]);
        assert_eq!(read(r#"{"map": {"a": 1, "b": 2, "a": 3}}"#).unwrap().map["a"], 3);
        let error = read(r#"{"list": [1, 2, 3, 4]}"#).unwrap_err().to_string();
        assert!(error.contains("more than 3 elements"), "{error}");
        let error = read(r#"{"map": {"a": 1, "b": 2, "c": 3}}"#).unwrap_err().to_string();
        assert!(error.contains("more than 2 names"), "{error}");
        assert!(read(r#"{"list": {}}"#).unwrap_err().to_string().contains("at most 3 elements"));
    }
}
