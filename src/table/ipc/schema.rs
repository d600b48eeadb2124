//! The schema of an Arrow IPC stream: its fields, how their buffers lie, and the same schema with masked leaves as strings.
//!
//! Source: apache/arrow, `format/Schema.fbs` and `docs/source/format/Columnar.rst`.

use std::collections::HashMap;

use arrow_ipc as fb;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, UnionWIPOffset, Vector, WIPOffset};

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
    /// A dictionary that a masked and another column share.
    pub(super) fn dictionaries(&self, masked: &[usize]) -> Result<HashMap<i64, Field>> {
        fn walk(fields: &[Field], is_masked: &dyn Fn(&Field) -> bool, out: &mut HashMap<i64, Field>) -> Result<()> {
            for field in fields {
                walk(&field.children, is_masked, out)?;
                let Some(id) = field.dictionary else { continue };
                let values = Field { dictionary: None, ..field.clone() };
                if out.insert(id, values).is_some_and(|other| is_masked(&other) != is_masked(field)) {
                    return Err(Error::unsupported("a masked column shares its dictionary with another one"));
                }
            }
            Ok(())
        }
        let mut out = HashMap::new();
        walk(&self.fields, &|f| f.leaf.is_some_and(|l| masked.contains(&l)), &mut out)?;
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

type Metadata<'a> = Option<Vector<'a, ForwardsUOffset<fb::KeyValue<'a>>>>;
type NewMetadata<'b> = Option<WIPOffset<Vector<'b, ForwardsUOffset<fb::KeyValue<'b>>>>>;

fn metadata(entries: Metadata<'_>) -> impl Iterator<Item = (&str, &str)> {
    entries.unwrap_or_default().into_iter().map(|kv| (kv.key().unwrap_or_default(), kv.value().unwrap_or_default()))
}

/// Copies metadata, without the entries that say what a masked value was.
pub(super) fn copy_metadata<'b>(out: &mut FlatBufferBuilder<'b>, entries: Metadata<'_>, masked: bool) -> NewMetadata<'b> {
    entries?;
    // An extension type says what a string is not; polars lists all values of an Enum.
    let says_what_it_was = |k: &str| masked && (k.starts_with("ARROW:extension:") || k.starts_with("_PL_ENUM"));
    let entries: Vec<_> = metadata(entries)
        .filter(|(k, _)| !says_what_it_was(k))
        .map(|(k, v)| {
            let (key, value) = (Some(out.create_string(k)), Some(out.create_string(v)));
            fb::KeyValue::create(out, &fb::KeyValueArgs { key, value })
        })
        .collect();
    Some(out.create_vector(&entries))
}

/// Copies a schema; the masked leaves become strings.
///
/// # Errors
/// Types that this version does not know.
pub(super) fn copy<'b>(
    out: &mut FlatBufferBuilder<'b>,
    schema: fb::Schema<'_>,
    tree: &Tree,
    masked: &[usize],
) -> Result<WIPOffset<fb::Schema<'b>>> {
    let fields = schema.fields().unwrap_or_default();
    let fields = fields.iter().zip(&tree.fields).map(|(f, node)| copy_field(out, f, node, masked)).collect::<Result<Vec<_>>>()?;
    let fields = Some(out.create_vector(&fields));
    let custom_metadata = copy_metadata(out, schema.custom_metadata(), false);
    let features: Option<Vec<fb::Feature>> = schema.features().map(|f| f.iter().collect());
    let features = features.map(|f| out.create_vector(&f));
    Ok(fb::Schema::create(out, &fb::SchemaArgs { endianness: schema.endianness(), fields, custom_metadata, features }))
}

fn copy_field<'b>(
    out: &mut FlatBufferBuilder<'b>,
    field: fb::Field<'_>,
    node: &Field,
    masked: &[usize],
) -> Result<WIPOffset<fb::Field<'b>>> {
    let is_masked = node.leaf.is_some_and(|l| masked.contains(&l));
    let name = field.name().map(|n| out.create_string(n));
    let children = field.children().unwrap_or_default();
    let children =
        children.iter().zip(&node.children).map(|(f, node)| copy_field(out, f, node, masked)).collect::<Result<Vec<_>>>()?;
    let children = Some(out.create_vector(&children));
    let (type_type, type_) = if is_masked { string_type(out, node.layout.string()) } else { copy_type(out, field)? };
    let dictionary = field.dictionary().map(|d| {
        let args = d.indexType().map(|i| fb::IntArgs { bitWidth: i.bitWidth(), is_signed: i.is_signed() });
        let index = args.map(|args| fb::Int::create(out, &args));
        let args = fb::DictionaryEncodingArgs {
            id: d.id(),
            indexType: index,
            isOrdered: d.isOrdered() && !is_masked, // tokens do not keep an order
            dictionaryKind: d.dictionaryKind(),
        };
        fb::DictionaryEncoding::create(out, &args)
    });
    let custom_metadata = copy_metadata(out, field.custom_metadata(), is_masked);
    let nullable = field.nullable();
    Ok(fb::Field::create(out, &fb::FieldArgs { name, nullable, type_type, type_, dictionary, children, custom_metadata }))
}

type NewType = (fb::Type, Option<WIPOffset<UnionWIPOffset>>);

fn string_type(out: &mut FlatBufferBuilder<'_>, string: StringType) -> NewType {
    match string {
        StringType::Utf8 => (fb::Type::Utf8, Some(fb::Utf8::create(out, &fb::Utf8Args {}).as_union_value())),
        StringType::LargeUtf8 => (fb::Type::LargeUtf8, Some(fb::LargeUtf8::create(out, &fb::LargeUtf8Args {}).as_union_value())),
        StringType::Utf8View => (fb::Type::Utf8View, Some(fb::Utf8View::create(out, &fb::Utf8ViewArgs {}).as_union_value())),
    }
}

fn copy_type(out: &mut FlatBufferBuilder<'_>, field: fb::Field<'_>) -> Result<NewType> {
    /// A type without parameters.
    macro_rules! plain {
        ($name:ident, $args:ident) => {
            fb::$name::create(out, &fb::$args {}).as_union_value()
        };
    }
    /// A type with parameters, which are copied.
    macro_rules! with {
        ($name:ident, $args:ident, $get:ident, $($param:ident),+) => {{
            let t = field.$get().ok_or_else(|| Error::malformed("the schema is damaged"))?;
            fb::$name::create(out, &fb::$args { $($param: t.$param()),+ }).as_union_value()
        }};
    }
    let kind = field.type_type();
    let copied = match kind {
        fb::Type::Null => plain!(Null, NullArgs),
        fb::Type::Bool => plain!(Bool, BoolArgs),
        fb::Type::Utf8 => plain!(Utf8, Utf8Args),
        fb::Type::Binary => plain!(Binary, BinaryArgs),
        fb::Type::LargeUtf8 => plain!(LargeUtf8, LargeUtf8Args),
        fb::Type::LargeBinary => plain!(LargeBinary, LargeBinaryArgs),
        fb::Type::Utf8View => plain!(Utf8View, Utf8ViewArgs),
        fb::Type::BinaryView => plain!(BinaryView, BinaryViewArgs),
        fb::Type::Struct_ => plain!(Struct_, Struct_Args),
        fb::Type::List => plain!(List, ListArgs),
        fb::Type::LargeList => plain!(LargeList, LargeListArgs),
        fb::Type::ListView => plain!(ListView, ListViewArgs),
        fb::Type::LargeListView => plain!(LargeListView, LargeListViewArgs),
        fb::Type::RunEndEncoded => plain!(RunEndEncoded, RunEndEncodedArgs),
        fb::Type::Int => with!(Int, IntArgs, type_as_int, bitWidth, is_signed),
        fb::Type::FloatingPoint => with!(FloatingPoint, FloatingPointArgs, type_as_floating_point, precision),
        fb::Type::Decimal => with!(Decimal, DecimalArgs, type_as_decimal, precision, scale, bitWidth),
        fb::Type::Date => with!(Date, DateArgs, type_as_date, unit),
        fb::Type::Time => with!(Time, TimeArgs, type_as_time, unit, bitWidth),
        fb::Type::Interval => with!(Interval, IntervalArgs, type_as_interval, unit),
        fb::Type::Duration => with!(Duration, DurationArgs, type_as_duration, unit),
        fb::Type::FixedSizeBinary => with!(FixedSizeBinary, FixedSizeBinaryArgs, type_as_fixed_size_binary, byteWidth),
        fb::Type::FixedSizeList => with!(FixedSizeList, FixedSizeListArgs, type_as_fixed_size_list, listSize),
        fb::Type::Map => with!(Map, MapArgs, type_as_map, keysSorted),
        fb::Type::Timestamp => {
            let t = field.type_as_timestamp().ok_or_else(|| Error::malformed("the schema is damaged"))?;
            let timezone = t.timezone().map(|z| out.create_string(z));
            fb::Timestamp::create(out, &fb::TimestampArgs { unit: t.unit(), timezone }).as_union_value()
        }
        fb::Type::Union => {
            let t = field.type_as_union().ok_or_else(|| Error::malformed("the schema is damaged"))?;
            let ids: Option<Vec<i32>> = t.typeIds().map(|ids| ids.iter().collect());
            let ids = ids.map(|ids| out.create_vector(&ids));
            fb::Union::create(out, &fb::UnionArgs { mode: t.mode(), typeIds: ids }).as_union_value()
        }
        _ => return Err(Error::unsupported("a type of Arrow that hmask does not know")),
    };
    Ok((kind, Some(copied)))
}
