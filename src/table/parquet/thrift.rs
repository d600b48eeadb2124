//! Thrift's compact protocol as a tree that is written back as it was read.
//!
//! The `parquet` crate types a footer by the fields that it knows; what it does not know (a new annotation, a new statistic) is lost on
//! the way out. A tree of field numbers keeps everything, and only what hmask means to change is changed.
//!
//! Source: Apache Thrift, `doc/specs/thrift-compact-protocol.md`.

use crate::error::{Error, Result};

/// Nesting beyond this is no footer.
const MAX_DEPTH: usize = 64;

/// A value with the type that its number on the wire says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    Byte(u8),
    /// Integers of 16, 32 and 64 bits, by their wire type.
    Int(u8, i64),
    Double([u8; 8]),
    Binary(Vec<u8>),
    /// List or set, by its wire type; the type of its elements; the elements.
    List(u8, u8, Vec<Value>),
    /// Types of keys and values; the entries.
    Map(u8, u8, Vec<(Value, Value)>),
    Struct(Struct),
    Uuid([u8; 16]),
}

/// Fields by their number, in the order of the wire.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Struct(Vec<(i16, Value)>);

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

impl Value {
    /// A 32-bit integer.
    pub(super) fn i32(value: i32) -> Self {
        Self::Int(I32, value.into())
    }

    /// A 64-bit integer.
    pub(super) fn i64(value: i64) -> Self {
        Self::Int(I64, value)
    }

    /// A list of 32-bit integers.
    pub(super) fn i32_list(values: impl IntoIterator<Item = i32>) -> Self {
        Self::List(LIST, I32, values.into_iter().map(Self::i32).collect())
    }

    /// A list of byte strings.
    pub(super) fn binary_list(values: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::List(LIST, BINARY, values.into_iter().map(Self::Binary).collect())
    }

    /// A list of structs.
    pub(super) fn struct_list(values: impl IntoIterator<Item = Struct>) -> Self {
        Self::List(LIST, STRUCT, values.into_iter().map(Self::Struct).collect())
    }

    /// A list of booleans.
    pub(super) fn bool_list(values: impl IntoIterator<Item = bool>) -> Self {
        Self::List(LIST, TRUE, values.into_iter().map(Self::Bool).collect())
    }

    fn wire_type(&self) -> u8 {
        match self {
            Self::Bool(true) => TRUE,
            Self::Bool(false) => FALSE,
            Self::Byte(_) => BYTE,
            Self::Int(t, _) | Self::List(t, ..) => *t,
            Self::Double(_) => DOUBLE,
            Self::Binary(_) => BINARY,
            Self::Map(..) => MAP,
            Self::Struct(_) => STRUCT,
            Self::Uuid(_) => UUID,
        }
    }
}

impl Struct {
    /// Reads one struct from the start of `bytes`; returns it with its length in bytes.
    ///
    /// # Errors
    /// Anything that is not the compact protocol, the end of `bytes` within the struct included (see [`is_cut`]).
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, usize)> {
        let mut reader = Reader { bytes, at: 0 };
        let value = reader.structure(0)?;
        Ok((value, reader.at))
    }

    /// Appends the struct.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut last = 0;
        for (id, value) in &self.0 {
            let delta = id.wrapping_sub(last);
            if (1..=15).contains(&delta) {
                out.push((delta as u8) << 4 | value.wire_type());
            } else {
                out.push(value.wire_type());
                varint(zigzag((*id).into()), out);
            }
            if !matches!(value, Value::Bool(_)) {
                write_value(value, out);
            }
            last = *id;
        }
        out.push(0);
    }

    /// The field of this number.
    pub(super) fn get(&self, id: i16) -> Option<&Value> {
        self.0.iter().find(|(i, _)| *i == id).map(|(_, v)| v)
    }

    /// The field of this number, to change in place.
    pub(super) fn get_mut(&mut self, id: i16) -> Option<&mut Value> {
        self.0.iter_mut().find(|(i, _)| *i == id).map(|(_, v)| v)
    }

    /// The integer of this number.
    pub(super) fn int(&self, id: i16) -> Option<i64> {
        match self.get(id)? {
            Value::Int(_, n) => Some(*n),
            Value::Byte(b) => Some(i64::from(*b as i8)),
            _ => None,
        }
    }

    /// The boolean of this number.
    pub(super) fn bool(&self, id: i16) -> Option<bool> {
        if let Value::Bool(b) = self.get(id)? { Some(*b) } else { None }
    }

    /// The byte string of this number.
    pub(super) fn binary(&self, id: i16) -> Option<&[u8]> {
        if let Value::Binary(b) = self.get(id)? { Some(b) } else { None }
    }

    /// The struct of this number.
    pub(super) fn structure(&self, id: i16) -> Option<&Struct> {
        if let Value::Struct(s) = self.get(id)? { Some(s) } else { None }
    }

    /// The structs of the list of this number; empty where there is none.
    pub(super) fn structs(&self, id: i16) -> impl ExactSizeIterator<Item = &Struct> {
        static EMPTY: Struct = Struct(Vec::new());
        self.list(id).iter().map(|v| if let Value::Struct(s) = v { s } else { &EMPTY })
    }

    /// The elements of the list of this number; empty where there is none.
    pub(super) fn list(&self, id: i16) -> &[Value] {
        if let Some(Value::List(_, _, values)) = self.get(id) { values } else { &[] }
    }

    /// The elements of the list of this number, to change in place.
    pub(super) fn list_mut(&mut self, id: i16) -> Option<&mut Vec<Value>> {
        if let Some(Value::List(_, _, values)) = self.get_mut(id) { Some(values) } else { None }
    }

    /// The id of the first field: of a union, its variant.
    pub(super) fn variant(&self) -> Option<i16> {
        self.0.first().map(|(id, _)| *id)
    }

    /// Puts a field in its place by number, instead of the one that is there.
    pub(super) fn set(&mut self, id: i16, value: Value) {
        match self.0.iter().position(|(i, _)| *i >= id) {
            Some(at) if self.0[at].0 == id => self.0[at].1 = value,
            Some(at) => self.0.insert(at, (id, value)),
            None => self.0.push((id, value)),
        }
    }

    /// The same struct with this field.
    #[must_use]
    pub(super) fn with(mut self, id: i16, value: Value) -> Self {
        self.set(id, value);
        self
    }

    /// Takes all fields out but these.
    pub(super) fn keep(&mut self, ids: &[i16]) {
        self.0.retain(|(id, _)| ids.contains(id));
    }

    /// Takes a field out.
    pub(super) fn remove(&mut self, id: i16) {
        self.0.retain(|(i, _)| *i != id);
    }
}

impl Value {
    /// The struct, if it is one.
    pub(super) fn as_struct(&self) -> Option<&Struct> {
        if let Self::Struct(s) = self { Some(s) } else { None }
    }

    /// The byte string, if it is one.
    pub(super) fn as_binary(&self) -> Option<&[u8]> {
        if let Self::Binary(b) = self { Some(b) } else { None }
    }

    /// The struct, if it is one, to change in place.
    pub(super) fn as_struct_mut(&mut self) -> Option<&mut Struct> {
        if let Self::Struct(s) = self { Some(s) } else { None }
    }
}

/// Whether [`Struct::read`] failed because its bytes ended early, so that more may help.
pub(super) fn is_cut(error: &Error) -> bool {
    matches!(error.kind(), crate::error::ErrorKind::Malformed(m) if m == CUT)
}

const CUT: &str = "damaged metadata: unexpected end";

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
        Value::Byte(b) => out.push(*b),
        Value::Int(_, n) => varint(zigzag(*n), out),
        Value::Double(b) => out.extend_from_slice(b),
        Value::Uuid(b) => out.extend_from_slice(b),
        Value::Binary(b) => {
            varint(b.len() as u64, out);
            out.extend_from_slice(b);
        }
        Value::List(_, element, values) => {
            if let Ok(n @ 0..15) = u8::try_from(values.len()) {
                out.push(n << 4 | element);
            } else {
                out.push(0xf0 | element);
                varint(values.len() as u64, out);
            }
            values.iter().for_each(|v| write_value(v, out));
        }
        Value::Map(key, value, entries) => {
            varint(entries.len() as u64, out);
            if !entries.is_empty() {
                out.push(key << 4 | value);
            }
            for (key, value) in entries {
                write_value(key, out);
                write_value(value, out);
            }
        }
        Value::Struct(s) => s.write(out),
    }
}

fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn zigzag(n: i64) -> u64 {
    (n << 1 ^ n >> 63) as u64
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, n: usize) -> Result<&'b [u8]> {
        let taken = self.bytes[self.at..].get(..n).ok_or_else(|| Error::malformed(CUT))?;
        self.at += n;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| Error::malformed(CUT))
    }

    fn byte(&mut self) -> Result<u8> {
        self.array::<1>().map(|[b]| b)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(Error::malformed("damaged metadata: a number of more than 64 bits"))
    }

    fn zigzag(&mut self) -> Result<i64> {
        let n = self.varint()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// A length that the bytes at hand can hold, at a byte an element.
    fn length(&mut self) -> Result<usize> {
        let n = self.varint()?;
        usize::try_from(n).ok().filter(|n| *n <= self.bytes.len() - self.at).ok_or_else(|| Error::malformed(CUT))
    }

    fn structure(&mut self, depth: usize) -> Result<Struct> {
        if depth > MAX_DEPTH {
            return Err(Error::malformed("damaged metadata: nested too deep"));
        }
        let mut fields = Vec::new();
        let mut last = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(Struct(fields));
            }
            let id = match head >> 4 {
                0 => i16::try_from(self.zigzag()?).ok(),
                delta => last.checked_add(delta.into()),
            };
            last = id.ok_or_else(|| Error::malformed("damaged metadata: a field number out of range"))?;
            if fields.iter().any(|(id, _)| *id == last) {
                // Readers do not agree which of two counts.
                return Err(Error::malformed("damaged metadata: a field that comes twice"));
            }
            let value = match head & 15 {
                TRUE => Value::Bool(true),
                FALSE => Value::Bool(false),
                kind => self.value(kind, depth + 1)?,
            };
            fields.push((last, value));
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Value> {
        if depth > MAX_DEPTH {
            return Err(Error::malformed("damaged metadata: nested too deep"));
        }
        Ok(match kind {
            TRUE | FALSE => Value::Bool(self.byte()? == TRUE),
            BYTE => Value::Byte(self.byte()?),
            I16 | I32 | I64 => Value::Int(kind, self.zigzag()?),
            DOUBLE => Value::Double(self.array()?),
            BINARY => {
                let n = self.length()?;
                Value::Binary(self.take(n)?.to_vec())
            }
            LIST | SET => {
                let head = self.byte()?;
                let n = if head >> 4 == 15 { self.length()? } else { usize::from(head >> 4) };
                let values = (0..n).map(|_| self.value(head & 15, depth + 1)).collect::<Result<_>>()?;
                Value::List(kind, head & 15, values)
            }
            MAP => {
                let n = self.length()?;
                let types = if n == 0 { 0 } else { self.byte()? };
                let (key, value) = (types >> 4, types & 15);
                let mut entries = Vec::new();
                for _ in 0..n {
                    entries.push((self.value(key, depth + 1)?, self.value(value, depth + 1)?));
                }
                Value::Map(key, value, entries)
            }
            STRUCT => Value::Struct(self.structure(depth)?),
            UUID => Value::Uuid(self.array()?),
            other => return Err(Error::malformed(format!("damaged metadata: unknown type {other}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Struct {
        let inner = Struct::default().with(1, Value::Bool(true)).with(20, Value::Bool(false)).with(-3, Value::Byte(7));
        Struct::default()
            .with(1, Value::i32(-1))
            .with(2, Value::Binary(b"abc".to_vec()))
            .with(3, Value::i32_list(0..20))
            .with(4, Value::bool_list([true, false]))
            .with(5, Value::Struct(inner))
            .with(6, Value::Double(1.5f64.to_le_bytes()))
            .with(7, Value::Map(BINARY, I64, vec![(Value::Binary(vec![1]), Value::i64(i64::MIN))]))
            .with(8, Value::Map(0, 0, Vec::new()))
            .with(300, Value::Uuid([9; 16]))
    }

    #[test]
    fn read_and_write_are_inverse() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes);
        let (read, used) = Struct::read(&bytes).unwrap();
        assert_eq!((read, used), (sample(), bytes.len()));
    }

    #[test]
    fn every_cut_is_an_error_that_says_so() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes);
        for n in 0..bytes.len() {
            assert!(is_cut(&Struct::read(&bytes[..n]).unwrap_err()), "cut at {n}");
        }
    }

    #[test]
    fn no_mutation_panics_or_allocates_without_bound() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes);
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut bad = bytes.clone();
                bad[at] = value;
                let _ = Struct::read(&bad);
            }
        }
        assert!(Struct::read(&[0x1c; 1000]).is_err());
        assert!(Struct::read(&[0x19, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
    }

    #[test]
    fn fields_keep_their_order() {
        let mut s = Struct::default().with(4, Value::i32(4)).with(1, Value::i32(1));
        s.set(2, Value::i32(2));
        s.remove(4);
        assert_eq!(s, Struct::default().with(1, Value::i32(1)).with(2, Value::i32(2)));
        assert_eq!((s.int(2), s.int(4), s.variant()), (Some(2), None, Some(1)));
    }
}
