//! The schema of an Arrow IPC stream: its fields, how their buffers lie, and what their values mean.
//!
//! Source: apache/arrow, `format/Schema.fbs` and `docs/source/format/Columnar.rst`.

use std::collections::HashMap;

use arrow_ipc as fb;
use flatbuffers::{ForwardsUOffset, Vector};

use crate::error::{Error, Result};
use crate::mask::canonical::TimeUnit;
use crate::policy::{Candidate, LIST_STEP};

/// Deeper schemas are refused.
const MAX_DEPTH: usize = 60;

/// A field with all below it, in the order in which batches list nodes and buffers.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub layout: Layout,
    pub children: Vec<Field>,
    /// The dictionary that holds its values; the field itself holds indexes.
    pub dictionary: Option<i64>,
    /// The index of its candidate, if it is a leaf.
    pub leaf: Option<usize>,
}

/// How the values of a field lie in buffers, and what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Null,
    /// Validity and values of a fixed width.
    Fixed(Meaning),
    /// Validity, offsets of 4 or 8 bytes, bytes.
    Bytes {
        large: bool,
        text: bool,
    },
    /// Validity, views of 16 bytes, any number of buffers of bytes.
    View {
        text: bool,
    },
    /// So many buffers, and children.
    Nested(usize),
}

/// What values of a fixed width mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Boolean,
    /// Bytes of each.
    Signed(usize),
    Unsigned(usize),
    Float(usize),
    /// Bytes of each, digits behind the point.
    Decimal(usize, i32),
    /// Days in 4 bytes, or milliseconds in 8.
    Date(usize),
    /// Bytes of each, units of the clock, and how many of them make one of the type's.
    Time(usize, TimeUnit, i64),
    /// Units, how many of them make one of the type's, whether in UTC.
    Timestamp(TimeUnit, i64, bool),
    Binary(usize),
    Uuid,
    /// A span of time, which has no canonical form.
    Span(usize),
}

/// The type of a masked leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringType {
    Utf8,
    LargeUtf8,
    Utf8View,
}

impl Layout {
    /// The string type that takes its place: of the same family where it has one.
    pub(super) fn string(self) -> StringType {
        match self {
            Self::Bytes { large: true, .. } => StringType::LargeUtf8,
            Self::View { .. } => StringType::Utf8View,
            _ => StringType::Utf8,
        }
    }
}

/// The fields of a schema and the columns that a list can name.
pub(super) struct Tree {
    pub fields: Vec<Field>,
    pub candidates: Vec<Candidate>,
}

impl Tree {
    /// Reads a schema.
    ///
    /// # Errors
    /// Types that this version does not know, numbers in the other byte order, a version before 4.
    pub(super) fn read(schema: fb::Schema<'_>, version: fb::MetadataVersion) -> Result<Self> {
        if schema.endianness() != fb::Endianness::Little {
            return Err(Error::unsupported("an Arrow file of big-endian numbers"));
        }
        if version < fb::MetadataVersion::V4 {
            return Err(Error::unsupported("an Arrow file older than version 0.8 of the format"));
        }
        let mut walk = Walk { candidates: Vec::new(), union_validity: version == fb::MetadataVersion::V4 };
        let fields = schema.fields().unwrap_or_default();
        let fields =
            fields.iter().enumerate().map(|(i, f)| walk.field(f, &[], Step::Name(f.name().unwrap_or_default()), i + 1, 0));
        let fields = fields.collect::<Result<_>>()?;
        Ok(Self { fields, candidates: walk.candidates })
    }

    /// The values of each dictionary: a field without its dictionary.
    ///
    /// # Errors
    /// A dictionary that columns of different treatments share.
    pub(super) fn dictionaries(&self, masked: &[usize], rules: &[usize]) -> Result<HashMap<i64, Field>> {
        fn walk(fields: &[Field], rule: &dyn Fn(&Field) -> Option<usize>, out: &mut HashMap<i64, Field>) -> Result<()> {
            for field in fields {
                walk(&field.children, rule, out)?;
                let Some(id) = field.dictionary else { continue };
                let values = Field { dictionary: None, ..field.clone() };
                if out.insert(id, values).is_some_and(|other| rule(&other) != rule(field)) {
                    return Err(Error::unsupported("a masked column shares its dictionary with one that is treated otherwise"));
                }
            }
            Ok(())
        }
        let mut out = HashMap::new();
        let rule = |f: &Field| masked.iter().position(|i| Some(*i) == f.leaf).map(|place| rules[place]);
        walk(&self.fields, &rule, &mut out)?;
        Ok(out)
    }
}

/// What a field adds to the path of its parent.
#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    /// Nothing.
    Through,
    /// Nothing, and its children are `key` and `value`, whatever they are named.
    Entries,
}

struct Walk {
    candidates: Vec<Candidate>,
    union_validity: bool,
}

impl Walk {
    fn field(&mut self, field: fb::Field<'_>, parent: &[String], step: Step<'_>, number: usize, depth: usize) -> Result<Field> {
        if depth > MAX_DEPTH {
            return Err(Error::unsupported(format!("a schema deeper than {MAX_DEPTH} levels")));
        }
        let mut path = parent.to_vec();
        if let Step::Name(name) = step {
            path.push(name.to_owned());
        }
        let layout = self.layout(field).map_err(|e| e.at(|p| p.column = Some(crate::policy::quote_path(&path))))?;
        let dictionary = field.dictionary().map(|d| d.id());
        let mut children = Vec::new();
        let leaf = if matches!(layout, Layout::Nested(_)) && dictionary.is_none() {
            for (i, child) in field.children().unwrap_or_default().iter().enumerate() {
                let name = child.name().unwrap_or_default();
                let step = match field.type_type() {
                    fb::Type::List
                    | fb::Type::LargeList
                    | fb::Type::ListView
                    | fb::Type::LargeListView
                    | fb::Type::FixedSizeList => Step::Name(LIST_STEP),
                    fb::Type::Map => Step::Entries,
                    fb::Type::RunEndEncoded => Step::Through,
                    _ if matches!(step, Step::Entries) => Step::Name(if i == 0 { "key" } else { "value" }),
                    _ => Step::Name(name),
                };
                let ends = self.candidates.len();
                children.push(self.field(child, &path, step, number, depth + 1)?);
                if field.type_type() == fb::Type::RunEndEncoded && i == 0 {
                    // Where runs end says nothing of a value, and cannot be named.
                    self.candidates.truncate(ends);
                    children[0].leaf = None;
                }
            }
            None
        } else {
            // What a dictionary of structs holds cannot be named; its fields are walked all the same.
            if matches!(layout, Layout::Nested(_)) {
                let known = self.candidates.len();
                for child in field.children().unwrap_or_default() {
                    children.push(self.field(child, &path, Step::Name(child.name().unwrap_or_default()), number, depth + 1)?);
                }
                self.candidates.truncate(known);
                children.iter_mut().for_each(forget_leaves);
            }
            self.candidates.push(Candidate { path, number });
            Some(self.candidates.len() - 1)
        };
        Ok(Field { layout, children, dictionary, leaf })
    }

    fn layout(&self, field: fb::Field<'_>) -> Result<Layout> {
        let odd = || Error::malformed("the schema is damaged");
        Ok(match field.type_type() {
            fb::Type::Null => Layout::Null,
            fb::Type::Bool => Layout::Fixed(Meaning::Boolean),
            fb::Type::Int => {
                let int = field.type_as_int().ok_or_else(odd)?;
                let bytes = match int.bitWidth() {
                    bits @ (8 | 16 | 32 | 64) => bits as usize / 8,
                    _ => return Err(odd()),
                };
                Layout::Fixed(if int.is_signed() { Meaning::Signed(bytes) } else { Meaning::Unsigned(bytes) })
            }
            fb::Type::FloatingPoint => {
                Layout::Fixed(Meaning::Float(match field.type_as_floating_point().ok_or_else(odd)?.precision() {
                    fb::Precision::HALF => 2,
                    fb::Precision::SINGLE => 4,
                    _ => 8,
                }))
            }
            fb::Type::Decimal => {
                let decimal = field.type_as_decimal().ok_or_else(odd)?;
                match decimal.bitWidth() {
                    bits @ (32 | 64 | 128 | 256) => Layout::Fixed(Meaning::Decimal(bits as usize / 8, decimal.scale())),
                    _ => return Err(odd()),
                }
            }
            fb::Type::Date => Layout::Fixed(Meaning::Date(match field.type_as_date().ok_or_else(odd)?.unit() {
                fb::DateUnit::DAY => 4,
                _ => 8,
            })),
            fb::Type::Time => {
                let time = field.type_as_time().ok_or_else(odd)?;
                let (unit, many) = unit(time.unit());
                match time.bitWidth() {
                    bits @ (32 | 64) => Layout::Fixed(Meaning::Time(bits as usize / 8, unit, many)),
                    _ => return Err(odd()),
                }
            }
            fb::Type::Timestamp => {
                let timestamp = field.type_as_timestamp().ok_or_else(odd)?;
                let (unit, many) = unit(timestamp.unit());
                Layout::Fixed(Meaning::Timestamp(unit, many, timestamp.timezone().is_some_and(|t| !t.is_empty())))
            }
            fb::Type::Interval => Layout::Fixed(Meaning::Span(match field.type_as_interval().ok_or_else(odd)?.unit() {
                fb::IntervalUnit::YEAR_MONTH => 4,
                fb::IntervalUnit::DAY_TIME => 8,
                _ => 16,
            })),
            fb::Type::Duration => Layout::Fixed(Meaning::Span(8)),
            fb::Type::FixedSizeBinary => {
                let width = field.type_as_fixed_size_binary().ok_or_else(odd)?.byteWidth();
                let width = usize::try_from(width).map_err(|_| odd())?;
                let uuid = width == 16 && metadata(field.custom_metadata()).any(|(k, v)| k == EXTENSION && v == "arrow.uuid");
                Layout::Fixed(if uuid { Meaning::Uuid } else { Meaning::Binary(width) })
            }
            fb::Type::Utf8 => Layout::Bytes { large: false, text: true },
            fb::Type::LargeUtf8 => Layout::Bytes { large: true, text: true },
            fb::Type::Binary => Layout::Bytes { large: false, text: false },
            fb::Type::LargeBinary => Layout::Bytes { large: true, text: false },
            fb::Type::Utf8View => Layout::View { text: true },
            fb::Type::BinaryView => Layout::View { text: false },
            fb::Type::RunEndEncoded => Layout::Nested(0),
            fb::Type::Struct_ | fb::Type::FixedSizeList => Layout::Nested(1),
            fb::Type::List | fb::Type::LargeList | fb::Type::Map => Layout::Nested(2),
            fb::Type::ListView | fb::Type::LargeListView => Layout::Nested(3),
            fb::Type::Union => {
                let dense = field.type_as_union().ok_or_else(odd)?.mode() == fb::UnionMode::Dense;
                Layout::Nested(1 + usize::from(dense) + usize::from(self.union_validity))
            }
            _ => return Err(Error::unsupported("a type of Arrow that hmask does not know")),
        })
    }
}

fn forget_leaves(field: &mut Field) {
    field.leaf = None;
    field.children.iter_mut().for_each(forget_leaves);
}

fn unit(unit: fb::TimeUnit) -> (TimeUnit, i64) {
    match unit {
        fb::TimeUnit::SECOND => (TimeUnit::Millis, 1000),
        fb::TimeUnit::MILLISECOND => (TimeUnit::Millis, 1),
        fb::TimeUnit::MICROSECOND => (TimeUnit::Micros, 1),
        _ => (TimeUnit::Nanos, 1),
    }
}

/// The key under which a field names its extension type.
const EXTENSION: &str = "ARROW:extension:name";

pub(super) type Metadata<'a> = Option<Vector<'a, ForwardsUOffset<fb::KeyValue<'a>>>>;

/// The entries of metadata, in order.
pub(super) fn metadata(entries: Metadata<'_>) -> impl Iterator<Item = (&str, &str)> {
    entries.unwrap_or_default().into_iter().map(|kv| (kv.key().unwrap_or_default(), kv.value().unwrap_or_default()))
}
