//! Arrow IPC, file and stream: buffers that are not masked are copied as they are, masked leaves become strings.
//!
//! `message` reads and writes messages, `schema` says where the leaves are and what they mean, `remade` writes it with
//! masked leaves as strings, `batch` takes a batch apart and puts
//! it together again (`values` below it). A file is a stream between a mark and a footer, so both are read from front to back: pipes
//! will do, and memory holds a few batches at a time.

mod batch;
mod message;
mod remade;
mod schema;
mod values;

use std::collections::HashMap;
use std::io::{Read, Write};

use arrow_ipc as fb;
use batch::{Count, Rewrite};
use flatbuffers::FlatBufferBuilder;
use message::{CONTINUATION, Message, Messages};
use schema::{Field, Tree};

use super::{ColumnReport, Job, TableReport, metadata};
use crate::error::{Error, Result};
use crate::mask::Treatment;
use crate::pipeline;
use crate::policy::{Missing, quote_path};

/// What a file begins and ends with.
pub const MAGIC: &[u8] = b"ARROW1";
/// What a stream begins with.
pub const STREAM_MAGIC: &[u8] = &CONTINUATION;
/// What a file of the first version of Feather begins with, which is another format.
pub(super) const FEATHER_1: &[u8] = b"FEA1";

/// [`MAGIC`], padded.
const FILE_START: [u8; 8] = *b"ARROW1\0\0";
/// Bytes that a footer may have.
const MAX_FOOTER: u64 = 1 << 28;

/// Masks an Arrow IPC file or stream from `input` to `output`.
///
/// # Errors
/// Damage, columns that are not there, types without a canonical form; `output` may then have been written in part.
pub fn mask(
    input: &mut (dyn Read + Send),
    output: &mut (dyn Write + Send),
    job: &Job<'_>,
    missing: Missing,
) -> Result<TableReport> {
    let mut start = Vec::new();
    input.take(4).read_to_end(&mut start).map_err(|e| Error::io("cannot read", e))?;
    let is_file = MAGIC.starts_with(&start) && start.len() == 4;
    let mut at = 0;
    if is_file {
        (start, at) = skip_start(start, input)?;
    }
    let mut front = start.chain(input);
    let mut messages = Messages::new(&mut front, at);
    let first = messages.next()?.ok_or_else(|| Error::malformed("the stream has no schema"))?;
    let header = first.header()?;
    let schema = header.header_as_schema().ok_or_else(|| Error::malformed("the stream does not begin with a schema"))?;
    let tree = Tree::read(schema, header.version())?;
    let assigned = job.rules.resolve(&tree.candidates, missing)?;
    let masked = assigned.found;
    let treatments: Vec<&Treatment> = assigned.rules.iter().map(|rule| job.rules.treatment(*rule)).collect();
    if !assigned.dropped.is_empty() || treatments.iter().any(|t| matches!(t, Treatment::Bucket(_) | Treatment::Shift(_))) {
        return Err(Error::unsupported(
            "in an Arrow file columns cannot be dropped, shifted or put into buckets yet; in Parquet they can",
        ));
    }
    let dictionaries = tree.dictionaries(&masked, &assigned.rules)?;
    let names: Vec<String> = tree.candidates.iter().map(|c| quote_path(&c.path)).collect();
    let rewrite = Rewrite { masked: &masked, names: &names, treatments: &treatments };

    let columns = masked
        .iter()
        .zip(&assigned.rules)
        .map(|(i, rule)| ColumnReport {
            name: names[*i].clone(),
            number: tree.candidates[*i].number,
            rule: *rule,
            ..ColumnReport::default()
        })
        .collect();
    let kept = (0..names.len()).filter(|i| !masked.contains(i)).map(|i| names[i].clone()).collect();
    let mut sink = Sink { output, at: 0, dictionaries: Vec::new(), batches: Vec::new() };
    let told = schema::metadata(schema.custom_metadata()).filter_map(|(k, v)| metadata::warning(k.as_bytes(), v.as_bytes()));
    let mut report = TableReport { columns, kept, missing: assigned.missing, warnings: told.collect(), ..TableReport::default() };
    if is_file {
        sink.write(&FILE_START)?;
    }
    sink.message(&remade_schema(&first, &tree, &masked)?)?;
    let mut seen = Seen::default();
    pipeline::ordered(
        job.workers,
        || {
            let at = messages.at;
            let Some(message) = messages.next()? else { return Ok(None) };
            (job.progress)(messages.at - at);
            let kind = message.header()?.header_type();
            match kind {
                fb::MessageHeader::RecordBatch => seen.batches.push(at),
                fb::MessageHeader::DictionaryBatch => seen.dictionaries.push(at),
                _ => return Err(Error::unsupported("a message that is no table").at(|p| p.byte = Some(at))),
            }
            Ok(Some((at, message)))
        },
        |(at, message)| one(&message, &tree, &dictionaries, &rewrite).map_err(|e| e.at(|p| p.byte = Some(at))),
        |done| {
            let (message, rows, counts) = done?;
            report.rows += rows;
            for (leaf, values, nulls) in counts {
                if let Some(column) = masked.iter().position(|i| *i == leaf).map(|i| &mut report.columns[i]) {
                    column.masked += values;
                    column.missing += nulls;
                }
            }
            sink.message(&message)
        },
    )?;
    sink.write(&[&CONTINUATION[..], &[0; 4]].concat())?;
    if is_file {
        let rest = messages.rest(MAX_FOOTER)?;
        let footer = footer(&rest)?;
        seen.check(footer)?;
        sink.footer(footer, schema, &tree, &masked)?;
    } else if !messages.rest(1)?.is_empty() {
        return Err(Error::malformed("the stream goes on behind its end"));
    }
    Ok(report)
}

/// Passes over a file's mark and its padding; returns what was read behind them, and where that begins.
fn skip_start(mut start: Vec<u8>, input: &mut (dyn Read + Send)) -> Result<(Vec<u8>, u64)> {
    /// Writers pad to 8 bytes, or to 64.
    const MAX_START: u64 = 64;
    let mut at = 0;
    loop {
        input.take(8 - start.len() as u64).read_to_end(&mut start).map_err(|e| Error::io("cannot read", e))?;
        let is_start = start == if at == 0 { FILE_START } else { [0; 8] };
        match at {
            0 if !is_start => return Err(Error::malformed("the file does not begin as an Arrow file does")),
            1..=MAX_START if !is_start => return Ok((start, at)),
            MAX_START => return Err(Error::malformed("the file has no messages behind its mark")),
            _ => at += 8,
        }
        start.clear();
    }
}

/// Masks a message that is no schema.
fn one(
    message: &Message,
    tree: &Tree,
    dictionaries: &HashMap<i64, Field>,
    rewrite: &Rewrite<'_>,
) -> Result<(Message, u64, Vec<Count>)> {
    let header = message.header()?;
    match header.header_as_record_batch() {
        Some(batch) => {
            let rows = u64::try_from(batch.length()).map_err(|_| Error::malformed("a number of rows below 0"))?;
            let (done, counts) = rewrite.record_batch(message, &tree.fields)?;
            Ok((done, rows, counts))
        }
        None => rewrite.dictionary(message, dictionaries).map(|(done, counts)| (done, 0, counts)),
    }
}

fn remade_schema(first: &Message, tree: &Tree, masked: &[usize]) -> Result<Message> {
    let header = first.header()?;
    let schema = header.header_as_schema().ok_or_else(|| Error::malformed("the stream does not begin with a schema"))?;
    let mut fbb = FlatBufferBuilder::new();
    let schema = remade::copy(&mut fbb, schema, tree, masked)?;
    let custom_metadata = remade::copy_metadata(&mut fbb, header.custom_metadata(), false);
    let args = fb::MessageArgs {
        version: header.version(),
        header_type: fb::MessageHeader::Schema,
        header: Some(schema.as_union_value()),
        bodyLength: 0,
        custom_metadata,
    };
    let root = fb::Message::create(&mut fbb, &args);
    fbb.finish(root, None);
    Ok(Message { metadata: fbb.finished_data().to_vec(), body: Vec::new() })
}

/// The footer among the bytes behind the last message of a file.
fn footer(rest: &[u8]) -> Result<fb::Footer<'_>> {
    let damaged = || Error::malformed("the footer of the file is cut or damaged");
    let rest = rest.strip_suffix(MAGIC).ok_or_else(damaged)?;
    let (bytes, length) = rest.split_last_chunk().ok_or_else(damaged)?;
    if bytes.len() != u32::from_le_bytes(*length) as usize {
        return Err(damaged());
    }
    fb::root_as_footer(bytes).map_err(|_| damaged())
}

/// Where messages began in the input.
#[derive(Default)]
struct Seen {
    dictionaries: Vec<u64>,
    batches: Vec<u64>,
}

impl Seen {
    /// Closed when in doubt: a reader that goes by the footer must see what was masked, and in the same order.
    fn check(&self, footer: fb::Footer<'_>) -> Result<()> {
        let starts = |blocks: Option<flatbuffers::Vector<'_, fb::Block>>| -> Vec<u64> {
            blocks.map(|b| b.iter().map(|b| b.offset() as u64).collect()).unwrap_or_default()
        };
        if starts(footer.recordBatches()) == self.batches && starts(footer.dictionaries()) == self.dictionaries {
            return Ok(());
        }
        Err(Error::malformed("the footer of the file lists other batches than the file holds"))
    }
}

/// The output, and where messages begin in it.
struct Sink<'a> {
    output: &'a mut (dyn Write + Send),
    at: u64,
    dictionaries: Vec<fb::Block>,
    batches: Vec<fb::Block>,
}

impl Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.output.write_all(bytes).map_err(|e| Error::io("cannot write", e))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn message(&mut self, message: &Message) -> Result<()> {
        let head = message.write(self.output)?;
        let block = fb::Block::new(self.at as i64, head as i32, message.body.len() as i64);
        match message.header()?.header_type() {
            fb::MessageHeader::RecordBatch => self.batches.push(block),
            fb::MessageHeader::DictionaryBatch => self.dictionaries.push(block),
            _ => {}
        }
        self.at += (head + message.body.len()) as u64;
        Ok(())
    }

    fn footer(&mut self, footer: fb::Footer<'_>, schema: fb::Schema<'_>, tree: &Tree, masked: &[usize]) -> Result<()> {
        let mut fbb = FlatBufferBuilder::new();
        let args = fb::FooterArgs {
            version: footer.version(),
            schema: Some(remade::copy(&mut fbb, schema, tree, masked)?),
            dictionaries: Some(fbb.create_vector(&self.dictionaries)),
            recordBatches: Some(fbb.create_vector(&self.batches)),
            custom_metadata: remade::copy_metadata(&mut fbb, footer.custom_metadata(), false),
        };
        let root = fb::Footer::create(&mut fbb, &args);
        fbb.finish(root, None);
        let bytes = fbb.finished_data();
        self.write(bytes)?;
        self.write(&(bytes.len() as u32).to_le_bytes())?;
        self.write(MAGIC)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray};
    use arrow_ipc::writer::{FileWriter, StreamWriter};

    use super::*;
    use crate::{Columns, Form, Key, Pseudonymiser, Rules, Scope};

    #[test]
    fn no_changed_byte_makes_it_panic() {
        let key = Key::new("0123456789abcdef".repeat(4).into_bytes()).unwrap();
        let pseudonymiser = Pseudonymiser::new(&key, &Scope::Stable, "", Form::default());
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("s", Arc::new(StringArray::from(vec![Some("one"), None, Some("a text longer than a view")]))),
            ("v", Arc::new(StringViewArray::from(vec![Some("one"), None, Some("a text longer than a view")]))),
            ("n", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
        let (mut file, mut stream) = (Vec::new(), Vec::new());
        let mut writer = FileWriter::try_new(&mut file, &batch.schema()).unwrap();
        writer.write(&batch).and_then(|()| writer.finish()).unwrap();
        let mut writer = StreamWriter::try_new(&mut stream, &batch.schema()).unwrap();
        writer.write(&batch).and_then(|()| writer.finish()).unwrap();
        let columns = Columns::parse("s,v,n").unwrap();
        let rules = Rules::pseudonyms(columns, pseudonymiser);
        let job = Job { rules: &rules, workers: 1, progress: &|_| {} };
        let mut seed = 5u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        let mut refused = 0;
        for round in 0..3000 {
            let mut bytes = if round % 2 == 0 { file.clone() } else { stream.clone() };
            for _ in 0..=random() % 3 {
                let at = random() as usize % bytes.len();
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random() as u8][random() as usize % 6];
            }
            bytes.truncate(if round % 5 == 0 { random() as usize % bytes.len() } else { bytes.len() });
            refused += u32::from(mask(&mut &bytes[..], &mut Vec::new(), &job, Missing::Error).is_err());
        }
        assert!(refused > 500, "{refused}: the changes do nothing");
    }
}
