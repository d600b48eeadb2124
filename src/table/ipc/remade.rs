//! A schema as it was, with masked leaves as strings.
//!
//! Source: apache/arrow, `format/Schema.fbs`.

use arrow_ipc as fb;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, UnionWIPOffset, Vector, WIPOffset};

use super::schema::{Field, Metadata, StringType, Tree, metadata};
use crate::error::{Error, Result};
use crate::table::metadata::says_what_it_was;

type NewMetadata<'b> = Option<WIPOffset<Vector<'b, ForwardsUOffset<fb::KeyValue<'b>>>>>;

/// Copies metadata, without the entries that say what a masked value was.
pub(super) fn copy_metadata<'b>(out: &mut FlatBufferBuilder<'b>, entries: Metadata<'_>, masked: bool) -> NewMetadata<'b> {
    entries?;
    let entries: Vec<_> = metadata(entries)
        .filter(|(k, _)| !(masked && says_what_it_was(k)))
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
