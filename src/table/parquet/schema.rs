//! The schema of a Parquet file: its leaves, their paths and what their values mean.
//!
//! Source: apache/parquet-format, `parquet.thrift` and `LogicalTypes.md`; numbers of fields and enumerations are theirs.

use super::thrift::{Struct, Value};
use crate::error::{Error, Result};
use crate::mask::canonical::TimeUnit;
use crate::policy::{Candidate, LIST_STEP};

/// Physical types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    /// Of this many bytes.
    Fixed(usize),
}

/// What the values of a leaf mean: how they become canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// UTF-8, which is checked.
    Text,
    Binary,
    Boolean,
    Signed,
    Unsigned,
    Date,
    Time(TimeUnit),
    /// And whether it is in UTC.
    Timestamp(TimeUnit, bool),
    Int96,
    /// Digits behind the point.
    Decimal(usize),
    Float,
    Half,
    Uuid,
}

/// A leaf of the schema.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Index into the list of schema elements.
    pub element: usize,
    /// Names from the root on, as column chunks give them.
    pub raw_path: Vec<Vec<u8>>,
    /// Names as Arrow and people know them: the groups within lists and maps are left out, lists are `[]`.
    pub candidate: Candidate,
    pub max_definition: u32,
    pub max_repetition: u32,
}

/// Deeper schemas are refused.
const MAX_DEPTH: usize = 100;
/// Converted type UTF8.
const UTF8: i32 = 0;

mod repetition {
    pub(super) const REQUIRED: i64 = 0;
    pub(super) const OPTIONAL: i64 = 1;
    pub(super) const REPEATED: i64 = 2;
}

/// All leaves, in the order of column chunks.
///
/// # Errors
/// A tree that its numbers of children do not describe.
pub(super) fn leaves(elements: &[&Struct]) -> Result<Vec<Leaf>> {
    let mut walk = Walk { elements, next: 1, leaves: Vec::new() };
    let top = children(elements.first().ok_or_else(|| damaged("there is no schema"))?)?;
    for number in 1..=top {
        walk.element(&Parent { raw: &[], path: &[], number, definition: 0, repetition: 0, depth: 0 }, None)?;
    }
    if walk.next != elements.len() {
        return Err(damaged("elements that belong to no group"));
    }
    Ok(walk.leaves)
}

/// The physical type of a leaf.
///
/// # Errors
/// A number that no type has, or a fixed length that is none.
pub(super) fn physical(element: &Struct) -> Result<Physical> {
    Ok(match element.int(1) {
        Some(0) => Physical::Boolean,
        Some(1) => Physical::Int32,
        Some(2) => Physical::Int64,
        Some(3) => Physical::Int96,
        Some(4) => Physical::Float,
        Some(5) => Physical::Double,
        Some(6) => Physical::ByteArray,
        Some(7) => match element.int(2).and_then(|n| usize::try_from(n).ok()) {
            Some(n) if n > 0 => Physical::Fixed(n),
            _ => return Err(damaged("a fixed length that is none")),
        },
        _ => return Err(damaged("an impossible physical type")),
    })
}

/// What the values of a leaf mean.
///
/// # Errors
/// An annotation that hmask does not know, or that does not fit the physical type.
pub(super) fn meaning(element: &Struct) -> Result<Meaning> {
    let physical = physical(element)?;
    let meaning = match element.structure(10) {
        Some(logical) => from_logical(logical, element, physical)?,
        None => from_converted(element, physical)?,
    };
    let fits = match meaning {
        Meaning::Text => physical == Physical::ByteArray,
        Meaning::Binary => matches!(physical, Physical::ByteArray | Physical::Fixed(_)),
        Meaning::Boolean => physical == Physical::Boolean,
        Meaning::Signed | Meaning::Unsigned => matches!(physical, Physical::Int32 | Physical::Int64),
        Meaning::Date | Meaning::Time(TimeUnit::Millis) => physical == Physical::Int32,
        Meaning::Time(_) | Meaning::Timestamp(..) => physical == Physical::Int64,
        Meaning::Int96 => physical == Physical::Int96,
        Meaning::Decimal(_) => matches!(physical, Physical::Int32 | Physical::Int64 | Physical::ByteArray | Physical::Fixed(_)),
        Meaning::Float => matches!(physical, Physical::Float | Physical::Double),
        Meaning::Half => physical == Physical::Fixed(2),
        Meaning::Uuid => physical == Physical::Fixed(16),
    };
    if fits { Ok(meaning) } else { Err(damaged("the annotation does not fit the physical type")) }
}

/// Makes the element of a masked leaf that of a UTF-8 string; its name, repetition and field id stay.
pub(super) fn make_string(element: &mut Struct) {
    const BYTE_ARRAY: i32 = 6;
    for id in [2, 7, 8] {
        element.remove(id);
    }
    element.set(1, Value::i32(BYTE_ARRAY));
    element.set(6, Value::i32(UTF8));
    let string = Struct::default().with(1, Value::Struct(Struct::default()));
    element.set(10, Value::Struct(string));
}

/// The schema without the leaves at these places, and without groups that nothing is left of.
///
/// # Errors
/// A leaf that a map is none without.
pub(super) fn without(elements: &[Value], leaves: &[usize]) -> Result<Vec<Value>> {
    /// Appends what is left of the element at `at`; returns where the next one stands.
    fn walk(elements: &[Value], leaves: &[usize], at: usize, in_map: bool, out: &mut Vec<Value>) -> Result<usize> {
        const MAPS: [Option<i64>; 2] = [Some(1), Some(2)];
        let element = elements.get(at).and_then(Value::as_struct).ok_or_else(|| damaged("more children than elements"))?;
        let count = children(element)?;
        if leaves.contains(&at) {
            return Ok(at + 1);
        }
        let place = out.len();
        out.push(Value::Struct(element.clone()));
        let is_map = MAPS.contains(&element.int(6)) || element.structure(10).and_then(Struct::variant) == Some(2);
        let (mut next, mut left) = (at + 1, 0);
        for _ in 0..count {
            let before = out.len();
            next = walk(elements, leaves, next, is_map, out)?;
            left += usize::from(out.len() > before);
        }
        if count > 0 && left == 0 {
            out.truncate(place);
        } else if left < count {
            if in_map {
                return Err(Error::unsupported("half of a map cannot be dropped"));
            }
            if let Some(group) = out[place].as_struct_mut() {
                group.set(5, Value::i32(left as i32)); // no more than before
            }
        }
        Ok(next)
    }
    let mut out = Vec::new();
    walk(elements, leaves, 0, false, &mut out)?;
    Ok(out)
}

fn damaged(what: &str) -> Error {
    Error::malformed(format!("damaged schema: {what}"))
}

fn children(element: &Struct) -> Result<usize> {
    usize::try_from(element.int(5).unwrap_or(0)).map_err(|_| damaged("a negative number of children"))
}

fn from_logical(logical: &Struct, element: &Struct, physical: Physical) -> Result<Meaning> {
    let Some(variant) = logical.variant() else { return from_converted(element, physical) };
    let inner = logical.structure(variant);
    let unit = || match inner.and_then(|s| s.structure(2)).and_then(Struct::variant) {
        Some(1) => Ok(TimeUnit::Millis),
        Some(2) => Ok(TimeUnit::Micros),
        Some(3) => Ok(TimeUnit::Nanos),
        _ => Err(Error::unsupported("an unknown unit of time")),
    };
    Ok(match variant {
        1 | 4 | 12 => Meaning::Text,
        5 => Meaning::Decimal(scale(inner.and_then(|s| s.int(1)).or(element.int(7)))?),
        6 => Meaning::Date,
        7 => Meaning::Time(unit()?),
        8 => Meaning::Timestamp(unit()?, inner.and_then(|s| s.bool(1)).unwrap_or(false)),
        10 => {
            let bits = inner.and_then(|s| s.int(1));
            if (bits == Some(64)) != (physical == Physical::Int64) || !matches!(bits, Some(8 | 16 | 32 | 64)) {
                return Err(damaged("the annotation does not fit the physical type"));
            }
            if inner.and_then(|s| s.bool(2)) == Some(false) { Meaning::Unsigned } else { Meaning::Signed }
        }
        11 => plain(physical), // always null
        13 | 17 | 18 => Meaning::Binary,
        14 => Meaning::Uuid,
        15 => Meaning::Half,
        _ => return Err(Error::unsupported("an annotation that hmask does not know cannot be masked")),
    })
}

fn from_converted(element: &Struct, physical: Physical) -> Result<Meaning> {
    // Without a logical type nothing says whether a timestamp is in UTC: what wrote them before there were any often meant local time.
    let utc = false;
    let integer = |wide: bool, meaning| {
        if wide == (physical == Physical::Int64) {
            Ok(meaning)
        } else {
            Err(damaged("the annotation does not fit the physical type"))
        }
    };
    Ok(match element.int(6) {
        None => plain(physical),
        Some(0 | 4 | 19) => Meaning::Text,
        Some(5) => Meaning::Decimal(scale(element.int(7))?),
        Some(6) => Meaning::Date,
        Some(7) => Meaning::Time(TimeUnit::Millis),
        Some(8) => Meaning::Time(TimeUnit::Micros),
        Some(9) => Meaning::Timestamp(TimeUnit::Millis, utc),
        Some(10) => Meaning::Timestamp(TimeUnit::Micros, utc),
        Some(bits @ 11..=14) => integer(bits == 14, Meaning::Unsigned)?,
        Some(bits @ 15..=18) => integer(bits == 18, Meaning::Signed)?,
        Some(20 | 21) => Meaning::Binary,
        _ => return Err(Error::unsupported("an annotation that hmask does not know cannot be masked")),
    })
}

fn plain(physical: Physical) -> Meaning {
    match physical {
        Physical::Boolean => Meaning::Boolean,
        Physical::Int32 | Physical::Int64 => Meaning::Signed,
        Physical::Int96 => Meaning::Int96,
        Physical::Float | Physical::Double => Meaning::Float,
        Physical::ByteArray | Physical::Fixed(_) => Meaning::Binary,
    }
}

fn scale(scale: Option<i64>) -> Result<usize> {
    const MAX: i64 = 1000;
    match scale.unwrap_or(0) {
        n @ 0..=MAX => Ok(n as usize),
        _ => Err(damaged("an impossible scale")),
    }
}

/// Where an element hangs.
struct Parent<'a> {
    raw: &'a [Vec<u8>],
    path: &'a [String],
    number: usize,
    definition: u32,
    repetition: u32,
    depth: usize,
}

/// What the group above an element means for its path.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// The repeated field of a list.
    List,
    /// The repeated group of a map.
    Map,
    /// The element of a list, within a group that is only there for the format.
    Element,
}

struct Walk<'a> {
    elements: &'a [&'a Struct],
    next: usize,
    leaves: Vec<Leaf>,
}

impl Walk<'_> {
    fn element(&mut self, parent: &Parent<'_>, role: Option<Role>) -> Result<()> {
        if parent.depth > MAX_DEPTH {
            return Err(damaged("nested too deep"));
        }
        let index = self.next;
        let element = *self.elements.get(index).ok_or_else(|| damaged("more children than elements"))?;
        self.next += 1;
        let raw_name = element.binary(4).ok_or_else(|| damaged("an element without a name"))?;
        let name = String::from_utf8_lossy(raw_name).into_owned();
        let repeated = match element.int(3) {
            Some(repetition::REPEATED) => true,
            Some(repetition::REQUIRED | repetition::OPTIONAL) => false,
            None if parent.depth == 0 => false,
            _ => return Err(damaged("an impossible repetition")),
        };
        let definition = parent.definition + u32::from(element.int(3) != Some(repetition::REQUIRED) && element.int(3).is_some());
        let mut path = parent.path.to_vec();
        match role {
            Some(Role::List) => path.push(LIST_STEP.into()),
            Some(Role::Map | Role::Element) => {}
            None => {
                path.push(name);
                if repeated {
                    path.push(LIST_STEP.into());
                }
            }
        }
        let raw = [parent.raw, &[raw_name.to_vec()]].concat();
        let here = Parent {
            raw: &raw,
            path: &path,
            number: parent.number,
            definition,
            repetition: parent.repetition + u32::from(repeated),
            depth: parent.depth + 1,
        };
        let count = children(element)?;
        if count == 0 && element.get(1).is_some() {
            self.leaves.push(Leaf {
                element: index,
                raw_path: raw.clone(),
                candidate: Candidate { path: path.clone(), number: parent.number },
                max_definition: definition,
                max_repetition: here.repetition,
            });
            return Ok(());
        }
        let role = self.role_of_children(element, role, raw_name, count);
        for _ in 0..count {
            self.element(&here, role)?;
        }
        Ok(())
    }

    /// `LogicalTypes.md`, sections "Lists" and "Maps", with their rules for old files.
    fn role_of_children(&self, element: &Struct, role: Option<Role>, name: &[u8], count: usize) -> Option<Role> {
        let annotation = element.structure(10).and_then(Struct::variant);
        let converted = element.int(6);
        let only_child = self.elements.get(self.next).filter(|c| count == 1 && c.int(3) == Some(repetition::REPEATED));
        let annotated = annotation.is_some() || converted.is_some();
        match role {
            // A repeated group of one field is only there for the format, unless its name or annotation says that it is the element.
            Some(Role::List)
                if count == 1 && !annotated && name != b"array" && !name.ends_with(b"_tuple") && only_child.is_none() =>
            {
                Some(Role::Element)
            }
            Some(Role::Map) => None,
            _ if annotation == Some(3) || converted == Some(3) => only_child.map(|_| Role::List),
            _ if annotation == Some(2) || matches!(converted, Some(1 | 2)) => only_child.map(|_| Role::Map),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element: name, repetition, children, physical type, converted type.
    fn element(name: &str, repetition: i32, children: i32, physical: Option<i32>, converted: Option<i32>) -> Struct {
        let mut e = Struct::default().with(3, Value::i32(repetition)).with(4, Value::Binary(name.into()));
        if children > 0 {
            e.set(5, Value::i32(children));
        }
        physical.into_iter().for_each(|t| e.set(1, Value::i32(t)));
        converted.into_iter().for_each(|t| e.set(6, Value::i32(t)));
        e
    }

    fn paths(elements: &[Struct]) -> Vec<String> {
        let elements: Vec<&Struct> = elements.iter().collect();
        leaves(&elements).unwrap().iter().map(|l| crate::policy::quote_path(&l.candidate.path)).collect()
    }

    #[test]
    fn paths_of_lists_maps_and_structs() {
        let e = element;
        let schema = [
            e("root", 0, 5, None, None),
            e("a", 1, 0, Some(6), Some(0)),
            e("l", 1, 1, None, Some(3)),
            e("list", 2, 1, None, None),
            e("element", 1, 2, None, None),
            e("x", 1, 0, Some(1), None),
            e("y", 1, 0, Some(1), None),
            e("m", 1, 1, None, Some(1)),
            e("key_value", 2, 2, None, None),
            e("key", 0, 0, Some(6), Some(0)),
            e("value", 1, 0, Some(1), None),
            e("old", 1, 1, None, Some(3)),
            e("array", 2, 0, Some(1), None),
            e("bare", 2, 0, Some(1), None),
        ];
        assert_eq!(paths(&schema), ["a", "l[].x", "l[].y", "m.key", "m.value", "old[]", "bare[]"]);
        let refs: Vec<&Struct> = schema.iter().collect();
        let levels: Vec<_> =
            leaves(&refs).unwrap().iter().map(|l| (l.max_definition, l.max_repetition, l.candidate.number)).collect();
        assert_eq!(levels, [(1, 0, 1), (4, 1, 2), (4, 1, 2), (2, 1, 3), (3, 1, 3), (2, 1, 4), (1, 1, 5)]);
    }

    #[test]
    fn lists_of_lists() {
        let e = element;
        let schema = [
            e("root", 0, 1, None, None),
            e("a", 1, 1, None, Some(3)),
            e("list", 2, 1, None, None),
            e("element", 1, 1, None, Some(3)),
            e("list", 2, 1, None, None),
            e("element", 1, 0, Some(6), Some(0)),
        ];
        assert_eq!(paths(&schema), ["a[][]"]);
    }

    #[test]
    fn trees_that_do_not_add_up_are_refused() {
        let e = element;
        for bad in [
            vec![],
            vec![e("root", 0, 2, None, None), e("a", 1, 0, Some(6), None)],
            vec![e("root", 0, 1, None, None), e("a", 1, 0, Some(6), None), e("b", 1, 0, Some(6), None)],
            vec![e("root", 0, 1, None, None), e("a", 5, 0, Some(6), None)],
            vec![element("root", 0, 0, None, None).with(5, Value::i32(-1))],
        ] {
            let refs: Vec<&Struct> = bad.iter().collect();
            assert!(leaves(&refs).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn annotations_must_fit() {
        assert_eq!(meaning(&element("a", 0, 0, Some(6), Some(0))).unwrap(), Meaning::Text);
        assert_eq!(meaning(&element("a", 0, 0, Some(1), Some(13))).unwrap(), Meaning::Unsigned);
        for (physical, converted) in [(2, 13), (6, 16), (1, 18), (1, 10), (6, 99)] {
            assert!(meaning(&element("a", 0, 0, Some(physical), Some(converted))).is_err(), "{physical} {converted}");
        }
        assert!(physical(&element("a", 0, 0, Some(7), None)).is_err());
        assert!(physical(&element("a", 0, 0, Some(8), None)).is_err());
    }

    #[test]
    fn a_masked_leaf_is_a_string() {
        let mut e = element("n", 1, 0, Some(1), Some(5)).with(7, Value::i32(2)).with(8, Value::i32(9)).with(9, Value::i32(77));
        make_string(&mut e);
        assert_eq!((e.int(9), e.int(3), e.int(7)), (Some(77), Some(1), None));
        assert_eq!((physical(&e).unwrap(), meaning(&e).unwrap()), (Physical::ByteArray, Meaning::Text));
    }
}
